"""The examples run against labs that are served."""

from __future__ import annotations

import functools
import re
import runpy
import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.lab import (
    LabCfg,
    LiveLab,
    RecorderCfg,
    client,
    world_from_scene,
    world_from_spec,
)
from manyworlds.lab.recording.mcap_files import read_mcap
from manyworlds.tasks import load_env_cfg
from manyworlds.utils.gl import gl_available
from tests.browser import free_port
from tests.lab.client.conftest import address, serve
from tests.waiting import PATIENCE_S

EXAMPLES = Path(__file__).parents[3] / "examples"


def run_alone(name: str, *arguments: object) -> str:
    """Run an example in a process of its own; return its output."""
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_here(monkeypatch, name: str, *arguments: object) -> None:
    """Run an example as a program in this process, which has imported what it needs."""
    program = str(EXAMPLES / f"{name}.py")
    monkeypatch.setattr(sys, "argv", [program, *map(str, arguments)])
    runpy.run_path(program, run_name="__main__")


def task_world(task: str):
    """Build the scene of a task, as `manyworlds lab TASK` does."""
    cfg = load_env_cfg(task)
    return world_from_scene(cfg.scene, cfg.sim.mujoco)


def test_an_arm_follows_the_sticks():
    """Drive an arm: the hand moves forward, then up, and hardly sideways."""
    with LiveLab(task_world("Lift-Cube-Arm")) as lab, serve(lab) as hub:
        text = run_alone("13_drive_an_arm", address(hub))
        x, y, z = map(float, re.findall(r"-?\d\.\d{3}", text))
        assert x > 0.05 and z > 0.05 and abs(y) < 0.02, text
        assert lab.snapshot.time >= 2.0 and lab.modes.mode == "live"


def test_a_policy_runs_elsewhere(tmp_path, monkeypatch):
    """Run an exported policy over the network: states are those of plain MuJoCo, to the bit."""
    pytest.importorskip("rsl_rl", reason="learning needs the extra 'train'")
    from manyworlds.rl import OnnxPolicy
    from manyworlds.rl.training import train
    from manyworlds.tasks import load_rl_cfg

    env_cfg, rl_cfg = load_env_cfg("Cartpole-Balance"), load_rl_cfg("Cartpole-Balance")
    env_cfg.scene.num_envs, rl_cfg.max_iterations = 8, 1
    path = train("Cartpole-Balance", env_cfg, rl_cfg, tmp_path).run.path / "policy.onnx"
    with LiveLab(task_world("Cartpole-Balance"), LabCfg(mode="direct")) as lab, serve(lab) as hub:
        model = lab.model
        policy, data = OnnxPolicy(path, model), mujoco.MjData(model)
        policy.reset(data)
        for _ in range(60):
            policy.step(data)
        run_here(monkeypatch, "14_run_a_policy", path, address(hub))
        assert lab.snapshot.time == data.time
        assert np.array_equal(lab.snapshot.qpos, data.qpos)
        assert np.array_equal(lab.snapshot.qvel, data.qvel)


def test_a_renderer_pushes(monkeypatch, tmp_path):
    """Push a box in the live world: it slides along the push, and the picture shows it."""
    xml = """<mujoco><worldbody><light pos="0 0 3"/><geom type="plane" size="5 5 .1"/>
      <body name="box" pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1" mass="1"/></body>
      </worldbody></mujoco>"""
    picture = [tmp_path / "picture.png"] if gl_available() is None else []
    with LiveLab(world_from_spec(mujoco.MjSpec.from_string(xml))) as lab, serve(lab) as hub:
        port = hub.ports["fast_path"]
        monkeypatch.setenv("MUJOCO_GL", "egl")
        text = run_alone("16_push_through_a_renderer", "robot_box", port, *picture)
        # How far depends on the machine: a push replaces an earlier one that still waits.
        assert lab.snapshot.xpos[1, 0] > 0.001
    moved = re.findall(r"-?\d\.\d{3}", text)
    assert float(moved[1]) > 0.0
    assert all(path.stat().st_size > 1000 for path in picture)


def test_episodes_are_recorded(tmp_path, monkeypatch):
    """Record ten episodes: each file has one, from its initial state to its end."""
    cfg = load_env_cfg("Cartpole-Balance")
    cfg.scene.num_envs, cfg.episode_length_s = 1, 0.2
    env = ManagerBasedRlEnv(cfg, device="cpu")
    lab_cfg = LabCfg(recorder=RecorderCfg(folder=tmp_path / "lab"))
    with LiveLab.driven_by(env, cfg=lab_cfg) as lab, serve(lab) as hub:
        run_here(monkeypatch, "15_record_episodes", tmp_path / "mine", address(hub))
    files = sorted((tmp_path / "mine").glob("*.mcap"))
    assert len(files) == 10
    for file in files:
        recording = read_mcap(file)
        assert len(recording) >= round(0.2 / env.physics_dt)
        assert recording.clock[0] < 2.1 * env.physics_dt


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("13_drive_an_arm", []),
        ("14_run_a_policy", ["policy.onnx"]),
        ("15_record_episodes", ["episodes"]),
        ("16_push_through_a_renderer", ["box"]),
    ],
)
def test_no_lab_is_told_in_one_sentence(name, arguments, tmp_path, monkeypatch):
    """Say how a lab is started, in place of a traceback, and end with an error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(client, "connect", functools.partial(client.connect, patience=0.2))
    with pytest.raises(SystemExit, match=r"No lab answers.*`manyworlds lab TARGET --serve`"):
        run_here(monkeypatch, name, *arguments, free_port())
    assert not [*tmp_path.iterdir()]


def test_mistakes_are_told_in_one_sentence(tmp_path, monkeypatch):
    """Name a robot, a policy, a driver and a body that the lab does not have."""
    with LiveLab(task_world("Reach")) as lab, serve(lab) as hub:
        for name, arguments, message in (
            ("13_drive_an_arm", [], "site 'grasp_site'"),
            ("14_run_a_policy", [tmp_path / "no.onnx"], "no.onnx"),
            ("15_record_episodes", [tmp_path / "new"], "environment"),
        ):
            with pytest.raises(SystemExit, match=message):
                run_here(monkeypatch, name, *arguments, address(hub))
        with pytest.raises(SystemExit, match="'nobody'"):
            run_here(monkeypatch, "16_push_through_a_renderer", "nobody", hub.ports["fast_path"])
