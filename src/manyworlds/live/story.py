"""Story of a remembered episode: observations, actions, rewards and terminations over time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import torch

from manyworlds.envs.mdp import terminations
from manyworlds.live.fork import env_from_snapshot
from manyworlds.live.record import WorldRecord, WorldReplay, quick_checksum
from manyworlds.managers import SceneEntityCfg
from manyworlds.sensor import ContactSensor
from manyworlds.utils.table import render_table

if TYPE_CHECKING:
    from manyworlds.envs.manager_based_rl_env import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
    from manyworlds.managers.observation_manager import GroupObs

_SHOWN_REWARDS = 5
_ROBOT = SceneEntityCfg("robot")


@dataclass(frozen=True)
class StoryStep:
    """Control step of an episode."""

    time: float
    """Time in the episode after the step [s]."""
    observations: dict[str, list[float]]
    """Observations after the step, by `group/term`."""
    action: dict[str, list[float]]
    """Unprocessed actions, by term."""
    rewards: dict[str, float]
    """Weighted rewards by term, per second."""
    nearness: dict[str, float]
    """Share of the way to each termination whose measure is known; 1 ends the episode."""
    ended_by: tuple[str, ...]


@dataclass(frozen=True)
class EpisodeStory:
    """Last seconds of an episode, simulated again."""

    env_id: int
    steps: list[StoryStep]
    equal_steps: int
    """Number of steps that were equal to those of the training, bit for bit. The step that ends an
    episode is not compared, because the training has begun another episode in it."""
    randomized: dict[str, Any]
    """Model rows of the world that differ from the compiled model, by field."""

    @property
    def ended_by(self) -> tuple[str, ...]:
        """Terminations that ended the episode; empty if it continues."""
        return self.steps[-1].ended_by

    def __str__(self) -> str:
        """Return why the episode ended, as text."""
        last = self.steps[-1]
        first = self.steps[0]
        ends = ", ".join(self.ended_by) or "continues"
        lines = [f"world {self.env_id}, {last.time:.2f} s after the start of its episode: {ends}"]
        for name in last.nearness:
            near = [step.nearness[name] for step in self.steps]
            half = next(step.time for step in self.steps if step.nearness[name] >= 0.5 * max(near))
            lines.append(
                f"  {name}: {near[0]:.2f} at {first.time:.2f} s, {near[-1]:.2f} at "
                f"{last.time:.2f} s of a limit of 1; above half of its maximum since {half:.2f} s"
            )
        tenth = max(1, len(self.steps) // 10)
        rows = sorted(
            (
                _mean(self.steps[-tenth:], name) - _mean(self.steps[:tenth], name),
                name,
                _mean(self.steps[:tenth], name),
                _mean(self.steps[-tenth:], name),
            )
            for name in last.rewards
        )
        table = [(name, round(a, 3), round(b, 3)) for _, name, a, b in rows[:_SHOWN_REWARDS]]
        lines.append(
            render_table("rewards that fell most", ("reward", "at first", "at last"), table)
        )
        return "\n".join(lines)


def episode_story(record: WorldRecord, cfg: ManagerBasedRlEnvCfg) -> EpisodeStory:
    """Simulate the last seconds of an episode again, and note what each step was like.

    Args:
        record: the record; see `WorldMemory`.
        cfg: the task.

    Raises:
        ValueError: the record is of another model, or has no steps.
    """
    if not record.steps:
        raise ValueError("The record has no steps: nothing is remembered of this episode.")
    env = env_from_snapshot(record.snapshot, cfg)
    env.set_auto_reset(False)
    randomized = {
        name.removeprefix("model."): value[0].tolist()
        for name, value in record.snapshot.state["sim"].items()
        if name.startswith("model.")
    }
    replay = WorldReplay(env, record.steps, quick_checksum)
    steps = []
    try:
        while not replay.ended:
            action = replay.begin()
            with torch.no_grad():
                env.step(action)
            steps.append(step_of(env))
            replay.end()
    finally:
        env.close()
    return EpisodeStory(record.snapshot.env_id, steps, replay.done, randomized)


def nearness(env: ManagerBasedRlEnv, name: str) -> float | None:
    """Return the share of the way to a termination in the first world; None if it is not known."""
    term = env.termination_manager.get_term_cfg(name)
    measure = _MEASURES.get(term.func)
    if measure is None:
        return None
    return measure(env, **term.params)


def step_of(env: ManagerBasedRlEnv) -> StoryStep:
    """Return what the last control step of the first world was like."""
    manager = env.termination_manager
    near = {name: nearness(env, name) for name in manager.active_terms}
    rewards = env.reward_manager.get_active_iterable_terms(0)
    return StoryStep(
        time=int(env.episode_length_buf[0]) * env.step_dt,
        observations=_observations(env),
        action={n: list(v) for n, v in env.action_manager.get_active_iterable_terms(0)},
        rewards={name: float(values[0]) for name, values in rewards},
        nearness={name: value for name, value in near.items() if value is not None},
        ended_by=tuple(n for n in manager.active_terms if bool(manager.get_term(n)[0])),
    )


def _observations(env: ManagerBasedRlEnv) -> dict[str, list[float]]:
    """Return the observations that the policy sees, by group and term."""
    manager = env.observation_manager
    found: dict[str, list[float]] = {}
    observed = cast("dict[str, GroupObs]", env.obs_buf)
    for group, value in observed.items():
        names = manager.active_terms[group]
        if isinstance(value, dict):
            parts = [value[name][0] for name in names]
        else:
            widths = [shape[-1] for shape in manager.group_obs_term_dim[group]]
            parts = value[0].split(widths, dim=-1)
        for name, part in zip(names, parts, strict=True):
            found[f"{group}/{name}"] = part.flatten().tolist()
    return found


def _mean(steps: list[StoryStep], name: str) -> float:
    return sum(step.rewards[name] for step in steps) / len(steps)


def _tilt(env: ManagerBasedRlEnv, limit_angle: float, asset_cfg: SceneEntityCfg = _ROBOT) -> float:
    gravity = env.scene.entity(asset_cfg.name).data.projected_gravity_b
    if not gravity[0].any():
        return 0.0
    return float(torch.acos((-gravity[0, 2]).clamp(-1.0, 1.0))) / limit_angle


def _height(
    env: ManagerBasedRlEnv, minimum_height: float, asset_cfg: SceneEntityCfg = _ROBOT
) -> float:
    height = float(env.scene.entity(asset_cfg.name).data.root_link_pos_w[0, 2])
    if height <= 0.0:
        return 1.0
    return minimum_height / height


def _force(env: ManagerBasedRlEnv, sensor_name: str, force_threshold: float = 10.0) -> float:
    data = env.scene.sensor(sensor_name, ContactSensor).data
    forces = data.force
    if data.force_history is not None:
        forces = data.force_history
    if forces is None:
        return 0.0
    return float(forces[0].norm(dim=-1).max()) / force_threshold


def _time(env: ManagerBasedRlEnv) -> float:
    return float(env.episode_length_buf[0]) / max(1, env.max_episode_length)


_MEASURES: dict[Any, Callable[..., float]] = {
    terminations.bad_orientation: _tilt,
    terminations.root_height_below_minimum: _height,
    terminations.illegal_contact: _force,
    terminations.time_out: _time,
}
