"""Images for docs/learning.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.learning_goals import SUCCESS
from manyworlds.cli.evaluate import UNSEEN_SEED
from manyworlds.cli.policies import load_policy
from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.tasks import load_env_cfg
from manyworlds.tasks.velocity.velocity_env_cfg import hold_terrain_level
from manyworlds.utils.figures import COLORS, new_figure, save_png, style_axes
from manyworlds.viewer import policy_pictures

_GRID = 100
_SPEED = 0.8  # [m/s]


def draw_curves(lines: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw the course of rewards, as shares of their maximum, and the results of evaluations.

    Tasks that end with success have the share of episodes with success instead. Several seeds are
    drawn as thin lines, with their mean and the range from minimum to maximum.
    """
    figure = new_figure(7.2, 3.6, dpi=100)
    axes = figure.subplots()
    for name, color in zip(lines[0]["curves"], COLORS, strict=False):
        curves = [np.array(line["curves"][name]).T for line in lines]
        finals = [_result(line["evaluation"], name) for line in lines]
        if len(lines) > 1:
            end = min(minutes[-1] for minutes, _ in curves)
            grid = np.linspace(max(minutes[0] for minutes, _ in curves), end, _GRID)
            shares = np.array([np.interp(grid, *line) for line in curves])
            axes.fill_between(grid, shares.min(0), shares.max(0), color=color, alpha=0.2, lw=0)
            for line in curves:
                axes.plot(*line, color=color, lw=0.6, alpha=0.5)
            curves = [np.array([grid, shares.mean(0)])]
        axes.plot(*curves[0], color=color, lw=2, label=f"{name}, while it learns")
        label = f"evaluated: {', '.join(f'{final:.2f}' for final in finals)}"
        at = [curves[0][0][-1]] * len(finals)
        axes.plot(at, finals, "o", color=color, clip_on=False, label=label)
    of = "episodes" if SUCCESS in lines[0]["curves"] else "the maximum"
    axes.set(ylim=(0, 1), xlabel="training time [min]", ylabel=f"share of {of}")
    axes.set_xlim(left=0)
    seeds = ", ".join(str(line["seed"]) for line in lines)
    title = f"{lines[0]['task']}, seed{'s' if len(lines) > 1 else ''} {seeds}"
    axes.set_title(title, loc="left", fontsize=11)
    style_axes(axes)
    axes.legend(frameon=False, fontsize=9, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.17))
    save_png(figure, path)


def _result(evaluation: dict[str, Any], name: str) -> float:
    """Return the evaluated value that a curve ends at."""
    if name == SUCCESS:
        return evaluation["ends"][name] / evaluation["episodes"]
    return evaluation["terms"][name]


def draw_policy(task: str, rl_cfg: RslRlOnPolicyRunnerCfg, checkpoint: Path, path: Path) -> None:
    """Draw a robot that walks straight ahead, or does what its task asks."""
    cfg = load_env_cfg(task, play=True)
    cfg.scene.num_envs, cfg.seed = 1, UNSEEN_SEED
    cfg.viewer.width, cfg.viewer.height = 240, 180
    terrain = cfg.scene.terrain
    if terrain is not None and terrain.terrain_generator is not None:
        # As in the evaluation, where level 5 of 10 has the same difficulty.
        hold_terrain_level(cfg, terrain.terrain_generator.num_rows // 2)
    twist: Any = cfg.commands.get("twist")
    if twist is not None:
        twist.heading_command = False
        twist.rel_standing_envs, twist.rel_forward_envs = 0.0, 1.0
        twist.ranges.lin_vel_x = (_SPEED, _SPEED)
        cfg.viewer.distance *= 0.75
    env = ManagerBasedRlEnv(cfg)
    policy_pictures.draw_policy(env, load_policy(env, rl_cfg, checkpoint), path)
