"""One small scene with objects of every kind, and plain MuJoCo to compare with."""

from __future__ import annotations

import copy

import mujoco
import numpy as np
import torch
from mujoco.batch import MODEL_FIELDS

from manyworlds.sim import Simulation

# `simple="false"`: mj_setConst refuses to move the inertial frame of a body compiled as simple.
RICH = """
<mujoco model="rich">
  <option timestep="0.004" density=".5" viscosity=".01" wind="1 0 0" magnetic=".1 0 .3"/>
  <asset>
    <texture name="grid" type="2d" builtin="checker" width="8" height="8" rgb1="1 1 1"/>
    <material name="paint" texture="grid" emission=".1" rgba=".5 .6 .7 1"/>
    <mesh name="wedge" vertex="0 0 0  .2 0 0  0 .15 0  0 0 .1  .2 0 .1  0 .15 .1"/>
    <mesh name="spike" vertex="0 0 0  .1 0 0  0 .1 0  0 0 .4"/>
  </asset>
  <worldbody>
    <light name="sun" pos="0 0 3" dir=".1 0 -1" castshadow="true"/>
    <camera name="eye" pos="1 -1 1" xyaxes="1 1 0 0 0 1" fovy="50"/>
    <geom name="floor" type="plane" size="5 5 .1" material="paint" friction=".9 .005 .0001"/>
    <body name="shelf" pos="-.6 0 .1" euler="0 0 10" simple="false">
      <geom name="shelf" type="box" size=".2 .2 .05" pos=".01 0 0"/>
      <site name="shelf" pos="0 0 .05"/>
    </body>
    <body name="target" mocap="true" pos=".8 0 .9" simple="false">
      <geom name="target" size=".03" contype="0" conaffinity="0"/>
    </body>
    <body name="wedge" pos="-.6 .02 .22" simple="false">
      <freejoint/>
      <geom name="wedge" type="mesh" mesh="wedge" adhesion=".1" surfacevel=".1 0 0 0 0 0"/>
    </body>
    <body name="crate" pos="0 .5 .12" euler="5 9 0" simple="false">
      <freejoint/>
      <geom name="crate" type="box" size=".1 .08 .06" condim="4"/>
      <light name="lamp" mode="targetbody" target="wedge" pos="0 0 .2"/>
    </body>
    <body name="pill" pos="0 .52 .35" euler="0 70 0" simple="false">
      <freejoint/>
      <geom name="pill" type="capsule" size=".04 .08" margin=".01" gap=".002"/>
      <site name="pill" pos=".01 0 .02"/>
    </body>
    <body name="upper" pos=".5 0 .8" gravcomp=".3" simple="false">
      <joint name="shoulder" axis="0 1 0" range="-60 60" damping=".2" armature=".01"
        stiffness="1" springref="10" frictionloss=".05" actuatorfrcrange="-4 4"/>
      <geom name="upper" type="capsule" fromto="0 0 0 -.3 0 -.02" size=".03"/>
      <site name="upper" pos="-.1 0 .04"/>
      <camera name="track" mode="trackcom" pos="0 -1 .2"/>
      <body name="fore" pos="-.3 0 0" simple="false">
        <joint name="elbow" axis="0 1 .1" pos="0 0 .01" range="-30 90" damping=".1"/>
        <geom name="fore" type="cylinder" fromto="0 0 0 -.25 .03 0" size=".025"/>
        <site name="tip" pos="-.25 .03 0"/>
        <light name="torch" mode="trackcom" pos="0 0 .1" dir="0 1 -1"/>
      </body>
    </body>
    <body name="cart" pos=".5 -.6 .3" simple="false">
      <joint name="rail" type="slide" axis="1 0 0" range="-.3 .3" damping=".5"/>
      <geom name="cart" type="ellipsoid" size=".08 .05 .04"/>
      <site name="cart" pos="0 0 .04"/>
      <body name="bob" pos="0 0 .05" simple="false">
        <joint name="swivel" type="ball" damping=".01"/>
        <geom name="bob" size=".04" pos="0 .02 .2"/>
        <site name="bob" pos="0 0 .2"/>
      </body>
    </body>
  </worldbody>
  <contact>
    <pair name="hard" geom1="pill" geom2="crate" friction=".8 .8 .01 .001 .001" margin=".004"
      adhesion=".2"/>
  </contact>
  <equality>
    <connect name="leash" body1="bob" body2="target" anchor="0 0 .05" active="false"/>
    <weld name="glue" body1="cart" body2="upper" active="false"/>
    <joint name="couple" joint1="elbow" joint2="shoulder" polycoef=".1 .5 0 0 0" solref=".1 1"/>
    <tendon name="tie" tendon1="strap" active="false"/>
  </equality>
  <tendon>
    <fixed name="mix" limited="true" range="-.3 .4" stiffness="2" damping=".1" frictionloss=".02"
      armature=".01">
      <joint joint="shoulder" coef="1"/>
      <joint joint="elbow" coef="-.7"/>
    </fixed>
    <spatial name="strap" stiffness="3" damping=".2" springlength=".1" width=".004" armature=".02">
      <site site="shelf"/>
      <site site="upper"/>
      <site site="tip"/>
    </spatial>
    <spatial name="wrap" stiffness="1" springlength=".05">
      <site site="upper"/>
      <geom geom="fore"/>
      <site site="tip"/>
    </spatial>
  </tendon>
  <actuator>
    <motor name="shoulder" joint="shoulder" gear="3" ctrlrange="-1 1" ctrllimited="true"/>
    <position name="elbow" joint="elbow" kp="5" kv=".3" timeconst=".05" forcerange="-3 3"/>
    <intvelocity name="rail" joint="rail" kp="4" actrange="-.2 .2" delay=".008" nsample="4"/>
    <general name="strap" tendon="strap" biastype="affine" biasprm="0 -1 -.1" damping=".1"
      armature=".01"/>
    <general name="crank" cranksite="bob" slidersite="cart" cranklength=".3"/>
  </actuator>
  <sensor>
    <framepos objtype="site" objname="tip"/>
    <framepos objtype="camera" objname="track"/>
    <accelerometer site="pill"/>
    <touch site="cart"/>
    <tendonpos tendon="strap"/>
    <actuatorfrc actuator="crank"/>
    <jointpos joint="rail" delay=".008" nsample="4" interval=".008"/>
  </sensor>
</mujoco>
"""

