"""Cameras of pages."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import viser

FOVY = 45.0
"""Vertical field of view of pages [degrees]."""
_ASPECT = 1.2  # width by height of a usual window without the panel
_FIRST_ASPECT = 1.0  # the same of a small one: 1280 x 800 pixels


def camera_to_see(
    box: np.ndarray, azimuth: float, elevation: float, fovy: float, aspect: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return a camera that sees a whole box.

    Args:
        box: lowest and highest corner [m], shape (2, 3).
        azimuth: direction of view as in MuJoCo [degrees]; 90 looks along +y.
        elevation: direction of view as in MuJoCo [degrees]; negative looks down.
        fovy: vertical field of view [degrees].
        aspect: width of the view by its height.

    Returns:
        Position of the camera and the point it looks at [m], each of shape (3,).
    """
    az = math.radians(azimuth)
    el = math.radians(elevation)
    forward = np.array([math.cos(el) * math.cos(az), math.cos(el) * math.sin(az), math.sin(el)])
    right = np.array([math.sin(az), -math.cos(az), 0.0])
    up = np.cross(right, forward)
    center = box.mean(axis=0)
    corners = np.array([[box[i, 0], box[j, 1], box[k, 2]] for i, j, k in np.ndindex(2, 2, 2)])
    offset = corners - center
    tangent = math.tan(math.radians(fovy) / 2)
    needed = np.maximum(np.abs(offset @ up) / tangent, np.abs(offset @ right) / (tangent * aspect))
    distance = max(float((needed - offset @ forward).max()), 1e-3)
    return center - distance * forward, center


def point_cameras(
    server: viser.ViserServer,
    box: np.ndarray,
    azimuth: float,
    elevation: float,
    fovy: float = FOVY,
    aspect: float = _ASPECT,
    *,
    move_open: bool = False,
) -> None:
    """Point the cameras of browsers at a box.

    Args:
        server: server of the page.
        box: lowest and highest corner [m], shape (2, 3).
        azimuth: direction of view as in MuJoCo [degrees].
        elevation: direction of view as in MuJoCo [degrees].
        fovy: vertical field of view [degrees].
        aspect: width of the view by its height.
        move_open: whether to move the cameras of connected browsers, too; otherwise the view
            applies only to browsers that connect later.
    """
    # For the first picture of a browser, whose size is not known yet, the panel included.
    first = min(aspect, _FIRST_ASPECT)
    position, look_at = camera_to_see(box, azimuth, elevation, fovy, first)
    distance = float(np.linalg.norm(look_at - position))
    initial = server.initial_camera
    initial.fov = math.radians(fovy)
    initial.near, initial.far = clipping_distances(distance)
    initial.position = position
    initial.look_at = look_at
    if move_open:
        for client in server.get_clients().values():
            point_camera(client, box, azimuth, elevation, fovy, aspect)


def point_camera(
    client: viser.ClientHandle,
    box: np.ndarray,
    azimuth: float,
    elevation: float,
    fovy: float,
    aspect: float,
) -> None:
    """Point the camera of one browser at a box, so that a narrow window also shows all of it.

    Args:
        client: the browser.
        box: lowest and highest corner [m], shape (2, 3).
        azimuth: direction of view as in MuJoCo [degrees].
        elevation: direction of view as in MuJoCo [degrees].
        fovy: vertical field of view [degrees].
        aspect: width of the view by its height; that of the browser's view if it is narrower.
    """
    camera = client.camera
    if camera.image_width > 0 and camera.image_height > 0:  # the tab is not hidden
        aspect = min(aspect, camera.image_width / camera.image_height)
    move_camera(client, *camera_to_see(box, azimuth, elevation, fovy, aspect))


def keep_fitted(client: viser.ClientHandle, initial: np.ndarray, fit: Callable[[], None]) -> None:
    """Fit the view of a browser now, and again when its size changes, until its camera is moved.

    A browser connects before the panel beside the view is drawn, which makes the view narrower.

    Args:
        client: the browser.
        initial: position of the server's initial camera [m], to which the browser may go after
            the first fit, shape (3,).
        fit: points the camera of the browser, see `point_camera`.
    """
    camera = client.camera
    fitted: tuple[int, int] | None = None
    position = np.zeros(3)

    def is_at(place: np.ndarray) -> bool:
        return np.allclose(camera.position, place, atol=1e-4)

    def check(_: object) -> None:
        nonlocal fitted, position
        size = camera.image_width, camera.image_height
        if fitted is None:
            needs_fit = True
        elif is_at(position):
            needs_fit = size != fitted
        else:
            needs_fit = is_at(initial)
        if needs_fit:
            fit()
            fitted = size
            position = np.array(camera.position)

    check(camera)
    camera.on_update(check)
    check(camera)  # the size may have changed in between


class FittedView:
    """View of a page's browsers: fitted to the size of each one until its user moves the camera.

    Args:
        server: server of the page.
    """

    def __init__(self, server: viser.ViserServer) -> None:
        self._server = server
        self._view: tuple[np.ndarray, float, float, float, float] | None = None
        server.on_client_connect(self._welcome)

    def look(self, box: np.ndarray, azimuth: float, elevation: float, fovy: float = FOVY) -> None:
        """Point the cameras of all browsers at a box, also of those that connect later.

        Args:
            box: lowest and highest corner [m], shape (2, 3).
            azimuth: direction of view as in MuJoCo [degrees].
            elevation: direction of view as in MuJoCo [degrees].
            fovy: vertical field of view [degrees].
        """
        self._view = (box, azimuth, elevation, fovy, _ASPECT)
        point_cameras(self._server, *self._view, move_open=True)

    def close(self) -> None:
        """Leave all cameras alone from now on."""
        self._view = None

    def _welcome(self, client: viser.ClientHandle) -> None:
        """Fit the view of a browser that connects."""

        def fit() -> None:
            if self._view is not None:
                point_camera(client, *self._view)

        if self._view is not None:
            keep_fitted(client, self._server.initial_camera.position.copy(), fit)


def move_camera(client: viser.ClientHandle, position: np.ndarray, look_at: np.ndarray) -> None:
    """Move the camera of one browser; positions are in the scene [m], each of shape (3,)."""
    camera = client.camera
    with client.atomic():
        camera.near, camera.far = clipping_distances(float(np.linalg.norm(look_at - position)))
        camera.position = position
        camera.look_at = look_at


def clipping_distances(distance: float) -> tuple[float, float]:
    """Return the nearest and the farthest distance that is drawn [m].

    Args:
        distance: distance of what the camera looks at [m].
    """
    return min(0.01, distance / 50.0), max(1000.0, 50.0 * distance)
