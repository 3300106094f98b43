"""The page of a lab, without a browser."""

from __future__ import annotations

import html
import math
import re
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest

from manyworlds.lab import Passthrough, world_from_spec
from tests.lab.conftest import ARM
from tests.lab.page.conftest import give, press

EMPTY = "<mujoco><worldbody/></mujoco>"
KEYED = ARM.replace(
    "</actuator>",
    "</actuator><keyframe><key name='up' qpos='-1.5 0 1 0 .3 1 0 0 0' ctrl='0 0'/></keyframe>",
)


def iterate_once(page, times: int = 1) -> None:
    """Let the world go on without its thread, and the page show it."""
    for _ in range(times):
        page.lab.loop.iterate_once()
    page.update()
    assert not page.errors, page.errors[-1]


def test_sliders_tell_actuators(page):
    """Move a slider: its actuator gets the value at the next step, the others keep theirs."""
    part = page.parts["RobotPart"]
    give(part.sliders["arm"].handles[1], 5.0)
    iterate_once(page)
    assert page.lab.snapshot.ctrl.tolist() == [0.0, 5.0]
    assert part.sliders["arm"].handles[1].value == 5.0
    press(part.reset_targets)
    iterate_once(page)
    assert page.lab.snapshot.ctrl.tolist() == [0.0, 0.0]
    assert part.sliders["arm"].handles[1].value == 0.0


def test_sliders_are_locked_while_another_steers(page):
    """Let a client take the robot: sliders follow it and refuse hands; give it back."""
    part, robot = page.parts["RobotPart"], page.lab["arm"]
    slider = part.sliders["arm"].handles[0]
    robot.take("client")
    robot.write("client", {"shoulder": -7.0})
    iterate_once(page)
    assert slider.disabled and slider.value == -7.0 and part.reset_targets.disabled
    assert part.owner.value == "client" and "client" in page.parts["TopBar"].status.content
    give(slider, 3.0)
    iterate_once(page)
    assert robot.command.targets[0] == -7.0
    give(part.owner, "panel")
    iterate_once(page)
    assert robot.owner == "panel" and not slider.disabled


def test_the_control_law_can_be_switched_off(page):
    """Switch it off on the page and on again behind it: controls, and the page, follow."""
    part, robot = page.parts["RobotPart"], page.lab["arm"]

    class More(Passthrough):
        def compute(self, model, data, target):
            return target + 1.0

    robot.controller = More()
    iterate_once(page)
    assert page.lab.snapshot.ctrl.tolist() == [1.0, 1.0]
    give(part.controller, False)
    iterate_once(page)
    assert page.lab.snapshot.ctrl.tolist() == [0.0, 0.0]
    robot.enabled = True
    iterate_once(page)
    assert part.controller.value


def test_a_hand_is_not_fought(page):
    """Move a slider between updates: nothing sets it back but a reset."""
    slider = page.parts["RobotPart"].sliders["arm"].handles[0]
    iterate_once(page)
    for value in (1.0, 2.0, 3.0):
        give(slider, value)
        slider._impl.value = value + 0.05  # the hand is ahead of the page
        iterate_once(page)
        assert slider.value == value + 0.05
    page.lab.reset()
    iterate_once(page)
    assert slider.value == 0.0


def test_warnings_about_the_file_are_on_the_page(open_page):
    """Show what is probably wrong with the model file until the user's next action."""
    page = open_page(warnings=["nothing holds 'ball'"])
    bar = page.parts["TopBar"]
    assert "Nothing holds &#x27;ball&#x27;" in bar.status.content
    press(bar.play)
    page.update()
    assert "Nothing holds" not in bar.status.content


