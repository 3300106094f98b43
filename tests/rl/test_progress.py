"""Records of iterations: measured shares of time, logged values, and files of other versions."""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict

import pytest

from manyworlds.managers import RewardTermCfg
from manyworlds.rl.progress import (
    IterationRecord,
    control_steps,
    curve,
    curve_keys,
    read_progress,
    training_minutes,
    write_progress,
)
from manyworlds.rl.training import train

TASK = "Cartpole-Swingup"
OLD = {
    "iteration": 1,
    "total": 2,
    "mean_return": None,
    "steps_per_s": 100.0,
    "collect_time": 3.0,
    "learn_time": 1.0,
}
"""A line of version 0.1, without the environment's time and logged values."""


def _slow(env):
    time.sleep(0.02)
    return env.episode_length_buf.float()


@pytest.mark.slow
def test_shares_of_time_are_where_the_time_is(env_cfg, rl_cfg, log_root, monkeypatch):
    """Attribute the time of a slow reward to managers, and that of slow physics to physics."""
    rl_cfg.max_iterations = 2
    env_cfg.rewards["slow"] = RewardTermCfg(func=_slow, weight=1.0)
    for record in train(TASK, env_cfg, rl_cfg, log_root).records:
        assert sum(record.shares.values()) == pytest.approx(1.0)
        assert record.env_time - record.physics_time >= 8 * 0.02
        assert 0.0 < record.physics_time < record.env_time < record.collect_time
    del env_cfg.rewards["slow"]
    from manyworlds.sim import Simulation

    step = Simulation.step
    monkeypatch.setattr(Simulation, "step", lambda *a, **k: (time.sleep(0.02), step(*a, **k)))
    for record in train(TASK, env_cfg, rl_cfg, log_root).records:
        assert record.physics_time >= 8 * 0.02


@pytest.mark.slow_on_warp
def test_logged_values_are_part_of_the_progress(env_cfg, rl_cfg, log_root):
    """Record what the logger writes, in the file as in the result."""
    env_cfg.episode_length_s = 0.3
    result = train(TASK, env_cfg, rl_cfg, log_root)
    records = read_progress(result.run.path)
    assert records == result.records
    keys = curve_keys(records)
    expected = {"mean_return", "steps_per_s", "share/physics", "Loss/value", "Policy/mean_std"}
    expected |= {"Episode_Reward/smooth_reward", "Train/mean_episode_length"}
    assert expected <= set(keys) and not [key for key in keys if key.endswith("/time")]
    assert curve(records, "Train/mean_episode_length")[-1] == pytest.approx(6.0, abs=1.0)
    assert curve(records, "mean_return")[-1] == records[-1].scalars["Train/mean_reward"]
    assert control_steps(records) == [32, 64, 96, 128]
    minutes = training_minutes(records)
    assert minutes == sorted(minutes) and minutes[0] == pytest.approx(records[0].time / 60)


def test_files_of_other_versions_are_read(tmp_path):
    """Read records that lack entries, or have more; leave out a line that is not complete."""
    more = {**OLD, "iteration": 2, "mood": "good", "scalars": {"a": None, "b": 1.0}}
    text = f"{json.dumps(OLD)}\n{json.dumps(more)}\n" + '{"iteration": 3, '
    (tmp_path / "progress.jsonl").write_text(text)
    first, second = read_progress(tmp_path)
    assert first == IterationRecord(**OLD) and first.shares == {}
    assert curve_keys([first, second]) == ["steps_per_s", "collect_time", "learn_time", "b"]
    values = curve([first, second], "b")
    assert math.isnan(values[0]) and values[1] == 1.0
    assert training_minutes([first, second]) == pytest.approx([4 / 60, 8 / 60])
    assert control_steps([first]) == [400]
    write_progress(tmp_path, [first], mode="w")
    assert read_progress(tmp_path) == [first]
    assert json.loads((tmp_path / "progress.jsonl").read_text()) == asdict(first)


@pytest.mark.parametrize("line", ["hello", "[1, 2]", '{"iteration": 1}', '{"iteration": "x"}'])
def test_files_that_cannot_be_read_are_named(tmp_path, line):
    """Name the file and the line that is not a record, and a folder without the file."""
    with pytest.raises(FileNotFoundError, match=r"is not the folder of a training run"):
        read_progress(tmp_path)
    (tmp_path / "progress.jsonl").write_text(f"{json.dumps(OLD)}\n{line}\n")
    with pytest.raises(ValueError, match=r"Line 2 of '.*progress.jsonl' is not the record"):
        read_progress(tmp_path)
    wrong = {**OLD, "steps_per_s": "fast"}
    (tmp_path / "progress.jsonl").write_text(f"{json.dumps(wrong)}\n")
    with pytest.raises(ValueError, match=r"Line 1 .* \(could not convert string to float: 'fast'"):
        read_progress(tmp_path)
