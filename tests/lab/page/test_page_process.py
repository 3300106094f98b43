"""The page in a process of its own."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from functools import partial

import mujoco
import pytest

from manyworlds.lab import LabCfg, LiveLab, world_from_file, world_from_spec
from tests.browser import free_port
from tests.lab.conftest import ARM
from tests.lab.page.height_part import HeightPart
from tests.waiting import PATIENCE_S, until


@pytest.fixture
def serve():
    """Serve pages of the arm."""
    pytest.importorskip("viser", reason="needs the extra 'lab'")
    pytest.importorskip("viser", reason="needs the extra 'lab'")
    from manyworlds.lab.page import LabPage

    made = []

    def make(lab: LiveLab | None = None, **kwargs) -> LabPage:
        if lab is None:
            lab = LiveLab(world_from_spec(mujoco.MjSpec.from_string(ARM)), LabCfg())
        page = LabPage(lab, port=free_port(), **kwargs)
        made.append(page)
        lab.start()
        page.start()
        return page

    yield make
    for page in made:
        page.close()
        page.lab.stop()


def is_served(url: str) -> bool:
    """Return True if something answers at a page's address."""
    host, port = url.removeprefix("http://").split(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def test_the_page_is_another_process_without_torch(serve):
    """Serve a page: another process answers, which is light, is nicer, and ends with `close`."""
    page = serve()
    assert page.pid != os.getpid() and page.is_alive
    with urllib.request.urlopen(page.url) as answer:
        assert answer.status == 200
    with open(f"/proc/{page.pid}/maps") as maps:
        assert "torch" not in maps.read()
    nice = partial(os.getpriority, os.PRIO_PROCESS)
    until(lambda: nice(page.pid) > nice(0) or nice(0) == 19, "its priority is high")
    page.close()
    page.close()
    assert not page.is_alive and not is_served(page.url)
    assert page.lab.loop.state == "running"


@pytest.mark.slow
def test_the_lab_goes_on_without_its_page(serve, caplog):
    """Kill the page: the lab says so and goes on; another page can be opened."""
    page = serve()
    with caplog.at_level(logging.ERROR):
        os.kill(page.pid, signal.SIGKILL)
        until(lambda: caplog.records, "nothing is logged")
    (record,) = caplog.records
    assert "SIGKILL" in record.getMessage() and page.url in record.getMessage()
    step = page.lab.snapshot.step
    until(lambda: page.lab.snapshot.step > step + 10, "the lab stands")
    from manyworlds.lab.page import LabPage

    again = LabPage(page.lab, port=free_port())
    assert is_served(again.url)
    again.close()


LAB = """
import os, sys, time, mujoco
from manyworlds.lab import LabCfg, LiveLab, world_from_spec
from manyworlds.lab.page import LabPage
from tests.lab.conftest import ARM
lab = LiveLab(world_from_spec(mujoco.MjSpec.from_string(ARM)), LabCfg())
page = LabPage(lab, port=int(sys.argv[1]))
lab.start()
page.start()
if os.fork() == 0:  # a child of the lab that keeps all of its files open
    time.sleep(20)
    os._exit(0)
print(page.pid, page.url, flush=True)
time.sleep(60)
"""


@pytest.mark.slow
def test_the_page_ends_with_its_lab(serve):
    """Kill a program with a lab, whose child keeps its files open: the page ends by itself."""
    lab = subprocess.Popen(
        [sys.executable, "-c", LAB, str(free_port())],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert lab.stdout is not None
    pid, url = lab.stdout.readline().split()
    assert is_served(url)
    lab.kill()
    lab.wait(PATIENCE_S)
    until(lambda: not is_served(url), "the page stays")
    until(lambda: not os.path.exists(f"/proc/{pid}"), "its process stays")


@pytest.mark.slow
def test_own_parts_run_in_the_page(serve):
    """Give parts of one's own as classes and by name: they read, call verbs, and may fail."""
    from benchmarks.viewer_workloads import page_client
    from manyworlds.lab.page import TABS

    parts = (HeightPart, "tests.lab.page.height_part:FailingPart")
    page = serve(tabs={**TABS, "Mine": parts})
    with page_client(page.url):
        until(lambda: "told" in page.lab.states.names, "the part does not run")
        until(lambda: page.errors, "no error comes")
    assert "a part of one's own" in page.errors[0]


@pytest.mark.slow
def test_parts_that_cannot_be_imported_are_refused(serve):
    """Give a function, a class of a function, and wrong names: the error says what to do."""

    class Local(HeightPart):
        pass

    main = type("Main", (HeightPart,), {"__module__": "__main__"})
    for part in (lambda ctx: HeightPart(ctx), Local, main):
        with pytest.raises(ValueError, match="cannot import the part .* tab 'Mine'.*PageServer"):
            serve(tabs={"Mine": (part,)})
    for name in ("nowhere.at_all:Part", "tests.lab.page.height_part:Absent", "tests"):
        with pytest.raises(ValueError, match=f"cannot import its part '{name}'"):
            serve(tabs={"Mine": (name,)})


def test_an_address_that_cannot_be_served_is_refused(caplog, serve):
    """Ask for an address of another machine: the error is that of a page in this process."""
    with pytest.raises(ValueError, match="Cannot serve a page on host"):
        serve(host="203.0.113.1")
    assert not caplog.records  # the error says it all


@pytest.mark.slow
def test_the_page_follows_a_rebuilt_world(serve):
    """Rebuild the world while a browser looks: the parts of the new world update."""
    from benchmarks.viewer_workloads import page_client
    from manyworlds.lab.page import TABS

    page = serve(tabs={**TABS, "Mine": (HeightPart,)})
    taller = ARM.replace("</worldbody>", '<body name="new"><geom size=".1"/></body></worldbody>')
    with page_client(page.url):
        until(lambda: "told" in page.lab.states.names, "the part does not run")
        assert page.lab.rebuild(world_from_spec(mujoco.MjSpec.from_string(taller)))
        page.lab.states.drop("told")
        until(lambda: "told" in page.lab.states.names, "the part does not run")
    assert not page.errors and page.is_alive


def test_models_are_opened_again(tmp_path, serve):
    """Open a broken file, mend it, and open it again: one page process shows all of them."""
    from manyworlds.lab.page import ReloadablePage

    path = tmp_path / "arm.xml"
    path.write_text("<mujoco><worldbody><body><joint/></body></worldbody></mujoco>")
    page = ReloadablePage(lambda: LiveLab(world_from_file(path)), port=free_port())
    try:
        page.open()
        assert page.lab is None and "mass and inertia" in page.error and is_served(page.url)
        path.write_text(ARM)
        page.reload()
        lab = page.lab
        assert page.error == "" and lab is not None and lab.loop.state == "running"
        before = lab.world
        page.reload()
        assert page.error == "" and page.lab is lab and lab.world is not before
        assert lab.loop.state == "running" and page.page.is_alive
        os.kill(page.page.process.pid, signal.SIGKILL)
        until(lambda: not page.page.is_alive, "the page's process stays")
        assert page.lab.loop.state == "running"
    finally:
        page.close()


def test_settings_are_keywords_too():
    """Give settings by name, also beside a `PageCfg`: the two lists are equal."""
    from manyworlds.lab.page.page_cfg import PageCfg, PageKeywords

    keywords = {name: hint.__forward_arg__ for name, hint in PageKeywords.__annotations__.items()}
    assert keywords == PageCfg.__annotations__


def test_a_setting_by_name_replaces_that_of_the_cfg(serve):
    """Serve a page with a `PageCfg` and a keyword: the keyword counts."""
    from manyworlds.lab.page import PageCfg

    with pytest.raises(ValueError, match=r"203\.0\.113\.1"):
        serve(cfg=PageCfg(frame_rate=5.0, host="203.0.113.2"), host="203.0.113.1")
