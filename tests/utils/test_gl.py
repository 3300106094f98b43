"""Finding an OpenGL that works."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from manyworlds.utils import gl

_ASK = "from manyworlds.viewer import gl_available; print(gl_available())"


def _ask(**environment: str) -> list[str]:
    env = {k: v for k, v in os.environ.items() if k != "MUJOCO_GL"}
    result = subprocess.run(
        [sys.executable, "-c", _ASK], env=env | environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def test_bogus_backend():
    """Say in one line what is wrong with a bogus MUJOCO_GL."""
    (line,) = _ask(MUJOCO_GL="bogus")
    assert "MUJOCO_GL='bogus'" in line
    assert "unset MUJOCO_GL" in line


def test_disabled_backend():
    """Say in one line that rendering was switched off."""
    (line,) = _ask(MUJOCO_GL="disabled")
    assert "MUJOCO_GL='disabled'" in line


def test_answer_is_remembered(monkeypatch):
    """Try a backend only once for one setting of the environment."""
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


@pytest.fixture
def machine(monkeypatch):
    """Let only some backends draw, on Linux without a display."""

    def only(*working: str) -> None:
        monkeypatch.setattr(sys, "platform", "linux")
        monkeypatch.setattr(gl, "_probe", lambda backend: None if backend in working else "broken")
        monkeypatch.delenv("DISPLAY", raising=False)
        monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
        gl._choose.cache_clear()

    yield only
    gl._choose.cache_clear()


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("off", "'off' (which turns OpenGL off): "),
        ("Disabled", "'disabled' (which turns OpenGL off): "),
        ("vulkan", "'vulkan' (which is none of glfw, glx, egl, osmesa and off): "),
        ("cgl", "'cgl' (which is none of glfw, glx, egl, osmesa and off): "),
        ("glfw", "'glfw' (glfw: broken): "),
        ("osmesa", "'osmesa' (osmesa: broken): "),
    ],
)
def test_the_remedy_is_what_works(machine, monkeypatch, value, reason):
    """Name the backend that draws on this machine, or what to install where none does."""
    monkeypatch.setenv("MUJOCO_GL", value)
    machine("egl")
    expected = f"Cannot render images with MUJOCO_GL={reason}unset MUJOCO_GL, or set MUJOCO_GL=egl."
    assert gl.gl_available() == expected
    assert gl.gl_backend() is None
    machine()
    text = gl.gl_available()
    assert text is not None and text.endswith(f": {gl.gl_remedy()}, and unset MUJOCO_GL.")


def test_a_backend_that_works_is_taken(machine, monkeypatch):
    """Take the one that is asked for, or the first that draws."""
    machine("egl", "osmesa", "glx")
    for value, backend in (("", "egl"), ("osmesa", "osmesa"), ("glx", "glx")):
        monkeypatch.setenv("MUJOCO_GL", value)
        assert gl.gl_available() is None and gl.gl_backend() == backend


@pytest.mark.slow
@pytest.mark.parametrize("command", ["validate a.xml", "play Reach", "terrain"])
def test_mujoco_that_cannot_be_imported(command):
    """Say in one line which variable keeps MuJoCo from its import."""
    environment = {**os.environ, "MUJOCO_GL": "no-backend"}
    program = [sys.executable, "-m", "manyworlds.cli.main", *command.split()]
    done = subprocess.run(program, env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    assert "error: Cannot import MuJoCo with MUJOCO_GL='no-backend' (which" in done.stderr
    assert "unset MUJOCO_GL" in done.stderr
