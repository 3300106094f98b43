"""Labs that are served to clients."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from manyworlds.lab import LabCfg, LiveLab, RecorderCfg
from manyworlds.lab.client import LabClient, connect
from manyworlds.lab.server import LabHub, LabServerCfg
from tests.lab.server.conftest import two_robots
from tests.lab.server.waiting import ANY, until


@contextlib.contextmanager
def serve(lab: LiveLab, **ports: int) -> Iterator[LabHub]:
    """Serve a lab on free ports, or on given ones."""
    with LabHub(LabServerCfg(**{**ANY, **ports})) as hub:
        until(hub.is_open, "the ports are not open")
        hub.attach(lab)
        yield hub


def address(hub: LabHub) -> str:
    """Return the address of a hub's requests."""
    return f"tcp://127.0.0.1:{hub.ports['step']}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder of the recordings."""
    return tmp_path_factory.mktemp("recordings")


@pytest.fixture(scope="module")
def lab(folder):
    """A lab of two robots and a box, in direct mode."""
    cfg = LabCfg(mode="direct", recorder=RecorderCfg(folder=folder))
    with LiveLab(two_robots(), cfg) as lab:
        yield lab


@pytest.fixture(scope="module")
def hub(lab):
    """Server of that lab."""
    with serve(lab) as hub:
        yield hub


@pytest.fixture
def client(lab, hub) -> Iterator[LabClient]:
    """A client that drives, in a world that was reset."""
    with connect(address(hub), name="test") as client:
        assert client.is_driver
        client.set_mode("direct")
        client.reset()
        yield client
