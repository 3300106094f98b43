"""Memory of the last seconds of all worlds."""

from __future__ import annotations

import pytest
import torch

from manyworlds.live import env_from_snapshot
from manyworlds.live.memory import WorldMemory
from manyworlds.live.record import WorldRecorder, WorldReplay, quick_checksum, repeat
from manyworlds.live.story import episode_story
from manyworlds.managers import RewardTermCfg
from manyworlds.utils.seeding import rng_state
from tests.live.test_fork import TASKS, delay, make_env


def act(env, step: int) -> torch.Tensor:
    """Return the actions of a step, different ones in each world."""
    width = env.action_manager.total_action_dim
    numbers = torch.arange(env.num_envs * width).reshape(env.num_envs, width) + 31 * step
    return torch.sin(numbers.float())


def simulated(env, record):
    """Simulate a record in an environment of one world; return it and how many steps are equal."""
    alone = env_from_snapshot(record.snapshot, env.cfg)
    alone.set_auto_reset(False)
    replay = WorldReplay(alone, record.steps, quick_checksum)
    while not replay.ended:
        alone.step(replay.begin())
        replay.end()
    return alone, replay


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_the_past_is_simulated_to_the_bit(task):
    """Remember 70 steps of each task; simulate the past of three worlds: equal to the bit."""
    env = make_env(task, delay if "Quadruped" in task else lambda cfg: None)
    memory = WorldMemory(env, seconds=60 * env.step_dt)
    for step in range(70):
        env.step(act(env, step))
    for env_id in (0, 2, 4):
        if not env.episode_length_buf[env_id]:
            continue
        record = memory.past(env_id)
        assert 0 < len(record.steps) <= min(60, int(env.episode_length_buf[env_id]))
        alone, replay = simulated(env, record)
        assert replay.ended == f"All {len(record.steps)} recorded steps are repeated."
        assert torch.equal(alone.sim.data.qpos[0], env.sim.data.qpos[env_id])
        alone.close()
    env.close()


def test_the_batch_does_not_change():
    """Step with and without a memory: worlds and random generators are equal."""
    plain, seen = make_env("Velocity-Flat-Quadruped"), None
    for step in range(30):
        plain.step(act(plain, step))
    state = rng_state()["torch"]
    seen = make_env("Velocity-Flat-Quadruped")
    memory = WorldMemory(seen)
    for step in range(30):
        seen.step(act(seen, step))
    assert memory.seconds == pytest.approx(30 * seen.step_dt)
    assert torch.equal(plain.sim.data.qpos, seen.sim.data.qpos)
    assert torch.equal(state, rng_state()["torch"])


def test_a_step_that_fails_is_neither_recorded_nor_simulated():
    """Raise in a reward once: records end before it, and the memory begins after it."""
    fails = [False]

    def reward(env):
        if fails[0]:
            raise ArithmeticError("the reward failed")
        return env.episode_length_buf.float()

    def failing(cfg):
        cfg.rewards["failing"] = RewardTermCfg(func=reward, weight=1.0)

    env = make_env("Cartpole-Balance", failing)
    memory = WorldMemory(env)
    recorder = WorldRecorder(env)
    record = recorder.start(1)
    for step in range(5):
        env.step(act(env, step))
    fails[0] = True
    with pytest.raises(ArithmeticError):
        env.step(act(env, 5))
    fails[0] = False
    for step in range(6, 10):
        env.step(act(env, step))
    assert recorder.env_ids == [] and env.observers == [memory]
    assert len(record.steps) == 5
    alone = env_from_snapshot(record.snapshot, env.cfg)
    assert len([*repeat(alone, record.steps)]) == 5
    alone.close()
    past = memory.past(1)
    assert len(past.steps) == 4
    alone, replay = simulated(env, past)
    assert replay.done == 4
    alone.close()
    env.close()


def test_lengths_that_a_runner_sets_are_remembered():
    """Set the time in the episodes after the memory was made: ends by time are simulated, too."""

    def short(cfg):
        cfg.episode_length_s, cfg.scene.num_envs = 1.0, 6

    env = make_env("Velocity-Flat-Quadruped", short)
    memory = WorldMemory(env, worst=6)
    env.episode_length_buf[:] = torch.arange(6) * 8
    for step in range(12):
        env.step(act(env, step))
    memory.end_rollout()
    ends = [end for end in memory.worst if end.ended_by == ("time_out",)]
    assert ends and ends[0].length > 12
    story = episode_story(ends[0].record, env.cfg)
    assert story.ended_by == ("time_out",)
    assert story.steps[-1].time == pytest.approx(1.0)
    env.close()


@pytest.mark.slow
def test_the_worst_episodes_are_kept_with_their_ends():
    """Let robots fall: falls come before time limits, low returns first; each is simulated."""

    def short(cfg):
        cfg.episode_length_s, cfg.scene.num_envs = 1.0, 12

    env = make_env("Velocity-Flat-Quadruped", short)
    memory = WorldMemory(env, worst=3)
    for step in range(60):
        action = 4.0 * act(env, step)
        action[::2] = 0.0  # every second robot stands
        env.step(action)
    memory.end_rollout()
    worst = list(memory.worst)
    assert len(worst) == 3
    before, size = sum(end.size for end in worst), memory.size
    assert 0 < before < size
    memory.forget()  # what is recent; only the present states remain
    assert before < memory.size < size
    assert all(set(end.ended_by) <= {"fell_over", "illegal_contact"} for end in worst)
    assert all(end.env_id % 2 for end in worst)
    assert [end.episode_return for end in worst] == sorted(end.episode_return for end in worst)
    for end in worst:
        assert end.text.startswith(f"world {end.env_id}: ")
        alone, replay = simulated(env, end.record)
        assert replay.done == len(end.record.steps) - 1  # all but the last, which ends it
        terms = alone.termination_manager
        found = tuple(n for n in terms.active_terms if bool(terms.get_term(n)[0]))
        assert found == end.ended_by
        assert int(alone.episode_length_buf[0]) == end.length
        alone.close()
    env.close()


@pytest.mark.slow
def test_the_budget_is_kept():
    """Remember with a small budget: the oldest steps are left out, and worst episodes, too."""
    env = make_env("Velocity-Flat-Quadruped")
    whole = WorldMemory(env, seconds=3.0)
    for step in range(100):
        env.step(act(env, step))
    assert whole.seconds == pytest.approx(2.0)
    whole.close()
    budget = 600_000
    small = WorldMemory(env, seconds=3.0, budget=budget)
    for step in range(200):
        env.step(act(env, step))
        small.end_rollout()
        assert small.size <= budget
    assert 0 < small.seconds < 3.0
    assert whole.seconds == pytest.approx(2.0)
    env.close()
