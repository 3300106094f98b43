"""`manyworlds motion convert FILE` and `manyworlds motion clip FILE`: make motions to track."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from manyworlds.cli.common import usage_errors

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnvCfg
    from manyworlds.tasks.tracking.mdp import MotionCommandCfg
    from manyworlds.tasks.tracking.motion import Motion

_FILE = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]


@dataclass(kw_only=True)
class Convert:
    """Turn a recording of root and joints into a motion to track, with the poses of all bodies.

    A CSV file has a row for each frame: the root's position [m], its quaternion (x, y, z, w), and
    the joints [rad] in the robot's order, or with their names in the first line. An NPZ file of a
    motion is resampled.
    """

    file: _FILE
    """The recording: CSV or NPZ."""
    task: str
    """Tracking task whose robot was recorded."""
    output: Path | None = None
    """The NPZ file to write; None for the recording's name with another ending."""
    fps: float = 30.0
    """Frames per second of a CSV file."""
    output_fps: float | None = None
    """Frames per second to write; None for the control rate of the task."""
    line_range: tuple[int, int] | None = None
    """First and last frame to take, counted from 1; None for all."""


@dataclass(kw_only=True)
class Clip:
    """Write the clip that a task makes for itself: a robot waves, shifts its weight and squats."""

    file: _FILE
    """The NPZ file to write."""
    task: str
    """Tracking task."""


def main(argv: list[str]) -> int:
    """Parse the command line and write a motion."""
    with usage_errors("motion"):
        cfg = tyro.extras.subcommand_cli_from_dict(
            {"convert": Convert, "clip": Clip}, args=argv, prog="manyworlds motion"
        )
    path, motion = _convert(cfg) if isinstance(cfg, Convert) else (cfg.file, _clip(cfg))
    motion.save(path)
    print(
        f"{path}: {motion.num_frames} frames at {motion.fps:g} per second, "
        f"{motion.joint_pos.shape[1]} joints, {motion.body_pos_w.shape[1]} bodies"
    )
    return 0


def _convert(cfg: Convert) -> tuple[Path, Motion]:
    from rich.progress import Progress

    output = cfg.output or cfg.file.with_suffix(".npz")
    if output.resolve() == cfg.file.resolve():
        raise ValueError(f"The motion would replace the recording '{output}': name --output.")
    env_cfg, command = _task(cfg.task)
    from manyworlds.sim import MujocoCfg
    from manyworlds.tasks.tracking.joint_motion import complete_motion, read_joint_motion

    entity_cfg = env_cfg.scene.entities[command.entity_name]
    robot = entity_cfg.build()
    motion = read_joint_motion(
        cfg.file,
        robot.joint_names,
        cfg.fps,
        cfg.line_range,
        robot.body_names.index(robot.root_body.name),
    )
    mujoco_cfg = env_cfg.sim.mujoco or MujocoCfg()
    rate = cfg.output_fps or 1.0 / (env_cfg.decimation * mujoco_cfg.timestep)
    motion = motion.resampled(rate)
    with Progress() as progress:
        task = progress.add_task("frames", total=len(motion.root_pos))
        complete = complete_motion(
            entity_cfg, motion, lambda done, _: progress.update(task, completed=done)
        )
    return output, complete


def _clip(cfg: Clip) -> Motion:
    _, command = _task(cfg.task)
    if command.motion_fn is None:
        raise ValueError(f"Task '{cfg.task}' makes no clip: it needs a motion file.")
    return command.motion_fn()


def _task(name: str) -> tuple[ManagerBasedRlEnvCfg, MotionCommandCfg]:
    """The environment and the motion command of a task."""
    from manyworlds.tasks import load_env_cfg
    from manyworlds.tasks.tracking.mdp import MotionCommandCfg

    cfg = load_env_cfg(name)
    for command in cfg.commands.values():
        if isinstance(command, MotionCommandCfg):
            return cfg, command
    raise ValueError(
        f"Task '{name}' tracks no motion: name a tracking task, see `manyworlds list`."
    )
