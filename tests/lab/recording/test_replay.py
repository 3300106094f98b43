"""Replay: what was recorded is what is shown, by name, and the world is given back."""

from __future__ import annotations

import threading
import time

import mujoco
import numpy as np
import pytest

from manyworlds.lab import (
    LIVE,
    LabCfg,
    LiveLab,
    Puppet,
    RecorderCfg,
    World,
    world_from_spec,
)
from manyworlds.lab.moments.recording import Recording
from manyworlds.lab.recording.replay import Track
from manyworlds.lab.world.world import STATE
from tests.lab.conftest import ARM

BOT = """
<mujoco>
  <worldbody>
    <body name="base" pos="0 0 1">
      <freejoint name="root"/><geom size=".1"/>
      <body name="leg"><joint name="hip" axis="0 1 0"/><geom size=".05" pos="0 0 -.2"/></body>
    </body>
  </worldbody>
  <actuator><motor name="hip" joint="hip"/></actuator>
</mujoco>
"""


def make_lab(world: World, folder, **cfg) -> LiveLab:
    """A lab whose recordings lie in a folder, and that writes none by itself."""
    return LiveLab(world, LabCfg(recorder=RecorderCfg(folder=folder, to_file=False), **cfg))


@pytest.fixture
def lab(world, tmp_path):
    """A lab with a recording of a hundred steps of a moving arm, which went on after it."""
    lab = make_lab(world, tmp_path)
    lab["arm"].write("panel", {"elbow": 4.0, "shoulder": 2.0})
    lab.recorder.start()
    lab.step(100)
    lab.recorder.stop()
    lab["arm"].write("panel", {"elbow": -4.0})
    lab.step(33)
    yield lab
    lab.stop()


@pytest.fixture
def two_bots(tmp_path):
    """Two robots of one kind, one of them turned about and elsewhere."""
    spec = mujoco.MjSpec()
    for name, pos, quat in (("a", [0, 0, 0], [1, 0, 0, 0]), ("b", [3, 4, 0], [0, 0, 0, 1])):
        frame = spec.worldbody.add_frame(pos=pos, quat=quat)
        spec.attach(mujoco.MjSpec.from_string(BOT), prefix=f"{name}/", frame=frame)
    lab = make_lab(World(spec=spec, model=spec.compile(), robots={"a": "a/", "b": "b/"}), tmp_path)
    yield lab
    lab.stop()


def state_of(lab: LiveLab) -> np.ndarray:
    """All that MuJoCo knows."""
    state = np.empty(mujoco.mj_stateSize(lab.world.model, STATE))
    mujoco.mj_getState(lab.world.model, lab.loop.data, state, STATE)
    return state


def write(folder, name: str, rows: str) -> None:
    """Write a table."""
    (folder / name).write_text(rows)


def test_each_frame_is_shown_as_it_was(lab):
    """Play a hundred frames at the speed of the recording: each one, bit for bit, once a step."""
    live = lab.recorder.load(LIVE)
    report = lab.replay.start()
    assert [match.rule for match in report.matched] == ["exact"] * 3 and not report.unmatched
    data = lab.loop.data
    for frame in range(100):
        assert lab.replay.time == lab.snapshot.time == pytest.approx(0.002 * frame)
        assert lab.snapshot.stepper == "replay"
        for joint in ("shoulder", "elbow", "ball:0"):
            id = {"shoulder": 0, "elbow": 1, "ball:0": 2}[joint]
            start = lab.world.model.jnt_qposadr[id]
            columns = live.columns("qpos", joint)[frame]
            assert np.array_equal(data.qpos[start:][: len(columns)], columns)
            start, columns = lab.world.model.jnt_dofadr[id], live.columns("qvel", joint)[frame]
            assert np.array_equal(data.qvel[start:][: len(columns)], columns)
        assert np.array_equal(data.ctrl, [2.0, 4.0])
        lab.step()
    assert lab.replay.label == "REPLAY: 0.00 / 0.20 [Live]"  # from the beginning


