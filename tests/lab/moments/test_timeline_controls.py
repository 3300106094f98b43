"""Commands, gains and edits on the timeline: each future has its own, to the bit."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

from manyworlds.lab import LabCfg, LiveLab, RecorderCfg, TimelineCfg, world_from_file
from manyworlds.lab.loop import physics_loop
from manyworlds.lab.robots.controllers import Passthrough, PdController
from manyworlds.lab.robots.driving import HOLD_S
from tests.lab.moments.test_timeline import bits, still
from tests.lab.policies import export_policy_of
from tests.lab.robots.test_driving import Walker
from tests.lab.scene.test_rebuild import suite_file
from tests.lab.task.test_env_stepper import LinearPolicy, make_env
from tests.robots import robot_file

Script = Mapping[int, Sequence[float]]
"""Commands by the number of the step before which each is given."""
Give = Callable[[LiveLab, Sequence[float]], None]

TASKS = [
    "Velocity-Flat-Quadruped",
    pytest.param("Velocity-Flat-Humanoid", marks=pytest.mark.slow),
    "Velocity-Flat-Go1",
]
STEERED = [
    "Velocity-Flat-Quadruped",
    pytest.param("Velocity-Flat-Humanoid", marks=pytest.mark.slow),
    pytest.param("Velocity-Rough-Quadruped", marks=pytest.mark.slow),
]


def follow(lab: LiveLab, give: Give, script: Script, start: int, end: int) -> list[bytes]:
    """Advance, and give the commands of a script; return the state after each step."""
    states = []
    for number in range(start, end):
        if number in script:
            give(lab, script[number])
        lab.step()
        states.append(bits(lab))
    return states


def check_futures(open_lab: Callable[[], LiveLab], give: Give, read) -> None:
    """Change commands in two futures, and change between them: each goes on as if alone."""
    first = {10: (0.4, 0.1, -0.2), 47: (-0.3, 0.2, 0.4), 112: (0.2, -0.2, 0.1)}
    second = {number: first[number] for number in (10, 47)} | {75: (0.7, 0.0, 0.3)}
    expected = {}
    for name, script in (("first", first), ("second", second)):
        lab = open_lab()
        expected[name] = follow(lab, give, script, 0, 200)
        lab.stop()
    assert expected["first"][:75] == expected["second"][:75]
    assert expected["first"][120] != expected["second"][120]
    lab = open_lab()
    try:
        assert follow(lab, give, first, 0, 150) == expected["first"][:150]
        lab.timeline.step_frames(-90)
        assert lab.timeline.branch() == ()
        assert bits(lab) == expected["first"][59] and read(lab) == pytest.approx(first[47])
        assert follow(lab, give, second, 60, 130) == expected["second"][60:130]
        lab.timeline.swap()
        assert bits(lab) == expected["first"][149] and read(lab) == pytest.approx(first[112])
        assert follow(lab, give, first, 150, 200) == expected["first"][150:]
        lab.timeline.swap()
        assert bits(lab) == expected["second"][129] and read(lab) == pytest.approx(second[75])
        assert follow(lab, give, second, 130, 200) == expected["second"][130:]
        # What was given after the last step belongs to its future, too.
        give(lab, (0.5, 0.5, 0.5))
        lab.timeline.step_frames(-20)
        lab.timeline.branch()
        assert read(lab) == pytest.approx(second[75])
        lab.timeline.swap()
        assert read(lab) == pytest.approx((0.5, 0.5, 0.5)[: len(read(lab))])
        follow(lab, give, {}, 200, 230)
        end = bits(lab)
        lab.timeline.step_frames(-1)
        assert lab.timeline.branch() == ()
        lab.timeline.swap()
        assert bits(lab) == end
    finally:
        lab.stop()


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_commands_of_a_policy_follow_the_branch(task, tmp_path):
    """Run policies with commands that change in two futures: each goes on as if alone."""
    if task.endswith("Go1"):
        robot_file("unitree_go1/go1.xml")
    path = export_policy_of(task, tmp_path)

    def open_lab() -> LiveLab:
        lab = still(world_from_file(tmp_path / "scene" / "scene.xml", by_prefix=True))
        lab.run_policy(path)
        return lab

    def commands(lab: LiveLab) -> dict[str, np.ndarray]:
        return next(iter(lab.controls)).controller.commands

    def give(lab: LiveLab, values: Sequence[float]) -> None:
        for array in commands(lab).values():
            array[:] = np.resize(values, array.shape)

    def read(lab: LiveLab) -> list[float]:
        array = next(iter(commands(lab).values()))
        return np.resize(array, 3).tolist()

    check_futures(open_lab, give, read)


@pytest.mark.slow
@pytest.mark.parametrize("task", STEERED)
def test_commands_of_a_task_follow_the_branch(task):
    """Steer the environments of tasks in two futures: each goes on as if alone."""

    def open_lab() -> LiveLab:
        env = make_env(task)
        cfg = LabCfg(mode="direct", recorder=RecorderCfg(to_file=False))
        return LiveLab.driven_by(env, LinearPolicy(env), cfg)

    check_futures(
        open_lab,
        lambda lab, values: lab.environment.steer("twist", values),
        lambda lab: list(lab.environment.steered["twist"]),
    )


@pytest.mark.parametrize("model", ["arm", "walker", "quadruped"])
def test_gains_and_owners_follow_the_branch(model, world):
    """Change gains, then the law and the owner: both futures have what they had."""
    if model != "arm":
        world = world_from_file(suite_file(model))
    with still(world) as lab:
        robot = next(iter(lab.controls))
        robot.take("panel")
        robot.controller = law = PdController(lab.model, robot.actuators, kp=3.0)
        robot.write("panel", robot.neutral + 0.1)
        lab.step(60)
        law.set_gains(kp={law.actuator_names[0]: 9.0})
        lab.step(60)
        middle = bits(lab)
        robot.controller = other = PdController(lab.model, robot.actuators, kp=1.0)
        robot.take("me")
        robot.write("me", robot.neutral - 0.1)
        lab.step(30)
        law.set_gains(kp={law.actuator_names[0]: 50.0})
        end, targets = bits(lab), robot.command.targets.copy()
        told = robot.command.time
        lab.timeline.step_frames(-100)
        assert lab.timeline.branch() == () and law.kp[0] == 3.0
        lab.timeline.swap()
        assert bits(lab) == end and robot.controller is other and robot.owner == "me"
        assert robot.command.targets.tolist() == targets.tolist() and robot.command.time == told
        lab.timeline.step_frames(-30)
        assert lab.timeline.branch() == () and bits(lab) == middle
        assert robot.controller is law and law.kp[0] == 9.0 and robot.owner == "panel"
        assert robot.command.time == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("task", ["Cartpole-Balance", "Lift-Cube-Arm", "Velocity-Flat-Quadruped"])
def test_edits_of_a_task_follow_the_branch(task):
    """Set fields of a task's model in two futures: states, model, spec and history are of each."""

    def open_lab() -> LiveLab:
        env = make_env(task)
        cfg = LabCfg(mode="direct", recorder=RecorderCfg(to_file=False))
        return LiveLab.driven_by(env, LinearPolicy(env), cfg)

    def edit(lab: LiveLab, values: Sequence[float]) -> None:
        body = lab.model.nbody - 1
        lab.set_model(f"body:{body}", "mass", values[0] * float(mass))
        lab.set_model(f"joint:{lab.model.njnt - 1}", "damping", values[1])

    first, second = {40: (1.5, 0.2), 90: (2.5, 0.4)}, {40: (1.5, 0.2), 70: (3.0, 0.7)}
    expected = {}
    for name, script in (("first", first), ("second", second)):
        lab = open_lab()
        mass = lab.model.body_mass[-1]
        expected[name] = follow(lab, edit, script, 0, 130)
        lab.stop()
    lab = open_lab()
    try:
        follow(lab, edit, first, 0, 110)
        lab.timeline.step_frames(-55)
        lab.timeline.branch()
        assert bits(lab) == expected["first"][54] and len(lab.history.done) == 2
        assert lab.model.body_mass[-1] == pytest.approx(1.5 * mass)
        assert follow(lab, edit, second, 55, 100) == expected["second"][55:100]
        lab.timeline.swap()
        assert bits(lab) == expected["first"][109] and len(lab.history.done) == 4
        assert lab.model.body_mass[-1] == pytest.approx(2.5 * mass)
        assert lab.world.spec.compile().body_mass[-1] == pytest.approx(2.5 * mass)
        assert follow(lab, edit, first, 110, 130) == expected["first"][110:]
        lab.timeline.swap()
        assert lab.model.body_mass[-1] == pytest.approx(3.0 * mass)
        assert follow(lab, edit, second, 100, 130) == expected["second"][100:]
        lab.history.undo()
        assert lab.model.dof_damping[-1] == pytest.approx(0.2)
    finally:
        lab.stop()


