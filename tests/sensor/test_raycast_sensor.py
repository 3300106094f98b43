"""Rays on moving frames, against MuJoCo C."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.scene import Scene
from manyworlds.sensor import (
    GridPatternCfg,
    ObjRef,
    PinholeCameraPatternCfg,
    RayCastSensorCfg,
    RingPatternCfg,
)
from manyworlds.sensor.raycast_sensor import heading
from manyworlds.sim import RecomputeLevel, Simulation
from manyworlds.utils.math import matrix_from_euler, quat_from_matrix
from tests.sensor.scenes import add_floor, build, entity, heap

_FRAMES = (ObjRef("geom", "toe", "robot"), ObjRef("body", "trunk", "robot"))
_FRAMES += (ObjRef("site", "imu", "robot"), ObjRef("geom", "trunk", "robot"))
_RAISED = GridPatternCfg(size=(0.6, 0.4), resolution=0.2, offset=(0.1, -0.2, 0.7))
_DATA = {"body": ("xpos", "xmat"), "site": ("site_xpos", "site_xmat")}
_DATA["geom"] = ("geom_xpos", "geom_xmat")


def _cfg(**options) -> RayCastSensorCfg:
    options = {
        "frame": _FRAMES,
        "pattern": GridPatternCfg(size=(0.6, 0.4), resolution=0.2),
    } | options
    return RayCastSensorCfg(name="scan", **options)


def _scene(cfg: RayCastSensorCfg, engine: str = "native") -> tuple[Scene, Simulation]:
    """Three robots that tumble in different ways over a floor with a post."""

    def add_ground(spec: mujoco.MjSpec) -> None:
        add_floor(spec)
        spec.worldbody.add_geom(
            type=mujoco.mjtGeom.mjGEOM_BOX, size=(0.1, 0.1, 0.1), group=1, contype=0, conaffinity=0
        )

    robot = entity(heap(), pos=(0.0, 0.0, 0.5))
    scene, sim = build({"robot": robot}, cfg, num_envs=3, engine=engine, spec_fn=add_ground)
    generator = torch.Generator().manual_seed(0)
    sim.data.qvel[:, :6] = torch.randn(3, 6, generator=generator)
    sim.data.qpos[:, 3:7] += 0.3 * torch.randn(3, 4, generator=generator)
    _advance(scene, sim)
    return scene, sim


def _advance(scene: Scene, sim: Simulation) -> None:
    sim.step(20, refresh=True)
    scene.update(0.1)


def _yaw(matrix: np.ndarray) -> np.ndarray:
    angle = math.atan2(matrix[1, 0], matrix[0, 0])
    cos, sin = math.cos(angle), math.sin(angle)
    return np.array([[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]])


def _plain(sim: Simulation, cfg: RayCastSensorCfg, env: int) -> list[tuple]:
    """Each ray's origin, hit, distance and normal from `mj_ray` in one world."""
    model, data = sim.mj_model, mujoco.MjData(sim.mj_model)
    data.qpos[:] = sim.data.qpos[env].numpy()
    mujoco.mj_kinematics(model, data)
    rays = []
    for frame in cfg.frames:
        index = getattr(model, frame.type)(frame.prefixed_name()).id
        pos, mat = (getattr(data, field)[index] for field in _DATA[frame.type])
        body = index if frame.type == "body" else getattr(model, f"{frame.type}_bodyid")[index]
        turn = {"base": mat.reshape(3, 3), "yaw": _yaw(mat.reshape(3, 3)), "world": np.eye(3)}
        turn = turn[cfg.ray_alignment]
        groups = cfg.include_geom_groups
        flags = None if groups is None else np.array([g in groups for g in range(6)], np.uint8)
        for offset, direction in zip(*cfg.pattern.generate_rays(model, "cpu"), strict=True):
            origin = pos + turn @ offset.double().numpy()
            vec = turn @ direction.double().numpy()
            normal, geom = np.zeros(3), np.zeros(1, np.int32)
            exclude = int(body) if cfg.exclude_parent_body else -1
            dist = mujoco.mj_ray(model, data, origin, vec, flags, 1, exclude, geom, normal)
            if not 0 <= dist <= cfg.max_distance:
                dist, normal = -1.0, np.zeros(3)
            rays.append((origin + max(dist, 0.0) * vec, dist, normal))
    return rays


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"ray_alignment": "yaw"},
        {"ray_alignment": "world", "pattern": RingPatternCfg.single_ring(0.3, 6)},
        {"exclude_parent_body": False},
        {"include_geom_groups": (1,)},
        {"include_geom_groups": None, "max_distance": 0.3},
        {"frame": _FRAMES[2]},
        {"pattern": _RAISED},
        {"pattern": _RAISED, "ray_alignment": "yaw"},
    ],
    ids=["base", "yaw", "world", "own body", "groups", "near", "one frame", "offset", "offset yaw"],
)
@pytest.mark.parametrize("engine", ["native", "warp"])
def test_rays_match_mujoco(engine: str, options: dict) -> None:
    """Compare what rays on several frames meet with `mj_ray`, in worlds that moved apart."""
    if engine == "warp":
        pytest.importorskip("mujoco_warp")
    cfg = _cfg(**options)
    scene, sim = _scene(cfg, engine)
    for _ in range(2):
        data = scene["scan"].data
        assert data.distances.shape == (3, scene["scan"].num_rays)
        for env in range(3):
            hits, distances, normals = map(np.array, zip(*_plain(sim, cfg, env), strict=True))
            np.testing.assert_allclose(data.distances[env].numpy(), distances, atol=2e-5)
            np.testing.assert_allclose(data.hit_pos_w[env].numpy(), hits, atol=2e-5)
            np.testing.assert_allclose(data.normals_w[env].numpy(), normals, atol=2e-4)
            if "include_geom_groups" in options:
                assert (distances < 0).any()
        _advance(scene, sim)