def test_what_derives_from_a_frame_is_known(lab):
    """Look at sensors and contacts of a frame in which the ball lies on the floor."""
    model, data = lab.world.model, lab.loop.data

    def put_ball(height: float) -> None:
        def put(model, data):
            data.qpos[2:5], data.qvel[2:] = [1.0, 1.0, height], 0.0

        lab.post(put)

    put_ball(0.049)
    lab.recorder.start()
    lab.step(2)
    put_ball(2.0)
    lab.step(2)
    assert data.ncon == 0
    lab.replay.start()
    assert data.ncon == 1 and data.sensordata[0] == data.qpos[1]
    check = mujoco.MjData(model)
    check.qpos[:], check.qvel[:], check.ctrl[:] = data.qpos, data.qvel, data.ctrl
    mujoco.mj_forward(model, check)
    assert np.array_equal(check.xpos[1:4], data.xpos[1:4])
    assert check.qacc == pytest.approx(data.qacc, abs=1e-6)


@pytest.mark.parametrize("mode", ["live", "direct"])
@pytest.mark.parametrize("threaded", [False, True])
@pytest.mark.parametrize("paused", [False, True])
def test_the_world_comes_back(lab, mode, threaded, paused):
    """Replay for a while in each mode: state and commands are as before, and steps go on."""
    lab.loop.mode = mode
    if paused or threaded:
        lab.pause()
    if threaded:
        lab.start()
    lab.loop.do(lambda model, data: None)
    lab.recorder.save("arm.mcap")
    lab.recorder.start()
    before, targets = state_of(lab), lab["arm"].command.targets
    lab.replay.start("arm.mcap")
    assert not lab.recorder.is_recording
    lab.step(5)
    assert not lab.paused and lab.snapshot.stepper == "replay"
    lab["arm"].write("panel", {"elbow": 9.0})
    lab.replay.stop()
    lab.replay.stop()
    assert lab.paused is (paused or threaded)
    assert np.array_equal(state_of(lab), before)
    assert np.array_equal(lab["arm"].command.targets, targets)
    assert lab.loop.steppers.top.stepper.name == "physics" and lab.replay.label == ""
    assert lab.step(3).time == pytest.approx(before[0] + 0.006)


@pytest.mark.parametrize("restore", [(False, True), (True, False)])
def test_physics_goes_on_from_a_frame(lab, restore):
    """Start or stop without returning: the steps are those that followed the frame."""
    live = lab.recorder.load(LIVE)
    lab.replay.start(restore=restore[0])
    lab.replay.seek(0.1)
    lab.replay.stop(restore=restore[1])
    lab["arm"].write("panel", {"elbow": 4.0, "shoulder": 2.0})
    assert lab.step().qpos[1] == pytest.approx(live.columns("qpos", "elbow")[51, 0], abs=1e-9)


def test_drivers_below_come_back(lab):
    """Replay on top of a puppet, which is taken away meanwhile or afterwards."""
    puppet = lab.loop.push_stepper(Puppet(), "test")
    lab.replay.start()
    assert lab.step().stepper == "replay"
    lab.replay.stop()
    assert lab.loop.steppers.top is puppet
    lab.replay.start()
    lab.loop.remove_stepper(puppet)
    assert lab.step().stepper == "replay"
    lab.replay.stop()
    assert lab.step().stepper == "physics"


def test_seeking_is_exact(lab):
    """Seek to each frame in any order, also while the world stands, and beyond the ends."""
    live = lab.recorder.load(LIVE)
    lab.replay.start()
    lab.pause()
    lab.loop.iterate_once()
    assert lab.paused
    for frame in np.random.default_rng(0).permutation(100):
        lab.replay.seek(live.clock[frame])
        assert lab.snapshot.qpos[1] == live.columns("qpos", "elbow")[frame, 0]
        assert lab.snapshot.time == live.clock[frame] == lab.replay.time
    lab.replay.seek(99.0)
    assert lab.replay.time == lab.replay.duration
    lab.replay.seek(-1.0)
    assert lab.replay.time == 0.0
    with pytest.raises(ValueError, match=r"must be from 0 to .* s, got nan"):
        lab.replay.seek(float("nan"))


