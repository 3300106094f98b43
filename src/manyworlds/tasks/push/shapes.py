"""Prisms of many shapes that slide on a floor: outlines, convex pieces and specs."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from manyworlds.spec.convex import CoacdCfg, convex_pieces
from manyworlds.spec.meshes import Triangles
from manyworlds.utils.extras import require_extra

if TYPE_CHECKING:
    import shapely
    import trimesh

HEIGHT = 0.05
"""Height of all prisms [m]."""
FLOOR_FRICTION = 0.4
"""Coefficient of friction between objects and the floor."""
OUTLINE_DIRECTIONS = 128
"""Number of directions of `PushShape.radii`."""
GRAVITY = 9.81

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class PushShape:
    """Cross-section, mass and color of a prism."""

    points: Points
    """Vertices of the outline in order [m]."""
    mass: float
    """Mass [kg]."""
    rgb: tuple[float, float, float]

    @functools.cached_property
    def outline(self) -> np.ndarray:
        """Counterclockwise vertices relative to the center of mass [m], shape [num_corners, 2]."""
        polygon = self._polygon
        corners = np.array(polygon.exterior.coords[:-1])
        corners -= np.array(polygon.centroid.coords[0])
        if not polygon.exterior.is_ccw:
            corners = corners[::-1].copy()
        return corners

    @functools.cached_property
    def mesh(self) -> trimesh.Trimesh:
        """Prism on the plane z = 0."""
        polygon = _shapely().Polygon(self.outline)
        trimesh = require_extra("trimesh", "meshes")
        return trimesh.creation.extrude_polygon(polygon, HEIGHT, engine="earcut")

    @functools.cached_property
    def radii(self) -> np.ndarray:
        """Distance from the center to the outline by direction [m], shape [OUTLINE_DIRECTIONS].

        The largest distance, if a ray from the center crosses the outline more than once; 0 if it
        does not cross it, as in the opening of a U whose center is outside of the shape.
        """
        angles = np.arange(OUTLINE_DIRECTIONS) * (2.0 * math.pi / OUTLINE_DIRECTIONS)
        return np.array([_reach(self.outline, angle) for angle in angles])

    @functools.cached_property
    def pieces(self) -> list[Triangles]:
        """Convex pieces of the prism."""
        polygon = self._polygon
        prism = np.asarray(self.mesh.vertices), np.asarray(self.mesh.faces)
        if math.isclose(polygon.area, polygon.convex_hull.area, rel_tol=1e-9):
            return [prism]
        return convex_pieces(*prism, CoacdCfg(is_solid=True))

    @property
    def radius_of_gyration(self) -> float:
        """Radius of gyration about the vertical axis through the center of mass [m]."""
        return math.sqrt(self.mesh.moment_inertia[2, 2] / self.mesh.volume)

    @property
    def _polygon(self) -> shapely.Polygon:
        return _shapely().Polygon(self.points)


def _shapely() -> ModuleType:
    return require_extra("shapely", "meshes")


def _reach(outline: np.ndarray, angle: float) -> float:
    """Distance to the farthest point of the outline along a ray from the origin [m]."""
    along = np.array([math.cos(angle), math.sin(angle)])
    across = np.array([-along[1], along[0]])
    start = outline
    end = np.roll(outline, -1, axis=0)
    side_start = start @ across
    side_end = end @ across
    crosses = (side_start <= 0.0) != (side_end <= 0.0)
    if not crosses.any():
        return 0.0
    share = side_start[crosses] / (side_start[crosses] - side_end[crosses])
    hits = (start[crosses] + share[:, None] * (end - start)[crosses]) @ along
    return max(0.0, hits.max())


def _box(length: float, width: float) -> Points:
    return ((0.0, 0.0), (length, 0.0), (length, width), (0.0, width))


def _round(count: int, x: float, y: float | None = None) -> Points:
    if y is None:
        y = x
    turns = [2.0 * math.pi * (i + 0.5) / count for i in range(count)]
    return tuple((x * math.cos(a), y * math.sin(a)) for a in turns)


def _star(count: int, outer: float, inner: float) -> Points:
    turns = [math.pi * i / count for i in range(2 * count)]
    radii = (outer, inner) * count
    return tuple((r * math.cos(a), r * math.sin(a)) for r, a in zip(radii, turns, strict=True))


def _scaled(points: Points, unit: float) -> Points:
    return tuple((x * unit, y * unit) for x, y in points)


_L = ((0, 0), (3, 0), (3, 1), (1, 1), (1, 3), (0, 3))
_T = ((1, 0), (2, 0), (2, 2), (3, 2), (3, 3), (0, 3), (0, 2), (1, 2))
_PLUS = (
    *((1, 0), (2, 0), (2, 1), (3, 1), (3, 2), (2, 2)),
    *((2, 3), (1, 3), (1, 2), (0, 2), (0, 1), (1, 1)),
)
_U = ((0, 0), (3, 0), (3, 3), (2, 3), (2, 1), (1, 1), (1, 3), (0, 3))
_J = ((0, 0), (2, 0), (2, 3), (1, 3), (1, 1), (0, 1))
_H = (
    *((0, 0), (1, 0), (1, 1), (2, 1), (2, 0), (3, 0)),
    *((3, 3), (2, 3), (2, 2), (1, 2), (1, 3), (0, 3)),
)
_V = ((0.0, 0.0), (1.5, 1.2), (3.0, 0.0), (3.0, 1.1), (1.5, 2.3), (0.0, 1.1))
_Z = ((0, 0), (2, 0), (2, 2), (3, 2), (3, 3), (1, 3), (1, 1), (0, 1))

SHAPES: dict[str, PushShape] = {
    "box": PushShape(_box(0.12, 0.12), 0.1, (0.84, 0.33, 0.28)),
    "bar": PushShape(_box(0.2, 0.06), 0.167, (0.95, 0.61, 0.25)),
    "triangle": PushShape(_round(3, 0.095), 0.278, (0.93, 0.79, 0.3)),
    "hexagon": PushShape(_round(6, 0.08), 0.464, (0.56, 0.72, 0.35)),
    "disc": PushShape(_round(24, 0.07), 0.774, (0.3, 0.63, 0.46)),
    "L": PushShape(_scaled(_L, 0.055), 0.129, (0.26, 0.63, 0.71)),
    "T": PushShape(_scaled(_T, 0.055), 0.215, (0.29, 0.49, 0.76)),
    "plus": PushShape(_scaled(_PLUS, 0.055), 0.359, (0.44, 0.4, 0.73)),
    "U": PushShape(_scaled(_U, 0.055), 0.6, (0.65, 0.42, 0.71)),
    "star": PushShape(_star(5, 0.11, 0.05), 1.0, (0.85, 0.47, 0.62)),
    "J": PushShape(_scaled(_J, 0.055), 0.2, (0.45, 0.71, 0.6)),
    "H": PushShape(_scaled(_H, 0.05), 0.8, (0.72, 0.6, 0.3)),
    "V": PushShape(_scaled(_V, 0.055), 0.5, (0.4, 0.55, 0.85)),
    "Z": PushShape(_scaled(_Z, 0.055), 0.3, (0.55, 0.45, 0.38)),
    "ellipse": PushShape(_round(24, 0.1, 0.055), 0.6, (0.5, 0.53, 0.58)),
}
"""All shapes by name; their masses span a factor of ten."""
HELD_OUT = ("Z", "ellipse")
"""Shapes that are not used in training."""
TRAINED = tuple(name for name in SHAPES if name not in HELD_OUT)
"""Shapes that are used in training."""


def object_spec(name: str) -> mujoco.MjSpec:
    """Create an object that slides along x and y and rotates about z.

    Its joints have the dry friction of the floor, so that the physics has no floor contacts to
    solve. Friction acts on each axis separately, which exceeds Coulomb friction by a factor of up
    to sqrt(2) on diagonals; its torque uses the radius of gyration as lever arm.
    """
    shape = SHAPES[name]
    friction = FLOOR_FRICTION * shape.mass * GRAVITY
    spec = mujoco.MjSpec()
    body = spec.worldbody.add_body(name="object")
    slide = mujoco.mjtJoint.mjJNT_SLIDE
    hinge = mujoco.mjtJoint.mjJNT_HINGE
    body.add_joint(name="x", type=slide, axis=(1, 0, 0), frictionloss=friction)
    body.add_joint(name="y", type=slide, axis=(0, 1, 0), frictionloss=friction)
    body.add_joint(
        name="yaw", type=hinge, axis=(0, 0, 1), frictionloss=friction * shape.radius_of_gyration
    )
    density = shape.mass / shape.mesh.volume
    for i, (vertices, faces) in enumerate(shape.pieces):
        spec.add_mesh(
            name=f"piece_{i}", uservert=vertices.ravel().tolist(), userface=faces.ravel().tolist()
        )
        body.add_geom(
            name=f"piece_{i}",
            type=mujoco.mjtGeom.mjGEOM_MESH,
            meshname=f"piece_{i}",
            density=density,
            rgba=(*shape.rgb, 1.0),
        )
    return spec
