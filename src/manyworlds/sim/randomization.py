"""Per-world rows in a MuJoCo Warp model, for code that steps it without a `Simulation`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from manyworlds.sim.engines.warp_views import repeat_rows


def expand_model_fields(model: Any, nworld: int, fields_to_expand: Sequence[str]) -> None:
    """Give arrays of a `mujoco_warp.Model` one row per world, copies of the shared row.

    Graphs captured earlier still read the old arrays. For a simulation, use
    `Simulation.expand_model_fields`, which also updates its graphs and views.

    Args:
        model: MuJoCo Warp's model.
        nworld: the number of worlds.
        fields_to_expand: names of arrays; options are named 'opt.<name>'. Arrays that already have
            one row per world are unchanged.

    Raises:
        ValueError: the model has no such arrays; none is expanded then.
    """
    places = [(model.opt, f[4:]) if f.startswith("opt.") else (model, f) for f in fields_to_expand]
    found: list[Any] = [getattr(owner, name, None) for owner, name in places]
    arrays = dict(zip(fields_to_expand, found, strict=True))
    unknown = [name for name, a in arrays.items() if not getattr(a, "shape", ())]
    if unknown:
        raise ValueError(f"Fields not found in model: {', '.join(map(repr, unknown))}.")
    for (owner, name), array in zip(places, found, strict=True):
        if array.shape[0] != nworld:
            setattr(owner, name, repeat_rows(array, nworld))
