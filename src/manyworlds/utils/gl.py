"""Choosing an OpenGL that can draw without a window.

Asking imports no MuJoCo: with a bad `MUJOCO_GL` even `import mujoco` fails, and a driver that
fails may take its process along. So each candidate is first tried in a process of its own.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys

_INSTALL = "apt-get install libegl1 libgl1 libgl1-mesa-dri"
_PROBE_SECONDS = 120
_PROBE = """
import mujoco
model = mujoco.MjModel.from_xml_string("<mujoco/>")
data = mujoco.MjData(model)
renderer = mujoco.Renderer(model, 8, 8)
renderer.update_scene(data)
assert renderer.render().shape == (8, 8, 3)
print("drawn", flush=True)
"""


def gl_available() -> str | None:
    """Say in one line why images cannot be rendered here, or None if they can.

    The first call for a setting of the environment tries to draw in another process, which takes
    a second or two; later calls remember.
    """
    return _choose(*_settings())[1]


def gl_backend() -> str | None:
    """Return the OpenGL that works here: 'egl', 'osmesa', '' for the window system, or None.

    The environment variable `MUJOCO_GL` decides if it is set. Without it, a Linux machine without
    a display tries EGL, then OSMesa.
    """
    return _choose(*_settings())[0]


def use_working_gl() -> None:
    """Give MuJoCo's renderer the OpenGL that works here.

    MuJoCo chooses when it is imported, long before anyone knows that images are wanted, and then
    takes the window system. Its renderer looks the context class up when it is made.

    Raises:
        RuntimeError: there is none; the message says what to install.
    """
    if (reason := gl_available()) is not None:
        raise RuntimeError(reason)
    from mujoco.rendering.classic import gl_context

    backend = gl_backend()
    if backend == "egl":
        from mujoco.egl import GLContext
    elif backend == "osmesa":
        from mujoco.osmesa import GLContext
    else:
        return
    gl_context.GLContext = GLContext


def _settings() -> tuple[str, bool]:
    """The `MUJOCO_GL` asked for and whether there is a display."""
    asked = os.environ.get("MUJOCO_GL", "").lower().strip()
    linux = sys.platform.startswith("linux")
    display = not linux or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    return asked, display


@functools.cache
def _choose(asked: str, display: bool) -> tuple[str | None, str | None]:
    """Try the candidates in turn; return what works, or None and one line that says why."""
    if asked:
        candidates = [asked]
    elif sys.platform.startswith("linux"):
        candidates = ["", "egl", "osmesa"] if display else ["egl", "osmesa"]
    else:
        candidates = [""]
    failures = []
    for backend in candidates:
        reason = _probe(backend)
        if reason is None:
            return backend, None
        failures.append(f"{backend or 'window system'}: {reason}")
    where = f"with MUJOCO_GL='{asked}' " if asked else ""
    remedy = f"install OpenGL ({_INSTALL} on Debian)"
    if asked:
        remedy += ", or unset MUJOCO_GL"
    return None, f"Cannot render images {where}({'; '.join(failures)}): {remedy}."


def _probe(backend: str) -> str | None:
    """Draw in another process; return the last line of its error, or None if it drew."""
    environment = {**os.environ, "MUJOCO_GL": backend}
    try:
        result = subprocess.run(
            [sys.executable, "-c", _PROBE],
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROBE_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {_PROBE_SECONDS} s"
    except OSError as error:
        return f"cannot start Python: {error}"
    if "drawn" in result.stdout:
        # Drivers may crash while a process ends; what counts is that it drew.
        return None
    lines = result.stderr.strip().splitlines()
    return lines[-1].strip()[:200] if lines else f"exit status {result.returncode}"
