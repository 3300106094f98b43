"""`manyworlds demo`: train, evaluate and look at a cartpole swing-up policy."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from manyworlds.cli.common import parse
from manyworlds.cli.policy import Policy, load_policy
from manyworlds.cli.progress import TrainingProgress
from manyworlds.cli.train import print_files
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.rl import RslRlOnPolicyRunnerCfg
from manyworlds.tasks import load_env_cfg, load_rl_cfg
from manyworlds.utils.extras import require_extra
from manyworlds.utils.torch import torch_threads

if TYPE_CHECKING:
    from manyworlds.rl.training import TrainingResult

TASK = "Cartpole-Swingup"
EVALUATION_WORLDS = 256
EVALUATION_S = 10.0
"""Length of the evaluation [s]; its last half counts."""
VIDEO_S = 10.0
VIDEO_FPS = 20
_UNSEEN_SEED = 1_000_003


@dataclass(kw_only=True)
class DemoConfig:
    """Train a cartpole to swing up its pole, then watch it."""

    num_envs: int = 1024
    """Parallel worlds to train in."""
    iterations: int | None = None
    """Training iterations; None takes the task's own."""
    seed: int = 42
    log_root: Path = Path("runs")
    """Where the run folder is made."""
    view: bool = True
    """On a terminal, show the trained policy in the browser at the end."""
    port: int = 8080
    """Port of the page."""


def main(argv: list[str]) -> int:
    """Parse the command line and run the demo."""
    cfg = parse(DemoConfig, DemoConfig(), argv, "demo")
    require_extra("rsl_rl", "train")
    from manyworlds.rl.training import train, write_summary

    console = Console()
    env_cfg, rl_cfg = load_env_cfg(TASK), load_rl_cfg(TASK)
    env_cfg.scene.num_envs = cfg.num_envs
    rl_cfg.seed = cfg.seed
    if cfg.iterations is not None:
        rl_cfg.max_iterations = cfg.iterations
    rl_cfg.experiment_name = "demo"
    started = time.perf_counter()
    with TrainingProgress(console) as progress:
        result = train(TASK, env_cfg, rl_cfg, cfg.log_root, on_iteration=progress.update)
    if result.interrupted:
        console.print("stopped; what was learned so far:")
        print_files(result.files, console)
        return 130
    console.print("evaluating and filming ...")
    upright = evaluate(rl_cfg, result.checkpoint)
    files = [*result.files, result.run.path / "params"]
    video, reason = record_video(rl_cfg, result.checkpoint, result.run.path / "four_worlds")
    if video is None:
        console.print(f"no video: {reason}", highlight=False)
    else:
        files.append(video)
    summary = _summary(result, upright, video, time.perf_counter() - started)
    files.append(write_summary(result.run, summary))
    console.print(
        f"mean cos(angle) over {EVALUATION_WORLDS} unseen worlds in the last "
        f"{EVALUATION_S / 2:.0f} s: {upright:.3f}",
        highlight=False,
    )
    print_files(files, console)
    if cfg.view and sys.stdout.isatty():
        _show(rl_cfg, result.checkpoint, cfg.port)
    else:
        command = f"manyworlds play {TASK} --checkpoint {result.checkpoint}"
        console.print(f"watch it with: {command}", highlight=False, soft_wrap=True)
    return 0


def evaluate(rl_cfg: RslRlOnPolicyRunnerCfg, checkpoint: Path) -> float:
    """Mean cosine of the pole's angle, over fresh worlds and the last half of the evaluation."""
    env, policy = _play_env(EVALUATION_WORLDS, rl_cfg, checkpoint)
    steps = round(EVALUATION_S / env.step_dt)
    hinge = env.scene["cartpole"].joint_names.index("hinge_1")
    cosines = []
    obs = env.get_observations()
    with torch_threads(1):
        for step in range(steps):
            obs = env.step(policy(obs))[0]
            if step >= steps // 2:
                angle = env.scene["cartpole"].data.joint_pos[:, hinge]
                cosines.append(angle.cos().mean().item())
    return sum(cosines) / len(cosines)


def record_video(
    rl_cfg: RslRlOnPolicyRunnerCfg, checkpoint: Path, path_stem: Path
) -> tuple[Path | None, str]:
    """Film four worlds side by side; return the video, or None and what is missing."""
    from manyworlds.utils.gl import gl_available
    from manyworlds.viewer.video import write_video

    reason = gl_available()
    if reason is not None:
        return None, reason
    env, policy = _play_env(4, rl_cfg, checkpoint, any_angle=True)
    return write_video(path_stem, _frames(env, policy), VIDEO_FPS), ""


def _frames(env: ManagerBasedRlEnv, policy: Policy) -> Iterator[np.ndarray]:
    from manyworlds.viewer.offscreen_renderer import OffscreenRenderer

    renderer = OffscreenRenderer(env.sim.mj_model, env.cfg.viewer)
    obs = env.get_observations()
    try:
        with torch_threads(1):
            for _ in range(round(VIDEO_S / env.step_dt)):
                yield renderer.render_grid(env.sim.data, range(4), columns=2)
                obs = env.step(policy(obs))[0]
    finally:
        renderer.close()


def _show(rl_cfg: RslRlOnPolicyRunnerCfg, checkpoint: Path, port: int) -> None:
    from manyworlds.cli.play import watch

    require_extra("viser", "lab")
    env, policy = _play_env(9, rl_cfg, checkpoint, any_angle=True)
    watch(env, policy, port=port)


def _play_env(
    num_envs: int, rl_cfg: RslRlOnPolicyRunnerCfg, checkpoint: Path, any_angle: bool = False
) -> tuple[ManagerBasedRlEnv, Policy]:
    """Worlds with start states that training has not seen, and the trained policy for them.

    With `any_angle` poles start at all angles, so that one sees different worlds.
    """
    env_cfg: ManagerBasedRlEnvCfg = load_env_cfg(TASK, play=True)
    env_cfg.scene.num_envs = num_envs
    env_cfg.seed = rl_cfg.seed + _UNSEEN_SEED
    reset_hinge = env_cfg.events["reset_hinge"]
    if any_angle and reset_hinge is not None:
        reset_hinge.params["position_range"] = (-math.pi, math.pi)
    env = ManagerBasedRlEnv(env_cfg)
    return env, load_policy(env, rl_cfg, checkpoint)


def _summary(
    result: TrainingResult, upright: float, video: Path | None, seconds: float
) -> dict[str, Any]:
    last = result.records[-1]
    collect = sum(r.collect_time for r in result.records)
    learn = sum(r.learn_time for r in result.records)
    rates = [r.steps_per_s for r in result.records]
    return {
        "task": TASK,
        "iterations": last.iteration,
        "mean_return": last.mean_return,
        "evaluation_worlds": EVALUATION_WORLDS,
        "mean_cos_angle_last_5s": upright,
        "training_time_s": collect + learn,
        "learner_share": learn / (collect + learn),
        "env_steps_per_s_median": float(np.median(rates)),
        "total_time_s": seconds,
        "checkpoint": result.checkpoint.name,
        "video": None if video is None else video.name,
        "solved": math.isfinite(upright) and upright >= 0.95,
    }
