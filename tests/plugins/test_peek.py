"""MuJoCo's window on a publisher: its logic on a handle that opens none, and under Xvfb."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import threading

import glfw
import mujoco
import numpy as np
import pytest

from manyworlds.cli.main import main
from manyworlds.lab import LabCfg, LiveLab, World, world_from_spec
from manyworlds.plugins.peek import PeekWindow
from manyworlds.plugins.urlab.fast_path import FastPathReader, PublisherError
from manyworlds.plugins.urlab.fast_path.reader import PublishedScene
from manyworlds.plugins.urlab.fast_path.registry import find_publishers
from tests.lab.server.waiting import WAIT_S, until
from tests.plugins.urlab.publishers import fast_path_of, hub, lab, reader, registry, shared

__all__ = ["hub", "lab", "reader", "registry", "shared"]
TOY = """<mujoco model="toy"><worldbody><geom type="plane" size="1 1 1"/>
    <body name="ball" pos="0 0 1"><freejoint/><geom name="ball" size=".1"/></body>
    <body name="post" mocap="true" pos="1 0 1"><geom size=".05" contype="0"/></body>{more}
    </worldbody></mujoco>"""


class Handle:
    """Stand-in for the handle of `mujoco.viewer.launch_passive`, without a window."""

    def __init__(self, model, data, **_) -> None:
        self.model, self.data = model, data
        self.perturb = mujoco.MjvPerturb()
        self.open, self.texts, self.syncs = True, (0, 0, "", ""), 0

    lock = contextlib.nullcontext

    def is_running(self) -> bool:
        return self.open

    def set_texts(self, texts) -> None:
        self.texts = texts

    def sync(self) -> None:
        self.syncs += 1

    def close(self) -> None:
        self.open = False


def toy(more: str = "") -> World:
    """Build a ball and a mocap body."""
    return world_from_spec(mujoco.MjSpec.from_string(TOY.format(more=more)))


def open_window(reader):
    """Open a window that is none, and the sentences that it tells."""
    told: list[str] = []
    return PeekWindow(reader, told.append, Handle), told


def tick_until(window, condition, what: str):
    """Draw until a condition holds."""

    def attempt():
        window.tick()
        return condition()

    until(attempt, what)


def test_the_window_shows_the_world(lab, reader):
    """Step and draw: bodies, and what is computed from them, are where the lab has them."""
    window, told = open_window(reader)
    snapshot = lab.step(20)
    tick_until(window, lambda: window.data.time == snapshot.time, "nothing is drawn")
    twin = mujoco.MjData(lab.model)
    twin.qpos[:] = snapshot.qpos
    mujoco.mj_kinematics(lab.model, twin)
    assert np.array_equal(window.data.geom_xpos, twin.geom_xpos)
    handle = window._handle
    assert handle.syncs and "go, go2, box" in handle.texts[3] and not told
    handle.open = False
    assert not window.is_open


def test_mocap_bodies_are_shown(hub, reader):
    """Move a mocap body, which is in no position of the world: it is drawn where it is."""
    with LiveLab(toy(), LabCfg(mode="direct")) as lab:
        hub.attach(lab)
        window, _ = open_window(reader)
        lab.call("set_mocap_pose", body="post", pos=[0.3, 0.4, 0.5])
        tick_until(
            window,
            lambda: np.allclose(window.data.xpos[2], [0.3, 0.4, 0.5]),
            "the post does not move",
        )
        hub.attach(None)


def test_a_drag_pushes_back(lab, reader):
    """Drag in the window: MuJoCo's spring acts in the lab, and ends with the drag."""
    window, _ = open_window(reader)
    pert, body = window._handle.perturb, lab.model.body("box/box").id
    pert.select, pert.active = body, int(mujoco.mjtPertBit.mjPERT_TRANSLATE)
    pert.localpos[:], pert.refselpos[:] = [0.0, 0.0, 0.1], [1.5, 0.0, 0.8]
    window.tick()
    force = lab.step().xfrc_applied[body]
    assert force[0] > 0.0 and force[2] > 0.0 and lab.perturbation.body == body
    pert.active = 0
    window.tick()
    assert not lab.step().xfrc_applied.any()
    pert.active, pert.refquat[:] = int(mujoco.mjtPertBit.mjPERT_ROTATE), [0.0, 1.0, 0.0, 0.0]
    window.tick()
    assert np.abs(lab.step().xfrc_applied[body, 3:]).max() > 0.0
    pert.active = 0
    window.tick()


