"""URLab's protocols as a plugin of a lab's server: requests, streams, cameras, fast path."""

from __future__ import annotations

from manyworlds.lab.errors import VerbError
from manyworlds.lab.face import LabFace
from manyworlds.lab.server.dispatcher import Dispatcher
from manyworlds.lab.server.hub import LabHub
from manyworlds.plugins.urlab import drawings, greeting, images, operations
from manyworlds.plugins.urlab.camera_colors import CameraColors
from manyworlds.plugins.urlab.clients import OPERATIONS, Clients, clients_of
from manyworlds.plugins.urlab.fast_path.server import FastPathServer
from manyworlds.plugins.urlab.fast_path.worlds import PublishedLab
from manyworlds.plugins.urlab.publisher import StatePublisher

_WITH_OPERATIONS = drawings, greeting, images, operations
"""Modules that register operations."""
EDITOR = frozenset(
    {
        *("import_xml", "create_level", "load_level", "save_level"),
        *("current_level", "ensure_manager", "destroy_asset", "snapshot"),
        *("duplicate_actor", "actor_hierarchy", "spawn_actor", "spawn_grid"),
        *("spawn_light", "destroy_actor", "set_actor_transform", "find_actors"),
        *("list_actors", "list_blueprints", "get_actor_bounds", "select_actor"),
        *("add_quick_convert", "remove_quick_convert"),
        *("set_camera", "get_camera", "frame_actor"),
        *("set_viewport_mode", "track_actor", "untrack"),
    }
)
"""Operations of URLab that edit scenes; a lab has verbs of other names for that."""


class Plugin(Clients):
    """URLab's protocols.

    Args:
        server: answers the requests.
    """

    operations = OPERATIONS
    codes = {"unknown_robot": "unknown_articulation", "unknown_entity": "unknown_articulation"}

    def __init__(self, server: Dispatcher) -> None:
        self.states: StatePublisher | None = None
        """Publishes states and takes targets, where there are sockets."""
        self.fast_path: FastPathServer | None = None
        """Serves programs that draw the world, where there are sockets."""
        super().__init__(server)

    def refuse(self, name: str) -> VerbError | None:
        """Return the error of an operation that edits scenes of URLab."""
        if name not in EDITOR:
            return None
        return VerbError(
            "not_in_editor", f"{name}: edit the scene by the verbs add_item, move_item and others."
        )

    def open(self, hub: LabHub) -> None:
        """Create the sockets."""
        colors = CameraColors(hub, self.rosters)
        self.camera_topics = colors.topics
        hub.cameras.add(colors)
        self.states = StatePublisher(hub, self)
        hub.streams.add(self.states)
        self.fast_path = FastPathServer(hub.new_port, hub.report, hub.cfg.limits)
        self.fast_path.requests = lambda: f"tcp://{hub.cfg.host}:{hub.ports['step']}"
        hub.add_server("fast path", self.fast_path)

    def attach(self, face: LabFace | None) -> None:
        """Serve another world, or none until the next call."""
        super().attach(face)
        if self.fast_path is not None:
            self.fast_path.attach(None if face is None else PublishedLab(face))

    def describe(self) -> dict[str, object]:
        """Return the counters of targets and of the fast path."""
        if self.states is None or self.fast_path is None:
            return {}
        return {"control": dict(self.states.inbox.stats), "fast_path": dict(self.fast_path.counts)}


def plugin_of(server: Dispatcher) -> Plugin:
    """Return the plugin of a server."""
    plugin = clients_of(server)
    assert isinstance(plugin, Plugin)
    return plugin