@pytest.mark.slow
@pytest.mark.parametrize("task", STEERED[:2])
def test_what_was_forgotten_does_not_matter(task):
    """Steer and run several times longer than is kept, then continue from the first moment."""
    script = {n: (0.1 * (n % 7), -0.1 * (n % 3), 0.1 * (n % 5)) for n in range(0, 700, 37)}
    give = lambda lab, values: lab.environment.steer("twist", values)  # noqa: E731

    def open_lab() -> LiveLab:
        env = make_env(task)
        recorder, timeline = RecorderCfg(to_file=False), TimelineCfg(max_duration=0.6)
        cfg = LabCfg(mode="direct", recorder=recorder, timeline=timeline)
        return LiveLab.driven_by(env, LinearPolicy(env), cfg)

    lab = open_lab()
    try:
        expected = follow(lab, give, script, 0, 700)
        assert lab.timeline.duration <= 0.6 + 25 * lab.model.opt.timestep
        with pytest.raises(ValueError, match="cannot go back 1 s: 0.* s are kept"):
            lab.timeline.seek(1.0)
        lab.timeline.seek(lab.timeline.duration)
        kept = lab.timeline.num_frames
        assert kept > 60
        lab.timeline.branch()
        assert bits(lab) == expected[-kept]
        assert follow(lab, give, script, 701 - kept, 700) == expected[1 - kept :]
    finally:
        lab.stop()


