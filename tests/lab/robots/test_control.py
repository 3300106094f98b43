"""Owners, controllers, and why a robot does not move."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import mujoco
import numpy as np
import pytest
import torch

from manyworlds.actuator import IdealPdActuatorCfg
from manyworlds.asset_zoo.arm import get_arm_cfg
from manyworlds.asset_zoo.quadruped import get_quadruped_cfg
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from manyworlds.lab import (
    LabCfg,
    LiveLab,
    Passthrough,
    PdController,
    Pose,
    find_presets,
    world_from_file,
    world_from_scene,
    world_from_spec,
)
from manyworlds.lab.robots.control import controls_of
from manyworlds.scene import Scene, SceneCfg
from manyworlds.sim import MujocoCfg, Simulation, SimulationCfg
from manyworlds.spec.edits import add_ground_plane
from tests.lab.conftest import ARM


def test_only_the_owner_counts(lab):
    """Write as a client that is not the owner: nothing moves, and the lab reports why."""
    arm = lab["arm"]
    assert arm.owner == "panel" and arm.write("panel", [1.0, 2.0])
    assert not arm.write("script", {"elbow": 9.0})
    assert lab.step().ctrl.tolist() == [1.0, 2.0]
    assert lab.why_not_moving("arm") == ["1 commands of 'script' were ignored: 'panel' owns it"]
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


def test_laws_without_the_protocol_are_refused(lab):
    """A law that cannot be reset is refused when it is given, and the present one stays."""

    class Law:
        name = "law"

        def compute(self, model, data, target):
            return target

    law = lab["arm"].controller
    with pytest.raises(TypeError, match="'arm' must be an instance of Controller, got .*derive"):
        lab["arm"].controller = Law()
    assert lab["arm"].controller is law
    lab.reset()


def test_an_error_is_not_hidden_by_a_slow_end(lab, monkeypatch):
    """Tell the first error where a lab does not end in time after it; else the slow end."""

    def late():
        raise TimeoutError("too slow")

    monkeypatch.setattr(lab, "stop", late)
    assert not lab.__exit__(ValueError, ValueError("the reason"), None)
    with pytest.raises(TimeoutError, match="too slow"):
        lab.__exit__(None, None, None)
    monkeypatch.undo()


def test_targets_keep_all_digits(lab):
    """Write a double: the control is that very number."""
    value = 0.1 + 2**-50
    lab["arm"].write("panel", {"elbow": value})
    assert lab.step().ctrl[1] == value


def test_pd_is_what_the_formula_says(lab):
    """Compare efforts with kp (target - q) - kd v, limited, the target within the joint's range."""
    arm, model = lab["arm"], lab.world.model
    arm.controller = law = PdController(model, arm.actuators)
    law.set_gains(kp={"elbow": 30.0}, limit={"shoulder": 12.0})
    lab.step(40)
    q, v = lab.snapshot.qpos[:2].copy(), lab.snapshot.qvel[:2].copy()
    arm.write("panel", {"shoulder": 0.4, "elbow": 100.0})
    ctrl = lab.step().ctrl
    assert ctrl[0] == np.clip(100.0 * (0.4 - q[0]) - 5.0 * v[0], -12.0, 12.0)
    assert ctrl[1] == pytest.approx(30.0 * (np.radians(150.0) - q[1]) - 5.0 * v[1])


def test_gains_of_single_joints(lab):
    """Change some: the others stay, all are told; nothing changes if one of them is wrong."""
    arm, model = lab["arm"], lab.world.model
    law = PdController(model, arm.actuators)
    start = {"kp": 100.0, "kd": 5.0, "limit": 200.0}
    assert law.gains == {"shoulder": start, "elbow": start}
    told = law.set_gains(kp={"elbow": 30.0}, limit={"shoulder": 12.0})
    assert (
        told
        == law.gains
        == {
            "shoulder": {"kp": 100.0, "kd": 5.0, "limit": 12.0},
            "elbow": {"kp": 30.0, "kd": 5.0, "limit": 200.0},
        }
    )
    assert isinstance(arm.controller, Passthrough), "gains alone switch nothing on"
    with pytest.raises(ValueError, match="kp of 'elbow' must be finite and at least 0, got -1"):
        law.set_gains(kp={"shoulder": 1.0, "elbow": -1.0})
    with pytest.raises(KeyError, match="no joint or actuator 'wrist'; available: shoulder, elbow"):
        law.set_gains(kp={"shoulder": 1.0}, kd={"wrist": 1.0})
    assert law.gains == told


