"""The renderer that any thread may drop."""

from __future__ import annotations

import gc
import threading

import mujoco
import pytest

from manyworlds.utils.renderer import Renderer

pytestmark = pytest.mark.usefixtures("gl")

BALL = "<mujoco><worldbody><light pos='0 0 3'/><geom size='.5'/></worldbody></mujoco>"


@pytest.mark.slow
def test_another_thread_may_drop_it():
    """Draw here, let the last reference go in another thread, and hear no complaint."""
    model = mujoco.MjModel.from_xml_string(BALL)
    renderers = [Renderer(model, 16, 24) for _ in range(2)]
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    for renderer in renderers:
        renderer.update_scene(data)
        assert renderer.render().shape == (16, 24, 3)
    del renderer

    def drop() -> None:
        renderers.clear()
        gc.collect()

    thread = threading.Thread(target=drop)
    thread.start()
    thread.join()
    # An error in `__del__` would fail this test: pytest turns it into one.
    gc.collect()


def test_it_draws_larger_than_the_model_says():
    """Draw an image larger than the offscreen buffer that the model announces."""
    model = mujoco.MjModel.from_xml_string(BALL)
    width = model.vis.global_.offwidth + 10
    with Renderer(model, 20, width) as renderer:
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        renderer.update_scene(data)
        assert renderer.render().shape == (20, width, 3)
        assert renderer.render().any()


@pytest.mark.parametrize("size", [1, 20, 1000])
def test_cameras_see_what_is_near_in_large_models(size):
    """See a ball 1 m away on floors of any size; MuJoCo's own renderer loses it on large ones."""
    xml = f"""
    <mujoco><worldbody><light pos="0 0 3" castshadow="false"/>
      <geom type="box" size="{size} {size} .1" pos="0 0 -.1" rgba="0 1 0 1"/>
      <geom size=".3" pos="0 0 .3" rgba="1 0 0 1"/>
      <camera name="side" pos="0 -1.3 .3" xyaxes="1 0 0 0 0 1"/>
    </worldbody></mujoco>"""
    red = []
    for make in (Renderer, mujoco.Renderer):
        model = mujoco.MjModel.from_xml_string(xml)
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        with make(model, 40, 40) as renderer:
            renderer.update_scene(data, "side")
            middle = renderer.render()[20, 20].astype(int)
        red.append(middle[0] > 2 * middle[1])
    assert red == [True, size < 1000]


def test_a_near_plane_of_the_model_stays():
    """Keep what the model says of its cameras."""
    visual = "<visual><map znear='.2'/></visual>"
    model = mujoco.MjModel.from_xml_string(f"<mujoco>{visual}<statistic extent='9'/></mujoco>")
    with Renderer(model, 8, 8):
        assert model.vis.map.znear == pytest.approx(0.2)
