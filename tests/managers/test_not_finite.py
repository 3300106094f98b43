"""Values that are not finite after the first step: counted, named once, or an error."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv, mdp
from manyworlds.managers import (
    CommandTerm,
    CommandTermCfg,
    MetricsTermCfg,
    ObservationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from manyworlds.managers.not_finite import mean_of_finite


def broken_from(step: int, *worlds: int, value: float = torch.nan) -> Callable[..., torch.Tensor]:
    """Return a term that is one, and a bad value in some worlds from a control step on."""

    def term(env: ManagerBasedRlEnv) -> torch.Tensor:
        values = torch.ones(env.num_envs, device=env.device)
        if env.common_step_counter >= step:
            values[list(worlds)] = value
        return values

    return term


def step(env: ManagerBasedRlEnv) -> tuple[Any, dict[str, int], list[str]]:
    """Step without actions; return the reward, the counts and the warnings."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        _, reward, _, _, extras = env.step(torch.zeros(env.num_envs, 1, device=env.device))
    counts = {k: v for k, v in extras["log"].items() if k.startswith("Status/")}
    return reward, counts, [str(item.message) for item in told]


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_a_reward_is_counted_in_each_step_and_named_once(env_cfg, value):
    """Count it as zero; count its worlds in the log; name the term in the first step."""
    env_cfg.rewards = {
        "good": RewardTermCfg(func=broken_from(99), weight=1.0),
        "bad": RewardTermCfg(func=broken_from(3, 1, 2, value=value), weight=-2.0),
        "worse": RewardTermCfg(func=broken_from(4, 2, value=value), weight=1.0),
        "silent": RewardTermCfg(func=broken_from(3, 3), weight=1.0, nan_policy="sanitize"),
    }
    env = ManagerBasedRlEnv(env_cfg)
    dt = env.step_dt
    for _ in range(2):
        reward, counts, told = step(env)
        assert reward.tolist() == pytest.approx([dt] * 4) and not counts and not told
    reward, counts, told = step(env)
    assert reward.tolist() == pytest.approx([dt, 3 * dt, 3 * dt, 0.0])
    assert counts == {"Status/nan_reward": 3}
    [message] = told
    assert message.startswith("RewardManager term 'bad' is NaN or infinite in worlds [1, 2], where")
    reward, counts, told = step(env)
    assert counts == {"Status/nan_reward": 3}
    [message] = told
    assert "'worse' is NaN or infinite in worlds [2]" in message
    assert step(env)[1:] == ({"Status/nan_reward": 3}, [])


def test_a_reward_stops_the_training_if_asked(env_cfg):
    """Raise, and name the term and the worlds."""
    bad = RewardTermCfg(func=broken_from(2, 3), weight=1.0, nan_policy="error")
    env_cfg.rewards["bad"] = bad
    env = ManagerBasedRlEnv(env_cfg)
    step(env)
    with pytest.raises(ValueError, match=r"term 'bad' is NaN or infinite in worlds \[3\], and its"):
        step(env)
    bad.nan_policy = "stop"  # type: ignore[assignment]
    with pytest.raises(ValueError, match="'bad' has nan_policy 'stop': choose one of warn, sani"):
        ManagerBasedRlEnv(env_cfg)


def test_a_world_that_ends_because_it_diverged_stops_nothing(env_cfg):
    """Count the worlds whose state is bad, and name no term for them; name it where they go on."""
    env_cfg.rewards = {
        "cart": RewardTermCfg(
            func=lambda env: env.sim.data.qpos[:, 0], weight=1.0, nan_policy="error"
        )
    }
    env_cfg.terminations = {"bad_world": TerminationTermCfg(func=mdp.bad_world)}
    env = ManagerBasedRlEnv(env_cfg)
    env.sim.data.qpos[2, 0] = torch.nan
    _, counts, told = step(env)
    assert counts["Status/nan"] == counts["Status/nan_reward"] == 1 and not told
    assert not step(env)[1]
    env_cfg.terminations = {}
    env = ManagerBasedRlEnv(env_cfg)
    env.sim.data.qpos[2, 0] = torch.nan
    with pytest.raises(ValueError, match=r"'cart' is NaN or infinite in worlds \[2\]"):
        step(env)


