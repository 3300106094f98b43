"""Images of cameras for clients: their messages, and single ones."""

from __future__ import annotations

from typing import Annotated, Literal

from manyworlds.lab.pictures.camera import KINDS, Kind
from manyworlds.lab.pictures.frame import Frame
from manyworlds.lab.pictures.hub import CameraHub, unknown_camera
from manyworlds.lab.server.messages import encode
from manyworlds.lab.server.operations import Request, operation
from manyworlds.lab.verbs import VERBS
from manyworlds.lab.verbs import cameras as verbs
from manyworlds.lab.verbs.fields import Choice, Field
from manyworlds.lab.verbs.registry import ALWAYS, Reply

TOPIC = "image/"
"""Beginning of the topics of images: `image/CAMERA/KIND`."""


def image_topic(camera: str, kind: Kind) -> bytes:
    """Return the topic of a camera's images of one kind."""
    return f"{TOPIC}{camera}/{kind}".encode()


def image_message(frame: Frame) -> tuple[bytes, bytes, bytes]:
    """Return topic, header (a msgpack map, see `Frame.header`), and pixels of a frame."""
    header = encode(frame.header(), "msgpack")
    return image_topic(frame.camera, frame.kind), header, frame.to_bytes()


def painter_of(request: Request) -> CameraHub:
    """Return what draws the cameras of the world."""
    assert request.server.cameras is not None, "there is a world"
    return request.server.cameras


@operation("lab", writes=False, reply={**VERBS["capture_camera"].reply, **ALWAYS})
def capture_camera(
    request: Request,
    camera: Annotated[str, Field(text="camera, by its name in the lab")],
    kind: Annotated[Kind, Choice(options=KINDS, text="kind of image")] = "rgb",
    format: Annotated[
        Literal["raw", "jpeg"], Choice(options=("raw", "jpeg"), text="encoding of the pixels")
    ] = "raw",
) -> Reply:
    """Take one image now, of the newest snapshot, in the server's process."""
    painter = painter_of(request)
    if camera not in painter.cameras:
        known = painter.list_cameras()  # one may have been added a moment ago
        if camera not in known:
            raise unknown_camera(camera, known)
    frame = painter.render(camera, kind)
    shown = frame if format == "raw" else frame.to_jpeg()
    return {**verbs.encode(shown), "frame_id": frame.frame_id, "time": frame.time}
