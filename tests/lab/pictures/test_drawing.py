"""Streams of cameras: who draws, when, and for whom."""

from __future__ import annotations

import queue
import socket
import threading
import time
from contextlib import closing
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest

from manyworlds.lab import LabCfg, LiveLab, VerbError, world_from_spec
from manyworlds.lab.pictures import CameraDrawer, LabCameraCfg, quat_to_look
from manyworlds.lab.pictures import drawing as drawing_module
from manyworlds.lab.pictures.painter import Painter
from manyworlds.lab.readers.link import LabLink
from manyworlds.lab.readers.remote_lab import RemoteLab
from manyworlds.lab.readers.wire import Wire
from tests.lab.conftest import ARM
from tests.waiting import PATIENCE_S, until

pytestmark = pytest.mark.usefixtures("gl")
POS = (1.5, -2.0, 1.2)
SMALL = {"width": 64, "height": 48}


def make(**kwargs) -> LiveLab:
    """Return a lab of the arm with two small cameras; its physics thread has not started."""
    cfg = LabCfg(**{"mode": "direct", **kwargs})
    lab = LiveLab(world_from_spec(mujoco.MjSpec.from_string(ARM)), cfg)
    for name in ("eye", "other"):
        look = quat_to_look(POS, (0, 0, 0.4))
        lab.cameras.add(LabCameraCfg(name=name, pos=POS, quat=look, rate=50.0, **SMALL))
    return lab


def drawing(lab: LiveLab) -> closing[CameraDrawer]:
    """Return what draws the lab's cameras in this process."""
    return closing(CameraDrawer(lab, lambda fresh: lab.cameras.cfgs))


def test_nothing_is_drawn_for_nobody():
    """Run a lab with cameras: no thread, no image, and none after the last consumer has left."""
    with make(mode="live") as lab, drawing(lab) as drawn:
        lab.loop.step(50)
        assert drawn._thread is None
        with drawn.subscribe("eye") as stream:
            stream.get(PATIENCE_S)
        until(lambda: not drawn._streams, "the drawer rests")
        count, reads = drawn.num_drawn, []
        drawn._face = SimpleNamespace(snapshot=property(reads.append))
        before = lab.snapshot.step
        until(lambda: lab.snapshot.step > before + 100, "steps")
        assert drawn.num_drawn == count and not reads


def test_a_sync_image_is_of_its_step():
    """Step in direct mode with images: each has the frame id of its step, also beside a stream."""
    with make() as lab, lab.camera("other").subscribe():
        for count in (1, 7, 3):
            reply = lab.call("step", n_steps=count, include_cameras={"eye": "sync"})
            header = reply["cameras"]["eye"]["header"]
            assert header["step"] == reply["step"]
            assert header["frame_id"] == lab.snapshot.frame_id == reply["frame_id"]
            assert header["time"] == lab.snapshot.time
        old = lab.snapshot
        lab.step(5)
        assert lab.camera("eye").frame(snapshot=old).frame_id == old.frame_id
        reply = lab.call("step", include_cameras={"other": "latest", "eye": "latest"})
        assert reply["cameras"]["eye"]["header"]["step"] == reply["step"]  # there was none before
        assert reply["cameras"]["other"]["header"]["step"] <= reply["step"]


def test_steps_do_not_wait_for_images(monkeypatch):
    """Hold up the drawing: the world goes on, and no image is drawn in its thread."""
    held, threads = threading.Event(), set()
    draw = Painter.draw

    def slow(*args):
        threads.add(threading.current_thread().name)
        assert held.wait(PATIENCE_S)
        return draw(*args)

    monkeypatch.setattr(Painter, "draw", slow)
    with make() as lab, drawing(lab) as drawn, drawn.subscribe("eye") as stream:
        until(lambda: threads, "drawing begins")
        lab.step(200)
        assert lab.snapshot.step == 200 and stream.num_images == 0
        held.set()
        assert stream.get(PATIENCE_S).step == 0
        lab.step(20)
        assert stream.get(PATIENCE_S).step > 0
        assert threads == {"manyworlds-cameras"}
        assert stream.num_late > 0  # 50 Hz of 200 steps of 2 ms were not drawn


