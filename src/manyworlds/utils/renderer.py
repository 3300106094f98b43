"""MuJoCo's renderer on an available OpenGL backend, safe to delete in any thread."""

from __future__ import annotations

import mujoco
import numpy as np

from manyworlds.utils.drawing import draw_for_robots
from manyworlds.utils.gl import gl_backend, use_working_gl


class Renderer(mujoco.Renderer):
    """Renders images of any size, without a limit by the model's offscreen buffer.

    MuJoCo's renderer leaves its OpenGL context current in the last rendering thread, and EGL then
    lets no other thread free it: the garbage collector, which may run in any thread, prints an
    error. This renderer holds a context only while it renders.

    Args:
        model: the model; its offscreen buffer grows to the image size, and its near clipping
            distance is reduced (`draw_for_robots`).
        height: image height [pixel].
        width: image width [pixel].

    Raises:
        RuntimeError: OpenGL is not available; the message has the packages to install.
    """

    def __init__(self, model: mujoco.MjModel, height: int, width: int) -> None:
        # `close`, which `__del__` calls, needs these even if construction failed.
        self._gl_context = None
        self._mjr_context = None
        use_working_gl()
        visual = model.vis.global_
        visual.offwidth = max(visual.offwidth, width)
        visual.offheight = max(visual.offheight, height)
        draw_for_robots(model)
        super().__init__(model, height, width)
        _leave_context()

    def render(self, *, out: np.ndarray | None = None) -> np.ndarray:
        """Render the updated scene: shape (height, width, 3), or (height, width) for depth."""
        try:
            return super().render(out=out)
        finally:
            _leave_context()


def _leave_context() -> None:
    """Release the current EGL context, if any, for other threads."""
    if gl_backend() != "egl":
        return
    from OpenGL import EGL

    display = EGL.eglGetCurrentDisplay()
    if display:
        EGL.eglMakeCurrent(display, EGL.EGL_NO_SURFACE, EGL.EGL_NO_SURFACE, EGL.EGL_NO_CONTEXT)
