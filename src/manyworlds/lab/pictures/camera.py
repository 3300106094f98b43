"""Settings of the cameras of a live world."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from manyworlds.lab.errors import VerbError, near
from manyworlds.utils.gl import gl_available

if TYPE_CHECKING:
    from manyworlds.lab.face import LabFace

Kind = Literal["rgb", "depth", "segmentation", "geom", "body", "entity"]
"""Kind of an image.

`rgb`: colors. `depth`: distance along the optical axis [m]. `segmentation`: id and type (`mjtObj`)
of the visible object, -1 for none. `geom`, `body`, `entity`: id of the visible geom, of its body,
of its entity, -1 for none.
"""
KINDS: tuple[Kind, ...] = get_args(Kind)
"""All kinds of images."""
Origin = Literal["model", "added"]
"""Where a camera comes from: the model, or a call of `LabCameras.add`."""

MAX_PIXELS = 4096
"""Largest width and height of an image [pixel]."""
MIN_RATE = 0.001
MAX_RATE = 1000.0
"""Bounds of the number of images per simulated second [Hz]."""
MAX_DELAY = 5.0
"""Longest delay of a camera [s]."""
MIN_FOVY = 0.1
MAX_FOVY = 179.0
"""Bounds of the vertical field of view [degrees]."""
_DEFAULT_SIZE = (640, 480)


@dataclass(frozen=True, kw_only=True)
class LabCameraCfg:
    """Settings of one camera: its pose, its projection, and its stream.

    A camera looks along its -z, with +y up in the image, as in MuJoCo.

    Raises:
        ValueError: a value is out of its bounds.
    """

    name: str
    source: Origin = "added"
    """`model` for a camera of the model, whose pose and projection are those of the model."""
    body: str = ""
    """Body that carries the camera; empty for the world."""
    pos: tuple[float, float, float] = (0.0, 0.0, 1.0)
    """Position relative to the body [m]."""
    quat: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    """Orientation relative to the body (wxyz)."""
    fovy: float = 45.0
    """Vertical field of view [degrees]."""
    intrinsics: tuple[float, float, float, float] | None = None
    """Focal lengths fx, fy and principal point cx, cy, from the left and top edge [pixel], in place
    of `fovy`."""
    width: int = _DEFAULT_SIZE[0]
    height: int = _DEFAULT_SIZE[1]
    rate: float = 30.0
    """Images per simulated second [Hz]."""
    delay: float = 0.0
    """Simulated time between an image and its delivery [s]."""
    effects: bool = False
    """True to draw colors with shadows, reflections and smooth edges, which takes longer."""
    enabled: bool = True
    """False to deliver no images to subscribers."""

    def __post_init__(self) -> None:
        bounds = [
            ("width", 1, MAX_PIXELS, "pixels"),
            ("height", 1, MAX_PIXELS, "pixels"),
            ("rate", MIN_RATE, MAX_RATE, "Hz"),
            ("delay", 0, MAX_DELAY, "s"),
        ]
        if self.source == "added":
            bounds.append(("fovy", MIN_FOVY, MAX_FOVY, "degrees"))
        for field, low, high, unit in bounds:
            value = getattr(self, field)
            if not low <= value <= high:
                raise ValueError(
                    f"Camera '{self.name}': {field} must be from {low:g} to {high:g} {unit}, "
                    f"got {value}."
                )
        focal = self.intrinsics or (1.0,)
        if not np.isfinite([*self.pos, *self.quat, *focal]).all() or not any(self.quat):
            raise ValueError(
                f"Camera '{self.name}': pos, quat and intrinsics must be finite, and quat not 0, "
                f"got {self.pos}, {self.quat}, {self.intrinsics}."
            )
        if min(focal[:2]) <= 0.0:
            raise ValueError(
                f"Camera '{self.name}': focal lengths must be positive, got {self.intrinsics}."
            )

    def resized(self, width: int, height: int) -> LabCameraCfg:
        """Return the camera with images of another size that show the same."""
        pixels = self.intrinsics
        if pixels is not None:
            x = width / self.width
            y = height / self.height
            pixels = (x * pixels[0], y * pixels[1], x * pixels[2], y * pixels[3])
        return dataclasses.replace(self, width=width, height=height, intrinsics=pixels)

    def to_plain(self) -> dict[str, object]:
        """Return all settings as plain data."""
        return dataclasses.asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, object]) -> LabCameraCfg:
        """Return the camera that `to_plain` described."""
        settings: dict[str, Any] = dict(plain)
        for name, value in plain.items():
            if isinstance(value, list):
                settings[name] = tuple(value)
        return cls(**settings)


def model_cameras(model: mujoco.MjModel) -> dict[str, LabCameraCfg]:
    """Return the cameras of a model, by name; `camera_ID` stands for those without a name."""
    cameras = {}
    for index in range(model.ncam):
        size = model.cam_resolution[index].tolist()
        if min(size) <= 1:  # MuJoCo's default
            size = _DEFAULT_SIZE
        camera = LabCameraCfg(
            name=model.camera(index).name or f"camera_{index}",
            source="model",
            body=model.body(model.cam_bodyid[index]).name,
            pos=tuple(model.cam_pos[index].tolist()),
            quat=tuple(model.cam_quat[index].tolist()),
            fovy=float(model.cam_fovy[index]),
            width=min(size[0], MAX_PIXELS),
            height=min(size[1], MAX_PIXELS),
        )
        cameras[camera.name] = camera
    return cameras


def quat_to_look(pos: ArrayLike, target: ArrayLike) -> tuple[float, float, float, float]:
    """Return the orientation of a camera that looks at a point, with +z up in the image.

    Args:
        pos: position of the camera, shape (3,).
        target: the point, shape (3,).

    Returns:
        Quaternion (wxyz).

    Raises:
        ValueError: the point is the camera's position.
    """
    back = np.asarray(pos, float) - np.asarray(target, float)
    distance = float(np.linalg.norm(back))
    if not math.isfinite(distance) or distance < 1e-9:
        raise ValueError(f"A camera at {pos} cannot look at {target}: choose another point.")
    back /= distance
    right = np.cross((0.0, 0.0, 1.0), back)
    if np.linalg.norm(right) < 1e-6:  # straight up or down
        right = np.array([0.0, -1.0, 0.0])
    right /= np.linalg.norm(right)
    return quat_of(np.column_stack([right, np.cross(back, right), back]))


def quat_of(axes: np.ndarray) -> tuple[float, float, float, float]:
    """Return the quaternion (wxyz) of a rotation matrix, shape (3, 3)."""
    quat = np.empty(4)
    mujoco.mju_mat2Quat(quat, np.ascontiguousarray(axes, float).ravel())
    w, x, y, z = quat.tolist()
    return w, x, y, z


def list_cameras(face: LabFace) -> dict[str, LabCameraCfg]:
    """Return the cameras of a live world in any process, by name."""
    listed = face.verbs.list_cameras()["cameras"]
    return {name: LabCameraCfg.from_plain(plain) for name, plain in listed.items()}


def check_request(camera: str, kind: str, known: Mapping[str, LabCameraCfg]) -> None:
    """Check that an image can be drawn.

    Args:
        camera: name of the camera.
        kind: kind of the image.
        known: all cameras, by name.

    Raises:
        VerbError: there is no such camera or kind, or no OpenGL.
    """
    if camera not in known:
        raise unknown_camera(camera, known)
    if kind not in KINDS:
        raise VerbError("bad_value", f"kind must be one of {', '.join(KINDS)}, got '{kind}'.")
    if (reason := gl_available()) is not None:
        raise VerbError("no_gl", reason)


def unknown_camera(name: str, known: Iterable[str]) -> VerbError:
    """Return the error of a name that no camera has."""
    names = ", ".join(known) or "there is none: add one"
    return VerbError("unknown_camera", f"There is no camera '{name}' ({names}){near(name, known)}")
