"""Options of `manyworlds play` that do not depend on the task."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from manyworlds.cli.parsing import Host, NumEnvs, Port, TaskOptions, WebOrigins


@dataclass(kw_only=True)
class PlayOptions:
    """Watch a policy in many worlds.

    `manyworlds play TASK --help` also lists the options that change the environment of a task.
    """

    agent: Literal["trained", "random", "zero"] = "trained"
    """Policy: a trained one, random actions, or actions of zero."""
    latest: bool = False
    """Take the newest run of the task; the default without --checkpoint."""
    checkpoint: Annotated[Path | None, tyro.conf.arg(aliases=["--checkpoint-file"])] = None
    """File, run folder, or name of a run; None takes the newest, and later ones as they appear."""
    wandb_run_path: str | None = None
    """Take a checkpoint of this Weights & Biases run: entity/project/run id."""
    wandb_checkpoint_name: str | None = None
    """Name of the checkpoint in that run, such as model_100.pt; None takes the last."""
    motion_file: Path | None = None
    """NPZ file of the motion to track, for tracking tasks."""
    log_root: Path = Path("runs")
    """Folder of all runs."""
    device: str | None = None
    """Torch device, such as cpu or cuda:0; None takes CUDA if available, else the CPU."""
    num_envs: NumEnvs = None
    no_terminations: tyro.conf.FlagCreatePairsOff[bool] = False
    """Never end an episode."""
    viewer: Literal["auto", "native", "viser"] = "auto"
    """native: MuJoCo's window; viser: a web page of all worlds; auto: the same as viser."""
    video: bool = False
    """Record a video without a window, then exit."""
    video_length: int = 200
    """Length of the video [control steps]."""
    video_height: int | None = None
    """Height of the video [pixels]; None takes the height of the task."""
    video_width: int | None = None
    """Width of the video [pixels]; None takes the width of the task."""
    camera: int | str | None = None
    """Name or number of the model's camera for the video; None looks at the robot of the task."""
    host: Host = "127.0.0.1"
    port: Port = 8080
    web_origin: WebOrigins = ()
    steps: int | None = None
    """Number of control steps to run; None runs until Ctrl-C."""


@dataclass(kw_only=True)
class PlayStartOptions(TaskOptions, PlayOptions):
    """Watch a policy in many worlds.

    Without TASK, the task is that of the run; instead of TASK, a run folder or a checkpoint may be
    named. `manyworlds play TASK --help` also lists the options that change the environment of a
    task.
    """

    task: Annotated[
        tuple[str, ...],
        tyro.conf.Positional,
        tyro.conf.arg(metavar="[TASK]", help_behavior_hint=""),
    ] = ()
    """Name of the task, or the path of a run folder or of a checkpoint."""
    onnx: Path | None = None
    """Run an exported policy in plain MuJoCo; see `manyworlds play --onnx FILE --help`."""
