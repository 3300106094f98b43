"""Verbs of cameras: list, add, remove, settings, and single images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from manyworlds.lab.errors import VerbError
from manyworlds.lab.pictures.camera import (
    KINDS,
    MAX_DELAY,
    MAX_FOVY,
    MAX_PIXELS,
    MAX_RATE,
    MIN_FOVY,
    MIN_RATE,
    Kind,
    LabCameraCfg,
    quat_to_look,
)
from manyworlds.lab.pictures.frame import Frame, JpegFrame
from manyworlds.lab.verbs.fields import (
    Body,
    Choice,
    Content,
    Field,
    Flag,
    Integer,
    Name,
    Number,
    Numbers,
    Values,
)
from manyworlds.lab.verbs.registry import Reply, verb

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

_Camera = Annotated[str, Name(of="camera", text="camera of the model, or an added one")]
_Size = Annotated[int | None, Integer(low=1, high=MAX_PIXELS, unit="pixel", text="size of images")]
_Rate = Annotated[
    float | None, Number(low=MIN_RATE, high=MAX_RATE, unit="Hz", text="frames per simulated second")
]
_Delay = Annotated[
    float | None,
    Number(low=0.0, high=MAX_DELAY, unit="s", text="simulated time from a frame to its delivery"),
]
_Effects = Annotated[bool | None, Flag(text="true for shadows, reflections and smooth edges")]
_Fovy = Annotated[
    float | None,
    Number(low=MIN_FOVY, high=MAX_FOVY, unit="degrees", text="vertical field of view"),
]
_Intrinsics = Annotated[
    np.ndarray | None,
    Numbers(size=4, unit="pixel", text="fx, fy, cx, cy from the left and top edge; replaces fovy"),
]
_POS = "position relative to the body, or in the world"
_Pos = Annotated[np.ndarray, Numbers(size=3, unit="m", text=_POS)]
_Quat = Annotated[
    np.ndarray | None,
    Numbers(size=4, unit="wxyz", text="orientation relative to the body; -z is forward, y up"),
]
_LookAt = Annotated[
    np.ndarray | None,
    Numbers(size=3, unit="m", text="point to look at, in the frame of pos; replaces quat"),
]
_CAMERA = Values(text="all settings of the camera")
_FRAME = Values(text="size, dtype, intrinsics, pose, frame_id and time of the image")
_IMAGE = Content(text="pixels row by row, little-endian; or a JPEG file")


@verb(reads=True, cameras=Values(text="settings of each camera, by name"))
def list_cameras(lab: LiveLab) -> Reply:
    """Return the cameras of the model, and those that were added."""
    return {"cameras": {name: cfg.to_plain() for name, cfg in lab.cameras.cfgs.items()}}


@verb(camera=_CAMERA)
def add_camera(
    lab: LiveLab,
    name: Annotated[str, Field(text="name of the new camera")],
    pos: _Pos,
    quat: _Quat = None,
    look_at: _LookAt = None,
    body: Annotated[int | None, Body(text="body that carries it; the world if left out")] = None,
    fovy: _Fovy = None,
    intrinsics: _Intrinsics = None,
    width: _Size = None,
    height: _Size = None,
    rate: _Rate = None,
    delay: _Delay = None,
    effects: _Effects = None,
) -> Reply:
    """Add a camera, at a place of the world or on a body."""
    settings = {
        "name": name,
        "body": None if body is None else lab.model.body(body).name,
        "fovy": fovy,
        "width": width,
        "height": height,
        "rate": rate,
        "delay": delay,
        "effects": effects,
        **_pose("add_camera", pos, quat, look_at),
        "intrinsics": None if intrinsics is None else tuple(intrinsics.tolist()),
    }
    if settings["body"] == "":
        raise VerbError("unknown_body", f"add_camera: body {body} has no name: name it.")
    given = {key: value for key, value in settings.items() if value is not None}
    return {"camera": lab.cameras.add(LabCameraCfg(**given)).cfg.to_plain()}


@verb()
def remove_camera(lab: LiveLab, camera: _Camera) -> Reply:
    """Remove a camera that was added."""
    lab.cameras.remove(camera)
    return {}


@verb(camera=_CAMERA)
def configure_camera(
    lab: LiveLab,
    camera: _Camera,
    width: _Size = None,
    height: _Size = None,
    rate: _Rate = None,
    delay: _Delay = None,
    effects: _Effects = None,
    enabled: Annotated[bool | None, Flag(text="false to stop the stream")] = None,
) -> Reply:
    """Set how a camera takes images; what is left out stays."""
    settings = {
        "width": width,
        "height": height,
        "rate": rate,
        "delay": delay,
        "effects": effects,
        "enabled": enabled,
    }
    given = {key: value for key, value in settings.items() if value is not None}
    return {"camera": lab.cameras.configure(camera, **given).to_plain()}


@verb(camera=_CAMERA)
def move_camera(
    lab: LiveLab,
    camera: _Camera,
    pos: _Pos,
    quat: _Quat = None,
    look_at: _LookAt = None,
    fovy: _Fovy = None,
) -> Reply:
    """Move a camera that was added."""
    settings = _pose("move_camera", pos, quat, look_at)
    if fovy is not None:
        settings |= {"fovy": fovy, "intrinsics": None}
    return {"camera": lab.cameras.configure(camera, **settings).to_plain()}


@verb(reads=True, header=_FRAME, data=_IMAGE)
def capture_camera(
    lab: LiveLab,
    camera: _Camera,
    kind: Annotated[Kind, Choice(options=KINDS, text="kind of image")] = "rgb",
    format: Annotated[
        Literal["raw", "jpeg"], Choice(options=("raw", "jpeg"), text="encoding of the pixels")
    ] = "raw",
) -> Reply:
    """Take one image now, of the newest snapshot."""
    if format == "jpeg":
        return encode(lab.cameras.render_jpeg(camera, kind))
    return encode(lab.cameras.render(camera, kind))


def encode(frame: Frame | JpegFrame) -> Reply:
    """Return header and pixels of a frame as a reply."""
    if isinstance(frame, JpegFrame):
        return {"header": {**frame.header(), "encoding": "jpeg"}, "data": frame.data}
    return {"header": {**frame.header(), "encoding": "raw"}, "data": frame.to_bytes()}


def _pose(
    verb: str, pos: np.ndarray, quat: np.ndarray | None, look_at: np.ndarray | None
) -> dict[str, object]:
    if quat is not None and look_at is not None:
        raise VerbError("bad_request", f"{verb}: give quat or look_at, not both.")
    pose: dict[str, object] = {"pos": tuple(pos.tolist())}
    if look_at is not None:
        pose["quat"] = quat_to_look(pos, look_at)
    elif quat is not None:
        pose["quat"] = tuple(quat.tolist())
    return pose
