"""Bad values stop the world, and the fault names their origin."""

from __future__ import annotations

import warnings

import mujoco
import numpy as np
import pytest

from manyworlds.asset_zoo.arm import get_arm_cfg
from manyworlds.asset_zoo.humanoid import get_humanoid_cfg
from manyworlds.asset_zoo.quadruped import get_quadruped_cfg
from manyworlds.lab import (
    FaultError,
    LabCfg,
    LiveLab,
    Passthrough,
    Puppet,
    world_from_scene,
    world_from_spec,
)
from manyworlds.scene import SceneCfg
from tests.lab.conftest import ARM


@pytest.fixture(autouse=True)
def _no_warnings():
    """Turn warnings of numpy into errors: a fault says all."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


class Wrong(Passthrough):
    """A law that returns a wrong control for one actuator."""

    name = "wrong"

    def __init__(self, index: int, value: float) -> None:
        self.index, self.value = index, value

    def compute(self, model, data, target):
        """Return the targets, one of them wrong."""
        ctrl = target.copy()
        ctrl[self.index] = self.value
        return ctrl


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 2.1e7, -1e300])
@pytest.mark.parametrize("paused", [False, True])
def test_control_laws_that_return_bad_controls(lab, value, paused):
    """Return a bad control: the world stops where it is, also while it is paused."""
    lab.step(5)
    good = lab.snapshot
    (lab.pause if paused else lab.play)()
    lab["arm"].controller = Wrong(1, value)
    for _ in range(3):
        lab.loop.iterate_once()
    assert lab.loop.state == "faulted"
    for what in (
        "actuator 'elbow' of 'arm'",
        "controller 'wrong'",
        "owner 'panel'",
        f"is {value:g} at",
    ):
        assert what in lab.loop.fault == lab.snapshot.fault
    assert np.array_equal(lab.snapshot.block, good.block) and lab.snapshot.time == good.time
    assert lab.loop.warnings == {"badctrl": 1}
    reasons = lab.why_not_moving("arm")
    assert reasons[0] == lab.loop.fault and any("badctrl" in reason for reason in reasons)
    with pytest.raises(FaultError, match="elbow"):
        lab.step()
    lab["arm"].controller = Passthrough()
    lab.reset()
    lab.play()
    assert lab.step().time == 0.002 and not lab.snapshot.fault and not lab.loop.warnings


@pytest.mark.parametrize(
    ("get_cfg", "robot"),
    [(get_arm_cfg, "arm"), (get_quadruped_cfg, "quadruped"), (get_humanoid_cfg, "humanoid")],
)
def test_targets_far_out_of_range(get_cfg, robot):
    """Write targets to robots of the package: large ones pass, absurd ones stop it."""
    lab = LiveLab(world_from_scene(SceneCfg(entities={robot: get_cfg()})))
    control, model = lab[robot], lab.world.model
    index = int(control.actuators.ids[-1])
    limited = model.actuator_ctrllimited[index]
    most = 1e6 * float(np.abs(model.actuator_ctrlrange[index]).max()) if limited else 1e10
    name = control.actuators.names[-1]
    control.write("panel", {name: 0.99 * most})
    lab.loop.do(lambda m, d: None)
    assert not lab.loop.fault
    control.write("panel", {name: 1.01 * most})
    with pytest.raises(FaultError, match=f"actuator '{name}' of '{robot}'.* owner 'panel'"):
        lab.step()
    lab.stop()


def test_controls_of_no_robot(world):
    """Write a bad control of an actuator that belongs to no robot: it is named, too."""
    world.robots = {"other": "other/"}
    lab = LiveLab(world)
    lab.loop.on_pre_step(lambda model, data, moved: data.ctrl.__setitem__(0, np.nan))
    with pytest.raises(FaultError, match="'shoulder', which belongs to no robot, is nan"):
        lab.step()
    lab.stop()


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"qpos": "body 'upper'"}, "qpos"),
        ({"qvel": "body 'upper'"}, "qvel"),
        ({"time": ""}, "time"),
        ({"mocap_pos": "body 'post'"}, "mocap_pos"),
    ],
)
def test_drivers_that_show_bad_states(lab, fields, what):
    """Show a state that is not a number: the fault names the puppet, who it is of, and the body."""
    lab.step(3)
    good = lab.snapshot
    puppet = Puppet()
    lab.loop.push_stepper(puppet, "alice")
    ((name, where),) = fields.items()
    value = np.nan if name == "time" else np.full_like(getattr(lab.loop.data, name), np.nan)
    puppet.show(**{name: value})
    lab.loop.iterate_once()
    assert lab.loop.state == "faulted" and "'puppet' of 'alice'" in lab.loop.fault
    assert where in lab.loop.fault and what in lab.loop.fault
    assert np.array_equal(lab.snapshot.block, good.block)
    lab.loop.steppers.remove(lab.loop.steppers.top)
    lab.states.save("mine")
    lab.states.restore("mine")
    assert lab.loop.state == "ready" and lab.step(5).time == pytest.approx(good.time + 0.01)


class Whirl:
    """Stepper that breaks velocities and makes a step."""

    name = "whirl"

    def step(self, model, data):
        data.qvel[0] = np.nan
        mujoco.mj_step(model, data)
        return True


def test_drivers_that_let_the_world_diverge(lab):
    """Make steps in a stepper that break the world: the fault names the stepper and its owner."""
    lab.loop.push_stepper(Whirl(), "me")
    with pytest.raises(FaultError, match="diverged at .*, while the stepper 'whirl' of 'me' adv"):
        lab.step()


@pytest.mark.parametrize(
    ("field", "index", "where"),
    [
        ("qpos", 0, "body 'upper'"),
        ("qvel", 4, "body 'ball'"),
        ("xfrc_applied", (2, 0), "body 'lower'"),
        ("mocap_quat", (0, 3), "body 'post'"),
        ("ctrl", 1, "actuator 'elbow'"),
    ],
)
@pytest.mark.parametrize("mode", ["paused", "direct"])
def test_bad_values_of_commands_while_the_world_stands(world, field, index, where, mode):
    """Write what is no number while nothing steps: the command is named, the state stays valid."""
    lab = LiveLab(world, LabCfg(mode="direct" if mode == "direct" else "live"))
    (lab.pause if mode == "paused" else lab.play)()
    good = lab.snapshot

    def careless(model: mujoco.MjModel, data: mujoco.MjData) -> None:
        getattr(data, field)[index] = np.nan

    lab.loop.do(careless)
    assert lab.loop.state == "faulted" and where in lab.loop.fault and field in lab.loop.fault
    assert "careless" in lab.loop.fault and np.array_equal(lab.snapshot.block, good.block)
    lab.states.save("mine")
    lab.states.restore("mine")
    assert lab.loop.state == "ready" and np.isfinite(lab.loop.data.qpos).all()
    lab.stop()


def test_a_fault_keeps_the_last_valid_state(lab):
    """Let the world diverge: its data are those of the last snapshot, and writes to them show."""
    lab.step(20)
    good = lab.snapshot
    lab.post(lambda model, data: data.qacc_warmstart.__setitem__(slice(None), np.nan))
    lab.post(lambda model, data: data.qvel.__setitem__(0, np.inf))
    lab.loop.iterate_once()
    assert lab.loop.state == "faulted"
    assert np.array_equal(lab.loop.data.qpos, good.qpos) and lab.loop.data.time == good.time
    lab.loop.do(lambda model, data: data.mocap_pos.__setitem__((0, 0), 3.0))
    assert lab.snapshot.mocap_pos[0, 0] == 3.0 and lab.snapshot.fault
    lab.reset()
    lab["arm"].controller = Wrong(0, np.nan)
    lab.post(lab.loop._reset)
    lab.loop.iterate_once()
    assert lab.loop.state == "faulted" and lab.snapshot.time == 0.0, "the reset has its effect"


def test_all_warnings_are_counted():
    """Give a world too little memory for its contacts: the warnings are counted and explained."""
    boxes = "".join(
        f'<body pos="0 0 {0.1 * i}"><freejoint/><geom type="box" size=".2 .2 .2"/></body>'
        for i in range(12)
    )
    xml = f'<mujoco><size memory="60K"/><worldbody>{boxes}</worldbody></mujoco>'
    lab = LiveLab(world_from_spec(mujoco.MjSpec.from_string(xml)), LabCfg(mode="direct"))
    lab.step(3)
    counts = lab.snapshot.warnings
    assert set(counts) & {"contactfull", "cnstrfull"} and min(counts.values()) >= 1
    (line, *_) = lab.explain_warnings()
    assert "raise the memory" in line and str(next(iter(counts.values()))) in line
    robot = world_from_spec(mujoco.MjSpec.from_string(ARM))
    assert lab.rebuild(robot) and not lab.snapshot.warnings
    lab.loop._warnings.add("contactfull", 7)
    lab.step()
    assert any("7 warnings" in reason for reason in lab.why_not_moving("robot"))
    lab.stop()
