"""Building of articulations on the page."""

from __future__ import annotations

from tests.lab.page.conftest import give, press


def test_a_robot_is_built_by_forms(page):
    """Fill in three forms and press their buttons: the item has a joint with an actuator."""
    part = page.parts["BuildPart"]

    def submit(verb: str, **values: object) -> None:
        inputs = part.forms[verb].inputs
        for name, value in values.items():
            give(inputs[name], value)
        press(part.buttons[verb])

    submit("add_body", name="gate", pos=(0.0, 2.0, 0.5), shape="capsule")
    assert "Add body: gate/base." in part.outcome.content
    submit("add_joint", body="gate/base", name="hinge", axis=(1.0, 0.0, 0.0))
    submit("add_actuator", joint="gate/hinge", kind="motor")
    assert page.lab.scene["gate"].kind == "robot"
    assert page.lab.model.actuator("gate/hinge").trnid[0] == page.lab.model.joint("gate/hinge").id
    submit("remove_element", kind="joint", name="gate/hing")
    assert "did you mean" in part.outcome.content
