"""Vertical rays at geoms that never move, against `mj_ray`, ray by ray."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manyworlds.sim import Simulation, SimulationCfg
from manyworlds.sim.engines.native_rays import NativeRays, RayRequest
from manyworlds.sim.engines.vertical_rays import VerticalRays
from tests.terrains.cells import KINDS, generate

_DOWN, _UP = np.array([0.0, 0.0, -1.0]), np.array([0.0, 0.0, 1.0])
Found = tuple[np.ndarray, np.ndarray, np.ndarray]


@pytest.fixture(autouse=True)
def search_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search for hits of few rays and on few geoms, too."""
    monkeypatch.setattr(NativeRays, "_worthwhile", lambda *args: True)


def _plain(
    model: mujoco.MjModel,
    pnt: np.ndarray,
    vec: np.ndarray,
    group: list[int] | None = None,
    exclude: np.ndarray | int = -1,
    data: mujoco.MjData | None = None,
) -> Found:
    """`mj_ray` for rays of shape (n, 3)."""
    if data is None:
        data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    count = len(pnt)
    dist, geomid, normal = np.zeros(count), np.zeros(count, np.int32), np.zeros((count, 3))
    vec, exclude = np.broadcast_to(vec, pnt.shape), np.broadcast_to(exclude, count)
    flags = None if group is None else np.array(group, np.uint8)
    for i in range(count):
        dist[i] = mujoco.mj_ray(
            *(model, data, pnt[i].astype(float), vec[i].astype(float), flags, True),
            *(int(exclude[i]), geomid[i : i + 1], normal[i]),
        )
    return dist, geomid, normal


def _check(found: Found, expected: Found, tolerance: float) -> None:
    """Compare hits with those of MuJoCo."""
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_allclose(found[0], expected[0], rtol=0, atol=tolerance)
    np.testing.assert_allclose(found[2], expected[2], rtol=0, atol=1e-6)


def _check_table(model: mujoco.MjModel, pnt: np.ndarray, slope: float) -> np.ndarray:
    """Compare the rays that a table of all geoms decides; return the mask of the others."""
    vec = np.array([0.0, 0.0, slope])
    table = VerticalRays(model, np.arange(model.ngeom))
    hits = table.cast(pnt[None], np.broadcast_to(vec, (1, *pnt.shape)))
    assert hits is not None
    decided = ~hits.undecided[0]
    found = hits.dist[0, decided], hits.geomid[0, decided], hits.normal[0, decided]
    _check(found, _plain(model, pnt[decided], vec), 1e-9)
    return ~decided


def _sim(model: mujoco.MjModel, num_envs: int = 1) -> Simulation:
    return Simulation(num_envs, SimulationCfg(engine="native", mujoco=None), model, "cpu")


def _check_engine(sim: Simulation, pnt: np.ndarray, vec: np.ndarray, **options: Any) -> None:
    """Compare rays of all worlds with MuJoCo, in the engine's single precision."""
    points = torch.from_numpy(pnt.astype(np.float32))
    directions = torch.from_numpy(np.broadcast_to(vec, pnt.shape).astype(np.float32))
    rays = sim.ray(points, directions, **options)
    group, exclude = options.get("geomgroup"), options.get("bodyexclude", -1)
    for world, (model, data) in enumerate(sim.world_copies()):
        expected = _plain(model, points.numpy(), directions.numpy(), group, exclude, data)
        found = rays.dist[world].numpy(), rays.geomid[world].numpy(), rays.normal[world].numpy()
        _check(found, expected, 1e-6)


