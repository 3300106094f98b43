"""The renderer that any thread may drop."""

from __future__ import annotations

import gc
import threading

import mujoco
import pytest

from manyworlds.utils.renderer import Renderer

pytestmark = pytest.mark.usefixtures("gl")

BALL = "<mujoco><worldbody><light pos='0 0 3'/><geom size='.5'/></worldbody></mujoco>"


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
