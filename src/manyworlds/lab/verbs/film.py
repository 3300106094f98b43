"""Verbs of films and of the camera path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from manyworlds.lab.pictures.camera import MAX_FOVY, MAX_PIXELS, MIN_FOVY
from manyworlds.lab.pictures.film.camera_path import CameraPath
from manyworlds.lab.verbs.fields import (
    Choice,
    Field,
    Integer,
    Number,
    PlainMap,
    Values,
)
from manyworlds.lab.verbs.registry import Reply, verb

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

_FILM = Values(
    text="newest film: name, state, frames drawn and in all, elapsed, left [s], path, note, error"
)
_PATH = Values(text="waypoints (time, pos, and quat or look_at), curve, loop, delay, autoplay")
_SIZE = Integer(low=16, high=MAX_PIXELS, unit="pixel", text="size of the film")
_FILE = Field(text="name of a file NAME.camera.json in the folder of the recordings")
_ORBIT: PlainMap = {"kind": "orbit"}


@verb(film=_FILM)
def film_start(
    lab: LiveLab,
    source: Annotated[
        str, Field(text="last or next seconds, the state now, or a recording")
    ] = "last",
    seconds: Annotated[
        float | None, Number(low=0.001, unit="s", text="length; of the camera path if left out")
    ] = None,
    shot: Annotated[
        PlainMap,
        Values(text="kind (orbit, path, follow, first_person, fixed, camera), and its fields"),
    ] = _ORBIT,
    fps: Annotated[float, Number(low=0.1, high=240.0, unit="1/s", text="frames per second")] = 30.0,
    width: Annotated[int, _SIZE] = 640,
    height: Annotated[int, _SIZE] = 480,
    fovy: Annotated[
        float, Number(low=MIN_FOVY, high=MAX_FOVY, unit="degrees", text="vertical field of view")
    ] = 45.0,
    format: Annotated[
        Literal["", "mp4", "gif"], Choice(options=("", "mp4", "gif"), text="empty: the best one")
    ] = "",
    name: Annotated[str, Field(text="name of the file without suffix; the date if empty")] = "",
) -> Reply:
    """Start a film, drawn in a process of its own into the folder of the recordings."""
    settings = {"fps": fps, "width": width, "height": height, "fovy": fovy}
    film = lab.filmer.start(source, seconds, shot=shot, format=format, name=name, **settings)
    return {"film": film.describe()}


@verb(reads=True, film=_FILM)
def read_film(lab: LiveLab) -> Reply:
    """Return the progress of the newest film; nothing before the first one."""
    if lab.filmer.film is None:
        return {"film": {}}
    return {"film": lab.filmer.film.describe()}


@verb()
def film_cancel(lab: LiveLab) -> Reply:
    """Cancel the film that is being made."""
    lab.filmer.cancel()
    return {}


@verb(camera_path=_PATH)
def set_camera_path(lab: LiveLab, camera_path: Annotated[PlainMap, _PATH]) -> Reply:
    """Set the camera path, for the page and for films."""
    lab.filmer.path = CameraPath.from_plain(dict(camera_path))
    return {"camera_path": lab.filmer.path.to_plain()}


@verb(reads=True, camera_path=_PATH)
def read_camera_path(lab: LiveLab) -> Reply:
    """Return the camera path."""
    return {"camera_path": lab.filmer.path.to_plain()}


@verb(absolute_path=Field(text="path of the file"))
def save_camera_path(lab: LiveLab, path: Annotated[str, _FILE]) -> Reply:
    """Write the camera path beside the recordings."""
    file = lab.filmer.path.save(lab.filmer.path_file(path))
    return {"absolute_path": str(file.absolute())}


@verb(camera_path=_PATH)
def load_camera_path(lab: LiveLab, path: Annotated[str, _FILE]) -> Reply:
    """Read a camera path that was written beside the recordings."""
    lab.filmer.path = CameraPath.load(lab.filmer.path_file(path))
    return {"camera_path": lab.filmer.path.to_plain()}
