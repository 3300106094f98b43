"""`manyworlds motion convert FILE` and `manyworlds motion clip FILE`: write motions to track."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from manyworlds.cli.value_forms import VALUE_FORMS
from manyworlds.utils.terminal import new_console, new_progress

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnvCfg
    from manyworlds.tasks.tracking.mdp import MotionCommandCfg
    from manyworlds.tasks.tracking.motion import Motion

_FILE = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]


@dataclass(kw_only=True)
class ConvertOptions:
    """Convert a recording of a robot into a motion to track, with the poses of all bodies.

    Each row of a CSV file is one frame: position of the root [m], its quaternion (x, y, z, w), and
    joint positions [rad]. The joints are in the order of the robot, or in the order of the names in
    the first line. An NPZ file of a motion is resampled.
    """

    file: _FILE
    """CSV or NPZ file of the recording."""
    task: str
    """Name of a tracking task with the recorded robot."""
    output: Path | None = None
    """NPZ file to write; None uses the name of the recording with the suffix .npz."""
    fps: float = 30.0
    """Frame rate of a CSV file [1/s]."""
    output_fps: float | None = None
    """Frame rate of the motion [1/s]; None uses the control rate of the task."""
    line_range: tuple[int, int] | None = None
    """First and last frame to convert, counted from 1; None converts all."""


@dataclass(kw_only=True)
class ClipOptions:
    """Write the built-in motion of a task: a robot waves, shifts its weight and squats."""

    file: _FILE
    """NPZ file to write."""
    task: str
    """Name of a tracking task."""


def main(argv: list[str]) -> int:
    """Run `manyworlds motion`."""
    commands = {"convert": ConvertOptions, "clip": ClipOptions}
    cfg = tyro.extras.subcommand_cli_from_dict(
        commands,
        args=argv,
        prog="manyworlds motion",
        description="Write motions for tracking tasks.",
        registry=VALUE_FORMS,
    )
    if isinstance(cfg, ConvertOptions):
        path, motion = _convert(cfg)
    else:
        path = cfg.file
        _, command = _task(cfg.task)
        if command.motion_fn is None:
            raise ValueError(f"Task '{cfg.task}' makes no clip: it needs a motion file.")
        motion = command.motion_fn()
    motion.save(path)
    print(
        f"{path}: {motion.num_frames} frames at {motion.fps:g} per second, "
        f"{motion.joint_pos.shape[1]} joints, {motion.body_pos_w.shape[1]} bodies"
    )
    return 0


def _convert(cfg: ConvertOptions) -> tuple[Path, Motion]:
    """Return the file to write, and the motion of a recording."""
    output = cfg.output or cfg.file.with_suffix(".npz")
    if output.resolve() == cfg.file.resolve():
        raise ValueError(f"The motion would replace the recording '{output}': name --output.")
    env_cfg, command = _task(cfg.task)
    from manyworlds.sim import MujocoCfg
    from manyworlds.tasks.tracking.joint_motion import (
        check_recording,
        complete_motion,
        read_joint_motion,
    )

    entity_cfg = env_cfg.scene.entities[command.entity_name]
    robot = entity_cfg.build()
    motion = read_joint_motion(
        cfg.file,
        robot.joint_names,
        cfg.fps,
        cfg.line_range,
        robot.body_names.index(robot.root_body.name),
        robot.body_names,
    )
    if cfg.file.suffix.lower() == ".npz":
        check_recording(cfg.file, entity_cfg)
    mujoco_cfg = env_cfg.sim.mujoco or MujocoCfg()
    rate = cfg.output_fps or 1.0 / (env_cfg.decimation * mujoco_cfg.timestep)
    motion = motion.resampled(rate)
    with new_progress(new_console(stderr=True)) as progress:
        task = progress.add_task("frames", total=len(motion.root_pos))
        complete = complete_motion(
            entity_cfg, motion, lambda done, _: progress.update(task, completed=done)
        )
    return output, complete


def _task(name: str) -> tuple[ManagerBasedRlEnvCfg, MotionCommandCfg]:
    """Return the environment and the motion command of a task."""
    from manyworlds.tasks import load_env_cfg
    from manyworlds.tasks.tracking.mdp import MotionCommandCfg

    cfg = load_env_cfg(name)
    for command in cfg.commands.values():
        if isinstance(command, MotionCommandCfg):
            return cfg, command
    raise ValueError(
        f"Task '{name}' tracks no motion: name a tracking task, see `manyworlds list`."
    )