@pytest.fixture
def driven(world):
    """A lab of the arm, which takes a velocity, and a clock that the test moves on."""
    with still(world) as lab:
        lab["arm"].controller = Walker()
        lab.now = 0.0
        lab.driving.clock = lambda: lab.now
        yield lab


def twist_of(lab: LiveLab) -> list[float]:
    """Velocity command that the robot has."""
    return lab["arm"].controller.twist


def test_a_key_is_held_over_a_branch(driven):
    """Hold another key than at the moment that is gone back to: the robot goes as it is held."""
    lab = driven
    lab.bindings.bind("KeyG", "elbow", 3.0)
    lab["arm"].take("panel")
    lab.driving.drive("arm", (1.0, 0.0, 0.0))
    lab.step(50)
    held = {"KeyG": 1.0}
    lab.driving.drive("arm", (0.0, 1.0, 0.0), held)
    lab.step(50)
    lab.timeline.step_frames(-70)
    lab.driving.drive("arm", (0.0, 1.0, 0.0), held)
    lab.timeline.branch()
    assert twist_of(lab) == [0.0, 0.5, 0.0] and lab["arm"].command.targets[1] == 3.0
    lab.step(5)
    lab.driving.drive("arm", (0.0, 1.0, 0.0), held)
    assert twist_of(lab) == [0.0, 0.5, 0.0]
    lab.driving.drive("arm", (0.0, 1.0, 0.0))
    assert lab["arm"].command.targets[1] == 0.0
    # A client has set the command otherwise.
    lab["arm"].controller.commands["twist"][:] = 0.3
    lab.driving.drive("arm", (0.0, 1.0, 0.0))
    assert twist_of(lab) == [0.0, 0.5, 0.0]


