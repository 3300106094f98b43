"""Hostile bytes for encrypted ports, from strangers and from clients that have the key."""

from __future__ import annotations

import contextlib
import random
import socket
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import zmq

from manyworlds.lab.readers.curve_access import ClientKeys, read_client_keys
from manyworlds.lab.server import HubProcess
from tests.lab.server.hostile import mutate, send_requests, send_subscriptions

FAR = "127.0.0.2"
"""Address of this machine that stands for one that other machines reach."""
_MECHANISMS = (b"CURVE", b"CURVE", b"CURVE", b"NULL", b"PLAIN", b"GSSAPI", b"", b"\xff" * 20)
_COMMANDS = (b"HELLO", b"HELLO", b"HELLO", b"INITIATE", b"READY", b"ERROR", b"MESSAGE", b"WELCOME")
_HELLO_BYTES = 194  # of ZeroMQ's command HELLO, after its name
_SHARE = 20  # one of so many frames is a connection of its own
_BATCH = 500


class Door(NamedTuple):
    """Encrypted ports of a server, and the key that opens them."""

    host: str
    ports: Mapping[str, int]
    """Number of each port, by its use: `step`, `state`, `image`."""
    keys: ClientKeys

    def connect(self, context: zmq.Context, keys: ClientKeys | None) -> zmq.Socket:
        """Return a client of the port of requests."""
        peer = context.socket(zmq.REQ)
        peer.setsockopt(zmq.LINGER, 0)
        peer.setsockopt(zmq.RCVTIMEO, 30_000)
        if keys is not None:
            keys.protect(peer)
        peer.connect(f"tcp://{self.host}:{self.ports['step']}")
        return peer


def door_of(hub: HubProcess) -> Door:
    """Return the encrypted ports of a server that listens at `FAR`."""
    ports = {use: hub.ports[f"secure {use}"] for use in ("step", "state", "image")}
    return Door(FAR, ports, read_client_keys(hub.wait_until_ready()["client_file"]))


def hostile_handshake(rng: random.Random) -> bytes:
    """Return the beginning of a connection: as ZeroMQ has it, mutated, or anything."""
    mechanism = rng.choice(_MECHANISMS).ljust(20, b"\0")
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00" + mechanism + bytes(32)
    name = rng.choice(_COMMANDS)
    body = bytes([len(name)]) + name + b"\x01\x00" + bytes(72) + rng.randbytes(_HELLO_BYTES - 74)
    command = b"\x04" + bytes([len(body)]) + body
    dice = rng.random()
    if dice < 0.3:
        return greeting + command
    if dice < 0.5:
        return greeting + mutate(rng, command)
    if dice < 0.9:
        return mutate(rng, greeting + command * rng.randrange(1, 4))
    return rng.randbytes(rng.randrange(300))


def knock(rng: random.Random, door: Door) -> None:
    """Open a connection with a hostile handshake, and leave."""
    number = rng.choice([*door.ports.values()])
    with (
        contextlib.suppress(ConnectionError, TimeoutError),
        socket.create_connection((door.host, number), 5.0) as peer,
    ):
        peer.sendall(hostile_handshake(rng))
        if rng.random() < 0.1:  # wait for what the server says
            peer.settimeout(0.05)
            peer.recv(100)


def come_as_strangers(context: zmq.Context, door: Door) -> list[zmq.Socket]:
    """Send requests without a key, with another one, and with a client's key but not its secret."""
    public, secret = (key.decode() for key in zmq.curve_keypair())
    own = door.keys
    peers = []
    for keys in (
        None,
        ClientKeys(own.server, public, secret),
        ClientKeys(own.server, own.public, secret),
        ClientKeys(public, own.public, own.secret),
    ):
        peer = door.connect(context, keys)
        with contextlib.suppress(zmq.Again):  # it is not connected, and never will be
            peer.send(b'{"op": "reset"}', zmq.NOBLOCK)
        peers.append(peer)
    return peers


def send_keyed(context: zmq.Context, door: Door, frames: int, seed: int) -> Counter[str]:
    """Send hostile handshakes, requests and subscriptions; strangers get no reply.

    Returns:
        Number of replies to the client that has the key, by operation or code, and of handshakes.
    """
    rng, seen, sent = random.Random(seed), Counter[str](), 0
    strangers = come_as_strangers(context, door)
    peer = door.connect(context, door.keys)

    def ask(frame: bytes) -> bytes:
        peer.send(frame)
        return peer.recv()

    while sent < frames:
        count = min(_BATCH, frames - sent)
        for _ in range(count // _SHARE):
            knock(rng, door)
        quarter = count // 4
        ports = [door.ports[use] for use in ("state", "image")]
        send_subscriptions(context, ports, quarter, seed + sent, door.host, door.keys)
        requests = count - count // _SHARE - quarter
        seen += send_requests(ask, requests, seed + sent)
        seen += Counter(handshakes=count // _SHARE, subscriptions=quarter)
        sent += count
    assert not any(stranger.poll(0) for stranger in strangers), "a stranger was answered"
    for each in (*strangers, peer):
        each.close()
    return seen
