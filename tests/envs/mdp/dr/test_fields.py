"""Each function: the rows it writes, and that physics follows as in plain MuJoCo C."""

import copy
import inspect
import math
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.envs.mdp import dr
from manyworlds.envs.mdp.dr import fields, special
from manyworlds.managers import EventTermCfg, SceneEntityCfg
from manyworlds.sim import RecomputeLevel
from tests.envs.mdp.dr.robot import disturb, make_env, plain_steps
from tools.write_randomizations import FILE, written_module

SOME = torch.tensor([1, 3])
STEPS = 40
TURN = {"roll_range": (0.1, 0.4), "yaw_range": (-0.3, -0.1)}
ADD = {"operation": "add"}
SCALE = {"ranges": (1.5, 2.0), "operation": "scale"}

# Function -> parameters that matter to physics.
PHYSICS = {
    "geom_friction": {"ranges": (1.5, 2.0)},
    "geom_pos": {"ranges": (0.01, 0.05), **ADD},
    "geom_quat": TURN,
    "geom_size": {"ranges": (1.1, 1.3)},
    "body_mass": SCALE,
    "body_com_offset": {"ranges": (0.01, 0.05)},
    "body_pos": {"ranges": (0.01, 0.03)},
    "body_quat": TURN,
    "body_gravcomp": {"ranges": (0.2, 0.9)},
    "joint_damping": {"ranges": (0.5, 1.0)},
    "joint_armature": {"ranges": (0.01, 0.05)},
    "joint_friction": {"ranges": (0.1, 0.5)},
    "joint_stiffness": {"ranges": (5.0, 9.0)},
    "joint_limits": {"ranges": {0: (-0.1, -0.05), 1: (0.05, 0.1)}},
    "joint_default_pos": {"ranges": (0.05, 0.2)},
    "jnt_margin": {"ranges": (0.022, 0.03)},
    "site_pos": {"ranges": (0.01, 0.05), **ADD},
    "pair_friction": {"ranges": (0.1, 0.3)},
    "tendon_damping": SCALE,
    "tendon_stiffness": SCALE,
    "tendon_friction": SCALE,
    "tendon_armature": SCALE,
    "tendon_range": {"ranges": {1: (0.2, 0.3)}},
    "tendon_margin": {"ranges": (0.3, 0.4)},
    "tendon_lengthspring": {"ranges": (0.1, 0.15), **ADD},
    "actuator_dynprm": {"ranges": {0: (0.01, 0.04)}},
    "actuator_gear": SCALE,
    "actuator_ctrlrange": {"ranges": (0.2, 0.5), "operation": "scale"},
    "actuator_actrange": {"ranges": (0.01, 0.05), "operation": "scale"},
}
# Functions whose fields only matter to pictures and sensors.
LOOKS = {
    "geom_rgba": {"ranges": (0.0, 1.0)},
    "geom_matid": {},
    "site_quat": TURN,
    "cam_fovy": {"ranges": (30.0, 60.0)},
    "cam_pos": {"ranges": (0.01, 0.02)},
    "cam_quat": TURN,
    "cam_intrinsic": SCALE,
    "light_pos": {"ranges": (0.1, 0.2)},
    "light_dir": {"ranges": (0.1, 0.2)},
    "light_diffuse": {"ranges": (0.1, 0.9)},
    "light_specular": {"ranges": (0.1, 0.9)},
    "light_ambient": {"ranges": (0.1, 0.9)},
    "light_attenuation": {"ranges": (0.1, 0.9)},
    "light_cutoff": {"ranges": (20.0, 80.0)},
    "light_exponent": {"ranges": (1.0, 9.0)},
    "mat_rgba": {"ranges": (0.0, 1.0)},
    "mat_emission": {"ranges": (0.5, 1.0)},
    "mat_specular": {"ranges": (0.1, 0.4)},
    "mat_shininess": {"ranges": (0.1, 0.3)},
    "mat_texrepeat": {"ranges": (2.0, 3.0)},
    "mat_texid": {},
}
ALIASES = {
    "body_ipos": "body_com_offset",
    "dof_damping": "joint_damping",
    "dof_armature": "joint_armature",
    "dof_frictionloss": "joint_friction",
    "jnt_stiffness": "joint_stiffness",
    "jnt_range": "joint_limits",
    "qpos0": "joint_default_pos",
    "tendon_frictionloss": "tendon_friction",
}


def event(name: str, mode: str = "step") -> EventTermCfg:
    """Make an event of a function."""
    return EventTermCfg(func=getattr(dr, name), mode=mode, params=dict((PHYSICS | LOOKS)[name]))


def functions() -> dict:
    """All functions that randomize one field each, by name."""
    here = (fields.__name__, special.__name__)
    return {n: f for n in dr.__all__ if (f := getattr(dr, n)).__module__ in here}


def test_each_function_has_a_row_here():
    """List every function, and each alias as the same function."""
    assert {n: functions()[n] for n in ALIASES} == {n: getattr(dr, o) for n, o in ALIASES.items()}
    assert functions().keys() - ALIASES.keys() == PHYSICS.keys() | LOOKS.keys()


