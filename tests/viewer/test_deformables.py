"""Skins and flexes in the browser, compared with MuJoCo's scene."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

from manyworlds.viewer.browser.deformables import Deformables, SoftBodies
from tests.browser import free_port

pytest.importorskip("viser", reason="needs the extra 'lab'")

SKIN = """
<mujoco>
  <worldbody>
    <body name="a"><joint axis="0 1 0"/><geom size=".1"/>
      <body name="b" pos="1 0 0"><joint axis="0 1 0"/><geom size=".1"/></body></body>
  </worldbody>
  <deformable>
    <skin rgba="1 0 0 .5" inflate=".01" vertex="0 0 0 1 0 0 1 1 0 2 1 0" face="0 1 2 1 3 2">
      <bone body="a" bindpos="0 0 0" bindquat="1 0 0 0" vertid="0 1 2" vertweight="1 .5 .5"/>
      <bone body="b" bindpos="1 0 0" bindquat="1 0 0 0" vertid="1 2 3" vertweight=".5 .5 1"/>
    </skin>
  </deformable>
</mujoco>
"""
FLEXES = """
<mujoco>
  <asset>
    <texture name="two" type="2d" builtin="checker" rgb1="1 0 0" rgb2="0 0 1" width="32"
      height="32"/>
    <material name="two" texture="two"/>
  </asset>
  <worldbody>
    <flexcomp name="rope" type="grid" dim="1" count="5 1 1" spacing=".1 .1 .1" radius=".02"/>
    <flexcomp name="cloth" type="grid" dim="2" count="7 5 1" spacing=".1 .1 .1" pos="0 1 1"
      radius=".01" material="two"><pin id="0"/></flexcomp>
    <flexcomp name="jelly" type="grid" dim="3" count="4 4 4" spacing=".1 .1 .1" pos="0 2 1"
      radius=".01" dof="trilinear" mass="1"/>
  </worldbody>
</mujoco>
"""


def dm_control(path: str) -> mujoco.MjModel:
    """Load a model of dm_control."""
    package = pytest.importorskip("dm_control", reason="needs dm_control, of the extra 'dev'")
    return mujoco.MjModel.from_xml_path(str(Path(package.__file__).parent / path))


def mujoco_warp(name: str) -> mujoco.MjModel:
    """Load a model of MuJoCo Warp's tests."""
    package = pytest.importorskip("mujoco_warp", reason="needs the extra 'gpu'")
    folder = Path(package.__file__).parent / "test_data" / "flex"
    return mujoco.MjModel.from_xml_path(str(folder / f"{name}.xml"))


MODELS = {
    "skin": lambda: mujoco.MjModel.from_xml_string(SKIN),
    "flexes": lambda: mujoco.MjModel.from_xml_string(FLEXES),
    "dog": lambda: dm_control("suite/dog.xml"),
    "rodent": lambda: dm_control("locomotion/walkers/assets/rodent.xml"),
    "floppy": lambda: mujoco_warp("floppy"),
    "rope": lambda: mujoco_warp("rope"),
}


def moved(model: mujoco.MjModel) -> mujoco.MjData:
    """Return data of a state that is far from the initial one."""
    data = mujoco.MjData(model)
    random = np.random.default_rng(0)
    data.qvel[:] = random.normal(size=model.nv)
    mujoco.mj_integratePos(model, data.qpos, data.qvel, 0.05)
    mujoco.mj_forward(model, data)
    return data


@pytest.mark.parametrize("name", MODELS)
def test_vertices_are_those_of_mujoco(name):
    """Compute all vertices of skins and of surfaces of flexes, from poses of bodies alone."""
    model = MODELS[name]()
    data = moved(model)
    bodies = SoftBodies(model)
    bodies.compute(data.xpos, data.xquat)
    scene, option = mujoco.MjvScene(model, 2000), mujoco.MjvOption()
    option.flags[mujoco.mjtVisFlag.mjVIS_FLEXSKIN] = 1
    everything = int(mujoco.mjtCatBit.mjCAT_ALL)
    mujoco.mjv_updateScene(model, data, option, None, mujoco.MjvCamera(), everything, scene)
    assert np.array_equal(bodies.points, data.flexvert_xpos)
    skin, flex = scene.skinvert.reshape(-1, 3), scene.flexface.reshape(-1, 3, 3)
    drawn = [0, 0]
    for piece in bodies.pieces:
        at = (bodies.skin if piece.skin else bodies.flex)[piece.vertices][piece.faces]
        drawn[piece.skin] += len(at)
        if piece.skin:
            assert np.array_equal(at, skin[piece.vertices][piece.faces])
        else:  # MuJoCo lists the corners of triangles
            assert {one.tobytes() for one in at} <= {one.tobytes() for one in flex}
    assert drawn == [scene.flexfaceused.sum(), model.nskinface]
    assert len(bodies.cables) == (model.flex_dim == 1).sum()


