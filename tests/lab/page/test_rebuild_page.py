"""Pages over rebuilds of the world: what a user has chosen stays where it is still there."""

from __future__ import annotations

import threading
from pathlib import Path

import mujoco
import numpy as np
import pytest

from manyworlds.lab import LabCfg, LiveLab, world_from_file, world_from_spec
from tests.browser import free_port
from tests.lab.conftest import ARM
from tests.lab.page.conftest import give, press
from tests.lab.scene.test_rebuild import SUITE, suite_file, with_box


def update(page) -> None:
    """Let the page show everything."""
    page._due = dict.fromkeys(page._due, float("-inf"))
    page.update()
    assert not page.errors, page.errors[-1]


def rebuild(page, *changes: tuple[str, str]) -> None:
    """Rebuild the arm with some of its text changed, and show it."""
    xml = ARM
    for old, new in changes:
        assert old in xml
        xml = xml.replace(old, new)
    assert page.lab.rebuild(world_from_spec(mujoco.MjSpec.from_string(xml)))
    update(page)


UPPER = '<body name="upper"'
BOX = '<body name="box" pos="3 0 1"><freejoint/><geom size=".1"/></body>' + UPPER


def test_all_choices_stay(page):
    """Choose something everywhere, and put a box before the arm: all of it stays."""
    parts, ctx = page.parts, page.context
    handles = dict(page.server.gui._gui_input_handle_from_uuid)
    overlays, plots, record = parts["OverlayPart"], parts["PlotPart"], parts["RecordPart"]
    overlays.boxes["joints"].value = True
    overlays.see_through.value = True
    give(overlays.coloring, "Body")
    give(overlays.follow, "ball")
    give(overlays.own["arm"]["sites"], "on")
    for name in ("elbow position", "angle"):
        give(plots.choice, name)
    give(parts["TreePart"].choice, "lower")
    give(record.name, "mine.csv")
    give(record.file, "next.mcap")
    give(parts["SavedStatePart"].name, "typed")
    give(parts["MocapPart"].box, True)
    give(record.roles["arm"], "excluded")
    page.context.view.show_group(2, False)
    page.lab.step(5)
    update(page)
    rebuild(page, (UPPER, BOX))
    view, model = ctx.view, page.lab.world.model
    assert overlays.boxes["joints"].value and overlays.see_through.value
    assert overlays.coloring.value == "Body" and overlays.own["arm"]["sites"].value == "on"
    assert overlays.follow.value == "ball" and model.body(view.follow).name == "ball"
    assert model.body(ctx.body).name == "lower" == parts["TreePart"].choice.value
    assert plots.chosen == [("elbow position",), ("angle",)]
    for _ in range(3):
        page.lab.step()
    update(page)
    values = plots.plots[0].lines.data[1]
    assert values[-1] == page.lab.snapshot.qpos[8]
    assert len(values) == 4, "the plot goes on"
    assert (record.name.value, record.file.value) == ("mine.csv", "next.mcap")
    assert parts["SavedStatePart"].name.value == "typed" and parts["MocapPart"].box.value
    assert record.roles["arm"].value == "excluded"
    assert not view.grid.groups["geom"][2]
    assert ctx.note == "the world was rebuilt"
    kept = [
        h for h in handles.values() if h in page.server.gui._gui_input_handle_from_uuid.values()
    ]
    assert len(kept) > 0.7 * len(handles), "most controls are the same ones"
    assert len(page.server.gui._command_handle_from_uuid) == len(page.keys.actions)


