"""Images for docs/learning.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from manyworlds.cli.evaluate import UNSEEN_SEED
from manyworlds.cli.policies import Policy, load_policy
from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.tasks import load_env_cfg
from manyworlds.utils.devices import torch_threads
from manyworlds.viewer.offscreen_renderer import OffscreenRenderer

_COLORS = ("#29548f", "#db8c28", "#4b8f4b")
_PICTURES = 6
_FOOTFALLS_S = 2.0
_SPEED = 0.8  # [m/s]


def draw_curve(line: dict[str, Any], path: Path) -> None:
    """Draw the course of rewards, as shares of their maximum, and the result of the evaluation."""
    figure = Figure(figsize=(7.2, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for (name, points), color in zip(line["curves"].items(), _COLORS, strict=False):
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
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=9, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.17))
    _save(figure, path)


def draw_policy(task: str, rl_cfg: RslRlOnPolicyRunnerCfg, checkpoint: Path, path: Path) -> None:
    """Draw a policy in action: a sequence of images and, for robots with feet, footfalls."""
    env, policy = _one_world(task, rl_cfg, checkpoint)
    sensor: Any = env.scene.sensors.get("feet_ground_contact")
    start, every = (2.0, 0.08) if sensor is not None else (0.0, 1.0)  # [s]
    pictures, touching = [], []
    renderer = OffscreenRenderer(env.sim.mj_model, env.cfg.viewer)
    due = {round((start + i * every) / env.step_dt) for i in range(_PICTURES)}
    last = max(*due, round((start + _FOOTFALLS_S) / env.step_dt) if sensor is not None else 0)
    obs = env.get_observations()
    with torch_threads(1), torch.inference_mode():
        for step in range(last + 1):
            if step in due:
                renderer.update(env.sim.data, env_idx=0)
                pictures.append(renderer.render().copy())
            if sensor is not None and step * env.step_dt >= start:
                touching.append((sensor.data.found[0] > 0).tolist())
            obs = env.step(policy(obs))[0]
    renderer.close()
    figure = Figure(figsize=(9.6, 1.5 if sensor is None else 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    top, *below = figure.subplots(1 if sensor is None else 2, 1, squeeze=False)[:, 0]
    top.imshow(np.concatenate(pictures, axis=1))
    top.axis("off")
    shown = f"pictures every {every:g} s"
    if sensor is None:
        top.set_title(shown, fontsize=9)
    else:
        axes = below[0]
        feet = [name.removesuffix("_collision") for name in sensor.primary_names]
        _draw_footfalls(axes, np.array(touching), env.step_dt, feet)
        axes.set_xlabel(f"time [s]; bars: foot on the ground; {shown}")
    _save(figure, path)


def _one_world(
    task: str, rl_cfg: RslRlOnPolicyRunnerCfg, checkpoint: Path
) -> tuple[ManagerBasedRlEnv, Policy]:
    """One world in which a robot walks straight ahead, or does what its task asks."""
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
    return env, load_policy(env, rl_cfg, checkpoint)


def _draw_footfalls(axes: Axes, touching: np.ndarray, step_dt: float, feet: list[str]) -> None:
    """Draw when each foot touches the ground."""
    for row, column in enumerate(touching.T):
        edges = np.diff(column.astype(int), prepend=0, append=0)
        starts, ends = np.flatnonzero(edges > 0), np.flatnonzero(edges < 0)
        spans = [(a * step_dt, (b - a) * step_dt) for a, b in zip(starts, ends, strict=True)]
        axes.broken_barh(spans, (row + 0.15, 0.7), color=_COLORS[0])
    axes.set_yticks(np.arange(len(feet)) + 0.5, feet)
    axes.set_xlim(0, len(touching) * step_dt)
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)


def _save(figure: Figure, path: Path) -> None:
    """Write a small PNG of 256 colors."""
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.canvas.draw()  # type: ignore[attr-defined]
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]  # type: ignore[attr-defined]
    image = Image.fromarray(np.ascontiguousarray(pixels))
    image.quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)
