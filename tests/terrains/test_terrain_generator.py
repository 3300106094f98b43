"""The grid of cells: places, difficulties, seeds, names, colours, flat patches."""

import copy
from dataclasses import dataclass, replace

import mujoco
import numpy as np
import pytest

from manyworlds.terrains import (
    BoxFlatTerrainCfg,
    BoxRandomSpreadTerrainCfg,
    FlatPatchSamplingCfg,
    SubTerrainCfg,
    TerrainGenerator,
    TerrainGeneratorCfg,
)
from manyworlds.terrains import config as presets
from manyworlds.terrains.terrain_generator import TerrainGeometry, TerrainOutput
from manyworlds.terrains.utils import make_border, make_plane
from tests.terrains.cells import Ground, generate
from tests.waiting import least_cpu_s


@dataclass(kw_only=True)
class Step(SubTerrainCfg):
    """A block as high as the cell is difficult, which remembers nothing."""

    name: str = ""
    color: tuple[float, float, float, float] | None = None

    def function(self, difficulty, spec, rng):
        """Add the block."""
        geom = spec.body("terrain").add_geom(
            name=self.name,
            type=mujoco.mjtGeom.mjGEOM_BOX,
            pos=[*self.center, difficulty / 2 - 1],
            size=[*self.center, difficulty / 2 + 1],
        )
        return TerrainOutput(
            np.array([*self.center, difficulty]), [TerrainGeometry(geom, color=self.color)]
        )


def test_levels_are_linear_and_columns_are_kinds():
    """Make one column per kind, whatever num_cols says, and levels from easiest to hardest."""
    kinds = {"step": Step(), "flat": BoxFlatTerrainCfg()}
    generator, _ = generate(
        kinds, num_rows=5, num_cols=9, size=(4.0, 6.0), difficulty_range=(0.2, 0.6)
    )
    origins = generator.terrain_origins
    assert origins.shape == (5, 2, 3)
    np.testing.assert_allclose(origins[:, 0, 2], [0.2, 0.3, 0.4, 0.5, 0.6])
    np.testing.assert_allclose(origins[:, 1, 2], 0.0)
    np.testing.assert_allclose(origins[:, 0, 0], [-8, -4, 0, 4, 8])
    np.testing.assert_allclose(origins[0, :, 1], [-3, 3])


def test_random_cells_follow_proportions_and_difficulties():
    """Draw kinds by proportion and difficulties uniformly within their range."""
    kinds = {"step": Step(proportion=3.0), "flat": BoxFlatTerrainCfg(proportion=1.0)}
    generator, _ = generate(
        kinds, curriculum=False, num_rows=20, num_cols=20, difficulty_range=(0.5, 0.7)
    )
    heights = generator.terrain_origins[..., 2]
    steps = heights[heights > 0]
    assert len(steps) / heights.size == pytest.approx(0.75, abs=0.07)
    assert 0.5 <= steps.min() < 0.51 and 0.69 < steps.max() <= 0.7
    assert steps.mean() == pytest.approx(0.6, abs=0.01)


def test_configs_are_left_alone_and_seeds_recorded():
    """Copy the config; fill in seed and sizes in the copy; draw a missing seed repeatably."""
    cfg = TerrainGeneratorCfg(size=(8.0, 8.0), sub_terrains={"rough": presets.random_rough()})
    before = copy.deepcopy(cfg)
    np.random.seed(5)
    first = TerrainGenerator(cfg)
    second = TerrainGenerator(cfg)
    np.random.seed(5)
    third = TerrainGenerator(cfg)
    assert cfg == before
    assert first.cfg.seed == third.cfg.seed != second.cfg.seed
    assert first.cfg.sub_terrains["rough"].size == (8.0, 8.0)


def test_the_same_seed_gives_the_same_model():
    """Compile the same terrain twice, bit for bit, and another with another seed."""
    cfg = copy.deepcopy(presets.ALL_TERRAINS_CFG)
    cfg.num_rows, models = 2, []
    for cfg.seed in (1, 1, 2):
        spec = mujoco.MjSpec()
        TerrainGenerator(cfg).compile(spec)
        model = spec.compile()
        models.append(
            (model.geom_pos.tobytes(), model.hfield_data.tobytes(), model.tex_data[:].tobytes())
        )
    assert models[0] == models[1]
    assert models[0][0] != models[2][0] and models[0][1] != models[2][1]


