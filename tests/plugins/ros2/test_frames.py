"""Frames of recordings and of ROS 2: every `frame_id` leads to `world`, by the same names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import mujoco
import numpy as np
import pytest
from mcap.reader import make_reader

from manyworlds.lab import LabCfg, LiveLab, RecorderCfg, World, world_from_spec
from manyworlds.lab.pictures import LabCameraCfg
from manyworlds.lab.world.frames import ModelFrames
from manyworlds.plugins.ros2.world import RosWorld
from manyworlds.plugins.urlab.fast_path.server import _STATE_FIELDS
from tests.lab.conftest import ARM
from tests.lab.protobuf_reader import read_message
from tests.lab.server.conftest import two_robots
from tests.plugins.ros2.test_ros import ASSETS, IMU, SAME
from tests.waiting import until


def of_text(xml: str) -> World:
    """Return the world of a model."""
    return world_from_spec(mujoco.MjSpec.from_string(xml))


WORLDS: dict[str, Callable[[], World]] = {
    "two robots": two_robots,
    "slashes": lambda: of_text(IMU.replace("go_", "a/b/")),
    "same names": lambda: of_text(SAME),
    "of strangers": lambda: world_from_spec(mujoco.MjSpec.from_file(str(ASSETS / "ant.xml"))),
    "added camera": lambda: of_text(ARM),
}


def frame_ids(content: object, key: str = "frame_id") -> Iterator[str]:
    """Yield the values of a key anywhere in a message."""
    if isinstance(content, dict):
        for name, value in content.items():
            if name == key:
                yield value
            else:
                yield from frame_ids(value, key)
    elif isinstance(content, list):
        for item in content:
            yield from frame_ids(item, key)


def check_tree(parents: dict[str, set[str]], used: set[str]) -> None:
    """Check that each frame in use has a way to `world`, and no frame has two parents."""
    assert all(len(found) == 1 for found in parents.values())
    for frame in used - {""}:
        seen: list[str] = []
        while frame != "world":
            assert frame not in seen and frame in parents, f"no transform has '{frame}'"
            seen.append(frame)
            (frame,) = parents[frame]


def read_recording(path: Path) -> tuple[dict[str, set[str]], set[str]]:
    """Return the parents of all frames of a recording, and the frames that its messages name."""
    parents: dict[str, set[str]] = {}
    used: set[str] = set()
    with path.open("rb") as stream:
        for schema, channel, message in make_reader(stream).iter_messages():
            if channel.message_encoding != "protobuf":
                continue
            assert schema is not None
            content = read_message(schema, message.data)
            used.update(frame_ids(content))
            if channel.topic == "/tf":
                for item in content["transforms"]:
                    child = item["child_frame_id"]
                    parents.setdefault(child, set()).add(item["parent_frame_id"])
    return parents, used


def read_ros(lab: LiveLab) -> tuple[dict[str, set[str]], set[str]]:
    """Return the parents of all frames of ROS's messages, and the frames that messages name."""
    world = RosWorld(lab.model, dict(lab.robots))
    state = {name: getattr(lab.snapshot, name) for name in _STATE_FIELDS}
    messages = world.messages({"t": lab.snapshot.time, **state})
    for name in lab.cameras:
        image = lab.cameras.render(name)
        messages += world.images(image.header(), image.to_bytes())
    parents: dict[str, set[str]] = {}
    used: set[str] = set()
    for message in messages:
        if message.topic == "/tf":
            for item in message.content["transforms"]:
                parent = item["header"]["frame_id"]
                parents.setdefault(item["child_frame_id"], set()).add(parent)
        else:
            used.update(frame_ids(message.content))
    return parents, used


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_every_frame_of_a_recording_resolves(name, gl, tmp_path):
    """Record states and all cameras: each frame has a transform, with the same name in ROS."""
    cfg = LabCfg(mode="direct", recorder=RecorderCfg(folder=tmp_path))
    with LiveLab(WORLDS[name](), cfg) as lab:
        if name in ("two robots", "added camera"):
            body = lab.model.body(lab.model.nbody - 1).name
            lab.cameras.add(LabCameraCfg(name="my/eye", body=body, width=32, height=24))
        for camera in lab.cameras:
            lab.call("configure_camera", camera=camera, width=32, height=24)
        lab.call("recording_start", name="a.mcap", cameras=list(lab.cameras))

        def have_come() -> bool:
            lab.step(10)
            return all(told["images"] for told in lab.recorder.images.values())

        until(have_come, "no image comes")
        lab.call("recording_stop")
        parents, used = read_recording(tmp_path / "a.mcap")
        ros_parents, ros_used = read_ros(lab)
        frames = ModelFrames(lab.model)
        optical = {frames.camera(camera) for camera in lab.cameras}
    check_tree(parents, used)
    check_tree(ros_parents, ros_used)
    assert optical <= used and optical <= ros_used
    assert set(parents) <= set(ros_parents)
    assert set(frames.bodies) == {*parents, "world"} - optical


def test_calibrations_count_from_the_center_of_a_pixel(gl):
    """Draw a point at the principal point: half a pixel from the lab's, which has corners."""
    camera = LabCameraCfg(name="eye", pos=(0.0, 0.0, 1.0), width=33, height=21)
    with LiveLab(of_text(ARM), LabCfg(mode="direct")) as lab:
        lab.cameras.add(camera)
        image = lab.cameras.render("eye")
        messages = RosWorld(lab.model, {}).images(image.header(), image.to_bytes())
    (k,) = (np.array(message.content["k"]) for message in messages if "k" in message.content)
    assert (k[2], k[5]) == (16.0, 10.0)  # the pixel in the middle of 33 x 21
