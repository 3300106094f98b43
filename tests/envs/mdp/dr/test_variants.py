"""Draws for worlds that hold variants start from what each variant was compiled with."""

import math

import mujoco
import pytest
import torch

from manyworlds.entity import VariantEntityCfg
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.envs.mdp import dr, randomize_variant
from manyworlds.managers import EventTermCfg, SceneEntityCfg
from manyworlds.scene import SceneCfg
from manyworlds.sensor import GridPatternCfg, ObjRef, RayCastSensorCfg
from manyworlds.sim import SimulationCfg
from tests.entity.variants.props import build, floor, variants
from tests.entity.variants.props import prop as rock
from tests.envs.mdp.dr.robot import XML
from tests.envs.mdp.dr.test_fields import LOOKS, PHYSICS

SOME = torch.tensor([0, 1])
# Size [m], mass [kg] and friction by variant.
PROPS = {"small": (0.1, 1.0, 0.5), "large": (0.2, 3.0, 0.8)}


def prop(size: float, mass: float, friction: float):
    """Return a function that makes a box."""
    return lambda: mujoco.MjSpec.from_string(
        "<mujoco><worldbody><body name='prop'><freejoint/><geom name='prop' type='box' "
        f"size='{size} {size} {size}' mass='{mass}' friction='{friction}'/>"
        "</body></worldbody></mujoco>"
    )


@pytest.mark.parametrize("engine", ["native", "warp"])
@pytest.mark.filterwarnings("ignore:dr.body_mass")
def test_draws_start_from_the_variant(engine):
    """Scale what the world's variant has, also after the world became another variant."""
    cfg = VariantEntityCfg(
        variants={name: prop(*values) for name, values in PROPS.items()},
        assignment=lambda count: [i % 2 for i in range(count)],
    )
    drawn = {dr.geom_friction: 2.0, dr.body_mass: 1.5, dr.geom_size: 1.5}
    events = {
        func.__name__: EventTermCfg(
            func=func,
            mode="step",
            params={
                "asset_cfg": SceneEntityCfg("prop"),
                "ranges": (factor, factor),
                "operation": "scale",
            },
        )
        for func, factor in drawn.items()
    }
    scene = SceneCfg(num_envs=4, entities={"prop": cfg})
    sim = SimulationCfg(engine=engine)
    env = ManagerBasedRlEnv(
        ManagerBasedRlEnvCfg(decimation=1, scene=scene, events=events, sim=sim), device="cpu"
    )

    def expect(*worlds: tuple[str, bool]) -> None:
        model = env.sim.model
        for world, (name, is_drawn) in enumerate(worlds):
            size, mass, friction = PROPS[name]
            grown = 1.5 if is_drawn else 1.0
            got = [model.geom_size[world, 0, 0], model.geom_rbound[world, 0]]
            got += [model.body_mass[world, -1], model.body_subtreemass[world, 0]]
            got += [model.geom_friction[world, 0, 0]]
            expected = [grown * size, grown * size * 3**0.5, grown * mass, grown * mass]
            expected += [(2.0 if is_drawn else 1.0) * friction]
            torch.testing.assert_close(torch.stack(got), torch.tensor(expected))

    for _ in range(3):
        env.event_manager.apply("step", SOME, dt=env.step_dt)
        expect(("small", True), ("large", True), ("small", False), ("large", False))
    env.sim.assign_variants("prop", [0], [1])
    expect(("large", True), ("large", True), ("small", False), ("large", False))
    env.sim.assign_variants("prop", [2], [1])
    expect(("large", True), ("large", True), ("large", False), ("large", False))
    env.event_manager.apply("step", SOME, dt=env.step_dt)
    expect(("large", True), ("large", True), ("large", False), ("large", False))


