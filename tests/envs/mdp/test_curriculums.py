"""Curricula: values by stage, what is logged, and resuming."""

import pytest
import torch

from manyworlds.envs import mdp
from manyworlds.managers import EventTermCfg, RewardTermCfg, TerminationTermCfg
from manyworlds.managers.manager_base import ManagerTermBaseCfg
from tests.envs.mdp.robot import make_env

STAGES = [
    {"step": 0, "weight": -0.01},
    {"step": 10, "params": {"std": 2.0}},
    {"step": 20, "weight": -1.0, "params": {"std": 1.5}},
]


def scaled(env, std: float, other: float = 0.0) -> torch.Tensor:
    """Return a reward, or a termination, that its parameters decide."""
    return torch.full((env.num_envs,), 1.0 / std + other)


def late(env, limit: float) -> torch.Tensor:
    """End no episode."""
    return env.episode_length_buf > limit


def push(env, env_ids, strength: float) -> None:
    """Do nothing."""


@pytest.fixture
def env(engine):
    """Build an environment with a reward, a termination and an event that have parameters."""
    reward = RewardTermCfg(func=scaled, weight=-0.5, params={"std": 4.0, "other": 1.0})
    termination = TerminationTermCfg(func=late, params={"limit": 100.0})
    event = EventTermCfg(func=push, mode="reset", params={"strength": 1.0})
    return make_env(
        rewards={"pose": reward}, terminations={"late": termination}, events={"push": event}
    )


def curriculum(env, stages, kind=mdp.reward_curriculum):
    """Build a curriculum, and what calls it at a step."""
    name = (
        {"reward_name": "pose"} if kind is mdp.reward_curriculum else {"termination_name": "late"}
    )
    params = {**name, "stages": stages}
    term = kind(ManagerTermBaseCfg(func=kind, params=params), env)

    def at(step: int) -> dict[str, float]:
        env.common_step_counter = step
        log = term(env, None, **params)
        assert all(isinstance(value, torch.Tensor) for value in log.values())
        return {key: value.item() for key, value in log.items()}

    return term, at


def test_rewards_follow_the_last_stage_reached(env):
    """Set what stages name, keep what they leave out, and log staged keys only."""
    _, at = curriculum(env, STAGES)
    cfg = env.reward_manager.get_term_cfg("pose")
    for step, weight, std in ((0, -0.01, 4.0), (9, -0.01, 4.0), (10, -0.01, 2.0), (25, -1.0, 1.5)):
        assert at(step) == pytest.approx({"weight": weight, "std": std})
        assert (cfg.weight, cfg.params) == (weight, {"std": std, "other": 1.0})
    reward = env.reward_manager.compute(1.0)
    torch.testing.assert_close(reward, torch.full((4,), -(1 / 1.5 + 1)))
    _, at = curriculum(env, [{"step": 30, "params": {"other": 2.0}}])
    assert at(0) == {"other": 1.0} and at(30) == {"other": 2.0} and cfg.weight == -1.0


def test_terminations_have_parameters_only(env):
    """Set a termination's parameters; it has no weight."""
    _, at = curriculum(env, [{"step": 5, "params": {"limit": 3.0}}], mdp.termination_curriculum)
    cfg = env.termination_manager.get_term_cfg("late")
    assert at(4) == {"limit": 100.0} and at(5) == {"limit": 3.0}
    assert cfg.params["limit"] == 3.0
    with pytest.raises(ValueError, match="weight"):
        curriculum(env, [{"step": 5, "weight": 3.0}], mdp.termination_curriculum)


def test_stages_are_checked_when_they_are_built(env):
    """Refuse steps that fall, parameters that do not exist, and unknown terms."""
    with pytest.raises(ValueError, match="nondecreasing"):
        curriculum(env, [{"step": 5, "weight": 1.0}, {"step": 4, "weight": 2.0}])
    with pytest.raises(KeyError, match="unknown param"):
        curriculum(env, [{"step": 5, "params": {"stdd": 1.0}}])
    with pytest.raises(ValueError, match="wieght"):
        curriculum(env, [{"step": 5, "wieght": 1.0}])
    params = {"reward_name": "gait", "stages": []}
    with pytest.raises(ValueError, match="no term 'gait'"):
        mdp.reward_curriculum(ManagerTermBaseCfg(func=mdp.reward_curriculum, params=params), env)


def test_a_resumed_run_has_the_values_that_it_had(env):
    """Set the values when a state is loaded, forwards or backwards."""
    term, at = curriculum(env, STAGES)
    cfg = env.reward_manager.get_term_cfg("pose")
    start = term.state_dict()
    at(20)
    end = term.state_dict()
    term.load_state_dict(start)
    assert (cfg.weight, cfg.params["std"]) == (-0.5, 4.0)
    term.load_state_dict(end)
    assert (cfg.weight, cfg.params["std"]) == (-1.0, 1.5)


def test_events_follow_their_stages(env):
    """Change parameters of an event by step; refuse what it does not have, and weights."""
    cfg = env.event_manager.get_term_cfg("push")
    params = {"event_name": "push", "stages": [{"step": 5, "params": {"strength": 2.0}}]}
    term = mdp.event_curriculum(ManagerTermBaseCfg(mdp.event_curriculum, params=params), env)
    for step, strength in ((4, 1.0), (5, 2.0)):
        env.common_step_counter = step
        assert term(env, None, **params)["strength"].item() == strength == cfg.params["strength"]
    for stage, error in (({"params": {"no": 1.0}}, KeyError), ({"weight": 1.0}, ValueError)):
        params = {"event_name": "push", "stages": [{"step": 5, **stage}]}
        with pytest.raises(error):
            mdp.event_curriculum(ManagerTermBaseCfg(mdp.event_curriculum, params=params), env)