def test_the_top_bar_follows_the_engine(page):
    """Pause by anybody: label, banner and reason show it; time, steps and pace are told."""
    bar = page.parts["TopBar"]
    page.lab["arm"].write("panel", {"elbow": 0.0})
    iterate_once(page, 3)
    assert bar.play.label == "Pause" and bar.banner.content == ""
    assert "0.006 s" in bar.status.content and "Not moving" not in bar.status.content
    assert re.search(r"Steps\W.*?>3<", bar.status.content)
    assert re.search(r"\d\.\d\dx real time", bar.status.content)
    page.lab.pause()
    iterate_once(page, 2)
    assert bar.play.label == "Play" and "PAUSED" in bar.banner.content
    assert "Not moving: the world is paused" in bar.status.content
    press(bar.play)
    iterate_once(page, 2)
    assert bar.play.label == "Pause" and page.lab.snapshot.step == 5
    give(bar.speed, "max")
    iterate_once(page)
    assert math.isinf(page.lab.loop.speed)
    page.lab.loop.speed = 3.0
    iterate_once(page, 2)
    assert bar.speed.value == "3x"


def test_a_note_claims_nothing_of_what_moves(page):
    """Tell a robot nothing: while it falls this is a note; when it lies, why it does not move."""
    bar = page.parts["TopBar"]
    iterate_once(page, 20)
    assert "its actuators hold no position: move a slider" in bar.status.content
    assert "Not moving" not in bar.status.content
    page.lab.post(lambda model, data: data.qvel.__setitem__(slice(None), 0.0))
    page.lab.post(lambda model, data: model.opt.gravity.__setitem__(slice(None), 0.0))
    iterate_once(page)
    assert (
        "Not moving: its controls have their initial values, and its actuators hold no position"
        in bar.status.content
    )


def test_a_fault_is_told_and_mended(page):
    """Break the world: the page says why, and its reset mends it."""
    page.lab.post(lambda model, data: data.qpos.__setitem__(0, np.inf))
    iterate_once(page)
    bar = page.parts["TopBar"]
    assert "STOPPED" in bar.banner.content and "diverged" in bar.status.content
    for call in bar.run._impl.update_cb:
        call(SimpleNamespace(target=SimpleNamespace(value="Reset")))
    iterate_once(page, 2)
    assert bar.banner.content == "" and page.lab.loop.state == "ready"


def test_a_fault_of_a_world_without_a_robot_is_told(open_page):
    """Let a ball diverge: the page says why the world stopped, though nothing has an actuator."""
    ball = "<body name='b'><freejoint/><geom size='.1'/></body>"
    page = open_page(f"<mujoco><worldbody>{ball}</worldbody></mujoco>")
    page.lab.loop.do(lambda model, data: data.qvel.__setitem__(0, np.nan))
    iterate_once(page)
    assert "STOPPED" in page.parts["TopBar"].banner.content
    reason = page.lab.snapshot.fault[1:]
    assert "of body 'b'" in reason and not page.parts["AppliedPart"].folder.visible
    assert reason in html.unescape(page.parts["TopBar"].status.content)


def test_what_goes_wrong_is_shown(page):
    """Ask for what cannot be: the page says it as text, and goes on."""
    part = page.parts["SavedStatePart"]
    give(part.name, "<b>/evil")
    press(part.save)
    assert "&lt;b&gt;/evil" in part.outcome.content
    page.context.attempt(lambda: page.lab.verbs.capture_state(label="<b>/evil"))
    iterate_once(page)
    assert "&lt;b&gt;/evil" in page.parts["TopBar"].status.content
    press(page.keys and page.parts["RobotPart"].reset_targets)
    iterate_once(page)
    assert "evil" not in page.parts["TopBar"].status.content


def test_defects_of_actions_are_shown_and_printed(page, capsys):
    """Let an action raise what no wrong input raises: the page names it, the terminal has all."""
    page.context.attempt(lambda: [][3])
    assert page.context.message == "IndexError: list index out of range"
    assert "Traceback" in capsys.readouterr().err
    iterate_once(page)
    assert "IndexError: list index out of range" in page.parts["TopBar"].status.content


def test_a_part_that_fails_does_not_end_the_page(page):
    """Let one part raise: it is named, and the others go on."""

    def fail(snapshot):
        raise ValueError("no such thing")

    page.parts["TreePart"].update = fail
    page.update()
    page.lab.loop.iterate_once()
    page.update()
    assert len(page.errors) == 1
    assert "TreePart failed: ValueError: no such thing" in page.parts["TopBar"].status.content