def test_what_is_gone_is_noted(page):
    """Follow, select and plot what the new world does not have: a note names each."""
    parts, ctx = page.parts, page.context
    give(parts["OverlayPart"].follow, "ball")
    give(parts["TreePart"].choice, "lower")
    give(parts["PlotPart"].choice, "elbow position")
    give(parts["PlotPart"].choice, "shoulder position")
    update(page)
    page.lab.states.save("here")
    joints = (('joint name="elbow"', 'joint name="knee"'), ('joint="elbow"', 'joint="knee"'))
    rebuild(page, ('"ball"', '"globe"'), ('"lower"', '"hand"'), *joints)
    for what in (
        "the followed body 'ball' is gone",
        "the selected body 'lower' is gone",
        "the plot 'elbow position' is gone",
        "'here' converted from model",
    ):
        assert what in ctx.note, ctx.note
    assert "converted" in parts["TopBar"].status.content
    assert parts["PlotPart"].chosen == [("shoulder position",)]
    assert ctx.body == ctx.view.follow == 0 and parts["OverlayPart"].follow.value == "nothing"


def test_bodies_without_names_stay():
    """Select and follow legs of the ant that have no names: both stay, or are named as gone."""
    pytest.importorskip("viser", reason="needs the extra 'lab'")
    from manyworlds.lab.page import PageServer

    assets = Path(pytest.importorskip("gymnasium").__path__[0]) / "envs" / "mujoco" / "assets"
    text = (assets / "ant.xml").read_text()
    lab = LiveLab(world_from_spec(mujoco.MjSpec.from_string(text)), LabCfg(mode="direct"))
    page = PageServer(lab, port=free_port())
    try:
        parts, ctx = page.parts, page.context
        assert "" not in parts["OverlayPart"].follow.options
        give(parts["TreePart"].choice, "body 7")
        give(parts["OverlayPart"].follow, "body 4")
        box = '<worldbody><body name="box" pos="3 0 1"><freejoint/><geom size=".1"/></body>'
        more = text.replace("<worldbody>", box, 1).replace('name="aux_4"', 'name="aux_5"')
        assert lab.rebuild(world_from_spec(mujoco.MjSpec.from_string(more)))
        update(page)
        assert (ctx.body, ctx.view.follow) == (8, 5) and ctx.note == "the world was rebuilt"
        assert parts["OverlayPart"].follow.value == "body 5"
        give(parts["FilmPart"].shot, "follow")
        press(parts["FilmPart"].film)
        assert "has no name" in ctx.message
        assert parts["TreePart"].choice.value == "body 8"
        shorter = more.replace('name="aux_2"', 'name="aux_6"')
        assert lab.rebuild(world_from_spec(mujoco.MjSpec.from_string(shorter)))
        update(page)
        assert (ctx.body, ctx.view.follow) == (0, 5)
        assert "the selected body 'body 8' is gone" in ctx.note
    finally:
        page.close()
        lab.stop()


@pytest.mark.slow
@pytest.mark.parametrize("name", SUITE)
def test_pages_of_the_suite_continue(name):
    """Rebuild robots of dm_control with a box and back: each part shows each world."""
    pytest.importorskip("viser", reason="needs the extra 'lab'")
    from manyworlds.lab.page import PageServer

    lab = LiveLab(world_from_file(suite_file(name)), LabCfg(mode="direct"))
    page = PageServer(lab, port=free_port())
    robot, followed = page.context.robot, lab.world.model.body(2).name
    page.follow(followed)
    page.parts["OverlayPart"].toggle("joints", "sites", "contact_points")
    update(page)
    try:
        for world in (
            world_from_spec(with_box(suite_file(name))),
            world_from_file(suite_file(name)),
        ):
            assert lab.rebuild(world)
            lab.step(2)
            update(page)
            assert (
                page.context.robot == robot
                and page.context.view.follow == lab.world.model.body(followed).id
            )
            slider = page.parts["RobotPart"].sliders[robot].handles[0]
            give(slider, 0.5)
            assert lab[robot].command.targets[0] == 0.5
            model = lab.world.model
            boxed = model.body(model.nbody - 1).name == "a_box"
            assert ("a_box" in page.parts["TreePart"].choice.options) == boxed
    finally:
        page.close()
        lab.stop()


