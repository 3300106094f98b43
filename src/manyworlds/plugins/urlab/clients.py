"""What URLab's clients know of the present world, and the operations that they may request."""

from __future__ import annotations

import weakref
from collections.abc import Callable

from manyworlds.lab.errors import VerbError
from manyworlds.lab.face import LabFace
from manyworlds.lab.server.dispatcher import Dispatcher
from manyworlds.lab.server.operations import Registry, Request
from manyworlds.lab.server.plugin import ServerPlugin
from manyworlds.lab.server.sessions import Session
from manyworlds.lab.verbs.fields import PlainMap
from manyworlds.plugins.urlab.model_files import ModelFiles
from manyworlds.plugins.urlab.observations import Level
from manyworlds.plugins.urlab.roster import Roster, RosterCache

OPERATIONS = Registry()
"""Operations of URLab's protocol, by name."""


class Clients(ServerPlugin):
    """What URLab's clients know of the present world.

    Args:
        server: answers the requests.
    """

    def __init__(self, server: Dispatcher) -> None:
        super().__init__(server)
        self.rosters = RosterCache()
        """Members of the present world."""
        self.camera_topics: Callable[[str], PlainMap] = lambda robot: {}
        """Function that returns the streams of a robot's cameras, by name."""
        self.levels: weakref.WeakKeyDictionary[Session, Level] = weakref.WeakKeyDictionary()
        """Amount of data in the states that sessions get; `standard` for others."""
        self.attach(None)

    def attach(self, face: LabFace | None) -> None:
        """Serve another world, or none until the next call."""
        self.files = ModelFiles(self.server.waits)
        self.control_sources: dict[str, str] = {}
        """Control source of each robot that a client set by itself."""

    def prepare(self, request: Request) -> None:
        """Begin to export the model, so that the first client does not wait for it."""
        try:
            self.files.update(request, self.refresh())
        except VerbError:
            return  # for the clients that ask for the model

    def refresh(self) -> Roster:
        """Return the members of the present world.

        Raises:
            VerbError: there is no world, or it does not stay the same for long enough.
        """
        return self.rosters.get(self.server.present())


def clients_of(server: Dispatcher) -> Clients:
    """Return the plugin of a server."""
    for plugin in server.plugins:
        if isinstance(plugin, Clients):
            return plugin
    raise LookupError("The server has no plugin of URLab's protocols.")


def roster_of(request: Request) -> Roster:
    """Return the members of the world: the same until the request is answered."""
    if "roster" not in request.kept:
        request.kept["roster"] = clients_of(request.server).refresh()
    return request.kept["roster"]