def _edges(model: mujoco.MjModel, rng: np.random.Generator, count: int) -> np.ndarray:
    """Points exactly on edges and corners of boxes, and above nodes of height fields."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    geoms = rng.integers(model.ngeom, size=count)
    half = model.geom_size[geoms].copy()
    for i, geom in enumerate(geoms):
        if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_HFIELD:
            field = model.geom_dataid[geom]
            half[i, :2] = model.hfield_size[field, :2]
            step = 2 * half[i, 0] / (model.hfield_ncol[field] - 1)
            half[i, 0] -= step * rng.integers(5)
    share = rng.choice([-1.0, 1.0, 0.0, 0.37], (count, 3))
    share[:, 0] = rng.choice([-1.0, 1.0], count)
    mat = data.geom_xmat[geoms].reshape(-1, 3, 3)
    points = data.geom_xpos[geoms] + np.einsum("nij,nj->ni", mat, share * half)
    points[: count // 2, 2] = 3.0
    return points


@pytest.mark.parametrize("kind", KINDS)
def test_rays_on_every_kind_of_terrain(kind: str) -> None:
    """Hit what MuJoCo hits, from above, within and below, in easy and hard cells, at edges."""
    _, spec = generate({kind: KINDS[kind]()}, num_rows=3, border_width=2.0)
    model = spec.compile()
    rng = np.random.default_rng(0)
    anywhere = rng.uniform([-15, -7, -1.0], [15, 7, 1.5], (1200, 3))
    anywhere[:600, 2] = 3.0
    for slope in (-1.0, 0.5):
        undecided = _check_table(model, anywhere, slope)
        # Height fields that are level at height zero are the only frequent cause.
        assert undecided.mean() < 0.005
    lattice = np.round(anywhere, 1)
    edges = _edges(model, rng, 400)
    for points in (lattice[::3], edges):
        _check_table(model, points, -1.0)
        _check_table(model, points, 1.0)
    sim = _sim(model)
    _check_engine(sim, np.concatenate([lattice[:300], edges[:300]]), _DOWN)
    slanted = rng.normal(size=(150, 3))
    slanted[:50, 2] = 0.0
    mixed = np.where(np.arange(150)[:, None] % 3 == 0, _DOWN, slanted)
    _check_engine(sim, anywhere[500:650], mixed)


@pytest.mark.parametrize("kind", KINDS)
def test_most_rays_from_above_take_one_lookup(kind: str) -> None:
    """Find hits from above without going from geom to geom, except on tilted boxes and edges."""
    _, spec = generate({kind: KINDS[kind]()}, num_rows=3, border_width=2.0)
    model = spec.compile()
    table = VerticalRays(model, np.arange(model.ngeom))
    points = np.random.default_rng(0).uniform([-12, -4, 3], [12, 4, 3], (2000, 3))
    hits = table._surface.find(np.ascontiguousarray(points.T), -1.0)
    # Kinds with many turned or tilted boxes, or with many steps in one cell of the grid.
    least = {"random_spread_boxes": 0.2, "boxes_without_floor": 0.15, "tilted_grid": 0.3}
    share = hits.found.sum() / (_plain(model, points, _DOWN)[1] >= 0).sum()
    assert share > least.get(kind, 0.7)


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_rays_at_coinciding_faces(seed: int) -> None:
    """Choose the same geom where boxes and height fields share faces, edges and corners."""
    rng = np.random.default_rng(seed)
    spec = mujoco.MjSpec()
    for i in range(10):
        pos = (rng.integers(-4, 5, 3) / 4).tolist()
        size = (rng.integers(1, 5, 3) / 4).tolist()
        if rng.random() < 0.2:
            levels = rng.integers(0, 3, 9).tolist()
            spec.add_hfield(name=f"field{i}", nrow=3, ncol=3, size=(*size, 0.25), userdata=levels)
            spec.worldbody.add_geom(
                type=mujoco.mjtGeom.mjGEOM_HFIELD, hfieldname=f"field{i}", pos=pos
            )
            continue
        quat = [1.0, 0.0, 0.0, 0.0]
        if rng.random() < 0.3:
            turn = rng.choice([np.pi / 2, np.pi / 4, 0.3])
            axis = np.eye(3)[rng.integers(3)] * np.sin(turn / 2)
            quat = [np.cos(turn / 2), *axis]
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, pos=pos, size=size, quat=quat)
    low = (0.0, 0.0, rng.integers(-4, 1) / 4)
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=(1.0, 0.0, 1.0), pos=low)
    model = spec.compile()
    points = rng.integers(-16, 17, (150, 3)) / 8
    off = points + 1e-3 * rng.normal(size=points.shape)
    for slope in (-1.0, 2.0):
        _check_table(model, points, slope)
        assert _check_table(model, off, slope).mean() < 0.5
        vec = np.array([0.0, 0.0, slope])
        _check_engine(_sim(model), np.concatenate([points, off]), vec)


# Every type of geom as part of the world and on moving bodies, in several groups.
_MIXED = """
<mujoco>
  <default><geom contype="0" conaffinity="0"/></default>
  <asset>
    <hfield name="hills" nrow="3" ncol="4" size="1 1 .4 .1"
      elevation="0 1 2 0  1 3 1 2  2 0 1 1"/>
    <mesh name="wedge" vertex="0 0 0  .4 0 0  0 .4 0  0 0 .5  .3 .3 .3"/>
    <material name="glass" rgba="1 1 1 0"/>
    <material name="stone" rgba=".5 .5 .5 1"/>
  </asset>
  <worldbody>
    <geom type="plane" size="0 0 1" pos="0 0 -1"/>
    <geom type="plane" size=".5 .5 1" pos="2 2 .2"/>
    <geom type="plane" size=".5 .5 1" pos="-2 2 .2" euler="20 0 0"/>
    <geom type="hfield" hfield="hills" pos="-2 -2 -.5"/>
    <geom type="hfield" hfield="hills" pos="2 -2 -.5" euler="0 10 30"/>
    <geom type="capsule" size=".1 .3" pos="1.5 1.5 .3" group="1"/>
    <geom type="sphere" size=".3" pos="0 2 .3"/>
    <body name="shelf" pos="0 0 .2">
      <geom type="box" size=".5 .5 .05" group="2"/>
      <geom type="box" size=".5 .5 .05" pos=".6 .2 .3" euler="0 0 30" group="2"/>
      <geom type="box" size=".5 .5 .05" pos="-.6 .2 .5" material="glass"/>
      <geom type="box" size=".3 .3 .05" pos="-.6 -.2 .5" material="stone" rgba="1 0 0 0"/>
      <geom type="box" size=".3 .3 .05" pos="0 -.2 .7" rgba="1 0 0 0"/>
      <body pos="0 -1 0"><geom type="cylinder" size=".2 .3"/></body>
      <body pos="1 -1 0"><geom type="ellipsoid" size=".2 .3 .1"/></body>
      <body pos="-1 0 0"><geom type="mesh" mesh="wedge"/></body>
    </body>
    <body name="ball" pos="0 0 .8"><freejoint/>
      <geom size=".25" group="2"/>
      <geom type="box" size=".3 .3 .1" pos=".3 0 0" group="3"/>
      <body pos="0 .3 0"><joint axis="1 0 0"/>
        <geom type="capsule" size=".08 .25" pos="0 .3 0"/></body>
    </body>
    MOCAP
  </worldbody>
