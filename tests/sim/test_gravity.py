"""The direction of gravity, as terms, tasks and exported policies see it."""

from math import acos, radians
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from manyworlds.envs import mdp
from manyworlds.managers import RewardTermCfg, SceneEntityCfg
from manyworlds.rl.onnx_policy import OBSERVATION_FNS
from manyworlds.sensor import BuiltinSensorCfg, ObjRef
from manyworlds.sim import MujocoCfg, SimulationCfg
from manyworlds.sim.gravity import plain_gravity_direction
from manyworlds.tasks.tracking.mdp.terminations import bad_anchor_ori
from manyworlds.tasks.velocity.mdp.rewards import upright
from tests.envs.mdp.robot import make_env, mj_data, shake

TILTED = (3.0, 0.0, -9.0)
DIRECTION = np.array([0.31622777, 0.0, -0.9486833])


def environment(gravity: tuple[float, float, float], flags: tuple[str, ...] = ()) -> Any:
    """Build a robot under a gravity [m/s^2]."""
    options = MujocoCfg(timestep=0.005, gravity=gravity, disableflags=flags)
    return make_env(sim=SimulationCfg(mujoco=options))


def at_rest(env: Any) -> Any:
    """Turn the roots upright."""
    env.sim.data.qpos[:, 3:7] = torch.tensor([1.0, 0.0, 0.0, 0.0])
    env.sim.forward()
    return env


@pytest.mark.slow_on_warp
def test_observations_are_those_of_the_models_gravity(engine):
    """Tilt the gravity of the model: an upright root and a turned IMU see its direction."""
    env = at_rest(environment(TILTED))
    np.testing.assert_allclose(
        mdp.projected_gravity(env).numpy(), np.tile(DIRECTION, (4, 1)), atol=1e-6
    )
    shake(env)
    for world in range(4):
        data = mj_data(env, world)
        for value, frame in (
            (mdp.projected_gravity(env), data.body("robot/base")),
            (mdp.projected_gravity_from_sensor(env, "robot/up"), data.site("robot/imu")),
        ):
            expected = frame.xmat.reshape(3, 3).T @ DIRECTION
            np.testing.assert_allclose(value[world].numpy(), expected, atol=2e-5)


