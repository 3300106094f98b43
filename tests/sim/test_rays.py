"""Rays that the engines cast, against MuJoCo C."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.sim import RecomputeLevel, Simulation, SimulationCfg
from manyworlds.sim.engines.vertical_rays import VerticalHits, VerticalRays

# Every type of geom that rays can meet, in several groups, on moving and static bodies. None
# collides, since MuJoCo Warp compiles a kernel for each pair of types.
_XML = """
<mujoco>
  <default><geom contype="0" conaffinity="0"/></default>
  <asset>
    <hfield name="hills" nrow="9" ncol="9" size="2 2 .4 .1"/>
    <mesh name="wedge" vertex="0 0 0  .4 0 0  0 .4 0  0 0 .5  .3 .3 .3"/>
    <material name="glass" rgba="1 1 1 0"/>
  </asset>
  <worldbody>
    <geom name="plane" type="plane" size="0 0 1" pos="0 0 -1"/>
    <geom name="hills" type="hfield" hfield="hills" pos="0 0 -.5"/>
    <geom name="post" type="capsule" size=".1 .3" pos="1.5 1.5 .3" group="1"/>
    <body name="ball" pos="-.9 0 .6"><freejoint/>
      <geom name="ball" size=".25" group="2"/>
      <geom name="shell" type="box" size=".05 .05 .4" pos=".3 0 0" group="3"/>
      <body name="arm" pos="0 .3 0"><joint type="hinge" axis="1 0 0"/>
        <geom name="pill" type="capsule" size=".08 .25" pos="0 .3 0" group="4"/>
      </body>
    </body>
    <body name="egg" pos=".7 .7 .8"><freejoint/>
      <geom name="egg" type="ellipsoid" size=".3 .2 .1"/>
      <geom name="unseen" type="box" size=".4 .4 .4" material="glass"/></body>
    <body name="can" pos="0 -.9 .7"><freejoint/>
      <geom name="can" type="cylinder" size=".2 .3" group="1"/></body>
    <body name="wedge" pos=".8 -.8 .5"><freejoint/>
      <geom name="wedge" type="mesh" mesh="wedge" group="5"/></body>
  </worldbody>
</mujoco>
"""
_WORLDS = 3
# What float32 leaves of float64 over the extents of the scene.
_TOLERANCE = {"native": 1e-6, "warp": 2e-4}


@pytest.fixture(params=["native", "warp"])
def engine(request: pytest.FixtureRequest) -> str:
    """Each engine."""
    if request.param == "warp":
        pytest.importorskip("mujoco_warp")
    return request.param


def _simulation(engine: str) -> Simulation:
    """Worlds in different poses, with derived fields computed."""
    spec = mujoco.MjSpec.from_string(_XML)
    rng = np.random.default_rng(0)
    spec.hfields[0].userdata = rng.random(81).astype(np.float32)
    sim = Simulation(_WORLDS, SimulationCfg(engine=engine), spec=spec, device="cpu")
    generator = torch.Generator().manual_seed(1)
    for start in (0, 8, 15, 22):
        sim.data.qpos[:, start : start + 3] += 0.1 * torch.randn(_WORLDS, 3, generator=generator)
        quat = torch.randn(_WORLDS, 4, generator=generator)
        sim.data.qpos[:, start + 3 : start + 7] = quat / quat.norm(dim=1, keepdim=True)
    sim.data.qpos[:, 7] = torch.randn(_WORLDS, generator=generator)
    sim.forward()
    return sim


def _beams(count: int = 400) -> tuple[torch.Tensor, torch.Tensor]:
    """Rays from all over the place to all sides."""
    generator = torch.Generator().manual_seed(2)
    pnt = torch.randn(_WORLDS, count, 3, generator=generator) + torch.tensor([0.0, 0.0, 1.0])
    target = 0.7 * torch.randn(_WORLDS, count, 3, generator=generator)
    vec = target - pnt
    vec[:, -40:] *= -1
    return pnt, vec / vec.norm(dim=-1, keepdim=True)


def _plain(
    sim: Simulation,
    pnt: torch.Tensor,
    vec: torch.Tensor,
    group: list[int] | None = None,
    static: int = 1,
    exclude: np.ndarray | int = -1,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`mj_ray` in MuJoCo C, world by world, ray by ray."""
    worlds, count = pnt.shape[:2]
    dist, geomid = np.zeros((worlds, count)), np.zeros((worlds, count), np.int32)
    normal = np.zeros((worlds, count, 3))
    exclude = np.broadcast_to(exclude, count)
    flags = None if group is None else np.array(group, np.uint8)
    data = mujoco.MjData(sim.mj_model)
    for world in range(worlds):
        data.qpos[:] = sim.data.qpos[world].numpy()
        mujoco.mj_kinematics(sim.mj_model, data)
        for i in range(count):
            origin, direction = pnt[world, i].double().numpy(), vec[world, i].double().numpy()
            found = np.zeros(1, np.int32)
            dist[world, i] = mujoco.mj_ray(
                *(sim.mj_model, data, origin, direction, flags, static, int(exclude[i])),
                *(found, normal[world, i]),
            )
            geomid[world, i] = found[0]
    return dist, geomid, normal


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"group": [1, 0, 0, 1, 0, 0]},
        {"group": [0, 1, 1, 0, 1, 1], "static": 0},
        {"exclude": np.arange(400) % 6 - 1},
    ],
    ids=["all", "groups", "moving", "excluded"],
)
def test_rays_match_mujoco(engine: str, options: dict) -> None:
    """Compare distances, geoms and normals with `mj_ray`, over worlds in different poses."""
    sim = _simulation(engine)
    pnt, vec = _beams()
    dist, geomid, normal = _plain(sim, pnt, vec, **options)
    rays = sim.ray(
        *(pnt, vec, options.get("group"), bool(options.get("static", 1))),
        torch.as_tensor(options.get("exclude", -1)),
    )
    tolerance = _TOLERANCE[engine]
    # Rays along an edge may hit or miss in float32.
    grazing = (rays.geomid.numpy() != geomid) & (engine == "warp")
    assert grazing.mean() < 0.005
    same = ~grazing
    np.testing.assert_array_equal(rays.geomid.numpy()[same], geomid[same])
    np.testing.assert_allclose(rays.dist.numpy()[same], dist[same], atol=tolerance)
    close = np.abs(rays.normal.numpy() - normal).max(axis=-1) < (
        2e-7 if engine == "native" else 2e-3
    )
    assert close[same].mean() > (0.995 if engine == "warp" else 0.9999)
    if not options:
        assert set(np.unique(geomid)) == set(range(-1, 10)) - {sim.mj_model.geom("unseen").id}


