"""Short programs as users of the reference write them: what they do with an environment."""

from __future__ import annotations

import copy
from dataclasses import asdict

import numpy as np
import pytest
import torch

from manyworlds.compat import mjlab
from manyworlds.tasks import registry

pytest.importorskip("rsl_rl", reason="the adapters need the extra 'train'")


@pytest.fixture(scope="module", autouse=True)
def _alias():
    mjlab.install()
    yield
    mjlab.uninstall()


@pytest.fixture(scope="module")
def cfg(_alias):
    """A small environment, as a user writes it."""
    from tests.compat.mjlab import walker

    return walker.env_cfg()


@pytest.fixture(scope="module")
def env(cfg):
    """The environment, which the programs step."""
    from mjlab.envs import ManagerBasedRlEnv

    env = ManagerBasedRlEnv(cfg=cfg, device="cpu")
    env.reset()
    yield env
    env.close()


def test_step_with_random_actions(env):
    """Step, and read what comes back."""
    actions = 2 * torch.rand((env.num_envs, *env.single_action_space.shape)) - 1
    for _ in range(3):
        obs, rew, terminated, truncated, extras = env.step(actions.to(env.device))
    assert obs["actor"].shape == (3, 10) and set(obs["critic"]) >= {"gravity", "gyro"}
    assert rew.dtype == torch.float32 and (terminated | truncated).dtype == torch.bool
    assert "log" in extras and env.unwrapped is env and env.step_dt == pytest.approx(0.02)


def test_terms_of_mdp_called_directly(env):
    """Call terms outside of managers."""
    from mjlab.envs import mdp
    from mjlab.managers import SceneEntityCfg

    asset_cfg = SceneEntityCfg("robot", joint_names=("left_.*",))
    asset_cfg.resolve(env.scene)
    assert mdp.joint_pos_rel(env).shape == (3, 2)
    assert mdp.joint_pos_rel(env, biased=True, asset_cfg=asset_cfg).shape == (3, 1)
    assert mdp.joint_vel_rel(env, asset_cfg).shape == (3, 1) and asset_cfg.joint_ids == [0]
    assert mdp.action_rate_l2(env).shape == mdp.flat_orientation_l2(env).shape == (3,)


def test_wrap_for_rsl_rl(env):
    """Step the adapter with clipped actions."""
    from mjlab.rl import RslRlVecEnvWrapper

    wrapped = RslRlVecEnvWrapper(env, clip_actions=1.0)
    obs = wrapped.get_observations()
    assert obs["actor"].shape == (3, 10) and wrapped.num_actions == 2
    obs, rewards, dones, extras = wrapped.step(torch.full((3, 2), 50.0))
    assert env.action_manager.action.abs().max() == 1.0 and "time_outs" in extras
    wrapped.episode_length_buf = torch.randint_like(
        wrapped.episode_length_buf, high=int(wrapped.max_episode_length)
    )
    assert rewards.shape == dones.shape == (3,) and len(obs.keys()) >= 1


def test_view_in_the_browser(env):
    """Open the page of a policy for some steps, and a subclass of it."""
    from mjlab.rl import RslRlVecEnvWrapper
    from mjlab.viewer import ViserPlayViewer
    from mjlab.viewer.base import VerbosityLevel

    class Page(ViserPlayViewer):
        ticks = 0

        def sync_env_to_viewer(self):
            self.ticks += 1
            super().sync_env_to_viewer()

    before = env.common_step_counter
    page = Page(
        RslRlVecEnvWrapper(env),
        policy=lambda obs: torch.zeros(3, 2),
        frame_rate=100.0,
        verbosity=VerbosityLevel.SILENT,
    )
    page.run(num_steps=3)
    assert page.ticks > 0 and env.common_step_counter >= before + 3


def test_register_a_task(cfg):
    """Register a task once; a second time is an error."""
    from mjlab.rl import RslRlOnPolicyRunnerCfg
    from mjlab.tasks.registry import load_env_cfg, register_mjlab_task

    parts = {"env_cfg": cfg, "play_env_cfg": cfg, "rl_cfg": RslRlOnPolicyRunnerCfg()}
    register_mjlab_task(task_id="Idioms-Task", **parts)
    with pytest.raises(ValueError, match="Idioms-Task"):
        register_mjlab_task(task_id="Idioms-Task", **parts)
    assert load_env_cfg("Idioms-Task") is not cfg
    registry.unregister_task("Idioms-Task")


