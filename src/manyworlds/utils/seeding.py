"""Seeding of random number generators."""

from __future__ import annotations

import random
from typing import Any, NotRequired, TypedDict

import numpy as np
import torch

from manyworlds.utils.devices import configure_torch_backends

MAX_SEED = 2**63 - 1
"""Largest seed that all generators take."""


class RngState(TypedDict):
    """States of the global random generators, as tensors and plain data."""

    torch: torch.Tensor
    python: list[Any]
    numpy: list[Any]
    cuda: NotRequired[torch.Tensor]


def new_seed() -> int:
    """Return a seed from the system's entropy."""
    return int(np.random.SeedSequence().generate_state(1)[0])


def seed_rng(seed: int, torch_deterministic: bool = False) -> None:
    """Seed Python's, NumPy's and torch's global generators.

    Args:
        seed: the seed, from -2^63 to 2^63 - 1.
        torch_deterministic: see `configure_torch_backends`; False leaves torch's setting.

    Raises:
        ValueError: the seed is out of bounds.
    """
    if not -MAX_SEED - 1 <= seed <= MAX_SEED:
        raise ValueError(
            f"The seed is {seed}, but must be from {-MAX_SEED - 1} to {MAX_SEED}: choose another."
        )
    if torch_deterministic:
        configure_torch_backends(deterministic=True)
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def rng_state() -> RngState:
    """Return the states of the generators that `seed_rng` seeds."""
    version, numbers, gauss = random.getstate()
    numpy_state: Any = np.random.get_state()
    kind, keys, position, has_gauss, cached = numpy_state
    state: RngState = {
        "torch": torch.get_rng_state(),
        "python": [version, list(numbers), gauss],
        "numpy": [kind, torch.from_numpy(keys.astype(np.int64)), position, has_gauss, cached],
    }
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state()
    return state


def set_rng_state(state: RngState) -> None:
    """Restore states that `rng_state` returned."""
    torch.set_rng_state(state["torch"].cpu())
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))
    kind, keys, *rest = state["numpy"]
    np.random.set_state((kind, keys.cpu().numpy().astype(np.uint32), *rest))
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"].cpu())