def test_bodies_are_drawn_where_they_are(page):
    """Let the ball fall: each mesh is at its body's pose in one snapshot."""
    iterate_once(page, 40)
    snapshot = page.lab.snapshot
    drawn = set()
    for handle, body_at in page.context.view.meshes:
        for i in range(len(handle.batched_positions)):
            body = body_at(i, np.zeros(3))
            drawn.add(body)
            np.testing.assert_allclose(handle.batched_positions[i], snapshot.xpos[body], atol=1e-6)
            np.testing.assert_allclose(handle.batched_wxyzs[i], snapshot.xquat[body], atol=1e-6)
    assert drawn == {1, 2, 3, 4} and snapshot.xpos[3, 2] < 0.3


def test_the_camera_can_follow_a_body(page):
    """Follow the ball: the scene moves so that it stays where it was, and back again."""
    give(page.parts["OverlayPart"].follow, "ball")
    page.lab.post(lambda model, data: data.qpos.__setitem__(2, 4.0))
    iterate_once(page, 2)
    view = page.context.view
    assert view.offset[0] == pytest.approx(view._home[0] - page.lab.snapshot.xpos[3, 0])
    assert view._frames[0].position[0] == pytest.approx(view.offset[0])
    give(page.parts["OverlayPart"].follow, "nothing")
    iterate_once(page)
    assert (view.offset == 0.0).all()


def test_nothing_is_sent_while_nothing_moves(page, monkeypatch):
    """Pause: further updates send nothing, and move nothing in the scene."""
    page.lab.pause()
    iterate_once(page, 3)
    page.update()
    sent = []
    server = page.server._websock_server
    monkeypatch.setattr(server, "queue_message", sent.append)
    for _ in range(5):
        iterate_once(page)
    kinds = [type(message).__name__ for message in sent]
    assert not [kind for kind in kinds if "Gui" in kind or "Scene" in kind], kinds
    page.lab.play()
    iterate_once(page, 2)
    assert sent, "the test does not see what is sent"


TWO = """
<mujoco><worldbody>
  <body name="one/base"><joint name="one/turn" axis="0 1 0"/><geom size=".1" pos=".3 0 0"/></body>
  <body name="two/base" pos="2 0 0"><joint name="two/turn" axis="0 1 0"/>
    <geom size=".1" pos=".3 0 0"/></body></worldbody>
  <actuator><motor name="one/turn" joint="one/turn" ctrlrange="-1 1"/>
    <motor name="two/turn" joint="two/turn" ctrlrange="-1 1"/></actuator>
</mujoco>"""


def test_one_of_several_robots_is_chosen(open_page):
    """Choose the second robot: its sliders, owner and overlays are shown; others are left out."""
    page = open_page(TWO, robots=("one", "two"), errors={"three": "a mass is missing"})
    bar, part = page.parts["TopBar"], page.parts["RobotPart"]
    assert tuple(bar.robot.options) == ("one", "two")
    assert "three was left out: a mass is missing" in bar.status.content
    iterate_once(page)
    shown = {name: sliders.folder.visible for name, sliders in part.sliders.items()}
    assert shown == {"one": True, "two": False}
    give(bar.robot, "two")
    give(part.owner, "nobody")
    iterate_once(page, 2)
    assert page.lab["two"].owner == "nobody" and page.lab["one"].owner == "panel"
    assert part.sliders["two"].folder.visible and not part.sliders["one"].folder.visible
    assert "two/" not in page.parts["ReadoutPart"].joints.content
    overlays = page.parts["OverlayPart"]
    assert overlays._folders["two"].visible and not overlays._folders["one"].visible
    give(overlays.own["two"]["joints"], "on")
    iterate_once(page)
    iterate_once(page)
    assert set(overlays.overlays.joints.handles) == {(1, False)}


