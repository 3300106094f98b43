"""Fields of the lab's page that are typed into in a real browser, at the speed of a hand."""

from __future__ import annotations

import mujoco
import pytest

from manyworlds.lab import LabCfg, LiveLab, world_from_spec
from manyworlds.lab.verb_methods import LabVerbs
from tests.browser import free_port
from tests.lab.conftest import ARM
from tests.lab.page.test_browser import after_label, serve, until

# Notes whether the script of the fields runs by the time of the first number field.
_WATCH = """
new MutationObserver(() => {
  if (window.inTime === undefined && document.querySelector('.mantine-NumberInput-input'))
    window.inTime = !!window.typedFields;
}).observe(document, {childList: true, subtree: true});
"""


@pytest.fixture
def arm(browser):
    """A lab of the arm, its page in a browser, and the verbs by which the page changes it."""
    pytest.importorskip("viser", reason="needs the extra 'lab'")
    lab = LiveLab(world_from_spec(mujoco.MjSpec.from_string(ARM)), LabCfg(start_paused=True))
    calls, call = [], lab.call

    def note(verb, **fields):
        if not verb.startswith(("list_", "read_", "replay_list", "set_recording_view")):
            calls.append((verb, fields))
        return call(verb, **fields)

    lab.verbs = LabVerbs(note)
    with lab:
        page = serve(lab, free_port())
        browser.set_viewport_size({"width": 900, "height": 1000})
        browser.add_init_script(_WATCH)
        browser.goto(page.url)
        browser.get_by_text("PAUSED", exact=True).first.wait_for()
        browser.locator(".mantine-NumberInput-input").first.wait_for(state="attached")
        assert browser.evaluate("window.inTime")
        yield lab, page, calls
        assert not page.errors
        page.close()


def type_into(browser, field, text: str, delay_s: float) -> None:
    """Click a field and type, as a hand does; the field shows all that was typed at any time."""
    field.click()
    for end, key in enumerate(text, 1):
        browser.keyboard.type(key)
        browser.wait_for_timeout(1000 * delay_s)
        assert field.input_value() == text[:end]


def options(calls) -> list[dict]:
    """Options of MuJoCo that the page has set."""
    return [fields["options"] for verb, fields in calls if verb == "set_sim_options"]


def test_a_number_is_set_when_it_is_complete(arm, browser):
    """Type the timestep slowly and quickly: only Enter, Tab or a click elsewhere set it."""
    lab, _, calls = arm
    option = lab.world.model.opt
    browser.get_by_role("tab", name="World").click()
    field = browser.get_by_label("Timestep [s]")
    elsewhere = browser.get_by_text("Iterations", exact=True)
    for text, value, delay_s, end in [
        ("0.005", 0.005, 0.4, "Enter"),
        ("0.002", 0.002, 0.5, "click"),
        ("0.00025", 0.00025, 0.1, "Tab"),
        ("1e-3", 0.001, 0.1, "Enter"),
        ("0,004", 0.004, 0.1, "Enter"),
    ]:
        before = option.timestep
        calls.clear()
        type_into(browser, field, text, delay_s)
        assert not calls and option.timestep == before
        elsewhere.click() if end == "click" else browser.keyboard.press(end)
        until(browser, lambda value=value: option.timestep == value, f"{text} is set")
        browser.wait_for_timeout(700)  # the page shows the options again
        assert options(calls) == [{"timestep": value}]
        assert float(field.input_value()) == value
        elsewhere.click()
    type_into(browser, field, "0.005", 0.1)
    browser.keyboard.press("Enter")
    until(browser, lambda: option.timestep == 0.005, "it is set")
    browser.wait_for_timeout(700)  # the page shows the options again
    assert not field.evaluate("field => field == document.activeElement"), "Enter leaves it"
    type_into(browser, field, "0.1.2", 0.1)
    assert field.input_value() == "0.1.2"
    browser.keyboard.press("Enter")
    until(browser, lambda: field.input_value() == "0.005", "it is restored")
    flashes = "field => field.getAnimations().some(each => !(each instanceof CSSTransition))"
    assert field.evaluate(flashes)
    type_into(browser, field, "0.004", 0.1)
    elsewhere.click()
    until(browser, lambda: option.timestep == 0.004, "it is set")
    browser.wait_for_timeout(700)  # the page describes the world again
    calls.clear()
    type_into(browser, field, "0.01", 0.1)
    browser.keyboard.press("Escape")
    assert field.input_value() == "0.004"
    elsewhere.click()
    browser.wait_for_timeout(300)
    assert not calls and option.timestep == 0.004