@pytest.mark.parametrize("engine", ["native", "warp"])
def test_what_a_reset_draws_is_on_top_of_the_variant_it_drew(engine):
    """Draw variants, then inertia, friction and pose: each is its new variant's, perturbed."""
    alpha, rub, shift = 0.1, 1.5, 0.01
    names = ("light", "heavy", "slippery")
    numbers = ((300.0, 0.6), (3000.0, 0.6), (800.0, 0.2))
    rocks = {
        name: rock(i, density=density, friction=[mu, 0.01, 0.001])
        for i, (name, (density, mu)) in enumerate(zip(names, numbers, strict=True))
    }
    cfg = variants(variants={**rocks, "none": None})
    asset = SceneEntityCfg("object")
    terms = (
        ("variant", randomize_variant, {}),
        ("inertia", dr.pseudo_inertia, {"alpha_range": (alpha, alpha), "t1_range": (shift, shift)}),
        ("friction", dr.geom_friction, {"ranges": (rub, rub), "operation": "scale"}),
    )
    events: dict[str, EventTermCfg] = {
        name: EventTermCfg(func=func, mode="reset", params={"asset_cfg": asset, **params})
        for name, func, params in terms
    }
    scene = SceneCfg(num_envs=24, entities={"object": cfg}, spec_fn=floor, env_spacing=0.0)
    env = ManagerBasedRlEnv(
        ManagerBasedRlEnvCfg(
            decimation=1, scene=scene, events=events, sim=SimulationCfg(engine=engine), seed=2
        ),
        device="cpu",
    )
    compiled = [build({"object": cfg.of_variant(name)})[1].mj_model for name in rocks]
    entity, model = env.scene["object"], env.sim.model
    body, geom = int(entity.indexing.body_ids[0]), int(entity.indexing.geom_ids[0])
    seen = set()
    for env_ids in (None, torch.arange(12), torch.arange(6, 24), None):
        env.reset(env_ids=env_ids)
        for world, variant in enumerate(env.sim.world_to_variant["object"].tolist()):
            seen.add((world, variant))
            if variant == 3:
                assert model.geom_dataid[world, geom] == -1
                continue
            single = compiled[variant]
            mass = math.exp(2 * alpha) * single.body_mass[1]
            got = [model.body_mass[world, body], model.body_ipos[world, body, 0]]
            got += [model.geom_friction[world, geom, 0], model.geom_rbound[world, geom]]
            expected = [mass, single.body_ipos[1, 0] + shift]
            expected += [rub * numbers[variant][1], single.geom_rbound[-1]]
            torch.testing.assert_close(torch.stack(got), torch.tensor(expected).float())
            weight = model.body_invweight0[world, body, 0]
            torch.testing.assert_close(weight, torch.tensor(1 / mass).float())
    assert len(seen) > 48  # most worlds had several variants


def test_sizes_of_what_is_a_mesh_in_some_variant_are_refused():
    """Name the geom and its type, also where the world holds another variant."""

    def ball() -> mujoco.MjSpec:
        spec = mujoco.MjSpec()
        body = spec.worldbody.add_body(name="prop")
        body.add_freejoint()
        body.add_geom(name="shell", size=[0.05, 0, 0])
        return spec

    cfg = variants(variants={"ball": ball, "rock": rock(1)}, assignment=[0, 0])
    draw = EventTermCfg(
        func=dr.geom_size,
        mode="startup",
        params={"asset_cfg": SceneEntityCfg("object"), "ranges": (0.5, 1.5)},
    )
    scene = SceneCfg(num_envs=2, entities={"object": cfg}, spec_fn=floor, env_spacing=0.0)
    with pytest.raises(ValueError, match=r"unsupported types: .*shell \(mesh\)"):
        ManagerBasedRlEnv(
            ManagerBasedRlEnvCfg(decimation=1, scene=scene, events={"draw": draw}), device="cpu"
        )


def _hinged() -> mujoco.MjSpec:
    """Return the robot with something of every kind, without its contact pair."""
    spec = mujoco.MjSpec.from_string(XML)
    spec.delete(spec.pairs[0])
    return spec