def test_cells_do_not_depend_on_each_other():
    """Leave the other cells as they are when one kind changes."""
    heights = []
    for boxes in (10, 60):
        kinds = {
            "boxes": presets.random_spread_boxes(num_boxes=boxes),
            "rough": presets.random_rough(),
        }
        _, spec = generate(kinds, curriculum=False, num_rows=4, num_cols=4)
        heights.append([bytes(np.array(hfield.userdata)) for hfield in spec.hfields])
    assert len(heights[0]) > 2 and heights[0] == heights[1]
    assert len(set(heights[0])) == len(heights[0])


def test_names_are_numbered_and_custom_ones_kept():
    """Name geoms terrain_<n>, but not those that have a name."""
    _, spec = generate({"a": Step(), "b": Step(name="mine"), "c": Step()}, border_width=1.0)
    assert [geom.name for geom in spec.geoms] == [
        "terrain_0", "mine", "terrain_1", "terrain_2", "terrain_3", "terrain_4", "terrain_5",
    ]  # fmt: skip
    assert {geom.parent.name for geom in spec.geoms} == {"terrain"}


def test_the_border_surrounds_all_cells():
    """Put flat ground all around, as thick as asked but never too thin."""
    for border_height, thickness in ((1.0, 1.0), (0.0, 0.1), (-0.5, 0.5)):
        _, spec = generate({"a": Step()}, num_rows=2, border_width=3.0, border_height=border_height)
        border = spec.geoms[2:]
        assert [2 * geom.size[2] for geom in border] == pytest.approx(4 * [thickness])
    ground = Ground(spec)
    for x, y in ((-10.9, 0), (10.9, 6.9), (0, 4.1), (-8.1, -6.9), (3, -6.9)):
        assert ground.height(x, y) == pytest.approx(0.0, abs=1e-9)
    assert ground.height(11.1, 0) == ground.height(0, 7.1) == -np.inf


def test_colour_schemes():
    """Colour by height, at random per cell, or not at all; keep what a kind has chosen."""
    own = (0.1, 0.2, 0.3, 1.0)
    kinds = {"step": Step(), "own": Step(color=own), "wave": presets.wave_terrain()}
    rgba = {}
    for scheme in ("height", "random", "none"):
        _, spec = generate(kinds, num_rows=2, color_scheme=scheme)
        rgba[scheme] = [tuple(np.round(geom.rgba, 5)) for geom in spec.geoms]
        assert rgba[scheme][1] == rgba[scheme][4] == own
        materials = [geom.material for geom in spec.geoms if geom.material]
        assert len(materials) == len(spec.textures) == (2 if scheme == "height" else 0)
    assert rgba["height"][0] != rgba["height"][3]
    assert rgba["random"][0] != rgba["random"][3] and rgba["random"][2] != rgba["none"][2]
    assert rgba["none"][0] == rgba["none"][2] == (0.5, 0.5, 0.5, 1.0)


def test_materials_of_a_kind_are_kept():
    """Keep a material that a kind gave its geom; an empty name is none."""

    @dataclass(kw_only=True)
    class Painted(Step):
        def function(self, difficulty, spec, rng):
            output = super().function(difficulty, spec, rng)
            spec.add_material(name="paint")
            output.geometries[0].geom.material = "paint"
            return output

    _, spec = generate({"painted": Painted(), "bare": Step()})
    painted, bare = spec.geoms
    assert painted.material == "paint" and tuple(painted.rgba) == (0.5, 0.5, 0.5, 1.0)
    assert bare.material == "" and tuple(bare.rgba) != (0.5, 0.5, 0.5, 1.0)


def test_lights_are_added_when_asked_for():
    """Add one light for all cells."""
    for wanted in (False, True):
        _, spec = generate({"a": Step()}, add_lights=wanted)
        assert len(spec.lights) == wanted


