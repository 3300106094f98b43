"""Every kind of terrain: where one stands, what it consists of, what it refuses."""

import dataclasses
import itertools

import mujoco
import numpy as np
import pytest

from manyworlds.terrains import (
    BoxFlatTerrainCfg,
    BoxNestedRingsTerrainCfg,
    BoxRandomGridTerrainCfg,
    HfPerlinNoiseTerrainCfg,
    HfRandomUniformTerrainCfg,
)
from manyworlds.terrains import config as presets
from manyworlds.terrains.utils import geom_rotation, height_map
from tests.terrains.cells import KINDS, Ground, generate

SIZES = [(8.0, 8.0), (10.0, 7.3)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_one_stands_on_the_surface(kind, size):
    """Put the origin of each level on the ground, in the middle of its cell."""
    generator, spec = generate({kind: KINDS[kind]()}, num_rows=4, size=size)
    ground = Ground(spec)
    for row, (x, y, z) in enumerate(generator.terrain_origins[:, 0]):
        assert (x, y) == pytest.approx(((row - 1.5) * size[0], 0.0), abs=1e-9)
        assert ground.height(x, y) == pytest.approx(z, abs=1e-6)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_geoms_stay_in_their_cell(kind, size):
    """Keep every geom within its cell, whatever the difficulty."""
    for difficulty in (0.0, 0.6, 1.0):
        spec = mujoco.MjSpec()
        spec.worldbody.add_body(name="terrain")
        output = KINDS[kind](size=size).function(difficulty, spec, np.random.default_rng(5))
        for geometry in output.geometries:
            geom = geometry.geom
            extent = geom.size if geometry.hfield is None else geometry.hfield.size[:3]
            half = (np.abs(geom_rotation(geom)) @ extent)[:2]
            assert (geom.pos[:2] - half >= -1e-9).all()
            assert (geom.pos[:2] + half <= np.array(size) + 1e-9).all()


@pytest.mark.parametrize("kind", KINDS)
def test_boxes_have_volume(kind):
    """Make no box without extent, which MuJoCo would refuse, and not too many of them."""
    for difficulty in (0.0, 1.0):
        _, spec = generate({kind: KINDS[kind]()}, difficulty_range=2 * (difficulty,))
        boxes = [geom for geom in spec.geoms if geom.type == mujoco.mjtGeom.mjGEOM_BOX]
        assert all(min(geom.size) > 1e-4 for geom in boxes)
        # The columns of a grid of 40 cm are many where they are not merged.
        assert len(boxes) <= (330 if kind == "box_random_grid" else 240)


@pytest.mark.parametrize("difficulty", [0.0, 0.6])
@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"narrow_beams"}))
def test_no_surface_is_there_twice(kind, difficulty):
    """Let no two boxes end in one plane above each other: a foot would stand on both of them."""
    spec = mujoco.MjSpec()
    spec.worldbody.add_body(name="terrain")
    output = KINDS[kind](size=(8.0, 8.0)).function(difficulty, spec, np.random.default_rng(5))
    geoms = [geometry.geom for geometry in output.geometries if geometry.hfield is None]
    level = [geom for geom in geoms if np.allclose(geom_rotation(geom), np.eye(3))]
    boxes = [(np.array(geom.pos) - geom.size, np.array(geom.pos) + geom.size) for geom in level]
    for (lower, upper), (other_lower, other_upper) in itertools.combinations(boxes, 2):
        corner, far = np.maximum(lower, other_lower), np.minimum(upper, other_upper)
        if abs(upper[2] - other_upper[2]) < 1e-9 and (corner + 1e-6 < far)[:2].all():
            middle = ((corner + far) / 2)[:2]
            above = [b for b in boxes if (b[0][:2] < middle).all() and (middle < b[1][:2]).all()]
            assert max(b[1][2] for b in above) > upper[2] + 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_height_maps_show_what_rays_hit(kind):
    """Compare the height map of a cell with rays between its samples' neighbours."""
    spec = mujoco.MjSpec()
    spec.worldbody.add_body(name="terrain")
    cfg = KINDS[kind](size=(8.0, 6.0))
    output = cfg.function(0.7, spec, np.random.default_rng(2))
    # An odd resolution, so that no sample is on an edge, where both sides are right.
    resolution = 0.1 if output.geometries[0].hfield else 0.3137
    heights = height_map(output.geometries, cfg.size, resolution)
    ground = Ground(spec)
    for row, col in np.random.default_rng(0).integers(1, np.array(heights.shape) - 1, (80, 2)):
        expected = ground.height(col * resolution, row * resolution)
        assert heights[row, col] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("kind", "height"),
    [
        (presets.pyramid_stairs(), 6 * 0.2),
        (presets.pyramid_stairs_inv(), -6 * 0.2),
        (presets.hf_pyramid_slope(slope_range=(0.0, 0.5), border_width=0.0), 3.0 * 0.5),
        (presets.hf_pyramid_slope_inv(slope_range=(0.0, 0.5), border_width=0.0), -3.0 * 0.5),
        (presets.open_stairs(step_width_range=(0.5, 0.8), inverted=True), -7 * 0.2),
        (presets.discrete_obstacles(origin_z_offset=0.3), 0.3),
    ],
)
def test_heights_are_what_the_fields_say(kind, height):
    """Compute the height of the hardest cell's centre from the config's fields."""
    generator, _ = generate({"kind": kind}, difficulty_range=(1.0, 1.0))
    assert generator.terrain_origins[0, 0, 2] == pytest.approx(height, abs=1e-9)


