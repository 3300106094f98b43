"""Settings of a lab's server."""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from manyworlds.utils.web_access import is_local

SECURE = ("step", "state", "image")
"""Uses of the ports that are also open beyond this machine, encrypted, with `listen`."""
_SECURE_SHIFT = 1000


@dataclass(kw_only=True)
class Limits:
    """Bounds on what one client may send."""

    max_bytes: int = 64 * 2**20
    """Largest message [bytes]; larger ones are not read."""
    max_depth: int = 32
    """Most levels of maps and lists in a message."""
    max_items: int = 200_000
    """Most values in a message."""
    max_rate: float = 20_000.0
    """Most requests of one client per second."""
    max_sessions: int = 64
    """Most sessions; the observer that was silent for longest makes room."""


@dataclass(kw_only=True)
class LabServerCfg:
    """Settings of the server that gives programs access to a lab.

    Raises:
        ValueError: `host` is not an address of this machine alone, or two ports are equal.
    """

    host: str = "127.0.0.1"
    """Address of the ports that cannot authenticate; only loopback is allowed."""
    step_port: int = 5559
    """Port of requests and replies."""
    state_port: int = 5555
    """Port that publishes states."""
    control_port: int = 5556
    """Port that receives targets and gains."""
    info_port: int = 5557
    """Port that publishes lists of actuators."""
    camera_port: int | None = None
    """First port of those that each publish the colors of one camera; None takes the one after
    `info_port`."""
    image_port: int | None = None
    """Port that publishes all kinds of images, with headers; None takes the one after
    `step_port`."""
    fast_path_bus_port: int | None = None
    """Port that publishes poses for programs which draw the world; None takes the one 2 after
    `step_port`. See `manyworlds.plugins.urlab.fast_path`."""
    fast_path_port: int | None = None
    """Port that answers these programs; None takes the one 12 after `step_port`."""
    web_port: int | None = None
    """Port of the WebSocket, for browsers and programs; None takes the one 21 after `step_port`,
    which is 5580 by default."""
    listen: str = ""
    """Address for other machines, such as 0.0.0.0; empty for none. Requests, states and images are
    encrypted there, on ports 1000 higher, and the WebSocket needs a token."""
    key_folder: Path | None = None
    """Folder of the keys for `listen`; None takes the user's folder of settings."""
    web_token: str = ""
    """Token of the WebSocket with `listen`; empty takes that of the user's file, see
    `token_file`."""
    web_origins: tuple[str, ...] = ()
    """Origins of pages that may use the WebSocket, besides the lab's own page."""
    takeover: bool = False
    """True to let the newest client drive; otherwise the first one drives until it leaves."""
    on_loss: Literal["hold", "zero"] = "hold"
    """Targets of the network's robots after their driver is lost: unchanged, or zero."""
    own_robots: bool = True
    """True to give the robots of the panel to the network at the start."""
    limits: Limits = field(default_factory=Limits)
    """Bounds on what one client may send."""
    plugins: tuple[str, ...] = ("manyworlds.plugins.urlab.plugin",)
    """Modules that add services, as `manyworlds.lab.server.plugin` says: URLab's protocols."""

    def __post_init__(self) -> None:
        if not is_local(self.host):
            raise ValueError(
                f"The server cannot open its ports on '{self.host}', because these protocols have "
                "no passwords: host is 127.0.0.1, and listen (--listen) opens encrypted ports for "
                "other machines."
            )
        if self.listen:
            _check_address(self.listen)
        numbers = [*self.ports.values(), *self.secure_ports.values()]
        if not all(0 <= number < 65536 for number in numbers):
            raise ValueError(f"Each port must be from 0 to 65535, got {self.ports}.")
        fixed = [number for number in numbers if number]
        if len(set(fixed)) < len(fixed):
            raise ValueError(f"Each port must be another one, got {self.ports}.")

    @property
    def ports(self) -> dict[str, int]:
        """Ports by their use; 0 takes any free one."""
        return {
            "step": self.step_port,
            "state": self.state_port,
            "control": self.control_port,
            "info": self.info_port,
            "camera": _after(self.info_port, 1, self.camera_port),
            "image": _after(self.step_port, 1, self.image_port),
            "fast_path_bus": _after(self.step_port, 2, self.fast_path_bus_port),
            "fast_path": _after(self.step_port, 12, self.fast_path_port),
            "web": _after(self.step_port, 21, self.web_port),
        }

    @property
    def secure_ports(self) -> dict[str, int]:
        """Encrypted ports by their use; 0 takes any free one; empty without `listen`."""
        if not self.listen:
            return {}
        ports = self.ports
        return {use: _after(ports[use], _SECURE_SHIFT) for use in SECURE if use in ports}

    def to_plain(self) -> dict[str, object]:
        """Return all settings as plain data."""
        folder = str(self.key_folder) if self.key_folder is not None else None
        return {**dataclasses.asdict(self), "key_folder": folder}

    @classmethod
    def from_plain(cls, plain: Mapping[str, object]) -> LabServerCfg:
        """Return the settings that `to_plain` described."""
        settings: dict[str, Any] = dict(plain)
        folder = settings["key_folder"]
        settings["key_folder"] = None if folder is None else Path(folder)
        settings["limits"] = Limits(**settings["limits"])
        settings["web_origins"] = tuple(settings["web_origins"])
        settings["plugins"] = tuple(settings["plugins"])
        return cls(**settings)


def _after(port: int, by: int, chosen: int | None = None) -> int:
    """Return a chosen port, or one at a distance from another; any free one (0) as that one."""
    if chosen is not None:
        return chosen
    return port + by if port else 0


def _check_address(listen: str) -> None:
    try:
        ipaddress.ip_address(listen)
    except ValueError:
        raise ValueError(
            f"'{listen}' is no address to listen on: give an address of this machine in its "
            "network, or 0.0.0.0 for all of them."
        ) from None
