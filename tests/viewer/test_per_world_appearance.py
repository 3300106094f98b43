"""Worlds that look different, in the browser."""

from types import SimpleNamespace

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.sim import RecomputeLevel, Simulation
from manyworlds.viewer.browser import geom_meshes, shapes
from manyworlds.viewer.browser.per_world_appearance import PerWorldAppearance

pytest.importorskip("viser", reason="needs the extra 'lab'")

MODEL = """
<mujoco>
  <asset>
    <mesh name="wedge" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/>
    <mesh name="brick" vertex="0 0 0  1 0 0  0 1 0  1 1 0  0 0 1  1 0 1  0 1 1  1 1 1"/>
    <material name="red" rgba="1 0 0 1"/>
  </asset>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 .1"/>
    <body name="a" pos="0 0 1">
      <freejoint/>
      <geom name="ball" type="sphere" size=".1"/>
      <geom name="box" type="box" size=".1 .2 .3" pos=".5 0 0" material="red"/>
      <geom name="rod" type="capsule" size=".05 .2" pos="0 .5 0"/>
      <geom name="mesh" type="mesh" mesh="wedge" rgba="0 0 1 1"/>
      <site name="tip" pos="0 0 .4" size=".02"/>
    </body>
  </worldbody>
</mujoco>
"""
FIELDS = ("geom_rgba", "geom_size", "geom_pos", "geom_dataid", "site_pos", "mat_rgba")


@pytest.fixture
def sim(engine):
    """Three worlds, alike at first, that may differ in how they look."""
    sim = Simulation(3, model=mujoco.MjModel.from_xml_string(MODEL), device="cpu")
    sim.expand_model_fields(FIELDS)
    sim.forward()
    return sim


@pytest.fixture
def looks(sim):
    """Fields that differ between these worlds."""
    looks = PerWorldAppearance(sim.mj_model, sim.model, sim.expanded_fields)
    looks.read(slice(0, 3))
    return looks


def _placed(sim, looks, kind="geom"):
    """All instances of varied elements, by shape."""
    count = getattr(sim.mj_model, f"n{kind}")
    poses = sim.data.xpos.numpy(), sim.data.xquat.numpy()
    return shapes.merge_instances(looks.instances(kind, list(range(count)), *poses))


def _geom(sim, name: str) -> int:
    return sim.mj_model.geom(name).id


@pytest.mark.slow_on_warp
def test_alike(sim, looks):
    """Find nothing that differs where nothing was changed."""
    assert not looks.varied["geom"].any()
    assert _placed(sim, looks) == {}
    assert not looks.read(slice(0, 3))


def test_color_and_size(sim, looks):
    """Draw each world's own color and size, and leave other geoms alone."""
    ball = _geom(sim, "ball")
    sim.model.geom_rgba[1, ball] = torch.tensor([0.0, 1.0, 0.0, 0.5])
    sim.model.geom_size[2, ball, 0] = 0.3
    assert looks.read(slice(0, 3))
    assert np.flatnonzero(looks.varied["geom"]).tolist() == [ball]
    ((shape, instances),) = _placed(sim, looks).items()
    assert shape == ("sphere",)
    np.testing.assert_allclose(instances.scales[:, 0], [0.1, 0.1, 0.3], rtol=1e-6)
    np.testing.assert_allclose(instances.rgba[1], [0, 1, 0, 0.5], atol=1e-6)
    np.testing.assert_allclose(instances.rgba[0], [0.5, 0.5, 0.5, 1], atol=1e-6)


def test_material(sim, looks):
    """Draw each world's own material on the geoms that have it."""
    sim.model.mat_rgba[2, 0] = torch.tensor([0.0, 0.0, 1.0, 1.0])
    looks.read(slice(0, 3))
    assert np.flatnonzero(looks.varied["geom"]).tolist() == [_geom(sim, "box")]
    (instances,) = _placed(sim, looks).values()
    np.testing.assert_allclose(instances.rgba[:, :3], [[1, 0, 0], [1, 0, 0], [0, 0, 1]])


