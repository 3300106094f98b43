"""Nothing fails in silence: what goes wrong is on the page, and in the log."""

from __future__ import annotations

import logging
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from manyworlds.lab import LiveLab, RecorderCfg, world_from_file
from tests.browser import free_port
from tests.lab.conftest import ARM
from tests.lab.page.conftest import give, press
from tests.lab.page.test_page import iterate_once
from tests.lab.page.test_reload import BAD
from tests.waiting import until


def status(page) -> str:
    """Text of the status line, after an update."""
    page.update()
    return page.parts["TopBar"].status.content


def test_callbacks_that_fail_are_logged_and_shown(page, caplog):
    """Let a callback raise in each iteration: one log record, and a count on the page."""

    def broken(model, data, moved) -> None:
        raise ZeroDivisionError("no such number")

    page.lab.loop.on_post_step(broken)
    with caplog.at_level(logging.ERROR):
        iterate_once(page, 3)
    (record,) = caplog.records
    assert "broken" in record.getMessage() and record.exc_info is not None
    assert "broken" in status(page) and "failed 3 times" in status(page)
    assert "ZeroDivisionError: no such number" in status(page)
    press(page.parts["RobotPart"].reset_targets)
    assert "failed 3 times" in status(page), "another action does not hide it"
    page.lab.loop._post.clear()
    page.lab.reset()
    assert "no such number" not in status(page)
    assert len(page.lab.loop.callback_errors) == 3


@pytest.mark.parametrize("register", ["on_reset", "on_rebuild"])
def test_listeners_that_fail_are_shown(page, register):
    """Let listeners of resets and rebuilds raise: the others are called, and the page says it."""
    heard = []

    def broken() -> None:
        raise KeyError("who")

    for call in (broken, lambda: heard.append(1)):
        getattr(page.lab, register)(call)
    if register == "on_reset":
        page.lab.reset()
    else:
        page.lab.rebuild(page.lab.world)
    assert heard == [1] and "broken" in status(page) and "KeyError" in status(page)


def test_parts_that_fail_stay_named(page, caplog):
    """Let a part raise: it stays on the page after the user's next action."""
    page.parts["TreePart"].update = lambda snapshot: [][1]
    with caplog.at_level(logging.ERROR):
        page.update()
    assert "TreePart failed" in caplog.text
    press(page.parts["RobotPart"].reset_targets)
    assert "TreePart failed: IndexError" in status(page)


def test_a_page_that_cannot_show_a_rebuilt_world_goes_on(page, monkeypatch):
    """Let the page fail as a whole: its thread lives on and says so."""
    monkeypatch.setattr(page.server, "get_clients", lambda: {0: object()})
    calls = []

    def fail() -> None:
        calls.append(1)
        raise OSError("cannot draw")

    monkeypatch.setattr(page, "update", fail)
    page.start()
    until(lambda: len(calls) >= 3, "the page does not go on")
    assert page.context.failures[0] == "The page failed: OSError: cannot draw"


def test_a_refused_action_is_told_in_the_view(page, monkeypatch):
    """Refuse an edit below the top of the panel: the view says so, once for equal errors."""
    told = []
    client = SimpleNamespace(add_notification=lambda title, body, **_: told.append(body))
    monkeypatch.setattr(page.server, "get_clients", lambda: {1: client})

    def set_mass(mass: float) -> None:
        page.context.verbs.set_model(element="body:upper", field="mass", value=mass)

    for mass in (-1.0, -1.0, -2.0):
        page.context.attempt(lambda mass=mass: set_mass(mass))
    assert ["got -1" in told[0], "got -2" in told[1]] == [True, True] and len(told) == 2
    page.context.attempt(lambda: set_mass(1.0))
    assert len(told) == 2 and not page.context.message
    page.context.attempt(lambda: set_mass(-1.0))
    assert len(told) == 3


def test_imports_say_beside_the_button_if_they_fail(open_page, tmp_path):
    """Import broken files and good ones: the outcome is beside the button that was pressed."""
    page = open_page(recorder=RecorderCfg(folder=tmp_path))
    states, records = page.parts["SavedStatePart"], page.parts["RecordPart"]
    give(states.upload, SimpleNamespace(name="bad.npz", content=b"nothing"))
    assert "&#x27;bad.npz&#x27; is no saved state" in states.imported.content
    give(records.upload, SimpleNamespace(name="bad.csv", content=b"no numbers\nat all"))
    assert "bad.csv" in records.imported.content and "is imported" not in records.imported.content
    assert "bad.npz" in states.imported.content, "each has its own"
    page.lab.states.save("here")
    content = page.lab.states.pack("here")
    give(states.upload, SimpleNamespace(name="good.npz", content=content))
    assert "is imported as" in states.imported.content
    csv = b"time,elbow\n0,0\n0.1,1\n"
    give(records.upload, SimpleNamespace(name="good.csv", content=csv))
    assert "is imported" in records.imported.content


