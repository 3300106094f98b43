"""Steps of `manyworlds demo`: training, evaluation, video and page."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from manyworlds.cli.evaluate import UNSEEN_SEED
from manyworlds.cli.policies import load_policy
from manyworlds.cli.train import print_files
from manyworlds.cli.training_progress import TrainingProgress
from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.rl import RslRlOnPolicyRunnerCfg
from manyworlds.tasks import load_env_cfg, load_rl_cfg
from manyworlds.tasks.push.evaluation import (
    TARGET,
    ShapeResult,
    evaluate_shapes,
    plot_success,
    success_table,
)
from manyworlds.tasks.push.push_env_cfg import push_variants_env_cfg
from manyworlds.tasks.push.shapes import SHAPES
from manyworlds.utils.devices import torch_threads
from manyworlds.utils.extras import require_extra
from manyworlds.utils.terminal import new_console, print_line

if TYPE_CHECKING:
    from manyworlds.cli.demo import DemoOptions
    from manyworlds.viewer.base import PolicyProtocol

TASK = "Push-Variants"
FILMED = ("bar", "L", "U", "star", "Z", "ellipse")
"""Shapes in the film; the last two are not trained on."""
VIDEO_S = 8.0
VIDEO_FPS = 25


def run(cfg: DemoOptions) -> int:
    """Train, evaluate, record a video and show; return the exit code."""
    require_extra("rsl_rl", "train")
    from manyworlds.rl.training import train, write_summary

    console = new_console()
    env_cfg = load_env_cfg(TASK)
    rl_cfg = load_rl_cfg(TASK)
    env_cfg.scene.num_envs = cfg.num_envs or env_cfg.scene.num_envs
    rl_cfg.seed = cfg.seed
    if cfg.iterations is not None:
        rl_cfg.max_iterations = cfg.iterations
    rl_cfg.experiment_name = "demo"
    started = time.perf_counter()
    with TrainingProgress(console) as progress:
        result = train(TASK, env_cfg, rl_cfg, cfg.log_root, on_iteration=progress.update)
    if result.interrupted:
        print_line(console, "stopped; what was learned so far:")
        print_files(result.files, console)
        return 130
    print_line(console, "evaluating and filming ...")
    shapes = evaluate(rl_cfg, result.checkpoint, cfg.evaluation_worlds)
    chart = plot_success(shapes, result.run.path / "success_by_shape.png")
    files = [*result.files, result.run.path / "params", chart]
    video, reason = record_video(rl_cfg, result.checkpoint, result.run.path / "six_worlds")
    if video is None:
        print_line(console, f"no video: {reason}")
    else:
        files.append(video)
    collect = sum(record.collect_time for record in result.records)
    learn = sum(record.learn_time for record in result.records)
    last = result.records[-1]
    summary: dict[str, object] = {
        "task": TASK,
        "iterations": last.iteration,
        "mean_return": last.mean_return,
        "episodes": {shape.name: shape.episodes for shape in shapes},
        "success": {shape.name: shape.success for shape in shapes},
        "training_time_s": collect + learn,
        "learner_share": learn / (collect + learn),
        "env_steps_per_s_median": float(np.median([r.steps_per_s for r in result.records])),
        "total_time_s": time.perf_counter() - started,
        "checkpoint": result.checkpoint.name,
        "video": None,
        "solved": all(shape.success >= TARGET for shape in shapes),
    }
    if video is not None:
        summary["video"] = video.name
    files.append(write_summary(result.run, summary))
    print_line(console, success_table(shapes))
    print_files(files, console)
    if cfg.view and sys.stdout.isatty():
        _show(rl_cfg, result.checkpoint, cfg)
    else:
        command = f"manyworlds play {TASK} --checkpoint {result.checkpoint}"
        print_line(console, f"watch it with: {command}")
    return 0


def evaluate(
    rl_cfg: RslRlOnPolicyRunnerCfg, checkpoint: Path, worlds_per_shape: int
) -> list[ShapeResult]:
    """Evaluate the policy in new worlds of all shapes, also of those that training did not use."""
    env, policy = _play_env(tuple(SHAPES), worlds_per_shape, rl_cfg, checkpoint)
    return evaluate_shapes(env, policy)


def record_video(
    rl_cfg: RslRlOnPolicyRunnerCfg, checkpoint: Path, path_stem: Path
) -> tuple[Path | None, str]:
    """Record six worlds side by side; return the video, or None and the reason."""
    from manyworlds.utils.gl import gl_available
    from manyworlds.viewer.video import write_video

    reason = gl_available()
    if reason is not None:
        return None, reason
    env, policy = _play_env(FILMED, 1, rl_cfg, checkpoint)
    return write_video(path_stem, _frames(env, policy), VIDEO_FPS), ""


def _frames(env: ManagerBasedRlEnv, policy: PolicyProtocol) -> Iterator[np.ndarray]:
    """Yield pictures of the worlds side by side while the policy acts."""
    from manyworlds.viewer.offscreen_renderer import OffscreenRenderer

    sim = env.sim
    renderer = OffscreenRenderer(
        sim.mj_model, env.cfg.viewer, sim_model=sim.model, expanded_fields=sim.expanded_fields
    )
    obs = env.get_observations()
    try:
        with torch_threads(1):
            for _ in range(round(VIDEO_S / env.step_dt)):
                yield renderer.render_grid(sim.data, range(len(FILMED)), 3, env.update_visualizers)
                obs = env.step(policy(obs))[0]
    finally:
        renderer.close()


def _show(rl_cfg: RslRlOnPolicyRunnerCfg, checkpoint: Path, cfg: DemoOptions) -> None:
    """Serve a page of the policy in one world of each shape."""
    from manyworlds.cli.play import watch

    require_extra("viser", "lab")
    env, policy = _play_env(tuple(SHAPES), 1, rl_cfg, checkpoint)
    watch(env, policy, host=cfg.host, port=cfg.port, web_origins=cfg.web_origin)


def _play_env(
    shapes: Sequence[str], worlds_per_shape: int, rl_cfg: RslRlOnPolicyRunnerCfg, checkpoint: Path
) -> tuple[ManagerBasedRlEnv, PolicyProtocol]:
    """Build worlds with starts and goals that training did not use; load the policy for them."""
    env_cfg = push_variants_env_cfg(shapes=shapes)
    env_cfg.scene.num_envs = worlds_per_shape * len(shapes)
    env_cfg.seed = rl_cfg.seed + UNSEEN_SEED
    env = ManagerBasedRlEnv(env_cfg)
    return env, load_policy(env, rl_cfg, checkpoint)
