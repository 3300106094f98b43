"""Settings of a lab's page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypedDict

from manyworlds.lab.page.tabs import TABS, Tabs


@dataclass(frozen=True)
class PageCfg:
    """Settings of a lab's page."""

    host: str = "127.0.0.1"
    """Address of the page; '0.0.0.0' accepts connections from the whole network, with the token
    that the page's `url` has."""
    port: int = 8080
    """Port of the page; if it is in use, the next free one is taken. See the page's `url`."""
    frame_rate: float = 30.0
    """Largest number of frames per second [1/s]; while a caller waits for steps of a loop in the
    page's process, as many as take a hundredth of a core."""
    collapsed: bool = False
    """Whether the panel is hidden until a user presses Tab."""
    tabs: Tabs = field(default_factory=lambda: TABS)
    """Parts of each tab; see `TABS`. A page in a process of its own imports them: they are classes
    of modules, not of the program itself, or names `module:Class`."""
    play_when_drawn: bool = False
    """Whether a paused lab plays as soon as a browser has drawn the world."""
    token: str = ""
    """Token of a page that other machines may open; a random one if empty."""
    web_origins: Sequence[str] = ()
    """Further origins of pages that may talk to this one, and show it in a frame, for example
    `https://hub.example.org` of a proxy or a notebook."""
    title: str = ""
    """Name of the world on the page and in the browser's tab; that of the model if empty."""
    network_port: int = 0
    """Port of the WebSocket of the lab's server, by which the page shows who drives, and drives
    with keys; 0 for none."""


class PageKeywords(TypedDict, total=False):
    """Settings of `PageCfg` as keyword arguments."""

    host: str
    port: int
    frame_rate: float
    collapsed: bool
    tabs: Tabs
    play_when_drawn: bool
    token: str
    web_origins: Sequence[str]
    title: str
    network_port: int
