"""Trained policies as control laws."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from manyworlds.lab import LabCfg, LiveLab, world_from_file, world_from_spec
from manyworlds.tasks import load_env_cfg, load_rl_cfg

pytest.importorskip("rsl_rl", reason="learning needs the extra 'train'")
pytest.importorskip("onnxruntime", reason="running policies needs the extra 'train'")


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """The folder of a run that learned for two iterations."""
    from manyworlds.rl.training import train

    env_cfg, rl_cfg = load_env_cfg("Cartpole-Balance"), load_rl_cfg("Cartpole-Balance")
    env_cfg.scene.num_envs, rl_cfg.max_iterations = 16, 2
    return train("Cartpole-Balance", env_cfg, rl_cfg, tmp_path_factory.mktemp("runs")).run.path


def open_run(run: Path, **kwargs) -> LiveLab:
    """A lab of the run's scene, which waits for steps."""
    world = world_from_file(run / "scene" / "scene.xml", by_prefix=True)
    lab = LiveLab(world, LabCfg(mode="direct", **kwargs))
    lab.run_policy(run / "policy.onnx")
    return lab


def plain_states(run: Path, periods: int) -> tuple[list[bytes], int]:
    """States after each control period as `play --onnx` makes them, and its physics steps."""
    from manyworlds.rl import OnnxPolicy

    model = mujoco.MjModel.from_xml_path(str(run / "scene" / "scene.xml"))
    policy, data = OnnxPolicy(run / "policy.onnx", model), mujoco.MjData(model)
    policy.reset(data)
    states = []
    for _ in range(periods):
        policy.step(data)
        states.append(np.concatenate([data.qpos, data.qvel, data.ctrl]).tobytes())
    return states, policy.description["decimation"]


def state_of(lab: LiveLab) -> bytes:
    """Positions, velocities and controls now."""
    snapshot = lab.snapshot
    return np.concatenate([snapshot.qpos, snapshot.qvel, snapshot.ctrl]).tobytes()


def test_a_robot_moves_as_in_plain_mujoco(run):
    """Step the lab with the policy: the states of `play --onnx` to the bit, and after a reset."""
    expected, decimation = plain_states(run, 60)
    lab = open_run(run)
    for _ in range(2):
        states = []
        for _ in expected:
            lab.step(decimation)
            states.append(state_of(lab))
        assert states == expected
        lab.reset()
    lab.stop()


def test_pauses_do_not_matter(run):
    """Let iterations go by while the world is paused: the same states."""
    expected, decimation = plain_states(run, 10)
    lab = open_run(run)
    lab.pause()
    for state in expected:
        for _ in range(decimation):
            lab.engine.pump()
            lab.step()
        assert state_of(lab) == state
    lab.stop()


def test_others_may_take_the_robot(run):
    """Take the robot from the policy and give it back, which begins anew."""
    lab = open_run(run)
    robot = lab["cartpole"]
    assert robot.owner == "policy"
    lab.step(7)
    robot.take("panel")
    robot.write("panel", [0.25])
    assert lab.step(3).ctrl.tolist() == [0.25]
    robot.take("policy")
    assert lab.step().ctrl.tolist() != [0.25]
    lab.stop()


def test_robots_that_do_not_fit_are_refused(run):
    """Load the policy into other models: the message says all that is missing or too much."""
    path = run / "scene" / "scene.xml"
    text = path.read_text()
    renamed = run / "scene" / "renamed.xml"
    renamed.write_text(text.replace("cartpole/hinge_1", "cartpole/elbow"))
    lab = LiveLab(world_from_file(renamed, by_prefix=True))
    with pytest.raises(ValueError, match=r"The model lacks .*joints? cartpole/hinge"):
        lab.run_policy(run / "policy.onnx")
    lab.stop()
    spec = mujoco.MjSpec.from_file(str(path))
    spec.add_actuator(
        name="cartpole/extra", target="cartpole/slider", trntype=mujoco.mjtTrn.mjTRN_JOINT
    )
    world = world_from_spec(spec)
    world.robots = {"cartpole": "cartpole/"}
    lab = LiveLab(world)
    with pytest.raises(ValueError, match="the robot 'cartpole': it does not move cartpole/extra"):
        lab.run_policy(run / "policy.onnx")
    with pytest.raises(KeyError, match="no robot 'dog'"):
        lab.run_policy(run / "policy.onnx", "dog")
    lab.stop()


def test_the_command_opens_a_run(run):
    """Open the run folder as the command does, and a world of its batch."""
    from manyworlds.cli.lab import LabOptions, open_lab

    lab = open_lab(LabOptions(target=str(run), paused=True))
    assert lab["cartpole"].owner == "policy" and list(lab.world.robots) == ["cartpole"]
    lab.stop()
    lab = open_lab(LabOptions(target=str(run), world=2))
    lab.engine.mode = "direct"
    before = lab.snapshot.qpos.copy()
    lab.step(20)
    assert lab["cartpole"].owner == "policy" and (lab.snapshot.qpos != before).any()
    lab.stop()
