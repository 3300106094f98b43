"""The inspector and the editor of the scene in a real browser."""

from __future__ import annotations

import numpy as np

from tests.lab.page.test_browser import after_label, arm, camera_of, on_screen, until

__all__ = ["arm"]


def test_a_body_is_selected_and_edited(arm, browser):
    """Click a line of the tree, edit the mass, undo with Ctrl-Z; then click a body in the view."""
    lab, page = arm
    browser.goto(page.url)
    browser.get_by_role("tab", name="World").click()
    browser.get_by_text("Tree", exact=True).locator("visible=true").first.click()
    line = browser.locator('[data-lab-ask="select_body"]', has_text="lower").locator("visible=true")
    line.first.click()
    until(browser, lambda: page.context.element == "body:lower", "the click selects the forearm")
    before = float(lab.model.body_mass[2])
    mass = after_label(browser, "mass [kg]", "input")
    mass.fill("2.5")
    mass.press("Enter")
    until(browser, lambda: lab.model.body_mass[2] == 2.5, "the model has the mass")
    browser.get_by_text("mass [kg] *", exact=True).wait_for()
    browser.evaluate("document.activeElement.blur()")
    browser.keyboard.press("Control+z")
    until(browser, lambda: lab.model.body_mass[2] == before, "Ctrl-Z takes it back")
    canvas = browser.locator("canvas").first.bounding_box()
    camera = camera_of(page, browser)
    for _ in range(20):  # before the first picture there is nothing to click at
        browser.mouse.click(*on_screen(camera, canvas, lab.snapshot.xpos[3]))
        browser.wait_for_timeout(1000)
        if page.context.body == 3:
            break
    assert page.context.element == "body:ball"
    browser.get_by_text("Body ball").first.wait_for()
    assert not page.errors


def test_an_item_is_moved_by_its_gizmo(arm, browser):
    """Click an item in the tree of the scene, drag its gizmo along an axis, undo by a button."""
    lab, page = arm
    browser.goto(page.url)
    browser.get_by_role("tab", name="Scene").click()
    browser.get_by_text("Tree", exact=True).locator("visible=true").first.click()
    browser.locator('[data-lab-name="ball"]').locator("visible=true").first.click()
    until(browser, lambda: lab.scene.selected == "ball", "the click selects the ball")
    browser.get_by_label("Move and turn in the view").check()
    part = page.parts["ScenePart"]
    until(browser, lambda: part.handle.visible, "the gizmo is there")
    canvas, camera = browser.locator("canvas").first.bounding_box(), camera_of(page, browser)
    start = np.array(lab.scene["ball"].pos)
    tip = start + np.array((0.0, 0.0, 0.7 * part.handle.scale))
    for _ in range(20):  # before the first picture there is nothing to take hold of
        x, y = on_screen(camera, canvas, tip)
        browser.mouse.move(x, y)
        browser.wait_for_timeout(600)
        browser.mouse.down()
        browser.mouse.move(x, y - 20, steps=3)
        browser.wait_for_timeout(600)
        browser.mouse.move(x, y - 60, steps=3)
        browser.wait_for_timeout(600)
        browser.mouse.up()
        browser.wait_for_timeout(600)
        if lab.scene["ball"].pos != tuple(start):
            break
    moved = np.array(lab.scene["ball"].pos) - start
    assert moved[2] > 0.05 and np.abs(moved[:2]).max() < 1e-6
    np.testing.assert_allclose(lab.snapshot.qpos[2:5], lab.scene["ball"].pos)
    browser.get_by_text("'ball' was moved.").first.wait_for()
    browser.get_by_role("button", name="Undo").first.click()
    until(browser, lambda: lab.scene["ball"].pos == tuple(start), "the move is undone")
    assert not page.errors
