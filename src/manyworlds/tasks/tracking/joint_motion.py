"""Recorded motions of a root and joints, and their conversion to motions to track."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from manyworlds.entity import Entity, EntityCfg
from manyworlds.scene import Scene, SceneCfg
from manyworlds.sim import Simulation
from manyworlds.tasks.tracking.motion import Motion
from manyworlds.tasks.tracking.motion_check import check_kinematics
from manyworlds.utils.math import quat_box_minus, quat_slerp

ROOT_COLUMNS = ("root_x", "root_y", "root_z", "root_qx", "root_qy", "root_qz", "root_qw")
"""First columns of a CSV file: position [m] and quaternion (xyzw)."""
_CHUNK = 128


@dataclass(frozen=True, kw_only=True)
class JointMotion:
    """Motion of a root and its joints, in the order of an entity's joints.

    Raises:
        ValueError: a value is not finite, a quaternion is zero, or there is only one frame.
    """

    fps: float
    root_pos: torch.Tensor
    """Positions of the root in the world [m], float64, shape [frames, 3]."""
    root_quat: torch.Tensor
    """Orientations of the root (wxyz), float64, shape [frames, 4]."""
    joint_pos: torch.Tensor
    """Joint positions [rad or m], float64, shape [frames, joints]."""
    source: str = "the motion"
    """Origin of the motion, used in messages."""

    def __post_init__(self) -> None:
        if not self.fps > 0.0:
            raise ValueError(f"Frames per second of {self.source} must be above 0, not {self.fps}.")
        frames = len(self.root_pos)
        if frames < 2:
            raise ValueError(f"A motion needs 2 frames or more, but {self.source} has {frames}.")
        rows = torch.cat([self.root_pos, self.root_quat, self.joint_pos], dim=1)
        bad = ~rows.isfinite().all(dim=1) | (self.root_quat.norm(dim=1) < 0.5)
        if bad.any():
            raise ValueError(
                f"Frame {int(bad.nonzero()[0])} of {self.source} has a value that is not finite, "
                f"or a zero quaternion: the columns are {', '.join(ROOT_COLUMNS)}, joints."
            )

    def resampled(self, fps: float) -> JointMotion:
        """Return the motion at another rate, by linear interpolation of positions and slerp."""
        if not fps > 0.0:
            raise ValueError(f"Frames per second must be above 0, got {fps}.")
        last = len(self.root_pos) - 1
        count = int(np.floor(last * fps / self.fps + 1e-6)) + 1
        at = (torch.arange(count, dtype=torch.float64) * self.fps / fps).clamp_(max=last)
        before = at.floor().long().clamp_(max=last - 1)
        share = at - before

        def lerp(values: torch.Tensor) -> torch.Tensor:
            return torch.lerp(values[before], values[before + 1], share.unsqueeze(1))

        unit = torch.nn.functional.normalize(self.root_quat, dim=1)
        return JointMotion(
            fps=fps,
            root_pos=lerp(self.root_pos),
            root_quat=quat_slerp(unit[before], unit[before + 1], share),
            joint_pos=lerp(self.joint_pos),
            source=self.source,
        )

    def velocities(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Compute velocities by central differences, one-sided at both ends.

        Returns:
            Linear [m/s] and angular [rad/s] velocity of the root in the world, shape [frames, 3]
            each, and joint velocities, shape [frames, joints].
        """
        dt = 1.0 / self.fps
        linear, joints = (
            torch.gradient(values, spacing=dt, dim=0)[0]
            for values in (self.root_pos, self.joint_pos)
        )
        first = torch.arange(len(linear)) - 1
        last = torch.arange(len(linear)) + 1
        first = first.clamp(min=0)
        last = last.clamp(max=len(linear) - 1)
        turn = quat_box_minus(self.root_quat[last], self.root_quat[first])
        return linear, turn / ((last - first).double() * dt).unsqueeze(1), joints


def read_joint_motion(
    path: str | Path,
    joint_names: Sequence[str],
    fps: float,
    line_range: tuple[int, int] | None = None,
    root_index: int = 0,
    body_names: Sequence[str] = (),
) -> JointMotion:
    """Read a recording from a CSV file, or from an NPZ file of a motion.

    A CSV file has the columns `ROOT_COLUMNS` and one per joint [rad or m], in the robot's order. If
    its first line holds names, columns are selected by name, and others are ignored.

    Args:
        path: the file.
        joint_names: names of the robot's joints.
        fps: frames per second of a CSV file; an NPZ file contains its own.
        line_range: first and last frame, both included, counted from 1; None for all frames.
        root_index: index of the root among the robot's bodies, for an NPZ file.
        body_names: names of these bodies, by which those of an NPZ file with names are ordered.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: the file does not fit; the message states the expected content.
    """
    path = Path(path)
    if path.suffix.lower() == ".npz":
        motion = Motion.load(path)
        _check_width(7 + motion.joint_pos.shape[1], joint_names, path)
        motion = motion.in_order(joint_names, body_names)
        rows = np.concatenate(
            [
                motion.body_pos_w[:, root_index],
                np.roll(motion.body_quat_w[:, root_index], -1, axis=1),
                motion.joint_pos,
            ],
            axis=1,
        )
        rows = rows.astype(np.float64)
        fps = motion.fps
    else:
        rows = _read_csv(path, joint_names)
    if line_range is not None:
        first, last = line_range
        if not 1 <= first < last <= len(rows):
            raise ValueError(
                f"The range of frames {line_range} is not within 1 to {len(rows)} of '{path}'."
            )
        rows = rows[first - 1 : last]
    values = torch.from_numpy(rows)
    return JointMotion(
        fps=fps,
        root_pos=values[:, :3],
        root_quat=values[:, [6, 3, 4, 5]],
        joint_pos=values[:, 7:],
        source=f"'{path}'",
    )


