"""Images for docs/learning.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from manyworlds.cli.evaluate import UNSEEN_SEED
from manyworlds.cli.policies import load_policy
from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.tasks import load_env_cfg
from manyworlds.utils.figures import COLORS, new_figure, save_png, style_axes
from manyworlds.viewer import policy_pictures

_SPEED = 0.8  # [m/s]


def draw_curve(line: dict[str, Any], path: Path) -> None:
    """Draw the course of rewards, as shares of their maximum, and the result of the evaluation."""
    figure = new_figure(7.2, 3.6, dpi=100)
    axes = figure.subplots()
    for (name, points), color in zip(line["curves"].items(), COLORS, strict=False):
        minutes, shares = np.array(points).T
        axes.plot(minutes, shares, color=color, lw=2, label=f"{name}, while it learns")
        final = line["evaluation"]["terms"][name]
        axes.plot(
            [minutes[-1]], [final], "o", color=color, clip_on=False, label=f"evaluated: {final:.2f}"
        )
    axes.axhline(0.8, color="0.5", lw=1, ls=":")
    axes.set(ylim=(0, 1), xlabel="training time [min]", ylabel="share of the maximum")
    axes.set_xlim(left=0)
    axes.set_title(line["task"], loc="left", fontsize=11)
    style_axes(axes)
    axes.legend(frameon=False, fontsize=9, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.17))
    save_png(figure, path)


def draw_policy(task: str, rl_cfg: RslRlOnPolicyRunnerCfg, checkpoint: Path, path: Path) -> None:
    """Draw a robot that walks straight ahead, or does what its task asks."""
    cfg = load_env_cfg(task, play=True)
    cfg.scene.num_envs, cfg.seed = 1, UNSEEN_SEED
    cfg.viewer.width, cfg.viewer.height = 240, 180
    twist: Any = cfg.commands.get("twist")
    if twist is not None:
        twist.heading_command = False
        twist.rel_standing_envs, twist.rel_forward_envs = 0.0, 1.0
        twist.ranges.lin_vel_x = (_SPEED, _SPEED)
        cfg.viewer.distance *= 0.75
    env = ManagerBasedRlEnv(cfg)
    policy_pictures.draw_policy(env, load_policy(env, rl_cfg, checkpoint), path)
