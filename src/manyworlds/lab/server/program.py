"""Program that serves a lab to programs; see `ReaderProgram`."""

from __future__ import annotations

import sys
import threading
import time

from manyworlds.lab.readers.reader_program import ReaderProgram, run_program
from manyworlds.lab.readers.wire import Message
from manyworlds.lab.server.config import LabServerCfg
from manyworlds.lab.server.hub import LabHub
from manyworlds.lab.server.ports import why_all_wait

_OPEN_S = 5.0  # longest wait for the ports at the start
_SWITCH_S = 0.0005  # longest turn of a thread while another one waits; Python's is 5 ms
_LOOK_S = 0.05
_TELL_S = 0.5
_URGENT = ("driver", "held", "problems", "reports")
"""Parts of the description that the lab's process gets at once; it gets the counters later."""


class HubProgram(ReaderProgram):
    """Serves the lab, and does what its process says."""

    _hub: LabHub
    _is_open = False

    def open(self, settings: Message) -> dict[str, object]:
        """Open the ports, and return them."""
        self._early: list[str] | None = []
        self._reporting = threading.Lock()
        cfg = LabServerCfg.from_plain(settings["server"])
        self._hub = LabHub(cfg, self._report, settings["lab_id"])
        self._keep_owners = settings.get("keep_owners", False)
        # A thread that encodes states must not keep the one that answers requests waiting.
        sys.setswitchinterval(_SWITCH_S)
        self._told: dict[str, object] = {}
        self._telling = threading.Lock()
        # The end of this process must not leave the world as a driver has made it.
        self._hub.on_driver = self._tell_status
        self._is_open = True
        self._hub.start()
        self._hub.wait_until_open(_OPEN_S)
        threading.Thread(target=self._watch, name="status", daemon=True).start()
        access = self._hub.access
        file = "" if access is None else str(access.client_file)
        waiting = [port["use"] for port in self._hub.dispatcher.ports() if port["error"]]
        self._report_start()
        return {"ports": self._hub.ports, "waiting": waiting, "client_file": file}

    def show(self) -> None:
        """Serve the lab in place of the one before."""
        self._hub.attach(None)
        self.lab.sync_model()
        try:
            self._hub.attach(self.lab, keep_owners=self._keep_owners)
        except Exception:
            self._hub.attach(None)
            raise
        self._keep_owners = False  # of further labs

    def take(self, message: Message) -> bool:
        """Serve no lab, let nobody drive, or admit a page."""
        match message["event"]:
            case "no_lab":
                self._hub.attach(None)
                self.lab.tell("left")
            case "allow_page":
                self._hub.allow_page(message["url"])
            case "release_driver":
                self._hub.release_driver(message["reason"])
            case _:
                return False
        return True

    def release(self) -> None:
        """Close the ports, and remove the file that names them."""
        if self._is_open:
            self._hub.stop()

    def _report(self, text: str) -> None:
        """Tell a sentence for people; at the start, keep it until all ports were tried."""
        with self._reporting:
            if self._early is not None:
                self._early.append(text)
                return
        self.lab.tell("report", text=text)

    def _report_start(self) -> None:
        """Tell of all ports in use together, and then of what else happened at the start."""
        ports = list(self._hub.dispatcher.ports())
        with self._reporting:
            early = self._early or []
            self._early = None
        known = {port["error"] for port in ports}
        for text in [*why_all_wait(ports), *(text for text in early if text not in known)]:
            self._report(text)

    def _watch(self) -> None:
        """Tell the lab's process what has changed, counters now and then."""
        at = 0.0
        while True:
            present = self._hub.describe()
            now = time.monotonic()
            urgent = any(present[key] != self._told.get(key) for key in _URGENT)
            if urgent or (present != self._told and now - at > _TELL_S):
                at = now
                self._tell_status()
            time.sleep(_LOOK_S)

    def _tell_status(self) -> None:
        with self._telling:
            self._told = self._hub.describe()
            self.lab.tell("status", status=self._told)


def main() -> None:
    """Serve a lab until SIGTERM; the only argument is the file descriptor of the wire."""
    run_program(HubProgram)
