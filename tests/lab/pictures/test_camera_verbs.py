"""Cameras of a lab by its verbs: added, configured, moved, removed."""

from __future__ import annotations

import json
import threading

import mujoco
import numpy as np
import pytest

from manyworlds.lab import LabCfg, LiveLab, VerbError, world_from_spec
from manyworlds.lab.pictures import LabCameraCfg, decode_image
from tests.lab.conftest import ARM

CAMERAS = ARM.replace(
    '<site name="tip"',
    '<camera name="wrist" pos=".1 0 0" fovy="70" resolution="320 200"/><camera/><site name="tip"',
)


@pytest.fixture
def lab():
    """A lab of the arm with a camera at its wrist and one without a name, in direct mode."""
    world = world_from_spec(mujoco.MjSpec.from_string(CAMERAS))
    with LiveLab(world, LabCfg(mode="direct")) as lab:
        yield lab


def test_cameras_of_the_model_are_there(lab):
    """List the cameras: size and field of view of the model, and defaults; as plain data."""
    listed = lab.call("list_cameras")["cameras"]
    assert list(listed) == ["wrist", "camera_1"] == list(lab.cameras)
    wrist = listed["wrist"]
    assert (wrist["width"], wrist["height"], wrist["fovy"]) == (320, 200, 70.0)
    assert wrist["source"] == "model" and wrist["body"] == "lower"
    assert (listed["camera_1"]["width"], listed["camera_1"]["height"]) == (640, 480)
    plain = json.loads(json.dumps(listed))
    assert {n: LabCameraCfg.from_plain(p) for n, p in plain.items()} == lab.cameras.cfgs


def test_settings_and_added_cameras_outlive_a_rebuild(lab):
    """Configure and add cameras, and rebuild the world: they are as before."""
    lab.call("configure_camera", camera="wrist", width=100, rate=5)
    pixels = [300, 310, 30, 20]
    lab.call("add_camera", name="eye", pos=[1, 1, 1], intrinsics=pixels, width=64, height=48)
    reply = lab.call("configure_camera", camera="eye", width=128)
    assert reply["camera"]["intrinsics"] == (600.0, 310.0, 60.0, 20.0)  # it shows the same
    more = CAMERAS.replace("<camera/>", '<camera name="new"/>')
    assert lab.rebuild(lambda: world_from_spec(mujoco.MjSpec.from_string(more)))
    assert list(lab.cameras) == ["wrist", "new", "eye"]
    assert (lab.camera("wrist").cfg.width, lab.camera("wrist").cfg.rate) == (100, 5.0)
    assert lab.camera("eye").cfg.width == 128


def test_the_model_keeps_its_cameras(lab):
    """Move or remove a camera of the model, or take its name: errors with the reason."""
    for verb, fields, code, message in (
        ("remove_camera", {"camera": "wrist"}, "not_removable", "only added ones"),
        (
            "move_camera",
            {"camera": "wrist", "pos": [0, 0, 1]},
            "bad_value",
            "model, which sets pos",
        ),
        ("add_camera", {"name": "wrist", "pos": [0, 0, 1]}, "name_taken", "remove it"),
        ("configure_camera", {"camera": "wirst"}, "unknown_camera", "did you mean 'wrist'"),
    ):
        with pytest.raises(VerbError, match=message) as caught:
            lab.call(verb, **fields)
        assert caught.value.code == code
    with pytest.raises(VerbError, match="name of camera"):
        lab.cameras.add(LabCameraCfg(name="eye")).configure(name="other")
    with pytest.raises(ValueError, match="width must be from 1 to 4096 pixels, got 0"):
        lab.camera("wrist").configure(width=0)
    assert lab.camera("wrist").cfg.width == 320


def test_captured_images_are_typed(lab, gl):
    """Capture raw and JPEG images: the header describes the bytes."""
    for kind, dtype in (("rgb", "uint8"), ("depth", "float32"), ("geom", "int32")):
        reply = lab.call("capture_camera", camera="wrist", kind=kind)
        header = json.loads(json.dumps(reply["header"]))
        assert header["dtype"] == dtype and header["encoding"] == "raw"
        image = decode_image(header, reply["data"])
        assert image.shape[:2] == (200, 320)
        np.testing.assert_array_equal(image, lab.camera("wrist").frame(kind).image)
    reply = lab.call("capture_camera", camera="wrist", format="jpeg")
    assert reply["header"]["encoding"] == "jpeg" and reply["data"][:2] == b"\xff\xd8"


def test_cameras_come_and_go_from_many_threads(lab):
    """Add, configure and remove cameras from several threads at once: none is lost or left."""
    errors = []

    def work(number: int) -> None:
        try:
            for i in range(30):
                name = f"{number}-{i}"
                lab.cameras.add(LabCameraCfg(name=name))
                lab.cameras.configure(name, rate=5.0)
                if i % 2:
                    lab.cameras.remove(name)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and len(lab.cameras) == 2 + 6 * 15