def test_gains_go_by_joints(lab):
    """Name a joint with two actuators that are called otherwise: both have its gains."""
    xml = ARM.replace('motor name="shoulder" joint="shoulder"', 'motor name="a" joint="elbow"')
    world = world_from_spec(mujoco.MjSpec.from_string(xml.replace('motor name="elbow"', "motor")))
    law = PdController(world.model, next(iter(controls_of(world, world.new_data()))).actuators)
    law.set_gains(kp={"elbow": 3.0})
    law.set_gains(kd={"a": 2.0})
    assert law.kp.tolist() == [3.0, 3.0] and law.kd.tolist() == [2.0, 5.0]


def test_laws_can_be_switched_off(lab):
    """Switch a law off and on: controls are targets meanwhile, as without any."""
    arm = lab["arm"]
    arm.write("panel", {"elbow": 3.0})
    assert lab.step().ctrl[1] == 3.0
    arm.controller = PdController(lab.world.model, arm.actuators)
    with_law = lab.step().ctrl[1]
    arm.enabled = False
    assert lab.step().ctrl[1] == 3.0 != with_law
    arm.enabled = True
    assert lab.step().ctrl[1] != 3.0
    arm.controller = Passthrough()
    assert lab.step().ctrl[1] == 3.0


def test_pd_holds_a_pose(lab):
    """Tell the arm a pose: it gets there and stays."""
    arm = lab["arm"]
    arm.controller = PdController(lab.world.model, arm.actuators, kp=200.0, kd=4.0)
    arm.write("panel", {"shoulder": -0.8, "elbow": -0.3})
    lab.step(1500)
    assert lab.snapshot.qpos[:2] == pytest.approx([-0.8, -0.3], abs=0.05)


BALL_AND_TENDON = """
<mujoco>
  <worldbody>
    <body><joint name="ball" type="ball"/><geom size=".1"/>
      <body pos="0 0 .3"><joint name="hinge" axis="0 1 0"/><geom size=".1"/></body></body>
  </worldbody>
  <tendon><fixed name="rope"><joint joint="hinge" coef="1"/></fixed></tendon>
  <actuator>
    {}
    <motor name="pull" tendon="rope"/>
    <motor name="turn" joint="ball" gear="1 0 0"/>
  </actuator>
</mujoco>
"""


def test_pd_leaves_other_actuators_alone():
    """Use PD where actuators act on tendons and balls: a warning names them, targets go through."""
    hinge = "<motor name='swing' jointinparent='hinge'/>"
    world = world_from_spec(mujoco.MjSpec.from_string(BALL_AND_TENDON.format(hinge)), "robot")
    lab = LiveLab(world)
    robot = lab["robot"]
    with pytest.warns(UserWarning, match="PD cannot control .*: pull, turn; their targets become"):
        robot.controller = PdController(world.model, robot.actuators, kp=10.0)
    robot.write("panel", {"swing": 1.0, "pull": 0.2, "turn": 0.3})
    assert lab.step().ctrl.tolist() == [10.0, 0.2, 0.3]
    lab.stop()
    bare = world_from_spec(mujoco.MjSpec.from_string(BALL_AND_TENDON.format("")))
    with pytest.raises(ValueError, match="no hinge or slide.*: pull, turn.*passthrough"):
        PdController(bare.model, next(iter(controls_of(bare, bare.new_data()))).actuators)


