"""The lab's side of a link to a reader in another process."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from manyworlds.lab.errors import VerbError
from manyworlds.lab.facts import FACTS_S, LabFacts
from manyworlds.lab.loop.shared_snapshots import layout_to_plain
from manyworlds.lab.readers.call_channels import CallServer
from manyworlds.lab.readers.wire import Message, Wire
from manyworlds.lab.world.model_facts import APPEARANCE, binary_model
from manyworlds.lab.world.options import read_options

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

_LOG = logging.getLogger(__name__)
_AGAIN_S = 1.0  # time after which facts that could not be read are read again


class LabLink:
    """Shows a lab to a reader, and carries out the reader's verbs.

    Snapshots go through shared memory, verbs and their replies through sockets of their own, see
    `CallChannels`. The wire carries the compiled model, at first and after each rebuild, events,
    and facts, from the time when the reader first asks for them.

    Args:
        wire: wire to the reader.
        heard: called with each message that is no request to the lab, in the link's thread.
        ended: called once, when the reader ended or `close` was called, in the link's thread.
    """

    def __init__(
        self, wire: Wire, heard: Callable[[Message], None], ended: Callable[[], None]
    ) -> None:
        self._wire = wire
        self._heard = heard
        self._ended = ended
        self._lab: LiveLab | None = None
        self._followed: weakref.WeakSet[LiveLab] = weakref.WeakSet()
        self._fields: list[str] = []
        self._calls = CallServer(self._answer)
        self._workers = ThreadPoolExecutor(1, "manyworlds-link-work")
        self._worlds = ThreadPoolExecutor(1, "manyworlds-link-world")
        self._unsent = 0
        """Number of rebuilt worlds that were not sent yet."""
        self._num_sent = 0
        """Number of worlds that were sent."""
        self._sent = threading.Condition()
        self._facts: LabFacts | None = None
        """Facts that were sent last."""
        self._num_facts = 0
        """Number of facts that were sent."""
        self._sending_facts = threading.Lock()  # otherwise older facts could follow newer ones
        self._pushes_facts = False
        """True from the time when the reader first asked for facts."""
        self._thread = threading.Thread(target=self._listen, name="manyworlds-link", daemon=True)
        self._thread.start()

    def show(self, lab: LiveLab) -> None:
        """Show a lab from now on, in place of the one before.

        Raises:
            OSError: the reader ended.
        """
        self._lab = lab
        self._send_world(lab, "lab")
        if lab not in self._followed:
            self._followed.add(lab)
            shown = weakref.ref(lab)  # a cycle of references would keep the lab
            lab.on_rebuild(lambda: self._follow(shown()))

    def hide(self) -> None:
        """Show no lab until the next call of `show`: verbs are refused."""
        self._lab = None

    def tell(self, event: str, descriptor: int | None = None, **fields: object) -> None:
        """Send an event, perhaps with a file descriptor; nothing happens if the reader ended."""
        with contextlib.suppress(OSError):  # `ended` tells it
            self._wire.send({"event": event, **fields}, descriptor)

    def wait_until_sent(self) -> None:
        """Wait until all rebuilt worlds were sent, which come before what is told next."""
        with self._sent:
            self._sent.wait_for(lambda: not self._unsent)

    def submit(self, work: Callable[[], None]) -> None:
        """Run a function in a thread of the link, after those that were submitted before."""

        def run() -> None:
            try:
                work()
            except OSError:
                pass  # the reader ended; `ended` tells it
            except Exception:
                _LOG.exception("An event of another process failed.")

        with contextlib.suppress(RuntimeError):  # the reader ended; `ended` tells it
            self._workers.submit(run)

    def close(self) -> None:
        """End the link; a second call does nothing."""
        self._wire.close()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _follow(self, lab: LiveLab | None) -> None:
        """Show a rebuilt world, without a delay of the thread that rebuilt it.

        Replies wait for it, and the reader for its arrival, so that no reply of the new world is
        taken for one of the old world.
        """

        def send(lab: LiveLab) -> None:
            try:
                self._send_world(lab, "world")
            except OSError:
                pass  # the reader ended; `ended` tells it
            except Exception:
                _LOG.exception("A rebuilt world cannot be shown to another process.")
            finally:
                self._count_unsent(-1)

        if lab is not None and self._lab is lab:
            self._count_unsent(1)
            try:
                self._worlds.submit(send, lab)
            except RuntimeError:  # the reader ended; `ended` tells it
                self._count_unsent(-1)

    def _count_unsent(self, change: int) -> None:
        with self._sent:
            self._unsent += change
            self._sent.notify_all()

    def _send_world(self, lab: LiveLab, event: str) -> None:
        self._fields = value_fields(lab.model)

        def take(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[Message, int]:
            snapshot = lab.loop.snapshot
            descriptor, layout = lab.loop.publisher.open(snapshot)
            world: Message = {
                "event": event,
                "model": binary_model(model),
                "model_version": snapshot.model_version,
                "robots": dict(lab.robots),
                "layout": layout_to_plain(layout),
            }
            return world, descriptor

        world, descriptor = lab.loop.do(take, edits_model=False)
        try:
            self._wire.send(world, descriptor)
            with self._sent:
                self._num_sent += 1
        finally:
            os.close(descriptor)

    def _push_facts(self) -> float:
        """Send the facts if they differ from the last ones; return when to do it again [s].

        A reader that has called a verb asks, see `RemoteLab.facts`: nothing is sent with replies,
        which programs wait for.
        """
        try:
            self._send_facts()
        except OSError:
            pass  # the reader ended; `receive` tells it
        except Exception:
            _LOG.exception("The facts of a world cannot be shown to another process.")
            return monotonic() + _AGAIN_S
        return monotonic() + FACTS_S

    def _send_facts(self) -> int:
        """Send the facts unless the reader has them; return how many were sent."""
        with self._sending_facts:
            lab = self._lab
            facts = self._facts if lab is None else lab.facts
            if facts is not None and facts is not self._facts:
                self._wire.send({"event": "facts", "facts": facts.plain()})
                self._facts = facts
                self._num_facts += 1
            return self._num_facts

    def _answer_facts(self) -> dict[str, object]:
        """Send the facts, from now on also when they change."""
        self._pushes_facts = True
        return {"num_facts": self._send_facts()}

    def _listen(self) -> None:
        try:
            due = 0.0
            while True:
                if self._pushes_facts and monotonic() >= due:
                    due = self._push_facts()
                if not self._wire.wait(FACTS_S):
                    continue
                message = self._wire.receive()
                if "channel" in message:
                    self._calls.add(message["descriptor"])
                else:
                    self._heard(message)
        except EOFError:
            pass
        finally:
            self._calls.close()
            self._workers.shutdown(wait=False, cancel_futures=True)
            self._worlds.shutdown(wait=False)
            self._ended()

    def _answer(self, message: Message, send: Callable[[Message], None]) -> None:
        try:
            answer: Message = {"reply": self._carry_out(message)}
        except VerbError as error:
            answer = {"error": [error.code, str(error)]}
        except Exception as error:
            _LOG.exception("A request of another process failed.")
            answer = {"error": ["internal", f"{type(error).__name__}: {error}"]}
        finally:
            if "descriptor" in message:
                os.close(message["descriptor"])
        self.wait_until_sent()
        worlds = self._num_sent
        try:
            send({**answer, "worlds": worlds})
        except TypeError as error:
            send({"error": ["internal", str(error)], "worlds": worlds})

    def _carry_out(self, message: Message) -> dict[str, object]:
        lab = self._lab
        if lab is None:
            raise VerbError("not_ready", "There is no world: it did not compile.")
        if "verb" in message:
            return lab.call(message["verb"], **message["fields"])
        if "catalogue" in message:
            return {"verbs": lab.describe_verbs()}
        if "facts" in message:
            return self._answer_facts()
        if "images" in message:
            return lab.ask_for_images(message["images"], message.get("descriptor"))
        fields = self._fields
        return lab.loop.do(lambda model, data: _values(lab, model, fields), edits_model=False)


def value_fields(model: mujoco.MjModel) -> list[str]:
    """Return the names of a model's arrays, without those that only affect appearance."""
    names = (name for name in dir(model) if not name.startswith(APPEARANCE))
    return [name for name in names if isinstance(getattr(model, name), np.ndarray)]


def _values(lab: LiveLab, model: mujoco.MjModel, fields: list[str]) -> dict[str, object]:
    """Return the present values of a model."""
    return {
        "model_version": lab.loop.model_version,
        "arrays": {name: getattr(model, name).copy() for name in fields},
        "options": read_options(model.opt),
    }
