"""Keys of the lab's page, and what they switch."""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from tests.lab.page.test_page import iterate_once


def test_keys(page):
    """Press each key: it does what the page says, once a press."""
    keys, overlays = page.keys.actions, page.parts["OverlayPart"]
    assert set(keys) == {
        *"PNRFCHLOB?-=[]123456789",
        "space",
        "enter",
        "tab",
        "ctrl+Z",
        "ctrl+Y",
        "ctrl+shift+Z",
    }
    keys["P"]()
    iterate_once(page)
    assert page.lab.paused
    keys["N"]()
    assert page.lab.snapshot.step == 1
    keys["["]()
    iterate_once(page)
    assert page.lab.snapshot.time == 0.0 and page.lab.timeline.is_active
    keys["]"]()
    iterate_once(page)
    assert page.lab.snapshot.time > 0.0
    keys["R"]()
    iterate_once(page)
    assert page.lab.snapshot.time == 0.0
    for key, names in {
        "1": {"contact_points", "contact_forces"},
        "3": {"collision"},
        "4": {"joints"},
        "5": {"other_collision"},
        "7": {"tendons"},
        "8": {"inertia"},
        "9": {"com"},
    }.items():
        keys[key]()
        assert overlays.enabled == names
        keys[key]()
        assert not overlays.enabled
    keys["2"]()
    assert not overlays.visuals.value
    for coloring in ("Island", "Body", "Robot", "Off"):
        keys["6"]()
        assert overlays.coloring.value == coloring


def test_what_runs_a_policy_is_shown(page):
    """Give the robot to a policy in plain MuJoCo: the page says so."""
    top_bar = page.parts["TopBar"]
    assert "Policy" not in top_bar.status.content
    page.lab.controls[page.context.robot].take("policy")
    iterate_once(page)
    assert "Policy in plain MuJoCo" in top_bar.status.content


def test_keys_of_speed_and_help(page):
    """Change the speed place by place, from between two places, too; open and close the list."""
    keys, loop = page.keys.actions, page.lab.loop
    for key, speed in (("=", 2.0), ("=", 5.0), ("=", math.inf), ("=", math.inf), ("-", 5.0)):
        keys[key]()
        assert loop.speed == speed
    for start, key, speed in ((0.7, "-", 0.5), (0.7, "=", 1.0), (0.1, "-", 0.1)):
        loop.speed = start
        keys[key]()
        assert loop.speed == speed
    keys["H"]()
    assert page.keys._helps
    keys["H"]()
    assert not page.keys._helps
    with pytest.raises(ValueError, match="no floating robot to follow"):
        keys["C"]()


def test_symbols_of_mujoco(page):
    """Show inertia boxes and centers of mass; after a change of the model, its new inertia."""
    overlays = page.parts["OverlayPart"]
    page.keys.actions["8"]()
    iterate_once(page)
    boxes = overlays.mujoco._layer.handles[("box",)]
    before = boxes.batched_scales.copy()
    assert boxes.visible

    def change(model, data):
        model.body_inertia[1:] *= 4.0

    page.lab.loop.do(change)
    iterate_once(page)
    np.testing.assert_allclose(boxes.batched_scales, 2.0 * before, rtol=1e-5)
    page.keys.actions["8"]()
    iterate_once(page)
    assert not boxes.visible


def test_a_key_hides_the_panel(open_page, monkeypatch):
    """Press Tab or B twice: the panel goes and comes back; it may be gone at first."""
    page = open_page()
    done = []
    panel = type(page.server.gui.main_panel)
    monkeypatch.setattr(panel, "minimize", lambda self: done.append("hide"))
    monkeypatch.setattr(panel, "expand", lambda self: done.append("show"))
    page.keys.actions["B"]()
    page.keys.actions["B"]()
    assert done == ["hide", "show"]
    page._cfg = replace(page._cfg, collapsed=True)
    page._build()
    assert done == ["hide", "show"], "the browser does it, once it has the panel"
    page.keys.actions["B"]()
    assert done == ["hide", "show", "show"]


def test_a_key_hides_the_panel_of_one_browser(page):
    """Press B in a browser: its own panel goes and comes back; the page's stays for others."""
    done = []
    panel = SimpleNamespace(
        minimize=lambda: done.append("hide"), expand=lambda: done.append("show")
    )
    client = SimpleNamespace(client_id=3, gui=SimpleNamespace(main_panel=panel))
    commands = page.server.gui._command_handle_from_uuid.values()
    command = next(each for each in commands if each.label == "Show or hide the panel")
    event = SimpleNamespace(client=client, client_id=3, target=command)
    for _ in range(2):
        for call in command._impl.trigger_cb:
            call(event)
    assert done == ["hide", "show"]


def test_the_list_of_keys_opens_in_one_browser(page):
    """Press H in a browser: the list is made in its GUI alone, and closed there by the next H."""
    keys, closed = page.keys, []
    modal = contextlib.nullcontext(SimpleNamespace(close=lambda: closed.append(True)))
    gui = SimpleNamespace(
        add_modal=lambda title: modal,
        add_html=lambda text: None,
        add_button=lambda label: SimpleNamespace(on_click=lambda call: None),
    )
    client = SimpleNamespace(client_id=3, gui=gui)
    commands = page.server.gui._command_handle_from_uuid.values()
    command = next(each for each in commands if each.label == "Show this list of keys")
    event = SimpleNamespace(client=client, client_id=3, target=command)
    for call in command._impl.trigger_cb:
        call(event)
    assert [*keys._helps] == [3] and not page.server.gui._modal_handle_from_uuid
    for call in command._impl.trigger_cb:
        call(event)
    assert closed and not keys._helps
