"""Driving of robots by held inputs, and bindings of inputs to actuators."""

from __future__ import annotations

import threading

import mujoco
import numpy as np
import pytest

from manyworlds.lab import LabCfg, LiveLab, world_from_file, world_from_spec
from manyworlds.lab.robots.controllers import Controller
from manyworlds.lab.robots.driving import HOLD_S
from manyworlds.lab.verbs import VerbError
from tests.lab.conftest import ARM
from tests.lab.policies import export_policy_of
from tests.lab.server.waiting import until


class Walker(Controller):
    """Law that takes a velocity, as a policy does."""

    name = "walker"

    def __init__(self) -> None:
        self.commands = {"twist": np.zeros(3)}

    def compute(self, model, data, target):
        """Leave the targets as they are."""
        return target

    @property
    def twist(self) -> list[float]:
        """The present command."""
        return self.commands["twist"].tolist()


@pytest.fixture
def lab(world):
    """A lab of the arm, which takes a velocity, and a clock that the test moves on."""
    lab = LiveLab(world)
    lab["arm"].controller = Walker()
    lab.now = 0.0
    lab.driving.clock = lambda: lab.now
    yield lab
    lab.stop()


def twist_of(lab: LiveLab) -> list[float]:
    """Velocity command that the robot has."""
    return lab["arm"].controller.twist


def test_inputs_are_held_for_a_while(lab):
    """Drive and be silent: the velocity ends after 0.5 s, earlier if it is stopped."""
    lab.driving.drive("arm", (1.0, 0.5, -1.0))
    assert twist_of(lab) == [0.8, 0.25, -1.57]
    assert lab.driving.twist_of("arm") == (0.8, 0.25, -1.57)
    lab.now = 0.9 * HOLD_S
    lab.loop.iterate_once()
    assert twist_of(lab) == [0.8, 0.25, -1.57]
    lab.driving.drive("arm", (0.0, 1.0, 0.0))  # ROS: y is left
    lab.now += 0.9 * HOLD_S
    lab.loop.iterate_once()
    assert twist_of(lab) == [0.0, 0.5, 0.0]
    lab.now += 0.2 * HOLD_S
    lab.loop.iterate_once()
    assert twist_of(lab) == [0.0, 0.0, 0.0] and not lab.driving.drivers
    lab.driving.drive("arm", (1.0, 0.0, 0.0), actions=0b101)
    assert lab["arm"].actions == 0b101
    assert lab.driving.stop("arm") and twist_of(lab) == [0.0, 0.0, 0.0]
    assert lab["arm"].actions == 0 and not lab.driving.stop("arm")


def test_one_drives(lab):
    """Drive from two places: the first one does, until it is silent or stops."""
    lab.driving.drive("arm", (1.0, 0.0, 0.0), driver="browser 1")
    with pytest.raises(RuntimeError, match=r"'arm' is driven by browser 1\."):
        lab.driving.drive("arm", (0.0, 1.0, 0.0), driver="browser 2")
    assert not lab.driving.stop("arm", "browser 2")
    assert twist_of(lab) == [0.8, 0.0, 0.0]
    lab.now = 1.1 * HOLD_S
    lab.driving.drive("arm", (0.0, 1.0, 0.0), driver="browser 2")
    assert twist_of(lab) == [0.0, 0.5, 0.0] and lab.driving.drivers == {"arm": "browser 2"}


def test_the_twist_is_read_whole(lab):
    """Read the velocity in another thread while it changes: never parts of two commands."""
    ahead, back = (0.8, 0.5, 1.57), (-0.8, -0.5, -1.57)
    seen, done = set(), threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add(lab.driving.twist_of("arm"))

    thread = threading.Thread(target=read)
    thread.start()
    for number in range(400):
        share = 1.0 if number % 2 else -1.0
        lab.driving.drive("arm", (share, share, share))
    done.set()
    thread.join()
    assert seen <= {(0.0, 0.0, 0.0), ahead, back} and len(seen) > 1