def test_frames_are_in_the_order_of_the_configuration() -> None:
    """Show each frame's pose where the configuration has it, and the first one's apart."""
    scene, sim = _scene(_cfg())
    sensor = scene["scan"]
    data, model = sensor.data, sim.mj_model
    assert (sensor.num_frames, sensor.num_rays_per_frame, sensor.num_rays) == (4, 12, 48)
    for column, frame in enumerate(_FRAMES):
        index = getattr(model, frame.type)(frame.prefixed_name()).id
        pos, mat = (getattr(sim.data, field)[:, index] for field in _DATA[frame.type])
        torch.testing.assert_close(data.frame_pos_w[:, column], pos)
        for env in range(3):
            quat = np.zeros(4)
            mujoco.mju_mat2Quat(quat, mat[env].double().numpy().flatten())
            quat *= np.sign(quat[0])
            np.testing.assert_allclose(data.frame_quat_w[env, column].numpy(), quat, atol=1e-5)
    assert torch.equal(data.pos_w, data.frame_pos_w[:, 0])
    assert torch.equal(data.quat_w, data.frame_quat_w[:, 0])


def test_misses_are_where_rays_start() -> None:
    """Give -1, the ray's origin and no normal for rays that go up."""
    scene, _ = _scene(_cfg(pattern=GridPatternCfg(direction=(0, 0, 1)), ray_alignment="world"))
    data = scene["scan"].data
    missed = data.distances < 0
    assert missed.float().mean() > 0.5
    assert (data.distances[missed] == -1).all() and (data.normals_w[missed] == 0).all()
    origins = data.frame_pos_w[:, :, None] + scene["scan"]._offsets
    torch.testing.assert_close(data.hit_pos_w[missed], origins.flatten(1, 2)[missed])


@pytest.mark.parametrize("pitch", [0.0, 0.7, 1.5, math.pi / 2, -1.5, -math.pi / 2])
@pytest.mark.parametrize("yaw", [-2.0, 0.0, 1.0])
def test_heading_holds_where_the_frame_looks_up_or_down(pitch: float, yaw: float) -> None:
    """Keep the heading of a level frame that pitches, up to the vertical."""
    angles = torch.tensor([yaw, pitch, 0.0])
    turn = heading(matrix_from_euler(angles, "ZYX"))
    expected = matrix_from_euler(torch.tensor([yaw, 0.0, 0.0]), "ZYX")
    torch.testing.assert_close(turn, expected, atol=2e-5, rtol=0)


