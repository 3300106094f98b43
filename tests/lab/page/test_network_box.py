"""The box of the page that talks to the lab's server, in a real browser."""

from __future__ import annotations

import json
import socket

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from manyworlds.lab import LabCfg, LiveLab
from manyworlds.lab.page.page_boxes import box_html
from manyworlds.lab.server import LabHub, LabServerCfg
from tests.browser import free_port
from tests.lab.page.test_browser import until
from tests.lab.server.client import ReplyError
from tests.lab.server.conftest import two_robots
from tests.lab.server.test_web import Walker, WebClient
from tests.lab.server.waiting import ANY
from tests.lab.server.waiting import until as wait_until

pytest.importorskip("viser", reason="needs the extra 'lab'")
pytest.importorskip("viser", reason="needs the extra 'lab'")


@pytest.fixture
def served():
    """A lab where one robot takes a velocity, its hub, of whose ports one is in use, and a page."""
    from manyworlds.lab.page import PageServer

    with (
        LiveLab(two_robots(), LabCfg(start_paused=True)) as lab,
        socket.create_server(("127.0.0.1", 0)) as taken,
    ):
        lab["go"].controller = Walker()
        ports = ANY | {"info_port": taken.getsockname()[1]}
        with LabHub(LabServerCfg(**ports), report=lambda text: None) as hub:
            wait_until(lambda: hub.web.state == "open", "the WebSocket is not open")
            hub.attach(lab)
            page = PageServer(port=free_port(), frame_rate=5.0, network_port=hub.ports["web"])
            page.server.scene.configure_default_lights(enabled=True, cast_shadow=False)
            page.server.scene.configure_environment_map(None)
            hub.allow_page(page.url)
            page.show(lab)
            page.start()
            yield lab, hub, page
            page.close()


def test_the_page_takes_over_and_drives(served, browser):
    """Take the robots back from a program, drive while keys are held, stop when they are not."""
    lab, hub, page = served
    law = lab["go"].controller

    def twist() -> list[float]:
        return law.twist

    with connect(f"ws://127.0.0.1:{hub.ports['web']}") as line:
        program = WebClient(line)
        program.hello(client="arm script", include_model=False)
        browser.goto(page.url)
        box = browser.locator("#lab-network")
        box.get_by_text("arm script").first.wait_for()
        box.get_by_text("messages/s").first.wait_for()
        box.get_by_text(f"The info port {hub.ports['info']} is in use by process").wait_for()
        assert lab["go"].owner == "net"
        box.get_by_role("button", name="Take over").click()
        box.get_by_text("This page drives").wait_for()
        until(browser, lambda: lab["go2"].owner == "panel", "the robots are the panel's")
        with pytest.raises(ReplyError, match="page .* drives this world"):
            program.ask("reset")
        drive = browser.locator("#lab-drive")
        drive.get_by_role("button", name="Drive").click()
        drive.get_by_role("button", name="Stop driving").wait_for()

        browser.keyboard.down("w")
        until(browser, lambda: twist() == [0.8, 0.0, 0.0], "the key drives")
        browser.wait_for_timeout(1200)
        assert twist() == [0.8, 0.0, 0.0], "a held key keeps the velocity"
        browser.keyboard.down("e")
        until(browser, lambda: twist() == [0.8, 0.0, -1.57], "two keys drive")
        browser.keyboard.up("w")
        browser.keyboard.up("e")
        until(browser, lambda: twist() == [0.0, 0.0, 0.0], "released keys stop")

        browser.keyboard.down("a")
        until(browser, lambda: twist() == [0.0, 0.5, 0.0], "the key drives")
        browser.evaluate("window.dispatchEvent(new Event('blur'))")
        until(browser, lambda: twist() == [0.0, 0.0, 0.0], "a lost focus stops")
        browser.keyboard.up("a")

        browser.keyboard.down("s")
        until(browser, lambda: twist() == [-0.8, 0.0, 0.0], "the key drives")
        program.ask("take_driver")
        until(browser, lambda: twist() == [0.0, 0.0, 0.0], "a program that takes over stops")
        drive.get_by_text("Another program has taken over.").wait_for()
        browser.keyboard.up("s")

    drive.get_by_role("button", name="Drive").click()
    box.get_by_text("This page drives").wait_for()
    browser.keyboard.down("w")
    until(browser, lambda: twist() == [0.8, 0.0, 0.0], "the key drives")
    hub.report("a sentence for people")
    box.get_by_text("a sentence for people").wait_for()
    browser.close()
    wait_until(lambda: twist() == [0.0, 0.0, 0.0], "the robot goes on")
    wait_until(lambda: hub.dispatcher.sessions.driver is None, "the page drives on")


def test_all_of_a_page_is_at_one_port(served):
    """Forward the port of a page to another: driving and the lab's server are behind it, too."""
    port = int(served[2].url.rpartition(":")[2])

    def exchange(path: str, origin: str, message: str) -> dict:
        link = socket.create_connection(("127.0.0.1", port))
        with connect(f"ws://localhost:9000{path}", sock=link, origin=origin) as line:
            line.send(message)
            return json.loads(line.recv())

    assert "go" in exchange("/lab-drive", "http://localhost:9000", '{"ask": "list"}')["robots"]
    assert exchange("/lab-network", "http://localhost:9000", '{"op": "meta"}')["op"] == "meta_ok"
    for path in ("/lab-drive", "/lab-network"):
        with pytest.raises(InvalidStatus, match="403"):
            exchange(path, "http://localhost:8888", "{}")


@pytest.mark.parametrize("name", ["network_box", "drive_box", "transport_box"])
def test_the_script_is_text_in_an_attribute(name):
    """Make the HTML: nothing of the scripts ends the attribute."""
    page = box_html(name, "5580")
    assert page.count('"') == 6 and "<script" not in page and page.endswith('(5580)">')


def test_a_page_has_one_of_each():
    """Show a lab, and another one: the button to reload and the box are there once."""
    from manyworlds.lab.page import PageServer

    page = PageServer(on_reload=lambda: None, port=free_port(), network_port=5580)
    try:
        for _ in range(2):
            with LiveLab(two_robots(), LabCfg(start_paused=True)) as lab:
                page.show(lab)
                handles = [*page.server.gui._gui_input_handle_from_uuid.values()]
                assert [h.label for h in handles if hasattr(h, "label")].count("Reload") == 1
    finally:
        page.close()