def test_ids_of_an_entity(env):
    """Find elements by patterns, and read and write state by their ids."""
    robot = env.scene["robot"]
    ids, names = robot.find_joints(["right_hip", "left_hip"], preserve_order=True)
    assert (ids, names) == ([1, 0], ["right_hip", "left_hip"])
    assert robot.find_bodies(".*_leg")[1] == ["left_leg", "right_leg"]
    feet, _ = robot.find_sites((".*_foot",))
    env_ids = torch.tensor([0, 2])
    position = robot.data.default_joint_pos[env_ids] + 0.1
    robot.write_joint_state_to_sim(position, torch.zeros_like(position), env_ids=env_ids)
    root = robot.data.default_root_state[env_ids].clone()
    root[:, :3] += env.scene.env_origins[env_ids]
    robot.write_root_link_pose_to_sim(root[:, :7], env_ids=env_ids)
    robot.write_root_link_velocity_to_sim(root[:, 7:], env_ids=env_ids)
    env.sim.forward()
    torch.testing.assert_close(robot.data.joint_pos[env_ids], position)
    torch.testing.assert_close(robot.data.root_link_pos_w[env_ids], root[:, :3])
    assert robot.data.site_pos_w[:, feet].shape == (3, 2, 3)
    assert robot.data.body_link_vel_w.shape == (3, 3, 6) and robot.num_actuators == 2
    assert (env.sim.data.qpos[:, robot.indexing.joint_q_adr] == robot.data.joint_pos).all()


def test_contacts_of_a_sensor(env):
    """Read contacts and times in the air."""
    from mjlab.sensor import ContactSensor

    for _ in range(30):
        env.step(torch.zeros(3, 2))
    sensor: ContactSensor = env.scene["feet"]
    data = sensor.data
    assert isinstance(sensor, ContactSensor) and data.found.shape == (3, 2)
    assert data.force.shape == (3, 2, 3) and data.current_contact_time.shape == (3, 2)
    assert sensor.compute_first_contact(dt=env.step_dt).dtype == torch.bool
    assert env.scene.sensors["feet"] is sensor and len(sensor.primary_names) == 2


def test_managers_read_and_changed(env):
    """Read terms by name, and change their configs at run time."""
    env.reward_manager.get_term_cfg("alive").weight = 2.0
    assert env.reward_manager.active_terms == ["alive", "posture"]
    assert env.observation_manager.active_terms["actor"][0] == "gravity"
    assert env.observation_manager.group_obs_dim["actor"] == (10,)
    term = env.action_manager.get_term("joint_pos")
    assert term.action_dim == 2 and term.target_names == ["left_hip", "right_hip"]
    term_cfg = env.event_manager.get_term_cfg("push")
    term_cfg.params["velocity_range"] = {"x": (-0.1, 0.1)}
    assert env.termination_manager.get_term("fell").shape == (3,)
    env.step(torch.zeros(3, 2))
    assert dict(env.reward_manager.get_active_iterable_terms(0))["alive"][0] in (0.0, 2.0)


def test_reset_some_worlds(env):
    """Reset worlds by their ids, with a seed or without."""
    env.episode_length_buf[:] = 5
    env.reset(env_ids=torch.tensor([1]))
    assert env.episode_length_buf.tolist() == [5, 0, 5]
    obs, extras = env.reset(seed=3)
    again, _ = env.reset(seed=3)
    torch.testing.assert_close(obs["actor"], again["actor"], rtol=0, atol=0)
    assert "log" in extras


def test_model_of_the_simulation(env):
    """Read MuJoCo's model and data, and write a field for each world."""
    model = env.sim.mj_model
    geom = model.geom("robot/left_foot_collision").id
    env.sim.expand_model_fields(("geom_friction",))
    env.sim.model.geom_friction[:, geom, 0] = torch.tensor([0.3, 0.6, 0.9])
    env.sim.model.geom_friction[[0, 1], geom] = torch.tensor([0.5, 0.1, 0.1])
    assert env.sim.model.geom_friction[2, geom, 0].item() == pytest.approx(0.9)
    assert env.sim.get_default_field("geom_friction").shape[-1] == 3
    assert env.sim.data.qpos.shape == (3, model.nq) and env.sim.data.time.shape == (3,)
    assert torch.sum(env.sim.data.qvel**2, dim=-1).shape == (3,)
    with pytest.raises(AttributeError):
        env.sim.data.qpos = torch.zeros(3, model.nq)


