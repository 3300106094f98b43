"""Tokens of joints against MuJoCo C."""

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.asset_zoo.generated_legged import draw_robot, drawn_robot_cfg
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg, mdp
from manyworlds.envs.mdp import JOINT_TOKEN_COLUMNS, JOINT_TOKEN_SIZE
from manyworlds.managers import ObservationGroupCfg, ObservationTermCfg, SceneEntityCfg
from manyworlds.scene import SceneCfg
from tests.envs.mdp.robot import make_env, shake

TOKENS = {"joints": ObservationGroupCfg({"tokens": ObservationTermCfg(func=mdp.joint_tokens)})}


def column(tokens: torch.Tensor, name: str) -> np.ndarray:
    """Return some columns of tokens of one world."""
    return tokens[..., JOINT_TOKEN_COLUMNS[name]].numpy()


def default_pose(env: ManagerBasedRlEnv) -> mujoco.MjData:
    """Return MuJoCo C's kinematics of a robot whose joints are at their defaults."""
    data = mujoco.MjData(env.sim.mj_model)
    mujoco.mj_resetDataKeyframe(env.sim.mj_model, data, 0)
    mujoco.mj_kinematics(env.sim.mj_model, data)
    return data


@pytest.mark.parametrize("floating", [True, False])
def test_tokens_are_those_of_mujoco(engine, floating):
    """Describe hinges and a slide in a turned chain as MuJoCo C's kinematics do."""
    env = make_env(floating=floating, observations=TOKENS)
    shake(env)
    tokens = env.get_observations()["joints"]
    assert tokens.shape == (4, 4, JOINT_TOKEN_SIZE)
    model = env.sim.mj_model
    data = default_pose(env)
    entity = env.scene.entity("robot")
    root = model.body("robot/base").id
    frame = data.xmat[root].reshape(3, 3)
    for i, name in enumerate(entity.joint_names):
        joint = model.joint(f"robot/{name}")
        token = tokens[2, i]
        default = data.qpos[joint.qposadr[0]]
        is_slide = joint.type[0] == mujoco.mjtJoint.mjJNT_SLIDE
        assert [*column(token, "hinge"), *column(token, "slide")] == [not is_slide, is_slide]
        axis = frame.T @ data.xaxis[joint.id]
        anchor = frame.T @ (data.xanchor[joint.id] - data.xpos[root])
        np.testing.assert_allclose(column(token, "axis"), axis, atol=1e-6)
        np.testing.assert_allclose(column(token, "anchor"), anchor, atol=1e-6)
        limits = np.zeros(2)
        if joint.range.any():
            limits = joint.range - default
        np.testing.assert_allclose(column(token, "limits"), limits, atol=1e-6)
        assert column(token, "default") == pytest.approx(default, abs=1e-6)
    state = entity.data
    assert torch.equal(tokens[..., 0], torch.ones(4, 4))
    assert torch.equal(tokens[..., 12], state.joint_pos - state.default_joint_pos)
    assert torch.equal(tokens[..., 13], state.joint_vel - state.default_joint_vel)
    assert torch.allclose(tokens[:, :2, 14], 0.5 * env.action_manager.action, atol=1e-6)


def test_each_world_describes_its_own_model(engine):
    """Follow writes to one world's model and defaults, of selected joints in their order."""
    env = make_env(observations=TOKENS)
    some = SceneEntityCfg("robot", joint_names=("finger", "elbow"), preserve_order=True)
    some.resolve(env.scene)
    term = mdp.joint_tokens(ObservationTermCfg(func=mdp.joint_tokens), env)
    before = term(env, asset_cfg=some)
    lower = env.sim.mj_model.body("robot/lower").id
    env.sim.model.body_pos[1, lower, 0] += 0.1
    after = term(env, asset_cfg=some)
    assert torch.equal(after[[0, 2, 3]], before[[0, 2, 3]])
    moved = after[1, :, 6:9] - before[1, :, 6:9]
    assert torch.allclose(moved.norm(dim=1), torch.full((2,), 0.1), atol=1e-6)
    assert torch.equal(term(env)[:, 1], after[:, 1])


def test_encoders_bias(engine):
    """Add the encoders' bias to positions, if asked."""
    env = make_env(observations=TOKENS)
    term = mdp.joint_tokens(ObservationTermCfg(func=mdp.joint_tokens), env)
    env.scene.entity("robot").data.encoder_bias[:, 1] = 0.25
    difference = term(env, biased=True) - term(env)
    assert torch.allclose(difference[:, 1, 12], torch.full((4,), 0.25), atol=1e-6)
    difference[:, 1, 12] = 0.0
    assert not difference.any()


def test_generated_robots_have_different_tokens():
    """Tell legs apart by where their joints are."""
    cfg = ManagerBasedRlEnvCfg(
        decimation=2,
        scene=SceneCfg(num_envs=1, entities={"robot": drawn_robot_cfg(3)}),
        observations=TOKENS,
        actions={"joints": mdp.JointPositionActionCfg(entity_name="robot", actuator_names=(".*",))},
    )
    tokens = ManagerBasedRlEnv(cfg).get_observations()["joints"][0]
    assert len(tokens) == draw_robot(3).num_joints
    assert len({tuple(row.tolist()) for row in tokens}) == len(tokens)
