"""Worlds whose objects have different shapes, as viewers see them."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from manyworlds.entity import VariantEntityCfg
from manyworlds.scene import Scene, SceneCfg
from manyworlds.sim import Simulation
from manyworlds.utils.viewer_config import ViewerConfig
from manyworlds.viewer.browser.per_world_appearance import PerWorldAppearance
from manyworlds.viewer.browser.server import new_server, stop_server
from manyworlds.viewer.browser.shapes import convex_hull
from manyworlds.viewer.model_sync import VIEWER_MODEL_FIELDS, sync_model_fields
from manyworlds.viewer.offscreen_renderer import OffscreenRenderer
from manyworlds.viewer.viser.overlays import SelectedWorldOverlays
from manyworlds.viewer.world_mirror import WorldMirror
from tests.browser import free_port

pytestmark = pytest.mark.usefixtures("engine")

# MuJoCo Warp holds the types of geoms once for all worlds.
only_native = pytest.mark.parametrize("engine", ["native"], indirect=True)


def primitive(kind: mujoco.mjtGeom, size: tuple[float, float, float]):
    """Make a function that makes an object of one shape."""

    def make() -> mujoco.MjSpec:
        spec = mujoco.MjSpec()
        body = spec.worldbody.add_body(name="object")
        body.add_freejoint(name="free")
        body.add_geom(name="shape", type=kind, size=size)
        return spec

    return make


def make_sim() -> Simulation:
    """Six worlds: two with a box, two with a capsule, two with nothing."""
    cfg = VariantEntityCfg(
        variants={
            "box": primitive(mujoco.mjtGeom.mjGEOM_BOX, (0.2, 0.3, 0.1)),
            "capsule": primitive(mujoco.mjtGeom.mjGEOM_CAPSULE, (0.1, 0.2, 0.0)),
            "nothing": None,
        }
    )
    scene = Scene(SceneCfg(num_envs=6, entities={"object": cfg}))
    sim = Simulation(6, spec=scene.spec, variant_info=scene.collect_variant_info())
    scene.initialize(sim.mj_model, sim.model, sim.data)
    sim.forward()
    return sim


@only_native
def test_the_page_draws_each_world_its_own_shape():
    """Find a box where a box is, the pieces of a capsule where that is, and else nothing."""
    sim = make_sim()
    looks = PerWorldAppearance(sim.mj_model, sim.model, sim.expanded_fields)
    looks.read(slice(0, 6))
    poses = sim.data.xpos.numpy(), sim.data.xquat.numpy()
    seen = [
        (shape[0], instances.worlds.tolist())
        for shape, instances in looks.instances("geom", list(range(sim.mj_model.ngeom)), *poses)
    ]
    assert sorted(seen) == [
        ("box", [0, 1]),
        ("cylinder", [2, 3]),
        ("sphere", [2, 3]),
        ("sphere", [2, 3]),
    ]


@only_native
def test_pictures_have_each_worlds_shape():
    """Copy the fields that pictures depend on: type and size are those of the world."""
    sim = make_sim()
    model = sim.mj_model.__copy__()
    fields = VIEWER_MODEL_FIELDS & sim.expanded_fields
    expected = {0: mujoco.mjtGeom.mjGEOM_BOX, 3: mujoco.mjtGeom.mjGEOM_CAPSULE}
    for world, kind in expected.items():
        sync_model_fields(model, sim.model, fields, world)
        assert model.geom_type[0] == int(kind)
    assert np.allclose(model.geom_size[0, :2], (0.1, 0.2))
    sync_model_fields(model, sim.model, fields, 5)
    assert model.geom_rgba[0, 3] == 0.0


def test_the_page_draws_each_variants_own_hull():
    """Show convex hulls: of the mesh that the selected world has, in a group that is not drawn."""

    def points(count: int):
        def make() -> mujoco.MjSpec:
            spec = mujoco.MjSpec()
            body = spec.worldbody.add_body(name="object", pos=[0, 0, 1])
            body.add_freejoint()
            cloud = np.random.default_rng(count).normal(size=(count, 3))
            spec.add_mesh(name="cloud", uservert=cloud.ravel())
            body.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="cloud", group=3)
            return spec

        return make

    cfg = VariantEntityCfg(variants={"few": points(5), "many": points(30), "nothing": None})
    scene = Scene(SceneCfg(num_envs=3, entities={"object": cfg}))
    sim = Simulation(3, spec=scene.spec, variant_info=scene.collect_variant_info())
    scene.initialize(sim.mj_model, sim.model, sim.data)
    sim.forward()
    server = new_server("127.0.0.1", free_port())
    try:
        overlays = SelectedWorldOverlays(server, sim.mj_model, sim.model, sim.expanded_fields)
        overlays.on.add("convex_hulls")
        for world, mesh in ((0, 0), (1, 1), (2, None), (0, 0)):
            overlays.show(sim.data, world, np.array([1.0, 2.0, 0.0]))
            shown = [h for h in overlays.shapes.wireframes.handles.values() if h.visible]
            assert len(shown) == (mesh is not None)
            if mesh is not None:
                _, faces = convex_hull(sim.mj_model, mesh)
                assert len(shown[0].points) == 3 * len(faces) / 2  # each edge has two faces
                place = sim.data.geom_xpos[world, 0].numpy()
                np.testing.assert_allclose(shown[0].position, place, atol=1e-6)
        np.testing.assert_array_equal(overlays._frame.position, [1.0, 2.0, 0.0])
        for mesh, count in enumerate((5, 30)):
            vertices, faces = convex_hull(sim.mj_model, mesh)
            assert len(vertices) == count
            # As many faces as a hull of triangles has, and all vertices on or within it.
            assert len(faces) == 2 * len(np.unique(faces)) - 4
            corners = vertices[faces].astype(float)
            normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
            outside = ((vertices[None] - corners[:, :1]) * normals[:, None]).sum(axis=2)
            assert outside.max() < 1e-5
        overlays.remove()
    finally:
        stop_server(server)


def mesh_sim() -> Simulation:
    """Three worlds: a flat red mesh, a tall green one, and none."""

    def mesh(size: tuple[float, float, float], rgba: tuple[float, float, float, float]):
        def make() -> mujoco.MjSpec:
            spec = mujoco.MjSpec()
            body = spec.worldbody.add_body(name="object", pos=[0, 0, 1])
            body.add_freejoint()
            corners = np.array(np.meshgrid(*[(-s, s) for s in size])).reshape(3, -1).T
            spec.add_mesh(name="block", uservert=corners.ravel())
            body.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="block", rgba=rgba)
            return spec

        return make

    found = {
        "flat": mesh((0.4, 0.4, 0.1), (1.0, 0.0, 0.0, 1.0)),
        "tall": mesh((0.1, 0.1, 0.4), (0.0, 1.0, 0.0, 1.0)),
        "nothing": None,
    }
    scene = Scene(SceneCfg(num_envs=3, entities={"object": VariantEntityCfg(variants=found)}))
    sim = Simulation(3, spec=scene.spec, variant_info=scene.collect_variant_info(), device="cpu")
    scene.initialize(sim.mj_model, sim.model, sim.data)
    sim.forward()
    return sim


def test_rendered_pictures_show_each_worlds_mesh(gl):
    """Draw pixels: wide and red, tall and green, or nothing; and a swap between pictures."""
    sim = mesh_sim()
    view = ViewerConfig(height=96, width=96, distance=3.0, elevation=0.0, lookat=(0.0, 0.0, 0.0))
    view.origin_type = ViewerConfig.OriginType.WORLD
    renderer = OffscreenRenderer(
        sim.mj_model, view, sim_model=sim.model, expanded_fields=sim.expanded_fields
    )

    def shape(world: int) -> tuple[int, bool, int]:
        renderer.update(sim.data, env_idx=world)
        image = renderer.render().astype(int)
        color = int(image[..., :2].sum(axis=(0, 1)).argmax())
        rows, columns = np.nonzero(image[..., color] > 30 + image[..., 1 - color])
        if not rows.size:
            return -1, False, 0
        return color, bool(np.ptp(columns) > 2 * np.ptp(rows)), rows.size

    try:
        assert shape(0)[:2] == (0, True)
        assert shape(1)[:2] == (1, False)
        assert shape(2) == (-1, False, 0)
        sim.assign_variants("object", [2], [0])
        assert shape(2) == shape(0)
    finally:
        renderer.close()


def test_the_window_shows_each_worlds_mesh():
    """Load worlds as MuJoCo's window does: another world, another mesh, color and size."""
    sim = mesh_sim()
    drawn = WorldMirror(sim.mj_model, sim.model, sim.expanded_fields)
    for world, mesh in ((0, "flat"), (1, "tall"), (2, None), (0, "flat")):
        drawn.load(sim.data, world)
        picture = mujoco.MjvScene(drawn.model, 10)
        everything = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(
            drawn.model,
            drawn.data,
            mujoco.MjvOption(),
            None,
            mujoco.MjvCamera(),
            everything,
            picture,
        )
        seen = [geom for geom in picture.geoms[: picture.ngeom] if geom.rgba[3] > 0]
        if mesh is None:
            assert not seen
            continue
        (geom,) = seen
        # MuJoCo counts a mesh and its hull.
        assert drawn.model.mesh(geom.dataid // 2).name == f"object/{mesh}/block"
        assert np.argmax(geom.rgba[:3]) == world