def test_options_change_the_physics(page):
    """Change options on the page and behind it: the world obeys, the page shows."""
    part, option = page.parts["OptionsPart"], page.lab.world.model.opt
    give(part.inputs["timestep"], 0.005)
    give(part.inputs["integrator"], "rk4")
    give(part.inputs["gravity"], (0.0, 0.0, 1.0))
    give(part.inputs["Contacts"], False)
    assert option.timestep == 0.005, "the change is made when the action returns"
    iterate_once(page)
    assert option.integrator == mujoco.mjtIntegrator.mjINT_RK4
    assert option.gravity.tolist() == [0.0, 0.0, 1.0]
    assert option.disableflags == mujoco.mjtDisableBit.mjDSBL_CONTACT
    assert page.lab.snapshot.time == pytest.approx(0.005)
    page.lab.post(lambda model, data: setattr(model.opt, "iterations", 7))
    give(part.inputs["Contacts"], True)
    iterate_once(page)
    assert part.inputs["iterations"].value == 7 and option.disableflags == 0


def test_flags_that_switch_on_and_off(page):
    """Switch sleep on, which is off at first, and several contacts off, which are on."""
    part, option = page.parts["OptionsPart"], page.lab.world.model.opt
    assert (
        part.inputs["Sleep"].value is False and part.inputs["Multiple contacts per geom pair"].value
    )
    give(part.inputs["Sleep"], True)
    give(part.inputs["Multiple contacts per geom pair"], False)
    give(part.inputs["sleep_tolerance"], 0.01)
    iterate_once(page)
    assert option.enableflags == mujoco.mjtEnableBit.mjENBL_SLEEP and option.sleep_tolerance == 0.01
    assert option.disableflags == mujoco.mjtDisableBit.mjDSBL_MULTICCD
    assert part.inputs["Sleep"].value and not part.inputs["Multiple contacts per geom pair"].value
    give(part.inputs["Sleep"], False)
    iterate_once(page)
    assert option.enableflags == 0


def test_keyframes(open_page):
    """Go to a keyframe with and without the root; hold it and let go."""
    page = open_page(KEYED)
    part = page.parts["KeyframePart"]
    press(part.put)
    assert page.lab.snapshot.qpos[0] == -1.5 and page.lab.snapshot.qpos[2] == 0.5
    give(part.root, "keyframe pose")
    press(part.put)
    assert page.lab.snapshot.qpos[2] == 1.0
    press(part.hold)
    iterate_once(page, 50)
    assert page.lab.snapshot.qpos[0] == pytest.approx(-1.5, abs=0.05)
    assert part.hold.label == "Stop holding" and page.lab["arm"].owner == "hold"
    press(part.hold)
    iterate_once(page)
    assert part.hold.label == "Hold" and page.lab["arm"].owner == "panel"


def test_snapshots(page):
    """Save two states and return to the first."""
    part = page.parts["SavedStatePart"]
    iterate_once(page, 10)
    give(part.name, "early")
    press(part.save)
    iterate_once(page, 10)
    press(part.save)
    iterate_once(page)
    assert tuple(part.choice.options) == tuple(page.lab.states.names)
    give(part.choice, "early")
    press(part.restore)
    assert page.lab.snapshot.time == pytest.approx(0.02)


def test_meshes_come_after_the_panel(page):
    """Make a page: there are no meshes while parts are made, and a browser gets those last."""
    seen = []

    class Probe:
        period = 0.0

        def __init__(self, ctx) -> None:
            seen.append(len(ctx.view.meshes))

        def update(self, snapshot) -> None:
            pass

    from manyworlds.lab.page import PageServer

    again = PageServer(page.lab, server=page.server, tabs={"Mine": (Probe,)})
    assert seen == [0] and len(again.context.view.meshes) >= 3
    again.close()


def test_policies_without_commands_have_no_folder_for_them(page):
    """Let a policy have the robot that can be asked for nothing: no empty folder is shown."""
    page.lab["arm"].take("policy")
    iterate_once(page)
    part = page.parts["RobotPart"]
    assert part.owner.value == "policy" and not part.commands["arm"].folder.visible


