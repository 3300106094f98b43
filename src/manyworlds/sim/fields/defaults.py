"""Model fields as compiled, kept apart from a model that a viewer may overwrite."""

from __future__ import annotations

import mujoco
import numpy as np
import torch

# Assets are large, shared by all worlds, and never randomized.
_ASSETS = ("mesh_", "tex_", "skin_", "hfield_data", "name", "path", "oct_", "sig")

# Fields from which `mj_setConst` computes whether the model has such forces at all.
_FLAGGED = frozenset({"body_gravcomp", "geom_surfacevel", "geom_adhesion", "pair_adhesion"})


def pristine_fields(mj_model: mujoco.MjModel) -> dict[str, np.ndarray]:
    """Copy every field of a model except assets; options are named 'opt.<name>'.

    The arrays have the shapes of the model's fields.
    """
    fields: dict[str, np.ndarray] = {}
    for owner, prefix in ((mj_model, ""), (mj_model.opt, "opt.")):
        for name in dir(owner):
            if name.startswith(("_", *_ASSETS)):
                continue
            value = getattr(owner, name)
            if isinstance(value, np.ndarray) or (prefix and isinstance(value, int | float)):
                fields[prefix + name] = np.array(value)
    return fields


def as_tensor(value: np.ndarray, shape: tuple[int, ...], device: torch.device) -> torch.Tensor:
    """Return a new tensor of the given shape with a field's values; float64 becomes float32."""
    dtype = np.float32 if value.dtype.kind == "f" else value.dtype
    with torch.inference_mode(False):
        return torch.from_numpy(value.reshape(shape).astype(dtype)).to(device)


def write_field(model: mujoco.MjModel, field: str, row: np.ndarray) -> None:
    """Write one world's row of a field into a model; options are named 'opt.<name>'.

    MuJoCo skips gravity compensation, adhesion and surface velocities if none was nonzero when
    constants were last computed: these are recomputed if that changes, with all other fields kept.
    """
    owner = model
    if field.startswith("opt."):
        owner = model.opt
    name = field.removeprefix("opt.")
    target = getattr(owner, name)
    if not isinstance(target, np.ndarray):
        setattr(owner, name, row.item())
        return
    # The batch stores fewer elements than MuJoCo C for some fields.
    target.reshape(-1)[: row.size] = row.reshape(-1)
    found = model.flg_surfacevel, model.flg_adhesion, model.ngravcomp
    if field in _FLAGGED and _flags(model) != found:
        kept = pristine_fields(model)
        mujoco.mj_setConst(model, mujoco.MjData(model))
        for other, value in kept.items():
            write_field(model, other, value)


def _flags(model: mujoco.MjModel) -> tuple[bool, bool, int]:
    """Return what `mj_setConst` would find: surface velocities, adhesion, gravity compensation."""
    adhesion = model.geom_adhesion.any() or model.pair_adhesion.any()
    compensated = int(np.count_nonzero(model.body_gravcomp))
    return bool(model.geom_surfacevel.any()), bool(adhesion), compensated
