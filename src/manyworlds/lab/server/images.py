"""Images of cameras for clients: their messages, and single ones."""

from __future__ import annotations

from typing import Annotated, Literal

from manyworlds.lab.pictures.camera import KINDS, Kind
from manyworlds.lab.pictures.cameras import Cameras
from manyworlds.lab.pictures.image import CameraImage
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


def image_message(image: CameraImage) -> tuple[bytes, bytes, bytes]:
    """Return topic, header (a msgpack map, see `CameraImage.header`), and pixels of an image."""
    header = encode(image.header(), "msgpack")
    return image_topic(image.camera, image.kind), header, image.to_bytes()


def cameras_of(request: Request) -> Cameras:
    """Return the cameras of the world."""
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
    """Take one image now, of the newest snapshot."""
    cameras = cameras_of(request)
    if format == "raw":
        image = cameras.render(camera, kind)
    else:
        image = cameras.render_jpeg(camera, kind)
    return {**verbs.encode(image), "frame_id": image.frame_id, "time": image.time}
