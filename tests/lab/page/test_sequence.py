"""Presets on the page, and snapshots that go out as files and come in."""

from __future__ import annotations

from types import SimpleNamespace

import mujoco

from manyworlds.asset_zoo.arm import get_spec
from manyworlds.lab import LiveLab, world_from_spec
from tests.lab.conftest import ARM
from tests.lab.page.conftest import give, press
from tests.lab.page.test_page import iterate_once


def servo_arm() -> str:
    """The arm that comes with manyworlds, its joints held by position actuators."""
    spec = get_spec()
    for name in (*(f"joint{i}" for i in range(1, 7)), "left_finger"):
        actuator = spec.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        actuator.set_to_position(kp=50.0)
    return spec.to_xml()


def test_a_preset_is_played_and_stopped(open_page):
    """Choose a sequence, play and stop it: the robot is the sequence's, then the panel's again."""
    page = open_page(servo_arm())
    part, (robot,) = page.parts["SequencePart"], page.lab.controls
    assert tuple(part.choice.options) == ("Arm: Reach-Grasp-Lift", "Arm: Wave")
    give(part.choice, "Arm: Wave")
    press(part.start)
    iterate_once(page, 400)
    assert robot.owner == "sequence" and part.start.label == "Stop"
    assert abs(page.lab.snapshot.ctrl[0]) > 1e-3
    press(part.start)
    iterate_once(page, 2)
    assert robot.owner == "panel" and part.start.label == "Start"


def test_other_robots_have_none(page):
    """Look at a robot that no preset is for: nothing is offered."""
    assert not page.parts["SequencePart"].folder.visible


def test_snapshots_go_out_and_come_in(page):
    """Download a snapshot, take it into another lab, and refuse one of another model."""
    part, lab = page.parts["SavedStatePart"], page.lab
    assert part.download.disabled
    iterate_once(page, 20)
    give(part.name, "swing")
    press(part.save)
    iterate_once(page)
    sent = []
    client = SimpleNamespace(send_file_download=lambda *args, **_: sent.append(args))
    for call in part.download._impl.update_cb:
        call(SimpleNamespace(client=client))
    ((name, content),) = sent
    assert name == "swing.npz" and content == lab.states.pack("swing")
    give(part.name, "late")
    press(part.save)
    other = LiveLab(world_from_spec(mujoco.MjSpec.from_string(ARM)))
    other.states.unpack(content, name)
    other.states.restore("swing")
    assert other.snapshot.time == lab.states["swing"].time > 0.0
    other.stop()
    changed = LiveLab(world_from_spec(mujoco.MjSpec.from_string(ARM.replace("120", "110"))))
    changed.states.save("foreign")
    give(part.upload, SimpleNamespace(name="f.npz", content=changed.states.pack("foreign")))
    iterate_once(page)
    assert "'f.npz' is a state of another model" in page.parts["TopBar"].status.content.replace(
        "&#x27;", "'"
    )
    give(part.upload, SimpleNamespace(name=name, content=content))
    assert lab.states.names == ["swing", "late"]
    changed.stop()
