"""Saved states of worlds: order of worlds, and compatibility checks."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import mujoco
import numpy as np
import torch

from manyworlds.validation.worlds import Worlds

State = dict[str, "torch.Tensor"]
"""State rows, model rows (`model.*`), derived fields (`derived.*`) and status, (n, ...) each."""

# Sizes that determine the layout of a state row.
_SIZES = (
    "nq",
    "nv",
    "na",
    "nu",
    "nhistory",
    "nbody",
    "neq",
    "nmocap",
    "nuserdata",
    "npluginstate",
)


def model_sizes(mj_model: mujoco.MjModel) -> np.ndarray:
    """Return the sizes of a model that determine the layout of state rows, int32, shape (n,)."""
    return np.array([getattr(mj_model, name) for name in _SIZES], np.int32)


def check_sizes(state: Mapping[str, torch.Tensor], sizes: np.ndarray) -> None:
    """Check that state rows are of a model of the same sizes; equal length is not sufficient.

    Raises:
        ValueError: a size differs; the message has the first one.
    """
    for saved in state.get("sizes", torch.zeros(0)).cpu().numpy():
        for name, theirs, ours in zip(_SIZES, saved.tolist(), sizes.tolist(), strict=True):
            if theirs != ours:
                raise ValueError(
                    f"The saved state is of a model with {name} = {theirs}, but this one has "
                    f"{ours}: use the same model."
                )


def check_target(worlds: Worlds) -> None:
    """Check that no world receives several states."""
    if len(worlds.ascending) != len(worlds):
        raise ValueError(
            f"World ids must be unique where states are written, got {worlds.host_ids.tolist()}: "
            "name each world once."
        )


def check_state(state: State) -> None:
    """Check that a state has the type that `get_state` returns.

    Raises:
        TypeError: it is not a mapping from names to tensors.
    """
    values: list[object] = [state]  # which is wrong
    if isinstance(state, Mapping):
        values = list(state.values())
    for value in values:
        if not isinstance(value, torch.Tensor) or value is state:
            raise TypeError(
                f"A saved state must hold tensors by name, got {type(value).__name__}: "
                "give the result of get_state or state_dict."
            )


def check_shapes(state: Mapping[str, torch.Tensor], wanted: Mapping[str, tuple[int, ...]]) -> None:
    """Check a saved state against the shapes that a simulation needs.

    Raises:
        ValueError: a part is missing or has another shape; the message names the first one.
    """
    remedy = "use the same engine, model, and number of worlds."
    for name, shape in wanted.items():
        found = None
        if name in state:
            found = tuple(state[name].shape)
        if found == shape:
            continue
        what = f"state has '{name}' of shape"
        if name == "state":
            what = "state has shape"
        raise ValueError(f"The saved {what} {found} but this simulation needs {shape}: {remedy}")


def check_known(state: Mapping[str, torch.Tensor], known: Collection[str]) -> None:
    """Check that a saved state has no unknown parts.

    Raises:
        ValueError: it has; the message names them.
    """
    unknown = sorted(state.keys() - set(known))
    if unknown:
        raise ValueError(
            f"The saved state has {', '.join(map(repr, unknown))}, which this simulation lacks: "
            "use the same engine, model, and number of worlds."
        )
