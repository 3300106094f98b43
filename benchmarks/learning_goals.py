"""Measures of what a policy has learned, and the goals of the tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from manyworlds.cli.evaluate import UNSEEN_SEED
from manyworlds.cli.policies import load_policy
from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.rl.evaluation import Evaluation, evaluate
from manyworlds.tasks import load_env_cfg
from manyworlds.tasks.tracking.scripts.evaluate import EvaluateOptions, run_evaluate
from manyworlds.tasks.velocity.velocity_env_cfg import hold_terrain_level

WORLDS = 256
ROUGH_LEVEL = 5
"""Level of the terrain's curriculum on which policies for rough terrain are evaluated."""

SUCCESS = "success"
"""Termination of tasks that end with success."""

Measure = Callable[[Evaluation], float]


@dataclass(frozen=True)
class Goal:
    """Results that a policy should reach within some time of training on two idle cores."""

    minutes: float
    minimum: dict[str, float]
    """Lower bounds of measures by name."""
    maximum: dict[str, float] = field(default_factory=dict)
    """Upper bounds of measures by name."""

    def __str__(self) -> str:
        """Return the bounds as text."""
        bounds = [f"{name} ≥ {bound:g}" for name, bound in self.minimum.items()]
        bounds += [f"{name} ≤ {bound:g}" for name, bound in self.maximum.items()]
        return f"{', '.join(bounds)} in {self.minutes:g} min"

    def is_met(self, measures: dict[str, float], minutes: float) -> bool:
        """Return True if all bounds are kept."""
        return (
            minutes <= self.minutes
            and all(measures[name] >= bound for name, bound in self.minimum.items())
            and all(measures[name] <= bound for name, bound in self.maximum.items())
        )


def _end(name: str) -> Measure:
    return lambda result: result.ends[name] / result.episodes


def _term(name: str) -> Measure:
    return lambda result: result.terms[name]


def _metric(name: str) -> Measure:
    return lambda result: result.metrics[name]


_WALKING: dict[str, Measure] = {
    "full episodes": _end("time_out"),
    "linear tracking": _term("track_linear_velocity"),
    "angular tracking": _term("track_angular_velocity"),
    "action rate": _term("action_rate_l2"),
}
_MEASURES: dict[str, dict[str, Measure]] = {
    "Velocity": _WALKING,
    "Lift": {"lifted to the target": _metric("lift_height/episode_success")},
    "Push": {"pushed to the goal": _end(SUCCESS)},
    "Cartpole": {"reward": _term("smooth_reward")},
    "Reach": {"reward": _term("reach")},
}
_QUADRUPED = Goal(
    5.0,
    {"full episodes": 0.95, "linear tracking": 0.85, "angular tracking": 0.75},
    {"action rate": 1.5},
)
_ROUGH = Goal(30.0, {"full episodes": 0.8, "linear tracking": 0.6, "angular tracking": 0.6})
_BIPED = Goal(60.0, {"full episodes": 0.8, "linear tracking": 0.7, "angular tracking": 0.6})
GOALS = {
    "Velocity-Flat-Quadruped": _QUADRUPED,
    "Velocity-Flat-Go1": _QUADRUPED,
    "Velocity-Rough-Quadruped": _ROUGH,
    "Velocity-Rough-Go1": _ROUGH,
    "Velocity-Flat-Humanoid": _BIPED,
    "Velocity-Flat-G1": _BIPED,
    "Tracking-Flat-Humanoid": Goal(60.0, {"finished clips": 0.8}),
    "Lift-Cube-Arm": Goal(45.0, {"lifted to the target": 0.8}),
    "Lift-Cube-Yam": Goal(45.0, {"lifted to the target": 0.8}),
}
"""Goals by task; other tasks have none."""


def evaluate_task(
    task: str, rl_cfg: RslRlOnPolicyRunnerCfg, checkpoint: Path
) -> tuple[Evaluation, dict[str, float]]:
    """Evaluate a policy over one episode in each of 256 new worlds of the task as registered.

    Policies for rough terrain are evaluated on `ROUGH_LEVEL`; tracking tasks are evaluated twice,
    as registered and over the whole clip from its start.

    Returns:
        The evaluation, and the measures of the task.
    """
    cfg = load_env_cfg(task)
    cfg.scene.num_envs, cfg.seed = WORLDS, UNSEEN_SEED
    if "-Rough-" in task:
        hold_terrain_level(cfg, ROUGH_LEVEL)
    env = ManagerBasedRlEnv(cfg)
    result = evaluate(env, load_policy(env, rl_cfg, checkpoint))
    if task.startswith("Tracking"):
        options = EvaluateOptions(checkpoint=checkpoint, num_envs=WORLDS, seed=UNSEEN_SEED)
        return result, {"finished clips": run_evaluate(task, options)["success_rate"]}
    measures = _MEASURES[task.split("-")[0]]
    return result, {name: measure(result) for name, measure in measures.items()}
