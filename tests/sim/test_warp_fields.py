"""Effects of model fields on Warp: on images, and on the results of mj_setConst."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.sim import RecomputeLevel, Simulation, SimulationCfg
from manyworlds.sim.fields.model_fields import MODEL_FIELD_TABLE
from manyworlds.sim.rays import CameraRequest
from tests.sim.test_derived import MODELS

pytest.importorskip("mujoco_warp")

# Lights without attenuation and no spotlight: what MuJoCo Warp leaves out of its kernel then.
STUDIO = """
<mujoco>
  <visual><headlight ambient=".1 .1 .1" diffuse=".2 .2 .2"/></visual>
  <asset>
    <texture name="grid" type="2d" builtin="checker" width="64" height="64" rgb1="1 1 1"/>
    <texture name="dusk" type="2d" builtin="gradient" width="64" height="64" rgb1="1 0 0"/>
    <material name="paint" texture="grid" texrepeat="3 3" specular=".9" shininess=".3"/>
    <material name="green" rgba="0 1 0 1"/>
    <mesh name="wedge" vertex="0 0 0  .2 0 0  0 .15 0  0 0 .1  .2 0 .1  0 .15 .1"/>
    <mesh name="spike" vertex="0 0 0  .1 0 0  0 .1 0  0 0 .4"/>
  </asset>
  <worldbody>
    <light type="directional" pos="0 0 3" dir=".3 .1 -1" castshadow="true" diffuse=".3 .3 .3"/>
    <light type="point" pos="-.3 0 1.2" dir=".2 0 -1" cutoff="30" diffuse=".4 .4 .4"/>
    <camera pos="0 -1.2 .8" xyaxes="1 0 0 0 .6 1" {optics} resolution="40 30"/>
    <geom type="plane" size="2 2 .1" material="paint"/>
    <body pos="0 0 .2"><freejoint/><geom size=".2" material="paint"/></body>
    <body pos=".4 0 .1"><geom type="box" size=".1 .1 .1" rgba=".8 .2 .2 1"/></body>
    <body pos="-.5 0 .1"><geom type="mesh" mesh="wedge"/></body>
  </worldbody>
</mujoco>
"""
VIEW = CameraRequest(
    camera=0, width=40, height=30, kinds=("rgb",), textures=True, shadows=True, geom_groups=(0, 1)
)
_COMPUTED = ("poscom0", "pos0", "mat0", "dir0")
VISUAL = [
    name
    for name, field in MODEL_FIELD_TABLE.items()
    if (field.element in ("camera", "light", "material") and not name.endswith(_COMPUTED))
    or name in ("geom_rgba", "geom_matid", "geom_dataid", "geom_size", "geom_pos", "geom_quat")
]
_ONLY_OF_SPOTLIGHTS = ("light_cutoff", "light_exponent")
_OF_OPTICS = {"cam_fovy": 'fovy="60"', "cam_intrinsic": 'sensorsize=".01 .01" focal=".01 .01"'}


def _changed(field: str, row: torch.Tensor) -> torch.Tensor:
    if row.dtype == torch.bool:
        return ~row
    if field == "light_type":
        return torch.full_like(row, int(mujoco.mjtLightType.mjLIGHT_SPOT))
    if not row.is_floating_point():
        return torch.where(row >= 0, 1 - row, row)
    if field in ("light_attenuation", "light_specular"):
        return row + torch.tensor([0.0, 0.5, 0.5])
    if field == "mat_shininess":
        return row * 0.05
    other = row * 0.6 + 0.1
    if field.endswith(("quat", "dir")):
        other = row + 0.2
        other /= other.norm(dim=-1, keepdim=True)
    return other


def _changes(fields: list[str]) -> list[dict[str, Any]]:
    spot = {"light_type": None}
    return [{}, spot, *({**(spot if f in _ONLY_OF_SPOTLIGHTS else {}), f: None} for f in fields)]


@pytest.mark.slow
@pytest.mark.parametrize("optics", _OF_OPTICS)
def test_a_change_of_each_visual_field_shows(optics):
    """Change one field in each world: its picture differs, and the untouched world's does not."""
    fields = [f for f in VISUAL if f not in _OF_OPTICS or f == optics]
    model = mujoco.MjModel.from_xml_string(STUDIO.format(optics=_OF_OPTICS[optics]))
    changes = _changes(fields)
    cfg = SimulationCfg(engine="warp", mujoco=None)
    sim = Simulation(len(changes), cfg, model, "cpu")
    plain = sim.render_cameras(VIEW)
    assert plain is not None
    before = plain["rgb"].int()
    sim.expand_model_fields(tuple(fields))
    for world, change in enumerate(changes):
        for field in change:
            rows = getattr(sim.model, field)
            rows[world] = _changed(field, rows[world].clone())
    sim.recompute_constants(RecomputeLevel.set_const)
    sim.forward()
    pictures = sim.render_cameras(VIEW)
    assert pictures is not None
    after = pictures["rgb"].int()
    # Kernels that leave out nothing may round otherwise.
    assert (after[0] - before[0]).abs().max() <= 1
    for world, change in enumerate(changes[2:], start=2):
        rest = 1 if len(change) > 1 else 0
        assert (after[world] - after[rest]).abs().max() > 8, change


def test_visual_fields_that_warp_holds_once_are_refused():
    """Refuse rows of visual fields that MuJoCo Warp's pictures could not follow."""
    cfg = SimulationCfg(engine="warp", mujoco=None)
    model = mujoco.MjModel.from_xml_string(STUDIO.format(optics=""))
    sim = Simulation(2, cfg, model, "cpu")
    for field in ("site_rgba", "tendon_rgba", "cam_sensorsize", "mat_reflectance", "geom_group"):
        with pytest.raises(ValueError, match=f"'{field}' cannot differ between worlds on the warp"):
            sim.expand_model_fields((field,))


@pytest.mark.parametrize("name", ["rich", "go1", "yam", "ant"])
def test_what_set_const_derives_is_right_or_refused(name):
    """Compare everything that mj_setConst writes: the same within float32, or refused by name."""
    model = MODELS[name]()
    assert torch.equal(
        _simulate(model, "warp").model.dof_M0, _simulate(model, "native").model.dof_M0
    )
    native, warp = (_simulate(model, engine) for engine in ("native", "warp"))
    for sim in (native, warp):
        for field, factor in (("body_mass", 1.5), ("body_inertia", 1.3), ("actuator_gear", 1.2)):
            if getattr(sim.model, field).numel():
                getattr(sim.model, field)[1] *= factor
        sim.model.qpos0[1] += 0.05
        sim.model.body_pos[1] += 0.01
        sim.recompute_constants(RecomputeLevel.set_const)
    refused = set()
    for field in mujoco.MjModel._setconst_outputs:
        expected = np.asarray(getattr(native.model, field))
        try:
            found = np.asarray(getattr(warp.model, field))
        except AttributeError as error:
            assert f"'{field}' is not available: mj_setConst computes it" in str(error)
            refused.add(field)
            continue
        error = np.abs(found - expected)
        assert (error <= 2e-4 * np.abs(expected).clip(1e-3)).all(), field
    assert {"dof_M0", "dof_length", "actuator_length0"} <= refused
    assert not refused & MODEL_FIELD_TABLE.keys()


def _simulate(model: mujoco.MjModel, engine: str) -> Simulation:
    cfg = SimulationCfg(engine=engine, mujoco=None)  # type: ignore[arg-type]
    return Simulation(2, cfg, model, "cpu")
