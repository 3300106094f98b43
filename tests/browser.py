"""A real browser for tests, and a port to serve it on."""

from __future__ import annotations

import contextlib
import inspect
import shutil
import socket
from collections.abc import Iterator
from typing import Any

import pytest


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def tell_input(handle: Any, event: Any) -> None:
    """Run what runs when a user has given an input of a page its present value."""
    for call in list(handle._impl.update_cb):
        if inspect.iscoroutinefunction(call):
            with contextlib.suppress(StopIteration):
                call(event).send(None)
        else:
            call(event)


# Without a graphics card one picture takes up to seconds, and pages draw as many as they can: one
# in a while leaves time for everything else.
FEW_PICTURES = """
const draw = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = call => setTimeout(() => draw(call), 250);
window.cancelAnimationFrame = clearTimeout;
document.addEventListener("DOMContentLoaded", () => {
    // Viser fades the first five pictures in.
    const style = document.createElement("style");
    style.textContent = "canvas { opacity: 1 !important; }";
    document.head.append(style);
});
"""


@contextlib.contextmanager
def open_chromium() -> Iterator[Any]:
    """A real browser of playwright; skip, and say why, where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright, of the extra 'dev'")
    names = ("chromium", "chromium-browser", "google-chrome")
    browser_path = next(filter(None, map(shutil.which, names)), None)
    if browser_path is None:
        pytest.skip("needs a browser: apt-get install chromium")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=browser_path,
            args=[
                "--no-sandbox",
                "--disable-background-networking",
                "--use-angle=swiftshader",
                "--enable-unsafe-swiftshader",
            ],
        )
        yield chromium
        chromium.close()


@pytest.fixture
def browser():
    """A page of a real browser, 800 x 480; skip, and say why, where there is none."""
    with open_chromium() as chromium:
        page = chromium.new_page(viewport={"width": 800, "height": 480})
        page.add_init_script(FEW_PICTURES)
        page.set_default_timeout(120_000)
        yield page
