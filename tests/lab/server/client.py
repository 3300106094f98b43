"""A small client of the protocol, written from the wire document alone."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import msgpack
import mujoco

from tests.waiting import PATIENCE_S


class ReplyError(Exception):
    """An error frame."""

    def __init__(self, frame: dict[str, Any]) -> None:
        super().__init__(frame["message"])
        self.code = frame["code"]


class Client:
    """Talks to anything that maps the bytes of a request to those of a reply."""

    def __init__(self, send: Callable[[bytes], bytes], encoding: str = "msgpack") -> None:
        self.send, self.encoding = send, encoding
        self.session_id = None
        self.world: dict[str, Any] = {}

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """Send a request; raise an error frame, or return the reply."""
        request = {"op": op, "session_id": self.session_id, **fields}
        packed = json.dumps(request).encode() if self.is_json else msgpack.packb(request)
        answer = self.send(packed)
        reply = json.loads(answer) if self.is_json else msgpack.unpackb(answer)
        if reply["op"] == "error":
            raise ReplyError(reply)
        assert reply["op"] == f"{op}_ok"
        return reply

    @property
    def is_json(self) -> bool:
        """True in a session of JSON."""
        return self.encoding == "json"

    def hello(self, **fields: Any) -> dict[str, Any]:
        """Begin a session as an old client does; while the model is exported, ask again."""
        more = {"encoding": "json"} if self.is_json else {}
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.world = self.ask("hello", observations="standard", **more, **fields)
                break
            except ReplyError as error:
                if "ask again" not in str(error) or time.monotonic() > end:
                    raise
        self.session_id = self.world["session_id"]
        return self.world

    def model(self) -> mujoco.MjModel:
        """Load the model that came with the greeting."""
        return mujoco.MjModel.from_binary_path("m.mjb", {"m.mjb": self.world["mjb"]})
