"""Pictures for docs/learning.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from manyworlds.cli.evaluate import UNSEEN_SEED
from manyworlds.cli.policy import load_policy
from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.tasks import load_env_cfg
from manyworlds.utils.torch import torch_threads
from manyworlds.viewer.offscreen_renderer import OffscreenRenderer

_COLORS = ("#29548f", "#db8c28", "#4b8f4b")
_PICTURES, _EVERY = 8, 3
"""Pictures in a strip, and control steps from one to the next."""
_SETTLE, _WATCH = 100, 100
"""Control steps before the strip, and of the footfalls."""
_SPEED = 0.8  # [m/s]


def draw_curve(line: dict[str, Any], path: Path) -> None:
    """Draw the course of rewards, as shares of their maximum, and what the evaluation found."""
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
    axes.legend(frameon=False, fontsize=9)
    _save(figure, path)


def draw_gait(task: str, rl_cfg: RslRlOnPolicyRunnerCfg, checkpoint: Path, path: Path) -> None:
    """Draw a policy at work: pictures one after the other and, of robots with feet, footfalls."""
    pictures, touching, names = _watch(task, rl_cfg, checkpoint)
    figure = Figure(figsize=(9.6, 3.4 if names else 1.9), layout="constrained")
    FigureCanvasAgg(figure)
    top, *below = figure.subplots(2 if names else 1, 1, squeeze=False)[:, 0]
    top.imshow(np.concatenate(pictures, axis=1))
    top.axis("off")
    for axes in below:
        _draw_footfalls(axes, touching, names)
    _save(figure, path)


def _watch(
    task: str, rl_cfg: RslRlOnPolicyRunnerCfg, checkpoint: Path
) -> tuple[list[np.ndarray], np.ndarray, list[str]]:
    """Let one robot walk straight ahead, or do what its task asks."""
    cfg = load_env_cfg(task, play=True)
    cfg.scene.num_envs, cfg.seed = 1, UNSEEN_SEED
    cfg.viewer.width, cfg.viewer.height = 240, 200
    twist: Any = cfg.commands.get("twist")
    if twist is not None:
        twist.debug_vis = twist.heading_command = False
        twist.rel_standing_envs, twist.rel_forward_envs = 0.0, 1.0
        twist.ranges.lin_vel_x = (_SPEED, _SPEED)
    env = ManagerBasedRlEnv(cfg)
    policy = load_policy(env, rl_cfg, checkpoint)
    sensor = env.scene.sensors.get("feet_ground_contact")
    renderer = OffscreenRenderer(env.sim.mj_model, cfg.viewer)
    pictures, touching = [], []
    obs = env.get_observations()
    with torch_threads(1), torch.inference_mode():
        for step in range(_SETTLE + _WATCH):
            obs = env.step(policy(obs))[0]
            done = step - _SETTLE
            if done >= 0 and done % _EVERY == 0 and len(pictures) < _PICTURES:
                renderer.update(env.sim.data, 0)
                pictures.append(renderer.render().copy())
            if done >= 0 and sensor is not None:
                touching.append((sensor.data.found[0] > 0).tolist())
    renderer.close()
    feet = (
        [] if sensor is None else [name.removesuffix("_collision") for name in sensor.primary_names]
    )
    return pictures, np.array(touching), feet


def _draw_footfalls(axes: Axes, touching: np.ndarray, names: list[str]) -> None:
    """Draw when each foot touches the ground."""
    for row in range(len(names)):
        edges = np.diff(touching[:, row].astype(int), prepend=0, append=0)
        starts, ends = np.flatnonzero(edges > 0) * 0.02, np.flatnonzero(edges < 0) * 0.02
        spans = list(zip(starts, ends - starts, strict=True))
        axes.broken_barh(spans, (row + 0.15, 0.7), color=_COLORS[0])
    axes.set_yticks(np.arange(len(names)) + 0.5, names)
    axes.set(xlim=(0, len(touching) * 0.02), xlabel="time [s]; bars: foot on the ground")
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)


def _save(figure: Figure, path: Path) -> None:
    """Write a PNG of 256 colours, which is small."""
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.canvas.draw()  # type: ignore[attr-defined]
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]  # type: ignore[attr-defined]
    image = Image.fromarray(np.ascontiguousarray(pixels))
    image.quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)