PATCHES = {"spawn": FlatPatchSamplingCfg(num_patches=6, patch_radius=0.4, max_height_diff=0.06)}


@pytest.mark.parametrize(
    "kind",
    ["pyramid_stairs", "discrete_obstacles", "perlin_noise", "box_random_grid", "tilted_grid"],
)
def test_flat_patches_are_flat(kind):
    """Find each patch at its place and flat under rays."""
    # Columns are wide enough for a patch; the gaps between tiles are narrow.
    columns = {"grid_width": 1.0} if kind == "box_random_grid" else {}
    sampling = replace(PATCHES["spawn"], grid_resolution=0.01 if kind == "tilted_grid" else None)
    size = (3.0, 3.0) if kind == "tilted_grid" else (8.0, 8.0)
    cfg = presets.ALL_TERRAIN_PRESETS[kind](flat_patch_sampling={"spawn": sampling}, **columns)
    generator, spec = generate({kind: cfg}, num_rows=3, size=size, difficulty_range=(0.1, 0.3))
    ground = Ground(spec)
    patches = generator.flat_patches["spawn"]
    assert patches.shape == (3, 1, 6, 3) and generator.flat_patch_radii == {"spawn": 0.4}
    angles = np.linspace(0, 2 * np.pi, 9)[:-1]
    for row in range(3):
        assert len(np.unique(patches[row, 0], axis=0)) > 1
        for x, y, z in patches[row, 0]:
            assert ground.height(x, y) == pytest.approx(z, abs=1e-5)
            ring = [
                ground.height(x + r * np.cos(a), y + r * np.sin(a))
                for a in angles
                for r in (0.2, 0.4)
            ]
            assert max(*ring, z) - min(*ring, z) <= 0.06 + 1e-5


def test_flat_patches_keep_to_their_ranges():
    """Look for patches within the ranges, in the cell's frame; take the centre if there is none."""
    corner = FlatPatchSamplingCfg(x_range=(1.0, 2.0), y_range=(5.0, 6.5), patch_radius=0.3)
    sampling = {
        "low": FlatPatchSamplingCfg(z_range=(-5.0, -0.5), num_patches=3, patch_radius=0.2),
        "nowhere": FlatPatchSamplingCfg(z_range=(3.0, 4.0), num_patches=2),
    }
    kinds = {
        "stairs": presets.pyramid_stairs_inv(flat_patch_sampling=sampling),
        "flat": presets.flat(flat_patch_sampling={"corner": corner}),
    }
    generator, _ = generate(kinds, num_rows=2, difficulty_range=(1.0, 1.0))
    places = generator.flat_patches["corner"][1, 1]
    assert 1 - 1e-9 <= places[:, 0].min() < places[:, 0].max() <= 2 + 1e-9
    assert 5 - 1e-9 <= places[:, 1].min() < places[:, 1].max() <= 6.5 + 1e-9
    assert (generator.flat_patches["low"][:, 0, :, 2] <= -0.5).all()
    centre = np.broadcast_to(generator.terrain_origins[:, :, None], (2, 2, 2, 3))
    np.testing.assert_allclose(generator.flat_patches["nowhere"], centre, atol=1e-9)


def test_kinds_without_patches_repeat_their_origin():
    """Fill what other kinds do not have, and repeat what they have fewer of."""
    few = {"spawn": FlatPatchSamplingCfg(num_patches=2, patch_radius=0.3)}
    kinds = {
        "many": presets.flat(flat_patch_sampling=PATCHES),
        "few": presets.flat(flat_patch_sampling=few),
        "none": presets.flat(),
    }
    generator, _ = generate(kinds)
    many, two, none = generator.flat_patches["spawn"][0]
    assert len(many) == 6 and generator.flat_patch_radii["spawn"] == 0.3
    np.testing.assert_array_equal(two[:2], two[2:4])
    np.testing.assert_array_equal(none, np.tile(generator.terrain_origins[0, 2], (6, 1)))