@pytest.mark.parametrize("way", ["branch", "leave", "swap"])
def test_a_released_key_stops_the_robot(driven, way):
    """Return to a moment at which a key was held that is not held now: it ends after 0.5 s."""
    lab = driven
    lab.bindings.bind("KeyG", "elbow", 3.0)
    lab["arm"].take("panel")
    lab.driving.drive("arm", (1.0, 0.0, 0.0), {"KeyG": 1.0})
    lab.step(50)
    if way == "branch":
        lab.driving.stop("arm")
        lab.step(50)
    lab.timeline.step_frames(-70 if way == "branch" else -20)
    if way == "swap":
        lab.timeline.branch()
    lab.driving.stop("arm")
    assert twist_of(lab) == [0.0, 0.0, 0.0] and not lab.driving.drivers
    getattr(lab.timeline, way)()
    assert twist_of(lab) == [0.8, 0.0, 0.0] and lab["arm"].command.targets[1] == 3.0
    lab.step(2)
    assert twist_of(lab) == [0.8, 0.0, 0.0] and lab.driving.drivers == {"arm": "program"}
    lab.now = 1.1 * HOLD_S
    lab.step(2)
    assert twist_of(lab) == [0.0, 0.0, 0.0] and not lab.driving.drivers
    assert lab["arm"].command.targets[1] == 0.0


def test_what_is_told_in_the_past_counts(driven):
    """Move a target and a command while the past is shown: the branch has them, not `leave`."""
    lab = driven
    robot = lab["arm"]
    robot.take("panel")
    robot.write("panel", [1.0, 2.0])
    robot.controller.commands["twist"][0] = 0.1
    lab.step(100)
    robot.write("panel", [4.0, 4.0])
    lab.step(100)

    def tell() -> None:
        robot.write("panel", {"elbow": 3.0})
        robot.controller.commands["twist"][1] = 0.2

    lab.timeline.step_frames(-150)
    tell()
    lab.timeline.leave()
    assert robot.command.targets.tolist() == [4.0, 4.0] and twist_of(lab) == [0.1, 0.0, 0.0]
    lab.timeline.step_frames(-150)
    lab.timeline.branch()
    assert robot.command.targets.tolist() == [1.0, 2.0] and twist_of(lab) == [0.1, 0.0, 0.0]
    lab.timeline.swap()
    lab.timeline.step_frames(-150)
    tell()
    lab.timeline.branch()
    assert robot.command.targets.tolist() == [1.0, 3.0] and twist_of(lab) == [0.1, 0.2, 0.0]
    assert lab.step().ctrl.tolist() == [1.0, 3.0]
    lab.timeline.step_frames(-1)
    lab.timeline.branch()
    assert robot.command.targets.tolist() == [1.0, 2.0] and twist_of(lab) == [0.1, 0.0, 0.0]


@pytest.mark.slow
def test_slow_steps_are_waited_for(world, monkeypatch):
    """Branch where the steps take longer than other commands may: its edits are taken back."""

    class Slow(Passthrough):
        def compute(self, model, data, target):
            time.sleep(0.02)
            return target

    with still(world) as lab:
        lab["arm"].controller = Slow()
        lab.step(50)
        then = bits(lab)
        lab.step(10)
        mass = lab.model.body("ball").mass[0]
        lab.set_model("body:ball", "mass", 2.0)
        lab.step(30)
        lab.timeline.step_frames(-40)
        monkeypatch.setattr(physics_loop, "_COMMAND_S", 0.3)
        lab.timeline.branch()
        monkeypatch.undo()
        assert bits(lab) == then and lab.history.done == ()
        assert lab.world.spec.compile().body("ball").mass[0] == mass