def test_plots_hold_each_step(page):
    """Plot a joint: the points are those of all physics steps; a reset restarts the plot."""
    part = page.parts["PlotPart"]
    give(part.choice, "shoulder position")
    page.update()
    times, values = [0.0], [page.lab.snapshot.qpos[0]]
    for _ in range(60):
        page.lab.loop.iterate_once()
        times.append(page.lab.snapshot.time)
        values.append(page.lab.snapshot.qpos[0])
    iterate_once(page, 0)
    (plot,) = part.plots
    np.testing.assert_array_equal(plot.lines.data[0], times)
    np.testing.assert_array_equal(plot.lines.data[1], values)
    give(part.seconds, 1)
    iterate_once(page, 600)
    assert plot.lines.data[0][0] == pytest.approx(page.lab.snapshot.time - 1.0, abs=0.003)
    page.lab.reset()
    iterate_once(page, 3)
    assert len(plot.lines.data[0]) == 3
    press(part.clear)
    iterate_once(page, 0)
    assert not part.plots


def test_plots_have_several_lines(page):
    """Put a joint, a sensor and a contact force into one plot, and take one out again."""
    part = page.parts["PlotPart"]
    give(part.choice, "elbow position")
    iterate_once(page)
    give(part.place, "1: elbow position")
    for name in ("angle", "ball contact force"):
        give(part.choice, name)
        iterate_once(page)
    (plot,) = part.plots
    assert plot.names == ("elbow position", "angle", "ball contact force")
    iterate_once(page, 5)
    assert len(plot.lines.data) == 4
    assert plot.lines.data[1][-1] == page.lab.snapshot.qpos[1]
    give(part.choice, "angle")
    iterate_once(page)
    assert part.chosen == [("elbow position", "ball contact force")]
    give(part.place, "a new plot")
    give(part.choice, "angle")
    give(part.apart, True)
    iterate_once(page)
    assert [plot.names for plot in part.plots] == [*part.chosen] and len(part.chosen) == 2


def test_a_click_in_a_plot_goes_back_to_that_time(page):
    """Click at a time: that moment is shown, and browsers are told which one it is."""
    part = page.parts["PlotMomentPart"]
    iterate_once(page, 50)
    assert 'moment=""' in part.mark.content
    time = page.lab.snapshot.time
    page.context.answers["plot_time"]("browser 1", {"time": time - 0.02})
    iterate_once(page, 0)
    assert page.lab.snapshot.time == pytest.approx(time - 0.02, abs=1e-9)
    assert f'moment="{time - 0.02:.6f}"' in part.mark.content


def test_plots_have_different_numbers_at_their_ticks(page):
    """Plot what hardly moves: the range is wide enough for an axis with three decimals."""
    part = page.parts["PlotPart"]
    for i in range(5):
        page.lab.post(lambda model, data, q=0.2001 + 1e-5 * i: data.qpos.__setitem__(0, q))
        page.lab.post(lambda model, data: data.qvel.fill(0.0))
        iterate_once(page)
        if i == 0:
            give(part.choice, "shoulder position")
            iterate_once(page, 0)
    plot = part.plots[0].lines
    low, high = plot.handle.scales["y"]["range"]
    assert low < 0.2 < 0.2002 < high and high - low >= 0.01
    assert plot.handle.padding[0] >= 6, "a number at the upper end is not cut off"
    page.lab.post(lambda model, data: data.qpos.__setitem__(0, 0.5))
    iterate_once(page)
    assert "y" not in plot.handle.scales


def test_read_outs_have_units(page):
    """Show joints and sensors with their units, as numbers of the snapshot."""
    iterate_once(page, 100)
    part = page.parts["ReadoutPart"]
    assert f"{page.lab.snapshot.qpos[1]:.3f}" in part.joints.content
    assert "rad/s" in part.joints.content and "angle" in part.sensors.content