def test_speeds_have_bounds(lab):
    """Set speeds: they scale what is driven; those out of bounds are refused."""
    lab.call("set_drive_speeds", forward=2.0, yaw=3.14)
    lab.call("drive", robot="arm", twist=[1.0, 1.0, 1.0])
    assert twist_of(lab) == [2.0, 0.5, 3.14]
    with pytest.raises(VerbError, match="left must be a number from 0 to 1"):
        lab.call("set_drive_speeds", left=1.5)
    with pytest.raises(ValueError, match=r"'yaw' must be in \[0, 3.14\], got 4"):
        lab.driving.fastest = (1.0, 1.0, 4.0)
    with pytest.raises(ValueError, match=r"are in \[-1, 1\], got 1.5"):
        lab.driving.drive("arm", (1.5, 0.0, 0.0))


def test_what_cannot_be_driven_says_so(world):
    """Drive a robot that takes no velocity and has no binding: one sentence says what to do."""
    lab = LiveLab(world)
    with pytest.raises(ValueError, match=r"takes a velocity.* bind inputs\."):
        lab.driving.drive("arm")
    lab.bindings.bind("KeyG", "elbow")
    lab.driving.drive("arm", values={"KeyG": 1.0})
    assert lab.driving.drivable() == {"arm": False}
    lab.stop()


def targets_of(lab: LiveLab) -> list[float]:
    """Targets of the arm's motors."""
    return lab["arm"].command.targets.tolist()


def test_modes_of_bindings(lab):
    """Hold, toggle and accumulate: targets follow the inputs, within the controls' ranges."""
    lab["arm"].take("panel")
    bind, drive = lab.bindings.bind, lab.driving.drive
    bind("KeyG", "elbow", 3.0)
    bind("KeyH", "elbow", -1.0)
    bind("Button0", "shoulder", 5.0, "toggle")
    drive("arm", values={"KeyG": 1.0})
    assert targets_of(lab) == [0.0, 3.0]
    drive("arm", values={"KeyG": 1.0, "KeyH": 1.0, "Button0": 1.0})
    assert targets_of(lab) == [5.0, 2.0]
    drive("arm", values={"Button0": 1.0})  # held on: one press
    assert targets_of(lab) == [5.0, 0.0]
    drive("arm")
    drive("arm", values={"Button0": 1.0})
    assert targets_of(lab) == [0.0, 0.0]
    lab.call("unbind_input", input="Button0")
    bind("Axis2", "shoulder", 100.0, "accumulate")
    drive("arm", values={"Axis2": -0.5})
    for _ in range(10):
        lab.loop.iterate_once()
    assert lab["arm"].command.targets[0] == pytest.approx(-0.5 * 100.0 * 9 * 0.002)
    drive("arm", values={"Axis2": -1.0})
    lab.driving.clock = lambda: 0.0
    for _ in range(200):
        lab.loop.iterate_once()
    assert lab["arm"].command.targets[0] == -20.0, "the control's range"
    lab.driving.clock = lambda: 1.0
    lab.loop.iterate_once()
    lab.loop.iterate_once()
    assert lab["arm"].command.targets[0] == -20.0, "it stays"


def test_silence_ends_held_bindings(lab):
    """Hold a bound key and be silent: the target returns to the neutral one."""
    lab["arm"].take("panel")
    lab.bindings.bind("KeyG", "elbow", 3.0)
    lab.driving.drive("arm", values={"KeyG": 1.0})
    lab.now = 1.1 * HOLD_S
    lab.loop.iterate_once()
    assert targets_of(lab) == [0.0, 0.0]


