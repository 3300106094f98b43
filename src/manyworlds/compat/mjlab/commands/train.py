"""The command `train` as a function of a config."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from manyworlds.cli import train
from manyworlds.cli.task_fields import TrainConfig as TaskConfig
from manyworlds.cli.train import TrainOptions
from manyworlds.compat.mjlab.names import as_program
from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.rl import RslRlOnPolicyRunnerCfg
from manyworlds.tasks import load_env_cfg, load_rl_cfg


@dataclass(frozen=True)
class TrainConfig:
    """Settings of a training run.

    Raises:
        ValueError: an option is set that has no meaning here.
    """

    env: ManagerBasedRlEnvCfg
    """Environment."""
    agent: RslRlOnPolicyRunnerCfg
    """Learner."""
    registry_name: str | None = None
    """Must be None: motions are files."""
    video: bool = False
    """Record videos of a world during training."""
    video_length: int = 200
    """Length of a video [control steps]."""
    video_interval: int = 2000
    """Control steps from the start of one video to the start of the next."""
    enable_nan_guard: bool = False
    """Record the last steps of diverging worlds."""
    log_root: str = "logs/rsl_rl"
    """Folder of all runs."""
    torchrunx_log_dir: str | None = None
    """Must be None: processes print to the terminal."""
    wandb_run_path: str | None = None
    """Continue from a checkpoint of this Weights & Biases run: entity/project/run id."""
    wandb_checkpoint_name: str | None = None
    """Name of the checkpoint in that run; None takes the last."""
    gpu_ids: list[int] | Literal["all"] | None = field(default_factory=lambda: [0])
    """GPUs to train on, a process each; without CUDA, [0] and None train on the CPU."""

    def __post_init__(self) -> None:
        if self.registry_name is not None:
            raise ValueError(
                f"TrainConfig.registry_name is {self.registry_name!r}, but motions are files: "
                "download it, and set cfg.env.commands['motion'].motion_file."
            )
        if self.torchrunx_log_dir is not None:
            raise ValueError(
                f"TrainConfig.torchrunx_log_dir is {self.torchrunx_log_dir!r}, but the processes "
                "print to the terminal: leave it out."
            )

    @staticmethod
    def from_task(task_id: str) -> TrainConfig:
        """Return the settings of a task."""
        return TrainConfig(env=load_env_cfg(task_id), agent=load_rl_cfg(task_id))


def launch_training(task_id: str, args: TrainConfig | None = None) -> None:
    """Train a task; on several GPUs, the program starts again with one process for each.

    Args:
        task_id: name of the task.
        args: settings; None takes those of the task.

    Raises:
        SystemExit: a signal stopped the run, after it wrote a checkpoint.
    """
    import torch

    cfg = args or TrainConfig.from_task(task_id)
    gpu_ids = cfg.gpu_ids
    if gpu_ids == [0] and not torch.cuda.is_available():
        gpu_ids = None  # the default, which then means the CPU
    options = TrainOptions(
        log_root=Path(cfg.log_root),
        wandb_run_path=cfg.wandb_run_path,
        wandb_checkpoint_name=cfg.wandb_checkpoint_name,
        video=cfg.video,
        video_length=cfg.video_length,
        video_interval=cfg.video_interval,
        enable_nan_guard=cfg.enable_nan_guard,
        gpu_ids=gpu_ids,
    )
    # The command may change the configurations.
    config = TaskConfig(env=copy.deepcopy(cfg.env), agent=copy.deepcopy(cfg.agent))
    found = train.find_checkpoint(task_id, options, config.agent)
    resume = None
    if found is not None:
        resume = found.need_checkpoint()
    with as_program():
        if code := train.run(task_id, options, config, resume):
            raise SystemExit(code)
