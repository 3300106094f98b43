"""Evaluation of a policy by the rewards of its task."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.envs.types import VecEnvObs
from manyworlds.managers.not_finite import mean_of_finite
from manyworlds.utils.devices import torch_threads
from manyworlds.utils.table import render_table


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Mean results over one episode in each world."""

    episodes: int
    episode_length_s: float
    """Maximum length of an episode [s]."""
    mean_length_s: float
    """Mean length of the episodes [s]."""
    mean_return: float
    """Mean sum of rewards of an episode."""
    ends: dict[str, int]
    """Number of episodes that each termination ended; several terminations may end one episode."""
    weights: dict[str, float]
    """Weights of the rewards."""
    terms: dict[str, float]
    """Sum of each unweighted reward divided by the maximum episode length, so that time after a
    failure counts as zero. For a reward of at most 1, this is its fraction of the maximum."""
    metrics: dict[str, float]
    """Metrics of the commands, `command/metric`, before the last control step of the episodes;
    worlds in which they are not finite are left out."""

    def __str__(self) -> str:
        """Return a summary as text."""
        rewards = render_table(
            f"{self.episodes} episodes of at most {self.episode_length_s:g} s",
            ("reward", "mean", "weight", "weighted"),
            [
                (name, round(mean, 4), self.weights[name], round(mean * self.weights[name], 4))
                for name, mean in self.terms.items()
            ],
        )
        ends = render_table(
            "",
            ("end", "episodes", "%"),
            [(name, n, round(100 * n / self.episodes, 1)) for name, n in self.ends.items()],
        )
        metrics = "".join(f"{name} {value:.4f}\n" for name, value in self.metrics.items())
        return (
            f"{rewards}\n{ends}\n{metrics}"
            f"mean length {self.mean_length_s:.2f} s, mean return {self.mean_return:.2f}"
        )


@torch.inference_mode()
def evaluate(env: ManagerBasedRlEnv, policy: Callable[[VecEnvObs], torch.Tensor]) -> Evaluation:
    """Run one episode in each world, from its reset to its end.

    Args:
        env: the environment, with `auto_reset`.
        policy: function from observations to actions, shape [num_envs, total_action_dim].
    """
    with torch_threads(1):
        obs, _ = env.reset()
        rewards = env.reward_manager
        terminations = env.termination_manager
        names = rewards.active_terms
        sums = torch.zeros(len(names), device=env.device)
        total = torch.zeros((), device=env.device)
        steps = torch.zeros((), dtype=torch.long, device=env.device)
        ends = torch.zeros(len(terminations.active_terms), dtype=torch.long, device=env.device)
        running = torch.ones(env.num_envs, dtype=torch.bool, device=env.device)
        metrics: dict[str, torch.Tensor] = {}
        for _ in range(env.max_episode_length):
            for command in env.command_manager.active_terms:
                term = env.command_manager.get_term(command)
                for metric, value in term.metrics.items():
                    name = f"{command}/{metric}"
                    metrics[name] = torch.where(running, value, metrics.get(name, value))
            obs, reward, *_ = env.step(policy(obs))
            sums += rewards.step_reward[running].sum(dim=0)
            total += reward[running].sum()
            steps += running.sum()
            for i, name in enumerate(terminations.active_terms):
                ends[i] += (terminations.get_term(name) & running).sum()
            running &= ~env.reset_buf
            if not running.any():
                break
    weights = {name: rewards.get_term_cfg(name).weight for name in names}
    full = env.num_envs * env.max_episode_length
    return Evaluation(
        episodes=env.num_envs,
        episode_length_s=env.max_episode_length_s,
        mean_length_s=steps.item() * env.step_dt / env.num_envs,
        mean_return=total.item() / env.num_envs,
        ends=dict(zip(terminations.active_terms, ends.tolist(), strict=True)),
        weights={name: weight for name, weight in weights.items() if weight},
        terms={
            name: value / (full * weights[name])
            for name, value in zip(names, sums.tolist(), strict=True)
            if weights[name]
        },
        metrics={name: mean_of_finite(value).item() for name, value in metrics.items()},
    )


def bucket_table(results: Mapping[str, Evaluation]) -> str:
    """Return a table of evaluations by bucket: lengths, returns, ends and metrics.

    Args:
        results: evaluations of the same task by bucket; terms may be missing in some.
    """
    ends = dict.fromkeys(end for result in results.values() for end in result.ends)
    metrics = dict.fromkeys(name for result in results.values() for name in result.metrics)
    rows: list[list[object]] = []
    for name, result in results.items():
        row: list[object] = [name, round(result.mean_length_s, 2), round(result.mean_return, 2)]
        row += [result.ends.get(end, "") for end in ends]
        row += [round(result.metrics.get(metric, math.nan), 4) for metric in metrics]
        rows.append(row)
    first = next(iter(results.values()))
    title = f"{first.episodes} episodes of at most {first.episode_length_s:g} s in each bucket"
    return render_table(title, ("bucket", "length [s]", "return", *ends, *metrics), rows)