def test_robots_come_and_go(open_page):
    """Rebuild from one robot to two and to none: lists, sliders and choices follow."""
    page = open_page()
    two = mujoco.MjSpec()
    for prefix in ("left/", "right/"):
        frame = two.worldbody.add_frame(pos=[0.0, 2.0 * (prefix == "left/"), 0.0])
        two.attach(mujoco.MjSpec.from_string(ARM), prefix=prefix, frame=frame)
    assert page.lab.rebuild(world_from_spec(two))
    update(page)
    bar, ctx = page.parts["TopBar"], page.context
    assert bar.robot.visible and bar.robot.options == ("left", "right") and ctx.robot == "left"
    assert "the robot 'arm' is gone" in ctx.note
    give(bar.robot, "right")
    update(page)
    rebuild_two = mujoco.MjSpec.from_string(two.to_xml())
    assert page.lab.rebuild(world_from_spec(rebuild_two))
    update(page)
    assert ctx.robot == "right" == bar.robot.value
    assert page.lab.rebuild(world_from_spec(mujoco.MjSpec.from_string("<mujoco/>")))
    update(page)
    assert ctx.robot == "" and not bar.robot.visible
    assert not page.parts["AppliedPart"].folder.visible
    rebuild(page)
    assert ctx.robot == "arm" and page.parts["AppliedPart"].folder.visible


class Note:
    """A part from outside that knows nothing of rebuilds."""

    period = 0.0

    def __init__(self, ctx) -> None:
        self.nbody = ctx.lab.model.nbody
        self.text = ctx.gui.add_text("Bodies", str(self.nbody))

    def update(self, snapshot) -> None:
        """Show nothing new."""
        assert len(snapshot.xpos) == self.nbody


def test_parts_that_know_nothing_of_rebuilds_are_made_again(world):
    """Rebuild a page with such a part: there is one, in its tab, of the new world."""
    pytest.importorskip("viser", reason="needs the extra 'lab'")
    from manyworlds.lab.page import TABS, PageServer

    lab = LiveLab(world)
    page = PageServer(lab, port=free_port(), tabs={**TABS, "Mine": (Note,)})
    first = page.parts["Note"]
    rebuild(page, (UPPER, BOX))
    assert page.parts["Note"] is not first and page.parts["Note"].nbody == 6
    handles = page.server.gui._gui_input_handle_from_uuid.values()
    assert page.parts["Note"].text in handles and first.text not in handles
    page.close()
    lab.stop()


def test_programs_frame_and_follow(page):
    """Frame and follow robots and bodies by name; wrong names are refused with a hint."""
    page.frame("ball")
    near = np.linalg.norm(page.server.initial_camera.look_at - page.lab.snapshot.xpos[3])
    assert near < 0.1
    page.frame()
    page.follow("arm")
    update(page)
    assert page.parts["OverlayPart"].follow.value == "upper"
    page.follow()
    update(page)
    assert page.parts["OverlayPart"].follow.value == "nothing"
    with pytest.raises(KeyError, match="no robot or body 'bal'; did you mean 'ball'"):
        page.frame("bal")
    press(page.parts["TopBar"].play)


def test_a_page_is_drawn_while_the_world_is_rebuilt(world):
    """Draw a running world without a break while it is rebuilt thirty times: no part fails."""
    pytest.importorskip("viser", reason="needs the extra 'lab'")
    from manyworlds.lab.page import PageServer

    specs = [mujoco.MjSpec.from_string(ARM.replace(UPPER, b)) for b in (BOX, UPPER)]
    with LiveLab(world) as lab:
        page, done = PageServer(lab, port=free_port()), threading.Event()

        def draw() -> None:
            while not done.is_set():
                page._due = dict.fromkeys(page._due, float("-inf"))
                page.update()

        thread = threading.Thread(target=draw)
        thread.start()
        for i in range(30):
            assert lab.rebuild(world_from_spec(specs[i % 2]))
            lab.step(2)
        done.set()
        thread.join()
        page.update()
        assert not page.errors, page.errors[-1]
        assert page.parts["WorldView"].model is lab.world.model
        page.close()
