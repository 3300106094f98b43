"""Saved states of worlds: which worlds, and whether a state fits."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import mujoco
import numpy as np
import torch

from manyworlds.validation.worlds import Worlds

State = dict[str, "torch.Tensor"]
"""State rows, model rows (`model.*`), derived fields (`derived.*`) and status, one row a world."""

# What the layout of a state row follows from.
_SIZES = (
    *("nq", "nv", "na", "nu", "nhistory", "nbody", "neq", "nmocap", "nuserdata", "npluginstate"),
)


def model_sizes(mj_model: mujoco.MjModel) -> np.ndarray:
    """Return the sizes of a model that state rows are laid out by, int32."""
    return np.array([getattr(mj_model, name) for name in _SIZES], np.int32)


def check_sizes(state: Mapping[str, torch.Tensor], sizes: np.ndarray) -> None:
    """Refuse state rows of a model of other sizes, which may be as long by chance.

    Raises:
        ValueError: names the first size that differs.
    """
    for saved in state.get("sizes", torch.zeros(0)).cpu().numpy():
        for name, theirs, ours in zip(_SIZES, saved.tolist(), sizes.tolist(), strict=True):
            if theirs != ours:
                raise ValueError(
                    f"The saved state is of a model with {name} = {theirs}, but this one has "
                    f"{ours}: use the same model."
                )


def check_target(worlds: Worlds) -> None:
    """Refuse to write several states into one world."""
    if len(worlds.ascending) != len(worlds):
        raise ValueError(
            f"World ids must be unique where states are written, got {worlds.host_ids.tolist()}: "
            "name each world once."
        )


def check_state(state: State) -> None:
    """Refuse what `get_state` cannot have returned.

    Raises:
        TypeError: it is no mapping from names to tensors.
    """
    values = state.values() if isinstance(state, Mapping) else [state]
    for value in values:
        if not isinstance(value, torch.Tensor) or value is state:
            raise TypeError(
                f"A saved state must hold tensors by name, got {type(value).__name__}: "
                "give what get_state or state_dict returned."
            )


def check_shapes(state: Mapping[str, torch.Tensor], wanted: Mapping[str, tuple[int, ...]]) -> None:
    """Compare a saved state with the shapes that a simulation needs.

    Raises:
        ValueError: names the first part that is absent or of another shape.
    """
    remedy = "use the same engine, model, and number of worlds."
    for name, shape in wanted.items():
        found = tuple(state[name].shape) if name in state else None
        what = "state" if name == "state" else f"state has '{name}' of"
        has = "has shape" if name == "state" else "shape"
        if found != shape:
            raise ValueError(
                f"The saved {what} {has} {found} but this simulation needs {shape}: {remedy}"
            )


def check_known(state: Mapping[str, torch.Tensor], known: Collection[str]) -> None:
    """Refuse parts of a saved state that nobody would take.

    Raises:
        ValueError: names them.
    """
    if unknown := sorted(state.keys() - set(known)):
        raise ValueError(
            f"The saved state has {', '.join(map(repr, unknown))}, which this simulation has not: "
            "use the same engine, model, and number of worlds."
        )