def test_pd_is_that_of_the_batch(lab):
    """Move an arm by our law and a batch by its actuators, with the same gains: one trajectory."""
    bare = mujoco.MjSpec.from_string(ARM.split("<actuator>")[0] + "</mujoco>")
    for name in ("ball", "post"):
        bare.delete(bare.body(name))
    names = ("shoulder", "elbow")
    pd = IdealPdActuatorCfg(target_names_expr=names, stiffness=40.0, damping=2.0, effort_limit=15.0)
    scene = Scene(
        SceneCfg(
            entities={
                "arm": EntityCfg(
                    spec_fn=lambda: bare.copy(),
                    articulation=EntityArticulationInfoCfg(actuators=(pd,)),
                )
            },
            num_envs=2,
        )
    )
    sim = Simulation(
        num_envs=2, cfg=SimulationCfg(mujoco=MujocoCfg(timestep=0.002)), spec=scene.spec
    )
    scene.initialize(sim.mj_model, sim.model, sim.data)
    spec = scene.spec.copy()
    spec.option.timestep = 0.002
    spec.option.integrator = sim.mj_model.opt.integrator
    world = world_from_spec(spec, "arm")
    mine = LiveLab(world)
    robot = mine["arm"]
    robot.controller = PdController(world.model, robot.actuators, kp=40.0, kd=2.0, limit=15.0)
    targets = dict(zip(robot.actuators.names, (-0.8, 0.6), strict=True))
    robot.write("panel", targets)
    entity = scene["arm"]
    order = [f"arm/{name}" for name in entity.joint_names]
    wanted = torch.tensor([[targets[name] for name in order]]).expand(2, -1)
    for _ in range(500):
        entity.set_joint_position_target(wanted)
        scene.write_data_to_sim()
        sim.step()
        scene.update(0.002)
        qpos = mine.step().qpos
        assert np.abs(sim.data.qpos[1].numpy() - qpos).max() < 1e-5
    assert np.abs(qpos - [-0.8, 0.6]).max() < 0.3
    mine.stop()


POSES = (
    Pose(targets={"shoulder": 4.0}, blend=0.1, hold=0.05),
    Pose(targets={"shoulder": 0.0, "elbow": 2.0}, blend=0.1, hold=0.05),
)


def test_sequences_go_smoothly_through_their_poses(lab):
    """Go to two poses and begin again: half of the way at half of the time, then still."""
    sequence = lab.run_sequence(POSES, delay=0.0)
    assert lab["arm"].owner == "sequence" and not lab["arm"].write("panel", [9.0, 9.0])
    ctrl = np.array([lab.step().ctrl for _ in range(170)])
    assert ctrl[0].tolist() == [0.0, 0.0]
    assert ctrl[25, 0] == pytest.approx(2.0) and ctrl[12, 0] < 0.7
    assert np.all(ctrl[50:75, 0] == 4.0)
    assert ctrl[100] == pytest.approx([2.0, 1.0])
    assert ctrl[130].tolist() == [0.0, 2.0]
    assert sequence.pose == 0 and 0.0 < ctrl[165, 0] < 4.0 and ctrl[165, 1] == 2.0
    sequence.go_to(1)
    assert np.abs(lab.step().ctrl - ctrl[-1]).max() < 0.2 and sequence.pose == 1
    lab.reset()
    assert sequence.pose == 0
    again = np.array([lab.step().ctrl for _ in range(170)])
    assert again.tobytes() == ctrl.tobytes(), "simulated time alone counts"


def test_sequences_wait_begin_and_end(lab):
    """Wait half a second first, come to an end, and pass through a law that was there before."""
    arm = lab["arm"]
    arm.write("panel", {"elbow": 1.0})
    sequence = lab.run_sequence(POSES, "arm", loop=False)
    ctrl = np.array([lab.step().ctrl for _ in range(500)])
    assert np.all(ctrl[:250] == [0.0, 1.0]) and ctrl[260, 0] > 0.0
    assert np.all(ctrl[460:] == [0.0, 2.0]) and sequence.pose == 1
    arm.controller = PdController(lab.world.model, arm.actuators, limit=0.5)
    arm.take("panel")
    lab.run_sequence(POSES)
    assert max(np.abs(lab.step().ctrl).max() for _ in range(300)) == 0.5


