"""Films of a live world: shots, camera paths, and drawing in a process of its own."""

from manyworlds.lab.pictures.film.camera_path import CameraPath, Waypoint
from manyworlds.lab.pictures.film.filmer import Film, Filmer
from manyworlds.lab.pictures.film.shots import Shot, make_shot

__all__ = ["CameraPath", "Film", "Filmer", "Shot", "Waypoint", "make_shot"]
