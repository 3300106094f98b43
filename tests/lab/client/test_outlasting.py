"""Sessions outlast what changes the world: reloads, broken files, edits, undo."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import zmq

from manyworlds.lab import LabCfg, LiveLab, world_from_file
from manyworlds.lab.client import UnknownNameError, connect
from manyworlds.lab.server import HubProcess, LabServerCfg
from tests.lab.conftest import ARM
from tests.lab.server.test_hub import client_of
from tests.lab.server.waiting import ANY
from tests.waiting import PATIENCE_S

BAD = "<mujoco><worldbody><body><joint/></body></worldbody></mujoco>"


@pytest.fixture
def served(tmp_path):
    """A lab of a file, which can be opened again, and its server in a process of its own."""
    path = tmp_path / "arm.xml"
    path.write_text(ARM)

    def open_lab() -> LiveLab:
        return LiveLab(world_from_file(path), LabCfg(mode="direct"))

    with HubProcess(LabServerCfg(**ANY)) as hub, open_lab() as lab:
        lab.source = open_lab
        hub.attach(lab)
        yield lab, hub, path
        hub.attach(None)


def test_sessions_outlast_reloads_and_edits(served):
    """Reload, break and mend the file, edit, undo: one driver and one old observer go on."""
    lab, hub, path = served
    with (
        connect(f"tcp://127.0.0.1:{hub.ports['step']}", name="driver") as client,
        zmq.Context() as context,
    ):
        old = client_of(context, hub)
        old.hello()

        def check(**changed: float) -> None:
            client.step(2)
            assert client.is_driver and client.connection.restarts == 0
            assert np.array_equal(client.data.qpos, lab.snapshot.qpos)
            assert client.model.nq == lab.model.nq
            assert old.ask("read_status")["model_version"] == lab.loop.model_version
            for name, mass in changed.items():
                assert client.model.body(name).mass[0] == mass == lab.model.body(name).mass[0]

        check()
        client.set_model("body:lower", "mass", 3.0)
        check(lower=3.0)
        client.undo()
        check(lower=float(lab.model.body("lower").mass[0]))
        path.write_text(ARM.replace("elbow", "wrist"))
        assert not lab.reload().error
        check()
        (robot,) = lab.robots
        assert "wrist" in client[robot].joints
        with pytest.raises(UnknownNameError):
            client[robot].joint("elbow")
        path.write_text(BAD)
        assert "mass and inertia" in lab.reload().error
        check()
        path.write_text(ARM)
        assert not lab.reload().error
        check()
        before = client.model.nbody
        client.add_prop("box", [0.1, 0.1, 0.1], name="crate", pos=[0.0, 1.0, 0.2])
        check()
        assert client.model.nbody == before + 1
        client.undo()
        check()
        assert client.model.nbody == before
        context.destroy(linger=0)


def test_requests_during_rebuilds(served):
    """Step from two clients while the file is opened again and again: each reply is of a world."""
    lab, hub, path = served
    ended, failed = threading.Event(), []

    def read() -> None:
        try:
            with connect(f"tcp://127.0.0.1:{hub.ports['step']}", role="observer") as watcher:
                while not ended.is_set():
                    assert len(watcher.data.qpos) == watcher.model.nq
                    watcher.read_status()
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        with connect(f"tcp://127.0.0.1:{hub.ports['step']}") as client:
            for number in range(10):
                text = ARM.replace("<freejoint/>", "") if number % 2 else ARM
                path.write_text(text)
                assert not lab.reload().error
                client.step(3)
                assert client.model.nq == lab.model.nq == len(client.data.qpos)
                assert np.array_equal(client.data.qpos, lab.snapshot.qpos)
            assert client.is_driver and client.connection.restarts == 0
    finally:
        ended.set()
        thread.join(PATIENCE_S)
    assert not failed, failed
