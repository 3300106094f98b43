"""Start states from easy to hard: shares of kinds, rates of success, and saved state."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from manyworlds.envs import mdp
from manyworlds.managers import CurriculumTermCfg, EventTermCfg
from tests.envs.mdp.robot import make_env

KINDS = ("low", "middle", "high")


def at_height(height: float):
    """Return a start state: the root at a height [m]."""

    def start(env, env_ids):
        state = env.scene["robot"].data.default_root_state[env_ids]
        state[:, 2] = height
        env.scene["robot"].write_root_state_to_sim(state, env_ids)

    return start


def make(success, num_envs: int = 100, **params):
    """Build an environment whose episodes start at three heights."""
    kinds = {name: at_height(float(i)) for i, name in enumerate(KINDS)}
    start = EventTermCfg(
        func=mdp.reset_to_start_states,
        mode=params.pop("mode", "reset"),
        params={"kinds": kinds, "success": success, **params},
    )
    log = CurriculumTermCfg(func=mdp.start_state_rates, params={"event_name": "start"})
    env = make_env(num_envs, events={"start": start}, curriculum={"rates": log})
    env.reset()
    return env, env.event_manager.get_term_cfg("start").func


def heights(env) -> torch.Tensor:
    """Heights of the roots [m]."""
    return env.scene["robot"].data.root_link_pos_w[:, 2].round()


def play(env) -> None:
    """End the episodes of all worlds, and start new ones."""
    env.has_stepped[:] = True
    env.reset()


def never(env) -> torch.Tensor:
    """Count no episode as a success."""
    return torch.zeros(env.num_envs, dtype=torch.bool)


def always(env) -> torch.Tensor:
    """Count each episode as a success."""
    return ~never(env)


def test_only_the_easiest_kind_is_open_until_it_succeeds(engine):
    """Fail in all episodes: they keep starting at the lowest height; the first has no rate."""
    env, term = make(never, num_envs=8)
    for _ in range(3):
        play(env)
        assert not heights(env).any()
    assert not term.rates.any() and term.shares.tolist() == [1.0, 0.0, 0.0]


def test_success_opens_the_next_kind_and_shifts_episodes_to_it():
    """Succeed below the top only: most episodes start where they fail, some everywhere."""
    env, term = make(lambda env: heights(env) < 2.0)
    opened = []
    for _ in range(40):
        opened.append(len(heights(env).unique()))
        play(env)
    assert opened == sorted(opened) and {1, 2, 3} == set(opened)
    assert term.rates[0] > 0.9 and term.rates[1] > 0.9 and term.rates[2] == 0.0
    counts = torch.bincount(heights(env).long(), minlength=3) / env.num_envs
    assert torch.allclose(counts, term.shares, atol=0.15)
    assert counts[2] > 0.7 and counts.min() > 0.02
    assert mdp.start_state_rates(env, None, "start")["high"] == 0.0
    assert env.extras["log"]["Curriculum/rates/low"] > 0.9


def test_rates_are_means_of_many_episodes():
    """Succeed in half of the episodes: the rate becomes 0.5 and opens the next kind at 0.4."""
    env, term = make(lambda env: torch.arange(env.num_envs) % 2 == 0, opens_at=0.4)
    for _ in range(2):
        play(env)
    assert 0.1 < term.rates[0] < 0.4 and not heights(env).any()
    for _ in range(8):
        play(env)
    assert term.rates[0] == pytest.approx(0.5, abs=0.1) and heights(env).any()


def test_only_given_worlds_start_again():
    """Reset some worlds: the others keep their states, and no world is no work."""
    env, term = make(always, num_envs=6)
    before = heights(env)
    term.rates[:] = 0.9
    term._open[:] = True
    env.reset(env_ids=torch.tensor([1, 4]))
    kept = torch.tensor([0, 2, 3, 5])
    assert torch.equal(heights(env)[kept], before[kept])
    params: dict[str, Any] = env.event_manager.get_term_cfg("start").params
    term(env, torch.tensor([], dtype=torch.long), **params)


def test_progress_is_saved():
    """Load the state of one environment into another: it goes on with the same shares."""
    env, term = make(lambda env: heights(env) < 2.0, num_envs=50)
    for _ in range(40):
        play(env)
    _, fresh = make(never, num_envs=50)
    fresh.load_state_dict(term.state_dict())
    assert torch.equal(fresh.shares, term.shares) and fresh.shares.min() > 0.0
    assert torch.equal(fresh.rates, term.rates)


def test_wrong_settings_are_refused():
    """Name what is wrong: the mode, the kinds, the rate, or the event that is logged."""
    with pytest.raises(ValueError, match="its mode is 'startup': use 'reset'"):
        make(never, 2, mode="startup")
    with pytest.raises(ValueError, match="has no kinds"):
        make(never, 2, kinds={})
    for rate in (0.0, 1.0, 2.0):
        with pytest.raises(ValueError, match=f"between 0 and 1, got {rate}"):
            make(never, 2, opens_at=rate)
    push = EventTermCfg(func=mdp.reset_scene_to_default, mode="reset")
    env = make_env(events={"other": push})
    with pytest.raises(TypeError, match="Event 'other' is not a reset_to_start_states"):
        mdp.start_state_rates(env, None, "other")
