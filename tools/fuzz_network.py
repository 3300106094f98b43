"""Send hostile frames to a lab's server, many more than the tests do.

Run from the project's root: python -m tools.fuzz_network [--face requests] [--frames 1000000]
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro
import zmq

from manyworlds.lab import LabCfg, LiveLab, RecorderCfg
from manyworlds.lab.server import Dispatcher, HubProcess, LabHub, LabServerCfg
from manyworlds.plugins.urlab.control_inbox import ControlInbox
from manyworlds.plugins.urlab.plugin import plugin_of
from manyworlds.plugins.urlab.roster import RosterCache
from tests.lab.server.conftest import two_robots
from tests.lab.server.hostile import (
    put_controls,
    send_pushes,
    send_requests,
    send_subscriptions,
)
from tests.lab.server.hostile_keys import FAR, door_of, send_keyed
from tests.lab.server.hostile_web import Door, attack, send_messages
from tests.lab.server.test_hub import ANY, client_of

_BLOCK = 10_000
"""Frames between two checks of the world."""


@dataclass
class Options:
    """Send hostile frames to a lab's server; stop with an error at the first defect."""

    face: Literal[
        "requests", "controls", "fast_path", "process", "subscriptions", "web", "gate", "keys"
    ] = "requests"
    """`requests` calls the dispatcher, `controls` the inbox of targets, `fast_path` the owner of
    the fast path; `process` sends requests to a server in a process of its own, `subscriptions`
    messages to its ports that publish, and `web` messages, broken handshakes and broken frames to
    its WebSocket; `gate` sends heads of requests to the door of a page, and `keys` broken
    handshakes, requests and subscriptions to the encrypted ports, from strangers and from a client
    that has the key."""
    frames: int = 1_000_000
    minutes: float = 60.0
    """Time after which no further frames are sent."""
    seed: int = 0


def main() -> int:
    """Send the frames, and print what became of them."""
    options = tyro.cli(Options, prog="python -m tools.fuzz_network")
    began, sent, seen = time.monotonic(), 0, Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        cfg = LabCfg(
            mode="direct", start_owner="net", recorder=RecorderCfg(folder=Path(folder) / "here")
        )
        with LiveLab(two_robots(), cfg) as lab, _Face(options.face, lab) as face:
            while sent < options.frames and time.monotonic() - began < 60.0 * options.minutes:
                seen += face.send(min(_BLOCK, options.frames - sent), options.seed + sent)
                sent += _BLOCK
                _check(lab, Path(folder))
                print(f"{sent:,} frames in {time.monotonic() - began:.0f} s", flush=True)
            seen += face.counters
    print(f"{options.face}: {sent:,} frames, no defect; {dict(seen.most_common())}")
    return 0


class _Face:
    """One face of the server, and how frames are sent to it."""

    def __init__(self, name: str, lab: LiveLab) -> None:
        self._name, self._lab = name, lab
        self.counters = Counter[str]()
        """Fate of the frames, if replies do not tell."""

    def __enter__(self) -> _Face:
        if self._name == "requests":
            self._server = Dispatcher(self._lab)
        elif self._name == "controls":
            self._inbox = ControlInbox()
            self._roster = RosterCache().get(self._lab)
            self.counters = self._inbox.stats
        elif self._name == "gate":
            self._door = Door()
        elif self._name == "fast_path":
            self._local = LabHub(LabServerCfg(**ANY))  # its threads do not run
            self._local.attach(self._lab)
        else:
            self._keys = tempfile.TemporaryDirectory()
            far: dict[str, Any] = {"listen": FAR, "key_folder": Path(self._keys.name)}
            self._hub = HubProcess(LabServerCfg(**ANY, **(far if self._name == "keys" else {})))
            self._hub.attach(self._lab)
            self._context = zmq.Context()
            self._peer = client_of(self._context, self._hub)
        return self

    def __exit__(self, *_: object) -> None:
        if self._name == "requests":
            self._server.close()
        elif self._name == "gate":
            self._door.__exit__()
        elif self._name == "fast_path":
            self._local.stop()
        elif self._name != "controls":
            self._context.destroy(linger=0)
            self._hub.close()
            self._keys.cleanup()

    def send(self, frames: int, seed: int) -> Counter[str]:
        """Send hostile frames, and return the number of replies by operation or code."""
        match self._name:
            case "requests":
                return send_requests(lambda f: self._server.handle(f, "a"), frames, seed)
            case "controls":
                put_controls(self._inbox, self._roster, frames, seed)
                self._inbox.flush(self._lab)
            case "fast_path":
                server = plugin_of(self._local.dispatcher).fast_path
                assert server is not None
                server._follow()
                seen = send_pushes(server.answer, frames, seed)
                self._lab.verbs.release_body()
                forces = self._lab.perturbation._forces  # huge ones would stop the world
                self._lab.loop.do(lambda model, data: forces.close())
                return seen
            case "process":
                return send_requests(self._peer.send, frames, seed)
            case "gate":
                return self._door.send(frames, seed)
            case "web":
                return self._send_web(frames, seed)
            case "keys":
                return self._send_keyed(frames, seed)
            case _:
                ports = [self._hub.ports[use] for use in ("state", "image", "info")]
                send_subscriptions(self._context, ports, frames, seed)
                self._peer.hello()  # is still answered
        return Counter()

    def _send_web(self, frames: int, seed: int) -> Counter[str]:
        """Send hostile messages, and nearly as many frames in broken connections."""
        rng, number, broken = random.Random(seed), self._hub.ports["web"], 0
        while broken < frames // 2:
            broken += attack(rng, number)
        seen = send_messages(number, max(frames - broken, 1), seed)
        ports: Any = self._hub.describe()["ports"]
        web = next(port for port in ports if port["use"] == "web")
        assert not web["failures"].get("defects"), web
        assert not self._hub.describe()["problems"] and not self._hub.reports, self._hub.reports
        return seen + Counter(broken=broken)

    def _send_keyed(self, frames: int, seed: int) -> Counter[str]:
        """Send hostile bytes to the encrypted ports; strangers are refused."""
        seen = send_keyed(self._context, door_of(self._hub), frames, seed)
        self._peer.hello(role="takeover")  # is still answered, by the port of this machine
        assert not self._hub.describe()["problems"] and not self._hub.reports, self._hub.reports
        assert self._hub.describe()["refused_keys"], "strangers are not counted"
        return seen


def _check(lab: LiveLab, folder: Path) -> None:
    """Check that the world works, and that nothing was written outside its folder."""
    assert {path.name for path in folder.iterdir()} <= {"here"}, "a file outside the folder"
    lab.verbs.set_mode(mode="direct")
    lab.verbs.reset()
    before = lab.snapshot.step
    assert lab.verbs.step(n_steps=2)["step"] == before + 2, "the world does not step"
    assert np.isfinite(lab.snapshot.qpos).all(), "the state is not finite"


if __name__ == "__main__":
    sys.exit(main())
