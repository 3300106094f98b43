"""Films of a live world: shots, camera paths, and drawing in a process of its own."""

from manyworlds.lab.film.camera_path import CameraPath, Waypoint
from manyworlds.lab.film.filmer import Film, Filmer
from manyworlds.lab.film.shots import Shot, make_shot

__all__ = ["CameraPath", "Film", "Filmer", "Shot", "Waypoint", "make_shot"]
