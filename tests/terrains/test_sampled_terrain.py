import mujoco
import numpy as np
import pytest

from manyworlds.asset_zoo.quadruped import get_quadruped_cfg
from manyworlds.entity import PropCfg
from manyworlds.scene import Scene, SceneCfg
from manyworlds.terrains import (
    HeightFieldCfg,
    HfSampledTerrainCfg,
    TerrainEntityCfg,
    TerrainGeneratorCfg,
    height_sources,
)
from manyworlds.terrains.height_sources import sample_heights

SIZE = (4.0, 6.0)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Give each test an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def slope(x, y):
    """Return heights that no mirror image has."""
    return 0.3 * x + 0.1 * y + 0.05 * x * y + 0.02 * y**2


def ray_height(model, x, y):
    """Return the height of the surface of a compiled model."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    hit = np.full(1, -1, np.int32)
    start = np.array([x, y, 50.0])
    return 50.0 - mujoco.mj_ray(model, data, start, np.array([0, 0, -1.0]), None, 1, -1, hit)


def grid(num_x, num_y):
    """Return the positions of the samples."""
    x, y = (np.linspace(-s / 2, s / 2, n) for s, n in zip(SIZE, (num_x, num_y), strict=True))
    return x, y


def hill_spec():
    """Return a spec of a sphere, half below a floor, and a box that is no ground."""
    spec = mujoco.MjSpec()
    geom = mujoco.mjtGeom
    spec.worldbody.add_geom(name="floor", type=geom.mjGEOM_PLANE, size=[0, 0, 1])
    spec.worldbody.add_geom(name="hill", type=geom.mjGEOM_SPHERE, size=[1, 0, 0], group=1)
    crate = spec.worldbody.add_body(name="crate", pos=[1.5, 2.0, 2.0])
    crate.add_geom(name="side", type=geom.mjGEOM_BOX, size=[0.2, 0.2, 0.2], rgba=[1, 0, 0, 0])
    return spec


def test_asymmetric_terrain_is_not_mirrored():
    """Compare rays onto a compiled rectangular height field with the function it was made of."""
    field = HeightFieldCfg.sample(slope, SIZE, (41, 31))
    field.init_state.pos = (0.0, 0.0, 0.5)
    model = Scene(SceneCfg(entities={"hills": field})).compile()
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    for x, y in [(1.9, 2.9), (-1.9, 2.9), (1.9, -2.9), (-1.9, -2.9), (0.4, 1.0), (0.0, 0.0)]:
        assert ray_height(model, x, y) - 0.5 == pytest.approx(slope(x, y), abs=0.01)


@pytest.mark.parametrize("kind", ["array", "image", "mesh", "model", "spec"])
def test_sources_agree(kind, tmp_path):
    """Sample one surface as an array, an image, a mesh and models: they have the same heights."""
    x, y = grid(33, 49)
    wanted = slope(*np.meshgrid(x, y))
    low, extent = wanted.min(), np.ptp(wanted)
    source, arguments = wanted, {}
    if kind == "image":
        image = pytest.importorskip("PIL.Image")
        pixels = ((wanted - low) / extent * 65535).round().astype(np.uint16)
        source = tmp_path / "heights.png"
        image.fromarray(pixels[::-1]).save(source)
        wanted, arguments = wanted - low, {"image_height": extent}
    if kind in ("model", "spec"):
        scene = Scene(SceneCfg(entities={"hills": HeightFieldCfg.sample(slope, SIZE, (33, 49))}))
        source = scene.spec if kind == "spec" else scene.compile()
    if kind == "mesh":
        trimesh = pytest.importorskip("trimesh")
        columns, rows = np.meshgrid(x, y)
        points = np.column_stack([columns.ravel(), rows.ravel(), wanted.ravel()])
        index = np.arange(len(points)).reshape(columns.shape)
        a, b, c, d = index[:-1, :-1], index[:-1, 1:], index[1:, 1:], index[1:, :-1]
        faces = np.concatenate([np.stack(t, -1).reshape(-1, 3) for t in ((a, b, c), (a, c, d))])
        source = tmp_path / "surface.obj"
        trimesh.Trimesh(points, faces, process=False).export(source)
    terrain = HfSampledTerrainCfg(source=source, size=SIZE, resolution=(33, 49), **arguments)
    np.testing.assert_allclose(terrain.heights(), wanted, atol=1e-4)


def test_geoms_are_filtered():
    """Sample a floor with a hill and an invisible crate, by group and by name."""
    x, y = grid(41, 61)
    radius = np.hypot(*np.meshgrid(x, y))
    hill = np.sqrt(np.maximum(1.0 - radius**2, 0.0))

    def heights(**choice):
        return HfSampledTerrainCfg(
            source=hill_spec(), size=SIZE, resolution=(41, 61), **choice
        ).heights()

    np.testing.assert_allclose(heights(exclude=("crate",)), hill, atol=1e-6)
    assert heights().max() == pytest.approx(2.2)
    np.testing.assert_allclose(heights(include=("floor",)), 0.0, atol=1e-9)
    only = heights(groups=(1,), fill=-3.0)
    np.testing.assert_allclose(only[radius > 1.01], -3.0)
    np.testing.assert_allclose(only[radius < 0.99], hill[radius < 0.99], atol=1e-6)
    with pytest.raises(ValueError, match="name like 'nothing'"):
        heights(include=("nothing",))
    with pytest.raises(ValueError, match="No geom can be sampled"):
        heights(groups=(4,))


def test_rays_are_cached_by_content(monkeypatch):
    """Cast rays once for the same source, and again after an edit of it."""
    calls = []
    cast = height_sources.cast_rays
    monkeypatch.setattr(height_sources, "cast_rays", lambda *a: calls.append(1) or cast(*a))
    spec = hill_spec()
    x, y = grid(9, 9)
    first = sample_heights(spec, x, y)
    np.testing.assert_array_equal(sample_heights(spec, x, y), first)
    assert len(calls) == 1
    spec.geom("hill").size[0] = 1.5
    assert sample_heights(spec, x, y).max() > first.max() - 0.8 and len(calls) == 2
    for path in height_sources._CACHE.folder.iterdir():
        path.write_bytes(path.read_bytes()[:100])
    np.testing.assert_array_equal(sample_heights(hill_spec(), x, y), first)
    assert len(calls) == 3


@pytest.mark.parametrize("resolution", [2, (2, 512), (300, 3)])
def test_flat_and_rectangular_fields_compile(resolution):
    """Compile two flat fields in one scene, with the bounds of resolution and thickness."""
    fields = {
        name: HeightFieldCfg.sample(
            np.full((3, 3), 0.25), (2.0, 1.0), resolution, base_thickness=thickness
        )
        for name, thickness in (("one", 0.01), ("two", 1.0))
    }
    model = Scene(SceneCfg(entities=fields)).compile()
    assert [model.hfield(i).name for i in range(2)] == [
        "one/terrain_hfield_0",
        "two/terrain_hfield_0",
    ]
    assert model.hfield_size[:, 3].tolist() == [0.01, 1.0]
    counts = resolution if isinstance(resolution, tuple) else (resolution, resolution)
    assert (model.hfield_ncol[0], model.hfield_nrow[0]) == counts
    assert ray_height(model, 0.3, 0.2) == pytest.approx(0.25, abs=1e-6)


def test_it_is_a_kind_of_terrain():
    """Generate a terrain of two sampled cells, and compare its heights and origins."""
    cell = HfSampledTerrainCfg(source=slope, resolution=41)
    generator = TerrainGeneratorCfg(size=SIZE, num_rows=2, num_cols=1, sub_terrains={"hill": cell})
    terrain = TerrainEntityCfg(terrain_type="generator", terrain_generator=generator)
    ball = PropCfg.primitive("sphere", size=0.1)
    scene = Scene(SceneCfg(num_envs=2, terrain=terrain, entities={"ball": ball}))
    model = scene.compile()
    for middle in (-SIZE[0] / 2, SIZE[0] / 2):
        assert ray_height(model, middle + 1.5, 2.5) == pytest.approx(slope(1.5, 2.5), abs=0.01)
    assert scene.terrain.terrain_origins[0, 0, 2] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"resolution": 1}, "at least 2, got 1"),
        ({"resolution": (513, 4)}, "at most 512, got 513"),
        ({"resolution": 2.5}, "whole number"),
        ({"base_thickness": 0.005}, r"must be in \[0.01, 1.0\] m, got 0.005"),
        ({"base_thickness": 2.0}, r"must be in \[0.01, 1.0\] m, got 2.0"),
        ({"fill": float("nan")}, "The fill of a height field must be finite"),
    ],
)
def test_settings_have_bounds(arguments, message):
    """Refuse settings out of bounds when the configuration is made."""
    with pytest.raises(ValueError, match=message):
        HeightFieldCfg.sample(slope, SIZE, **arguments)


def test_bad_sources_are_one_sentence(tmp_path):
    """Refuse sources without heights."""
    (tmp_path / "broken.png").write_text("no image")
    (tmp_path / "heights.csv").write_text("1,2")
    for source, message in (
        (np.zeros(3), "at least two rows"),
        (np.full((3, 3), np.inf), "must not have infinite"),
        (lambda x, y: x / 0.0, "must be finite"),
        (lambda x, y: np.zeros(2), "must return an array of the shape"),
        (tmp_path / "broken.png", "cannot be read"),
        (tmp_path / "heights.csv", "use one of"),
    ):
        with pytest.raises(ValueError, match=message):
            HfSampledTerrainCfg(source=source).heights()
    with pytest.raises(FileNotFoundError, match="There is no file"):
        HfSampledTerrainCfg(source=tmp_path / "none.png").heights()


def test_a_robot_stands_on_it():
    """Let the quadruped stand on a slope that is sampled: its feet stay on the surface."""
    robot = get_quadruped_cfg()
    field = HeightFieldCfg.sample(lambda x, y: 0.08 * np.sin(3.0 * x) + 0.1 * y, (4.0, 4.0), 128)
    model = Scene(SceneCfg(entities={"robot": robot, "ground": field})).compile()
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    data.qpos[2] += 0.1
    while data.time < 1.5:
        mujoco.mj_step(model, data)
    base = model.jnt_bodyid[model.joint("robot/floating_base_joint").id]
    assert data.xmat[base, 8] > 0.9  # it is upright
    ground = model.geom("ground/terrain").id
    depths = [c.dist for c in data.contact[: data.ncon] if ground in (c.geom1, c.geom2)]
    assert len(depths) >= 3 and min(depths) > -0.01
