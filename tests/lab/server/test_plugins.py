"""Plugins of a server: what it is without any, and what one may add."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Annotated

import pytest
import zmq

from manyworlds.lab import LiveLab, VerbError
from manyworlds.lab.client import LabClient, UnknownNameError, connect
from manyworlds.lab.pictures import LabCameraCfg
from manyworlds.lab.server import OPERATIONS, Dispatcher, LabHub, LabServerCfg
from manyworlds.lab.server.operations import Registry, Request
from manyworlds.lab.server.plugin import ServerPlugin
from manyworlds.lab.verbs.fields import Field
from tests.lab.server.client import Client, ReplyError
from tests.lab.server.waiting import ANY, until


@pytest.fixture
def plain(lab):
    """A client of a server without plugins."""
    with LabHub(LabServerCfg(**ANY, plugins=())) as hub:
        hub.attach(lab)
        until(hub.is_open, "the ports are not open")
        with connect(str(hub.ports["step"])) as client:
            yield client


def test_the_own_protocol_needs_no_plugin(plain: LabClient, lab: LiveLab):
    """Step, read states and models, and fail, as with plugins: with the names of the lab."""
    plain.step(3)
    assert plain.snapshot.step == lab.snapshot.step == 3
    assert plain.model.names == lab.model.names and set(plain.robots) == {"go", "go2", "box"}
    states = plain.states(timeout=10.0)
    assert next(states).step == 3
    plain.step(1)
    until(lambda: next(states).step == 4, "the state is not pushed")
    states.close()
    with pytest.raises(UnknownNameError, match="got 'gone'"):
        plain.call("take_robot", robot="gone", owner="net")
    ports = plain.connection.greeting["ports"]
    assert set(ports) == {"step", "state", "image", "web"}
    assert set(plain.network_status()) >= {"sessions", "ports"}


def test_a_plugin_adds_and_replaces_operations(lab, monkeypatch):
    """Write a plugin: a new operation, one in place of an own one, a code, and a refusal."""
    registry = Registry()

    @registry.operation(writes=False, text=Field())
    def say(request: Request, text: Annotated[str, Field()] = "no") -> dict[str, object]:
        """Repeat a text."""
        return {"text": text}

    @registry.operation("session", writes=False, driver=Field())
    def heartbeat(request: Request) -> dict[str, object]:
        """Answer otherwise."""
        return {"driver": "nobody"}

    class Plugin(ServerPlugin):
        operations = registry
        codes = {"bad_value": "worse_value"}

        def refuse(self, name: str):
            from manyworlds.lab import VerbError

            return VerbError("not_here", f"{name}: elsewhere.") if name == "fly" else None

    module = ModuleType("own_plugin")
    vars(module)["Plugin"] = Plugin
    monkeypatch.setitem(sys.modules, "own_plugin", module)
    server = Dispatcher(lab, LabServerCfg(plugins=("own_plugin",)))
    client = Client(lambda request: server.handle(request, "a"))
    client.hello()
    assert client.ask("say", text="ja")["text"] == "ja"
    assert client.ask("heartbeat")["driver"] == "nobody"
    assert {"say", *OPERATIONS} == {op["name"] for op in client.ask("meta")["ops"]}
    for op, fields, code in (("fly", {}, "not_here"), ("say", {"text": 1}, "worse_value")):
        with pytest.raises(ReplyError) as caught:
            client.ask(op, **fields)
        assert caught.value.code == code


@pytest.mark.parametrize(
    ("name", "reason"),
    [("no.such.plugin", "There is no plugin"), ("json", "'json' has no class Plugin")],
)
def test_a_module_that_is_no_plugin_is_refused(name, reason):
    """Name modules that are not there, or have no plugin."""
    with pytest.raises(ValueError, match=reason):
        Dispatcher(None, LabServerCfg(plugins=(name,)))


def test_a_plugin_lacks_a_package(tmp_path, monkeypatch):
    """Name a plugin whose own import fails: the error is of what is missing, not of the plugin."""
    (tmp_path / "half_plugin.py").write_text("import a_package_that_is_not_there\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="a_package_that_is_not_there"):
        Dispatcher(None, LabServerCfg(plugins=("half_plugin",)))


def test_images_go_on_where_a_publisher_of_a_plugin_fails(lab):
    """Let a plugin fail to list cameras: other images come, and the reason is told."""

    class Failing:
        ports = ()

        def attach(self, face) -> None:
            pass

        def list(self, cameras) -> None:
            raise VerbError("bad_value", "No name suits this plugin.")

        def wanted(self):
            return set()

        def publish(self, frame) -> int:
            return 0

    with LabHub(LabServerCfg(**ANY, plugins=())) as hub:
        told = []
        hub.report = told.append
        hub.cameras._publishers.insert(0, Failing())
        hub.attach(lab)
        until(hub.is_open, "the ports are not open")
        lab.cameras.add(LabCameraCfg(name="eye"))
        socket = zmq.Context.instance().socket(zmq.SUB)
        socket.setsockopt(zmq.SUBSCRIBE, b"")
        socket.connect(f"tcp://127.0.0.1:{hub.ports['image']}")
        until(lambda: lab.step(5) and socket.poll(20), "there is no image")
        socket.close(0)
        assert told == ["Images are not published: No name suits this plugin."]


def test_two_servers_of_one_name_are_refused():
    """Add a second server by a name that the hub uses: a sentence, and the first one stays."""
    with LabHub(LabServerCfg(**ANY, plugins=())) as hub:
        with pytest.raises(ValueError, match="there is a server 'streams' already: choose"):
            hub.add_server("streams", hub.cameras)
        assert hub._servers["streams"] is hub.streams