def test_cutoff_misses_and_subsets(engine: str) -> None:
    """Count hits beyond the cutoff as misses, and cast into the worlds named only."""
    sim = _simulation(engine)
    pnt, vec = _beams(100)
    rays = sim.ray(pnt, vec)
    near = sim.ray(pnt, vec, cutoff=1.5)
    far = rays.dist > 1.5
    assert far.any() and (rays.dist < 0).any()
    assert (near.dist[far] == -1).all() and (near.geomid[far] == -1).all()
    assert (near.normal[far | (rays.dist < 0)] == 0).all()
    assert torch.equal(near.dist[~far], rays.dist[~far])
    some = sim.ray(pnt[[0, 2]], vec[[0, 2]], env_ids=[0, 2])
    for part, whole in zip(some, rays, strict=True):
        assert torch.equal(part, whole[[0, 2]])
    same = sim.ray(pnt[1], vec[1])
    assert torch.equal(same.dist[1], rays.dist[1])


def test_rays_change_nothing(engine: str) -> None:
    """Leave state and derived fields as they were."""
    sim = _simulation(engine)
    sim.step(3, refresh=True)
    before = {key: value.clone() for key, value in sim.get_state().items()}
    xpos = sim.data.geom_xpos.clone()
    sim.ray(*_beams(10))
    after = sim.get_state()
    assert all(torch.equal(after[key], value) for key, value in before.items())
    assert torch.equal(sim.data.geom_xpos, xpos)


def test_hits_outlive_later_calls(engine: str) -> None:
    """Return tensors that later calls leave alone, also after calls with many numbers of rays."""
    sim = _simulation(engine)
    pnt, vec = _beams(20)
    first = sim.ray(pnt, vec)
    kept = [part.clone() for part in first]
    for count in (20, *range(1, 19), 20):
        rays = sim.ray(-pnt[:, :count], vec[:, :count])
        assert rays.dist.shape == (_WORLDS, count)
    assert all(torch.equal(part, copy) for part, copy in zip(first, kept, strict=True))
    again = sim.ray(pnt, vec)
    assert all(torch.equal(part, copy) for part, copy in zip(again, kept, strict=True))


