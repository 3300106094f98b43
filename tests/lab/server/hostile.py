"""Hostile frames, and programs that send them."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import cast

import msgpack
import zmq

from manyworlds.lab.readers.curve_access import ClientKeys
from manyworlds.plugins.urlab.control_inbox import ControlInbox
from manyworlds.plugins.urlab.roster import Roster
from manyworlds.plugins.urlab.streams import pack_control
from tests.lab.server.all_operations import OPERATIONS

SLOW = {"export_model", "hello", "begin_pie"}  # correct, but many of them take long
STEPS = {"step", "show_state", "call_verb"}  # may make many steps, if a number says so
WILD = (
    *(None, True, False, 0, -1, 1, 3, 2**63, -(2**63), 1e308, -1e308, 0.5, float("inf")),
    *(float("nan"), "", "go", "go2", "hip", "net", "../../x", "a" * 5000, "\0", "\ud7ff", b""),
    *(b"\xff" * 9, [], {}, [[]], [0] * 7, [float("nan")] * 3, {"hip": 1}, {"go": {"ctrl": [1]}}),
    *({"": None}, ["go"], {"kp": {"hip": -1}}, [1e300] * 6),
)
TOPICS = (b"go/control ", b"go/set_gains ", b"box/control", b"goo/control", b"go2/fly", b"")
TARGETS = pack_control([(0, 0.25), (1, -0.5)])
GAINS = b'{"hip": {"kp": 1.0, "kv": 2.0, "torque_limit": 3.0}}'
_PUSH = (
    *("body", "force", "torque", "select", "active", "localpos", "refselpos", "refquat"),
    *("drag", "op"),
)
_LONGEST_S = 30.0
_MOST_EXPIRED = 5  # replies in turn that say that the session ended


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
            frame = cast("bytes", msgpack.packb(request))
        else:
            frame = json.dumps(request, default=repr).encode(errors="replace")
    except (ValueError, OverflowError, UnicodeEncodeError):
        frame = b"{"
    dice = rng.random()
    if dice < 0.4:
        return frame
    return mutate(rng, frame) if dice < 0.9 else rng.randbytes(rng.randrange(200))


def hostile_control(rng: random.Random) -> list[bytes]:
    """Return a message to the control port: as it should be, mutated, or of another shape."""
    frames = [rng.choice(TOPICS), rng.choice([TARGETS, GAINS])]
    frames = [mutate(rng, frame) if rng.random() < 0.5 else frame for frame in frames]
    if rng.random() < 0.05:
        frames = frames[: rng.randrange(2)] + [rng.randbytes(9)] * rng.randrange(3)
    return frames


def send_requests(send: Callable[[bytes], bytes], frames: int, seed: int) -> Counter[str]:
    """Send hostile requests; check that each has a proper reply in time.

    Args:
        send: returns the reply to a request.
        frames: number of requests.
        seed: seed of the requests.

    Returns:
        Number of replies by operation or code.
    """
    rng, seen, expired = random.Random(seed), Counter[str](), 0
    key = msgpack.unpackb(send(b'{"op": "hello"}'))["session_id"]
    for number in range(frames):
        frame = hostile_request(rng, key)
        began = time.monotonic()
        reply = send(frame)
        assert time.monotonic() - began < _LONGEST_S, (number, frame)
        # A mutated greeting may have set the session's format; another one ends the old session.
        answer = json.loads(reply) if reply[:1] == b"{" else msgpack.unpackb(reply)
        assert answer["op"] == "error" or answer["op"].endswith("_ok"), (number, frame)
        assert answer.get("code") != "internal_error", (number, frame, answer["message"])
        seen[answer.get("code", answer["op"])] += 1
        expired = expired + 1 if answer.get("code") == "session_expired" else 0
        if answer["op"] == "hello_ok":
            key = answer["session_id"]
        elif expired == _MOST_EXPIRED:
            key = msgpack.unpackb(send(b'{"op": "hello"}'))["session_id"]
            seen["greetings"] += 1
    return seen


def hostile_push(rng: random.Random) -> bytes:
    """Return a push of the fast path that is well formed but wild, or broken, or none at all."""
    chosen = rng.sample(_PUSH, rng.randrange(8))
    request = {"op": "fastpath_perturb", **{name: rng.choice(WILD) for name in chosen}}
    try:
        frame = cast("bytes", msgpack.packb(request))
    except (ValueError, OverflowError):
        frame = b"{"
    dice = rng.random()
    if dice <= 0.5:
        return frame
    return mutate(rng, frame) if dice < 0.95 else rng.randbytes(rng.randrange(200))


def send_pushes(
    answer: Callable[[list[bytes], int], bytes], frames: int, seed: int
) -> Counter[str]:
    """Send hostile requests of the fast path; check that each has a proper reply.

    Args:
        answer: returns the reply to the frames of a request, and to the number of its sender.
        frames: number of requests.
        seed: seed of the requests.

    Returns:
        Number of replies by their key: `ok` or `error`.
    """
    rng, seen = random.Random(seed), Counter[str]()
    for number in range(frames):
        frame = hostile_push(rng)
        reply = msgpack.unpackb(answer([frame], number))
        assert set(reply) in ({"ok"}, {"error"}), (frame, reply)
        assert "The request failed" not in reply.get("error", ""), (frame, reply)
        seen.update(reply.keys())
    return seen


def put_controls(inbox: ControlInbox, roster: Roster, frames: int, seed: int) -> None:
    """Hand hostile messages of the control port to an inbox."""
    rng = random.Random(seed)
    for _ in range(frames):
        inbox.put(hostile_control(rng), roster)


def send_subscriptions(
    context: zmq.Context,
    ports: list[int],
    frames: int,
    seed: int,
    host: str = "127.0.0.1",
    keys: ClientKeys | None = None,
) -> None:
    """Send hostile subscriptions and messages to ports that publish."""
    rng, good = random.Random(seed), (b"image/side/rgb", b"go/joint/", b"state/full", b"scene/")
    peers = []
    for port in ports:
        peer = context.socket(zmq.XSUB)
        peer.setsockopt(zmq.LINGER, 0)
        if keys is not None:
            keys.protect(peer)
        peer.connect(f"tcp://{host}:{port}")
        peers.append(peer)
    for _ in range(frames):
        peer, topic = rng.choice(peers), mutate(rng, rng.choice(good))
        peer.send(rng.choice([b"\x01", b"\x00", b"", b"\x02"]) + topic)
        while peer.poll(0):
            peer.recv()
    for peer in peers:
        peer.close()
