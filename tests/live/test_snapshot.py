"""Moments of a world, and records of its steps, that another process repeats to the bit."""

from __future__ import annotations

import copy
import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.envs.mdp import dr
from manyworlds.live import (
    WorldRecord,
    WorldRecorder,
    WorldSnapshot,
    env_from_snapshot,
    take_snapshot,
)
from manyworlds.live.record import WorldReplay, checksum, repeat
from manyworlds.managers import EventTermCfg, SceneEntityCfg
from manyworlds.tasks import load_env_cfg
from manyworlds.utils.seeding import rng_state
from tests.live.test_fork import WORLDS, delay, make_env
from tests.waiting import PATIENCE_S

WARM_UP, STEPS = 11, 80


def often(cfg) -> None:
    """Draw all the time: pushes, friction, commands; episodes end by time, too."""
    delay(cfg)
    cfg.episode_length_s = 0.9
    for command in cfg.commands.values():
        command.resampling_time_range = (0.1, 0.2)
    cfg.events["friction_again"] = EventTermCfg(
        mode="interval",
        interval_range_s=(0.05, 0.4),
        func=dr.geom_friction,
        params={"asset_cfg": SceneEntityCfg("robot", geom_names=".*"), "ranges": (0.3, 1.2)},
    )


def no_curriculum(cfg) -> None:
    """Draw all the time, without what couples worlds."""
    often(cfg)
    cfg.curriculum = {}


def fast(cfg) -> None:
    """End episodes within the steps that are compared."""
    cfg.episode_length_s = 0.9


CASES = {
    "quadruped": ("Velocity-Flat-Quadruped", often),
    "quadruped without curriculum": ("Velocity-Flat-Quadruped", no_curriculum),
    "rough": ("Velocity-Rough-Quadruped", lambda cfg: None),
    "variants": ("Push-Variants", fast),
    "reach": ("Reach", fast),
    "lift": ("Lift-Cube-Arm", fast),
    "tracking": ("Tracking-Flat-Humanoid", fast),
    "cartpole": ("Cartpole-Balance", fast),
}


def record(env: ManagerBasedRlEnv, *env_ids: int, steps: int = STEPS) -> list[WorldRecord]:
    """Step a batch with random actions, and record worlds after some steps."""
    width = env.action_manager.total_action_dim
    generator = torch.Generator().manual_seed(5)
    actions = torch.rand(WARM_UP + steps, env.num_envs, width, generator=generator) - 0.5
    for action in actions[:WARM_UP]:
        env.step(action)
    recorder = WorldRecorder(env)
    found = [recorder.start(env_id) for env_id in env_ids]
    for action in actions[WARM_UP:]:
        env.step(action)
    for env_id in env_ids:
        recorder.stop(env_id)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_record_is_repeated_bit_for_bit(case):
    """Repeat 80 steps of two worlds alone: equal after each step."""
    task, change = CASES[case]
    env = make_env(task, change)
    for env_id, recorded in zip((0, 3), record(env, 0, 3), strict=True):
        found = WorldRecord.from_bytes(recorded.to_bytes())
        alone = env_from_snapshot(found.snapshot, env.cfg)
        assert len(list(repeat(alone, found.steps))) == STEPS
        assert checksum(alone, 0) == checksum(env, env_id)
        assert torch.equal(alone.episode_length_buf[0], env.episode_length_buf[env_id])
        restarts = [step for step in found.steps if step.state is not None]
        assert len(restarts) < STEPS / 4  # all others are simulated
        alone.close()
    env.close()


@pytest.mark.slow
def test_the_record_matters():
    """Change the world's random numbers, or an action: the replay ends there and says so."""
    env = make_env("Velocity-Flat-Quadruped", no_curriculum)
    (found,) = record(env, 1, steps=30)
    for change, equal in (("random", 0), ("action", 7)):
        steps = copy.deepcopy(found.steps)
        alone = env_from_snapshot(found.snapshot, env.cfg)
        if change == "random":
            alone.random_streams.reseed(99)
        else:
            steps[7].action.add_(0.01)
        replay = WorldReplay(alone, steps)
        while not replay.ended:
            alone.step(replay.begin())
            replay.end()
        assert replay.done == equal
        assert replay.ended == f"Step {equal + 1} is not equal to the recorded one."
        alone.step(torch.zeros(1, 12))  # the environment may go on
        alone.close()
    env.close()