def test_stairs_have_the_steps_they_should():
    """Walk up the stairs along x and along y, and find every step where it belongs."""
    _, spec = generate({"stairs": presets.pyramid_stairs()}, difficulty_range=(1.0, 1.0))
    ground = Ground(spec)
    for step in range(6):
        at = -3.0 + 0.3 * step + 0.15
        assert ground.height(at, 0.1) == pytest.approx(0.2 * (step + 1), abs=1e-9)
        assert ground.height(0.1, -at) == pytest.approx(0.2 * (step + 1), abs=1e-9)
    assert ground.height(-3.5, 0.0) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("kind", ["open_stairs", "pyramid_stairs", "pyramid_stairs_inv"])
@pytest.mark.parametrize("inverted", [False, True])
def test_stairs_may_begin_flat(kind, inverted):
    """Let the easiest cell have steps without height, as curricula do."""
    fields = {"inverted": inverted} if kind == "open_stairs" else {}
    stairs = getattr(presets, kind)(step_height_range=(0.0, 0.2), **fields)
    _, spec = generate({"stairs": stairs}, num_rows=2, difficulty_range=(0.0, 0.0))
    assert Ground(spec).height(0.0, 0.0) == pytest.approx(0.0, abs=1e-9)


def test_open_stairs_are_open():
    """See between two treads of open stairs, horizontally."""
    _, spec = generate({"stairs": presets.open_stairs(inverted=True)}, difficulty_range=(1.0, 1.0))
    ground, hit = Ground(spec), np.zeros(1, np.int32)
    # From above the platform outwards, between the treads at -1.4 m and -1.6 m.
    start, along = np.array([0.0, 0.0, -1.5]), np.array([1.0, 0.0, 0.0])
    distance = mujoco.mj_ray(ground.model, ground.data, start, along, None, 1, -1, hit, None)
    assert distance == pytest.approx(3.75)


def test_height_fields_are_turned_the_right_way():
    """Find a function of x and y, which no mirror image equals, under rays at its samples."""

    @dataclasses.dataclass(kw_only=True)
    class Ramp(HfPerlinNoiseTerrainCfg):
        def heights(self, difficulty, x, y, rng):
            return 0.3 * x[None, :] + 0.1 * y[:, None] ** 2 + 0.05 * (x > 1.0)[None, :]

    kind = Ramp(height_range=(0.0, 1.0), vertical_scale=1e-4, horizontal_scale=0.25)
    _, spec = generate({"ramp": kind}, size=(8.0, 6.0))
    (hfield,) = spec.hfields
    assert (hfield.nrow, hfield.ncol) == (25, 33)
    ground = Ground(spec)
    for x in (-3.75, -1.0, 0.5, 3.5):
        for y in (-2.75, -0.25, 1.0, 2.5):
            expected = 0.3 * x + 0.1 * y**2 + 0.05 * (x > 1.0)
            assert ground.height(x, y) == pytest.approx(expected, abs=1.1e-4)


