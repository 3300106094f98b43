"""Places of worlds on the ground, and moves between levels."""

import copy

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.terrains import TerrainEntity, TerrainEntityCfg, TerrainGeneratorCfg
from manyworlds.terrains import config as presets
from manyworlds.terrains.terrain_entity import split_by_proportion
from manyworlds.terrains.terrain_generator import FlatPatchSamplingCfg


def make(num_envs: int = 40, **fields) -> TerrainEntity:
    """Make a terrain of stairs, 5 levels and 3 columns with shares of 1 : 2 : 1."""
    kinds = {
        "flat": presets.flat(proportion=0.25),
        "up": presets.pyramid_stairs(proportion=0.5),
        "down": presets.pyramid_stairs_inv(proportion=0.25),
    }
    generator = TerrainGeneratorCfg(
        size=(8.0, 8.0), num_rows=5, curriculum=True, sub_terrains=kinds, seed=1
    )
    cfg = TerrainEntityCfg(
        terrain_type="generator", terrain_generator=generator, num_envs=num_envs, **fields
    )
    return TerrainEntity(cfg, "cpu")


def origins_follow(terrain: TerrainEntity) -> bool:
    """True if each world's origin is that of its cell."""
    expected = terrain.terrain_origins[terrain.terrain_levels, terrain.terrain_types]
    return torch.equal(terrain.env_origins, expected)


def test_worlds_on_a_plane_stand_on_a_grid():
    """Put worlds on a square grid about the origin, env_spacing apart."""
    terrain = TerrainEntity(TerrainEntityCfg(num_envs=9, env_spacing=3.0), "cpu")
    assert terrain.env_origins.shape == (9, 3) and not terrain.env_origins[:, 2].any()
    distance = torch.cdist(terrain.env_origins, terrain.env_origins) + 99 * torch.eye(9)
    assert distance.min().item() == pytest.approx(3.0)
    assert terrain.env_origins.mean(0).tolist() == [0.0, 0.0, 0.0]
    assert terrain.terrain_origins is None and terrain.max_terrain_level == 0
    before = terrain.env_origins.clone()
    yes = torch.ones(9, dtype=torch.bool)
    terrain.update_env_origins(torch.arange(9), yes, ~yes)
    terrain.randomize_env_origins(torch.arange(9))
    assert torch.equal(terrain.env_origins, before) and terrain.flat_patches == {}


def test_worlds_move_to_cells_of_given_levels():
    """Draw rows from a range, and refuse rows that do not exist."""
    terrain = make()
    terrain.randomize_env_origins(None, levels=(1, 1))
    assert (terrain.terrain_levels == 1).all()
    expected = terrain.terrain_origins[1, terrain.terrain_types]
    assert torch.equal(terrain.env_origins, expected)
    rows = len(terrain.terrain_origins)
    for levels in ((0, rows), (-1, 0), (1, 0)):
        with pytest.raises(ValueError, match=rf"between 0 and {rows - 1}, lowest first, got"):
            terrain.randomize_env_origins(None, levels)


def test_worlds_move_to_kinds_by_their_shares():
    """Draw kinds in proportion to shares, on the given levels, and refuse wrong shares."""
    terrain = make(num_envs=4000)
    terrain.randomize_env_origins(None, (1, 3), {"flat": 0.0, "down": 3.0})
    kinds = [terrain.cell_of(i)[0] for i in range(4000)]
    assert kinds.count("flat") == 0 and kinds.count("down") / 4000 == pytest.approx(0.75, abs=0.03)
    assert set(terrain.terrain_levels.tolist()) == {1, 2, 3} and origins_follow(terrain)
    before = terrain.terrain_types[10:].clone()
    terrain.randomize_env_origins(torch.arange(10), None, {"down": 0.0, "up": 0.0})
    assert {terrain.cell_of(i)[0] for i in range(10)} == {"flat"}
    assert torch.equal(terrain.terrain_types[10:], before)
    for shares in ({"stairs": 1.0}, {"up": -1.0}, {"up": float("nan")}):
        with pytest.raises(ValueError, match=r"must not be negative, .* has the kinds flat, up, d"):
            terrain.randomize_env_origins(None, None, shares)


def test_a_plane_is_one_geom_with_a_checker_and_a_sun():
    """Give the plane a body, a material and a light, which the config may replace."""
    model = TerrainEntity(TerrainEntityCfg(), "cpu").compile()
    assert model.geom("terrain").type == mujoco.mjtGeom.mjGEOM_PLANE
    assert model.body("terrain").id == 1 and model.nmocap == 0
    assert model.material("groundplane").id == model.geom("terrain").matid
    assert model.nlight == 1
    bare = TerrainEntity(TerrainEntityCfg(textures=(), materials=(), lights=()), "cpu").compile()
    assert (bare.nmat, bare.ntex, bare.nlight) == (0, 0, 0)


