"""Images of cameras for URLab's clients: their names, and the images of a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from manyworlds.lab.errors import VerbError
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.pictures.camera import KINDS, Kind, unknown_camera
from manyworlds.lab.server import images
from manyworlds.lab.server.images import cameras_of
from manyworlds.lab.server.operations import Request
from manyworlds.lab.verbs import VERBS
from manyworlds.lab.verbs.fields import Choice, Field, PlainDict
from manyworlds.lab.verbs.registry import ALWAYS, Reply
from manyworlds.plugins.urlab.clients import OPERATIONS, roster_of
from manyworlds.plugins.urlab.roster import Roster, two_meanings

Wishes = Mapping[str, tuple[str, str, Kind]]
"""Camera, moment and kind of images, by the client's name of the camera."""
_MOMENTS = ("sync", "latest")


def bgra(image: np.ndarray) -> np.ndarray:
    """Return colors as blue, green, red, alpha, uint8, shape (height, width, 4)."""
    pixels = np.full((*image.shape[:2], 4), 255, np.uint8)
    pixels[..., :3] = image[..., ::-1]
    return pixels


def robot_cameras(roster: Roster) -> dict[tuple[str, str], str]:
    """Return the model's cameras that are parts of robots.

    Returns:
        Name of each in the lab, by the name of the robot and its own name for clients.
    """
    names = roster.names
    found = {}
    rows = zip(names.live["cam"], names.wire["cam"], names.owners["cam"], strict=True)
    for index, (live, wire, robot) in enumerate(rows):
        if robot is not None:
            unnamed = f"camera_{index}"
            found[robot, wire.removeprefix(f"{robot}_") or unnamed] = live or unnamed
    return found


def find_camera(request: Request, name: str) -> str:
    """Return the name in the lab of a camera.

    Args:
        request: the request that names it.
        name: its name in the lab, or for clients: `robot/eye` or `robot_eye`.

    Raises:
        VerbError: there is no such camera.
    """
    known = cameras_of(request).cfgs
    if name in known:
        return name
    of_robots = [
        (f"{robot}_{short}", live)
        for (robot, short), live in robot_cameras(roster_of(request)).items()
    ]
    found = [live for client_name, live in of_robots if client_name == name]
    if not found:
        raise unknown_camera(name, [*known, *(client_name for client_name, _ in of_robots)])
    if len(found) > 1:
        raise two_meanings(name, found)
    return found[0]


def read_wishes(request: Request, wish: object) -> Wishes:
    """Return the images that a step asks for: camera, moment and kind by the client's name.

    Args:
        request: the request.
        wish: `include_cameras` of `step`: true for the colors of all cameras, or a map from names
            to `sync` or `latest`, perhaps with a kind: `sync depth`.

    Raises:
        VerbError: it is none of these.
    """
    if wish is None or wish is False:
        return {}
    if wish is True:
        return {name: (name, "sync", "rgb") for name in cameras_of(request).cfgs}
    if not isinstance(wish, Mapping):
        raise VerbError(
            "bad_value", "step: include_cameras must be true, or a map from cameras to sync/latest."
        )
    wishes: dict[str, tuple[str, str, Kind]] = {}
    for name, text in wish.items():
        moment = ""
        chosen: Any = "rgb"
        if isinstance(text, str):
            moment, _, kind = text.partition(" ")
            chosen = kind or "rgb"
        if moment not in _MOMENTS or chosen not in KINDS:
            raise VerbError(
                "bad_value",
                f"step: include_cameras of '{name[:80]}' must be sync or latest, perhaps with one "
                f"of {', '.join(KINDS)} after a space, got {str(text)[:80]!r}.",
            )
        wishes[name] = find_camera(request, name), moment, chosen
    return wishes


def take_images(request: Request, wishes: Wishes, snapshot: Snapshot) -> PlainDict:
    """Return the images that a step asks for, by the client's name of the camera.

    Those that are `sync` show the snapshot; the latest ones are those that were last published,
    or show the snapshot if there are none.
    """
    cameras = cameras_of(request)
    images: PlainDict = {}
    for name, (camera, moment, kind) in wishes.items():
        image = None
        if moment == "latest":
            image = cameras.newest(camera, kind)
        if image is None:
            image = cameras.render(camera, kind, snapshot)
        reply = image.header()
        if kind == "rgb":
            reply |= {"dtype": "bgra8", "channels": 4, "data": bgra(image.image).tobytes()}
        else:
            reply["data"] = image.to_bytes()
        images[name] = reply
    return images


@OPERATIONS.operation("lab", writes=False, reply={**VERBS["capture_camera"].reply, **ALWAYS})
def capture_camera(
    request: Request,
    camera: Annotated[str, Field(text="camera, by its name in the lab or for clients")],
    kind: Annotated[Kind, Choice(options=KINDS, text="kind of image")] = "rgb",
    format: Annotated[
        Literal["raw", "jpeg"], Choice(options=("raw", "jpeg"), text="encoding of the pixels")
    ] = "raw",
) -> Reply:
    """Take one image now, of the newest snapshot."""
    return images.capture_camera(request, find_camera(request, camera), kind, format)