def test_flat_height_fields_compile():
    """Give a height field without relief its height and a thickness."""
    kind = HfRandomUniformTerrainCfg(noise_range=(0.1, 0.1))
    generator, spec = generate({"flat": kind})
    assert generator.terrain_origins[0, 0, 2] == pytest.approx(0.1)
    assert Ground(spec).height(1.0, 2.0) == pytest.approx(0.1, abs=1e-6)
    assert spec.hfields[0].size[3] >= 0.1


def test_noise_keeps_its_range_and_step():
    """Draw heights within the range, in multiples of the step."""
    kind = presets.random_rough(border_width=0.0)
    _, spec = generate({"rough": kind})
    (hfield,) = spec.hfields
    low = spec.geoms[0].pos[2]
    steps = (low + np.array(hfield.userdata) * hfield.size[2]) / 0.02
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-4)
    assert (steps.round().min(), steps.round().max()) == (1, 5)


def test_merging_takes_fewer_geoms_of_the_same_heights():
    """Merge columns whose heights differ little, and no others."""
    counts = {}
    for merge in (False, True):
        kind = presets.box_random_grid(merge_similar_heights=merge)
        _, spec = generate({"grid": kind}, difficulty_range=(1.0, 1.0))
        counts[merge] = len(spec.geoms)
        counts[merge, "ground"] = Ground(spec)
    assert counts[True] < 0.8 * counts[False]
    for x, y in np.random.default_rng(0).uniform(-3.7, 3.7, (60, 2)):
        merged, apart = counts[True, "ground"].height(x, y), counts[False, "ground"].height(x, y)
        assert merged == pytest.approx(apart, abs=0.1)


def test_difficulty_makes_stones_smaller_and_gaps_wider():
    """Leave less to step on at a higher difficulty."""
    for name in ("stepping_stones", "narrow_beams", "nested_rings"):
        shares = []
        for difficulty in (0.0, 1.0):
            spec = mujoco.MjSpec()
            spec.worldbody.add_body(name="terrain")
            cfg = KINDS[name](size=(8.0, 8.0))
            output = cfg.function(difficulty, spec, np.random.default_rng(1))
            heights = height_map(output.geometries, cfg.size, 0.05)
            shares.append((heights > -1.0).mean())
        assert shares[1] < shares[0] - 0.05


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (presets.pyramid_stairs(platform_width=7.0), "do not fit in a cell of size"),
        (presets.hf_pyramid_slope(border_width=0.05), "must be 0 or at least the horizontal_scale"),
        (presets.random_rough(downsampled_scale=0.05), "downsampled_scale must be at least"),
        (presets.wave_terrain(num_waves=0), "num_waves must be at least 1"),
        (presets.box_random_grid(grid_width=9.0), "grid_width 9.0 does not fit"),
        (presets.wave_terrain(border_width=4.0), "do not fit in a cell of size"),
    ],
)
def test_impossible_cells_are_refused(kind, message):
    """Say what does not fit, and where."""
    with pytest.raises(ValueError, match=message):
        generate({"kind": kind})


def test_rings_that_do_not_fit_are_left_out():
    """Build as many rings as there is room for."""
    kind = BoxNestedRingsTerrainCfg(num_rings=50)
    _, spec = generate({"rings": kind}, difficulty_range=(1.0, 1.0))
    # Room of 3.25 m less a gap of 0.2 m, for rings of 0.3 m and gaps of 0.2 m: 6 rings.
    assert len(spec.geoms) == 1 + 4 + 1 + 6 * 4


def test_configs_need_what_has_no_default():
    """Require the fields that framework.md gives no default."""
    with pytest.raises(TypeError, match="grid_width"):
        BoxRandomGridTerrainCfg()  # type: ignore[call-arg]
    assert BoxFlatTerrainCfg().proportion == 1.0
