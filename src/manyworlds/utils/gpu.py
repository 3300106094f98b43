"""Selection of GPUs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

GpuId = int | str
"""A GPU as in `CUDA_VISIBLE_DEVICES`: an index, or the UUID of a GPU or of a MIG slice."""


def select_gpus(gpu_ids: Sequence[int] | Literal["all"] | None) -> tuple[list[GpuId] | None, int]:
    """Return the GPUs at positions among the visible ones.

    Args:
        gpu_ids: positions in `CUDA_VISIBLE_DEVICES`, or among all GPUs if it is not set; "all"
            selects all of these; None selects the CPU.

    Returns:
        The GPUs as in `CUDA_VISIBLE_DEVICES`, or None for the CPU, and their number.

    Raises:
        ValueError: a GPU is not available.
    """
    if gpu_ids is None:
        return None, 0
    visible: list[GpuId]
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is None:
        import torch

        visible = list(range(torch.cuda.device_count()))
    else:
        names = [name.strip() for name in named.split(",")]
        visible = []
        for name in filter(None, names):
            visible.append(int(name) if name.isdigit() else name)
    if gpu_ids == "all":
        if not visible:
            return None, 0
        return visible, len(visible)
    if named == "":
        return None, 0
    for i in gpu_ids:
        if not 0 <= int(i) < len(visible):
            where = ""
            if named is not None:
                where = f" in CUDA_VISIBLE_DEVICES='{named}'"
            there = f"there are {len(visible)}{where}, counted from 0"
            if not visible:
                there = f"there is none{where} that PyTorch can use"
            raise ValueError(
                f"GPU {i} is requested, but {there}: omit --gpu-ids to train on the CPU, or "
                "install PyTorch's CUDA build and NVIDIA's driver."
            )
    return [visible[int(i)] for i in gpu_ids], len(gpu_ids)
