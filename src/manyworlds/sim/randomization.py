"""Rows per world in a MuJoCo Warp model, for code that steps it without a `Simulation`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from manyworlds.sim.engines.warp_views import repeat_rows


def expand_model_fields(model: Any, nworld: int, fields_to_expand: Sequence[str]) -> None:
    """Give arrays of a `mujoco_warp.Model` one row per world, copies of the one that all share.

    Graphs that were captured before keep reading the old arrays. Of a simulation, expand fields
    with `Simulation.expand_model_fields`, which sees to its graphs and views.

    Args:
        model: MuJoCo Warp's model.
        nworld: the number of worlds.
        fields_to_expand: names of arrays; options are named 'opt.<name>'. Those that have a row
            per world are left as they are.

    Raises:
        ValueError: the model has no such arrays; then none was expanded.
    """
    places = [(model.opt, f[4:]) if f.startswith("opt.") else (model, f) for f in fields_to_expand]
    found: list[Any] = [getattr(owner, name, None) for owner, name in places]
    arrays = dict(zip(fields_to_expand, found, strict=True))
    if unknown := [name for name, a in arrays.items() if not getattr(a, "shape", ())]:
        raise ValueError(f"Fields not found in model: {', '.join(map(repr, unknown))}.")
    for (owner, name), array in zip(places, found, strict=True):
        if array.shape[0] != nworld:
            setattr(owner, name, repeat_rows(array, nworld))