_UNIT = ("body_quat", "body_iquat", "geom_quat", "site_quat", "cam_quat", "jnt_axis", "light_dir")
LAYOUT_FIELDS = ("actuator_history", "actuator_historyadr", "sensor_history", "sensor_historyadr")

INTEGRATION = int(mujoco.mjtState.mjSTATE_INTEGRATION)


def rich_model() -> mujoco.MjModel:
    """Return the scene, compiled."""
    return mujoco.MjModel.from_xml_string(RICH)


def plain_model(
    sim: Simulation, changes: dict[str, np.ndarray], set_const: bool = True
) -> mujoco.MjModel:
    """Return a copy of the simulation's compiled model with fields changed, made with MuJoCo only.

    Args:
        sim: the simulation, of which only `mj_model` is read.
        changes: values of whole fields; `opt.<name>` is an option.
        set_const: recompute what derives from these fields.
    """
    model = copy.copy(sim.mj_model)
    for field, value in changes.items():
        if field.startswith("opt."):
            option = getattr(model.opt, field[4:])
            if isinstance(option, np.ndarray):
                option[:] = value
            else:
                setattr(model.opt, field[4:], type(option)(value))
        else:
            target = getattr(model, field)
            target[:] = np.asarray(value).reshape(target.shape)
    if set_const:
        mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


def state_rows(sim: Simulation) -> np.ndarray:
    """Return the float64 state rows that the native engine steps, shape (num_envs, nstate)."""
    return sim._engine.batch.state  # type: ignore[attr-defined]


def step_plain(model: mujoco.MjModel, state: np.ndarray, count: int) -> np.ndarray:
    """Return the state after `count` calls of mj_step from `state`, each of shape (nstate,)."""
    data = mujoco.MjData(model)
    mujoco.mj_setState(model, data, state, INTEGRATION)
    for _ in range(count):
        mujoco.mj_step(model, data)
    result = np.empty_like(state)
    mujoco.mj_getState(model, data, result, INTEGRATION)
    return result


def assert_same_model(actual: mujoco.MjModel, expected: mujoco.MjModel) -> None:
    """Compare every field of two models of the same sizes, bit for bit."""
    for field in sorted(MODEL_FIELDS):
        owner_a, owner_b, name = actual, expected, field
        if field.startswith("opt."):
            owner_a, owner_b, name = actual.opt, expected.opt, field[4:]
        np.testing.assert_array_equal(getattr(owner_a, name), getattr(owner_b, name), err_msg=field)


def view_field(sim: Simulation, field: str) -> torch.Tensor:
    """Return the rows of a model field; options are named 'opt.<name>'."""
    if field.startswith("opt."):
        return getattr(sim.model.opt, field[4:])
    return getattr(sim.model, field)


def _changed(field: str, row: torch.Tensor) -> torch.Tensor:
    """Return other values for a field that still make sense."""
    if field in LAYOUT_FIELDS:
        return row
    if row.dtype == torch.bool:
        return ~row
    if not row.is_floating_point():
        return {"geom_dataid": torch.where(row == 0, 1, row), "light_type": 1 - row}.get(
            field, torch.full_like(row, -1)
        )
    other = row * 1.05 if row.any() or field.endswith("delay") else row + 0.01
    if field.endswith("solimp") or "solimp_" in field:
        other = row * 0.9
    if field in _UNIT:
        other = row + 0.05
        other /= other.norm(dim=-1, keepdim=True)
    return other


def write_changed(sim: Simulation, field: str, world: int) -> np.ndarray:
    """Change a field of one world; return the whole new row, as MuJoCo has it."""
    target = view_field(sim, field)
    target[world] = _changed(field, target[world].clone())
    written = view_field(sim, field)[world].numpy()
    compiled = sim._engine.defaults[field]
    written = written.reshape(compiled.shape)
    exact = compiled.astype(written.dtype) == written
    return np.where(exact, compiled, written.astype(compiled.dtype))