def test_sensors_are_grouped_by_type(open_page):
    """Show sensors of several types: those of one type are together, below its name."""
    page = open_page(
        """<mujoco><worldbody><body name="b"><joint name="j"/><joint name="k" type="slide"/>
        <geom size=".1"/><site name="s"/></body></worldbody><sensor>
        <jointpos name="first" joint="j"/><gyro name="imu" site="s"/>
        <jointpos name="second" joint="k"/></sensor></mujoco>"""
    )
    iterate_once(page)
    shown = re.findall(r"<tr><td[^>]*>([^<]*)<", page.parts["ReadoutPart"].sensors.content)
    assert shown == ["jointpos", "· first", "· second", "gyro", "· imu"]


def test_bodies_can_be_found(page):
    """Choose a body, and click another: the tree marks it, its mass is told."""
    part = page.parts["TreePart"]
    give(part.choice, "lower")
    iterate_once(page)
    assert page.context.body == 2
    assert f"{page.lab.world.model.body_mass[2]:.4g} kg" in part.info.content
    click(page, page.lab.snapshot.xpos[3])
    assert part.choice.value == "ball"


def click(page, point) -> None:
    """Click where a point of the world is seen from the side."""
    page.parts["PullPart"].click(point - np.array([0.0, 3.0, 0.0]), (0.0, 1.0, 0.0))
    iterate_once(page)


def test_a_click_selects_and_clears(page):
    """Click a body: it is tinted and stays selected; click the floor and the sky: it is not."""
    pull, snapshot = page.parts["PullPart"], page.lab.snapshot
    tint = page.parts["SelectionPart"]
    click(page, snapshot.xpos[4])
    page.update()
    assert page.context.body == 4 and tint.label.visible
    model = page.lab.world.model
    assert tint.geoms == np.flatnonzero(model.geom_bodyid == 4).tolist()
    assert tint.label.text == model.body(4).name
    (drawn,) = tint.layer.handles.values()
    np.testing.assert_allclose(
        drawn.batched_positions, page.lab.snapshot.geom_xpos[tint.geoms], atol=1e-6
    )
    iterate_once(page, 30)
    assert page.context.body == 4
    pull.click((1.5, 1.5, 1.0), (0.0, 0.0, -1.0))
    iterate_once(page)
    assert page.context.body == 0 and not (tint.geoms or tint.label.visible)
    click(page, snapshot.xpos[4])
    pull.click((0.0, 0.0, 2.0), (0.0, 0.0, 1.0))
    assert page.context.body == 0


@pytest.mark.parametrize("paused", [False, True])
def test_handles_move_mocap_bodies(open_page, paused):
    """Drag the post's handle: the post is there at the next step, also while time stands."""
    page = open_page(start_paused=paused)
    part = page.parts["MocapPart"]
    iterate_once(page)
    assert not part.handles[0].visible
    give(part.box, True)
    iterate_once(page)
    handle = part.handles[0]
    assert handle.visible
    np.testing.assert_allclose(handle.position, (-1.0, 0.0, 0.2))
    part.hold(0, "start", np.array([-1.0, 0.0, 0.2]), np.array([1.0, 0.0, 0.0, 0.0]))
    part.hold(0, "update", np.array([-1.0, 0.5, 0.4]), np.array([0.0, 1.0, 0.0, 0.0]))
    iterate_once(page)
    assert page.lab.snapshot.mocap_pos.tolist() == [[-1.0, 0.5, 0.4]]
    assert page.lab.snapshot.xpos[4].tolist() == [-1.0, 0.5, 0.4]
    assert page.lab.snapshot.xquat[4].tolist() == [0.0, 1.0, 0.0, 0.0]
    np.testing.assert_allclose(handle.position, (-1.0, 0.0, 0.2))  # a hand holds it
    part.hold(0, "end", np.array([-1.0, 0.5, 0.4]), np.array([0.0, 1.0, 0.0, 0.0]))
    page.lab.reset()
    iterate_once(page, 2)
    np.testing.assert_allclose(handle.position, (-1.0, 0.0, 0.2))


def drag(phase: str, button: str = "right", end=(0.5, 0.0, 0.9), screen=(0.5, 0.5)):
    """An event of a drag that began at the ball's middle."""
    camera = SimpleNamespace(wxyz=np.array([1.0, 0.0, 0.0, 0.0]))
    return SimpleNamespace(
        phase=phase,
        button=button,
        client_id=4,
        client=SimpleNamespace(camera=camera),
        start_position=(0.5, 0.0, 0.3),
        end_position=end,
        end_screen_pos=screen,
    )


