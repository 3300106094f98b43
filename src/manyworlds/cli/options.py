"""Options of the commands whose options are all fields of a task."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.rl import RslRlOnPolicyRunnerCfg


@dataclass(kw_only=True)
class TrainConfig:
    """Train a policy for a task."""

    env: ManagerBasedRlEnvCfg
    """The environment."""
    agent: RslRlOnPolicyRunnerCfg
    """The learner."""
    log_root: Path = Path("runs")
    """Where run folders are made."""
    device: str | None = None
    """Torch device; None takes CUDA where there is one, else the CPU."""
    resume: bool = False
    """Go on from the newest run of this task, with its configuration."""
    checkpoint: Path | None = None
    """Go on from this checkpoint, not the newest: a file, a run folder, or a run's name."""
    wandb_run_path: str | None = None
    """Go on from a checkpoint of this run of Weights & Biases: entity/project/run id."""
    wandb_checkpoint_name: str | None = None
    """Which checkpoint of that run, such as model_100.pt; None takes the last."""
    video: bool = False
    """Film a world from time to time, into `videos/train` of the run's folder."""
    video_length: int = 200
    """Control steps of a film."""
    video_interval: int = 2000
    """Control steps from the beginning of a film to that of the next."""
    view: bool = False
    """Serve a read-only page of the worlds while they train."""
    view_worlds: int = 64
    """How many worlds that page shows at most."""
    view_host: str = "127.0.0.1"
    """Address to serve that page on; the default lets only programs on this machine connect."""
    view_port: int = 8080
    """Port to serve that page on; the next free one is taken if it is in use."""
    enable_nan_guard: bool = False
    """Record the last steps before a world diverges, as `--env.sim.nan-guard.enabled` does."""
    gpu_ids: list[int] | Literal["all"] | None = None
    """GPUs to train on, a process each: "[0, 1]" counts those in CUDA_VISIBLE_DEVICES, or "all";
    None trains in one process on `device`."""
    preset: Literal["auto", "cpu", "gpu"] = "auto"
    """Settings of the task for a few cores or for a GPU; auto goes by the device."""


@dataclass(kw_only=True)
class EvaluateConfig:
    """Tell how well a policy does what its task rewards, over one episode in each world.

    The environment is the task's own, whatever a run changed of it.
    """

    env: ManagerBasedRlEnvCfg
    """The environment."""
    checkpoint: Path | None = None
    """Take this checkpoint, not the newest: a file, a run folder, or a run's name."""
    log_root: Path = Path("runs")
    """Where to look for runs."""
    device: str | None = None
    """Torch device; None takes CUDA where there is one, else the CPU."""


@dataclass(kw_only=True)
class PlayConfig:
    """Watch a policy in many worlds."""

    env: ManagerBasedRlEnvCfg
    """The environment."""
    agent: Literal["trained", "random", "zero"] = "trained"
    """Which policy."""
    latest: bool = False
    """Take the newest run of the task, as without --checkpoint."""
    checkpoint: Annotated[Path | None, tyro.conf.arg(aliases=["--checkpoint-file"])] = None
    """Take this checkpoint: a file, a run folder, or a run's name. Without it, the newest is taken
    and the page loads each newer one as training writes it."""
    wandb_run_path: str | None = None
    """Take a checkpoint of this run of Weights & Biases: entity/project/run id."""
    wandb_checkpoint_name: str | None = None
    """Which checkpoint of that run, such as model_100.pt; None takes the last."""
    motion_file: Path | None = None
    """Track the motion of this NPZ file, in tasks that track one."""
    log_root: Path = Path("runs")
    """Where to look for runs."""
    device: str | None = None
    """Torch device; None takes CUDA where there is one, else the CPU."""
    num_envs: int | None = None
    """How many worlds; None leaves that to the task."""
    no_terminations: bool = False
    """Let episodes go on for ever, whatever happens."""
    viewer: Literal["auto", "native", "viser"] = "auto"
    """Where to watch: in MuJoCo's window, which shows one world and its neighbours, or on a page in
    the browser, which shows them all; auto takes the page."""
    video: bool = False
    """Film the worlds without a window instead, and end."""
    video_length: int = 200
    """Control steps of the film."""
    video_height: int | None = None
    """Height of the film [pixels]; None leaves that to the task."""
    video_width: int | None = None
    """Width of the film [pixels]; None leaves that to the task."""
    camera: int | str | None = None
    """Film through this camera of the model, a name or a number."""
    host: str = "127.0.0.1"
    """Address to serve the page on."""
    port: int = 8080
    """Port to serve the page on; the next free one is taken if it is in use."""
    steps: int | None = None
    """Stop after this many control steps; None goes on until Ctrl-C."""
