"""The process that draws a lab's cameras: what it takes from the lab, and what its end leaves."""

from __future__ import annotations

import gc
import io
import logging
import os
import signal
import socket
import threading
import weakref

import mujoco
import numpy as np
import pytest

from manyworlds.lab import RecorderCfg, VerbError, world_from_spec
from manyworlds.lab.pictures import CameraDrawer, CameraImage
from manyworlds.lab.pictures.cameras import FaceCameras
from manyworlds.lab.pictures.painter import Painter
from tests.lab.conftest import ARM
from tests.lab.pictures.test_drawing import make
from tests.waiting import PATIENCE_S, until

pytestmark = pytest.mark.usefixtures("gl")


def test_the_lab_itself_draws_and_encodes_nothing(monkeypatch, tmp_path):
    """Forbid drawing here: images of all ways come from the other process."""

    def forbidden(*args, **kwargs):
        raise AssertionError("drawn in the lab's process")

    monkeypatch.setattr(Painter, "draw", forbidden)
    monkeypatch.setattr(CameraImage, "jpeg", forbidden)
    with make(recorder=RecorderCfg(folder=tmp_path)) as lab:
        assert lab.cameras._process is None  # asking for cameras does not start it
        lab.call("recording_start", name="a.mcap", cameras=["eye"])
        raw, jpeg = (lab.call("capture_camera", camera="eye", format=f) for f in ("raw", "jpeg"))
        with lab.camera("eye").subscribe("depth") as depth:
            assert depth.get(PATIENCE_S).image.dtype == np.float32
        assert lab.call("step", include_cameras={"eye": "sync"})["cameras"]["eye"]["data"]
        until(lambda: lab.recorder.images["eye"]["images"], "an image in the file")
        assert {thread.name for thread in threading.enumerate()}.isdisjoint({"manyworlds-cameras"})
        from PIL import Image

        assert raw["header"] | {"encoding": "jpeg"} == jpeg["header"]
        shape = [raw["header"][name] for name in ("height", "width", "channels")]
        pixels = np.frombuffer(raw["data"], np.uint8).reshape(shape)
        picture = np.array(Image.open(io.BytesIO(jpeg["data"])))
        assert np.abs(picture.astype(int) - pixels).mean() < 4.0  # JPEG is not exact


def test_nothing_is_drawn_without_a_subscription():
    """Leave a stream, and let the world run: the next image is the first one drawn since then."""
    with make(mode="live") as lab:
        with lab.camera("eye").subscribe() as stream:
            stream.get(PATIENCE_S)
        lab.camera("eye").frame()
        count, before = lab.cameras.num_drawn, lab.snapshot.step
        until(lambda: lab.snapshot.step > before + 200, "steps")  # 20 frames of the camera
        lab.camera("eye").frame()
        assert lab.cameras.num_drawn == count + 1


@pytest.mark.slow
def test_a_later_subscriber_shares_the_stream():
    """Subscribe twice while time stands still: both have the same frame, drawn once."""
    with make() as lab, lab.camera("eye").subscribe() as first:
        frame = first.get(PATIENCE_S)
        with lab.camera("eye").subscribe() as second:
            assert second.get(PATIENCE_S) is frame
            lab.step(10)
            assert first.get(PATIENCE_S) is second.get(PATIENCE_S)
        lab.step(10)
        assert first.get(PATIENCE_S).step == 20
        assert lab.cameras.num_drawn == 3


@pytest.mark.slow
def test_the_end_of_the_process_is_told(tmp_path, caplog):
    """Kill it: log, status, stream and recording have the reason, and the next one works."""
    with make(recorder=RecorderCfg(folder=tmp_path)) as lab:
        lab.call("recording_start", name="a.mcap", cameras=["other"])
        stream = lab.camera("eye").subscribe()
        stream.get(PATIENCE_S)
        with caplog.at_level(logging.ERROR):
            os.kill(lab.cameras._process.process.pid, signal.SIGKILL)
            with pytest.raises(VerbError, match="draws cameras has ended .SIGKILL.") as caught:
                stream.get(PATIENCE_S)
        assert caught.value.code == "not_ready"
        assert any("has ended (SIGKILL)" in record.message for record in caplog.records)
        status = lab.call("read_status")
        assert status["failures"] == [str(caught.value)]
        assert status["recording"]["images"]["other"]["error"] == str(caught.value)
        lab.step(20)
        lab.call("recording_stop")
        assert lab.snapshot.step == lab.recorder.num_frames == 20
        with lab.camera("eye").subscribe() as stream:
            assert stream.get(PATIENCE_S).step == 20
        assert lab.call("read_status")["failures"] == []


