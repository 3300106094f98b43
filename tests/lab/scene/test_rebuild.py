"""Going on in a world that was changed meanwhile."""

from __future__ import annotations

import importlib.util
import threading
from pathlib import Path

import mujoco
import numpy as np
import pytest

from manyworlds.lab import (
    LIVE,
    LabCfg,
    LiveLab,
    PdController,
    Pose,
    RecorderCfg,
    StaleViewError,
    World,
    world_from_file,
    world_from_spec,
)
from tests.lab.conftest import ARM

BOX = '<body name="box" pos="2 0 .5"><freejoint name="box"/><geom size=".1"/></body>'


def arm(extra: str = "", **changes: str) -> World:
    """The arm, with more bodies before it, and some of its text changed."""
    xml = ARM.replace('<body name="upper"', f'{extra}<body name="upper"')
    for old, new in changes.items():
        assert old in xml
        xml = xml.replace(old, new)
    return world_from_spec(mujoco.MjSpec.from_string(xml))


@pytest.mark.parametrize("threaded", [False, True])
def test_a_prop_comes_into_a_running_world(tmp_path, threaded):
    """Add a box before the arm: the arm goes on where it was, as fast, and so does the post."""
    cfg = LabCfg(mode="direct", speed=0.5, recorder=RecorderCfg(folder=tmp_path))
    lab = LiveLab(world_from_spec(mujoco.MjSpec.from_string(ARM)), cfg)
    if threaded:
        lab.start()
    robot, moved = lab["arm"], []
    lab.loop.on_post_step(lambda model, data, step: moved.append(step))
    told = []
    lab.on_rebuild(lambda: told.append(lab.world.model.nbody))
    robot.write("panel", {"elbow": 3.0})
    lab.post(lambda model, data: data.mocap_pos.__setitem__((0, 0), -2.0))
    before = lab.step(50)
    lab.recorder.start()
    result = lab.rebuild(lambda: arm(BOX))
    after, model = lab.snapshot, lab.world.model
    assert result and result.kept == ("shoulder", "elbow", "ball:0")
    assert result.fresh == ("box",) and not result.gone and not result.dropped_laws
    assert after.time == before.time and after.step == 50 and told == [model.nbody]
    assert np.array_equal(after.qpos[7:], before.qpos) and np.array_equal(
        after.qvel[6:], before.qvel
    )
    assert after.mocap_pos[0, 0] == -2.0 and lab.recorder.is_recording
    assert lab["arm"] is robot and robot.command.targets[1] == 3.0 and robot.owner == "panel"
    assert lab.loop.mode == "direct" and lab.loop.speed == 0.5
    lab.step(10)
    assert len(moved) == 60 and lab.snapshot.ctrl[1] == 3.0
    assert lab.snapshot.qpos[2] < 0.5, "the box falls"
    lab.reset()
    assert lab.snapshot.time == 0.0 and lab.snapshot.qpos[2] == 0.5
    assert not lab.rebuild(world_from_spec(mujoco.MjSpec.from_string(ARM))).fresh
    assert lab.step().qpos.size == before.qpos.size
    lab.stop()


def test_a_world_that_does_not_compile_changes_nothing(lab):
    """Rebuild from a broken model: the error is reported, the old world continues; then fix it."""
    lab.step(3)
    world = lab.world
    broken = ARM.replace('<geom size=".05"/>', "")
    result = lab.rebuild(lambda: world_from_spec(mujoco.MjSpec.from_string(broken)))
    assert not result and "mass and inertia" in result.error == lab.last_compile_error
    assert lab.world is world and lab.step().step == 4
    assert lab.rebuild(lambda: arm()) and lab.last_compile_error == ""


def test_what_is_of_another_kind_begins_anew(lab):
    """Turn a hinge into a slide, take the ball away: told apart, and the hinge that stays stays."""
    lab["arm"].write("panel", {"shoulder": 5.0, "elbow": 1.0})
    before = lab.step(40)
    result = lab.rebuild(
        arm(**{'name="elbow" axis': 'name="elbow" type="slide" axis', "<freejoint/>": ""})
    )
    assert (result.kept, result.fresh, result.gone) == (("shoulder",), ("elbow",), ("ball:0",))
    assert lab.snapshot.qpos.tolist() == [before.qpos[0], 0.0]


def test_control_laws_go_on_where_they_fit(lab):
    """Rebuild under a PD law: its gains stay; take its joints away, and it is dropped and told."""
    robot = lab["arm"]
    law = robot.controller = PdController(lab.world.model, robot.actuators)
    law.set_gains(kp={"elbow": 30.0})
    assert not lab.rebuild(arm(BOX)).dropped_laws
    assert robot.controller is not law and robot.controller.kp.tolist() == [100.0, 30.0]
    robot.write("panel", [0.4, -0.4])
    lab.step(1500)
    assert np.allclose(lab.snapshot.qpos[7:9], [0.4, -0.4], atol=0.2)
    tendons = '<tendon><fixed name="t"><joint joint="elbow" coef="1"/></fixed></tendon><actuator>'
    result = lab.rebuild(
        arm(
            **{
                "<actuator>": tendons,
                'joint="shoulder"': 'tendon="t"',
                'joint="elbow" ctrl': 'tendon="t" ctrl',
            }
        )
    )
    assert result.dropped_laws == ("arm",) and robot.controller.name == "passthrough"


