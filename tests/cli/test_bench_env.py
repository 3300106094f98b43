"""Timing whole control steps, and taking them apart."""

from __future__ import annotations

import json
import re

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.cli import bench_env
from manyworlds.cli.bench_env import make_env, measure_env, profile_env
from manyworlds.cli.main import main
from manyworlds.cli.plain_rollout import PlainRollout
from manyworlds.tasks import load_env_cfg


@pytest.fixture
def env():
    """Eight cartpoles."""
    return make_env(load_env_cfg("Cartpole-Swingup"), 8)


def test_plain_rollouts_are_mujocos():
    """Step as `mj_step` does, bit for bit, from any state."""
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><joint name='j'/><geom size='.1' pos='.3 0 0'/></body>"
        "</worldbody><actuator><motor joint='j'/></actuator></mujoco>"
    )
    data = mujoco.MjData(model)
    data.qpos[0], data.qvel[0] = 0.3, -1.0
    rollout = PlainRollout(model, 1)
    rollout.prepare(1, 5)
    row, control = rollout.layout.row(data)[None], np.linspace(-1, 1, 5).reshape(1, 5, 1)
    rollout(row[:, rollout.layout.physics], row[:, rollout.layout.warmstart], control)
    for ctrl in control[0]:
        data.ctrl[:] = ctrl
        mujoco.mj_step(model, data)
    assert np.array_equal(rollout.states[0, -1], rollout.layout.row(data)[rollout.layout.physics])


def test_measuring_an_environment(env, monkeypatch):
    """Give both programs the same number of physics steps; report what adds up."""
    monkeypatch.setattr(bench_env, "_ROUND_WORLD_STEPS", 32)
    taken, rolled = [], []
    step, call = env.sim.step, PlainRollout.__call__
    monkeypatch.setattr(env.sim, "step", lambda n, **kw: (taken.append(n), step(n, **kw)))

    def roll(self, state, warmstart, control):
        assert control.shape == (8, 20, 1) and (np.abs(control) <= 10.0).all()
        assert np.ptp(control[0]) > 1.0
        rolled.append(self.states.shape[1])
        call(self, state, warmstart, control)

    monkeypatch.setattr(PlainRollout, "__call__", roll)
    result = measure_env(env, seconds=0.05)
    assert sum(taken) == sum(rolled)
    assert result["ratio"] == pytest.approx(result["rollout_us"] / result["step_us"])
    assert result["env_steps_per_s"] == pytest.approx(8e6 / result["step_us"])
    assert env.episode_length_buf.unique().numel() > 1


def test_profiles_leave_nothing_behind(env):
    """List parts of a step; afterwards the environment has its own functions again."""
    before = {label: getattr(owner, name) for label, owner, name in bench_env._parts(env)}
    patched = [set(vars(owner)) for _, owner, _ in bench_env._parts(env)]
    table = profile_env(env, seconds=0.05)
    for label in ("physics: step", "reward term: smooth_reward", "termination: compute"):
        assert re.search(rf"{label} +│ +1\.0 ", table)
    shares = [float(line.split("│")[-2]) for line in table.splitlines() if line.startswith("│")]
    assert sum(shares) == pytest.approx(100.0, abs=0.06 * len(shares))
    assert {label: getattr(owner, name) for label, owner, name in bench_env._parts(env)} == before
    assert [set(vars(owner)) for _, owner, _ in bench_env._parts(env)] == patched
    env.step(torch.zeros(8, 1))


@pytest.mark.slow
def test_the_command_takes_tasks(capsys):
    """Bench a task by name, or profile it; refuse to profile a file."""
    args = ["--num-envs", "4", "--seconds", "0.05"]
    assert main(["bench", "Cartpole-Balance", *args, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["task"] == "Cartpole-Balance"
    assert main(["bench", "Cartpole-Balance", *args]) == 0
    assert "to mujoco.rollout" in capsys.readouterr().out
    assert main(["bench", "Cartpole-Balance", *args, "--profile"]) == 0
    assert "physics: step" in capsys.readouterr().out
    assert main(["bench", "nothing.xml", "--profile"]) == 1
    assert "'nothing.xml' is none" in capsys.readouterr().err