def test_the_functions_are_those_of_the_table():
    """Hold the checked-in module to what its generator writes."""
    written = Path(__file__).parents[4] / FILE
    assert written.read_text() == written_module(), "run python tools/write_randomizations.py"


@pytest.mark.parametrize("name", PHYSICS | LOOKS)
def test_functions_are_documented(name):
    """Give each function its name, its arguments and what they mean."""
    func = getattr(dr, name)
    assert func.__name__ == func.__qualname__ == name
    assert func.model_fields[0] in func.__doc__ or name.endswith("id")
    arguments = inspect.signature(func).parameters
    assert list(arguments)[:2] == ["env", "env_ids"] and all(
        f"{argument}: " in func.__doc__ for argument in arguments
    )
    assert arguments["asset_cfg"].default == SceneEntityCfg("robot")


@pytest.mark.filterwarnings("ignore:dr.body_mass")
@pytest.mark.parametrize("name", PHYSICS | LOOKS)
def test_worlds_step_like_a_model_with_the_drawn_values(name):
    """Write to the worlds drawn and to no other; step them as plain MuJoCo C, bit for bit."""
    env = make_env(draw=event(name))
    sim, model = env.sim, env.sim.mj_model
    compiled = {field: getattr(sim.model, field).clone() for field in sim.expanded_fields}
    env.event_manager.apply("step", SOME, dt=env.step_dt)
    written = getattr(dr, name).model_fields
    for field, before in compiled.items():
        changed = (getattr(sim.model, field) != before).flatten(1).any(dim=1)
        assert not changed[[0, 2]].any()
        if field in written:
            assert changed.tolist() == [False, True, False, True]
    sim.forward()
    disturb(env)
    states = sim.get_state()["state"].numpy()
    sim.step(STEPS)
    end = sim.get_state()["state"].numpy()
    moved = {}
    for world in range(4):
        own = copy.copy(model)
        for field in written:
            rows = getattr(own, field).reshape(compiled[field].shape[1:])
            now = getattr(sim.model, field)[world]
            drawn = (now != compiled[field][world]).numpy()
            rows[drawn] = now.numpy()[drawn]
        if world in SOME:
            mujoco.mj_setConst(own, mujoco.MjData(own))
        expected = plain_steps(own, states[world], STEPS)
        moved[world] = np.concatenate(expected)
        start = 1  # after time
        got = end[world, start : start + model.nq + model.nv]
        np.testing.assert_array_equal(got, moved[world])
    differs = [bool((moved[w] != moved[0]).any()) for w in (1, 3)]
    assert all(differs) if name in PHYSICS else not any(differs)


@pytest.mark.filterwarnings("ignore:dr.body_")
@pytest.mark.parametrize("name", PHYSICS | LOOKS)
def test_direct_calls_recompute_what_follows(name):
    """Call each function directly: constants are then those of mj_setConst, in the worlds drawn."""
    env = make_env()
    sim, func = env.sim, getattr(dr, name)
    sim.expand_model_fields(func.model_fields)
    compiled = {field: getattr(sim.model, field).clone() for field in func.model_fields}
    func(env, SOME, **(PHYSICS | LOOKS)[name])
    for field, before in compiled.items():
        assert (getattr(sim.model, field) != before).flatten(1).any(1).tolist() == [0, 1, 0, 1]
    after = {field: getattr(sim.model, field).clone() for field in sim.expanded_fields}
    sim.recompute_constants(RecomputeLevel.set_const)
    for field, rows in after.items():
        assert torch.equal(getattr(sim.model, field), rows), field


@pytest.mark.slow_on_warp
@pytest.mark.parametrize("engine", ["native", "warp"])
def test_a_turned_site_has_turned_after_forward(engine):
    """Turn a site, whose frame is that of its body when compiled, by a direct call."""
    env = make_env(engine=engine)
    site = env.sim.mj_model.site("robot/hook").id
    before = env.sim.data.site_xmat[:, site].clone()
    turn = math.radians(30.0)
    dr.site_quat(env, SOME, yaw_range=(turn, turn))
    env.sim.forward()
    change = before.transpose(1, 2) @ env.sim.data.site_xmat[:, site]
    angle = torch.atan2(change[:, 1, 0], change[:, 0, 0])
    torch.testing.assert_close(angle, torch.tensor([0.0, turn, 0.0, turn]), atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ["body_pos", "body_quat"])
def test_a_floating_body_cannot_be_placed(name):
    """Refuse to move the root of a floating robot, and name it in a warning among others."""
    env = make_env()
    params = PHYSICS[name]
    message = rf"dr.{name} has no effect on 'base' of 'robot', .* mdp.reset_root_state_uniform"
    root = SceneEntityCfg("robot", body_names=("base",))
    with pytest.raises(ValueError, match=message):
        getattr(dr, name)(env, None, **params, asset_cfg=root)
    with pytest.warns(UserWarning, match=message):
        getattr(dr, name)(env, None, **params)
