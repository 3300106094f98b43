"""Motions to track, frame by frame, and the NPZ files that hold them."""

from __future__ import annotations

import io
import zipfile
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
_REMEDY = "write it with `manyworlds motion convert`, which makes all that is needed"


@dataclass(frozen=True, kw_only=True)
class Motion:
    """What the joints and bodies of one robot do; all arrays are float32, a row for each frame.

    Joints and bodies are those of the entity, in its order.

    Raises:
        ValueError: arrays do not fit together, or hold what is not finite; the message names them.
    """

    fps: float
    """Frames per second, which is the control rate of the task."""
    joint_pos: np.ndarray
    """Joint positions [rad or m], shape [frames, joints]."""
    joint_vel: np.ndarray
    """Joint velocities [rad/s or m/s], shape [frames, joints]."""
    body_pos_w: np.ndarray
    """Positions of body frames in the world [m], shape [frames, bodies, 3]."""
    body_quat_w: np.ndarray
    """Their orientations (wxyz), shape [frames, bodies, 4]."""
    body_lin_vel_w: np.ndarray
    """Velocities of their origins in the world [m/s], shape [frames, bodies, 3]."""
    body_ang_vel_w: np.ndarray
    """Their angular velocities in the world [rad/s], shape [frames, bodies, 3]."""
    joint_names: tuple[str, ...] = ()
    """Names of the joints, or nothing where a file does not tell."""
    body_names: tuple[str, ...] = ()
    """Names of the bodies, or nothing where a file does not tell."""
    source: str = "the motion"
    """Where it is from, for messages."""

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
                    f"'{name}' of {self.source} is not finite in frame {frame}: mend the recording "
                    "and convert it again."
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

    def save(self, path: str | Path) -> Path:
        """Write an NPZ file, whole or not at all."""
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
    def load(cls, path: str | Path) -> Motion:
        """Read an NPZ file; nothing in it is executed.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: it is not such a file; the message says which key is wrong, what is
                expected of it, and what to do.
        """
        arrays = _load_arrays(Path(path))
        for key, axes in {"fps": (), **_SHAPES}.items():
            if key not in arrays:
                shape = ", ".join(("frames", *axes)) if axes else "one number"
                raise ValueError(
                    f"The motion file '{path}' has no '{key}' ({shape}), only {sorted(arrays)}: "
                    f"{_REMEDY}."
                )
        if (fps := arrays["fps"]).size != 1:
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
    """Read all arrays of an NPZ file, without pickles, which could run code.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no NPZ file, or holds Python objects.
    """
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no motion file '{path}': give the path of an NPZ file, or make one with "
            "`manyworlds motion convert`."
        )
    if not zipfile.is_zipfile(path):
        raise ValueError(f"The motion file '{path}' is no NPZ file: {_REMEDY}.")
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
