"""Motions to track, frame by frame, and their NPZ files."""

from __future__ import annotations

import dataclasses
import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from manyworlds.utils.files import write_atomic

_SHAPES: dict[str, tuple[str, ...]] = {
    "joint_pos": ("joints",),
    "joint_vel": ("joints",),
    "body_pos_w": ("bodies", "3"),
    "body_quat_w": ("bodies", "4"),
    "body_lin_vel_w": ("bodies", "3"),
    "body_ang_vel_w": ("bodies", "3"),
}
_REMEDY = "write it with `manyworlds motion convert`, which creates all required arrays"


@dataclass(frozen=True, kw_only=True)
class Motion:
    """Motion of one robot's joints and bodies; all arrays are float32, with one row per frame.

    Joints and bodies are those of the entity, in its order.

    Raises:
        ValueError: arrays do not fit together or have values that are not finite; the message names
            the array.
    """

    fps: float
    """Frames per second, equal to the control rate of the task."""
    joint_pos: np.ndarray
    """Joint positions [rad or m], shape [frames, joints]."""
    joint_vel: np.ndarray
    """Joint velocities [rad/s or m/s], shape [frames, joints]."""
    body_pos_w: np.ndarray
    """Positions of body frames in the world [m], shape [frames, bodies, 3]."""
    body_quat_w: np.ndarray
    """Orientations of body frames in the world (wxyz), shape [frames, bodies, 4]."""
    body_lin_vel_w: np.ndarray
    """Velocities of body origins in the world [m/s], shape [frames, bodies, 3]."""
    body_ang_vel_w: np.ndarray
    """Angular velocities of bodies in the world [rad/s], shape [frames, bodies, 3]."""
    joint_names: tuple[str, ...] = ()
    """Names of the joints; empty if the file has none."""
    body_names: tuple[str, ...] = ()
    """Names of the bodies; empty if the file has none."""
    source: str = "the motion"
    """Origin of the motion, used in messages."""

    def __post_init__(self) -> None:
        if not (np.isfinite(self.fps) and self.fps > 0.0):
            raise ValueError(f"'fps' of {self.source} is {self.fps}: it must be above 0.")
        sizes = {"3": 3, "4": 4}
        for name, axes in _SHAPES.items():
            array = getattr(self, name)
            expected = tuple(sizes.get(axis, axis) for axis in ("frames", *axes))
            fits = array.ndim == len(expected) and array.shape[0] > 1
            for axis, size in zip(("frames", *axes), array.shape, strict=False):
                fits &= sizes.setdefault(axis, size) == size
            if not fits:
                shown = ", ".join(map(str, expected))
                raise ValueError(
                    f"'{name}' of {self.source} has shape {array.shape}, expected ({shown}) with "
                    f"2 frames or more: {_REMEDY}."
                )
            if not np.isfinite(array).all():
                frame = int(np.argwhere(~np.isfinite(array))[0][0])
                raise ValueError(
                    f"'{name}' of {self.source} is not finite in frame {frame}: correct the "
                    "recording and convert it again."
                )
        length = np.linalg.norm(self.body_quat_w, axis=-1)
        if not np.allclose(length, 1.0, atol=1e-2):
            raise ValueError(
                f"'body_quat_w' of {self.source} has quaternions of length {length.min():.3g} to "
                f"{length.max():.3g}: they must be unit quaternions, scalar first. Or {_REMEDY}."
            )

    @property
    def num_frames(self) -> int:
        """Number of frames."""
        return len(self.joint_pos)

    @property
    def duration(self) -> float:
        """Time from the first frame to the last [s]."""
        return (self.num_frames - 1) / self.fps

    def in_order(self, joint_names: Sequence[str], body_names: Sequence[str]) -> Motion:
        """Return the motion with the given joints and bodies, if it names its own.

        Raises:
            ValueError: one of them is missing.
        """
        parts: dict[str, np.ndarray] = {}
        order = {"joint": (self.joint_names, joint_names), "body": (self.body_names, body_names)}
        for kind, (own, wanted) in order.items():
            missing = [name for name in wanted if own and name not in own]
            if missing:
                raise ValueError(
                    f"{self.source} has no {kind} {missing}, but {list(own)}: use a recording of "
                    "this robot."
                )
            if own and wanted:
                columns = [own.index(name) for name in wanted]
                names = [name for name in _SHAPES if name.startswith(kind)]
                parts |= {name: getattr(self, name)[:, columns] for name in names}
        joints = self.joint_names
        if joints:
            joints = tuple(joint_names)
        bodies = self.body_names
        if bodies and body_names:
            bodies = tuple(body_names)
        return dataclasses.replace(self, **parts, joint_names=joints, body_names=bodies)

    def save(self, path: str | Path) -> Path:
        """Write an NPZ file atomically."""
        buffer = io.BytesIO()
        np.savez_compressed(
            buffer,
            fps=np.array([self.fps]),
            joint_names=np.array(self.joint_names, dtype=np.str_),
            body_names=np.array(self.body_names, dtype=np.str_),
            **{name: getattr(self, name).astype(np.float32) for name in _SHAPES},
        )
        path = Path(path)
        write_atomic(path, buffer.getvalue())
        return path

    @classmethod
    def load(cls, path: str | Path, default_fps: float | None = None) -> Motion:
        """Read an NPZ file, without executing code from it.

        Args:
            path: the file.
            default_fps: frames per second of a file that does not state them; None refuses it.

        Raises:
            FileNotFoundError: the file does not exist.
            ValueError: the file is invalid; the message states the key, the expected value and the
                remedy.
        """
        arrays = _load_arrays(Path(path))
        if default_fps is not None:
            arrays.setdefault("fps", np.array([default_fps]))
        for key, axes in {"fps": (), **_SHAPES}.items():
            if key not in arrays:
                shape = "one number"
                if axes:
                    shape = ", ".join(("frames", *axes))
                raise ValueError(
                    f"The motion file '{path}' has no '{key}' ({shape}), only {sorted(arrays)}: "
                    f"{_REMEDY}."
                )
        fps = arrays["fps"]
        if fps.size != 1:
            raise ValueError(
                f"'fps' of the motion file '{path}' has shape {fps.shape}, expected one number: "
                f"{_REMEDY}."
            )
        return cls(
            fps=fps.item(),
            joint_names=tuple(arrays.get("joint_names", np.array([])).tolist()),
            body_names=tuple(arrays.get("body_names", np.array([])).tolist()),
            source=f"the motion file '{path}'",
            **{name: arrays[name].astype(np.float32) for name in _SHAPES},
        )


def _load_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read all arrays of an NPZ file, without pickles, which could execute code.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: the file is not an NPZ file, or contains Python objects.
    """
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no motion file '{path}': give the path of an NPZ file, or make one with "
            "`manyworlds motion convert`."
        )
    if not zipfile.is_zipfile(path):
        raise ValueError(f"The motion file '{path}' is not an NPZ file: {_REMEDY}.")
    with np.load(path, allow_pickle=False) as archive:
        arrays: dict[str, np.ndarray] = {}
        for key in archive.files:
            try:
                arrays[key] = archive[key]
            except (ValueError, EOFError, zipfile.BadZipFile) as error:
                raise ValueError(
                    f"'{key}' of the motion file '{path}' cannot be read ({error}): it must be an "
                    f"array of numbers. Or {_REMEDY}."
                ) from None
    return arrays