def test_the_window_follows_the_model(hub, reader):
    """Change a size: the window stays. Rebuild with a further body: it opens again."""
    with LiveLab(toy(), LabCfg(mode="direct")) as lab:
        hub.attach(lab)
        window, _ = open_window(reader)
        first = window._handle
        lab.post(lambda model, data: model.geom_size.__setitem__((1, 0), 0.2)).result(WAIT_S)
        tick_until(window, lambda: window.model.geom_size[1, 0] == 0.2, "the size is the old one")
        assert window._handle is first and first.open
        lab.rebuild(toy('<body name="new" pos="0 0 3"><freejoint/><geom size=".1"/></body>'))
        tick_until(window, lambda: window.model.nbody == 4, "the new body is not shown")
        assert window._handle is not first and not first.open
        tick_until(window, lambda: window.data.xpos[3, 2] == 3.0, "it is not drawn")
        hub.attach(None)


class OldPublisher:
    """Owner of the first revision: forces only, poses of bodies only, no ids of models."""

    def __init__(self, reply=None) -> None:
        model = mujoco.MjModel.from_xml_string(TOY.format(more=""))
        self.scene = PublishedScene("old", model, "", "")
        self.address, self.there, self.requests = "tcp://127.0.0.1:1", True, []

    def hello(self):
        return self.scene

    def read(self, newest) -> bool:
        if not self.there:
            return False
        newest.geoms = {"f": 1, "bxpos": [0, 0, 0, 0, 0, 2, 1, 0, 1], "bxquat": [1, 0, 0, 0] * 3}
        return True

    def is_there(self) -> bool:
        return self.there

    def request(self, op, **fields):
        self.requests.append(fields)
        return {"error": "bad perturb"} if "select" in fields else {"ok": True}


def test_owners_of_the_first_revision():
    """Show poses of bodies alone, and push by forces where drags are not known."""
    publisher = OldPublisher()
    window, _ = open_window(publisher)
    window.tick()
    assert window.data.geom("ball").xpos.tolist() == [0.0, 0.0, 2.0]
    pert = window._handle.perturb
    scene = mujoco.MjvScene(window.model, 10)
    camera, option = mujoco.MjvCamera(), mujoco.MjvOption()
    mujoco.mjv_updateScene(window.model, window.data, option, None, camera, 1, scene)
    pert.select = 1
    mujoco.mjv_initPerturb(window.model, window.data, scene, pert)
    pert.active, pert.refselpos[:] = 1, [0.0, 0.0, 3.0]
    window.tick()
    drag, force = publisher.requests
    assert drag["select"] == 1 and force["body"] == 1 and force["force"][2] > 0.0
    window.tick()
    assert (
        "force" in publisher.requests[-1] and len(publisher.requests) == 3
    )  # drags are not tried again


def test_owners_that_end_and_come_back():
    """End the publisher: the window says so once, stays, and goes on with what comes back."""
    publisher, now = OldPublisher(), [0.0]
    told: list[str] = []
    window = PeekWindow(publisher, told.append, Handle, clock=lambda: now[0])
    publisher.there = False
    for _ in range(5):
        now[0] += 1.1
        window.tick()
    assert told == ["The publisher at tcp://127.0.0.1:1 does not answer."]
    assert told[0] in window._handle.texts[3]
    model = mujoco.MjModel.from_xml_string(TOY.format(more="<body><geom size='.1'/></body>"))
    publisher.there, publisher.scene = True, PublishedScene("new", model, "x", "")
    publisher.read = lambda newest: False
    now[0] += 1.1
    window.tick()
    assert window.model.nbody == 4 and "does not answer" not in window._handle.texts[3]


def test_worlds_that_cannot_be_pushed():
    """Drag a world that is only shown: no request is sent, and the window says why."""
    publisher = OldPublisher()
    publisher.scene = PublishedScene("old", publisher.scene.model, "", "It is only shown.")
    window, told = open_window(publisher)
    window._handle.perturb.select = window._handle.perturb.active = 1
    window.tick()
    assert publisher.requests == [] and told == ["It is only shown."]
    assert "It is only shown." in window._handle.texts[3]


