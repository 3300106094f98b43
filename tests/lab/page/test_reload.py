"""Opening a model again from the page."""

from __future__ import annotations

import pytest

from manyworlds.lab import LiveLab, world_from_file
from tests.browser import free_port
from tests.lab.conftest import ARM
from tests.lab.page.conftest import press

BAD = "<mujoco><worldbody><body><joint/></body></worldbody></mujoco>"


@pytest.fixture
def served(tmp_path):
    """A page of a file that does not compile yet."""
    pytest.importorskip("viser", reason="needs the extra 'lab'")
    pytest.importorskip("viser", reason="needs the extra 'lab'")
    from manyworlds.lab.page import ReloadablePage

    path = tmp_path / "arm.xml"
    path.write_text(BAD)
    page = ReloadablePage(lambda: LiveLab(world_from_file(path)), port=free_port(), in_process=True)
    yield page, path
    page.close()


def test_what_does_not_compile_is_a_card(served):
    """Open a broken file: MuJoCo's text on a card; fix it: a world; break it: both."""
    served, path = served
    page = served.page
    served.open()
    assert page._shown is None and "mass and inertia" in page.card.content
    assert page.note.content == ""  # the card is next to the button
    path.write_text(ARM)
    press(page.button)
    first, lab = page._shown, served.lab
    assert first is not None and page.card.content == "" and not page.errors
    assert lab.loop.state == "running"
    path.write_text(BAD)
    press(page.button)
    assert page._shown is first and "mass and inertia" in page.card.content
    assert page.note.content == page.card.content
    assert served.lab is lab and lab.loop.state == "running"
    overlays, robot = page.parts["OverlayPart"], lab["arm"]
    overlays.boxes["joints"].value = True
    robot.write("panel", {"elbow": 2.0})
    lab.states.save("here")
    path.write_text(ARM.replace('name="ball"', 'name="globe"').replace('"arm"', '"other"'))
    before = lab.world.model_hash
    press(page.button)
    assert page._shown is first and page.card.content == "" and not page.errors
    page.update()
    assert lab.loop.state == "running" and lab.world.model_hash != before
    assert overlays.follow.options[3] == "globe" and overlays.boxes["joints"].value
    assert lab["arm"] is robot and robot.command.targets[1] == 2.0
    assert "converted" in lab.states["here"].converted
    assert not page.errors, page.errors


def test_card_and_button_are_there_once(served):
    """Correct a file that did not compile: no error is left, and there is one button."""
    served, path = served
    served.open()
    path.write_text(ARM)
    press(served.page.button)
    handles = served.page.server.gui._container_handle_from_uuid["root"]._children.values()
    assert [getattr(handle, "label", "") for handle in handles].count("Reload") == 1
    assert not any("mass and inertia" in str(getattr(h, "content", "")) for h in handles)


def test_what_is_gone_is_told(served):
    """Take the file away: opening raises, reloading tells it on the card."""
    served, path = served
    path.unlink()
    with pytest.raises(FileNotFoundError):
        served.open()
    served.reload()
    assert "no model file" in served.page.card.content
