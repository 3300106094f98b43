"""Hostile bytes: nothing fails, nothing hangs, nothing moves."""

from __future__ import annotations

import json
import random
import time

import msgpack
import numpy as np
import pytest

from manyworlds.lab import LabCfg, LiveLab, RecorderCfg
from manyworlds.lab.network import OPERATIONS, Dispatcher
from manyworlds.lab.network.control_inbox import ControlInbox
from manyworlds.lab.network.roster import RosterCache
from manyworlds.lab.network.streams import pack_control
from tests.lab.network.conftest import two_robots

FRAMES = 10_000
SLOW = {"export_model", "hello", "begin_pie"}  # correct, but many of them take long
STEPS = {"step", "show_state", "call_verb"}  # may make many steps, if a number says so
WILD = (
    *(None, True, False, 0, -1, 1, 3, 2**63, -(2**63), 1e308, -1e308, 0.5, float("inf")),
    *(float("nan"), "", "go", "go2", "hip", "net", "../../x", "a" * 5000, "\0", "\ud7ff", b""),
    *(b"\xff" * 9, [], {}, [[]], [0] * 7, [float("nan")] * 3, {"hip": 1}, {"go": {"ctrl": [1]}}),
    *({"": None}, ["go"], {"kp": {"hip": -1}}, [1e300] * 6),
)


@pytest.fixture
def lab(tmp_path):
    """A paused lab of two robots, whose recordings lie in a folder."""
    cfg = LabCfg(mode="direct", start_owner="net", recorder=RecorderCfg(folder=tmp_path / "here"))
    with LiveLab(two_robots(), cfg) as lab:
        yield lab


def mutate(rng: random.Random, frame: bytes) -> bytes:
    """Flip, cut, repeat or replace bytes."""
    data = bytearray(frame)
    for _ in range(rng.randrange(1, 6)):
        place = rng.randrange(len(data)) if data else 0
        kind = rng.randrange(5)
        if kind == 0 and data:
            data[place] = rng.randrange(256)
        elif kind == 1:
            del data[place:]
        elif kind == 2:
            data[place:place] = rng.randbytes(rng.randrange(1, 9))
        elif kind == 3:
            data += data[place:]
        elif data:
            del data[place]
    return bytes(data[:20_000])


def hostile_request(rng: random.Random, key: str) -> bytes:
    """Return a request that is well formed but wild, or broken, or no request at all."""
    name = rng.choice([*OPERATIONS, "spawn_actor", "fly", ""])
    if name in SLOW or name in STEPS:
        name = "set_targets" if rng.random() < 0.9 else name
    operation = OPERATIONS.get(name)
    fields = {f: rng.choice(WILD) for f in (operation.fields if operation else ())}
    fields.pop("n_steps", None)
    if name == "call_verb":
        fields["verb"] = rng.choice(["set_paused", "read_status", "fly"])
    request = {"op": name, "session_id": key if rng.random() < 0.95 else "0", **fields}
    try:
        if rng.random() < 0.5:
            frame = msgpack.packb(request)
        else:
            frame = json.dumps(request, default=repr).encode(errors="replace")
    except (ValueError, OverflowError, UnicodeEncodeError):
        frame = b"{"
    dice = rng.random()
    if dice < 0.4:
        return frame
    return mutate(rng, frame) if dice < 0.9 else rng.randbytes(rng.randrange(200))


def test_hostile_requests(lab, tmp_path):
    """Send 10 000 hostile requests: each has a reply in time, counted; the server works after."""
    rng = random.Random(0)
    server = Dispatcher(lab)
    key = msgpack.unpackb(server.handle(b'{"op": "hello"}', "a"))["session_id"]
    longest, greetings = 0.0, 1
    for i in range(FRAMES):
        frame = hostile_request(rng, key)
        began = time.monotonic()
        reply = server.handle(frame, "a")
        longest = max(longest, time.monotonic() - began)
        # A mutated greeting may have set the session's format; another one ends the old session.
        answer = json.loads(reply) if reply[:1] == b"{" else msgpack.unpackb(reply)
        assert answer["op"] == "error" or answer["op"].endswith("_ok"), (i, frame)
        assert answer.get("code") != "internal_error", (i, frame, answer["message"])
        current = server.sessions.of_peer("a")
        if current is None:  # by `close_session`
            server.handle(b'{"op": "hello"}', "a")
            greetings += 1
            current = server.sessions.of_peer("a")
        assert current is not None
        key = current.id
    assert longest < 30.0
    counted = sum(server.errors.values()) + sum(server.requests.values())
    assert counted == FRAMES + greetings and server.errors["bad_request"] > 1000
    assert sum(server.requests.values()) > 100
    assert {path.name for path in tmp_path.iterdir()} <= {"here"}
    lab.call("reset")
    before = lab.snapshot.step
    assert lab.call("step", n_steps=2)["step"] == before + 2


def test_hostile_controls(lab):
    """Send 10 000 hostile messages to the control port: none moves another actuator."""
    rng = random.Random(1)
    roster = RosterCache(lab).get()
    inbox = ControlInbox()
    good = pack_control([(0, 0.25), (1, -0.5)])
    gains = b'{"hip": {"kp": 1.0, "kv": 2.0, "torque_limit": 3.0}}'
    topics = [b"go/control ", b"go/set_gains ", b"box/control", b"goo/control", b"go2/fly", b""]
    for _ in range(FRAMES):
        frames = [rng.choice(topics), rng.choice([good, gains])]
        frames = [mutate(rng, f) if rng.random() < 0.5 else f for f in frames]
        if rng.random() < 0.05:
            frames = frames[: rng.randrange(2)] + [rng.randbytes(9)] * rng.randrange(3)
        inbox.put(frames, roster)
    assert inbox.stats["messages"] == FRAMES
    for counter in ("malformed", "unknown_robot", "unknown_topic", "unknown_actuator", "control"):
        assert inbox.stats[counter] > 50, counter
    inbox.flush(lab)
    assert lab["go2"].command.targets.tolist() == [0.0, 0.0]
    assert np.isfinite(lab["go"].command.targets).all()
    inbox.put([b"go/control", good], roster)
    inbox.flush(lab)
    assert lab["go"].command.targets.tolist() == [0.25, -0.5]
