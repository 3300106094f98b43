"""Owners, control laws, and why a robot does not move."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from manyworlds.lab import PdController, Pose, PoseSequencer, world_from_spec


def test_only_the_owner_counts(lab):
    """Write as somebody else: nothing moves, and the lab says why."""
    arm = lab["arm"]
    assert arm.owner == "panel" and arm.write("panel", [1.0, 2.0])
    assert not arm.write("script", {"elbow": 9.0})
    assert lab.step().ctrl.tolist() == [1.0, 2.0]
    assert lab.why_not_moving("arm") == ["1 commands of 'script' were ignored: 'panel' has it"]
    assert arm.take("script") == "panel"
    arm.release("panel")
    assert arm.owner == "script" and arm.write("script", {"elbow": 9.0})
    assert lab.step().ctrl.tolist() == [1.0, 9.0] and not lab.why_not_moving("arm")


@pytest.mark.parametrize(
    ("targets", "error", "message"),
    [
        ([1.0], ValueError, r"2 actuators, got targets of shape \(1,\)"),
        ([1.0, np.nan], ValueError, "must be finite"),
        ({"wrist": 1.0}, KeyError, "no actuator 'wrist'; available: shoulder, elbow"),
    ],
)
def test_wrong_targets_are_refused(lab, targets, error, message):
    """Refuse what is no command, and keep the last one."""
    with pytest.raises(error, match=message):
        lab["arm"].write("panel", targets)
    assert lab["arm"].command.targets.tolist() == [0.0, 0.0]


def test_targets_keep_all_digits(lab):
    """Write a double: the control is that very number."""
    value = 0.1 + 2**-50
    lab["arm"].write("panel", {"elbow": value})
    assert lab.step().ctrl[1] == value


def test_pd_is_what_the_formula_says(lab):
    """Compare efforts with kp (target - q) - kd v, limited, the target within the joint's range."""
    arm, model = lab["arm"], lab.world.model
    arm.controller = law = PdController(model, arm.actuators)
    assert (law.kp[0], law.kd[0], law.limit[0]) == (100.0, 5.0, 200.0)
    law.set_gains(kp={"elbow": 30.0}, limit={"shoulder": 12.0})
    assert law.kp.tolist() == [100.0, 30.0] and law.kd.tolist() == [5.0, 5.0]
    lab.step(40)
    q, v = lab.snapshot.qpos[:2].copy(), lab.snapshot.qvel[:2].copy()
    arm.write("panel", {"shoulder": 0.4, "elbow": 100.0})
    ctrl = lab.step().ctrl
    assert ctrl[0] == np.clip(100.0 * (0.4 - q[0]) - 5.0 * v[0], -12.0, 12.0)
    assert ctrl[1] == pytest.approx(30.0 * (np.radians(150.0) - q[1]) - 5.0 * v[1])
    with pytest.raises(ValueError, match="kp of 'elbow' must be at least 0, got -1"):
        law.set_gains(kp={"shoulder": 1.0, "elbow": -1.0})
    assert law.kp[0] == 100.0


def test_pd_holds_a_pose(lab):
    """Tell the arm a pose: it gets there and stays."""
    arm = lab["arm"]
    arm.controller = PdController(lab.world.model, arm.actuators, kp=200.0, kd=4.0)
    arm.write("panel", {"shoulder": -0.8, "elbow": -0.3})
    lab.step(1500)
    assert lab.snapshot.qpos[:2] == pytest.approx([-0.8, -0.3], abs=0.05)


def test_pd_refuses_what_is_no_joint():
    """Ask for PD of an actuator that acts on a ball joint."""
    spec = mujoco.MjSpec.from_string(
        "<mujoco><worldbody><body><joint name='b' type='ball'/><geom size='.1'/></body></worldbody>"
        "<actuator><motor name='m' joint='b' gear='1 0 0'/></actuator></mujoco>"
    )
    world = world_from_spec(spec)
    with pytest.raises(ValueError, match="'m' does not act on a hinge or a slide"):
        PdController(world.model, next(iter(world.controls())).actuators)


def test_sequences_go_smoothly_through_their_poses(lab):
    """Go to two poses and begin again: half of the way at half of the time, then still."""
    arm = lab["arm"]
    poses = (
        Pose(targets={"shoulder": 4.0}, blend=0.1, hold=0.05),
        Pose(targets={"shoulder": 0.0, "elbow": 2.0}, blend=0.1, hold=0.05),
    )
    arm.controller = sequence = PoseSequencer(arm.actuators, poses)
    ctrl = np.array([lab.step().ctrl for _ in range(170)])
    assert ctrl[0].tolist() == [0.0, 0.0]
    assert ctrl[25, 0] == pytest.approx(2.0) and ctrl[12, 0] < 0.7
    assert np.all(ctrl[50:75, 0] == 4.0)
    assert ctrl[100] == pytest.approx([2.0, 1.0])
    assert ctrl[130].tolist() == [0.0, 2.0]
    assert sequence.pose == 0 and 0.0 < ctrl[165, 0] < 4.0 and ctrl[165, 1] == 2.0
    sequence.go_to(1)
    assert np.abs(lab.step().ctrl - ctrl[-1]).max() < 0.2
    lab.reset()
    assert sequence.pose == 0


@pytest.mark.parametrize(
    ("poses", "message"),
    [((), "at least one pose"), ((Pose(targets={"elbow": 1.0}, hold=-1.0),), "not be negative")],
)
def test_wrong_sequences_are_refused(lab, poses, message):
    """Refuse sequences that lead nowhere."""
    with pytest.raises(ValueError, match=message):
        PoseSequencer(lab["arm"].actuators, poses)


def test_the_lab_says_why_nothing_moves(lab):
    """Pause, give the robot up, ask for too much and take the gains away: each is named."""
    arm = lab["arm"]
    arm.write("panel", {"elbow": 100.0})
    lab.step()
    arm.controller = PdController(lab.world.model, arm.actuators, kp=0.0)
    arm.release("panel")
    lab.pause()
    lab.engine.mode = "direct"
    lab.engine.do(lambda model, data: None)
    assert lab.why_not_moving("arm") == [
        "the world is paused",
        "the world waits for steps (direct mode)",
        "nobody steers it",
        "actuators at their limits: elbow",
        "all its gains are zero",
    ]
    with pytest.raises(KeyError, match="no robot 'leg'; available: arm"):
        lab.why_not_moving("leg")