def test_generated_ground_is_one_body():
    """Hang all geoms on the fixed body "terrain", without the plane's material."""
    terrain = make()
    model = terrain.compile()
    assert terrain.is_fixed_base and model.nbody == 2 and model.nmocap == 0
    assert (model.geom_bodyid == model.body("terrain").id).all()
    assert model.nmat == 0 and model.nlight == 1


def test_worlds_are_split_over_columns_and_levels():
    """Give columns their shares; start no higher than the highest initial level."""
    terrain = make(40, max_init_terrain_level=2)
    assert terrain.terrain_types.bincount().tolist() == [10, 20, 10]
    assert set(terrain.terrain_levels.tolist()) == {0, 1, 2}
    assert terrain.max_terrain_level == 5 and terrain.terrain_origins.shape == (5, 3, 3)
    assert origins_follow(terrain)
    assert set(make(100).terrain_levels.tolist()) == {0, 1, 2, 3, 4}
    assert set(make(100, max_init_terrain_level=99).terrain_levels.tolist()) == {0, 1, 2, 3, 4}


def test_random_cells_have_equal_shares():
    """Split worlds equally where columns are not kinds, even if there are as many."""
    cfg = TerrainGeneratorCfg(
        size=(4.0, 4.0),
        num_rows=2,
        num_cols=2,
        sub_terrains={"a": presets.flat(proportion=9.0), "b": presets.flat(proportion=1.0)},
    )
    terrain = TerrainEntity(
        TerrainEntityCfg(terrain_type="generator", terrain_generator=cfg, num_envs=10), "cpu"
    )
    assert terrain.terrain_types.bincount().tolist() == [5, 5]
    terrain.configure_env_origins(np.zeros((2, 5, 3)), proportions=np.array([0.5, 0.5]))
    assert terrain.terrain_types.bincount().tolist() == [2, 2, 2, 2, 2]


@pytest.mark.parametrize(
    ("count", "proportions", "expected"),
    [
        (10, [0.25, 0.5, 0.25], [3, 5, 2]),
        (7, [1, 1, 1], [3, 2, 2]),
        (10, [0.97, 0.01, 0.01, 0.01], [7, 1, 1, 1]),
        (2, [0.97, 0.01, 0.02], [2, 0, 0]),
        (5, [1, 0, 1], [3, 0, 2]),
        (1000, [0.333, 0.333, 0.334], [333, 333, 334]),
    ],
)
def test_largest_remainders(count, proportions, expected):
    """Split a number fairly, with at least one for each part where there are enough."""
    assert split_by_proportion(count, np.array(proportions)).tolist() == expected


@pytest.mark.parametrize("way", ["ids", "mask", "all"])
def test_worlds_move_between_levels(way):
    """Move up and down; stay in the first row; go anywhere beyond the last."""
    terrain = make(200)
    torch.manual_seed(0)
    terrain.terrain_levels.copy_(torch.arange(200) % 5)
    types = terrain.terrain_types.clone()
    before = terrain.terrain_levels.clone()
    up = torch.arange(200) % 4 == 0
    down = torch.arange(200) % 4 == 1
    chosen = torch.ones(200, dtype=torch.bool) if way == "all" else torch.arange(200) >= 100
    if way == "ids":
        ids = chosen.nonzero().squeeze(-1)
        terrain.update_env_origins(ids, up[ids], down[ids])
    else:
        terrain.update_env_origins(None if way == "all" else chosen, up, down)
    after = terrain.terrain_levels
    expected = (before + up.long() - down.long()).clamp(min=0)
    beyond = chosen & (expected == 5)
    assert torch.equal(after[~chosen], before[~chosen])
    assert torch.equal(after[chosen & ~beyond], expected[chosen & ~beyond])
    assert len(set(after[beyond].tolist())) >= 3 and after.max() <= 4
    assert torch.equal(terrain.terrain_types, types)
    terrain.env_origins[~chosen] = terrain.terrain_origins[before, types][~chosen]
    assert origins_follow(terrain)


def test_worlds_are_moved_to_random_cells():
    """Draw rows and columns for the worlds named, and leave the others."""
    terrain = make(300, max_init_terrain_level=0)
    ids = torch.arange(0, 300, 2)
    before = terrain.terrain_types.clone()
    terrain.randomize_env_origins(ids)
    assert set(terrain.terrain_levels[ids].tolist()) == set(range(5))
    assert set(terrain.terrain_types[ids].tolist()) == set(range(3))
    assert not terrain.terrain_levels[1::2].any()
    assert torch.equal(terrain.terrain_types[1::2], before[1::2])
    assert origins_follow(terrain)