def test_sequences_go_on_where_they_fit(lab):
    """Rebuild while a robot goes through poses: it goes on; without its actuator, it does not."""
    sequence = lab.run_sequence((Pose(targets={"elbow": 1.0}),), delay=0.0)
    lab.step(100)
    assert not lab.rebuild(arm(BOX)).dropped_laws and sequence.is_playing
    lab.step(1000)
    assert lab.snapshot.ctrl[1] == 1.0
    result = lab.rebuild(arm(**{'motor name="elbow"': 'motor name="other"'}))
    assert result.dropped_laws == ("arm",) and not sequence.is_playing


def test_how_robots_take_part_in_replays_stays(lab):
    """Rebuild: what was chosen for a robot's replays stays, by its name."""
    lab.replay.bindings["arm"].enabled = False
    lab.rebuild(arm(BOX))
    assert not lab.replay.bindings["arm"].enabled


def test_views_of_the_old_world_are_refused(lab):
    """Look at a joint over a rebuild: it says that it is old, and a new view is of the new one."""
    joint = lab.view("joint", "elbow")
    assert joint.qpos.shape == (1,)
    lab.rebuild(arm(BOX))
    with pytest.raises(StaleViewError, match="was rebuilt: get a new view of the joint 'elbow'"):
        _ = joint.qpos
    lab.step(20)
    assert lab.view("joint", "elbow").qpos[0] == lab.snapshot.qpos[8] != 0.0


def test_a_hundred_rebuilds_are_one_thread():
    """Rebuild a running world a hundred times while others ask for things: one physics thread."""
    worlds = [arm(BOX), arm()]
    errors: list[BaseException] = []
    with LiveLab(worlds[1]) as lab:
        done = threading.Event()

        def ask() -> None:
            try:
                while not done.is_set():
                    lab["arm"].write("panel", {"elbow": 0.1})
                    lab.perturbation.release()
                    assert lab.snapshot.qpos.size in (9, 16)
                    lab.step(2)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        for i in range(100):
            assert lab.rebuild(worlds[i % 2])
            names = [thread.name for thread in threading.enumerate()]
            assert names.count("manyworlds-physics") == 1
        done.set()
        for thread in threads:
            thread.join()
        assert not errors and lab.loop.state == "running" and not lab.loop.callback_errors


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<mujoco><worldbody>", "XML"),
        ("<mujoco><nonsense/></mujoco>", "nonsense"),
        ('<mujoco><include file="gone.xml"/></mujoco>', "gone.xml"),
        ("", ""),
    ],
)
def test_worlds_that_cannot_be_read_change_nothing(lab, tmp_path, text, message):
    """Rebuild from files that are no XML, no MJCF, or gone: an error, and the old world goes on."""
    path, world = tmp_path / "new.xml", lab.world
    if text:
        path.write_text(text)
    builders = [lambda: world_from_spec(mujoco.MjSpec.from_file(str(path)))]
    builders.append(lambda: world_from_file(path))
    for build in builders:
        result = lab.rebuild(build)
        assert not result and message in result.error == lab.last_compile_error != ""
        assert lab.world is world and lab.step().step > 0
    assert lab.rebuild(lambda: arm()) and lab.last_compile_error == ""


SUITE = {"walker": "right_knee", "cheetah": "bthigh", "quadruped": "knee_front_left"}


def suite_file(name: str) -> Path:
    """Find a model of dm_control."""
    package = importlib.util.find_spec("dm_control")
    if package is None or not package.submodule_search_locations:
        pytest.skip("needs dm_control")
    return Path(package.submodule_search_locations[0]) / "suite" / f"{name}.xml"


def with_box(path: Path) -> mujoco.MjSpec:
    """A model with a free box, under another name."""
    spec = mujoco.MjSpec.from_file(str(path))
    box = spec.worldbody.add_body(name="a_box", pos=[5.0, 0.0, 1.0])
    box.add_freejoint(name="a_box")
    box.add_geom(size=[0.1, 0.0, 0.0])
    spec.modelname = "changed"
    return spec