def test_pose(sim, looks):
    """Draw geoms and sites where MuJoCo has them in each world."""
    sim.model.geom_pos[1, _geom(sim, "rod")] = torch.tensor([0.1, 0.2, 0.3])
    sim.model.site_pos[2, 0] = torch.tensor([0.0, 0.3, 0.0])
    sim.data.qpos[:, 3:7] = torch.tensor([0.6, 0.0, 0.8, 0.0])
    sim.recompute_constants(RecomputeLevel.set_const)
    sim.forward()
    looks.read(slice(0, 3))
    cylinder = _placed(sim, looks)[("cylinder",)]
    expected = sim.data.geom_xpos[:, _geom(sim, "rod")].numpy()
    np.testing.assert_allclose(cylinder.positions, expected, atol=1e-5)
    balls = _placed(sim, looks)[("sphere",)].positions
    axis = sim.data.geom_xmat[:, _geom(sim, "rod")].numpy().reshape(3, 3, 3)[:, :, 2]
    np.testing.assert_allclose(balls[:3], expected + 0.2 * axis, atol=1e-5)
    (sites,) = _placed(sim, looks, "site").values()
    np.testing.assert_allclose(sites.positions, sim.data.site_xpos[:, 0].numpy(), atol=1e-5)


def test_mesh(sim, looks):
    """Draw each world's own mesh, one shape a mesh, and none where the geom is absent."""
    rows = SimpleNamespace(**{name: getattr(sim.model, name).clone() for name in FIELDS})
    rows.geom_dataid[1, _geom(sim, "mesh")] = 1
    rows.geom_dataid[2, _geom(sim, "mesh")] = -1
    looks = PerWorldAppearance(sim.mj_model, rows, set(FIELDS))
    looks.read(slice(0, 3))
    placed = _placed(sim, looks)
    assert {shape: list(i.worlds) for shape, i in placed.items()} == {
        ("mesh", 0): [0],
        ("mesh", 1): [1],
    }


def test_stays_varied(sim, looks):
    """Keep drawing a geom by itself once it differed, so that nothing is built again and again."""
    ball = _geom(sim, "ball")
    default = sim.model.geom_rgba[1, ball].clone()
    sim.model.geom_rgba[1, ball] = 0.2
    looks.read(slice(0, 3))
    sim.model.geom_rgba[1, ball] = default
    assert looks.read(slice(0, 3))
    assert looks.varied["geom"][ball]


def test_simplified():
    """Merge vertices of a mesh until it has as few faces as asked for, near its surface."""
    trimesh = pytest.importorskip("trimesh")
    mesh = trimesh.creation.icosphere(subdivisions=5)
    mesh.visual.vertex_colors = np.tile([255, 0, 0, 255], (len(mesh.vertices), 1))
    rough = shapes.simplified(mesh, 500)
    assert 100 < len(rough.faces) <= 500
    assert np.abs(np.linalg.norm(rough.vertices, axis=1) - 1.0).max() < 0.1
    assert (rough.visual.vertex_colors == [255, 0, 0, 255]).all()
    assert shapes.simplified(mesh, 10**6) is mesh


@pytest.mark.parametrize("kind", ["sphere", "box", "cylinder", "capsule", "ellipsoid"])
def test_pieces_fill_the_geom(kind):
    """Take geoms apart into shapes that reach as far as MuJoCo's bounding box."""
    xml = f'<mujoco><worldbody><geom type="{kind}" size=".1 .2 .3"/></worldbody></mujoco>'
    model = mujoco.MjModel.from_xml_string(xml)
    size = geom_meshes.drawn_size(int(model.geom_type[0]), model.geom_size[:1])
    reach = np.zeros(3)
    for _, along, scale in shapes.pieces(int(model.geom_type[0]), -1, size):
        reach = np.maximum(reach, scale[0] + [0, 0, abs(along[0])])
    np.testing.assert_allclose(reach, model.geom_aabb[0, 3:])
