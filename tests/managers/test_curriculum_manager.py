"""Curricula: what they see, and what is logged."""

import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.managers import CurriculumManager, CurriculumTermCfg, NullCurriculumManager


def test_values_and_dicts_are_logged_under_their_names(env):
    """Log numbers and dicts of them; leave None out."""
    manager = CurriculumManager(
        {
            "level": CurriculumTermCfg(func=lambda env, ids, x: torch.tensor(x), params={"x": 2.0}),
            "both": CurriculumTermCfg(func=lambda env, ids: {"a": 1.0, "b": len(ids)}),
            "quiet": CurriculumTermCfg(func=lambda env, ids: None),
            "off": None,
        },
        env,
    )
    assert manager.reset() == {}
    manager.compute(torch.tensor([1, 3]))
    log = manager.reset(torch.tensor([1, 3]))
    assert log == {"Curriculum/level": 2.0, "Curriculum/both/a": 1.0, "Curriculum/both/b": 2}
    assert manager.get_active_iterable_terms(0) == [
        *(("level", [2.0]), ("both/a", [1.0]), ("both/b", [2.0]))
    ]


def test_a_curriculum_sees_finished_episodes_before_their_reset(env_cfg):
    """Give ids of worlds that end an episode, whose lengths and state are still the old ones.

    Leave out worlds that have not stepped since their last reset.
    """
    seen = []

    def watch(env, env_ids):
        seen.append((env_ids.tolist(), env.episode_length_buf[env_ids].tolist()))

    env_cfg.curriculum = {"c": CurriculumTermCfg(func=watch)}
    env = ManagerBasedRlEnv(env_cfg)
    env.episode_length_buf[2] = 199
    env.step(torch.zeros(4, 1))
    env.reset(env_ids=[0])
    assert seen == [([], []), ([2], [200]), ([0], [1])]
    env.reset()  # worlds 0 and 2 have not stepped since their last resets
    assert seen[3:] == [([1, 3], [1, 1])]
    env.reset()
    assert seen[4:] == [([], [])]


def test_the_empty_manager_does_nothing():
    """Run without terms and without an environment."""
    null = NullCurriculumManager()
    null.compute(torch.arange(2))
    assert null.reset() == {} and null.get_active_iterable_terms(0) == []