def check_recording(path: Path, entity_cfg: EntityCfg) -> None:
    """Check that the bodies of an NPZ file are where its joints put them.

    Args:
        path: the file.
        entity_cfg: configuration of the robot.

    Raises:
        ValueError: the file has another number of bodies, or a body is elsewhere; see
            `check_kinematics`.
    """
    scene = Scene(SceneCfg(num_envs=1, entities={"robot": entity_cfg}))
    entity: Entity = scene.entity("robot")
    sim = Simulation(1, spec=scene.spec, device="cpu")
    scene.initialize(sim.mj_model, sim.model, sim.data)
    motion = Motion.load(path).in_order(entity.joint_names, entity.body_names)
    if motion.body_pos_w.shape[1] != len(entity.body_names):
        raise ValueError(
            f"{motion.source} has {motion.body_pos_w.shape[1]} bodies, but the robot has "
            f"{len(entity.body_names)}: use a recording of this robot."
        )
    check_kinematics(motion, entity, sim.mj_model, "robot")


def complete_motion(
    entity_cfg: EntityCfg,
    motion: JointMotion,
    on_progress: Callable[[int, int], None] | None = None,
) -> Motion:
    """Compute the motion of all bodies, by batched forward kinematics.

    Args:
        entity_cfg: configuration of the robot.
        motion: motion of its root and joints, at the desired rate.
        on_progress: function called with the number of finished frames and of all frames.

    Raises:
        ValueError: the robot's base is fixed, or it has a different number of joints.
    """
    frames = len(motion.root_pos)
    count = min(frames, _CHUNK)
    scene = Scene(SceneCfg(num_envs=count, entities={"robot": entity_cfg}))
    entity: Entity = scene.entity("robot")
    base = "free"
    if entity.is_fixed_base:
        base = "fixed"
    if entity.is_fixed_base or motion.joint_pos.shape[1] != entity.num_joints:
        raise ValueError(
            f"{motion.source} moves a root and {motion.joint_pos.shape[1]} joints, but the robot "
            f"has {entity.num_joints} joints and a {base} base: use a recording of this robot."
        )
    sim = Simulation(count, spec=scene.spec, device="cpu")
    scene.initialize(sim.mj_model, sim.model, sim.data)
    linear, angular, joint_vel = motion.velocities()
    root = torch.cat([motion.root_pos, motion.root_quat, linear, angular], dim=1).float()
    joint_pos = motion.joint_pos.float()
    joint_vel = joint_vel.float()
    names = ("body_pos_w", "body_quat_w", "body_lin_vel_w", "body_ang_vel_w")
    bodies: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for start in range(0, frames, count):
        # In the last chunk, surplus worlds repeat the last frame.
        rows = torch.arange(start, start + count).clamp(max=frames - 1)
        entity.write_root_state_to_sim(root[rows])
        entity.write_joint_state_to_sim(joint_pos[rows], joint_vel[rows])
        sim.forward()
        for name, parts in bodies.items():
            parts.append(getattr(entity.data, name)[: frames - start].numpy().copy())
        if on_progress is not None:
            on_progress(min(start + count, frames), frames)
    return Motion(
        fps=motion.fps,
        joint_pos=joint_pos.numpy(),
        joint_vel=joint_vel.numpy(),
        **{name: np.concatenate(parts) for name, parts in bodies.items()},
        joint_names=entity.joint_names,
        body_names=entity.body_names,
        source=motion.source,
    )


def _read_csv(path: Path, joint_names: Sequence[str]) -> np.ndarray:
    """Read the columns of the root and of the joints."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no motion file '{path}': give a CSV or NPZ file.")
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = [line for line in csv.reader(file) if line]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"'{path}' is not a CSV file: {error}: give a CSV or NPZ file.") from None
    header = None
    if lines and not _is_number(lines[0][0]):
        header = [name.strip() for name in lines[0]]
    wanted = [*ROOT_COLUMNS, *joint_names]
    if header is not None:
        missing = [name for name in wanted if name not in header]
        if missing:
            raise ValueError(
                f"'{path}' has no columns {missing}, but its first line names other columns: name "
                "all columns of the root and of the robot's joints, or remove that line."
            )
        columns = [header.index(name) for name in wanted]
        lines = lines[1:]
        first_line = 2
    else:
        columns = list(range(len(wanted)))
        first_line = 1
    for number, line in enumerate(lines, first_line):
        if header is None:
            _check_width(len(line), joint_names, path, number)
        if len(line) <= max(columns) or not all(_is_number(line[i]) for i in columns):
            raise ValueError(
                f"Line {number} of '{path}' has a cell that is missing or not a number: expected "
                f"{len(wanted)} numbers."
            )
    return np.array([[float(line[i]) for i in columns] for line in lines]).reshape(-1, len(wanted))


def _check_width(
    width: int, joint_names: Sequence[str], path: Path, line: int | None = None
) -> None:
    """Refuse a recording with another number of columns than the robot needs."""
    if width != 7 + len(joint_names):
        where = ""
        if line is not None:
            where = f" in line {line}"
        raise ValueError(
            f"'{path}' has {width} columns{where}, but the robot needs {7 + len(joint_names)}: 3 "
            f"of the root's position, 4 of its quaternion, and {len(joint_names)} of joints, "
            f"{', '.join(joint_names)}."
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
