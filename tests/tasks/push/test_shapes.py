"""Shapes: outlines, convex pieces, and what is compiled of them."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest

pytest.importorskip("coacd", reason="shapes need the extra 'meshes'")
import shapely

from manyworlds.tasks.push import shapes
from manyworlds.tasks.push.shapes import HEIGHT, HELD_OUT, OUTLINE_DIRECTIONS, SHAPES, TRAINED


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory):
    """Keep pieces in a folder of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def test_there_are_enough_shapes():
    """Train on eight shapes or more, some of them not convex, and hold two out."""
    hollow = {name for name in TRAINED if len(SHAPES[name].pieces) > 1}
    assert len(TRAINED) >= 8 and len(hollow) >= 3 and len(TRAINED) - len(hollow) >= 3
    assert len(HELD_OUT) == 2 and not set(HELD_OUT) & set(TRAINED)
    masses = [SHAPES[name].mass for name in TRAINED]
    assert max(masses) == pytest.approx(10.0 * min(masses))


@pytest.mark.parametrize("name", SHAPES)
def test_pieces_make_up_the_shape(name):
    """Fill the prism with pieces: nothing is missing, and little is there twice."""
    shape = SHAPES[name]
    footprints = [shapely.MultiPoint(v[:, :2]).convex_hull for v, _ in shape.pieces]
    outline = shapely.Polygon(shape.outline)
    union = shapely.union_all(footprints)
    assert union.symmetric_difference(outline).area < 0.005 * outline.area
    assert sum(piece.area for piece in footprints) < 1.01 * outline.area
    heights = np.concatenate([vertices[:, 2] for vertices, _ in shape.pieces])
    assert heights.min() == pytest.approx(0.0, abs=2e-5)
    assert heights.max() == pytest.approx(HEIGHT, abs=2e-5)


@pytest.mark.parametrize("name", SHAPES)
def test_what_is_compiled_weighs_what_the_shape_does(name):
    """Compile mass, centre and moment of inertia of a uniform prism, and the floor's friction."""
    shape, model = SHAPES[name], shapes.object_spec(name).compile()
    mass, inertia = shape.mass, shape.mass * shape.radius_of_gyration**2
    assert model.body_mass[1] == pytest.approx(mass, rel=5e-3)
    np.testing.assert_allclose(model.body_ipos[1], [0.0, 0.0, HEIGHT / 2.0], atol=5e-4)
    full = np.zeros((3, 3))
    rotation = np.zeros(9)
    mujoco.mju_quat2Mat(rotation, model.body_iquat[1])
    rotation = rotation.reshape(3, 3)
    full = rotation @ np.diag(model.body_inertia[1]) @ rotation.T
    assert full[2, 2] == pytest.approx(inertia, rel=1e-2)
    weight = shapes.FLOOR_FRICTION * mass * shapes.GRAVITY
    arm = shape.radius_of_gyration
    np.testing.assert_allclose(model.dof_frictionloss, [weight, weight, weight * arm])


def test_radii_are_those_of_the_outline():
    """Measure a square's half side and half diagonal, a disc's radius, and both ends of a T."""
    eighth = OUTLINE_DIRECTIONS // 8
    square = SHAPES["box"].radii
    assert square[0] == pytest.approx(0.06) and square[eighth] == pytest.approx(0.06 * math.sqrt(2))
    assert SHAPES["disc"].radii == pytest.approx(np.full(OUTLINE_DIRECTIONS, 0.07), rel=0.01)
    t = SHAPES["T"].radii
    up, down = t[2 * eighth], t[6 * eighth]
    assert up + down == pytest.approx(3 * 0.055) and up < down
    with pytest.raises(AssertionError):
        assert SHAPES["star"].radii == pytest.approx(np.roll(SHAPES["star"].radii, 13), abs=1e-3)
