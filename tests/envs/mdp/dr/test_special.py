"""Sizes and their bounds, pairs, and what is picked from a pool."""

import mujoco
import pytest
import torch

from manyworlds.entity import EntityCfg
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.envs.mdp import dr
from manyworlds.managers import SceneEntityCfg
from manyworlds.scene import SceneCfg
from manyworlds.terrains import TerrainEntityCfg
from tests.envs.mdp.dr.robot import make_env

SOME = torch.tensor([1, 3])


@pytest.fixture
def env():
    """Four worlds without events."""
    return make_env()


def bounds(kind: str, s: list[float]) -> tuple[float, tuple[float, ...]]:
    """Radius of the bounding sphere and half-sizes of the box, as the contract's table has them."""
    return {
        "sphere": (s[0], (s[0], s[0], s[0])),
        "capsule": (s[0] + s[1], (s[0], s[0], s[0] + s[1])),
        "cylinder": ((s[0] ** 2 + s[1] ** 2) ** 0.5, (s[0], s[0], s[1])),
        "ellipsoid": (max(s), tuple(s)),
        "box": (sum(x**2 for x in s) ** 0.5, tuple(s)),
    }[kind]


@pytest.mark.parametrize("recompute", [False, True])
def test_bounds_follow_sizes(env, recompute):
    """Compute bounds of each type by the table, with and without the engine's recomputation."""
    dr.geom_size.prepare(env, (0.4, 2.5))(env, SOME)
    if recompute:
        env.sim.recompute_constants(dr.geom_size.recompute, SOME)
    model, kinds = env.sim.model, set()
    for name in env.scene["robot"].geom_names:
        geom = env.sim.mj_model.geom(f"robot/{name}")
        kind = mujoco.mjtGeom(geom.type.item()).name.removeprefix("mjGEOM_").lower()
        kinds.add(kind)
        for world in range(4):
            size = model.geom_size[world, geom.id]
            assert (size != torch.tensor(geom.size).float()).any() == (world in SOME)
            radius, half = bounds(kind, size.tolist())
            torch.testing.assert_close(model.geom_rbound[world, geom.id].item(), radius)
            torch.testing.assert_close(model.geom_aabb[world, geom.id, 1], torch.tensor(half))
            assert (model.geom_aabb[world, geom.id, 0] == 0.0).all()
    assert len(kinds) == 5


def test_sizes_of_some_geoms_by_name(env):
    """Change the bounds of geoms that a pattern names, and of no others."""
    dr.geom_size(env, SOME, {"tip|base": (2.0, 2.0)}, operation="scale")
    default = env.sim.get_default_field("geom_rbound")
    grown = env.sim.model.geom_rbound / default
    names = [env.sim.mj_model.geom(i).name for i in range(env.sim.mj_model.ngeom)]
    changed = {(w, names[g]) for w, g in (grown > 1.5).nonzero().tolist()}
    assert changed == {(w, f"robot/{g}") for w in (1, 3) for g in ("tip", "base")}


@pytest.mark.parametrize("kind", ["plane", "mesh", "hfield"])
def test_sizes_without_bounds(kind):
    """Refuse types whose bounds do not follow from their sizes; name the geoms."""
    spec = mujoco.MjSpec()
    spec.add_mesh(name="rock", uservert=[0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1])
    spec.add_hfield(name="hill", size=[1, 1, 1, 1], nrow=2, ncol=2, userdata=[0, 0, 0, 1])
    body = spec.worldbody.add_body(name="body")
    body.add_geom(name="ball", size=[0.1, 0, 0])
    body.add_geom(
        name="odd",
        type=getattr(mujoco.mjtGeom, f"mjGEOM_{kind.upper()}"),
        meshname="rock" if kind == "mesh" else "",
        hfieldname="hill" if kind == "hfield" else "",
        size=[1, 1, 1],
    )
    rock = EntityCfg(spec_fn=lambda: spec)
    scene = SceneCfg(num_envs=2, entities={"robot": rock}, terrain=TerrainEntityCfg())
    env = ManagerBasedRlEnv(ManagerBasedRlEnvCfg(decimation=1, scene=scene), device="cpu")
    dr.geom_size(env, None, (0.5, 0.6), SceneEntityCfg("robot", geom_names=("ball",)))
    sizes = env.sim.model.geom_size.clone()
    with pytest.raises(ValueError, match=rf"unsupported types: odd \({kind}\)"):
        dr.geom_size(env, None, (0.5, 0.6))
    assert torch.equal(env.sim.model.geom_size, sizes)


def test_isotropic_pairs(env):
    """Tie both tangential and both rolling frictions of a pair."""
    dr.pair_friction(env, SOME, (0.1, 0.9), isotropic=True)
    friction = env.sim.model.pair_friction[SOME, 0]
    assert torch.equal(friction[:, 0], friction[:, 1])
    assert torch.equal(friction[:, 3], friction[:, 4])
    assert len(friction.unique()) == 6
    before = env.sim.model.pair_friction.clone()
    dr.pair_friction(env, SOME, {3: (0.1, 0.9)}, isotropic=True)
    changed = (env.sim.model.pair_friction != before).nonzero().tolist()
    assert changed == [[w, 0, column] for w in (1, 3) for column in (3, 4)]
    dr.pair_friction(env, SOME, (0.1, 0.9))
    assert len(env.sim.model.pair_friction[SOME].unique()) == 10


def test_materials_come_from_the_pool():
    """Pick among the materials named, in the worlds named, for all geoms or each."""
    env = make_env(num_envs=200)
    model = env.sim.mj_model
    paint, metal = (model.material(f"robot/{name}").id for name in ("paint", "metal"))
    ids = env.scene["robot"].indexing.geom_ids
    dr.geom_matid(env, torch.arange(100))
    drawn = env.sim.model.geom_matid[:, ids]
    assert drawn[:100].unique().tolist() == sorted((paint, metal))
    assert torch.equal(drawn[100:], env.sim.get_default_field("geom_matid")[ids].expand(100, -1))
    assert (drawn[:100] != drawn[:100, :1]).any()
    assert 0.4 < (drawn[:100] == paint).float().mean() < 0.6
    dr.geom_matid(env, None, shared_random=True)
    drawn = env.sim.model.geom_matid[:, ids]
    assert (drawn == drawn[:, :1]).all() and len(drawn.unique()) == 2
    only = SceneEntityCfg("robot", geom_names=("tip",), material_names=("metal",))
    dr.geom_matid(env, None, only)
    assert (env.sim.model.geom_matid[:, model.geom("robot/tip").id] == metal).all()


def test_textures_come_from_the_pool(env):
    """Pick among the textures named, for one role of the materials named."""
    model = env.sim.mj_model
    paint, plain = model.material("robot/paint").id, model.texture("robot/plain").id
    before = env.sim.get_default_field("mat_texid").expand(4, -1, -1)
    cfg = SceneEntityCfg("robot", material_names=("paint",), texture_names=("plain",))
    role = mujoco.mjtTextureRole.mjTEXROLE_NORMAL.value
    dr.mat_texid(env, SOME, cfg, role=role)
    after = env.sim.model.mat_texid
    assert (after != before).nonzero().tolist() == [[w, paint, role] for w in (1, 3)]
    assert (after[SOME, paint, role] == plain).all()
    with pytest.raises(ValueError, match="no column 10"):
        dr.mat_texid(env, SOME, cfg, role=10)
