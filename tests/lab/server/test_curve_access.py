"""Ports for programs on other machines: encrypted, for those who have the key."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import msgpack
import pytest
import zmq

from manyworlds.lab.client import LabConnectionError
from manyworlds.lab.client import connect as connect_client
from manyworlds.lab.readers.curve_access import ClientKeys, CurveAccess, read_client_keys
from manyworlds.lab.server import LabHub, LabServerCfg
from tests.lab.server.client import Client
from tests.lab.server.conftest import lab
from tests.lab.server.test_hub import connect
from tests.lab.server.waiting import ANY, until

__all__ = ["lab"]


@pytest.fixture
def context():
    """ZeroMQ's context of the clients."""
    with zmq.Context() as context:
        yield context
        context.destroy(linger=0)


@pytest.fixture
def hub(lab, tmp_path):
    """A hub that also listens for other machines; here, on another address of this one."""
    cfg = LabServerCfg(**ANY, listen="127.0.0.2", key_folder=tmp_path / "keys")
    with LabHub(cfg) as hub:
        hub.attach(lab)
        until(hub.is_open, "the ports are not open")
        yield hub


def reach(context, hub, use: str, keys: ClientKeys | None, kind: int = zmq.REQ) -> zmq.Socket:
    """Connect to an encrypted port."""
    peer = context.socket(kind)
    peer.setsockopt(zmq.LINGER, 0)
    if keys is not None:
        keys.protect(peer)
    if kind == zmq.SUB:
        peer.setsockopt(zmq.SUBSCRIBE, b"")
    peer.connect(f"tcp://127.0.0.2:{hub.ports[f'secure {use}']}")
    return peer


def test_requests_and_states_with_the_key(lab, hub, context):
    """Copy the key file to a client: requests are answered, and states come; both are encrypted."""
    keys = read_client_keys(hub.access.client_file)
    peer = reach(context, hub, "step", keys)

    def send(request: bytes) -> bytes:
        peer.send(request)
        assert peer.poll(20_000)
        return peer.recv()

    client = Client(send)
    client.hello()
    assert client.ask("step", n_steps=3)["step"] == 3
    states = reach(context, hub, "state", keys, zmq.SUB)
    until(lambda: lab.step() and states.poll(50), "no state comes")
    topics = {states.recv_multipart()[0] for _ in range(3)}
    assert all(topic.startswith(b"go") for topic in topics)
    plain = connect(context, hub.ports["state"], zmq.SUB, b"state/full")
    until(lambda: lab.step() and plain.poll(50), "no state comes to programs on this machine")
    assert msgpack.unpackb(plain.recv_multipart()[1])["step"] == lab.snapshot.step
    assert hub.access.num_refused == 0


def test_the_client_takes_the_key_file(lab, hub, tmp_path):
    """Connect as another machine does: a client needs the file, which only its owner may read."""
    address = f"tcp://127.0.0.2:{hub.ports['secure step']}"
    with connect_client(address, keys=hub.access.client_file) as client:
        client.step(3)
        assert lab.snapshot.step == 3
    with pytest.raises(LabConnectionError, match="or give its address"):
        connect_client(address, patience=0.3)
    far = "tcp://198.51.100.1:6559"  # an address that no machine has
    with pytest.raises(LabConnectionError, match=r"--listen.*only with `keys`, a copy of"):
        connect_client(far, patience=0.3)
    with pytest.raises(LabConnectionError, match="whose client.key is the file of `keys`"):
        connect_client(far, patience=0.3, keys=hub.access.client_file)
    with pytest.raises(FileNotFoundError, match="copy client.key from the machine of the lab"):
        connect_client(far, keys=tmp_path / "none.key")
    copy = tmp_path / "copy.key"
    copy.write_bytes(hub.access.client_file.read_bytes())
    copy.chmod(0o644)
    with pytest.raises(ValueError, match="chmod 600"):
        connect_client(address, keys=copy)


def test_others_are_not_answered(lab, hub, context):
    """Come without a key, with another client's, and with another server's: nobody answers."""
    good = read_client_keys(hub.access.client_file)
    public, secret = (key.decode() for key in zmq.curve_keypair())
    strangers = {
        "none": None,
        "another client": ClientKeys(good.server, public, secret),
        "another secret": ClientKeys(good.server, good.public, secret),
        "another server": ClientKeys(public, good.public, good.secret),
    }
    peers = [reach(context, hub, "step", keys) for keys in strangers.values()]
    peers += [reach(context, hub, "state", keys, zmq.SUB) for keys in strangers.values()]
    for peer in peers[: len(strangers)]:
        peer.send(b'{"op": "hello"}', zmq.NOBLOCK)
    lab.step(5)
    until(lambda: hub.access.num_refused >= 2, "refused keys are not counted")
    assert not any(peer.poll(100) for peer in peers)
    assert hub.dispatcher.requests["hello"] == 0 and len(hub.dispatcher.sessions) == 0
    assert hub.describe()["refused_keys"] == hub.access.num_refused


def test_old_protocols_stay_on_this_machine(hub):
    """Look at the ports: only requests, states and images are open there, and all are encrypted."""
    far = [port for port in hub._ports() if port.host == "127.0.0.2"]
    uses = {"secure step", "secure state", "secure image", "web"}
    assert {port.use for port in far} == uses
    assert all(port is hub.web or port.is_secure for port in far)
    assert all(port.host == "127.0.0.1" for port in hub._ports() if port not in far)
    for host in ("0.0.0.0", "192.0.2.1", "example.org"):
        with pytest.raises(ValueError, match="have no passwords.*--listen"):
            LabServerCfg(host=host)
    with pytest.raises(ValueError, match="no address to listen on"):
        LabServerCfg(listen="everywhere")
    assert LabServerCfg(listen="0.0.0.0").secure_ports == {
        "step": 6559,
        "state": 6555,
        "image": 6560,
    }


def start(folder: Path) -> None:
    """Start a check of keys, and end it."""
    with zmq.Context() as context:
        CurveAccess(context, folder).close()


def test_keys_are_made_once(tmp_path):
    """Start twice: the files are the same, and only their owner can read them."""
    folder = tmp_path / "new" / "keys"
    start(folder)
    texts = {path.name: path.read_text() for path in folder.iterdir()}
    assert set(texts) == {"server.key", "client.key"}
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in folder.iterdir())
    server = json.loads(texts["server.key"])
    assert server["secret"] not in texts["client.key"]
    assert server["public"] in texts["client.key"]
    start(folder)
    assert texts == {path.name: path.read_text() for path in folder.iterdir()}
    (folder / "client.key").unlink()
    start(folder)  # a lost file is made again
    assert texts == {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["server.key", "client.key"])
def test_bad_key_files(tmp_path, name):
    """Open a file to others, empty it, and exchange it: one sentence says what to do."""
    start(tmp_path)
    path = tmp_path / name
    path.chmod(0o640)
    with pytest.raises(ValueError, match="Other users can read .*chmod 600"):
        start(tmp_path)
    path.chmod(0o600)
    whole = path.read_text()
    for text in ("", "[]", "{}", whole[:50], whole.replace('"public"', '"publik"')):
        path.write_text(text)
        with pytest.raises(ValueError, match="has no keys"):
            start(tmp_path)
    path.unlink()
    if name == "server.key":
        with pytest.raises(ValueError, match="is of another server"):
            start(tmp_path)
