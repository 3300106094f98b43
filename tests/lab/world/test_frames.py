"""Names of the frames of a model."""

from __future__ import annotations

import mujoco
import numpy as np

from manyworlds.lab.world.frames import ModelFrames, camera_matrices, optical_quat

NAMES = """<mujoco><worldbody>
    <body name="a/b"><site name="imu"/><geom size=".1"/><camera name="a/b"/></body>
    <body><site name="a_b"/><geom size=".1"/><camera/></body>
    <body name="a_b"><site/><geom size=".1"/></body>
    <body name="body_2"><geom size=".1"/></body>
    </worldbody>
    <sensor><gyro site="a_b"/><accelerometer site="a_b"/><gyro site="imu"/></sensor></mujoco>"""


def test_each_element_has_another_frame():
    """Name elements alike: bodies keep such names as they are, and others get a number."""
    frames = ModelFrames(mujoco.MjModel.from_xml_string(NAMES))
    assert frames.bodies == ["world", "a_b_1", "body_2_1", "a_b", "body_2"]
    assert frames.imus == {1: "a_b_site", 0: "imu"}
    assert frames.cameras == ["a_b_optical_frame", "camera_1_optical_frame"]
    assert [frames.camera(name) for name in ("a/b", "camera_1")] == frames.cameras


def test_cameras_that_are_added_keep_their_frame():
    """Add two cameras, one named as the model's is on the wire: each has its own frame."""
    frames = ModelFrames(mujoco.MjModel.from_xml_string(NAMES))
    assert frames.camera("a_b") == "a_b_optical_frame_1" == frames.camera("a_b")
    assert frames.camera("top/left") == "top_left_optical_frame"


def test_optical_frames_look_along_z():
    """Turn MuJoCo's axes, whose -z is forward and y up, to z forward and y down."""
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, optical_quat((1.0, 0.0, 0.0, 0.0)))
    np.testing.assert_allclose(matrix.reshape(3, 3), np.diag([1.0, -1.0, -1.0]), atol=1e-12)


def test_principal_points_count_from_the_center_of_a_pixel():
    """Give the middle of an image of 4 x 2 pixels from its corner: half a pixel less."""
    rows = camera_matrices(3.0, 5.0, 2.0, 1.0)
    assert rows["k"] == [3.0, 0.0, 1.5, 0.0, 5.0, 0.5, 0.0, 0.0, 1.0]
    assert rows["p"] == [3.0, 0.0, 1.5, 0.0, 0.0, 5.0, 0.5, 0.0, 0.0, 0.0, 1.0, 0.0]
