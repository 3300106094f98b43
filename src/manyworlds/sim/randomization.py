"""Per-world rows in a MuJoCo Warp model, for code that steps it without a `Simulation`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from manyworlds.sim.engines.warp_views import repeat_rows

if TYPE_CHECKING:
    import mujoco_warp as mjw
    import warp as wp


def expand_model_fields(model: mjw.Model, nworld: int, fields_to_expand: Sequence[str]) -> None:
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
    unknown: list[str] = []
    shared: list[tuple[mjw.Model | mjw.Option, str, wp.array]] = []
    for field in fields_to_expand:
        owner = model
        if field.startswith("opt."):
            owner = model.opt
        name = field.removeprefix("opt.")
        array = getattr(owner, name, None)
        if array is None or not getattr(array, "shape", ()):
            unknown.append(field)
        elif array.shape[0] != nworld:
            shared.append((owner, name, array))
    if unknown:
        raise ValueError(f"Fields not found in model: {', '.join(map(repr, unknown))}.")
    for owner, name, array in shared:
        setattr(owner, name, repeat_rows(array, nworld))
