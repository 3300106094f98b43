"""Success rate of a policy for each shape, as a table and as a plot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.envs.types import VecEnvObs
from manyworlds.tasks.push.mdp import OBJECT
from manyworlds.tasks.push.shapes import HELD_OUT, SHAPES
from manyworlds.utils.devices import torch_threads
from manyworlds.utils.figures import new_figure, save_png
from manyworlds.utils.table import render_table

TARGET = 0.85
"""Fraction of episodes that should succeed with every shape."""


@dataclass(frozen=True, kw_only=True)
class ShapeResult:
    """Results of a shape: one episode in each of its worlds."""

    name: str
    episodes: int
    successes: int
    mean_time_s: float
    """Mean length of the successful episodes [s]; NaN if there are none."""

    @property
    def success(self) -> float:
        """Fraction of episodes that succeeded."""
        return self.successes / self.episodes

    @property
    def held_out(self) -> bool:
        """True if policies are not trained on the shape."""
        return self.name in HELD_OUT


@torch.inference_mode()
def evaluate_shapes(
    env: ManagerBasedRlEnv, policy: Callable[[VecEnvObs], torch.Tensor]
) -> list[ShapeResult]:
    """Run one episode in each world, from its reset to its end, and count by shape.

    Args:
        env: the environment, with `auto_reset`; each variant has a world.
        policy: function from observations to actions, shape [num_envs, total_action_dim].
    """
    running = torch.ones(env.num_envs, dtype=torch.bool, device=env.device)
    won = torch.zeros_like(running)
    steps = torch.zeros(env.num_envs, device=env.device)
    with torch_threads(1):
        obs, _ = env.reset()
        for _ in range(env.max_episode_length):
            obs = env.step(policy(obs))[0]
            steps += running
            won |= running & env.termination_manager.get_term("success")
            running &= ~env.reset_buf
            if not running.any():
                break
    variants = env.sim.world_to_variant[OBJECT]
    results = []
    for i, name in enumerate(env.scene.entity(OBJECT).variant_metadata.variant_names):
        of_shape = variants == i
        results.append(
            ShapeResult(
                name=name,
                episodes=int(of_shape.sum()),
                successes=int((of_shape & won).sum()),
                mean_time_s=steps[of_shape & won].mean().item() * env.step_dt,
            )
        )
    return results


def success_table(results: Sequence[ShapeResult]) -> str:
    """Format the results as a text table."""
    rows = []
    for result in results:
        trained = "yes"
        if result.held_out:
            trained = "no"
        mean_time = None
        if result.successes:
            mean_time = round(result.mean_time_s, 2)
        success = round(100.0 * result.success, 1)
        mass = SHAPES[result.name].mass
        rows.append((result.name, mass, trained, result.episodes, success, mean_time))
    return render_table(
        "success by shape",
        ("shape", "mass [kg]", "trained on", "episodes", "success %", "mean time [s]"),
        rows,
    )


def plot_success(results: Sequence[ShapeResult], path: Path) -> Path:
    """Plot a bar for each shape in its color; return the path of the PNG."""
    figure = new_figure(9.0, 3.6)
    axes = figure.subplots()
    bars = axes.bar(
        [f"{result.name}\n{SHAPES[result.name].mass:.2g} kg" for result in results],
        [100.0 * result.success for result in results],
        color=[SHAPES[result.name].rgb for result in results],
        hatch=["//" if result.held_out else "" for result in results],
        edgecolor="white",
    )
    axes.bar_label(bars, fmt="%.0f", fontsize=9)
    axes.axhline(100.0 * TARGET, color="#444444", lw=1.0, ls="--")
    axes.tick_params(axis="x", labelsize=8)
    axes.set_ylim(0.0, 108.0)
    axes.set_ylabel("success [%]")
    axes.set_title("success by shape (hatched: not trained on)", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    return save_png(figure, path)
