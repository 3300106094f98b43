"""Options of the commands that can change every field of a task."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from manyworlds.cli.errors import UsageError
from manyworlds.cli.parsing import Host, NumEnvs, Port, WebOrigins
from manyworlds.cli.play_options import PlayOptions
from manyworlds.cli.train_seeds import SeedOptions
from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.rl import RslRlBaseRunnerCfg


@dataclass(kw_only=True)
class PresetOptions:
    """Options that choose between the settings of a task."""

    device: str | None = None
    """Torch device, such as cpu or cuda:0; None takes CUDA if available, else the CPU."""
    preset: Literal["auto", "cpu", "gpu"] = "auto"
    """Settings of the task for a few CPU cores or for a GPU; auto chooses by the device."""


@dataclass(kw_only=True)
class TrainOptions(PresetOptions, SeedOptions):
    """Train a policy for a task.

    Options `--env...` change the environment, options `--agent...` the learner. Collections are
    written as in Python, such as "(256, 128)".
    """

    log_root: Path = Path("runs")
    """Folder of all runs, in which the new run folder is made."""
    resume: bool = False
    """Continue the newest run of this task, with its configuration."""
    auto_resume: bool = False
    """Continue the newest run of this task with the same `--agent.run-name` if there is one, and
    start it otherwise; for a command that is repeated after failures. A complete run gets the files
    that a training ends with."""
    checkpoint: Path | None = None
    """Continue from this checkpoint: a file, a run folder, or the name of a run."""
    wandb_run_path: str | None = None
    """Continue from a checkpoint of this Weights & Biases run: entity/project/run id."""
    wandb_checkpoint_name: str | None = None
    """Name of the checkpoint in that run, such as model_100.pt; None takes the last."""
    video: bool = False
    """Record videos of a world during training, into `videos/train` of the run folder."""
    video_length: int = 200
    """Length of a video [control steps]."""
    video_interval: int = 2000
    """Control steps from the start of one video to the start of the next."""
    view: bool = False
    """Show the worlds during training on a read-only web page."""
    view_worlds: int = 64
    """Maximum number of worlds on that page."""
    peek_world: int = 0
    """World among them that `manyworlds peek` opens in MuJoCo's window."""
    enter: bool = False
    """Let `manyworlds lab --attach` enter the worlds; `--view` does, too."""
    remember: bool = False
    """Remember the last 10 s of all worlds and the worst episodes, for `manyworlds why`; needs
    `--enter` or `--view`."""
    edits: Path | None = None
    """Run whose edits are made again, after the same iterations: its folder or name; None for those
    of the run that is continued."""
    repeat_edits: bool = True
    """Make edits again that the continued run made after the checkpoint."""
    host: Host = "127.0.0.1"
    port: Port = 8080
    web_origin: WebOrigins = ()
    enable_nan_guard: bool = False
    """Record the last steps of diverging worlds; same as `--env.sim.nan-guard.enabled`."""
    gpu_ids: list[int] | Literal["all"] | None = None
    """GPUs to train on, a process each, such as "[0, 1]", or all; None trains in one process on
    `--device`."""
    num_envs: NumEnvs = None
    env: ManagerBasedRlEnvCfg
    """Environment."""
    agent: RslRlBaseRunnerCfg
    """Learner."""


@dataclass(kw_only=True)
class EvaluateTaskOptions:
    """Evaluate a policy by the rewards of its task, over one episode in each world.

    Instead of TASK, a run folder or a checkpoint may be named. The environment is the task's own;
    changes that a run made to it do not apply. Options `--env...` change it.
    """

    checkpoint: Path | None = None
    """Checkpoint: a file, a run folder, or the name of a run; None takes the newest run."""
    log_root: Path = Path("runs")
    """Folder of all runs."""
    device: str | None = None
    """Torch device, such as cpu or cuda:0; None takes CUDA if available, else the CPU."""
    num_envs: NumEnvs = None
    cases: bool = False
    """Evaluate the cases that were sent to the run, with the last checkpoint before each case and
    all later ones, in the run's environment; of `--env`, only number of worlds and seed apply."""
    terrain_level: int | None = None
    """Keep all worlds on this level of generated terrain; None for the task's curriculum."""
    env: ManagerBasedRlEnvCfg
    """Environment."""


@dataclass(kw_only=True)
class PlayTaskOptions(PlayOptions):
    """Watch a policy in many worlds.

    Options `--env...` change the environment.
    """

    env: ManagerBasedRlEnvCfg
    """Environment."""


def take_num_envs(options: TrainOptions | EvaluateTaskOptions | PlayTaskOptions) -> None:
    """Set the number of worlds to that of `--num-envs`, if it is given.

    Raises:
        UsageError: the number is below 1.
    """
    scene = options.env.scene
    if options.num_envs is not None:
        scene.num_envs = options.num_envs
    if scene.num_envs < 1:
        raise UsageError(f"--num-envs must be at least 1, got {scene.num_envs}.")
