"""Pictures, against MuJoCo's renderer on plain data."""

from __future__ import annotations

from collections.abc import Iterator

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.scene import Scene
from manyworlds.sensor import (
    CameraSensorCfg,
    ObjRef,
    PinholeCameraPatternCfg,
    RayCastSensorCfg,
)
from manyworlds.sim import Simulation
from tests.sensor.scenes import add_floor, build, entity, heap

_EYE = '<body name="pan" pos="0 -1 .6"><camera name="eye" xyaxes="1 0 0 0 .5 1" fovy="70"/></body>'
_ALL = ("rgb", "depth", "segmentation")


pytestmark = pytest.mark.usefixtures("gl")


@pytest.fixture
def scenes() -> Iterator[list[Scene]]:
    """Scenes whose OpenGL contexts are freed in the end."""
    made: list[Scene] = []
    yield made
    for scene in made:
        assert scene.sensor_context is not None
        scene.sensor_context.close()


def _add_sights(spec: mujoco.MjSpec) -> None:
    """A checkered floor, a sky, a light, and a block in the group that cameras do not see."""
    add_floor(spec)
    spec.add_texture(
        name="check",
        type=mujoco.mjtTexture.mjTEXTURE_2D,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
        rgb1=(0.8, 0.2, 0.2),
        width=64,
        height=64,
    )
    textures = ["", "check"]
    spec.add_material(name="check", textures=textures, texrepeat=(8, 8), reflectance=0.5)
    spec.geom("floor").material = "check"
    spec.worldbody.add_light(pos=(0, 0, 3), dir=(0.2, 0, -1))
    spec.worldbody.add_geom(
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=(0.2, 0.2, 0.4),
        pos=(0.5, 0.3, 0),
        group=3,
        contype=0,
        conaffinity=0,
    )


def _cfg(name: str = "eye", **options) -> CameraSensorCfg:
    options = {"camera_name": "robot/eye", "width": 40, "height": 30, "data_types": _ALL} | options
    return CameraSensorCfg(name=name, **options)


def _scene(scenes: list[Scene], *cfgs, engine: str = "auto") -> tuple[Scene, Simulation]:
    """Three robots that fell differently, seen by the same cameras."""
    robot = entity(heap(extra=_EYE), pos=(0.0, 0.0, 0.3))
    scene, sim = build({"robot": robot}, *cfgs, num_envs=3, engine=engine, spec_fn=_add_sights)
    scenes.append(scene)
    sim.data.qvel[:, :3] = torch.tensor([[1.0, 0, 0], [0, 1.0, 0], [-1.0, 0, 1.0]])
    sim.step(20, refresh=True)
    scene.update(0.1)
    return scene, sim


def _plain(model: mujoco.MjModel, qpos: np.ndarray, cfg: CameraSensorCfg) -> dict[str, np.ndarray]:
    """The pictures that MuJoCo's renderer draws."""
    data = mujoco.MjData(model)
    data.qpos[:] = qpos
    mujoco.mj_forward(model, data)
    option = mujoco.MjvOption()
    option.geomgroup[:] = [group in cfg.enabled_geom_groups for group in range(6)]
    option.sitegroup[:] = 0
    option.flags[mujoco.mjtVisFlag.mjVIS_TEXTURE] = cfg.use_textures
    pictures = {}
    with mujoco.Renderer(model, cfg.height, cfg.width) as renderer:
        renderer.update_scene(data, cfg.camera_name or cfg.name, option)
        renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = cfg.use_shadows
        renderer.scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = False
        pictures["rgb"] = renderer.render()
        renderer.enable_depth_rendering()
        pictures["depth"] = renderer.render()[..., None]
        renderer.enable_segmentation_rendering()
        pictures["segmentation"] = renderer.render()
    return pictures


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_textures": False, "use_shadows": True, "enabled_geom_groups": (0, 3)},
        {"camera_name": None, "parent_body": "robot/trunk", "fovy": 90.0},
        {"camera_name": None, "pos": (0.0, 0.0, 2.0), "orthographic": True, "fovy": 3.0},
        {"fovy": 20.0},
    ],
    ids=["as declared", "plain", "on a body", "orthographic", "zoomed"],
)
def test_pictures_are_those_of_the_renderer(scenes: list[Scene], options: dict) -> None:
    """Draw every world's colours, depths and objects equal to the last bit."""
    cfg = _cfg(**options)
    scene, sim = _scene(scenes, cfg)
    data = scene["eye"].data
    for env in range(3):
        (state,) = (data for _, data in sim.world_copies([env]))
        expected = _plain(sim.mj_model, state.qpos.copy(), cfg)
        for kind, picture in expected.items():
            found = getattr(data, kind)[env].numpy()
            assert found.dtype == picture.dtype
            np.testing.assert_array_equal(found, picture)
    assert not torch.equal(data.rgb[0], data.rgb[1])
    segments = set(data.segmentation[..., 1].unique().tolist())
    assert segments <= {-1, int(mujoco.mjtObj.mjOBJ_GEOM)}


