"""Settings of a lab's server."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from manyworlds.utils.web_access import is_local

_WEB_SHIFT = 21


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
    """Address to listen on. The protocols have no passwords: only loopback is allowed."""
    step_port: int = 5559
    """Port of requests and replies."""
    state_port: int = 5555
    """Port that publishes states."""
    control_port: int = 5556
    """Port that receives targets and gains."""
    info_port: int = 5557
    """Port that publishes lists of actuators."""
    web_port: int | None = None
    """Port of the WebSocket, for browsers and programs; None takes the one 21 after `step_port`,
    which is 5580 by default."""
    listen: str = ""
    """Address of the WebSocket for other machines, such as 0.0.0.0, where it needs a token; empty
    for this machine only."""
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

    def __post_init__(self) -> None:
        if not is_local(self.host):
            raise ValueError(
                f"The server cannot listen on '{self.host}': these protocols have no passwords, so "
                "that only 127.0.0.1 is allowed."
            )
        ports = [port for port in self.ports.values() if port]
        if not all(0 < port < 65536 for port in ports):
            raise ValueError(f"Each port must be from 0 to 65535, got {self.ports}.")
        if len(set(ports)) < len(ports):
            raise ValueError(f"Each port must be another one, got {self.ports}.")

    @property
    def ports(self) -> dict[str, int]:
        """Ports by their use; 0 takes any free one."""
        above = self.step_port and self.step_port + _WEB_SHIFT
        return {
            "step": self.step_port,
            "state": self.state_port,
            "control": self.control_port,
            "info": self.info_port,
            "web": above if self.web_port is None else self.web_port,
        }