def test_frames_one_by_one(lab):
    """Step through frames, forwards and backwards, over the ends."""
    elbow = lab.recorder.load(LIVE).columns("qpos", "elbow")[:, 0]
    lab.replay.start()
    frame = 0
    for by in (1, 1, 5, -2, -100, 1000, -1):
        lab.replay.step_frames(by)
        frame = min(max(frame + by, 0), 99)
        assert lab.snapshot.qpos[1] == elbow[frame] and not lab.replay.playing
    assert lab.step(3).qpos[1] == elbow[frame]  # it stays there


def test_rate_and_loop(lab):
    """Play at other speeds, backwards, around, and to the end."""
    elbow = lab.recorder.load(LIVE).columns("qpos", "elbow")[:, 0]
    replay = lab.replay
    replay.start()
    replay.rate = 2.0
    assert [lab.step().qpos[1] for _ in range(60)] == [elbow[2 * k % 100] for k in range(1, 61)]
    replay.rate = -1.0
    replay.seek(0.002)
    assert [lab.step().qpos[1] for _ in range(3)] == [elbow[0], elbow[99], elbow[98]]
    replay.rate = 0.5
    replay.seek(0.0)
    assert lab.step().qpos[1] == pytest.approx((elbow[0] + elbow[1]) / 2.0, abs=1e-12)
    replay.loop, replay.rate = False, 1.0
    replay.seek(0.196)
    assert [lab.step().qpos[1] for _ in range(3)] == [elbow[99]] * 3 and not replay.playing
    assert replay.label == "REPLAY: 0.20 / 0.20 [Live]"
    replay.play()
    assert lab.snapshot.qpos[1] == elbow[0] and lab.step().qpos[1] == elbow[1]
    replay.rate = -1.0
    lab.step(2)
    assert not replay.playing and lab.snapshot.qpos[1] == elbow[0]
    replay.play()
    assert lab.snapshot.qpos[1] == elbow[99] and lab.step().qpos[1] == elbow[98]
    for rate in (0.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="rate must be"):
            replay.rate = rate


def test_an_hour_does_not_drift(world, tmp_path):
    """Advance over half a million timesteps: the clock still meets every frame."""
    lab = make_lab(world, tmp_path)
    times = np.cumsum(np.full(500_000, 0.002)) + 1e3
    values = np.arange(500_000.0)[:, None]
    recording, none = Recording(times, values, {"qpos": {"elbow": (0, 1)}}), np.empty(0, int)
    lab.replay._tracks = [Track(recording, 1, 0.0, 0, none, none, none, [])]
    for frame in range(1, 499_999):
        lab.replay._advance(0.002)
        if frame % 5000 == 0:
            assert recording.sample(lab.replay._time)[0] == frame
    lab.stop()


def test_a_pause_stays(lab):
    """Pause the replay in a world that goes on, and play on."""
    elbow = lab.recorder.load(LIVE).columns("qpos", "elbow")[:, 0]
    lab.replay.start()
    lab.step(10)
    lab.replay.pause()
    steps = lab.loop.num_steps
    assert lab.step(4).qpos[1] == elbow[10] and lab.loop.num_steps == steps
    lab.replay.play()
    assert lab.step().qpos[1] == elbow[11]


@pytest.mark.parametrize("paused", [False, True])
def test_a_reset_ends_a_replay_and_says_so(lab, paused):
    """Reset, or return to a saved state, during a replay: it ends, and the reply names it."""
    (lab.pause if paused else lab.play)()
    saved = lab.states.save("before")
    calls = [("reset", {}, 0.0), ("restore_state", {"label": "before"}, saved.time)]
    for verb, fields, moment in calls:
        lab.replay.start()
        lab.step(10)
        assert lab.call(verb, **fields)["ended_replay"] == LIVE
        assert not lab.replay.is_active and not lab.replay.playing and lab.paused is paused
        assert lab.snapshot.stepper == "physics" and lab.snapshot.time == moment
        lab.replay.stop()
        assert lab.snapshot.time == moment and lab.call(verb, **fields)["ended_replay"] == ""
    lab.replay.start()
    assert lab.reset() == LIVE and lab.reset() == ""