def test_a_texture_divides_triangles_by_color():
    """Draw the squares of a checkered cloth in their colors."""
    bodies = SoftBodies(mujoco.MjModel.from_xml_string(FLEXES))
    shades = {tuple(round(c) for c in piece.rgba[:3]) for piece in bodies.pieces}
    assert {(1, 0, 0), (0, 0, 1)} <= shades


def test_the_body_under_the_mouse():
    """Find the body that moves what is under the mouse: the bone, or the vertex of a cloth."""
    model = mujoco.MjModel.from_xml_string(SKIN)
    data = moved(model)
    bodies = SoftBodies(model)
    bodies.compute(data.xpos, data.xquat)
    (piece,) = bodies.pieces
    assert piece.rgba == (1.0, 0.0, 0.0, 0.5)
    assert bodies.body_at(piece, bodies.skin[3]) == model.body("b").id
    assert bodies.body_at(piece, bodies.skin[0]) == model.body("a").id
    middle = bodies.skin[[1, 3, 2]].mean(axis=0).astype(float)
    distance, body = bodies.hit(middle + np.array([0, 0, 2]), np.array([0.0, 0, -1]))
    assert distance == pytest.approx(2.0, abs=1e-5) and body
    assert bodies.hit(middle + np.array([0, 9, 2]), np.array([0.0, 0, -1])) == (-1.0, 0)

    model = mujoco.MjModel.from_xml_string(FLEXES)
    bodies = SoftBodies(model)
    data = moved(model)
    bodies.compute(data.xpos, data.xquat)
    cloth = next(p for p in bodies.pieces if bodies.flex[p.vertices][:, 1].max() < 1.5)
    for vertex in piece.vertices[:3]:
        body = bodies.body_at(cloth, bodies.flex[cloth.vertices[vertex]])
        assert data.xpos[body] == pytest.approx(bodies.flex[cloth.vertices[vertex]], abs=0.02)


def test_each_world_has_its_own_skin():
    """Draw the skins of several worlds at their places, moved as their bodies are, or hide them."""
    import viser

    from manyworlds.utils.viewer_config import ViewerConfig
    from manyworlds.viewer.browser.world_grid import WorldGrid

    model = mujoco.MjModel.from_xml_string(SKIN)
    states = [moved(model), mujoco.MjData(model)]
    mujoco.mj_forward(model, states[1])
    server = viser.ViserServer("127.0.0.1", free_port(), verbose=False)
    try:
        grid = WorldGrid(server, model, ViewerConfig(), 2)
        assert grid.box[1, 0] >= 2.0 and grid.box[1, 1] >= 1.0  # the skin is larger than the geoms
        xpos = np.array([state.xpos for state in states])
        xquat = np.array([state.xquat for state in states])
        grid.update(xpos, xquat, np.zeros((2, 3)), 0)
        bodies = SoftBodies(model)
        handles = {tuple(handle.position): handle for handle in grid.deformables.handles}
        assert len(handles) == 2
        for world, place in enumerate(grid.places):
            bodies.compute(xpos[world], xquat[world])
            assert np.array_equal(handles[tuple(place)].vertices, bodies.skin)
        grid.show(False)
        assert not any(handle.visible for handle in handles.values())
    finally:
        server.stop()


def test_only_as_many_worlds_as_a_browser_can_receive():
    """Count the bytes: the dog's skin in a few worlds of many, the selected one among them."""
    import viser

    model = MODELS["dog"]()
    data = moved(model)
    server = viser.ViserServer("127.0.0.1", free_port(), verbose=False)
    try:
        soft = Deformables(server, "/soft", model, 100)
        assert 12 * model.nskinvert <= soft.bytes_per_world < 25 * model.nskinvert
        assert 1 < soft.num_drawn < 10
        assert soft.num_drawn * soft.bytes_per_world * 10 <= 20e6
        poses = np.repeat(data.xpos[None], 100, axis=0), np.repeat(data.xquat[None], 100, axis=0)
        offsets = np.arange(300.0).reshape(100, 3)
        soft.update(*poses, offsets, 50)
        assert len(soft.handles) == soft.num_drawn * len(soft.bodies.pieces)
        assert any(np.array_equal(handle.position, offsets[50]) for handle in soft.handles)
    finally:
        server.stop()