@pytest.mark.slow
def test_recording_changes_nothing():
    """Step a batch with and without a record: the same states, observations and generators."""
    ends = []
    for recorded in (False, True):
        env = make_env("Velocity-Flat-Quadruped", often)
        recorder = WorldRecorder(env)
        if recorded:
            recorder.start(2)
            recorder.start(4)
        for i in range(60):
            obs = env.step(torch.full((WORLDS, 12), 0.1 * (i % 5)))[0]
        state = env.sim.get_state()["state"].numpy().tobytes()
        ends.append((obs["actor"].numpy().tobytes(), state, rng_state()["torch"].tolist()))
        env.close()
    assert ends[0] == ends[1]


@pytest.mark.slow
def test_several_worlds_at_once():
    """Record two worlds, one of them later: both are repeated, and an ended record stays."""
    env = make_env("Velocity-Flat-Quadruped", no_curriculum)
    recorder = WorldRecorder(env)
    action = torch.rand(WORLDS, 12, generator=torch.Generator().manual_seed(0)) - 0.5
    first = recorder.start(1)
    for _ in range(20):
        env.step(action)
    second = recorder.start(4)
    recorder.stop(1)
    for _ in range(30):
        env.step(action)
    assert recorder.env_ids == [4]
    for found, length in ((first, 20), (second, 30)):
        alone = env_from_snapshot(found.snapshot, env.cfg)
        assert len(list(repeat(alone, found.steps))) == length
        alone.close()
    env.close()


ELSEWHERE = """
import sys
from pathlib import Path
from manyworlds.live import WorldRecord, env_from_snapshot
from manyworlds.live.record import repeat
from manyworlds.tasks import load_env_cfg
found = WorldRecord.from_bytes(Path(sys.argv[1]).read_bytes())
env = env_from_snapshot(found.snapshot, load_env_cfg(sys.argv[2]))
print(len(list(repeat(env, found.steps))))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "task", ["Velocity-Flat-Quadruped", "Velocity-Rough-Quadruped", "Push-Variants"]
)
def test_another_process_repeats_the_record(task, tmp_path: Path):
    """Repeat a record in a fresh process, which builds the task itself: equal to the bit."""
    env = make_env(task)
    (found,) = record(env, 3, steps=40)
    (tmp_path / "record.npz").write_bytes(found.to_bytes())
    env.close()
    result = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, str(tmp_path / "record.npz"), task],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert result.stdout.strip() == "40", result.stderr


def test_moments_of_another_model_are_refused():
    """Open a snapshot of a changed task, and bytes that are no snapshot: the error says so."""
    env = make_env("Cartpole-Balance")
    snapshot = WorldSnapshot.from_bytes(take_snapshot(env, 2).to_bytes())
    assert (snapshot.env_id, snapshot.step, snapshot.variants) == (2, 0, {})
    other = load_env_cfg("Cartpole-Balance")
    other.sim.mujoco.timestep *= 0.5
    with pytest.raises(ValueError, match="build the same model"):
        env_from_snapshot(snapshot, other)
    changed = dataclasses.replace(snapshot, model_hash="0" * 32)
    with pytest.raises(ValueError, match="build the same model"):
        env_from_snapshot(changed, env.cfg)
    with pytest.raises(ValueError, match="cannot be read"):
        WorldSnapshot.from_bytes(b"no archive")
    with pytest.raises(ValueError, match="no snapshot of a world"):
        WorldSnapshot.from_bytes(WorldRecord(snapshot).to_bytes())
    with pytest.raises(ValueError, match="no record of a world"):
        WorldRecord.from_bytes(snapshot.to_bytes())
    with pytest.raises(ValueError, match="no world 5"):
        take_snapshot(env, 5)
    env.close()
