"""A lab and its hub, shared by the tests of a module of the fast path."""

from __future__ import annotations

import os

import pytest

from manyworlds.lab import LabCfg, LiveLab
from manyworlds.lab.server import LabHub, LabServerCfg
from manyworlds.plugins.urlab.fast_path import FastPathReader, FastPathServer
from manyworlds.plugins.urlab.plugin import plugin_of
from tests.lab.server.conftest import two_robots
from tests.lab.server.waiting import ANY, until


def fast_path_of(hub: LabHub) -> FastPathServer:
    """Return the fast path of a hub."""
    server = plugin_of(hub.dispatcher).fast_path
    assert server is not None
    return server


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    """Folder of the registry for these tests."""
    folder = tmp_path_factory.mktemp("registry")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "MANYWORLDS_REGISTRY", str(folder))
        yield folder


@pytest.fixture(scope="module")
def hub(registry):
    """A hub without a world on any free ports."""
    with LabHub(LabServerCfg(**ANY)) as hub:
        until(hub.is_open, "the ports are not open")
        yield hub


@pytest.fixture(scope="module")
def shared(hub):
    """A lab of two robots and a box in direct mode."""
    with LiveLab(two_robots(), LabCfg(mode="direct")) as lab:
        yield lab


@pytest.fixture
def lab(hub, shared):
    """That lab in its initial state, served by the hub."""
    shared.call("release_body")
    shared.reset()
    hub.attach(shared)
    yield shared
    hub.attach(None)


@pytest.fixture
def reader(hub):
    """A reader of the hub."""
    reader = FastPathReader(f"tcp://127.0.0.1:{hub.ports['fast_path']}")
    yield reader
    reader.close()