def test_a_reset_of_a_replay_is_told(page):
    """Reset and restore during replays: the page says that the replay ended."""
    page.lab.recorder.start()
    iterate_once(page, 20)
    page.lab.recorder.stop()
    page.lab.states.save("here")
    page.lab.replay.start("Live")
    page.keys.actions["R"]()
    assert not page.lab.replay.is_active
    page.context.attempt(page.keys.actions["R"])
    assert "ended the replay" not in status(page)
    for action in (page.parts["TopBar"].reset, page.parts["SavedStatePart"]._restore):
        page.lab.replay.start("Live")
        page.update()
        page.context.attempt(action)
        assert "ended the replay of &#x27;Live&#x27;" in status(page)
        assert page.lab.snapshot.stepper == "physics"


@pytest.fixture
def page(open_page, tmp_path):
    """A page of the arm whose recordings lie in a folder of their own."""
    return open_page(recorder=RecorderCfg(folder=tmp_path / "recordings"))


def test_the_pace_of_a_stopped_world_is_zero(page):
    """Run, then stop by a fault, a pause, and for good: no pace is claimed."""
    lab = page.lab
    lab.start()
    until(lambda: lab.loop.pace.real_time_factor > 0.0, "no pace is claimed")
    assert "x real time" in status(page)
    lab["arm"].controller.compute = lambda *_: np.full(2, np.nan)  # type: ignore[method-assign]
    until(lambda: lab.loop.fault, "the world does not stop")
    assert lab.loop.pace.real_time_factor == 0.0
    assert "stopped" in status(page) and "x real time" not in status(page)
    assert "STOPPED" in page.parts["TopBar"].banner.content
    lab.stop()
    assert lab.loop.pace.real_time_factor == 0.0


def test_warnings_of_mujoco_are_on_the_page(page):
    """Let a control be no number, then MuJoCo warn: the page counts and explains both."""
    page.lab["arm"].controller.compute = lambda *_: np.full(2, np.nan)  # type: ignore[method-assign]
    iterate_once(page)
    assert "badctrl" in status(page) and "actuator &#x27;shoulder&#x27;" in status(page)
    assert "1 warning since the reset: badctrl" in status(page)
    assert "slider" not in status(page), "the fault is the reason"
    page.lab.loop._warnings.add("contactfull", 12)
    iterate_once(page)
    assert "12 warnings since the reset: contactfull" in status(page)


@pytest.fixture
def file(tmp_path):
    """A model file that is no XML."""
    pytest.importorskip("viser", reason="needs the extra 'lab'")
    pytest.importorskip("viser", reason="needs the extra 'lab'")
    path = tmp_path / "arm.xml"
    path.write_text("<mujoco><worldbody>")
    return path


@pytest.mark.parametrize("content", ["<mujoco><worldbody>", BAD, "<mujoco><nonsense/></mujoco>"])
def test_the_command_opens_the_page_of_a_broken_model(file, content):
    """Open a file that does not compile by the command's own function: a card, and *Reload*."""
    from manyworlds.cli.lab import LabOptions, open_lab
    from manyworlds.lab.page import ReloadablePage

    file.write_text(content)
    options = LabOptions(target=str(file))
    page = ReloadablePage(lambda: open_lab(options), port=free_port(), in_process=True)
    page.open()
    assert page.lab is None and "arm.xml" in page.error and page.page.card.content
    file.write_text(ARM)
    press(page.page.button)
    assert page.error == "" == page.page.card.content
    assert page.lab is not None and page.lab.loop.state == "running"
    page.close()


def test_reloads_that_fail_in_any_way_are_shown(file, monkeypatch):
    """Let the lab, then the page, fail for a reason that nobody foresaw: the card says it."""
    from manyworlds.lab.page import ReloadablePage, page_server

    answers = [AttributeError("no such part")]

    def open_lab() -> LiveLab:
        if answers:
            raise answers.pop()
        return LiveLab(world_from_file(file))

    page = ReloadablePage(open_lab, port=free_port(), in_process=True)
    page.reload()
    assert "AttributeError: no such part" in page.page.card.content
    page.reload()
    assert "arm.xml" in page.error and "does not compile" in page.page.card.content
    file.write_text(ARM)
    with monkeypatch.context() as patch:
        patch.setattr(page_server, "PageContext", lambda *args, **kwargs: 1 / 0)
        threads = threading.active_count()
        page.reload()
        assert "ZeroDivisionError" in page.page.card.content and threading.active_count() == threads
    press(page.page.button)
    assert page.lab is not None and page.page.card.content == ""
    page.close()