def test_a_slow_consumer_loses_frames_alone():
    """Read one stream and not the other: the other one loses its oldest frames, and counts them."""
    with make() as lab:
        slow = lab.camera("eye").subscribe(capacity=2)
        with lab.camera("other").subscribe() as quick, slow:
            times = [quick.get(PATIENCE_S).time]
            while len(times) < 8:
                lab.step(10)
                times.append(quick.get(PATIENCE_S).time)
            assert quick.num_dropped == 0 and np.allclose(np.diff(times), 0.02)
            until(lambda: slow.num_images == 8, "all frames were delivered")
            assert slow.num_dropped == 6
            assert [slow.get(1).time for _ in range(2)] == times[-2:]
            with pytest.raises(TimeoutError, match="'eye' had no new image"):
                slow.get(0.01)


def test_delayed_frames_come_late():
    """Delay a camera by 50 ms: a frame comes when simulated time has passed it by that much."""
    with make() as lab, drawing(lab) as drawer:
        lab.camera("eye").configure(delay=0.05)
        with drawer.subscribe("eye", capacity=20) as stream:
            until(lambda: stream.begun, "the first frame is drawn")
            for _ in range(30):
                lab.step(5)
                drawn = lab.snapshot.time
                time.sleep(0.02)
                while (frame := stream.newest()) is not None:
                    assert drawn - frame.time >= 0.05 - 1e-9
            until(lambda: stream.num_images >= 5, "frames")
            lab.reset()
            lab.step(1)
            drawer.render("eye")  # what was being drawn is delivered before it
            stream.newest()
            for _ in range(2):
                drawer.render("eye")
            assert stream.newest() is None  # frames from before the reset are no news


@pytest.mark.parametrize("rate", [20.0, 100.0, 30.0])
def test_frames_are_due_by_simulated_time(rate):
    """Show a stream steps of 2 ms: frames are 1 / rate apart on average, and gaps are counted."""
    camera = LabCameraCfg(name="eye", rate=rate)
    stream, taken, late = drawing_module._Stream(), [], 0
    for number in range(1001):
        snapshot = SimpleNamespace(frame_id=number, time=0.002 * number)
        if 400 <= number < 600:
            continue  # the drawing of another camera takes long
        if stream.is_due(camera, snapshot, rate):
            late += stream.note(camera, snapshot, rate)
            taken.append(snapshot.time)
    gaps = np.diff(taken)
    assert np.sort(gaps)[-2] <= 1 / rate + 0.002 and gaps.min() >= 1 / rate - 0.002 - 1e-9
    assert len(taken) + late == pytest.approx(2.0 * rate, abs=2)
    assert late == pytest.approx(0.4 * rate, abs=2)
    assert stream.is_due(camera, SimpleNamespace(frame_id=2000, time=0.0), rate)  # after a reset


def test_a_paused_world_is_drawn_again_when_it_looks_different():
    """Pause: no more images, until the camera, a body, or the model moves."""
    with make(mode="live", start_paused=True) as lab:
        drawn = lab.cameras
        with lab.camera("eye").subscribe() as stream:
            first = stream.get(PATIENCE_S)
            frame = lab.snapshot.frame_id
            until(lambda: lab.snapshot.frame_id > frame + 3, "iterations")
            assert drawn.num_drawn == 1 and stream.newest() is None
            lab.call("move_camera", camera="eye", pos=[0.5, -1.0, 0.5], look_at=[0, 0, 0.4])
            moved = stream.get(PATIENCE_S)
            assert moved.pos == (0.5, -1.0, 0.5) and (moved.image != first.image).any()
            lab.call("set_mocap_pose", body="post", pos=[0.0, 0.0, 0.4])
            assert (stream.get(PATIENCE_S).image != moved.image).any()
            with lab.camera("eye").subscribe("depth") as late:
                assert (
                    late.get(PATIENCE_S).kind == "depth"
                )  # one that comes later gets an image, too


