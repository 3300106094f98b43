"""A page without a browser: hands that click and move what is on it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import mujoco
import pytest

from manyworlds.lab import LabCfg, LiveLab, world_from_spec
from tests.browser import free_port, tell_input
from tests.lab.conftest import ARM


def give(handle: Any, value: Any) -> None:
    """Give an input a value, as a hand on the page does."""
    handle._impl.value = value
    tell_input(handle, SimpleNamespace(client=object(), client_id=1, target=handle))


def press(handle: Any) -> None:
    """Click a button."""
    give(handle, True)


@pytest.fixture
def open_page():
    """Open pages of MJCF texts; without the physics thread, `iterate_once` moves the world on."""
    pytest.importorskip("viser", reason="needs the extra 'lab'")
    pytest.importorskip("viser", reason="needs the extra 'lab'")
    from manyworlds.lab.page import PageServer

    opened = []

    def make(xml: str = ARM, robots=(), errors=None, warnings=(), **kwargs: Any) -> PageServer:
        world = world_from_spec(mujoco.MjSpec.from_string(xml))
        if robots:
            world.robots = {name: f"{name}/" for name in robots}
        world.errors |= errors or {}
        world.warnings += warnings
        lab = LiveLab(world, LabCfg(**kwargs))
        page = PageServer(lab, port=free_port())
        page._due = dict.fromkeys(page._due, float("-inf"))
        for part in page.parts.values():
            part.period = float("-inf")  # each update shows everything
        lab.gathered.max_age = float("-inf")
        opened.append(page)
        return page

    yield make
    for page in opened:
        page.close()
        page.lab.stop()


@pytest.fixture
def page(open_page):
    """A page of the arm."""
    return open_page()
