"""Selection of an OpenGL backend that can render without a window.

The probe does not import MuJoCo into this process: with an invalid `MUJOCO_GL`, even
`import mujoco` fails, and a faulty driver may crash. Each backend is tried in a separate process.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys

from manyworlds.utils.platforms import is_linux

_INSTALL = "apt-get install libegl1 libgl1 libgl1-mesa-dri"
_REMEDIES = {
    "darwin": "run the program in a session with a screen, not over ssh",
    "win32": "install the driver of the graphics card, or Mesa's opengl32.dll",
}
_OFF = ("disable", "disabled", "off", "false", "0")
"""Values of MUJOCO_GL with which MuJoCo draws nothing."""
_WINDOW = ("enable", "enabled", "on", "true", "1", "glfw")
_BACKENDS = {"linux": ("glx", "egl", "osmesa"), "win32": ("wgl",), "darwin": ("cgl",)}
"""Further values of MUJOCO_GL that MuJoCo takes, by operating system."""
_PROBE_SECONDS = 120
_TRIED = "MANYWORLDS_GL_TRIED"
"""Environment variable with the backend that another process has tried successfully."""
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
    """Return one line with the reason why images cannot be rendered, or None if they can.

    The first call for given environment variables renders in another process, which takes a second
    or two; later calls use the cached result.
    """
    return _choose(*_settings())[1]


def gl_backend() -> str | None:
    """Return the available OpenGL backend: 'egl', 'osmesa', '' for the window system, or None.

    The environment variable `MUJOCO_GL` takes precedence. Without it, a Linux machine without a
    display tries EGL, then OSMesa.
    """
    return _choose(*_settings())[0]


def gl_environment() -> dict[str, str]:
    """Return environment variables for another process, so that it need not try backends again."""
    backend = gl_backend()
    if backend is None:
        return {}
    return {"MUJOCO_GL": backend, _TRIED: backend}


def gl_remedy() -> str:
    """Return what makes rendering possible on this operating system."""
    return _REMEDIES.get(sys.platform, f"install OpenGL ({_INSTALL} on Debian)")


def gl_import_problem(error: BaseException) -> str | None:
    """Return a sentence if an error is that of importing MuJoCo with its OpenGL backend, or None.

    MuJoCo loads the backend that `MUJOCO_GL` names while it is imported.
    """
    frame = error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_globals.get("__name__") == "mujoco.rendering.classic.gl_context":
            asked = _settings()[0]
            os.environ.pop("PYOPENGL_PLATFORM", None)  # which MuJoCo has set, for all processes
            reason = _refusal(asked) or f"{type(error).__name__}: {error}"
            return f"Cannot import MuJoCo with MUJOCO_GL='{asked}' ({reason}): {_remedy()}."
        frame = frame.tb_next
    return None


def use_working_gl() -> None:
    """Make MuJoCo's renderer use an available OpenGL backend.

    MuJoCo selects a backend when it is imported, long before images are requested, and defaults to
    the window system. Its renderer looks up the context class at construction.

    Raises:
        RuntimeError: there is no backend; the message has the packages to install.
    """
    reason = gl_available()
    if reason is not None:
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
    """Return the value of `MUJOCO_GL` and whether there is a display."""
    asked = os.environ.get("MUJOCO_GL", "").lower().strip()
    linux = is_linux()
    display = not linux or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    return asked, display


@functools.cache
def _choose(asked: str, display: bool) -> tuple[str | None, str | None]:
    """Try the backends in turn; return the first that works, or None and the reason."""
    refusal = _refusal(asked)
    if refusal:
        return None, f"Cannot render images with MUJOCO_GL='{asked}' ({refusal}): {_remedy()}."
    if asked:
        candidates = [asked]
    elif is_linux():
        candidates = ["egl", "osmesa"]
        if display:
            candidates = ["", *candidates]
    else:
        candidates = [""]
    failures = []
    for backend in candidates:
        reason = _probe(backend)
        if reason is None:
            return backend, None
        failures.append(f"{backend or 'window system'}: {reason}")
    reasons = "; ".join(failures)
    if asked:
        return None, f"Cannot render images with MUJOCO_GL='{asked}' ({reasons}): {_remedy()}."
    return None, f"Cannot render images ({reasons}): {gl_remedy()}."


def _refusal(asked: str) -> str:
    """Return why a value of MUJOCO_GL cannot draw anywhere; empty for others."""
    if asked in _OFF:
        return "which turns OpenGL off"
    further = _BACKENDS.get(sys.platform, ())
    if asked and asked not in (*_WINDOW, *further):
        return f"which is none of {', '.join(('glfw', *further))} and off"
    return ""


def _remedy() -> str:
    """Return what to do about a value of MUJOCO_GL that cannot draw."""
    backend = _choose("", _settings()[1])[0]
    if backend is None:
        return f"{gl_remedy()}, and unset MUJOCO_GL"
    if not backend:
        return "unset MUJOCO_GL"
    return f"unset MUJOCO_GL, or set MUJOCO_GL={backend}"


def _probe(backend: str) -> str | None:
    """Render in another process; return the last line of its error, or None on success."""
    if os.environ.get(_TRIED) == backend:
        return None
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
        # Drivers may crash at process exit; success is having rendered.
        return None
    lines = result.stderr.strip().splitlines()
    if not lines:
        return f"exit status {result.returncode}"
    return lines[-1].strip()[:200]