def test_pictures_are_found_by_camera(scenes: list[Scene]) -> None:
    """Ask the context for a camera's pictures, whichever of its sensors takes them."""
    scene, _ = _scene(scenes, _cfg("a", data_types=("rgb",)), _cfg("b", data_types=("depth",)))
    ctx, camera = scene.sensor_context, scene["a"].camera_idx
    assert ctx is not None
    assert torch.equal(ctx.get_rgb(camera), scene["a"].data.rgb)
    assert torch.equal(ctx.get_depth(camera), scene["b"].data.depth)
    with pytest.raises(RuntimeError, match="add 'segmentation' to the data_types of sensor 'a'"):
        ctx.get_segmentation(camera)
    with pytest.raises(KeyError, match=rf"No sensor has camera 7: choose one of \[{camera}\]"):
        ctx.get_rgb(7)


def test_background_has_no_object(scenes: list[Scene]) -> None:
    """Mark pixels of the sky with -1."""
    up = _cfg(camera_name=None, quat=(0.0, 1.0, 0.0, 0.0), data_types=("segmentation",))
    scene, _ = _scene(scenes, up)
    data = scene["eye"].data
    assert (data.segmentation == -1).all()
    assert data.rgb is None and data.depth is None


def test_depth_agrees_with_rays(scenes: list[Scene]) -> None:
    """Measure the same distances with a camera and with rays through its pixels."""
    camera = _cfg(name="top", camera_name=None, fovy=50.0, pos=(0.0, 0.0, 1.5))
    frame = ObjRef("body", "trunk", "robot")
    size = {"width": 40, "height": 30}
    rays = RayCastSensorCfg(
        name="rays",
        frame=frame,
        pattern=PinholeCameraPatternCfg(**size, fovy=50.0),
        exclude_parent_body=False,
    )
    camera.parent_body = "robot/trunk"
    scene, _ = _scene(scenes, camera, rays)
    scan, depth = scene["rays"], scene["top"].data.depth[..., 0]
    # The rays start 1.5 m below the camera: let them start where it is.
    scan._offsets = scan._offsets + torch.tensor([0.0, 0.0, 1.5])
    scan.invalidate()
    along = scan.data.distances * -scan._directions[:, 2]
    along = along.reshape(depth.shape)
    hit = along > 0
    assert hit.float().mean() > 0.9
    close = (along - depth).abs() < 0.01
    assert close[hit].float().mean() > 0.97  # the rest are edges between pixels
    flat = (along - depth).abs()[hit].median()
    assert flat < 1e-3


def test_pinhole_rays_have_the_optics_of_their_camera(scenes: list[Scene]) -> None:
    """Measure the same distances with a camera off its axis and with rays of its intrinsics."""
    extra = (
        '<body name="pan" pos="0 0 1.5"><camera name="eye" resolution="40 30" '
        'focalpixel="35 40" principalpixel="6 4" sensorsize=".04 .03"/></body>'
    )
    rays = RayCastSensorCfg(
        name="rays",
        frame=ObjRef("body", "pan", "robot"),
        pattern=PinholeCameraPatternCfg.from_mujoco_camera("robot/eye"),
    )
    robot = entity(heap(extra=extra))
    scene, _ = build({"robot": robot}, _cfg(), rays, spec_fn=_add_sights)
    scenes.append(scene)
    depth = scene["eye"].data.depth[..., 0]
    scan = scene["rays"]
    along = (scan.data.distances * -scan._directions[:, 2]).reshape(depth.shape)
    close = (along - depth).abs() < 0.01
    assert close.float().mean() > 0.97


def test_worlds_look_as_their_rows_say(scenes: list[Scene]) -> None:
    """Draw colours, sizes and fields of view of each world's own."""
    scene, sim = _scene(scenes, _cfg())
    trunk = sim.mj_model.geom("robot/trunk").id
    before = scene["eye"].data.rgb.clone()
    sim.expand_model_fields(("geom_rgba", "geom_size", "cam_fovy"))
    sim.model.geom_rgba[0, trunk] = torch.tensor([0.0, 1.0, 0.0, 1.0])
    sim.model.geom_size[1, trunk, 2] = 0.125
    sim.model.cam_fovy[2] = 40.0
    scene.invalidate_sensors()
    found = scene["eye"].data.rgb
    for env in range(3):
        (state,) = (data for _, data in sim.world_copies([env]))
        model = mujoco.MjModel.from_xml_string(scene.spec.to_xml())
        model.geom_rgba[trunk] = sim.model.geom_rgba[env, trunk]
        model.geom_size[trunk] = sim.model.geom_size[env, trunk]
        model.cam_fovy[:] = sim.model.cam_fovy[env]
        expected = _plain(model, state.qpos.copy(), _cfg())["rgb"]
        difference = np.abs(found[env].numpy().astype(int) - expected.astype(int))
        assert np.percentile(difference, 99) <= 1
        assert not torch.equal(found[env], before[env])