def test_only_worlds_that_changed_are_cast_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cast nothing until read, everything once after an update, and reset worlds alone."""
    scene, sim = _scene(_cfg())
    cast = []
    ray = sim.ray
    monkeypatch.setattr(sim, "ray", lambda pnt, *a, **k: cast.append(len(pnt)) or ray(pnt, *a, **k))
    _advance(scene, sim)
    assert cast == []
    before = scene["scan"].data
    _ = scene["scan"].data
    assert cast == [3]
    kept = before.distances.clone()
    sim.data.qpos[1, 2] += 0.25
    sim.forward([1])
    scene.reset(torch.tensor([1]))
    scene.invalidate_sensors(torch.tensor([1]))
    after = scene["scan"].data
    assert cast == [3, 1]
    assert torch.equal(before.distances, kept)
    assert torch.equal(after.distances[[0, 2]], kept[[0, 2]])
    assert not torch.equal(after.distances[1], kept[1])
    sim.sense()
    assert torch.equal(scene["scan"].data.distances, after.distances)
    assert cast == [3, 1, 3]


def test_geoms_of_each_world_are_hit() -> None:
    """Meet a post where each world's own row has it."""
    scene, sim = _scene(
        _cfg(
            frame=_FRAMES[1],
            pattern=GridPatternCfg(size=(0.0, 0.0)),
            ray_alignment="world",
            include_geom_groups=(1,),
        )
    )
    post = int(np.flatnonzero(sim.mj_model.geom_group == 1)[0])
    sim.expand_model_fields(("geom_pos",))
    sim.forward()
    sim.model.geom_pos[:, post, :2] = sim.data.xpos[:, sim.mj_model.body("robot/trunk").id, :2]
    sim.model.geom_pos[:, post, 2] = torch.tensor([-1.0, -2.0, -3.0])
    sim.recompute_constants(RecomputeLevel.set_const)
    scene.invalidate_sensors()
    data = scene["scan"].data
    expected = torch.tensor([-0.9, -1.9, -2.9])
    torch.testing.assert_close(data.hit_pos_w[:, 0, 2], expected, atol=1e-5, rtol=0)


class _Canvas:
    """Notes what is drawn."""

    env_idx, show_all_envs, meansize = 1, False, 0.1

    def __init__(self) -> None:
        self.spheres: list = []
        self.arrows: list = []

    def get_env_indices(self, num_envs: int) -> list[int]:
        return [self.env_idx]

    def add_sphere(self, center, radius, color, label=None) -> None:
        self.spheres.append((center, radius, color))

    def add_arrow(self, start, end, color, width=0.015, label=None) -> None:
        self.arrows.append((start, end, color))


def test_debug_vis_draws_hits_rays_and_normals() -> None:
    """Draw a sphere at each hit of the world that is shown, an arrow per ray and per normal."""
    viz = RayCastSensorCfg.VizCfg(show_rays=True, show_normals=True)
    scene, _ = _scene(_cfg(debug_vis=True, viz=viz, max_distance=0.6))
    canvas = _Canvas()
    scene["scan"].debug_vis(canvas)
    data = scene["scan"].data
    hit = data.distances[1] >= 0
    assert 0 < hit.sum() < 48
    centers = torch.from_numpy(np.array([center for center, _, _ in canvas.spheres]))
    assert torch.equal(centers, data.hit_pos_w[1][hit])
    assert len(canvas.arrows) == 48 + hit.sum()
    misses = [arrow for arrow in canvas.arrows if arrow[2] == viz.miss_color]
    lengths = [np.linalg.norm(end - start) for start, end, _ in misses]
    np.testing.assert_allclose(lengths, 0.6, atol=1e-5)
    scene, _ = _scene(_cfg())
    silent = _Canvas()
    scene["scan"].debug_vis(silent)
    assert not silent.spheres