def test_sequences_are_stopped_and_go_on(lab):
    """Play, stop and play: the owner before has the robot meanwhile, and nothing jumps."""
    arm = lab["arm"]
    sequence = lab.run_sequence(POSES, delay=0.0, autoplay=False)
    assert arm.owner == "panel" and not sequence.is_playing
    sequence.play()
    lab.step(100)
    assert sequence.is_playing and sequence.pose == 1
    before = lab.snapshot.ctrl.copy()
    sequence.stop()
    sequence.stop()
    assert arm.owner == "panel" and np.array_equal(lab.step().ctrl, before)
    assert arm.write("panel", {"shoulder": 1.0}) and lab.step().ctrl[0] == 1.0
    sequence.play()
    assert lab.step().ctrl[0] == 1.0 and sequence.pose == 1
    lab.step(60)
    assert lab.snapshot.ctrl.tolist() == [0.0, 2.0]
    sequence.load(POSES[1:])
    lab.step()
    assert sequence.pose == 0 and len(sequence.poses) == 1


def test_laws_do_not_pile_up():
    """Begin sequences and hold the robot over and over: the law below stays the robot's own."""
    keyed = ARM.replace("<actuator>", '<keyframe><key name="up"/></keyframe><actuator>')
    lab = LiveLab(world_from_spec(mujoco.MjSpec.from_string(keyed)))
    arm, law = lab["arm"], PdController(lab.world.model, lab["arm"].actuators)
    arm.controller = law
    for _ in range(2000):
        lab.run_sequence(POSES)
        lab.keyframes.hold("arm")
    lab.keyframes.stop_hold("arm")
    assert arm.controller.name == "sequence" and arm.controller.base is law
    lab.step(2)
    assert not lab.loop.fault
    lab.stop()


@pytest.mark.parametrize(
    ("poses", "error", "message"),
    [
        ((), ValueError, "at least one pose"),
        ((Pose(targets={"elbow": 1.0}, hold=-1.0),), ValueError, "not be negative"),
        ((Pose(targets={"wrist": 1.0}),), KeyError, "no actuator 'wrist'"),
        ("Quadruped: Sit", KeyError, "actuator 'FR_thigh_joint'"),
        ("Dance", KeyError, "no preset 'Dance'; for 'arm': none"),
    ],
)
def test_wrong_sequences_are_refused(lab, poses, error, message):
    """Refuse sequences that lead nowhere."""
    with pytest.raises(error, match=message):
        lab.run_sequence(poses)
    assert lab["arm"].owner == "panel"
    still = LiveLab(world_from_spec(mujoco.MjSpec.from_string("<mujoco/>")))
    with pytest.raises(ValueError, match="No robot of this world has actuators"):
        still.run_sequence(poses)
    still.stop()
    sequence = lab.run_sequence(POSES)
    with pytest.raises(ValueError, match="no pose 2: there are 2"):
        sequence.go_to(2)
    with pytest.raises(ValueError, match="delay of a sequence must be at least 0 s, got -1"):
        lab.run_sequence(POSES, delay=-1.0)