@pytest.mark.parametrize("name", SUITE)
def test_saved_states_and_the_recording_continue(name, tmp_path):
    """Rebuild robots of dm_control with a box: names, states, holds and the recording continue."""
    path, joint = suite_file(name), SUITE[name]
    lab = LiveLab(
        world_from_file(path), LabCfg(mode="direct", recorder=RecorderCfg(folder=tmp_path))
    )
    (robot,) = lab.controls
    robot.write("panel", {robot.actuators.names[0]: 0.25})
    lab.recorder.start("all.mcap")
    lab.step(30)
    saved = lab.states.save("before")
    old_hash, angle = lab.world.model_hash, lab.view("joint", joint).qpos.copy()
    lab.step(20)
    result = lab.rebuild(world_from_spec(with_box(path)))
    assert result.fresh == ("a_box",) and [r.name for r in lab.controls] == [robot.name]
    (note,) = (note for note in result.notes if "'before'" in note)
    assert f"converted from model {old_hash[:12]}" in note and "initial state: a_box" in note
    assert lab.recorder.is_recording and lab.recorder.num_segments == 2
    lab.step(10)
    lab.call("restore_state", label="before")
    assert lab.snapshot.time == saved.time == pytest.approx(saved.time)
    assert np.array_equal(lab.view("joint", joint).qpos, angle)
    assert lab[robot.name].command.targets[0] == 0.25
    assert lab.states["before"].model_hash == lab.world.model_hash != old_hash
    first = [s.qpos.tobytes() for s in (lab.step() for _ in range(20))]
    lab.states.restore("before")
    assert [s.qpos.tobytes() for s in (lab.step() for _ in range(20))] == first
    lab.recorder.stop()
    for recording in (lab.recorder.load(LIVE), lab.recorder.load("all.mcap")):
        one, two = recording.segments
        assert (one.model_hash, two.model_hash) == (old_hash, lab.world.model_hash)
        assert (len(one), len(two)) == (50, 50) and "a_box" in two.joints
        assert one.times[-1] < two.times[0] and recording.complete
    lab.stop()


def test_a_rebuild_that_fails_loses_nothing(tmp_path):
    """Fail to rebuild while recording, holding and replaying: everything goes on."""
    path = suite_file("walker")
    lab = LiveLab(world_from_file(path), LabCfg(recorder=RecorderCfg(folder=tmp_path)))
    lab.recorder.start("one.mcap")
    saved = lab.states.save("a")
    lab.step(10)
    assert not lab.rebuild(lambda: world_from_file(tmp_path / "gone.xml"))
    assert not lab.rebuild(lambda: world_from_spec(mujoco.MjSpec.from_string("<mujoco>")))
    lab.step(10)
    assert lab.recorder.is_recording and lab.recorder.num_segments == 1
    assert lab.states["a"] is saved and not saved.converted
    lab.recorder.stop()
    assert len(lab.recorder.load("one.mcap")) == 20
    lab.stop()


def test_files_of_states_of_another_model(lab, tmp_path):
    """Read a state's file after a rebuild: refused, or converted on request, and it says so."""
    lab["arm"].write("panel", {"elbow": 1.5})
    lab.step(30)
    qpos = lab.snapshot.qpos.copy()
    lab.states.save("here")
    path = lab.states.write("here", tmp_path)
    lab.states.drop("here")
    lab.rebuild(arm(BOX, **{'motor name="shoulder"': 'motor name="torso"'}))
    with pytest.raises(ValueError, match="of another model .* or convert it by name"):
        lab.states.read(path)
    assert lab.states.names == []
    saved = lab.states.read(path, convert=True)
    assert "3 joints kept; in the initial state: box; targets in part" in saved.converted
    lab.step(100)
    lab.states.restore("here")
    assert np.array_equal(lab.snapshot.qpos[7:], qpos)
    assert lab["arm"].command.targets.tolist() == [0.0, 1.5]
    again = LiveLab(lab.world)
    assert again.states.read(lab.states.write("here", tmp_path)).converted == saved.converted
    again.stop()


def test_robots_keep_their_names_and_prefixes():
    """Rebuild two robots from a spec that says nothing of them: names and targets stay."""
    spec, parent = mujoco.MjSpec.from_string(ARM), mujoco.MjSpec()
    for prefix in ("one_", "two_"):
        parent.attach(spec.copy(), prefix=prefix, frame=parent.worldbody.add_frame())
    robots = {"left": "one_", "right": "two_"}
    lab = LiveLab(world_from_spec(parent, robots=robots))
    lab["right"].take("script")
    lab["right"].write("script", {"elbow": 2.0})
    parent.worldbody.add_body(name="shelf").add_geom(size=[0.1, 0, 0])
    assert lab.rebuild(world_from_spec(parent))
    assert lab.world.robots == robots and lab["right"].owner == "script"
    assert lab["right"].command.targets.tolist() == [0.0, 2.0]
    assert lab.rebuild(world_from_spec(parent, robots={"up": "two_"}))
    assert lab.world.robots == {"up": "two_"}, "names that are given win"
    lab.stop()


def test_holds_continue_where_the_keyframe_is(lab):
    """Rebuild a held robot: it is held again; without the keyframe, the result says so."""
    keys = "</actuator><keyframe><key name='up' ctrl='3 0'/></keyframe>"
    lab.rebuild(arm(**{"</actuator>": keys}))
    lab.keyframes.hold("arm", "up")
    keys = "</actuator><keyframe><key name='flat'/><key name='up' ctrl='4 0'/></keyframe>"
    assert not lab.rebuild(arm(**{"</actuator>": keys})).notes
    assert lab.keyframes.held == {"arm": "up"} and lab.step().ctrl.tolist() == [4.0, 0.0]
    (note,) = lab.rebuild(arm()).notes
    assert "'arm' is held no longer: There is no keyframe 'up'" in note
    assert lab["arm"].owner == "panel"
