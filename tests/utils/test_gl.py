"""Finding an OpenGL that works."""

import os
import subprocess
import sys

_ASK = "from manyworlds.viewer import gl_available; print(gl_available())"


def _ask(**environment: str) -> list[str]:
    env = {k: v for k, v in os.environ.items() if k != "MUJOCO_GL"}
    result = subprocess.run(
        [sys.executable, "-c", _ASK], env=env | environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def test_bogus_backend():
    """Say in one line what is wrong with a bogus MUJOCO_GL and what to install."""
    (line,) = _ask(MUJOCO_GL="bogus")
    assert "MUJOCO_GL='bogus'" in line
    assert "apt-get install libegl1 libgl1 libgl1-mesa-dri" in line
    assert "unset MUJOCO_GL" in line


def test_disabled_backend():
    """Say in one line that rendering was switched off."""
    (line,) = _ask(MUJOCO_GL="disabled")
    assert "MUJOCO_GL='disabled'" in line


def test_answer_is_remembered(monkeypatch):
    """Try a backend only once for one setting of the environment."""
    from manyworlds.utils import gl

    tried = []
    monkeypatch.setattr(gl, "_probe", lambda backend: tried.append(backend) or "no driver")
    monkeypatch.setenv("MUJOCO_GL", "")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    gl._choose.cache_clear()
    try:
        lines = {gl.gl_available(), gl.gl_available()}
        backend = gl.gl_backend()
    finally:
        gl._choose.cache_clear()
    assert tried == ["egl", "osmesa"]
    assert backend is None
    (line,) = lines
    assert "egl: no driver; osmesa: no driver" in line