def test_a_number_out_of_bounds_is_clamped(arm, browser):
    """Type what is out of bounds: the world gets the bound, and the page says so."""
    lab, _, calls = arm
    browser.get_by_role("tab", name="World").click()
    field = browser.get_by_label("Timestep [s]")
    type_into(browser, field, "2", 0.1)
    browser.keyboard.press("Enter")
    told = "2 is out of bounds: the nearest value, 0.05, is used."
    browser.get_by_text(told).wait_for()
    until(browser, lambda: field.input_value() == "0.05", "the field shows the bound")
    assert options(calls) == [{"timestep": 0.05}] and lab.world.model.opt.timestep == 0.05
    calls.clear()
    field = browser.get_by_label("Iterations")
    type_into(browser, field, "12.5", 0.1)
    browser.keyboard.press("Enter")
    until(browser, lambda: calls, "the number is set")
    browser.wait_for_timeout(700)
    assert options(calls) == [{"iterations": int(field.input_value())}]
    assert int(field.input_value()) in (12, 13)
    browser.get_by_role("tab", name="Robot").click()
    calls.clear()
    field = after_label(browser, "shoulder", "input[contains(@class, 'NumberInput-input')]")
    type_into(browser, field, "123", 0.1)
    browser.get_by_text("Actuators of arm").click()
    until(browser, lambda: calls, "the slider is set")
    assert calls == [("set_targets", {"robot": "arm", "targets": {"shoulder": 20.0}})]
    browser.get_by_text("123 is out of bounds: the nearest value, 20, is used.").wait_for()


def test_nothing_overwrites_what_is_typed(arm, browser):
    """Change an option while it is typed: the text stays; Escape shows the new value."""
    lab, _, calls = arm
    browser.get_by_role("tab", name="World").click()
    field = browser.get_by_label("Timestep [s]")
    type_into(browser, field, "0.0", 0.1)
    lab.set_option("timestep", 0.007)
    browser.wait_for_timeout(1200)
    browser.keyboard.type("09")
    assert field.input_value() == "0.009"
    browser.keyboard.press("Escape")
    assert field.input_value() == "0.007"
    type_into(browser, field, "0.003", 0.1)
    step_up = field.locator("xpath=../..").locator("button").first
    step_up.click()  # commits only
    until(browser, lambda: lab.world.model.opt.timestep == 0.003, "the button commits")
    browser.wait_for_timeout(300)
    step_up.click()
    until(browser, lambda: lab.world.model.opt.timestep == 0.0031, "the button steps")
    browser.wait_for_timeout(700)
    browser.keyboard.press("ArrowDown")
    until(browser, lambda: lab.world.model.opt.timestep == 0.003, "the key steps")
    assert options(calls) == [{"timestep": 0.003}, {"timestep": 0.0031}, {"timestep": 0.003}]


def test_a_search_replaces_the_present_choice(arm, browser):
    """Click a field with choices and type: the text is the search alone."""
    _, page, _ = arm
    for tab, label, search, found in [
        ("World", "Body", "low", "lower"),
        ("View", "Follow", "bal", "ball"),
        ("Plots", "Plot", "elbow v", "elbow velocity"),
    ]:
        browser.get_by_role("tab", name=tab).click()
        field = browser.get_by_label(label, exact=True)
        type_into(browser, field, search, 0.1)
        browser.get_by_role("option", name=found).first.click()
        until(browser, lambda field=field, found=found: field.input_value() == found, "it is found")
    until(browser, lambda: page.context.body == 2 and page.context.view.follow == 3, "it is chosen")
    part = page.parts["PlotPart"]
    until(browser, lambda: part.chosen == [("elbow velocity",)], "it is plotted")
