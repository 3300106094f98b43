"""Keys of programs on other machines: CURVE, ZeroMQ's encryption.

The server knows the public key of its clients, and they know the server's. Both pairs of keys are
made once; a client on another machine gets a copy of the file `client.key`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyworlds.utils.extras import require_extra
from manyworlds.utils.platforms import config_folder, read_private, write_private_once

if TYPE_CHECKING:
    import zmq

SERVER_FILE = "server.key"
"""Name of the file with the keys of the server."""
CLIENT_FILE = "client.key"
"""Name of the file that programs on other machines need a copy of."""
_DOMAIN = b"manyworlds"
_KEY_CHARACTERS = 40


@dataclass(frozen=True)
class ClientKeys:
    """Keys with which a client reaches an encrypted port: the content of `client.key`."""

    server: str
    """Public key of the server."""
    public: str
    secret: str

    def protect(self, socket: zmq.Socket) -> None:
        """Encrypt a client's socket, before it is connected."""
        zmq: Any = require_extra("zmq", "net")
        socket.setsockopt(zmq.CURVE_SERVERKEY, self.server.encode())
        socket.setsockopt(zmq.CURVE_PUBLICKEY, self.public.encode())
        socket.setsockopt(zmq.CURVE_SECRETKEY, self.secret.encode())


def read_client_keys(path: Path | str) -> ClientKeys:
    """Return the keys in a copy of the file `client.key`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: others can read it, or it has no keys.
    """
    try:
        return ClientKeys(**_read(Path(path), ("server", "public", "secret")))
    except FileNotFoundError:
        raise FileNotFoundError(
            f"There is no file of keys '{path}': copy client.key from the machine of the lab, "
            "which prints its path at the start."
        ) from None


def key_folder() -> Path:
    """Return the folder of keys in the user's folder of settings."""
    return config_folder()


class CurveAccess:
    """Encrypts sockets of a server, and lets in clients that have the secret key alone.

    Args:
        context: ZeroMQ's context of the sockets.
        folder: folder of the files `server.key` and `client.key`, which are made if they are not
            there; None takes `key_folder`.

    Raises:
        ValueError: others can read a file, or it has no keys.
        OSError: a file cannot be written.
    """

    def __init__(self, context: zmq.Context, folder: Path | None = None) -> None:
        self._zmq: Any = require_extra("zmq", "net")
        folder = key_folder() if folder is None else folder
        self.client_file = folder / CLIENT_FILE
        """File for programs on other machines."""
        self.num_refused = 0
        """Number of connections with other keys."""
        self._keys = _server_keys(folder / SERVER_FILE)
        client = {key: self._keys[f"client_{key}"] for key in ("public", "secret")}
        _write_once(self.client_file, {"server": self._keys["public"], **client})
        if read_client_keys(self.client_file).server != self._keys["public"]:
            raise ValueError(
                f"'{self.client_file}' is of another server than '{folder / SERVER_FILE}': delete "
                "it, and copy the new one to the clients."
            )
        auth: Any = require_extra("zmq.auth.thread", "net")
        self._thread = auth.ThreadAuthenticator(context)
        self._thread.start()
        self._thread.configure_curve_callback(_DOMAIN.decode(), self)

    def protect(self, socket: zmq.Socket) -> None:
        """Encrypt a socket of the server, before it is bound."""
        socket.setsockopt(self._zmq.ZAP_DOMAIN, _DOMAIN)
        socket.setsockopt(self._zmq.CURVE_SERVER, 1)
        socket.setsockopt(self._zmq.CURVE_SECRETKEY, self._keys["secret"].encode())

    def callback(self, domain: str, key: bytes) -> bool:
        """Return True if a client's public key is known; ZeroMQ has checked its secret key."""
        allowed = key == self._keys["client_public"].encode()
        self.num_refused += not allowed
        return allowed

    def close(self) -> None:
        """End the thread that checks keys."""
        self._thread.stop()


def _server_keys(path: Path) -> dict[str, str]:
    """Return the keys of the server, and those that it gives to clients; make them at first."""
    zmq: Any = require_extra("zmq", "net")
    names = ("public", "secret", "client_public", "client_secret")
    fresh = [key.decode() for key in (*zmq.curve_keypair(), *zmq.curve_keypair())]
    _write_once(path, dict(zip(names, fresh, strict=True)))
    return _read(path, names)


def _write_once(path: Path, keys: dict[str, str]) -> None:
    write_private_once(path, json.dumps(keys, indent=1))


def _read(path: Path, names: tuple[str, ...]) -> dict[str, str]:
    text = read_private(path, "the keys")
    try:
        keys = {name: json.loads(text)[name] for name in names}
    except (ValueError, KeyError, TypeError):
        keys = {}
    if not keys or not all(isinstance(k, str) and len(k) == _KEY_CHARACTERS for k in keys.values()):
        raise ValueError(
            f"'{path}' has no keys ({', '.join(names)}, of {_KEY_CHARACTERS} characters): delete "
            "it for new ones, and copy the new client.key to the clients."
        )
    return keys