@pytest.fixture(scope="module")
def half_empty() -> ManagerBasedRlEnv:
    """Return an environment of four worlds, of which every second lacks the robot."""
    robot = VariantEntityCfg(
        variants={"here": _hinged, "none": None},
        assignment=lambda count: [i % 2 for i in range(count)],
    )
    scene = SceneCfg(num_envs=4, entities={"robot": robot}, spec_fn=floor, env_spacing=0.0)
    return ManagerBasedRlEnv(ManagerBasedRlEnvCfg(decimation=1, scene=scene), device="cpu")


@pytest.mark.filterwarnings("ignore:dr.body_mass")
@pytest.mark.parametrize("name", sorted((PHYSICS | LOOKS).keys() - {"pair_friction"}))
def test_functions_do_not_touch_what_a_world_lacks(half_empty, name):
    """Call each function for all worlds: rows change where the robot is, and only there."""
    sim, func = half_empty.sim, getattr(dr, name)
    sim.expand_model_fields(func.model_fields)
    before = {field: getattr(sim.model, field).clone() for field in func.model_fields}
    func(half_empty, None, **(PHYSICS | LOOKS)[name])
    changed = {field: getattr(sim.model, field) != old for field, old in before.items()}
    shared = name.startswith("mat_")  # materials belong to all worlds
    bounds = ("geom_aabb", "geom_rbound")
    for field, mask in changed.items():
        assert mask[[0, 2]].any(), field
        assert shared or field in bounds or not mask[[1, 3]].any(), field


def _meshes(count: int):
    """Return a function that makes a prop of a visual mesh and of colliding ones, side by side."""

    def make() -> mujoco.MjSpec:
        spec = mujoco.MjSpec()
        body = spec.worldbody.add_body(name="prop")
        body.add_freejoint()
        body.add_site(name="eye", pos=[0.6, 0, 0.5])
        for i in range(count + 1):
            mesh = spec.add_mesh(name=f"mesh_{i}")
            mesh.make_sphere(subdivision=2)
            mesh.scale[:] = (0.05, 0.05, 0.05)
            collides = int(i > 0)
            body.add_geom(
                type=mujoco.mjtGeom.mjGEOM_MESH,
                meshname=mesh.name,
                pos=[0.3 * i, 0, 0],
                contype=collides,
                conaffinity=collides,
            )
        return spec

    return make


@pytest.mark.parametrize("engine", ["native", "warp"])
def test_rays_pass_where_a_variant_has_fewer_meshes(engine):
    """Color all geoms of objects of 2 and 4 colliding meshes, and look from above."""
    cfg = VariantEntityCfg(
        variants={"sphere": _meshes(2), "cone": _meshes(4)},
        assignment=lambda count: [i % 2 for i in range(count)],
    )
    sky = RayCastSensorCfg(
        name="sky",
        frame=ObjRef("site", "eye", "object"),
        pattern=GridPatternCfg(size=(1.2, 0.0), resolution=0.3),
        exclude_parent_body=False,
    )
    params = {"asset_cfg": SceneEntityCfg("object"), "ranges": (0.2, 0.9)}
    events = {"color": EventTermCfg(func=dr.geom_rgba, mode="reset", params=params)}
    scene = SceneCfg(
        num_envs=2, entities={"object": cfg}, spec_fn=floor, sensors=(sky,), env_spacing=0.0
    )
    env = ManagerBasedRlEnv(
        ManagerBasedRlEnvCfg(
            decimation=1, scene=scene, events=events, sim=SimulationCfg(engine=engine)
        ),
        device="cpu",
    )
    env.reset()
    ids = env.scene["object"].indexing.geom_ids
    assert (env.sim.model.geom_rgba[:, ids, 3] > 0).sum(dim=1).tolist() == [3, 5]
    seen = env.scene["sky"].data.distances < 0.48
    assert seen.sum(dim=1).tolist() == [3, 5]