def test_gravity_that_users_write_is_of_their_world(engine):
    """Write rows of the option in a running environment: each world has its own direction."""
    env = at_rest(environment((0.0, 0.0, -9.81)))
    assert mdp.projected_gravity(env)[:, 2].tolist() == [-1.0] * 4
    gravity = env.sim.model.opt.gravity
    gravity[1] = torch.tensor(TILTED)
    gravity[2] = 0.0
    gravity[3, 2] = 9.81
    expected = np.stack([[0.0, 0.0, -1.0], DIRECTION, np.zeros(3), [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(mdp.projected_gravity(env).numpy(), expected, atol=1e-6)
    env.sim.model.opt.gravity[0] = torch.tensor(TILTED)
    np.testing.assert_allclose(mdp.projected_gravity(env)[0].numpy(), DIRECTION, atol=1e-6)
    assert env.scene["robot"].data.gravity_vec_w.isfinite().all()


def test_terms_measure_tilt_from_gravity(engine):
    """Compare an upright root with tilted, no and opposite gravity: rewards and terminations."""
    env = at_rest(environment((0.0, 0.0, -9.81)))
    env.sim.model.opt.gravity[1:] = torch.tensor([TILTED, (0.0, 0.0, 0.0), (0.0, 0.0, 9.81)])
    tilt = acos(0.9486833)
    limits = (tilt - 0.01, tilt + 0.01, radians(120.0))
    bad = [mdp.bad_orientation(env, limit).tolist() for limit in limits]
    assert bad == [
        [False, True, False, True],
        [False, False, False, True],
        [False, False, False, True],
    ]
    flat = mdp.flat_orientation_l2(env).numpy()
    np.testing.assert_allclose(flat, [0.0, 0.1, 0.0, 0.0], atol=1e-6)
    term = upright(RewardTermCfg(func=upright, weight=1.0, params={"std": 0.5}), env)
    kernel = [1.0, np.exp(-0.1 / 0.25), 1.0, 1.0]
    np.testing.assert_allclose(term(env, std=0.5).numpy(), kernel, atol=1e-6)


@pytest.mark.parametrize("flags", [(), ("gravity",)])
def test_without_gravity_its_direction_is_zero(engine, flags):
    """Take gravity away, by its value or its flag: observations are zero, and nothing is tilted."""
    env = environment((0.0, 0.0, 0.0) if not flags else TILTED, flags)
    shake(env)
    for value in (
        mdp.projected_gravity(env),
        mdp.projected_gravity_from_sensor(env, "robot/up"),
        mdp.flat_orientation_l2(env),
    ):
        np.testing.assert_allclose(value.numpy(), 0.0, atol=1e-6)
    assert not mdp.bad_orientation(env, 0.01).any()
    assert plain_gravity_direction(env.sim.mj_model.opt).tolist() == [0.0, 0.0, 0.0]


def test_tracked_inclinations_are_from_gravity():
    """Turn an anchor about the x axis: under gravity along x, its inclination is that of before."""
    half = radians(45.0)
    quat = torch.tensor([[np.cos(half), np.sin(half), 0.0, 0.0]], dtype=torch.float32)
    command = SimpleNamespace(
        anchor_quat_w=torch.tensor([[1.0, 0.0, 0.0, 0.0]]), robot_anchor_quat_w=quat
    )
    ended = {}
    for gravity in ((0.0, 0.0, -9.81), (9.81, 0.0, 0.0)):
        env = environment(gravity)
        data = SimpleNamespace(gravity_vec_w=env.scene["robot"].data.gravity_vec_w[:1])
        entities = {"robot": SimpleNamespace(data=data)}
        stub: Any = SimpleNamespace(
            scene=SimpleNamespace(entity=entities.__getitem__),
            command_manager=SimpleNamespace(get_term=lambda name: command),
        )
        ended[gravity] = bad_anchor_ori(stub, SceneEntityCfg("robot"), "motion", 0.5).tolist()
    assert ended == {(0.0, 0.0, -9.81): [True], (9.81, 0.0, 0.0): [False]}


@pytest.mark.parametrize("gravity", [TILTED, (0.0, 0.0, 0.0), (0.0, 4.0, 0.0)])
def test_exported_policies_see_the_gravity_of_training(gravity):
    """Compute both terms in plain MuJoCo as in the environment, for turned bodies."""
    env = environment(gravity)
    shake(env)
    model, data = env.sim.mj_model, mj_data(env, 1)
    policy: Any = SimpleNamespace(
        model=model, joints_of=lambda params: ([], {"root_body": "robot/base"})
    )
    for name, value in (
        ("projected_gravity", mdp.projected_gravity(env)),
        ("projected_gravity_from_sensor", mdp.projected_gravity_from_sensor(env, "robot/up")),
    ):
        found = np.asarray(OBSERVATION_FNS[name](policy, data, {"sensor": "robot/up"}))
        np.testing.assert_allclose(found, value[1].numpy(), atol=2e-5, err_msg=name)
        assert np.linalg.norm(found) == pytest.approx(float(any(gravity)))


@pytest.mark.parametrize(
    "sensor",
    [
        BuiltinSensorCfg(
            name="z", sensor_type="framezaxis", obj=ObjRef("site", "imu", "robot")
        ),  # the axis of the site in the world, not that of the world in the site
        BuiltinSensorCfg(name="z", sensor_type="accelerometer", obj=ObjRef("site", "imu", "robot")),
        BuiltinSensorCfg(name="z", sensor_type="framezaxis", obj=ObjRef("body", "world")),
    ],
)
def test_sensors_that_do_not_measure_up_are_refused(sensor):
    """Read gravity from sensors of other quantities: an error names what is needed."""
    from manyworlds.scene import SceneCfg
    from tests.envs.mdp.robot import robot_cfg

    env = make_env(scene=SceneCfg(entities={"robot": robot_cfg()}, sensors=(sensor,)))
    with pytest.raises(ValueError, match="needs a framezaxis sensor of the world body"):
        mdp.projected_gravity_from_sensor(env, "z")