def test_nothing_is_drawn_until_read(scenes: list[Scene], monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw each world once per update, in one renderer for cameras of one size."""
    scene, sim = _scene(scenes, _cfg(data_types=("rgb",)), _cfg("second", data_types=("rgb",)))
    drawn = []
    render = mujoco.Renderer.render
    monkeypatch.setattr(
        mujoco.Renderer, "render", lambda self, **k: drawn.append(self) or render(self, **k)
    )
    sim.step()
    scene.update(0.1)
    assert not drawn
    first = scene["eye"].data.rgb
    assert scene["eye"].data.rgb is first
    assert len(drawn) == 3
    assert torch.equal(scene["second"].data.rgb, first)
    assert len(drawn) == 6 and len(set(drawn)) == 1


@pytest.mark.parametrize("clone", [False, True])
def test_pictures_are_overwritten_unless_cloned(scenes: list[Scene], clone: bool) -> None:
    """Keep an old picture only if each has memory of its own."""
    scene, sim = _scene(scenes, _cfg(clone_data=clone))
    old = scene["eye"].data.rgb
    kept = old.clone()
    sim.step(20, refresh=True)
    scene.update(0.1)
    new = scene["eye"].data.rgb
    assert not torch.equal(new, kept)
    assert torch.equal(old, kept if clone else new)


@pytest.mark.slow
def test_warp_worlds_can_be_drawn(scenes: list[Scene]) -> None:
    """Trace the same objects and depths with MuJoCo Warp, and similar colours."""
    pytest.importorskip("mujoco_warp")
    scene, sim = _scene(scenes, _cfg(), engine="warp")
    data = scene["eye"].data
    for env in range(3):
        expected = _plain(sim.mj_model, sim.data.qpos[env].numpy(), _cfg())
        same = (data.segmentation[env].numpy() == expected["segmentation"]).all(axis=-1)
        assert same.mean() > 0.98  # the rest are edges between pixels
        depth = np.abs(data.depth[env].numpy() / expected["depth"] - 1.0)[same]
        assert np.percentile(depth, 98) < 2e-3
        assert data.rgb.dtype == torch.uint8
        colours = np.abs(data.rgb[env].numpy().astype(int) - expected["rgb"])
        assert colours.mean() < 20
    trunk = sim.mj_model.geom("robot/trunk").id
    sim.expand_model_fields(("cam_fovy", "geom_rgba"))
    sim.model.cam_fovy[2] = 30.0
    sim.model.geom_rgba[1, trunk] = torch.tensor([0.0, 1.0, 0.0, 1.0])
    sim.sense()
    after = scene["eye"].data
    assert torch.equal(after.depth[:2], data.depth[:2])
    assert (after.depth[2] != data.depth[2]).float().mean() > 0.5
    assert torch.equal(after.rgb[0], data.rgb[0])
    assert not torch.equal(after.rgb[1], data.rgb[1])


@pytest.mark.parametrize(
    "name, value",
    [("use_textures", False), ("use_shadows", True), ("enabled_geom_groups", (0,))],
)
def test_cameras_must_agree(name: str, value) -> None:
    """Refuse cameras that would draw the scene differently."""
    robot = {"robot": entity(heap(extra=_EYE))}
    with pytest.raises(ValueError, match=f"All cameras in a scene must agree on {name}"):
        build(robot, _cfg(), _cfg("other", **{name: value}))


@pytest.mark.parametrize(
    "options, reason",
    [
        ({"parent_body": "robot/trunk"}, "give one of them"),
        ({"data_types": ("colour",)}, "data_types must be among"),
        ({"width": 0}, "at least 1 pixel"),
        ({"fovy": -45.0}, r"fovy must be in \(0, 180\) degrees, .* got -45.0"),
        ({"camera_name": "robot/ear"}, "'robot/ear', which the scene does not have"),
        ({"camera_name": None, "parent_body": "robot/tail"}, "'robot/tail', which the scene"),
    ],
)
def test_impossible_configurations_are_refused(options: dict, reason: str) -> None:
    """Name what is wrong when the scene is built."""
    with pytest.raises(ValueError, match=reason):
        build({"robot": entity(heap(extra=_EYE))}, _cfg(**options))