</mujoco>
"""
_MOCAP = '<body mocap="true" pos=".5 -1 1"><geom type="box" size=".4 .4 .1"/></body>'


def _mixed(mocap: bool = False) -> Simulation:
    model = mujoco.MjModel.from_xml_string(_MIXED.replace("MOCAP", _MOCAP if mocap else ""))
    return _sim(model, 3)


def _scattered(count: int = 600) -> np.ndarray:
    return np.random.default_rng(1).uniform([-3, -3, -1.5], [3, 3, 2], (count, 3))


def _count_mujoco_rays(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the number of rays of each call that lets MuJoCo cast rays at fixed geoms."""
    counts: list[int] = []
    original = NativeRays._mujoco

    def counted(self: NativeRays, request: RayRequest) -> Any:
        if request.flg_static:
            counts.append(request.pnt.shape[0] * request.pnt.shape[1])
        return original(self, request)

    monkeypatch.setattr(NativeRays, "_mujoco", counted)
    return counts


_SOME_BODIES = torch.tensor([i // 8 % 7 if i % 8 == 0 else -1 for i in range(600)])


@pytest.mark.parametrize("mocap", [False, True], ids=["bodies", "mocap"])
@pytest.mark.parametrize(
    ("options", "everything"),
    [
        ({}, False),
        ({"geomgroup": [1, 0, 0, 0, 0, 0]}, False),
        ({"geomgroup": [0, 1, 1, 0, 1, 1]}, False),
        ({"geomgroup": [0, 0, 0, 0, 0, 1]}, True),
        ({"bodyexclude": 0}, True),
        ({"bodyexclude": _SOME_BODIES.int()}, False),
    ],
    ids=["any", "first", "others", "none", "world", "bodies"],
)
def test_rays_at_all_types_of_geoms(
    mocap: bool, options: dict, everything: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Add hits on moving geoms, and let MuJoCo cast rays near other types of geoms.

    It casts all rays if there is nothing fixed to hit, or if they exclude what is fixed.
    """
    sim = _mixed(mocap)
    sim.data.qpos[0, :3] = torch.tensor([0.3, -0.4, 0.5])
    sim.data.qpos[0, 7] = 0.7
    if mocap:
        sim.data.mocap_pos[0, 0] = torch.tensor([-0.5, -1.0, 0.3])
    pnt, counts = _scattered(), _count_mujoco_rays(monkeypatch)
    for vec in (_DOWN, _UP, np.where(np.arange(600)[:, None] % 4, _DOWN, [0.6, 0.0, -0.8])):
        _check_engine(sim, pnt, vec, **options)
    assert min(counts) > 0 and (max(counts) == 3 * len(pnt)) == everything


@pytest.mark.parametrize("first", [True, False], ids=["moving-first", "fixed-first"])
def test_moving_and_fixed_geoms_at_the_same_place(first: bool) -> None:
    """Hit the geom with the lower id where a moving and a fixed box coincide."""
    spec = mujoco.MjSpec()
    order = ["ball", "shelf"] if first else ["shelf", "ball"]
    for name in order:
        body = spec.worldbody.add_body(name=name)
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.5, 0.5, 0.25])
    spec.body("ball").add_freejoint()
    sim = _sim(spec.compile())
    points = np.random.default_rng(3).uniform(-0.6, 0.6, (50, 3))
    _check_engine(sim, points, _DOWN)
    _check_engine(sim, points, _UP)


def test_few_rays_are_left_to_mujoco(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cast only undecided rays by MuJoCo; in each world as many as the world with most has."""
    _, spec = generate({"tilted_grid": KINDS["tilted_grid"]()}, border_width=2.0)
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.5, 0, 0], pos=[0, 0, 2])
    sim = _sim(spec.compile(), 3)
    counts = _count_mujoco_rays(monkeypatch)
    pnt = torch.rand(3, 100, 3) * 2 + torch.tensor([1.5, 0.0, 3.0])
    pnt[1, 5], pnt[2, 7:9] = torch.tensor([0.1, 0.1, 3.0]), torch.tensor([0.0, 0.0, 3.0])
    rays = sim.ray(pnt, torch.tensor([0.0, 0.0, -1.0]).expand(100, 3), env_ids=[0, 1, 2])
    assert counts == [4]
    sphere = int(sim.mj_model.geom_type.argmin())
    assert (rays.geomid == sphere).nonzero().tolist() == [[1, 5], [2, 7], [2, 8]]
    for world in range(3):
        down = np.broadcast_to(_DOWN, (100, 3))
        expected = _plain(sim.mj_model, pnt[world].numpy(), down)
        _check(tuple(part[world].numpy() for part in rays), expected, 1e-6)  # type: ignore[arg-type]


def test_rows_of_worlds_that_move_or_hide_fixed_geoms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let MuJoCo cast all rays while any world has another ground, and only then."""
    _, spec = generate({"flat": KINDS["flat"](), "stairs": KINDS["pyramid_stairs"]()})
    spec.worldbody.add_body(name="robot", pos=[0, 0, 5]).add_freejoint()
    spec.body("robot").add_geom(size=[0.1, 0, 0], group=3)
    sim = _sim(spec.compile(), 2)
    counts = _count_mujoco_rays(monkeypatch)
    points = np.random.default_rng(2).uniform([-4, -8, 1], [4, 8, 4], (50, 3))
    points[:5] = [0.02, 0.02, 8.0]  # above the robot

    def check() -> None:
        _check_engine(sim, points, _DOWN, geomgroup=[1, 0, 0, 0, 0, 0])

    check()
    robot = sim.mj_model.geom_bodyid.argmax()
    sim.expand_model_fields(("geom_pos", "geom_rgba", "body_pos", "geom_size", "geom_friction"))
    sim.model.geom_pos[:, robot] += 1.0
    sim.model.geom_friction[:] *= 0.5
    sim.model.geom_rgba[..., :3] = torch.rand(2, sim.mj_model.ngeom, 3)
    check()
    assert not counts
    for field, value in (("geom_pos", 0.1), ("geom_size", 0.1), ("body_pos", 0.2)):
        rows = getattr(sim.model, field)
        before = rows.clone()
        rows[1, :2] += value
        check()
        rows[0] += value
        check()
        rows[:] = before
        check()
    assert counts == 6 * [100]
    # Where rows show the robot to the rays, they still find the ground in the grid.
    sim.expand_model_fields(("geom_group",))
    sim.model.geom_group[1, sim.mj_model.ngeom - 1] = 0
    check()
    assert counts[6:] == []
    sim.model.geom_rgba[0, :3, 3] = 0.0
    check()