def test_as_many_patches_are_kept_as_the_kind_with_most_has():
    """Count patches, not the rows and columns of the terrain."""
    few = {"spawn": FlatPatchSamplingCfg(num_patches=2, patch_radius=0.3)}
    kinds = {name: presets.flat(flat_patch_sampling=few) for name in ("one", "other")}
    generator, _ = generate(kinds, num_rows=4)
    assert generator.flat_patches["spawn"].shape == (4, 2, 2, 3)


def test_flat_patches_need_boxes_or_height_fields():
    """Say so where a kind of geom cannot be searched."""

    @dataclass(kw_only=True)
    class Ball(Step):
        def function(self, difficulty, spec, rng):
            geom = spec.body("terrain").add_geom(name="ball", size=[1, 0, 0])
            return self.output(0.0, [geom], rng)

    with pytest.raises(ValueError, match="geom 'ball' is a mjGEOM_SPHERE"):
        generate({"ball": Ball(flat_patch_sampling=PATCHES)})


def test_a_kind_that_cannot_be_made_is_named():
    """Say which kind of terrain has a range that is upside down."""
    with pytest.raises(ValueError, match="Sub-terrain 'boxes' cannot be made at difficulty .* low"):
        generate({"boxes": BoxRandomSpreadTerrainCfg(box_yaw_range=(90.0, 0.0))})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sub_terrains": {}}, "sub_terrains is empty"),
        ({"num_rows": 0}, "num_rows=0"),
        ({"size": (0.0, 8.0)}, "positive size"),
        ({"difficulty_range": (0.0, 2.0)}, r"within \[0, 1\], got \(0.0, 2.0\)"),
        ({"sub_terrains": {"a": Step(proportion=-1.0)}}, "must not be negative"),
        ({"sub_terrains": {"a": Step(proportion=float("nan"))}}, "'a' has proportion=nan"),
        ({"border_width": float("nan")}, "border_width=nan"),
        ({"color_scheme": "rainbow"}, "no color_scheme 'rainbow'"),
    ],
)
def test_impossible_terrains_are_refused(fields, message):
    """Refuse at construction, with the value."""
    cfg = TerrainGeneratorCfg(**{"size": (8.0, 8.0), "sub_terrains": {"a": Step()}} | fields)
    with pytest.raises(ValueError, match=message):
        TerrainGenerator(cfg)


def test_planes_and_borders_are_boxes():
    """Build a floor and a ring at the heights that the arguments say."""
    spec = mujoco.MjSpec()
    make_plane(spec.worldbody, (2.0, 3.0), 0.5, center_zero=False, plane_thickness=0.2)
    make_border(spec.worldbody, (6.0, 6.0), (4.0, 6.0), 0.4, (1.0, 1.5, 0.0))
    ground = Ground(spec)
    assert ground.height(0.1, 2.9) == pytest.approx(0.5) and ground.height(2.1, 1) == -np.inf
    assert ground.height(-1.5, 1.0) == ground.height(3.5, 4.0) == pytest.approx(0.2)
    assert len(spec.geoms) == 3
    with pytest.raises(ValueError, match="cannot have an opening"):
        make_border(spec.worldbody, (1.0, 1.0), (2.0, 1.0), 1.0, (0.0, 0.0, 0.0))


def test_ready_terrains_are_generated_quickly():
    """Generate and compile the rough terrain, of few geoms, within three seconds."""
    assert set(presets.ALL_TERRAINS_CFG.sub_terrains) == set(presets.ALL_TERRAIN_PRESETS)
    assert len(presets.ALL_TERRAIN_PRESETS) == 17

    def generate() -> tuple[TerrainGenerator, mujoco.MjModel]:
        spec = mujoco.MjSpec()
        generator = TerrainGenerator(presets.ROUGH_TERRAINS_CFG)
        generator.compile(spec)
        return generator, spec.compile()

    assert least_cpu_s(generate, 3.0) < 3.0
    generator, model = generate()
    assert model.ngeom < 1600 and generator.terrain_origins.shape == (10, 20, 3)


def test_presets_take_overrides():
    """Override the fields of a preset, and list new ones."""
    assert presets.flat(proportion=0.3).proportion == 0.3
    assert presets.hf_pyramid_slope_inv().inverted
    assert presets.pyramid_stairs(step_width=0.4).step_width == 0.4