def test_a_running_world_replays(lab):
    """Let a threaded world play, in real time."""
    lab.start()
    lab.replay.start()
    while lab.replay.time < 0.05:
        time.sleep(0.002)
    assert lab.snapshot.stepper == "replay" and lab.loop.state == "running"
    lab.replay.stop()


def test_another_replay_takes_over(lab):
    """Start while one plays: the end returns to where the world was before both."""
    lab.recorder.save("arm.mcap")
    lab.pause()
    lab.loop.iterate_once()
    before = state_of(lab)
    lab.replay.start()
    lab.step(7)
    lab.replay.start("arm.mcap")
    lab.step(7)
    assert lab.replay.session == "arm.mcap" and not lab.paused
    lab.replay.stop()
    assert np.array_equal(state_of(lab), before) and lab.loop.steppers.top.owner == "engine"
    assert lab.paused


def test_many_hands_do_no_harm(lab):
    """Start, stop, seek and record from several threads at once: the world comes back whole."""
    lab.recorder.save("arm.mcap")
    lab.pause()
    lab.start()
    before = lab.loop.do(lambda model, data: state_of(lab))
    verbs = [
        lambda: lab.replay.start("arm.mcap"),
        lab.replay.stop,
        lab.replay.pause,
        lab.replay.play,
        lambda: lab.replay.seek(0.05),
        lambda: lab.replay.step_frames(-2),
        lab.recorder.stop,
        lambda: lab.recorder.load(LIVE),
    ]
    wrong = []

    def act(seed: int) -> None:
        for verb in np.random.default_rng(seed).integers(len(verbs), size=60):
            try:
                verbs[verb]()
            except Exception as error:
                if "Nothing is played" not in str(error):
                    wrong.append(error)

    threads = [threading.Thread(target=act, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lab.replay.stop()
    assert wrong == [] and lab.loop.state == "running" and not lab.loop.callback_errors
    assert np.array_equal(lab.loop.do(lambda model, data: state_of(lab)), before)


def test_recordings_survive_changes_of_the_world(lab, tmp_path):
    """Replay in a world with an obstacle more, before all others: joints are found by name."""
    live = lab.recorder.load(LIVE)
    lab.recorder.save("arm.mcap")
    obstacle = '<body name="box" pos="5 5 1"><freejoint/><geom size=".1"/></body><body name="upper"'
    world = world_from_spec(
        mujoco.MjSpec.from_string(ARM.replace('<body name="upper"', obstacle)), "arm"
    )
    other = make_lab(world, tmp_path)
    box = other.loop.data.qpos[:7].copy()
    report = other.replay.start("arm.mcap")
    assert report.unmoved == ["box:0"] and len(report.matched) == 3
    other.step(50)
    qpos = other.loop.data.qpos
    assert np.array_equal(qpos[:7], box)
    assert qpos[8] == live.columns("qpos", "elbow")[50, 0]
    other.stop()


def test_mocap_bodies_are_replayed(lab):
    """Move the post about while recording."""
    lab.recorder.start()
    for k in range(5):
        lab.post(lambda model, data, k=k: data.mocap_pos.__setitem__((0, 2), k))
        lab.step()
    lab.replay.start()
    assert [lab.snapshot.mocap_pos[0, 2], *(lab.step().mocap_pos[0, 2] for _ in range(4))] == [
        *range(5)
    ]


def test_robots_land_where_they_are_placed(two_bots, tmp_path):
    """Play a table of a free root on a turned robot: its first frame lands at the placed pose."""
    root = ",".join(f"b/root[{k}]" for k in range(7))
    write(tmp_path, "go.csv", f"time,{root},b/hip\n0,9,9,9,1,0,0,0,.1\n1,10,9,9,1,0,0,0,.2\n")
    placed = two_bots.snapshot.qpos[8:15]
    two_bots.replay.start("go.csv")
    assert two_bots.snapshot.qpos[8:15] == pytest.approx(placed, abs=1e-12)
    two_bots.replay.seek(1.0)  # a metre ahead, which is the other way for who is turned about
    assert two_bots.snapshot.qpos[8:11] == pytest.approx(placed[:3] - [1, 0, 0], abs=1e-12)
    assert two_bots.snapshot.qpos[11:15] == pytest.approx(placed[3:], abs=1e-12)
    assert two_bots.snapshot.qpos[15] == pytest.approx(0.2)
    two_bots.replay.bindings["b"].relative = False
    two_bots.replay.start("go.csv")
    assert two_bots.snapshot.qpos[8:11].tolist() == [9, 9, 9]


def test_velocities_turn_with_the_robot(two_bots):
    """Throw a robot, and replay it relative to where it began: the step fits the velocity."""

    def throw(model, data):
        data.qvel[7:13] = [1, 0, 5, 0.1, 0.2, 3]

    two_bots.post(throw)
    two_bots.recorder.start()
    two_bots.step(50)
    two_bots.recorder.stop()
    two_bots.reset()
    assert two_bots.replay.bindings["b"].relative is None
    two_bots.replay.bindings["b"].relative = True
    two_bots.replay.start(LIVE)
    data = two_bots.loop.data
    for _ in range(20):
        before = data.qpos.copy()
        two_bots.step()
        moved = np.empty(two_bots.world.model.nv)
        mujoco.mj_differentiatePos(two_bots.world.model, moved, 0.002, before, data.qpos)
        assert moved == pytest.approx(data.qvel, abs=1e-9)


def test_disabled_robots_keep_their_state(two_bots):
    """Replay both, then one only."""
    two_bots.recorder.start()
    two_bots.step(50)
    two_bots.recorder.stop()
    two_bots.reset()
    two_bots.replay.bindings["a"].enabled = False
    before = two_bots.snapshot
    two_bots.replay.start()
    after = two_bots.step(30)
    assert np.array_equal(after.qpos[:8], before.qpos[:8])
    assert np.array_equal(after.qvel[:7], before.qvel[:7])
    assert not np.array_equal(after.qpos[8:], before.qpos[8:])


def test_positions_alone_are_at_rest(two_bots, tmp_path):
    """Play a table without velocities on a robot that falls: it does not fall in the replay."""
    write(tmp_path, "go.csv", "hip\n.1\n.2\n")
    with pytest.raises(ValueError, match="fits no joint of this world:\n.*\nhip: ambiguous"):
        two_bots.replay.start("go.csv")
    assert not two_bots.replay.is_active
    write(tmp_path, "go.csv", "a/hip\n.1\n.2\n")
    two_bots.post(lambda model, data: data.qvel.__setitem__(6, 3.0))
    two_bots.step()
    assert two_bots.snapshot.qvel[6] != 0.0
    two_bots.replay.start("go.csv")
    assert two_bots.snapshot.qpos[7] == 0.1 and two_bots.snapshot.qvel[6] == 0.0
    assert two_bots.step().qpos[7] == pytest.approx(0.2)  # a row a timestep


def test_the_camera_comes_along(lab, tmp_path):
    """Play a table with a camera."""
    assert lab.replay.camera is None
    cameras = ",".join(f"cam_{axis}" for axis in ("x", "y", "z", "pitch", "yaw", "roll"))
    write(tmp_path, "go.csv", f"time,elbow,{cameras}\n0,0,1,2,3,4,5,6\n1,0,3,2,3,4,5,6\n")
    lab.replay.start("go.csv")
    lab.replay.seek(0.5)
    assert lab.replay.camera.tolist() == [2, 2, 3, 4, 5, 6]


def test_what_cannot_be_played_is_refused(lab, tmp_path):
    """Play nothing, what is not there, and what was not started; the world stays as it is."""
    other = make_lab(lab.world, tmp_path)
    with pytest.raises(ValueError, match="'Live' has no frames to play"):
        other.replay.start()
    with pytest.raises(FileNotFoundError, match="There is no recording '.*' in"):
        other.replay.start("none.mcap")
    with pytest.raises(RuntimeError, match="Nothing is played"):
        other.replay.seek(0.0)
    assert other.step().stepper == "physics"
    other.stop()


BOX = '<body name="box"><freejoint name="box"/><geom size=".1"/></body>'
TALL = ARM.replace('<body name="upper"', f'{BOX}<body name="upper"')
OTHER = BOT.replace('"hip"', '"thigh"').replace('"root"', '"trunk"')


def rebuild(lab: LiveLab, xml: str) -> None:
    """Rebuild a lab from a text."""
    assert lab.rebuild(world_from_spec(mujoco.MjSpec.from_string(xml)))


@pytest.mark.parametrize("file", ["", "two.mcap"])
def test_segments_are_played_one_after_the_other(lab, file):
    """Record over a rebuild, play it in the new world: each frame of both models, by name."""
    lab.recorder.start(file)
    before = [lab.step() for _ in range(40)]
    rebuild(lab, TALL)
    after = [lab.step() for _ in range(30)]
    lab.recorder.stop()
    report = lab.replay.start(file or LIVE)
    assert "segment 1 of 2 is of another model" in str(report)
    assert "3 of its 3 joints are moved" in str(report)
    assert lab.replay.num_frames == 70
    assert lab.replay.duration == pytest.approx(69 * 0.002)
    lab.replay.pause()
    for at, snapshots in enumerate((before, after)):
        for i, then in enumerate(snapshots):
            lab.replay.seek((40 * at + i) * 0.002)
            assert lab.replay.segment == at + 1
            now = lab.snapshot.qpos if at else lab.snapshot.qpos[7:]
            placed = then.qpos if not file else now  # files are placed at the initial pose
            assert np.array_equal(now[-9:-7], then.qpos[-9:-7])
            assert np.array_equal(now, placed)
    assert f"[{file or LIVE}, segment 2 of 2]" in lab.replay.label
    lab.replay.seek(39 * 0.002)
    lab.replay.step_frames(1)
    assert lab.replay.segment == 2 and lab.replay.time == pytest.approx(40 * 0.002)
    lab.replay.step_frames(-1)
    assert lab.replay.segment == 1 and lab.replay.time == pytest.approx(39 * 0.002)
    lab.replay.play()
    seen = {(lab.step(), lab.replay.segment)[1] for _ in range(80)}
    assert seen == {1, 2}, "over the boundary, and again from the beginning"


def test_segments_that_fit_nothing_are_told(lab, tmp_path):
    """Rebuild to a world of other joints: only its segment is played, and the report says so."""
    lab.recorder.start()
    lab.step(20)
    rebuild(lab, OTHER)
    lab.step(10)
    lab.recorder.stop()
    report = str(lab.replay.start())
    assert "segment 1 of 2 is of another model" in report and "is not played" in report
    assert lab.replay.num_frames == 10 and lab.replay.segment == 2
    with pytest.raises(ValueError, match="has 2 segments, because its world was rebuilt"):
        lab.recorder.save("two.csv")
    with pytest.raises(ValueError, match="has no segment 3: it has 2"):
        lab.recorder.save("two.csv", segment=3)
    lab.recorder.save("second.csv", segment=2)
    assert lab.recorder.load("second.csv").joints == ["trunk", "thigh"]
    lab.recorder.save("two.mcap")
    live, file = lab.recorder.load(LIVE), lab.recorder.load("two.mcap")
    assert [len(segment) for segment in file.segments] == [20, 10]
    for here, there in zip(live.segments, file.segments, strict=True):
        assert np.array_equal(here.values, there.values) and here.index == there.index
        assert here.model_hash == there.model_hash


def test_a_rebuild_ends_a_replay(lab):
    """Rebuild during a replay: it ends, the world continues, and the result says so."""
    lab.replay.loop, lab.replay.rate = False, 2.0
    lab.replay.start()
    result = lab.rebuild(world_from_spec(mujoco.MjSpec.from_string(TALL)))
    assert "the replay of 'Live' ended" in result.notes and not lab.replay.is_active
    assert not lab.replay.loop and lab.replay.rate == 2.0
    assert lab.replay.start().matched, "what was recorded before is still there"