def test_a_camera_by_hand(env):
    """Film an environment with the offscreen renderer."""
    from mjlab.viewer import OffscreenRenderer, ViewerConfig

    renderer = OffscreenRenderer(
        model=env.sim.mj_model, cfg=ViewerConfig(height=48, width=64), scene=env.scene
    )
    renderer.initialize()
    renderer.update(env.sim.data)
    image = renderer.render()
    renderer.close()
    assert image.shape == (48, 64, 3) and np.ptp(image) > 0


def test_a_video_of_an_environment(cfg, tmp_path):
    """Record a video with the wrapper."""
    from mjlab.envs import ManagerBasedRlEnv
    from mjlab.utils.wrappers import VideoRecorder

    cfg = copy.deepcopy(cfg)
    cfg.viewer.height, cfg.viewer.width = 48, 64
    env = ManagerBasedRlEnv(cfg=cfg, device="cpu", render_mode="rgb_array")
    env = VideoRecorder(
        env,
        video_folder=tmp_path / "videos",
        step_trigger=lambda step: step == 0,
        video_length=3,
        disable_logger=True,
    )
    env.reset()
    for _ in range(5):
        env.step(torch.zeros(3, 2))
    env.close()
    assert len(list((tmp_path / "videos").iterdir())) == 1


def test_a_term_in_a_script(cfg):
    """Use terms defined in the program: a lambda, a function, and a class with state."""
    from mjlab.envs import ManagerBasedRlEnv
    from mjlab.managers import (
        CurriculumTermCfg,
        MetricsTermCfg,
        ObservationTermCfg,
        RewardTermCfg,
        TerminationTermCfg,
    )

    class Steps:
        def __init__(self, cfg: TerminationTermCfg, env: ManagerBasedRlEnv):
            self.limit = cfg.params["limit"]
            self.count = torch.zeros(env.num_envs, device=env.device)

        def __call__(self, env: ManagerBasedRlEnv, limit: int) -> torch.Tensor:
            self.count += 1
            return self.count >= limit

        def reset(self, env_ids: torch.Tensor | slice | None = None) -> None:
            self.count[env_ids] = 0

    def height(env: ManagerBasedRlEnv, offset: float = 0.0) -> torch.Tensor:
        return env.scene["robot"].data.root_link_pos_w[:, 2:3] + offset

    cfg = copy.deepcopy(cfg)
    cfg.observations["actor"].terms["height"] = ObservationTermCfg(
        func=height, params={"offset": 0.1}, scale=2.0, clip=(-1.0, 1.0), history_length=2
    )
    cfg.rewards["height"] = RewardTermCfg(func=lambda env: height(env).squeeze(-1), weight=1.0)
    cfg.terminations["steps"] = TerminationTermCfg(func=Steps, params={"limit": 4})
    cfg.metrics["height"] = MetricsTermCfg(func=lambda env: height(env)[:, 0], per_substep=True)
    cfg.curriculum["progress"] = CurriculumTermCfg(
        func=lambda env, env_ids: torch.tensor(float(env.common_step_counter))
    )
    env = ManagerBasedRlEnv(cfg, device="cpu")
    env.reset()
    ended = [env.step(torch.zeros(3, 2))[2].all().item() for _ in range(5)]
    assert ended == [False, False, False, True, False]
    assert env.observation_manager.group_obs_dim["actor"] == (12,)
    env.close()


def test_a_runner_by_hand(env, tmp_path, capsys):
    """Learn and load with a subclass of the runner, and print each iteration."""
    from mjlab.rl import MjlabOnPolicyRunner, RslRlOnPolicyRunnerCfg, RslRlVecEnvWrapper

    class Runner(MjlabOnPolicyRunner):
        def save(self, path, infos=None):
            super().save(path, {**(infos or {}), "mark": 7})

    agent = RslRlOnPolicyRunnerCfg(num_steps_per_env=4, logger="tensorboard", save_interval=1)
    cfg = asdict(agent)
    cfg["obs_groups"]["critic"] = ("actor",)
    runner = Runner(RslRlVecEnvWrapper(env), cfg, str(tmp_path), "cpu")
    runner.add_git_repo_to_log(__file__)
    runner.learn(num_learning_iterations=1, init_at_random_ep_len=True)
    assert "iteration 1/1: return" in capsys.readouterr().out
    path = str(tmp_path / "model_1.pt")
    runner.save(path)
    assert runner.load(path, map_location="cpu")["mark"] == 7
    policy = runner.get_inference_policy(device="cpu")
    assert policy(runner.env.get_observations()).shape == (3, 2)
    runner.export_policy_to_onnx(str(tmp_path), filename="policy.onnx")
    assert (tmp_path / "policy.onnx").is_file()