@pytest.mark.slow
@pytest.mark.parametrize("get_cfg", [get_arm_cfg, get_quadruped_cfg])
def test_presets_suit_their_robots(get_cfg):
    """Let each robot go twice through each of its presets: it gets about there, and stays up."""
    scene = SceneCfg(entities={"robot": get_cfg()}, spec_fn=add_ground_plane)
    world = world_from_scene(scene)
    lab = LiveLab(world)
    robot = lab["robot"]
    names = find_presets(robot)
    assert len(names) >= 2 and names == sorted(names)
    joints = world.model.actuator_trnid[robot.actuators.actuator_ids, 0]
    ranges = world.model.jnt_range[joints]
    for name in names:
        lab.reset()
        robot.controller = Passthrough()
        robot.take("panel")
        sequence = lab.run_sequence(name)
        seconds = 0.5 + 2.0 * sum(pose.blend + pose.hold for pose in sequence.poses)
        for _ in range(int(seconds / world.model.opt.timestep) // 50):
            ctrl = lab.step(50).ctrl
            assert np.all((ranges[:, 0] <= ctrl) & (ctrl <= ranges[:, 1])), name
            assert lab.loop.data.xmat[1, 8] > 0.8, f"{name} throws the robot over"
            error = lab.snapshot.qpos[world.model.jnt_qposadr[joints]] - ctrl
            assert np.abs(error).max() < 0.6, f"{name} asks for more than the robot can do"
    lab.stop()


def test_the_lab_says_why_nothing_moves(lab):
    """Pause, give the robot up, ask for too much and take the gains away: each is named."""
    arm = lab["arm"]
    arm.write("panel", {"elbow": 100.0})
    lab.step()
    arm.controller = PdController(lab.world.model, arm.actuators, kp=0.0)
    arm.release("panel")
    lab.pause()
    lab.loop.mode = "direct"
    lab.world.model.opt.disableflags = int(mujoco.mjtDisableBit.mjDSBL_ACTUATION)
    lab.loop.do(lambda model, data: None)
    assert lab.why_not_moving("arm") == [
        "the world is paused",
        "the world waits for steps (direct mode)",
        "actuation is switched off in the options",
        "it has no owner",
        "actuators at their limits: elbow",
        "all its gains are zero",
    ]
    with pytest.raises(KeyError, match="no robot 'leg'; available: arm"):
        lab.why_not_moving("leg")


@pytest.mark.parametrize("model", ["ant.xml", "humanoid.xml", "half_cheetah.xml"])
def test_motors_hold_no_pose(model):
    """Open robots of torque motors, which fall: nothing says that they hold their pose."""
    path = Path(gymnasium.__file__).parent / "envs/mujoco/assets" / model
    with LiveLab(world_from_file(path), LabCfg(mode="direct")) as lab:
        lab.step()
        (robot,) = lab.robots
        reasons = "; ".join(lab.why_not_moving(robot))
        assert "its actuators hold no position: move a slider" in reasons


def test_old_commands_are_named(lab):
    """Say nothing, say something, wait: the lab tells; a sequence needs no commands."""
    arm = lab["arm"]
    lab.step()
    initial = (
        "its controls have their initial values, and its actuators hold no position: move a slider"
    )
    assert lab.why_not_moving("arm") == [initial]
    arm.write("panel", {"elbow": 1.0})
    assert not lab.why_not_moving("arm")
    arm.take("script")
    lab.step(1000)
    assert lab.why_not_moving("arm") == ["the last command of 'script' is 2.0 s old"]
    arm.take("panel")
    assert not lab.why_not_moving("arm"), "a slider says the same until it is moved"
    lab.run_sequence(POSES)
    lab.step()
    assert not lab.why_not_moving("arm")
    lab.reset()
    arm.take("panel")
    assert lab.why_not_moving("arm") == [initial]


def test_sleep_and_weakness_are_named():
    """Let a robot sleep, and one push in vain against a wall: the lab says so."""
    spec = mujoco.MjSpec.from_string(ARM)
    spec.option.enableflags |= int(mujoco.mjtEnableBit.mjENBL_SLEEP)
    spec.option.gravity = [0.0, 0.0, 0.0]
    spec.body("upper").sleep = mujoco.mjtSleepPolicy.mjSLEEP_INIT
    lab = LiveLab(world_from_spec(spec))
    lab["arm"].write("panel", [0.0, 0.0])
    lab.step(2)
    assert lab.why_not_moving("arm") == ["its bodies are asleep"]
    lab.stop()
    spec = mujoco.MjSpec.from_string(ARM)
    elbow = spec.actuator("elbow")
    elbow.forcelimited, elbow.forcerange = True, [-0.1, 0.1]
    lab = LiveLab(world_from_spec(spec))
    lab["arm"].write("panel", [0.0, 5.0])
    lab.step(2)
    assert lab.why_not_moving("arm") == ["actuators at their limits: elbow"]
    lab.stop()
