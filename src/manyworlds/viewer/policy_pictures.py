"""Pictures of a policy in action, side by side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from manyworlds.utils.devices import torch_threads
from manyworlds.utils.figures import COLORS, new_figure, save_png
from manyworlds.viewer.offscreen_renderer import OffscreenRenderer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.envs.types import VecEnvObs

_PICTURES = 6
_FOOTFALLS_S = 2.0
_FEET = "feet_ground_contact"
"""Name of the sensor of a legged robot's feet."""


def draw_policy(
    env: ManagerBasedRlEnv, policy: Callable[[VecEnvObs], torch.Tensor], path: Path
) -> Path:
    """Draw world 0 in action: a sequence of images and, for robots with feet, footfalls.

    Args:
        env: the environment, which is stepped for a few seconds.
        policy: function from observations to actions, shape [num_envs, total_action_dim].
        path: the PNG file.

    Raises:
        RuntimeError: there is no working OpenGL.
    """
    sensor: Any = env.scene.sensors.get(_FEET)
    start = 0.0  # [s]
    every = 1.0  # [s]
    if sensor is not None:
        start = 2.0
        every = 0.08
    pictures = []
    touching = []
    drawn_at = [start + i * every for i in range(_PICTURES)]
    renderer = OffscreenRenderer(
        env.sim.mj_model,
        env.cfg.viewer,
        sim_model=env.sim.model,
        expanded_fields=env.sim.expanded_fields,
    )
    due = {round(time / env.step_dt) for time in drawn_at}
    last = max(due)
    if sensor is not None:
        last = max(last, round((start + _FOOTFALLS_S) / env.step_dt))
    obs = env.get_observations()
    try:
        with torch_threads(1), torch.inference_mode():
            for step in range(last + 1):
                if step in due:
                    renderer.update(env.sim.data, env_idx=0)
                    pictures.append(renderer.render().copy())
                if sensor is not None and step * env.step_dt >= start:
                    touching.append((sensor.data.found[0] > 0).tolist())
                obs = env.step(policy(obs))[0]
    finally:
        renderer.close()
    height = 1.5
    rows = 1
    if sensor is not None:
        height = 3.4
        rows = 2
    figure = new_figure(9.6, height, dpi=100)
    top, *below = figure.subplots(rows, 1, squeeze=False)[:, 0]
    top.imshow(np.concatenate(pictures, axis=1))
    top.axis("off")
    shown = f"pictures every {every:g} s"
    if sensor is None:
        top.set_title(shown, fontsize=9)
    else:
        feet = [name.removesuffix("_collision") for name in sensor.primary_names]
        _draw_footfalls(below[0], np.array(touching), env.step_dt, feet)
        for time in drawn_at:
            below[0].axvline(time - start, color="black", lw=0.8)
        below[0].set_xlabel(f"time [s]; bars: foot on the ground; lines: {shown}")
    return save_png(figure, path)


def _draw_footfalls(axes: Axes, touching: np.ndarray, step_dt: float, feet: list[str]) -> None:
    """Draw when each foot touches the ground."""
    for row, column in enumerate(touching.T):
        edges = np.diff(column.astype(int), prepend=0, append=0)
        starts = np.flatnonzero(edges > 0)
        ends = np.flatnonzero(edges < 0)
        spans = [(a * step_dt, (b - a) * step_dt) for a, b in zip(starts, ends, strict=True)]
        axes.broken_barh(spans, (row + 0.15, 0.7), color=COLORS[0])
    axes.set_yticks(np.arange(len(feet)) + 0.5, feet)
    axes.set_xlim(0, len(touching) * step_dt)
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
