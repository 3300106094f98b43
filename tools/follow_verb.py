"""Follow what a user does through the code of the lab, and print the files on the way.

Run from the project's root: python -m tools.follow_verb [NAME ...] [--calls]

A lab, its page as a reader of it (`RemoteLab`), its server and a client run in one process, so that
the interpreter can report each call (`sys.setprofile`). Functions that also run while nobody does
anything, such as those that look for messages, are left out.
"""

from __future__ import annotations

import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Literal, get_args

import tyro
import zmq

from manyworlds.lab import LabCfg, LiveLab, RecorderCfg
from manyworlds.lab.client import connect
from manyworlds.lab.page import PageServer
from manyworlds.lab.readers.link import LabLink
from manyworlds.lab.readers.remote_lab import RemoteLab
from manyworlds.lab.readers.wire import Wire
from manyworlds.lab.server import LabHub, LabServerCfg
from tests.browser import free_port
from tests.lab.page.conftest import give, press
from tests.lab.robots.test_driving import Walker
from tests.lab.server.conftest import two_robots
from tests.lab.server.test_hub import client_of
from tests.lab.server.waiting import ANY
from tests.waiting import until

_PACKAGE = f"{Path('src/manyworlds').resolve()}/"
_REST_S = 0.5
"""Time in which effects arrive, and in which the functions of an idle lab are noted [s]."""

Call = tuple[str, str]
"""File below `src/manyworlds`, and name of the function."""


@dataclass
class Follower:
    """Notes the functions of the package that are called, in all threads that start after it."""

    calls: dict[Call, None] = field(default_factory=dict)
    is_on: bool = False

    def install(self) -> None:
        """Follow this thread, and those that start from now on."""
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if self.is_on and event == "call" and code.co_filename.startswith(_PACKAGE):
            self.calls[code.co_filename.removeprefix(_PACKAGE), code.co_qualname] = None

    def during(self, action: Callable[[], object]) -> list[Call]:
        """Return the functions that are called by an action and its effects, in their order."""
        self.calls = {}
        self.is_on = True
        action()
        time.sleep(_REST_S)
        self.is_on = False
        return list(self.calls)


class Stage:
    """A running lab with its page, its server, and a client.

    Args:
        exits: ends everything.
        folder: folder of the recordings.
    """

    def __init__(self, exits: ExitStack, folder: Path) -> None:
        cfg = LabCfg(recorder=RecorderCfg(folder=folder))
        self.lab = exits.enter_context(LiveLab(two_robots(), cfg))
        near, far = socket.socketpair()
        link = LabLink(Wire(near), lambda message: None, lambda: None)
        exits.callback(link.close)
        arrived = threading.Event()
        remote = RemoteLab(Wire(far), lambda message: arrived.set())
        exits.callback(remote.close)
        link.show(self.lab)
        arrived.wait()
        remote.sync_model()
        self.page = PageServer(remote, port=free_port())
        exits.callback(self.page.close)
        self.lab.gathered.max_age = -1.0
        self.hub = exits.enter_context(LabHub(LabServerCfg(**ANY)))
        self.hub.attach(self.lab)
        until(self.hub.is_open, "the ports are not open")
        self._exits = exits
        self.rest()

    def rest(self) -> None:
        """Let the page show everything, until nothing is new."""
        for _ in range(5):
            self._show()

    def _show(self) -> None:
        page: Any = self.page
        page._due = dict.fromkeys(page._due, float("-inf"))
        page.update()

    def then_shown(self, action: Callable[[], object]) -> Callable[[], object]:
        """Return an action after which the page shows its effect."""

        def act() -> None:
            action()
            self._show()

        return act

    def friction(self) -> Callable[[], object]:
        """Type a friction into the inspector."""
        context = self.page.context
        context.select("geom", self.lab.model.geom("go/sole").id)
        self.rest()
        part: Any = self.page.parts["InspectorPart"]
        return self.then_shown(lambda: give(part.fields["friction"].handles[0], (0.7, 5e-3, 1e-4)))

    def push(self) -> Callable[[], object]:
        """Push a body from a Python client."""
        client = self._exits.enter_context(connect(f"tcp://127.0.0.1:{self.hub.ports['step']}"))
        client.set_mode("live")
        return lambda: client.push_body("go/base", [5.0, 0.0, 0.0])

    def step(self) -> Callable[[], object]:
        """Make a step as URLab's programs do."""
        client = client_of(self._exits.enter_context(zmq.Context()), self.hub)
        client.hello(role="takeover")
        targets = {"go": {"ctrl": [0.1, 0.1]}}
        return lambda: client.ask("step", n_steps=1, per_articulation=targets)

    def recording(self) -> Callable[[], object]:
        """Start and stop a recording on the page."""
        part: Any = self.page.parts["RecordPart"]
        start = self.then_shown(part.toggle_recording)

        def both() -> None:
            start()
            time.sleep(_REST_S)
            start()

        return both

    def prop(self) -> Callable[[], object]:
        """Add a prop on the page, and undo it."""
        part: Any = self.page.parts["PropPart"]
        give(part.shape, "sphere")

        def both() -> None:
            press(part.add_shape)
            until(lambda: "sphere" in self.lab.scene.items, "there is no prop", self._show)
            self.page.context.undo()
            until(lambda: "sphere" not in self.lab.scene.items, "the prop stays", self._show)

        return both

    def key(self) -> Callable[[], object]:
        """Hold a key that drives a robot, on the page."""
        self.lab["go"].controller = Walker()
        self.rest()
        part: Any = self.page.parts["DrivePart"]
        message = '{"ask": "drive", "robot": "go", "twist": [1, 0, 0], "inputs": {}, "actions": 0}'
        return lambda: part.socket._reply("browser 1", message)


Way = Literal["friction", "push", "step", "recording", "prop", "key"]
"""What is done, by the method of `Stage`."""
_WAYS: tuple[Way, ...] = get_args(Way)


@dataclass
class Options:
    """Print the files between what a user does and MuJoCo, and back."""

    names: tyro.conf.Positional[tuple[Way, ...]] = _WAYS
    """What is done."""
    calls: bool = False
    """True to print the functions, too."""


def main() -> int:
    """Follow what is asked for."""
    options = tyro.cli(Options, prog="python -m tools.follow_verb")
    for name in options.names:
        follower = Follower()
        follower.install()
        with ExitStack() as exits:
            folder = Path(exits.enter_context(tempfile.TemporaryDirectory()))
            stage = Stage(exits, folder)
            action = getattr(stage, name)()
            idle = {call for _ in range(6) for call in follower.during(stage.rest)}
            calls = [call for call in follower.during(action) if call not in idle]
            sys.setprofile(None)
        files = dict.fromkeys(file for file, _ in calls)
        print(f"{name}: {len(files)} files")
        for file in files:
            functions = [function for other, function in calls if other == file]
            print(f"  {file}" + f": {', '.join(functions)}" * options.calls)
    return 0


if __name__ == "__main__":
    sys.exit(main())
