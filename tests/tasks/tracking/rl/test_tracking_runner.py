"""Exported tracking policies hold their motion, and run without the environment."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.rl.exporter_utils import export_policy, export_scene
from manyworlds.rl.onnx_policy import OnnxPolicy
from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper
from manyworlds.tasks import load_env_cfg, load_rl_cfg
from manyworlds.tasks.tracking.rl.runner import MotionTrackingOnPolicyRunner

onnxruntime = pytest.importorskip("onnxruntime", reason="running policies needs the extra 'train'")


def _runner(cfg, **agent):
    cfg.scene.num_envs = 1
    rl_cfg = replace(load_rl_cfg("Tracking-Flat-Humanoid"), **agent)
    return MotionTrackingOnPolicyRunner(RslRlVecEnvWrapper(ManagerBasedRlEnv(cfg)), rl_cfg)


@pytest.fixture
def runner(make_cfg):
    """A runner with random weights, in the task as it is watched."""
    return _runner(make_cfg(num_envs=1, play=True))


def test_the_file_holds_the_motion(runner, clip, tmp_path):
    """Ask for frames before, in and after the motion; time is clamped to it."""
    path = export_policy(runner, tmp_path / "policy.onnx")
    session = onnxruntime.InferenceSession(str(path))
    assert [node.name for node in session.get_inputs()] == ["obs", "time_step"]
    names = [node.name for node in session.get_outputs()]
    assert names[0] == "actions" and len(names) == 7
    steps = np.array([[-3.0], [0.0], [57.0], [400.0], [1e6]], np.float32)
    obs = np.random.default_rng(0).normal(size=(5, 160)).astype(np.float32)
    outputs = dict(zip(names, session.run(None, {"obs": obs, "time_step": steps}), strict=True))
    frames = [0, 0, 57, 400, 400]
    command = runner.env.unwrapped.command_manager.get_term("motion")
    bodies = command.body_indexes.numpy()
    for name in names[1:]:
        expected = getattr(clip, name)[frames]
        expected = expected[:, bodies] if name.startswith("body") else expected
        np.testing.assert_array_equal(outputs[name], expected)
    actor = runner.alg.get_policy()
    mean = actor({"actor": torch.from_numpy(obs)}).detach().numpy()
    np.testing.assert_allclose(outputs["actions"], mean, atol=1e-5)


def test_metadata_name_the_bodies(runner, tmp_path):
    """Read the anchor, the bodies and the rate from the file."""
    path = export_policy(runner, tmp_path / "policy.onnx")
    metadata = onnxruntime.InferenceSession(str(path)).get_modelmeta().custom_metadata_map
    assert metadata["anchor_body_name"] == "torso_link"
    assert metadata["body_names"].split(",")[:2] == ["pelvis", "left_hip_roll_link"]
    assert metadata["command_names"] == "motion"
    assert json.loads(metadata["manyworlds"])["policy"]["motion_frames"] == 401


@pytest.mark.parametrize("relative", [True, False])
def test_plain_mujoco_moves_as_the_environment(make_cfg, tmp_path, relative):
    """Follow actions and states of the environment for half a second, to rounding errors."""
    cfg = make_cfg(num_envs=1, play=True)
    cfg.events = {}  # a world of its own, with biased encoders, is not the model that is exported
    if not relative:
        cfg.actions["joint_pos"] = load_env_cfg("Tracking-Flat-G1").actions["joint_pos"]
    runner = _runner(cfg)
    path = export_policy(runner, tmp_path / "policy.onnx")
    scene = export_scene(runner.env.unwrapped, tmp_path / "scene")
    model = mujoco.MjModel.from_xml_path(str(scene / "scene.xml"))
    policy, data = OnnxPolicy(path, model), mujoco.MjData(model)
    policy.reset(data)
    env, act = runner.env.unwrapped, runner.get_inference_policy()
    np.testing.assert_allclose(data.qpos, env.sim.data.qpos[0], atol=1e-6)
    np.testing.assert_allclose(data.qvel, env.sim.data.qvel[0], atol=1e-5)
    data.qpos[:], data.qvel[:] = env.sim.data.qpos[0].numpy(), env.sim.data.qvel[0].numpy()
    mujoco.mj_step1(model, data)
    for _ in range(25):
        np.testing.assert_allclose(
            policy.observe(data, "actor"), env.obs_buf["actor"][0], atol=2e-3
        )
        action = act(runner.env.get_observations())
        env.step(action)
        np.testing.assert_allclose(policy.step(data), action[0], atol=1e-3)
        np.testing.assert_allclose(data.qpos, env.sim.data.qpos[0], atol=1e-4)


def test_a_robot_of_another_name_tracks_the_motion(runner, tmp_path):
    """Rename the robot in the exported scene: it begins and moves as under its own name."""
    path = export_policy(runner, tmp_path / "policy.onnx")
    scene = export_scene(runner.env.unwrapped, tmp_path / "scene") / "scene.xml"
    renamed = scene.with_name("renamed.xml")
    renamed.write_text(scene.read_text().replace("robot/", "two/"))
    states = []
    for file, prefix in ((scene, None), (renamed, "two/")):
        model = mujoco.MjModel.from_xml_path(str(file))
        policy, data = OnnxPolicy(path, model, prefix=prefix), mujoco.MjData(model)
        policy.reset(data)
        for _ in range(10):
            policy.step(data)
        states.append(data.qpos)
    np.testing.assert_array_equal(*states)


def test_an_environment_without_a_motion_is_refused(env_cfg):
    """Export from cartpole."""
    with pytest.raises(ValueError, match="environment has none: add one"):
        _runner(env_cfg, obs_groups={"actor": ("actor",), "critic": ("critic",)}).onnx_metadata()


def test_a_recurrent_policy_is_refused_before_training(make_cfg):
    """Name the setting before the first iteration, not at the export after the last."""
    rl_cfg = load_rl_cfg("Tracking-Flat-Humanoid")
    rl_cfg.actor.class_name, rl_cfg.actor.rnn_type = "RNNModel", "lstm"
    env = RslRlVecEnvWrapper(ManagerBasedRlEnv(make_cfg(num_envs=4)))
    runner = MotionTrackingOnPolicyRunner(env, rl_cfg)
    with pytest.raises(
        ValueError, match=r"not one with inputs .*'h_in'.* use class_name='MLPModel'"
    ):
        runner.learn(1)
    assert env.unwrapped.common_step_counter == 0


def test_a_run_declares_its_motion(make_cfg, tmp_path, monkeypatch):
    """Declare the motion's artifact once, with the first checkpoint of a run that logs there."""
    env = RslRlVecEnvWrapper(ManagerBasedRlEnv(make_cfg(num_envs=1)))
    rl_cfg = load_rl_cfg("Tracking-Flat-Humanoid")
    runner = MotionTrackingOnPolicyRunner(env, rl_cfg, None, "cpu", "me/motions/walk:latest")
    used = []
    wandb = SimpleNamespace(run=None)
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    runner.save(tmp_path / "model_0.pt")
    wandb.run = SimpleNamespace(use_artifact=used.append)
    for i in (1, 2):
        runner.save(tmp_path / f"model_{i}.pt")
    assert used == ["me/motions/walk:latest"]
