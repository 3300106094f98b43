"""Images in recordings: read back by the public library, as Foxglove reads them."""

from __future__ import annotations

import io

import mujoco
import numpy as np
import pytest
from mcap.reader import make_reader

from manyworlds.lab import LabCfg, LiveLab, RecorderCfg, VerbError, world_from_spec
from manyworlds.lab.pictures import LabCameraCfg, quat_to_look
from manyworlds.lab.recording.images import MESSAGES
from manyworlds.lab.recording.mcap_files import read_mcap
from tests.lab.conftest import ARM
from tests.lab.protobuf_reader import read_message
from tests.waiting import until

NAMES = {message.DESCRIPTOR.full_name for message in MESSAGES.values()}
POS = (1.5, -2.0, 1.2)


@pytest.fixture
def lab(tmp_path):
    """A lab of the arm with two small cameras, in direct mode, whose recordings are in a folder."""
    world = world_from_spec(mujoco.MjSpec.from_string(ARM))
    cfg = LabCfg(mode="direct", recorder=RecorderCfg(folder=tmp_path))
    with LiveLab(world, cfg) as lab:
        look = quat_to_look(POS, (0, 0, 0.4))
        for name, rate in (("eye", 50.0), ("other eye", 25.0)):
            lab.cameras.add(
                LabCameraCfg(name=name, pos=POS, quat=look, width=96, height=64, rate=rate)
            )
        yield lab


def wait_for_images(lab: LiveLab) -> None:
    """Wait for the image of the present state, which the recording has got before."""

    def has_come() -> bool:
        frame = lab.cameras.newest("eye")
        return frame is not None and frame.time == lab.snapshot.time

    until(has_come, "no image comes")


def test_images_are_recorded_with_the_session(lab, gl, tmp_path):
    """Record two cameras over a reset: images, calibrations and times come back."""
    images = [lab.camera("eye").frame().image]
    lab.call("recording_start", name="a.mcap", cameras=["eye", "other eye"])
    with lab.camera("eye").subscribe():
        wait_for_images(lab)
        for number in range(15):
            if number == 10:
                lab.reset()
                wait_for_images(lab)
            lab.step(10)
            wait_for_images(lab)
    told = lab.call("read_status")["recording"]["images"]
    assert set(told) == {"eye", "other eye"} and told["eye"]["error"] == ""
    lab.call("recording_stop")
    told = lab.recorder.images
    with (tmp_path / "a.mcap").open("rb") as stream:
        messages = list(make_reader(stream).iter_messages())
    topics: dict[str, list] = {}
    for schema, channel, message in messages:
        if not channel.topic.startswith("/camera/"):
            continue
        assert schema.name in NAMES and channel.message_encoding == "protobuf"
        content = read_message(schema, message.data)
        stamp = content["timestamp"]
        assert stamp["seconds"] * 10**9 + stamp["nanos"] == message.log_time
        topics.setdefault(channel.topic, []).append((message.log_time / 1e9, content))
    recording = read_mcap(tmp_path / "a.mcap")  # the states are those without images
    assert len(recording) == 150 and recording.complete
    eye, other = topics["/camera/eye/image"], topics["/camera/other eye/image"]
    assert len(eye) == told["eye"]["images"] and len(other) == told["other eye"]["images"]
    assert len(eye) == 16 and len(other) >= 7
    for frames in (eye, other):
        times = np.array([when for when, _ in frames])
        assert (np.diff(times) > 0).all()
        ends = recording.times[0] - 0.002, recording.times[-1]
        assert ends[0] - 1e-9 <= times[0] and times[-1] <= ends[1] + 1e-9
    from PIL import Image

    picture = np.array(Image.open(io.BytesIO(eye[0][1]["data"])))
    assert picture.shape == (64, 96, 3)
    assert np.abs(picture.astype(int) - images[0]).mean() < 4.0  # JPEG is not exact
    (_, content), *_ = topics["/camera/eye/calibration"]
    fx, fy, cx, cy = lab.camera("eye").frame().intrinsics
    assert content["K"] == [fx, 0.0, cx - 0.5, 0.0, fy, cy - 0.5, 0.0, 0.0, 1.0]
    assert (content["width"], content["height"]) == (96, 64)
    assert content["frame_id"] == eye[0][1]["frame_id"] == "eye_optical_frame"
    poses = [
        read_message(schema, message.data)["transforms"][0]
        for schema, channel, message in messages
        if channel.topic == "/tf"
    ]
    poses = [pose for pose in poses if pose["child_frame_id"] == "eye_optical_frame"]
    assert len(poses) == len(eye) and poses[0]["parent_frame_id"] == "world"
    assert list(poses[0]["translation"].values()) == pytest.approx(POS)
    x, y, z, w = poses[0]["rotation"].values()
    axes = np.empty(9)
    mujoco.mju_quat2Mat(axes, np.array([w, x, y, z]))
    ahead = np.array((0, 0, 0.4)) - POS
    np.testing.assert_allclose(axes.reshape(3, 3)[:, 2], ahead / np.linalg.norm(ahead), atol=1e-6)
    assert axes.reshape(3, 3)[2, 1] < 0.0  # down
    assert len(topics["/camera/eye/calibration"]) == len(eye)


def test_wrong_cameras_start_no_recording(lab, gl, tmp_path):
    """Name a camera that does not exist, or no file: one error, and nothing was begun."""
    with pytest.raises(VerbError, match="did you mean 'eye'"):
        lab.call("recording_start", name="a.mcap", cameras=["other eye", "eie"])
    lab.recorder.cfg.to_file = False
    with pytest.raises(VerbError, match="Images of eye are recorded to files only"):
        lab.call("recording_start", cameras=["eye"])
    assert not lab.recorder.is_recording and not list(tmp_path.iterdir())
    assert not lab.cameras._streams