def test_a_drag_pulls_a_body(page):
    """Pull the ball up: the force is on it while the hand holds it, and gone when it lets go."""
    pull = page.parts["PullPart"]
    pull.drag(drag("start"), 3)
    iterate_once(page, 2)
    assert page.lab.snapshot.xfrc_applied[3, 2] > 0.0 and page.context.body == 3
    iterate_once(page, 200)
    assert page.lab.snapshot.xpos[3, 2] > 0.35
    pull.drag(drag("end"), 3)
    iterate_once(page, 2)
    assert (page.lab.snapshot.xfrc_applied == 0.0).all()
    assert page.lab.perturbation.body == 0


def test_a_drag_turns_a_body(page):
    """Turn the ball with the left button: a torque, and no force."""
    pull = page.parts["PullPart"]
    pull.drag(drag("start", "left"), 3)
    pull.drag(drag("update", "left", screen=(0.6, 0.5)), 3)
    iterate_once(page, 2)
    wrench = page.lab.snapshot.xfrc_applied[3]
    assert np.abs(wrench[3:]).max() > 0.0 and (wrench[:3] == 0.0).all()


def test_a_drag_of_a_paused_world_poses_a_body(page):
    """Pull the ball while the world is paused: it is put there at once."""
    page.lab.pause()
    iterate_once(page)
    page.parts["PullPart"].drag(drag("start"), 3)
    iterate_once(page, 2)
    assert page.lab.snapshot.xpos[3, 2] == pytest.approx(0.9, abs=1e-6)
    assert page.lab.snapshot.step == 0


def test_the_page_follows_a_rebuilt_world(page):
    """Rebuild the world with a taller arm: the page shows its parts, once each."""
    iterate_once(page, 5)
    taller = ARM.replace('name="ball"', 'name="globe"')
    page.lab.rebuild(world_from_spec(mujoco.MjSpec.from_string(taller)))
    iterate_once(page, 2)
    assert "globe" in page.parts["TreePart"].choice.options
    assert len(page.server.gui._command_handle_from_uuid) == len(page.keys.actions)
    give(page.parts["RobotPart"].sliders["arm"].handles[0], 1.0)
    iterate_once(page)
    assert page.lab.snapshot.ctrl[0] == 1.0


def test_an_empty_world_has_a_page(open_page):
    """Open a world with nothing in it."""
    page = open_page(EMPTY)
    iterate_once(page, 3)
    assert page.lab.snapshot.step == 3
    page.keys.actions["4"]()
    page.keys.actions["6"]()
    iterate_once(page, 2)


def test_closing_twice_is_no_matter(open_page):
    """Close a page that is being shown, twice."""
    page = open_page()
    page.start()
    page.close()
    page.close()


def test_pictures_become_fewer_while_somebody_waits_for_steps(page, monkeypatch):
    """Count the pictures of ten seconds, each of which takes 5 ms of the processor."""
    now, busy, counts = 0.0, 0.0, []

    def picture() -> None:
        nonlocal now, busy
        counts[-1] += 1
        now, busy = now + 0.005, busy + 0.005

    def wait(seconds: float) -> None:
        nonlocal now
        now += seconds

    clock = SimpleNamespace(monotonic=lambda: now, thread_time=lambda: busy)
    monkeypatch.setattr("manyworlds.lab.page.page_server.time", clock)
    monkeypatch.setattr(page.server, "get_clients", lambda: {0: object()})
    monkeypatch.setattr(page, "update", picture)
    monkeypatch.setattr(page, "_stopping", SimpleNamespace(is_set=lambda: now >= 10.0, wait=wait))
    for asked in (False, True):
        now = 0.0
        counts.append(0)
        monkeypatch.setattr(type(page.lab.loop), "has_requests", asked)
        page._run()
    assert 1 <= counts[1] < 0.5 * counts[0]
