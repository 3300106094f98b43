"""The task of many generated robots: one policy for all of them."""

from __future__ import annotations

import mujoco
import pytest
import torch

from manyworlds.asset_zoo.generated_legged import draw_robot
from manyworlds.envs import BucketedRlEnv, ManagerBasedRlEnv, mdp
from manyworlds.managers import ObservationGroupCfg, ObservationTermCfg
from manyworlds.rl.config import MASKED_MLP, masked_gaussian_distribution
from manyworlds.rl.exporter_utils import export_policy, export_scene
from manyworlds.rl.onnx_policy import OnnxPolicy
from manyworlds.rl.runner import OnPolicyRunner
from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper
from manyworlds.tasks import load_env_cfg
from manyworlds.tasks.velocity.config.legged import (
    HELD_OUT,
    TRAINED,
    legged_ppo_runner_cfg,
    robot_env_cfg,
    robots_env_cfg,
)
from tests.rl.test_onnx_policy import largest_difference

ROBOTS = (0, 3)  # two legs with 6 joints in all, and five with 15


@pytest.fixture
def rl_cfg():
    """Configure small networks and short rollouts."""
    cfg = legged_ppo_runner_cfg()
    cfg.actor.hidden_dims = (8, 8)
    cfg.critic.hidden_dims = (8, 8)
    cfg.num_steps_per_env = 4
    return cfg


def make_runner(rl_cfg, env_cfg) -> OnPolicyRunner:
    """Build the environment of two robots, and its learner."""
    env_cfg.scene.num_envs = 6
    env_cfg.seed = 3
    return OnPolicyRunner(RslRlVecEnvWrapper(BucketedRlEnv(env_cfg)), rl_cfg)


def test_robots_learn_and_are_held_out():
    """Register sixteen robots that learn, and four others."""
    for task, numbers in (
        ("Velocity-Flat-Legged", TRAINED),
        ("Velocity-Flat-Legged-Held-Out", HELD_OUT),
    ):
        cfg = load_env_cfg(task)
        assert list(cfg.scene.buckets) == [f"robot{number}" for number in numbers]
        assert load_env_cfg(task, play=True).curriculum == {}
    assert len(TRAINED) == 16 and len(HELD_OUT) == 4 and not {*TRAINED} & {*HELD_OUT}
    assert {len(draw_robot(number).legs) for number in TRAINED} == {2, 3, 4, 5, 6}


def test_one_network_learns_from_robots_of_different_kinds(rl_cfg, tmp_path):
    """Change the networks by robots with other numbers of joints, and drive a third one.

    The third robot is alone, without padding, in plain MuJoCo: as in its environment.
    """
    runner = make_runner(rl_cfg, robots_env_cfg(ROBOTS))
    joints = [draw_robot(number).num_joints for number in ROBOTS]
    obs = runner.env.get_observations()
    present = obs["actor_joints"][:, :, 0].sum(dim=1)
    assert present.tolist() == [joints[0]] * 3 + [joints[1]] * 3
    assert obs["actor_joints"].shape[1] == max(joints)
    before = [parameter.clone() for parameter in runner.alg.actor.parameters()]
    runner.learn(2)
    changed = [
        not torch.equal(*pair) for pair in zip(before, runner.alg.actor.parameters(), strict=True)
    ]
    assert all(changed)
    actions = runner.alg.storage.actions
    padded = torch.arange(max(joints)) >= present[:, None]
    assert not actions[:, padded].any() and actions[:, ~padded].all()
    runner.save(tmp_path / "model.pt")

    env_cfg = robot_env_cfg(6, play=True)
    env_cfg.scene.num_envs = 1
    env_cfg.seed = 3
    env_cfg.events = {}
    alone = OnPolicyRunner(RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg)), rl_cfg)
    alone.load(tmp_path / "model.pt", load_cfg={"actor": True})
    path = export_policy(alone, tmp_path / "policy.onnx")
    scene = export_scene(alone.env.unwrapped, tmp_path / "scene")
    model = mujoco.MjModel.from_xml_path(str(scene / "scene.xml"))
    command = alone.env.unwrapped.command_manager.get_command("twist")[0].numpy()
    policy = OnnxPolicy(path, model, commands={"twist": command})
    data = mujoco.MjData(model)
    policy.reset(data)
    assert largest_difference(alone, policy, data, steps=25) < 1e-4


def test_an_mlp_learns_with_a_mask(rl_cfg):
    """Train an MLP on flat, padded observations: padded actions stay zero and do not count."""
    env_cfg = robots_env_cfg(ROBOTS)
    del env_cfg.observations["actor_joints"], env_cfg.observations["critic_joints"]
    for group in ("actor", "critic"):
        env_cfg.observations[group].terms["joint_pos"] = ObservationTermCfg(func=mdp.joint_pos_rel)
    mask = ObservationTermCfg(func=mdp.action_mask)
    env_cfg.observations["action_mask"] = ObservationGroupCfg(terms={"mask": mask})
    rl_cfg.obs_groups = {"actor": ("actor", "action_mask"), "critic": ("critic",)}
    rl_cfg.actor.class_name = MASKED_MLP
    rl_cfg.actor.distribution_cfg = masked_gaussian_distribution()
    rl_cfg.critic.class_name = "MLPModel"
    runner = make_runner(rl_cfg, env_cfg)
    real = runner.env.get_observations()["action_mask"][:, :15]
    assert real.sum(dim=1).unique().tolist() == [6.0, 15.0]
    runner.learn(1)
    assert ((runner.alg.storage.actions != 0.0) == (real > 0.5)).all()
