"""What a plugin adds to a server: operations, messages, sockets.

`LabServerCfg.plugins` names modules with a class `Plugin`, derived from `ServerPlugin`. The lab and
its own protocol work without any.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from manyworlds.lab.errors import VerbError
from manyworlds.lab.face import LabFace
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.pictures.camera import Kind, LabCameraCfg
from manyworlds.lab.pictures.image import CameraImage
from manyworlds.lab.server.operations import ClientOperation, Request
from manyworlds.lab.server.ports import Outlet, Port

if TYPE_CHECKING:
    from manyworlds.lab.server.dispatcher import Dispatcher
    from manyworlds.lab.server.hub import LabHub


class ServerPlugin:
    """Further services of a server; each method does nothing here.

    Args:
        server: answers the requests.
    """

    operations: Mapping[str, ClientOperation] = {}
    """Operations by name, also in place of those of the lab's own protocol."""
    codes: Mapping[str, str] = {}
    """Codes of errors in replies, by those of verbs that differ."""

    def __init__(self, server: Dispatcher) -> None:
        self.server = server

    def refuse(self, name: str) -> VerbError | None:
        """Return the error of a request for an operation that is known and not offered."""

    def attach(self, face: LabFace | None) -> None:
        """Serve another world, or none until the next call; may be called in any thread."""

    def prepare(self, request: Request) -> None:
        """Begin what takes long before the first client asks for it."""

    def open(self, hub: LabHub) -> None:
        """Create sockets: by `hub.add_server`, `hub.streams.add` and `hub.cameras.add`."""

    def describe(self) -> dict[str, object]:
        """Return counters as plain data."""
        return {}


class Server(Protocol):
    """Sockets that one thread serves."""

    @property
    def ports(self) -> Sequence[Port]:
        """All ports."""
        ...

    def run_once(self) -> None:
        """Do what there is to do, or wait a moment for it."""
        ...

    def close(self) -> None:
        """Close the sockets."""
        ...


class Publisher(Protocol):
    """Publishes states at the port of whole snapshots, and at ports of its own."""

    @property
    def ports(self) -> Sequence[Port]:
        """Ports of its own; whatever they receive, `exchange` is called soon."""
        ...

    def attach(self, face: LabFace | None) -> None:
        """Publish another world from now on, in the thread of `exchange`."""
        ...

    def exchange(
        self, face: LabFace, snapshot: Snapshot, outlets: Sequence[Outlet], now: float
    ) -> None:
        """Take what has come, and publish what is due.

        Args:
            face: the world.
            snapshot: its newest snapshot, which may be that of the last call.
            outlets: open ports of states, which know what their peers want.
            now: time [s].

        Raises:
            VerbError: nothing can be published.
            ValueError: nothing can be published.
        """
        ...


class ImagePublisher(Protocol):
    """Publishes images of cameras; one thread calls it."""

    @property
    def ports(self) -> Sequence[Outlet]:
        """Its ports at present."""
        ...

    def attach(self, face: LabFace | None) -> None:
        """Publish the cameras of another world from now on."""
        ...

    def list(self, cameras: Mapping[str, LabCameraCfg]) -> None:
        """Note which cameras there are.

        Raises:
            VerbError: the world changes too fast.
        """
        ...

    def wanted(self) -> set[tuple[str, Kind]]:
        """Return the cameras and kinds that clients have subscribed to."""
        ...

    def publish(self, image: CameraImage) -> int:
        """Send an image to those who want it, and return the number of messages."""
        ...


def load_plugins(server: Dispatcher, modules: Sequence[str]) -> list[ServerPlugin]:
    """Return the plugins of some modules.

    Raises:
        ValueError: there is no such module, or it has no plugin.
    """
    plugins = []
    for name in modules:
        try:
            kind = getattr(importlib.import_module(name), "Plugin", None)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise  # what the plugin itself imports is missing
            raise ValueError(f"There is no plugin '{name}' of the server: {error}.") from error
        if not (isinstance(kind, type) and issubclass(kind, ServerPlugin)):
            raise ValueError(f"'{name}' has no class Plugin derived from ServerPlugin.")
        plugins.append(kind(server))
    return plugins
