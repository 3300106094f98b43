"""A lab of another process, for readers."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import mujoco

from manyworlds.lab.errors import LabEndedError, VerbError
from manyworlds.lab.facts import LabFacts, changes_facts
from manyworlds.lab.loop.shared_snapshots import SnapshotReader, layout_from_plain
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.readers.call_channels import CallChannels
from manyworlds.lab.readers.wire import Message, Wire
from manyworlds.lab.verb_methods import LabVerbs
from manyworlds.lab.world.model_values import write_values


@dataclass
class _World:
    """World as the lab sent it."""

    model: mujoco.MjModel
    version: int
    """Number of changes of the lab's model that `model` has."""
    robots: dict[str, str]
    reader: SnapshotReader


class RemoteLab:
    """A `LabFace` of a lab in another process, which started this one.

    Snapshots are read from shared memory, so that the lab does nothing for a reader. `model` is a
    copy of its own. `sync_model` brings it up to date, and is the only call after which `model`,
    `robots` and `snapshot` may be those of a rebuilt world.

    Args:
        wire: wire to the lab.
        heard: called with each event that is no matter of this class, in a thread of its own; the
            last one is `ended`.
    """

    def __init__(self, wire: Wire, heard: Callable[[Message], None]) -> None:
        self.verbs = LabVerbs(self.call)
        """The verbs, as methods."""
        self._wire = wire
        self._heard = heard
        self._calls = CallChannels(wire)
        self._arrived = threading.Condition()
        self._syncing = threading.Lock()  # otherwise older values could follow newer ones
        self._num_worlds = 0
        """Number of worlds that have arrived."""
        self._facts: LabFacts | None = None
        self._num_facts = 0
        """Number of facts that have arrived."""
        self._num_changes = 1
        """Number of reasons for newer facts: verbs that were called, worlds that have arrived."""
        self._num_known = 0
        """The number of them that the facts contain."""
        self._asking = threading.Lock()  # one thread asks for the facts
        self._ended = False
        self._world: _World | None = None
        self._next: _World | None = None
        self._thread = threading.Thread(target=self._listen, name="manyworlds-lab", daemon=True)
        self._thread.start()

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot of the world."""
        return self._present.reader.read()

    @property
    def facts(self) -> LabFacts:
        """The state that snapshots do not contain; see `LabFace.facts`.

        The lab sends it when it has changed. Only after a verb, or a new world, the lab is asked.
        """
        if self._num_known != self._num_changes:
            self._ask_for_facts()
        if self._facts is None:
            raise LabEndedError
        return self._facts

    @property
    def model(self) -> mujoco.MjModel:
        """A copy of the compiled model."""
        return self._present.model

    @property
    def robots(self) -> Mapping[str, str]:
        """Prefix of the elements of each robot in the model, by the robot's name."""
        return self._present.robots

    def call(self, verb: str, **fields: object) -> dict[str, object]:
        """Carry out a verb of the lab, and wait for its effect; see `LabFace.call`."""
        try:
            return self._ask({"verb": verb, "fields": fields})
        finally:
            if changes_facts(verb):
                self._note_change()

    def describe_verbs(self) -> list[dict[str, object]]:
        """Return the catalogue of the verbs as plain data."""
        verbs = self._ask({"catalogue": True})["verbs"]
        assert isinstance(verbs, list)
        return verbs

    def ask_for_images(self, request: Message, descriptor: int | None = None) -> Message:
        """Carry out a request of a reader of images; see `DrawnLab.ask_for_images`."""
        return self._ask({"images": request}, descriptor)

    def sync_model(self) -> None:
        """Bring `model` up to date: its values, or all of a rebuilt world."""
        with self._arrived:
            fresh, self._next = self._next, None
        if fresh is not None:
            self._world = fresh
        world = self._present
        if world.version != world.reader.read().model_version:
            with self._syncing:
                self._sync_values(world)

    def tell(self, what: str, **fields: object) -> None:
        """Send the lab's program a message; nothing happens if it has ended."""
        with contextlib.suppress(OSError):  # `heard` gets the end
            self._wire.send({"tell": what, **fields})

    def close(self) -> None:
        """End the link."""
        self._wire.close()

    def _sync_values(self, world: _World) -> None:
        if world.version == world.reader.read().model_version:
            return  # another thread has just done it
        reply = self._ask({"values": True})
        arrays, options, version = (reply[key] for key in ("arrays", "options", "model_version"))
        assert isinstance(arrays, dict) and isinstance(options, dict) and isinstance(version, int)
        if write_values(world.model, arrays, options):
            # Otherwise the world was rebuilt in between, and comes as a whole.
            world.version = version

    def _note_change(self) -> None:
        with self._arrived:
            self._num_changes += 1

    def _ask_for_facts(self) -> None:
        """Wait for facts that contain all changes up to now."""
        with self._asking:
            changes = self._num_changes
            if self._num_known == changes:
                return  # another thread has just done it
            count = self._ask({"facts": True})["num_facts"]
            assert isinstance(count, int)
            with self._arrived:
                self._arrived.wait_for(lambda: self._ended or self._num_facts >= count)
            self._num_known = changes

    @property
    def _present(self) -> _World:
        if self._world is None:
            raise RuntimeError("There is no world yet: call sync_model when the lab has one.")
        return self._world

    def _ask(self, request: Message, descriptor: int | None = None) -> dict[str, object]:
        if self._ended:
            raise LabEndedError
        try:
            answer = self._calls.ask(request, descriptor)
        except TypeError as error:
            raise VerbError("bad_value", str(error)) from error
        except (EOFError, OSError) as error:
            raise LabEndedError from error
        if answer["worlds"] > self._num_worlds:
            with self._arrived:
                self._arrived.wait_for(lambda: self._ended or self._num_worlds >= answer["worlds"])
        if "error" in answer:
            raise VerbError(*answer["error"])
        return answer["reply"]

    def _listen(self) -> None:
        try:
            while True:
                self._take(self._wire.receive())
        except EOFError:
            pass
        self._heard({"event": "ended"})
        with self._arrived:
            self._ended = True
            self._arrived.notify_all()
        self._calls.close()

    def _take(self, message: Message) -> None:
        if message["event"] == "facts":
            with self._arrived:
                self._facts = LabFacts.from_plain(message["facts"])
                self._num_facts += 1
                self._arrived.notify_all()
            return
        if "model" in message:
            world = _read_world(message)
            with self._arrived:
                self._next = world
                self._num_worlds += 1
                self._num_changes += 1
                self._arrived.notify_all()
        if message["event"] != "world":
            self._heard(message)


def _read_world(message: Message) -> _World:
    name = "world.mjb"
    model = mujoco.MjModel.from_binary_path(name, {name: message.pop("model")})
    reader = SnapshotReader(message.pop("descriptor"), layout_from_plain(message.pop("layout")))
    return _World(model, message["model_version"], message["robots"], reader)
