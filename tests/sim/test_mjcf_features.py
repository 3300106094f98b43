"""Everything that MJCF can hold, on the native engine, against plain MuJoCo bit for bit."""

from __future__ import annotations

import ctypes
import enum

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.sim.diagnostics.status import quiet_mujoco
from tests.sim.mjcf_features import FEATURES
from tests.sim.plain_loop import assert_steps_like_plain_mujoco, native, random_controls, scatter

NUM_ENVS = 3
STEPS = 150


def _model(name: str) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(FEATURES[name])


@pytest.mark.parametrize("name", FEATURES)
def test_feature_steps_as_in_plain_mujoco(name: str):
    """Step worlds with their own states, controls, mocap poses and active constraints."""
    sim = native(_model(name), NUM_ENVS)
    generator = torch.Generator().manual_seed(0)
    scatter(sim, generator, 1e-3)
    controls = random_controls(sim, STEPS, generator)
    assert_steps_like_plain_mujoco(sim, controls[: STEPS // 3])
    sim.data.eq_active[1] = ~sim.data.eq_active[1]
    sim.data.mocap_pos[1:] += torch.tensor([0.1, 0.0, 0.2])
    sim.data.xfrc_applied[2, -1, 2] = 0.3
    datas = assert_steps_like_plain_mujoco(sim, controls[STEPS // 3 :])
    assert not np.array_equal(datas[0].qpos, datas[1].qpos), "worlds must differ"
    assert sim.status_counts() == {}


def test_equality_is_active_per_world():
    """Hold a body in the worlds whose constraint is on, and drop it in the others."""
    sim = native(_model("connect"), NUM_ENVS)
    sim.data.eq_active[1] = False
    sim.step(STEPS)
    heights = sim.data.qpos[:, 2]
    assert heights[0] > 0.65 and heights[2] == heights[0] and heights[1] < heights[0] - 0.1


def _seen() -> dict[str, set[int]]:
    """Collect the types in all models, and those of constraints and contacts as they step."""
    seen: dict[str, set[int]] = {}

    def see(kind: str, values: np.ndarray) -> None:
        seen.setdefault(kind, set()).update(np.asarray(values).ravel().tolist())

    for name in FEATURES:
        model = _model(name)
        data = mujoco.MjData(model)
        for field in ("jnt_type", "geom_type", "geom_condim", "eq_type", "wrap_type"):
            see(field, getattr(model, field))
        for field in ("dyntype", "gaintype", "biastype", "trntype"):
            see(f"actuator_{field}", getattr(model, f"actuator_{field}"))
        see("sensor_type", model.sensor_type)
        for field in ("integrator", "cone", "jacobian", "solver"):
            see(field, getattr(model.opt, field))
        with quiet_mujoco():
            for _ in range(STEPS):
                mujoco.mj_step(model, data)
                see("efc_type", data.efc_type)
                if data.ncon:
                    see("contact_dim", data.contact.dim)
                    see("contact_type", model.geom_type[data.contact.geom[data.contact.geom >= 0]])
    return seen


@pytest.fixture(scope="module")
def seen() -> dict[str, set[int]]:
    """Collect what the models of the table hold."""
    return _seen()


# What no MJCF can declare any more, or nothing computes without a callback written in C.
EXCUSED = {
    "mjEQ_DISTANCE",
    "mjEQ_FLEXVERT",
    "mjDYN_USER",
    "mjGAIN_USER",
    "mjBIAS_USER",
    "mjTRN_UNDEFINED",
    "mjWRAP_NONE",
}


@pytest.mark.parametrize(
    ("kind", "types"),
    [
        ("jnt_type", mujoco.mjtJoint),
        ("eq_type", mujoco.mjtEq),
        ("wrap_type", mujoco.mjtWrap),
        ("actuator_dyntype", mujoco.mjtDyn),
        ("actuator_gaintype", mujoco.mjtGain),
        ("actuator_biastype", mujoco.mjtBias),
        ("actuator_trntype", mujoco.mjtTrn),
        ("sensor_type", mujoco.mjtSensor),
        ("efc_type", mujoco.mjtConstraint),
        ("integrator", mujoco.mjtIntegrator),
        ("cone", mujoco.mjtCone),
        ("jacobian", mujoco.mjtJacobian),
        ("solver", mujoco.mjtSolver),
    ],
)
def test_no_type_is_left_out(seen: dict[str, set[int]], kind: str, types: type[enum.IntEnum]):
    """Have every type of MuJoCo in some model of the table, or an excuse."""
    names = {k: int(v) for k, v in types.__members__.items() if k not in EXCUSED}
    missing = [name for name, value in names.items() if value not in seen[kind]]
    assert not missing, f"add a model with {missing} to tests/sim/mjcf_features.py"


def test_every_shape_touches_something(seen: dict[str, set[int]]):
    """Have contacts of every kind of geom and of every dimension."""
    shapes = range(int(mujoco.mjtGeom.mjNGEOMTYPES))
    assert seen["contact_type"] >= set(shapes)
    assert seen["contact_dim"] == {1, 3, 4, 6}


@pytest.mark.parametrize(
    ("option", "flag"),
    [("", "sleep"), ('integrator="discrete"', "ipc")],
)
def test_flags_that_keep_hidden_state_are_refused(option: str, flag: str):
    """Refuse at construction what MuJoCo keeps outside of the state of a world."""
    xml = FEATURES["shapes"].replace(
        "<option />", f'<option {option}><flag {flag}="enable"/></option>'
    )
    with pytest.raises(ValueError, match=f"cannot run a model with <flag {flag}='enable'/>"):
        native(mujoco.MjModel.from_xml_string(xml), 1)


def test_python_callback_is_refused():
    """Refuse a callback that cannot run on threads, at construction and at a later step."""
    model = _model("motor")
    sim = native(model, 1)
    mujoco.set_mjcb_control(lambda model, data: None)
    try:
        with pytest.raises(ValueError, match=r"mjcb_control is a Python .*set_mjcb_control\(None"):
            native(model, 1)
        with pytest.raises(ValueError, match="mjcb_control is a Python function"):
            sim.step()
    finally:
        mujoco.set_mjcb_control(None)
    sim.step()


def test_c_callback_acts_in_every_world():
    """Run a callback that is a C function as plain MuJoCo does."""
    pointer = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
    calls = []
    mujoco.set_mjcb_control(pointer(lambda model, data: calls.append(data)))
    try:
        native(_model("motor"), NUM_ENVS).step()
    finally:
        mujoco.set_mjcb_control(None)
    assert len(calls) >= NUM_ENVS
