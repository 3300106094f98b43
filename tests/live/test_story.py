"""Stories of remembered episodes."""

from __future__ import annotations

import pytest
import torch

from manyworlds.live.memory import WorldMemory
from manyworlds.live.story import episode_story
from tests.live.test_fork import make_env
from tests.live.test_memory import act


@pytest.mark.slow
def test_a_fall_is_told():
    """Let robots fall, and tell the worst episode: what ended it, and what each step was like."""
    env = make_env("Velocity-Flat-Quadruped", lambda cfg: setattr(cfg.scene, "num_envs", 8))
    memory = WorldMemory(env, worst=2)
    seen = {}
    for step in range(60):
        env.step(4.0 * act(env, step))
        for i in range(8):
            seen[step + 1, i] = env.reward_manager.step_reward[i].clone()
    memory.end_rollout()
    end = memory.worst[0]
    story = episode_story(end.record, env.cfg)
    assert story.env_id == end.env_id and story.ended_by == end.ended_by
    assert story.equal_steps == len(story.steps) - 1 == len(end.record.steps) - 1
    assert set(story.ended_by) <= {"fell_over", "illegal_contact"}
    last = story.steps[-1]
    assert last.time == pytest.approx(end.length * env.step_dt)
    assert max(last.nearness[name] for name in story.ended_by) >= 1.0
    assert all(max(step.nearness.values()) < 1.0 for step in story.steps[:-1])
    assert (
        last.observations.keys()
        == dict(env.observation_manager.get_active_iterable_terms(0)).keys()
    )
    assert len(last.observations["actor/joint_pos"]) == 12
    assert len(last.action["joint_pos"]) == 12
    names = list(env.reward_manager.active_terms)
    for back in (1, 5):
        told = story.steps[-1 - back].rewards
        expected = seen[end.step - back, end.env_id]
        assert torch.equal(torch.tensor([told[name] for name in names]), expected)
    assert len(story.randomized["geom_friction"]) == env.sim.mj_model.ngeom
    text = str(story)
    assert story.ended_by[0] in text and "rewards that fell most" in text
    env.close()


def test_a_record_without_steps_is_refused():
    """Tell the past of a world that has none: the reason is named."""
    env = make_env("Cartpole-Swingup")
    memory = WorldMemory(env)
    with pytest.raises(ValueError, match="has just begun an episode"):
        memory.past(1)
    with pytest.raises(ValueError, match="There is no world 9"):
        memory.past(9)
    env.close()
