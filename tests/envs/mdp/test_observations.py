"""Observation terms against MuJoCo C and by hand."""

from types import SimpleNamespace

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.envs import mdp
from manyworlds.managers import SceneEntityCfg
from tests.envs.mdp.robot import make_env, mj_data, shake


@pytest.fixture
def env(engine):
    """Four worlds in different motion."""
    env = make_env()
    shake(env)
    return env


def test_base_velocity_and_gravity(env):
    """See the root's velocity and gravity in its own frame as MuJoCo C does."""
    model = env.sim.mj_model
    body = model.body("robot/base").id
    for world in range(env.num_envs):
        data = mj_data(env, world)
        velocity = np.zeros(6)
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, body, velocity, 1)
        down = -data.xmat[body].reshape(3, 3)[2]
        expected = {
            mdp.base_ang_vel: velocity[:3],
            mdp.base_lin_vel: velocity[3:],
            mdp.projected_gravity: down,
        }
        for term, value in expected.items():
            np.testing.assert_allclose(term(env)[world].numpy(), value, atol=2e-5)


def test_joints_relative_to_defaults(env):
    """Subtract default positions and velocities, of the joints named; add bias if asked."""
    some = SceneEntityCfg("robot", joint_names=("finger", "shoulder"), preserve_order=True)
    some.resolve(env.scene)
    data = env.scene["robot"].data
    data.encoder_bias[:, 2] = 0.25
    biased = mdp.joint_pos_rel(env, biased=True, asset_cfg=some)
    plain = mdp.joint_pos_rel(env, asset_cfg=some)
    data.encoder_bias.zero_()
    adr = [env.sim.mj_model.joint(f"robot/{name}").qposadr[0] for name in ("finger", "shoulder")]
    expected = env.sim.data.qpos[:, adr] - torch.tensor([0.0, 0.3])
    assert torch.equal(plain, expected)
    assert torch.allclose(biased - plain, torch.tensor([0.25, 0.0]).repeat(4, 1), atol=1e-6)
    velocity = mdp.joint_vel_rel(env, some)
    assert torch.equal(velocity[:, 0], data.joint_vel[:, 2] - 0.05)
    assert torch.equal(velocity[:, 1], data.joint_vel[:, 0])


def test_last_action(env):
    """Return the raw action of all terms or of one."""
    assert torch.equal(mdp.last_action(env), env.action_manager.action)
    raw = env.action_manager.get_term("position").raw_action
    assert torch.equal(mdp.last_action(env, "position"), raw) and raw.abs().sum() > 0


def test_commands(env):
    """Ask the command manager."""
    command = torch.rand(4, 3)
    manager = SimpleNamespace(get_command={"twist": command}.__getitem__)
    assert mdp.generated_commands(SimpleNamespace(command_manager=manager), "twist") is command


def test_sensors(env):
    """Read a sensor of the model, and gravity from one that measures up."""
    for world in range(env.num_envs):
        data = mj_data(env, world)
        gyro = mdp.builtin_sensor(env, "robot/gyro")[world].numpy()
        np.testing.assert_allclose(gyro, data.sensor("robot/gyro").data, atol=2e-5)
        down = -data.site("robot/imu").xmat.reshape(3, 3)[2]
        gravity = mdp.projected_gravity_from_sensor(env, "robot/up")[world].numpy()
        np.testing.assert_allclose(gravity, down, atol=2e-5)


def test_height_scan_compares_each_frame_with_its_own_hits():
    """Subtract hits from the height of the frame, and say what a miss is."""
    frames = torch.tensor([[[0.0, 0.0, 2.0], [0.0, 0.0, 5.0]]])
    hits = torch.tensor([[0.5, 2.0, 4.0, 1.0]])
    data = SimpleNamespace(
        frame_pos_w=frames,
        hit_pos_w=torch.nn.functional.pad(hits[..., None], (2, 0)),
        distances=torch.tensor([[1.5, -1.0, 1.0, 4.0]]),
    )
    sensor = SimpleNamespace(data=data, cfg=SimpleNamespace(max_distance=7.0))
    env = SimpleNamespace(scene=SimpleNamespace(sensor=lambda name, kind: sensor))
    assert mdp.height_scan(env, "scan").tolist() == [[1.5, 7.0, 1.0, 4.0]]
    assert mdp.height_scan(env, "scan", 0.5, -3.0).tolist() == [[1.0, -3.0, 0.5, 3.5]]