def test_an_episode_metric_leaves_out_worlds_that_are_not_finite(env_cfg):
    """Log the mean of the others, and NaN if there are none; count the worlds."""
    env_cfg.metrics = {
        "last": MetricsTermCfg(func=broken_from(2, 1), reduce="last"),
        "mean": MetricsTermCfg(func=broken_from(1, 1, value=torch.inf)),
        "max": MetricsTermCfg(func=broken_from(1, 1), reduce="max"),
        "sum": MetricsTermCfg(func=broken_from(0, 1), reduce="sum", per_substep=True),
    }
    env = ManagerBasedRlEnv(env_cfg)
    assert step(env)[1] == {"Status/nan_metric": 1}
    _, counts, told = step(env)
    assert counts == {"Status/nan_metric": 1}
    [message] = told
    assert message.startswith("MetricsManager term 'last' is NaN or infinite in worlds [1], whose")
    _, extras = env.reset(env_ids=torch.tensor([0, 1, 3]))
    logged = {name: extras["log"][f"Episode_Metrics/{name}"].item() for name in env_cfg.metrics}
    assert logged == {"last": 1.0, "mean": 1.0, "max": 1.0, "sum": 2.0}
    step(env)
    _, extras = env.reset(env_ids=torch.tensor([1]))
    assert extras["log"]["Episode_Metrics/mean"].isnan()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env.state_dict()


class _Command(CommandTerm):
    """Command with a metric that is not finite in one world."""

    def __init__(self, cfg: CommandTermCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(cfg, env)
        self.metrics["error"] = torch.zeros(self.num_envs, device=self.device)

    @property
    def command(self) -> torch.Tensor:
        """Zero."""
        return torch.zeros(self.num_envs, 1, device=self.device)

    def _resample_command(self, env_ids: torch.Tensor) -> None:
        """Do nothing."""

    def _update_command(self, env_ids: torch.Tensor | None = None) -> None:
        """Do nothing."""

    def _update_metrics(self) -> None:
        self.metrics["error"][:] = torch.tensor([2.0, torch.nan, 2.0, 2.0])


class _CommandCfg(CommandTermCfg):
    """Configuration of the command."""

    def build(self, env: ManagerBasedRlEnv) -> CommandTerm:
        """Build the term."""
        return _Command(self, env)


def test_a_metric_of_a_command_leaves_out_worlds_that_are_not_finite(env_cfg):
    """Log the mean of the others; count the worlds and name the metric once."""
    env_cfg.commands = {"c": _CommandCfg(resampling_time_range=(1.0, 1.0))}
    env = ManagerBasedRlEnv(env_cfg)
    seen = [step(env)[1:] for _ in range(3)]
    assert seen[-1] == ({"Status/nan_command_metric": 1}, [])
    [message] = [text for _, told in seen for text in told]
    assert message.startswith("CommandManager term 'c/error' is NaN or infinite in worlds [1], ")
    _, extras = env.reset()
    assert extras["log"]["Metrics/c/error"] == 2.0


@pytest.mark.slow_on_warp
@pytest.mark.parametrize("per_term", [True, False])
@pytest.mark.parametrize("policy", ["sanitize", "warn"])
def test_observations_that_a_policy_replaces_are_counted(env_cfg, policy, per_term):
    """Count the worlds in the log of the next step, also if nothing is said."""
    group = env_cfg.observations["actor"]
    term = broken_from(1, 0, 3)
    group.terms["bad"] = ObservationTermCfg(func=lambda env: term(env).unsqueeze(1))
    group.nan_policy, group.nan_check_per_term = policy, per_term
    env = ManagerBasedRlEnv(env_cfg)
    assert not step(env)[1]
    _, counts, told = step(env)
    assert counts == {"Status/nan_observation": 2} and bool(told) == (policy == "warn")
    assert env.obs_buf["actor"].isfinite().all()  # type: ignore[union-attr]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env.state_dict()


def test_a_termination_that_returns_numbers_is_refused(env_cfg):
    """Name the term, the type and the remedy, when the environment is built."""
    env_cfg.terminations["bad"] = TerminationTermCfg(func=lambda env: broken_from(2, 1)(env) - 1.0)
    with pytest.raises(ValueError, match="'bad' returned torch.float32 numbers, expected booleans"):
        step(ManagerBasedRlEnv(env_cfg))


def test_means_of_finite_values():
    """Leave out what is not finite, in each row."""
    values = torch.tensor([[1.0, torch.nan, 3.0], [torch.inf, 4.0, -torch.inf]])
    assert mean_of_finite(values).tolist() == [2.0, 4.0]
    assert mean_of_finite(torch.tensor([torch.nan])).isnan()
    assert mean_of_finite(torch.tensor([1, 2])) == 1.5
