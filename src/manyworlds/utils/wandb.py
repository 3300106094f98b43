"""Helpers for Weights & Biases, if its package is installed."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def add_wandb_tags(tags: Sequence[str]) -> None:
    """Add tags to the run that this process logs to, if there is one."""
    wandb = sys.modules.get("wandb")
    if wandb is not None and wandb.run is not None and tags:
        wandb.run.tags = tuple(dict.fromkeys((*(wandb.run.tags or ()), *tags)))


def use_wandb_artifact(name: str) -> bool:
    """Declare an artifact as an input of the run that this process logs to.

    Returns:
        False if there is no run.
    """
    wandb = sys.modules.get("wandb")
    if wandb is None or wandb.run is None:
        return False
    wandb.run.use_artifact(name)
    return True