def test_native_rays_see_the_present_state() -> None:
    """Meet geoms where what was just written puts them, without a call of forward."""
    sim = _simulation("native")
    down = torch.tensor([[0.0, 0.0, -1.0]])
    origin = torch.tensor([[5.0, 5.0, 9.0]])
    assert sim.ray(origin, down).geomid[0, 0] == sim.mj_model.geom("plane").id
    sim.data.qpos[0, :3] = torch.tensor([5.0, 5.0, 2.0])
    rays = sim.ray(origin, down)
    assert rays.geomid[0, 0] == sim.mj_model.geom("ball").id
    assert rays.dist[0, 0] == pytest.approx(6.75)
    assert rays.geomid[1, 0] == sim.mj_model.geom("plane").id


def test_rays_see_rows_of_each_world(engine: str) -> None:
    """Meet geoms of the size and at the place that each world has."""
    sim = _simulation(engine)
    ball, post = sim.mj_model.geom("ball").id, sim.mj_model.geom("post").id
    sim.data.qpos[:, :3] = torch.tensor([5.0, 5.0, 2.0])
    sim.expand_model_fields(("geom_size", "geom_pos"))
    sim.model.geom_size[:, ball, 0] = torch.tensor([0.1, 0.2, 0.3])
    sim.model.geom_pos[:, post, 2] = torch.tensor([1.0, 2.0, 3.0])
    sim.recompute_constants(RecomputeLevel.set_const)
    sim.forward()
    pnt = torch.tensor([[5.0, 5.0, 9.0], [1.5, 1.5, 9.0]])
    rays = sim.ray(pnt, torch.tensor([[0.0, 0.0, -1.0]]))
    expected = torch.tensor([[6.9, 7.6], [6.8, 6.6], [6.7, 5.6]])
    torch.testing.assert_close(rays.dist, expected, atol=1e-5, rtol=0)


def test_world_that_diverged_hits_nothing() -> None:
    """Cast rays that are not finite without harm to other worlds."""
    sim = _simulation("native")
    pnt, vec = _beams(20)
    whole = sim.ray(pnt, vec)
    pnt[1], vec[2] = math.nan, math.nan
    rays = sim.ray(pnt, vec)
    assert (rays.geomid[1:] == -1).all()
    assert torch.equal(rays.dist[0], whole.dist[0])


def test_bad_rays_are_refused(engine: str) -> None:
    """Name the shape that is wanted."""
    sim = _simulation(engine)
    with pytest.raises(ValueError, match=r"shape \(nray, 3\) or \(3, nray, 3\)"):
        sim.ray(torch.zeros(2, 4, 3), torch.ones(3))
    with pytest.raises(ValueError, match="6 flags"):
        sim.ray(torch.zeros(4, 3), torch.ones(4, 3), geomgroup=[1, 0])


def test_world_copies_are_those_worlds(engine: str) -> None:
    """Copy state and rows of each world into plain structs."""
    sim = _simulation(engine)
    sim.expand_model_fields(("geom_size",))
    sim.model.geom_size[1, 3, 0] = 0.125
    sim.step(2)
    ((model, data),) = sim.world_copies([1])
    assert model.geom_size[3, 0] == 0.125
    np.testing.assert_allclose(data.qpos, sim.data.qpos[1].numpy(), atol=1e-6)
    sizes = [model.geom_size[3, 0] for model, _ in sim.world_copies()]
    assert sizes == pytest.approx([0.25, 0.125, 0.25])


@pytest.mark.parametrize(
    ("geoms", "worlds", "searched"), [(200, 64, True), (100, 1, False), (2, 64, False)]
)
def test_the_faster_way_is_taken(
    geoms: int, worlds: int, searched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Search in the grid for many rays at many fixed geoms; otherwise let MuJoCo cast them."""
    spec = mujoco.MjSpec()
    for i in range(geoms):
        spec.worldbody.add_geom(
            type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.5, 0.5, 0.1 + i % 3], pos=[i, 0, 0]
        )
    cfg = SimulationCfg(engine="native", num_threads=2)
    sim = Simulation(worlds, cfg, spec=spec, device="cpu")
    searches, cast = [], VerticalRays.cast

    def counted(self: VerticalRays, *rays: np.ndarray) -> VerticalHits | None:
        searches.append(rays)
        return cast(self, *rays)

    monkeypatch.setattr(VerticalRays, "cast", counted)
    pnt = torch.tensor([0.25, 0.0, 5.0]) + torch.arange(100.0)[:, None] * torch.tensor([1.0, 0, 0])
    rays = sim.ray(pnt, torch.tensor([[0.0, 0.0, -2.0]]))
    tops = 0.1 + torch.arange(100) % 3
    expected = torch.where(torch.arange(100) < geoms, 2.5 - tops / 2, -1.0).expand(worlds, 100)
    torch.testing.assert_close(rays.dist, expected, atol=1e-6, rtol=0)
    assert bool(searches) == searched
