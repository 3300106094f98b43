"""MuJoCo's renderer with the OpenGL that works here, safe to drop in any thread."""

from __future__ import annotations

import mujoco
import numpy as np

from manyworlds.utils.drawing import draw_near_things
from manyworlds.utils.gl import gl_backend, use_working_gl


class Renderer(mujoco.Renderer):
    """Draws into images whose size the model need not have announced.

    MuJoCo's own leaves its OpenGL context current in the thread that drew last, and EGL lets no
    other thread free it then: the garbage collector, which runs in whatever thread it likes,
    prints an error. This one holds a context only while it draws.

    Args:
        model: what is drawn; its offscreen buffer grows to the size of the images, and the
            near plane of its cameras comes close (`draw_near_things`).
        height: of the images [pixel].
        width: of the images [pixel].

    Raises:
        RuntimeError: there is no OpenGL here that can draw; the message says what to install.
    """

    def __init__(self, model: mujoco.MjModel, height: int, width: int) -> None:
        # `close`, which `__del__` calls, asks for these even if nothing was made.
        self._gl_context = None
        self._mjr_context = None
        use_working_gl()
        visual = model.vis.global_
        visual.offwidth = max(visual.offwidth, width)
        visual.offheight = max(visual.offheight, height)
        draw_near_things(model)
        super().__init__(model, height, width)
        _leave_context()

    def render(self, *, out: np.ndarray | None = None) -> np.ndarray:
        """Draw what `update_scene` took over; as `mujoco.Renderer.render`."""
        try:
            return super().render(out=out)
        finally:
            _leave_context()


def _leave_context() -> None:
    """Let other threads have the EGL context that is current here, if there is one."""
    if gl_backend() != "egl":
        return
    from OpenGL import EGL

    if display := EGL.eglGetCurrentDisplay():
        EGL.eglMakeCurrent(display, EGL.EGL_NO_SURFACE, EGL.EGL_NO_SURFACE, EGL.EGL_NO_CONTEXT)
