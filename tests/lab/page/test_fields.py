"""Inputs of the lab's page, without a browser: bounds, values of the model, old values."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from manyworlds.lab import Passthrough
from manyworlds.viewer.browser import widgets
from manyworlds.viewer.browser.widgets import ShownValue
from tests.browser import tell_input
from tests.lab.conftest import ARM
from tests.lab.page.test_page import iterate_once


def enter(handle, value) -> list[str]:
    """Enter a value, as a user does; return what the page tells the user."""
    told = []
    client = SimpleNamespace(add_notification=lambda title, body, **_: told.append((title, body)))
    handle._impl.value = value
    tell_input(handle, SimpleNamespace(client=client, client_id=1, target=handle))
    return told


def test_numbers_stay_within_bounds(open_page):
    """Clamp numbers of options, sliders and overlays on the server, and say so in one sentence."""
    page = open_page()
    part, option = page.parts["OptionsPart"], page.lab.world.model.opt
    told = enter(part.inputs["timestep"], 2.0)
    used = "is out of bounds: the nearest value,"
    assert told == [("Timestep [s]", f"2 {used} 0.05, is used.")]
    assert option.timestep == part.inputs["timestep"].value == 0.05
    assert enter(part.inputs["timestep"], 0.0)[0][1] == f"0 {used} 0.0001, is used."
    assert option.timestep == 0.0001
    assert enter(part.inputs["iterations"], 0)[0][1] == f"0 {used} 1, is used."
    assert option.iterations == 1 and part.inputs["iterations"].value == 1
    slider = page.parts["RobotPart"].sliders["arm"].handles[0]
    assert enter(slider, -21.0)[0][1] == f"-21 {used} -20, is used."
    assert slider.value == page.lab["arm"].command.targets[0] == -20.0
    scale = page.parts["OverlayPart"].force_scale
    assert enter(scale, -1.0) and scale.value == 0.0
    assert enter(part.inputs["gravity"], (0.0, 0.0, 1e9)) == []
    assert enter(part.inputs["timestep"], 0.002) == [] and option.timestep == 0.002


def test_options_that_differ_from_the_model_are_marked(open_page):
    """Mark what LabCfg, the page or a program changes, name the model's values, and go back."""
    xml = ARM.replace("<option ", '<option cone="elliptic" gravity="0 0 -5" ')
    page = open_page(xml, options={"iterations": 7})
    part, option = page.parts["OptionsPart"], page.lab.world.model.opt
    assert part.inputs["iterations"].label == "Iterations *" and part.back.visible
    assert part.inputs["timestep"].label == "Timestep [s]"
    assert "Iterations: 100" in part.differences.content
    enter(part.inputs["timestep"], 0.005)
    enter(part.inputs["cone"], "pyramidal")
    enter(part.inputs["Contacts"], False)
    page.lab.set_option("gravity", (0.0, 0.0, -9.81))
    iterate_once(page)
    for line in (
        "Timestep [s]: 0.002",
        "Friction cone: elliptic",
        "Gravity [m/s²]: 0, 0, -5",
        "Contacts: on",
    ):
        assert line in part.differences.content
    assert part.inputs["Contacts"].label == "Contacts *"
    assert part.inputs["Gravity"].label == "Gravity"  # the flag
    enter(part.back, True)
    iterate_once(page)
    assert (option.iterations, option.timestep, option.cone) == (100, 0.002, 1)
    assert option.gravity.tolist() == [0.0, 0.0, -5.0] and option.disableflags == 0
    assert part.differences.content == "" and not part.back.visible
    assert [h.label for h in part.inputs.values() if "*" in h.label] == []
    assert part.inputs["cone"].value == "elliptic" and part.inputs["Contacts"].value


def test_an_old_value_does_not_replace_what_a_user_enters(monkeypatch):
    """Show a program's values, except older ones than the user's, until it has had time."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(widgets.time, "monotonic", lambda: clock.now)
    handle = SimpleNamespace(value=1)
    shown = ShownValue(handle)
    shown.show(2)
    assert handle.value == 2
    handle.value = 5  # a user
    shown.show(2)
    assert handle.value == 5
    shown.show(5)  # the program has it
    shown.show(6)
    assert handle.value == 6
    handle.value = 7
    shown.show(6)
    clock.now = 0.9
    shown.show(6)
    assert handle.value == 7
    clock.now = 1.1  # the program refuses it
    shown.show(6)
    assert handle.value == 6


def test_a_late_action_gets_what_a_user_has_entered(open_page):
    """Show the program's value before the action of a user's value runs: it gets the user's."""
    page = open_page()
    handle, part = page.parts["OptionsPart"].inputs["timestep"], page.parts["InspectorPart"]
    page.context.select("body", 2)
    iterate_once(page)
    mass = part.fields["mass"].handles[0]
    for each, value in ((handle, 0.004), (mass, 2.5)):
        former = each.value
        late = SimpleNamespace(_impl=SimpleNamespace(update_cb=each._impl.update_cb[1:]))
        each._impl.value = value
        at_once = SimpleNamespace(_impl=SimpleNamespace(update_cb=each._impl.update_cb[:1]))
        event = SimpleNamespace(client=object(), client_id=1, target=each)
        tell_input(at_once, event)
        each.value = former
        tell_input(late, event)
    assert page.lab.model.opt.timestep == 0.004 and page.lab.model.body_mass[2] == 2.5


def test_a_choice_is_not_lost_between_two_updates(open_page):
    """Choose an owner; the page is updated before the choice takes effect, and keeps it."""
    page = open_page()
    part = page.parts["RobotPart"]
    part.owner._impl.value = "nobody"  # viser has it, and has not yet called the page
    iterate_once(page)
    assert part.owner.value == "nobody" and page.lab["arm"].owner == "panel"
    enter(part.owner, "nobody")
    iterate_once(page)
    assert part.owner.value == page.lab["arm"].owner == "nobody"


def test_differences_from_training_are_listed(open_page):
    """List them in a folder that is closed at first, of the robot that is selected."""
    page = open_page(robots=())
    part = page.parts["DifferencesPart"]
    iterate_once(page)
    assert not part.folder.visible
    policy: Any = Passthrough()
    policy.differences = [
        "timestep: 0.002 s, in training 0.005 s",
        "kp of <hip>: 1, in training 2",
    ]
    policy.adopts_gains = False
    page.lab["arm"].controller = policy
    iterate_once(page)
    assert part.folder.visible and part.folder.label == "Differences from training: 2"
    assert not part.folder.expand_by_default
    assert "timestep: 0.002 s, in training 0.005 s" in part.text.content
    assert "kp of &lt;hip&gt;" in part.text.content
    assert "taken over the timestep of training" in part.text.content