@pytest.mark.parametrize(
    ("binding", "sentence"),
    [
        (
            {"input": "KeyG", "actuator": "elbw"},
            "'arm' has no actuator 'elbw'; did you mean 'elbow'",
        ),
        ({"input": "G", "actuator": "elbow"}, "There is no input 'G': use KeyA to KeyZ"),
        ({"input": "KeyW", "actuator": "elbow"}, "'KeyW' gives the velocity"),
        ({"input": "KeyG", "actuator": "elbow", "mode": "holt"}, "mode .*did you mean 'hold'"),
        ({"input": "KeyG", "actuator": "elbow", "scale": np.inf}, "scale must be a number"),
    ],
)
def test_wrong_bindings_are_refused(lab, binding, sentence):
    """Bind what is not there: an error at once, and nothing changes."""
    with pytest.raises(VerbError, match=sentence):
        lab.call("bind_input", robot="arm", **binding)
    assert not lab.bindings.table


def test_bindings_outlive_rebuilds(lab):
    """Rebuild the world: bindings stay, except of actuators that are gone, which is said."""
    lab.bindings.bind("KeyG", "elbow")
    lab.bindings.bind("KeyH", "shoulder")
    lab.rebuild(world_from_spec(mujoco.MjSpec.from_string(ARM)))
    assert len(lab.bindings.table) == 2
    spec = mujoco.MjSpec.from_string(ARM)
    spec.delete(spec.actuator("elbow"))
    lab.rebuild(world_from_spec(spec))
    assert [known.actuator for known in lab.bindings.table] == ["shoulder"]
    assert "the binding of KeyG ended: 'arm' has no 'elbow' now" in lab.rebuild_notes


def test_a_lab_that_runs_stops_the_robot(world):
    """Drive a lab whose thread runs, and be silent: the robot stops by itself."""
    with LiveLab(world, LabCfg()) as lab:
        lab["arm"].controller = Walker()
        lab.driving.drive("arm", (1.0, 0.0, 0.0))
        assert twist_of(lab) == [0.8, 0.0, 0.0]
        until(lambda: twist_of(lab) == [0.0, 0.0, 0.0], "the robot goes on")


def test_a_task_is_steered():
    """Drive a world that the environment of a task advances: its command follows, and ends."""
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.tasks import load_env_cfg

    cfg = load_env_cfg("Velocity-Flat-Quadruped", play=True)
    cfg.scene.num_envs, cfg.sim.engine = 1, "native"
    lab = LiveLab.driven_by(ManagerBasedRlEnv(cfg, device="cpu"))
    now = 0.0
    lab.driving.clock = lambda: now
    lab.driving.fastest = (1.0, 0.5, 1.0)
    lab.driving.drive(twist=(0.5, -1.0, 0.25))
    lab.step(cfg.decimation)
    assert lab.environment.report.commands["twist"] == pytest.approx((0.5, -0.5, 0.25))
    now = 1.1 * HOLD_S
    lab.step(2 * cfg.decimation)
    assert lab.environment.report.commands["twist"] == pytest.approx((0.0, 0.0, 0.0))
    lab.stop()


@pytest.mark.parametrize("task", ["Velocity-Flat-Quadruped", "Velocity-Flat-Humanoid"])
def test_a_policy_is_driven(task, tmp_path):
    """Drive policies in plain MuJoCo: what they observe follows, and ends with the inputs."""
    path = export_policy_of(task, tmp_path)
    world = world_from_file(tmp_path / "scene" / "scene.xml", by_prefix=True)
    lab = LiveLab(world, LabCfg(mode="direct"))
    now = 0.0
    lab.driving.clock = lambda: now
    law = lab.run_policy(path)
    (robot,) = lab.controls
    assert lab.driving.drivable() == {robot.name: True}
    lab.step(20)
    still = lab.snapshot.ctrl.copy()
    lab.reset()
    lab.driving.drive(twist=(1.0, 0.5, -1.0))
    assert law.commands["twist"].tolist() == [0.8, 0.25, -1.57]
    lab.step(20)
    assert (lab.snapshot.ctrl != still).any(), "the policy observes the command"
    now = 1.1 * HOLD_S
    lab.step(2)
    assert not law.commands["twist"].any() and not lab.driving.drivers
    lab.stop()
