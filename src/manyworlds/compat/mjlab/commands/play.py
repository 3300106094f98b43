"""The command `play` as a function of a config."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from manyworlds.cli import play
from manyworlds.cli.play import PlayOptions


@dataclass(frozen=True)
class PlayConfig:
    """Settings of playback.

    Raises:
        ValueError: an option is set that has no meaning here.
    """

    agent: Literal["zero", "random", "trained"] = "trained"
    """Policy: actions of zero, random actions, or a trained one."""
    registry_name: str | None = None
    """Must be None: motions are files."""
    wandb_run_path: str | None = None
    """Take a checkpoint of this Weights & Biases run: entity/project/run id."""
    wandb_checkpoint_name: str | None = None
    """Name of the checkpoint in that run; None takes the last."""
    checkpoint_file: str | None = None
    """Checkpoint; None takes the newest of the task."""
    motion_file: str | None = None
    """NPZ file of the motion to track, for tracking tasks."""
    num_envs: int | None = None
    """Number of worlds; None takes the number of the task."""
    device: str | None = None
    """Torch device; None takes CUDA if available, else the CPU."""
    video: bool = False
    """Record a video without a window, then return."""
    video_length: int = 200
    """Length of the video [control steps]."""
    video_height: int | None = None
    """Height of the video [pixels]; None takes the height of the task."""
    video_width: int | None = None
    """Width of the video [pixels]; None takes the width of the task."""
    camera: int | str | None = None
    """Name or number of the model's camera for the video; None looks at the robot of the task."""
    viewer: Literal["auto", "native", "viser"] = "auto"
    """MuJoCo's window (native), a web page of all worlds (viser), or the page (auto)."""
    no_terminations: bool = False
    """Never end an episode."""
    log_root: str = "logs/rsl_rl"
    """Folder of all runs."""

    def __post_init__(self) -> None:
        if self.registry_name is not None:
            raise ValueError(
                f"PlayConfig.registry_name is {self.registry_name!r}, but motions are files: "
                "download it, and set motion_file."
            )


def run_play(task_id: str, cfg: PlayConfig) -> None:
    """Play a task until the viewer is closed, or record a video.

    Args:
        task_id: name of the task.
        cfg: settings.
    """
    checkpoint = None
    if cfg.checkpoint_file is not None:
        checkpoint = Path(cfg.checkpoint_file)
    motion_file = None
    if cfg.motion_file is not None:
        motion_file = Path(cfg.motion_file)
    options = PlayOptions(
        agent=cfg.agent,
        checkpoint=checkpoint,
        wandb_run_path=cfg.wandb_run_path,
        wandb_checkpoint_name=cfg.wandb_checkpoint_name,
        motion_file=motion_file,
        log_root=Path(cfg.log_root),
        device=cfg.device,
        num_envs=cfg.num_envs,
        no_terminations=cfg.no_terminations,
        viewer=cfg.viewer,
        video=cfg.video,
        video_length=cfg.video_length,
        video_height=cfg.video_height,
        video_width=cfg.video_width,
        camera=cfg.camera,
    )
    play.run(task_id, options)
