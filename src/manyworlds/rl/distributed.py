"""Training in several processes that `torchrun` starts."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from typing import TypeVar

import torch
import torch.distributed as dist

from manyworlds.utils.devices import usable_cores

_T = TypeVar("_T")


@dataclass(frozen=True)
class Ranks:
    """Rank of this process and number of processes, from the variables that `torchrun` sets."""

    rank: int = 0
    """Rank of this process among all; rank 0 writes files and prints."""
    world_size: int = 1
    """Number of processes."""
    local_rank: int = 0
    """Rank of this process among those on its host."""
    local_world_size: int = 1
    """Number of processes on this host."""

    @classmethod
    def from_environment(cls) -> Ranks:
        """Read the environment's variables.

        Raises:
            ValueError: a variable is not a number, or not in its range.
        """
        try:
            found = cls(
                rank=int(os.environ.get("RANK") or 0),
                world_size=int(os.environ.get("WORLD_SIZE") or 1),
                local_rank=int(os.environ.get("LOCAL_RANK") or 0),
                local_world_size=int(os.environ.get("LOCAL_WORLD_SIZE") or 1),
            )
        except ValueError as error:
            raise ValueError(
                f"RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE must be numbers: {error}."
            ) from None
        if not (
            0 <= found.rank < found.world_size and 0 <= found.local_rank < found.local_world_size
        ):
            raise ValueError(
                f"RANK={found.rank} must be below WORLD_SIZE={found.world_size}, and LOCAL_RANK="
                f"{found.local_rank} below LOCAL_WORLD_SIZE={found.local_world_size}: start all "
                "processes with torchrun."
            )
        return found

    @property
    def is_distributed(self) -> bool:
        """Return True if there are several processes."""
        return self.world_size > 1

    @property
    def is_main(self) -> bool:
        """Return True if this process writes files and prints."""
        return self.rank == 0

    @property
    def threads(self) -> int:
        """Number of CPU cores for this process: its share of the host's cores."""
        return max(1, usable_cores() // self.local_world_size)

    def device(self, device: str | None) -> str | None:
        """Return the device of this process: a separate GPU per process if GPUs are used."""
        if self.is_distributed and (device or "cuda") == "cuda" and torch.cuda.is_available():
            return f"cuda:{self.local_rank}"
        return device


def connect(ranks: Ranks, device: torch.device | str) -> None:
    """Initialize the process group if there are several processes: nccl for GPUs, else gloo."""
    if not ranks.is_distributed or dist.is_initialized():
        return
    restarts = os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0")
    shares_store = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    if ranks.is_main and restarts != "0" and shares_store:
        warnings.warn(
            f"torchrun is to restart failed processes (--max-restarts {restarts}), which then "
            "cannot connect, because its agents share a store that keeps the addresses of earlier "
            "processes: set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 where torchrun starts.",
            stacklevel=2,
        )
    device = torch.device(device)
    if device.type == "cuda":
        torch.cuda.set_device(device)
        dist.init_process_group("nccl")
    else:
        dist.init_process_group("gloo")


def disconnect() -> None:
    """Destroy the process group, if there is one."""
    if dist.is_initialized():
        dist.destroy_process_group()


def share(value: _T) -> _T:
    """Return rank 0's value in all processes; with one process, the value itself."""
    if not dist.is_initialized():
        return value
    box = [value]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def gather(value: _T) -> list[_T]:
    """Return the values of all processes by rank, on rank 0; an empty list on other ranks."""
    if not dist.is_initialized():
        return [value]
    if dist.get_rank() != 0:
        dist.gather_object(value, None, dst=0)
        return []
    values = [value] * dist.get_world_size()  # to be replaced
    dist.gather_object(value, values, dst=0)
    return values


def any_rank(flag: bool, device: torch.device | str) -> bool:
    """Return True if the flag is set in any process."""
    if not dist.is_initialized():
        return flag
    found = torch.tensor(float(flag), device=device)
    dist.all_reduce(found, dist.ReduceOp.MAX)
    return bool(found)