@pytest.mark.parametrize(
    "options, reason",
    [
        ({"frame": ObjRef("joint", "hip", "robot")}, "must be 'body', 'site', or 'geom'"),
        ({"frame": ()}, "has no frame"),
        ({"frame": ObjRef("body", "trank", "robot")}, "'robot/trank', which the scene does not"),
        ({"ray_alignment": "up"}, "ray_alignment must be one of"),
        ({"pattern": GridPatternCfg(offset=(0.0, math.nan, 0.0))}, "three finite numbers"),
        ({"max_distance": 0.0}, "max_distance must be positive"),
        ({"include_geom_groups": (6,)}, "among 0 to 5"),
    ],
)
def test_impossible_configurations_are_refused(options: dict, reason: str) -> None:
    """Name what is wrong when the scene is built."""
    with pytest.raises(ValueError, match=reason):
        _scene(_cfg(**options))


@pytest.mark.parametrize("alignment", ["yaw", "world"])
@pytest.mark.parametrize("kind", ["grid", "ring", "camera"])
@pytest.mark.parametrize("engine", ["native", "warp"])
def test_raised_rays_do_not_swing_with_the_body(engine: str, kind: str, alignment: str) -> None:
    """Start 10 m above a body that pitches by 0.1 rad: the middle ray hits right below it."""
    patterns = {
        "grid": GridPatternCfg(size=(0.4, 0.4), resolution=0.2, offset=(0.0, 0.0, 10.0)),
        "ring": RingPatternCfg.single_ring(0.2, 8, offset=(0.0, 0.0, 10.0)),
        "camera": PinholeCameraPatternCfg(width=3, height=3, offset=(0.0, 0.0, 10.0)),
    }
    middle = {"grid": 4, "ring": 0, "camera": 4}[kind]
    cfg = _cfg(
        frame=ObjRef("body", "trunk", "robot"),
        pattern=patterns[kind],
        ray_alignment=alignment,
        max_distance=20.0,
        include_geom_groups=(0,),
    )
    scene, sim = build({"robot": entity(heap())}, cfg, num_envs=2, engine=engine, spec_fn=add_floor)
    place = torch.tensor([0.3, -0.4, 0.5])
    sim.data.qpos[:, :3] = place
    angles = torch.tensor([[0.0, 0.0, 0.0], [0.7, 0.1, 0.0]])
    sim.data.qpos[:, 3:7] = quat_from_matrix(matrix_from_euler(angles, "ZYX"))
    sim.forward()
    scene.invalidate_sensors()
    data = scene["scan"].data
    below = place * torch.tensor([1.0, 1.0, 0.0])
    torch.testing.assert_close(data.hit_pos_w[:, middle], below.expand(2, 3), atol=1e-4, rtol=0)
    torch.testing.assert_close(data.distances[:, middle], torch.full((2,), 10.5))
    torch.testing.assert_close(data.pos_w, place.expand(2, 3))


def test_sites_that_swing_are_named() -> None:
    """Warn of a site 10 m up whose rays only turn with the heading, and say what to do."""
    extra = '<body><joint/><geom size=".1"/><site name="high" pos="0 0 10"/></body>'
    cfg = _cfg(frame=ObjRef("site", "high", "robot"), ray_alignment="yaw")
    with pytest.warns(UserWarning, match=r"10 m from the origin .* offset=\(0, 0, 10\)"):
        build({"robot": entity(heap(extra=extra))}, cfg, num_envs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build({"robot": entity(heap(extra=extra))}, replace(cfg, ray_alignment="base"), num_envs=1)
        _scene(_cfg(ray_alignment="yaw"))


def test_rays_of_a_world_that_diverged_miss() -> None:
    """Miss in a world whose state is not finite, and leave the others as they are."""
    scene, sim = _scene(_cfg())
    before = scene["scan"].data.distances.clone()
    sim.data.qpos[1] = math.nan
    sim.forward()
    scene.invalidate_sensors()
    after = scene["scan"].data.distances
    assert (after[1] == -1).all()
    assert torch.equal(after[[0, 2]], before[[0, 2]])
