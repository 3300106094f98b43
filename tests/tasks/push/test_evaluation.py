"""Success by shape: counts, table, chart."""

from __future__ import annotations

import math

import pytest
import torch

pytest.importorskip("coacd", reason="shapes need the extra 'meshes'")

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.tasks.push import mdp
from manyworlds.tasks.push.evaluation import (
    ShapeResult,
    evaluate_shapes,
    plot_success,
    success_table,
)
from manyworlds.tasks.push.push_env_cfg import push_variants_env_cfg


def test_every_shape_is_counted_once_a_world():
    """Count episodes that end at the goal; a shape held out of training is evaluated, too."""
    cfg = push_variants_env_cfg(play=True, shapes=("box", "Z"))
    cfg.scene.num_envs, cfg.seed, cfg.episode_length_s = 6, 1, 1.0
    cfg.commands["goal"].distance = (0.0, 0.04)  # the box is there from the start
    env = ManagerBasedRlEnv(cfg)
    of_z = env.sim.world_to_variant["object"] == 1

    def policy(_obs) -> torch.Tensor:
        env.command_manager.get_term("goal").goal[of_z] = 1.0  # out of reach
        return torch.zeros(6, 2)

    box, z = evaluate_shapes(env, policy)
    assert (box.name, box.episodes, box.successes, box.held_out) == ("box", 3, 3, False)
    assert (z.name, z.episodes, z.successes, z.held_out) == ("Z", 3, 0, True)
    assert 0.5 <= box.mean_time_s < 0.6 and math.isnan(z.mean_time_s)
    assert mdp.SUCCESS_DISTANCE == 0.05


def test_table_and_chart(tmp_path):
    """Lay shares out in percent, and draw a bar for each shape."""
    pytest.importorskip("matplotlib")
    results = [
        ShapeResult(name="box", episodes=8, successes=7, mean_time_s=2.0),
        ShapeResult(name="ellipse", episodes=8, successes=8, mean_time_s=2.5),
    ]
    table = success_table(results)
    assert "87.5" in table and "ellipse" in table and "no" in table
    assert "mass [kg]" in table and "mean time [s]" in table
    none = ShapeResult(name="box", episodes=8, successes=0, mean_time_s=math.nan)
    assert "nan" not in success_table([none])
    path = plot_success(results, tmp_path / "chart.png")
    assert path.read_bytes().startswith(b"\x89PNG")