def test_what_is_wrong_is_one_sentence(registry, monkeypatch, capsys):
    """Peek without a publisher, without a display, and at a silent port."""
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert main(["peek"]) == 1
    assert "No world is served on this machine" in capsys.readouterr().err
    monkeypatch.setattr(FastPathReader, "is_there", lambda self, raise_error: True)
    if sys.platform == "linux":
        assert main(["peek", "1"]) == 1
        told = "A world is served at 127.0.0.1:1, but there is no display for MuJoCo's window"
        assert told in capsys.readouterr().err
    monkeypatch.setenv("DISPLAY", ":77")
    assert main(["peek", "1"]) == 1
    assert "but MuJoCo's window cannot use the display ':77'" in capsys.readouterr().err
    monkeypatch.undo()
    assert main(["peek", "box:x"]) == 1
    assert "must be HOST, HOST:PORT or PORT" in capsys.readouterr().err
    with pytest.raises(PublisherError, match="No publisher answers at tcp://127.0.0.1:1 within"):
        PeekWindow(FastPathReader("tcp://127.0.0.1:1", timeout=0.1), print, Handle)


SCRIPT = """
import sys, time, threading
import mujoco, mujoco.viewer
from manyworlds.plugins.urlab.fast_path.reader import FastPathReader
from manyworlds.plugins.peek import PeekWindow
window = PeekWindow(FastPathReader(sys.argv[1]), print)
end = time.monotonic() + 60
def wait(condition):
    while not condition():
        assert window.is_open and time.monotonic() < end
        window.tick()
        time.sleep(0.01)
wait(lambda: window.data.time > 0)
assert window._handle.viewport.width > 0
print("shown", flush=True)
with window._handle.lock():
    pert = window._handle.perturb
    pert.select, pert.active, pert.refselpos[:] = 1, 1, (0.0, 0.0, 5.0)
wait(lambda: window.data.qvel[2] > 0.5)
print("pushed", flush=True)
wait(lambda: window.model.nbody == 4)
for _ in range(10):
    window.tick()
    time.sleep(0.02)
assert window.is_open
print("followed", flush=True)
window.close()
"""


@pytest.mark.skipif(shutil.which("Xvfb") is None, reason="Xvfb is not installed")
def test_the_real_window(hub, tmp_path):
    """Open MuJoCo's window under Xvfb: it shows, pushes back, and follows a rebuild."""
    reader, writer = os.pipe()
    screen = subprocess.Popen(
        ["Xvfb", "-displayfd", str(writer), "-screen", "0", "640x480x24"],
        pass_fds=[writer],
        stderr=subprocess.DEVNULL,
    )
    os.close(writer)
    try:
        with os.fdopen(reader) as numbers:
            display = f":{numbers.readline().strip()}"
        with LiveLab(toy(), LabCfg(mode="live")) as lab:
            hub.attach(lab)
            address = f"tcp://127.0.0.1:{hub.ports['fast_path']}"
            environment = {
                **os.environ,
                "DISPLAY": display,
                "PYTHONPATH": os.pathsep.join(sys.path),
            }
            environment.pop("MUJOCO_GL", None)
            program = subprocess.Popen(
                [sys.executable, "-c", SCRIPT, address],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            killer = threading.Timer(60.0, program.kill)
            killer.start()
            lines = []
            for line in program.stdout:
                lines.append(line)
                if line == "pushed\n":
                    lab.rebuild(toy('<body name="new" pos="0 0 3"><geom size=".1"/></body>'))
            killer.cancel()
            assert program.wait() == 0 and lines == ["shown\n", "pushed\n", "followed\n"], lines
            hub.attach(None)
    finally:
        screen.terminate()
        screen.wait()


def test_the_command_opens_a_window(lab, hub, monkeypatch, capsys):
    """Run the command on the world that is found by itself, for a moment."""
    import mujoco.viewer

    monkeypatch.setenv("DISPLAY", ":77")
    monkeypatch.setattr(glfw, "init", lambda: True)
    monkeypatch.setattr(mujoco.viewer, "launch_passive", Handle)
    until(lambda: find_publishers(fast_path_of(hub)._registry.path.parent), "no publisher is found")
    assert main(["peek", "--seconds", "0.1"]) == 0
    assert "go, go2, box of 127.0.0.1:" in capsys.readouterr().out


def test_owner_without_a_world_is_a_sentence(hub, reader):
    """Peek at a lab that has no world now."""
    with pytest.raises(PublisherError, match="nothing to show: There is no world at present"):
        open_window(reader)