def test_a_stopped_process_delays_no_step(tmp_path):
    """Stop it like a debugger: steps and the end of a recording do not wait; then frames come."""
    with make(recorder=RecorderCfg(folder=tmp_path)) as lab:
        lab.call("recording_start", name="a.mcap", cameras=["eye"])
        with lab.camera("eye").subscribe() as stream:
            stream.get(PATIENCE_S)
            process = lab.cameras._process.process.pid
            os.kill(process, signal.SIGSTOP)
            os.waitid(os.P_PID, process, os.WSTOPPED | os.WNOWAIT)  # until it has stopped
            try:
                lab.step(500)
                lab.camera("eye").configure(rate=25.0)
                lab.call("recording_stop")
            finally:
                os.kill(process, signal.SIGCONT)
            assert stream.get(PATIENCE_S).step == 500
            assert stream.num_late > 0


def test_a_rebuilt_world_is_drawn():
    """Rebuild: the stream goes on, and an image asked for at once is of the new world."""
    bigger = ARM.replace('<freejoint/><geom size=".05"/>', '<freejoint/><geom size=".3"/>')
    assert bigger != ARM
    with make() as lab, lab.camera("eye").subscribe() as stream:
        before = stream.get(PATIENCE_S)
        assert lab.rebuild(lambda: world_from_spec(mujoco.MjSpec.from_string(bigger)))
        after = lab.camera("eye").frame()
        here = CameraDrawer(lab, lambda fresh: lab.cameras.cfgs)
        try:
            assert np.array_equal(after.image, here.render("eye").image)
        finally:
            here.close()
        assert (after.image != before.image).any()
        lab.step(10)
        until(lambda: (frame := stream.newest()) and frame.step == 10, "the stream goes on")


def test_a_stopped_lab_is_freed_with_its_process():
    """Stop a lab whose cameras were drawn: its process ends, and nothing keeps the lab."""
    lab = make()
    with lab:
        lab.camera("eye").frame()
        process = lab.cameras._process
        assert process.is_alive
    assert not process.is_alive
    with pytest.raises(VerbError, match="their lab has stopped"):
        lab.camera("eye").frame()
    gone = weakref.ref(lab)
    del lab
    gc.collect()
    assert gone() is None


def test_a_reader_that_stands_still_delays_nobody():
    """Read one reader's images and not another's: the first one gets all, at once."""
    with make() as lab:
        near, far = socket.socketpair()
        with near, far:
            asked = lab.cameras.answer
            asked({"do": "check", "camera": "eye", "kind": "rgb"})
            reader = asked({"do": "connect"}, far.fileno())["reader"]
            wish = {"camera": "eye", "kind": "rgb", "jpeg": False, "rate": 1e3}
            asked({"do": "subscribe", "reader": reader, "stream": 0, **wish})
            with lab.camera("eye").subscribe() as stream:
                stream.get(PATIENCE_S)
                for _ in range(40):  # more than its socket holds
                    lab.step(10)
                    assert stream.get(PATIENCE_S).step == lab.snapshot.step
                assert stream.num_late == stream.num_dropped == 0


def test_idle_readers_pause_the_stream():
    """Stop reading for longer than the limit: images pause until the next read."""
    with make(mode="live") as lab:
        cameras = FaceCameras(lab)
        with cameras.subscribe("eye", idle_s=0.3) as stream:
            stream.get(PATIENCE_S)
            (sent,) = cameras._streams.values()
            until(lambda: not sent.is_drawn, "the stream pauses")
            stream.newest()
            assert sent.is_drawn and stream.get(PATIENCE_S).frame_id > 0
        cameras.close()
        with pytest.raises(VerbError, match="were closed"):
            cameras.render("eye")


def test_all_readers_share_one_process():
    """Subscribe by two readers of the lab and by itself: one process draws, each has the images."""
    with make() as lab:
        readers = [lab.cameras, FaceCameras(lab), FaceCameras(lab)]
        streams = [reader.subscribe("eye") for reader in readers]
        for _ in range(3):
            images = [stream.get(PATIENCE_S) for stream in streams]
            assert len({image.frame_id for image in images}) == 1
            lab.step(10)
        assert len(lab.cameras._process.readers) == 3
        assert all(np.array_equal(images[0].image, image.image) for image in images)
        for reader in readers[1:]:
            reader.close()