def test_idle_consumers_pause_the_drawing():
    """Stop reading for longer than the limit: drawing pauses until the next read."""
    with (
        make(mode="live") as lab,
        drawing(lab) as drawn,
        drawn.subscribe("eye", idle_s=0.3) as stream,
    ):
        stream.get(PATIENCE_S)
        until(lambda: not drawn._streams, "drawing pauses")
        stream.newest()
        assert stream.get(PATIENCE_S).frame_id > 0


def test_removed_and_disabled_cameras_say_so():
    """Switch a camera off, on, and remove it: its subscriber gets the reason, and then frames."""
    with make(mode="live") as lab:
        with lab.camera("eye").subscribe() as stream:
            stream.get(PATIENCE_S)
            lab.cameras.enable_all(False)
            until(lambda: stream.error, "the reason")
            stream.newest()
            with pytest.raises(VerbError, match="'eye' is switched off"):
                stream.get(PATIENCE_S)
            lab.cameras.enable_all(True)
            until(lambda: not stream.error, "frames again")
            stream.get(PATIENCE_S)
            lab.call("remove_camera", camera="eye")
            until(lambda: stream.error, "the reason")
            stream.newest()
            with pytest.raises(VerbError, match="no camera 'eye' any more"):
                stream.get(PATIENCE_S)
        lab.stop()
        with pytest.raises(VerbError, match="their lab has stopped"):
            lab.camera("other").frame()


def test_one_drawing_serves_all():
    """Subscribe several times: one image for each kind at each time."""
    with make() as lab:
        eye = lab.camera("eye")
        with eye.subscribe() as a, eye.subscribe() as b, eye.subscribe("body") as c:
            for stream in (a, b, c):
                stream.get(PATIENCE_S)
            before = lab.cameras.num_drawn
            lab.step(10)
            frames = [stream.get(PATIENCE_S) for stream in (a, b, c)]
            assert lab.cameras.num_drawn == before + 2
            assert frames[0] is frames[1] and frames[0].frame_id == frames[2].frame_id


def test_a_reader_process_draws_the_same():
    """Draw from shared memory: images equal the lab's, also after edits and a rebuild."""
    lab = make()
    near, far = socket.socketpair()
    events: queue.Queue = queue.Queue()
    link = LabLink(Wire(near), lambda message: None, lambda: None)
    remote = RemoteLab(Wire(far), events.put)
    lab.start()
    link.show(lab)
    assert events.get(timeout=PATIENCE_S)["event"] == "lab"
    remote.sync_model()
    reader = CameraDrawer(remote)
    try:

        def same() -> bool:
            images = [drawn.render("eye").image for drawn in (reader, lab.cameras)]
            return np.array_equal(*images)

        lab.step(30)
        assert same()
        first = reader.render("eye").image
        lab.post(lambda m, d: m.geom_rgba.__setitem__(slice(None), (0, 1, 0, 1))).result(PATIENCE_S)
        assert same() and (reader.render("eye").image != first).any()
        bigger = ARM.replace('<freejoint/><geom size=".05"/>', '<freejoint/><geom size=".3"/>')
        assert lab.rebuild(lambda: world_from_spec(mujoco.MjSpec.from_string(bigger)))
        lab.step(1)
        until(same, "the rebuilt world")
        with reader.subscribe("eye") as stream:
            stream.get(PATIENCE_S)
            lab.step(10)
            assert stream.get(PATIENCE_S).step == lab.snapshot.step
            with pytest.raises(VerbError, match="did you mean 'eye'") as caught:
                reader.render("eie")
            assert caught.value.code == "unknown_camera"
            lab.stop()
            remote.close()
            until(lambda: stream.error, "the end of the lab")
    finally:
        reader.close()
        remote.close()
        link.close()
        lab.stop()


def test_no_opengl_names_the_remedy(monkeypatch):
    """Ask for an image without OpenGL: one sentence with the remedy."""
    from manyworlds.utils.gl import gl_available

    monkeypatch.setenv("MUJOCO_GL", "nonsense")
    reason = gl_available()
    assert reason is not None and "unset MUJOCO_GL" in reason
    with make() as lab, pytest.raises(VerbError) as caught:
        lab.call("capture_camera", camera="eye")
    assert caught.value.code == "no_gl" and str(caught.value) == reason