def test_state_is_saved_and_restored():
    """Restore levels, types and origins in place."""
    terrain, other = make(30), make(30)
    names = ("env_origins", "terrain_levels", "terrain_types")
    assert set(names) < set(TerrainEntity.state_attributes)
    terrain.data = other.data = None  # Only a simulation gives them data.
    other.randomize_env_origins(None)
    tensor = other.env_origins
    other.load_state_dict(copy.deepcopy(terrain.state_dict()))
    assert all(torch.equal(getattr(other, name), getattr(terrain, name)) for name in names)
    assert other.env_origins is tensor


def test_configs_are_left_alone():
    """Copy the config, generator included; record the seed in the copy."""
    cfg = TerrainEntityCfg(
        terrain_type="generator", terrain_generator=copy.deepcopy(presets.STAIRS_TERRAINS_CFG)
    )
    before = copy.deepcopy(cfg)
    terrain = TerrainEntity(cfg, "cpu")
    assert cfg == before
    assert terrain.cfg.terrain_generator.seed is not None
    assert terrain.cfg.materials == cfg.materials


def test_flat_patches_are_tensors_and_markers_show_them():
    """Give patches on the device, and sites on request."""
    sampling = {"spawn": FlatPatchSamplingCfg(num_patches=4)}
    generator = TerrainGeneratorCfg(
        size=(8.0, 8.0),
        num_rows=2,
        num_cols=3,
        sub_terrains={"flat": presets.flat(flat_patch_sampling=sampling)},
    )
    cfg = TerrainEntityCfg(terrain_type="generator", terrain_generator=generator, debug_vis=True)
    terrain = TerrainEntity(cfg, "cpu")
    assert terrain.flat_patches["spawn"].shape == (2, 3, 4, 3)
    assert terrain.flat_patches["spawn"].dtype == torch.float32
    assert terrain.flat_patch_radii == {"spawn": 0.5}
    assert terrain.compile().nsite == 6 + 24


def test_terrains_survive_inference_mode():
    """Move worlds made outside inference mode within it, and the other way round."""
    with torch.inference_mode():
        terrain = make(20)
        terrain.randomize_env_origins(torch.arange(5))
    yes = torch.ones(20, dtype=torch.bool)
    terrain.update_env_origins(None, yes, ~yes)
    assert origins_follow(terrain)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"terrain_type": "generator"}, "needs TerrainEntityCfg.terrain_generator"),
        ({"terrain_type": "hills"}, "no terrain_type 'hills'"),
        ({"env_spacing": None}, "env_spacing is None"),
        ({"num_envs": 0}, "num_envs must be at least 1"),
        ({"max_init_terrain_level": -1}, "max_init_terrain_level must be at least 0"),
    ],
)
def test_impossible_configs_are_refused(fields, message):
    """Say what is missing."""
    with pytest.raises(ValueError, match=message):
        TerrainEntity(TerrainEntityCfg(**fields), "cpu")


def test_the_config_alone_builds_nothing():
    """Refuse build(), which cannot know the device."""
    with pytest.raises(TypeError, match="TerrainEntity\\(cfg, device\\)"):
        TerrainEntityCfg().build()


@pytest.mark.parametrize("kind", ["plane", "stairs", "heights"])
def test_geoms_may_belong_to_the_world(kind):
    """Give the geoms to the body `world`: nothing else of them changes, and the body stays."""
    models = []
    for on_world in (False, True):
        cfg = TerrainEntityCfg(on_world_body=on_world)
        if kind != "plane":
            cell = presets.random_rough() if kind == "heights" else presets.pyramid_stairs()
            cfg.terrain_type, cfg.debug_vis = "generator", True
            cfg.terrain_generator = TerrainGeneratorCfg(
                size=(8.0, 8.0), num_rows=2, num_cols=2, sub_terrains={"cell": cell}, seed=1
            )
        models.append(TerrainEntity(cfg, "cpu").spec.compile())
    own, moved = models
    assert own.ngeom == moved.ngeom > 0 and own.nsite == moved.nsite
    assert own.geom_bodyid.tolist() == [own.body("terrain").id] * own.ngeom
    assert moved.geom_bodyid.tolist() == [0] * moved.ngeom and moved.body("terrain").id == 1
    for geom in range(own.ngeom):
        assert own.geom(geom).name == moved.geom(geom).name
    for name in dir(own):
        if name.startswith(("geom_", "hfield_", "mat_")) and name != "geom_bodyid":
            np.testing.assert_array_equal(getattr(own, name), getattr(moved, name), name)
