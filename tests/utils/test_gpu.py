"""Choosing GPUs by their position among the visible ones."""

import pytest
import torch

from manyworlds.utils.gpu import select_gpus


@pytest.mark.parametrize(
    ("visible", "asked", "found"),
    [
        ("4,7", [1], ([7], 1)),
        ("4,7", "all", ([4, 7], 2)),
        ("MIG-1a, GPU-2b", [1, 0], (["GPU-2b", "MIG-1a"], 2)),
        ("4,7", None, (None, 0)),
        ("", [0], (None, 0)),
        ("", "all", (None, 0)),
    ],
)
def test_positions_count_visible_gpus(monkeypatch, visible, asked, found):
    """Translate positions; without a list or a GPU take the CPU."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert select_gpus(asked) == found


def test_without_the_variable_all_gpus_count(monkeypatch):
    """Ask torch how many there are."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    assert select_gpus("all") == ([0, 1, 2], 3) and select_gpus([2]) == ([2], 1)


def test_gpus_that_are_not_there_are_named(monkeypatch):
    """Say how many there are, and what to do."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    with pytest.raises(ValueError, match=r"GPU 1 is requested, but there are 1 .*DEVICES='5'"):
        select_gpus([1])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(ValueError, match="there is none that PyTorch can use: omit --gpu-ids"):
        select_gpus([0])
