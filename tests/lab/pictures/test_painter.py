"""Images of snapshots, against rays of MuJoCo C."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import mujoco
import numpy as np
import pytest

from manyworlds.lab import LabCfg, LiveLab, VerbError, world_from_file, world_from_spec
from manyworlds.lab.pictures import CameraImage, LabCameraCfg, decode_image, quat_to_look
from tests.lab.conftest import ARM
from tests.robots import robot_file
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.usefixtures("gl")

SKIN, FLEX = int(mujoco.mjtObj.mjOBJ_SKIN), int(mujoco.mjtObj.mjOBJ_FLEX)


def package_file(package: str, path: str) -> Path:
    """Find a model of an installed package, or skip the test."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        pytest.skip(f"{package} is not installed")
    return Path(found.origin).parent / path


MODELS = {
    "go1": lambda: robot_file("unitree_go1/go1.xml"),
    "g1": lambda: robot_file("unitree_g1/g1.xml"),
    "humanoid": lambda: package_file("dm_control", "suite/humanoid.xml"),
    "dog": lambda: package_file("dm_control", "suite/dog.xml"),
    "ant": lambda: package_file("gymnasium", "envs/mujoco/assets/ant.xml"),
}


def lab_of(xml: str) -> LiveLab:
    """Return a lab of an MJCF text, in direct mode."""
    return LiveLab(world_from_spec(mujoco.MjSpec.from_string(xml)), LabCfg(mode="direct"))


def reference(lab: LiveLab) -> mujoco.MjData:
    """Return data of plain MuJoCo at the snapshot's positions."""
    data = mujoco.MjData(lab.model)
    data.qpos[:] = lab.snapshot.qpos
    data.mocap_pos[:], data.mocap_quat[:] = lab.snapshot.mocap_pos, lab.snapshot.mocap_quat
    mujoco.mj_forward(lab.model, data)
    return data


def cast(
    model: mujoco.MjModel, data: mujoco.MjData, frame: CameraImage, row: int, column: int
) -> tuple[float, int]:
    """Cast the ray of a pixel's center; return the distance along the optical axis, and the geom.

    It uses nothing but the frame's header.
    """
    fx, fy, cx, cy = frame.intrinsics
    axes, geom = np.empty(9), np.full(1, -1, np.int32)
    mujoco.mju_quat2Mat(axes, np.array(frame.quat))
    ray = axes.reshape(3, 3) @ [(column + 0.5 - cx) / fx, -(row + 0.5 - cy) / fy, -1.0]
    groups = np.array([1, 1, 1, 0, 0, 0], np.uint8)
    pos = np.array(frame.pos)
    distance = mujoco.mj_ray(model, data, pos, ray, groups, True, -1, geom)
    return distance, int(geom[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_depth_and_ids_are_those_of_rays(name):
    """Look at models of others: depth is within 1 mm of rays, and ids are exactly theirs."""
    path = MODELS[name]()
    with LiveLab(world_from_file(path, plane="robots" in str(path)), LabCfg(mode="direct")) as lab:
        lab.step(20)
        data = reference(lab)
        center = data.xpos[1:].mean(axis=0)
        reach = 0.1 + np.linalg.norm(data.xpos[1:] - center, axis=1).max()
        pos = center + 2.0 * reach * np.array([1.0, -1.2, 0.6])
        lab.cameras.add(
            LabCameraCfg(
                name="eye", pos=tuple(pos), quat=quat_to_look(pos, center), width=200, height=160
            )
        )
        eye = lab.camera("eye")
        depth, both, geom = (eye.frame(kind) for kind in ("depth", "segmentation", "geom"))
        body, entity = eye.frame("body").image, eye.frame("entity").image
        assert depth.image.dtype == np.float32 and geom.image.dtype == body.dtype == np.int32
        ids, types = both.image[..., 0], both.image[..., 1]
        is_geom = types == int(mujoco.mjtObj.mjOBJ_GEOM)
        np.testing.assert_array_equal(geom.image, np.where(is_geom, ids, -1))
        np.testing.assert_array_equal(body[is_geom], lab.model.geom_bodyid[geom.image[is_geom]])
        assert (entity[is_geom] == np.where(body[is_geom] > 0, 0, -1)).all()
        assert (types == SKIN).any() == (name == "dog")
        assert (entity[types == SKIN] == 0).all()
        seen, compared = set(), 0
        for row, column in np.random.default_rng(0).integers((1, 1), (159, 199), (400, 2)):
            near = both.image[row - 1 : row + 2, column - 1 : column + 2]
            if (near != both.image[row, column]).any() or types[row, column] == SKIN:
                continue  # an edge; rays do not hit skins
            distance, hit = cast(lab.model, data, depth, row, column)
            if distance < 0.0 or distance > 0.9 * depth.far:
                continue
            assert geom.image[row, column] == hit
            assert depth.image[row, column] == pytest.approx(distance, abs=1e-3)
            seen.add(hit)
            compared += 1
        assert compared > 50 and len(seen) >= (1 if name == "dog" else 3)


def test_a_wall_is_at_its_distance():
    """Look at a wall from 2 m: all pixels have the depth of 2 m, and beyond is `far`."""
    wall = '<geom name="wall" type="box" pos="0 0 -2.5" size="9 .5 .5"/>'
    with lab_of(f"<mujoco><worldbody><camera name='eye'/>{wall}</worldbody></mujoco>") as lab:
        frame = lab.camera("eye").frame("depth")
        middle = frame.image[240]
        np.testing.assert_allclose(middle, 2.0, atol=1e-5)
        np.testing.assert_allclose(frame.image[0], frame.far, rtol=1e-3)


BALLS = """
<mujoco><statistic extent="2" center="0 0 0"/><worldbody>
  <camera name="fovy" pos="0 -2 .3" xyaxes="1 0 0 0 0 1" fovy="50" resolution="320 200"/>
  <camera name="sensor" pos="0 -2 .3" xyaxes="1 0 0 0 .1 1" resolution="320 240"
    sensorsize=".0064 .0048" focalpixel="300 330" principalpixel="30 -20"/>
  <geom name="a" size=".05" pos=".3 0 .5"/><geom name="b" size=".05" pos="-.4 .1 .2"/>
  <geom name="c" size=".05" pos=".2 0 .1"/>
</worldbody></mujoco>
"""


@pytest.mark.parametrize("camera", ["fovy", "sensor", "added", "added on a body"])
def test_intrinsics_and_poses_project_points(camera):
    """Project the centers of balls by the header: their pixels lie around them."""
    text = BALLS.replace(
        "</worldbody>", '<body name="arm" pos="0 -1 0" euler="0 0 30"/></worldbody>'
    )
    with lab_of(text) as lab:
        pixels = (280.0, 250.0, 150.0, 130.0)
        where = {"name": "added", "pos": (0.1, -1.5, 0.6), "intrinsics": pixels}
        if camera == "added on a body":
            where |= {"name": camera, "body": "arm", "pos": (0.1, -0.9, 0.6)}
        pos = np.array(where["pos"])
        size = {"width": 320, "height": 260}
        lab.cameras.add(LabCameraCfg(**where, **size, quat=quat_to_look(pos, (0.2, 0.8, 0.2))))
        frame = lab.camera(camera).frame("geom")
        fx, fy, cx, cy = frame.intrinsics
        if camera == "fovy":
            assert fy == pytest.approx(100 / np.tan(np.radians(25.0)), rel=1e-6)
            assert (fx, cx, cy) == pytest.approx((fy, 160.0, 100.0), rel=1e-6)
        elif camera == "sensor":
            assert (fx, fy) == pytest.approx((300.0, 330.0), rel=1e-5)
        else:
            assert frame.intrinsics == pytest.approx(pixels, rel=1e-5)
        axes = np.empty(9)
        mujoco.mju_quat2Mat(axes, np.array(frame.quat))
        for geom in range(3):
            x, y, z = axes.reshape(3, 3).T @ (lab.model.geom_pos[geom] - frame.pos)
            rows, columns = np.nonzero(frame.image == geom)
            center = cx - fx * x / z, cy + fy * y / z
            assert (columns.mean() + 0.5, rows.mean() + 0.5) == pytest.approx(center, abs=0.6)


def test_the_image_is_of_the_snapshots_positions():
    """Draw a falling ball: its center is where `qpos` of the snapshot has it, not a step before."""
    ball = '<body pos="0 0 3"><freejoint/><geom size=".1"/></body>'
    option = '<option timestep=".05"/>'
    text = f"<mujoco>{option}<worldbody>{ball}</worldbody></mujoco>"
    with lab_of(text) as lab:
        eye = lab.cameras.add(
            LabCameraCfg(name="eye", pos=(0, -4, 2), quat=quat_to_look((0, -4, 2), (0, 0, 2)))
        )
        lab.step(8)
        frame = eye.frame("geom")
        rows, _ = np.nonzero(frame.image == 0)
        height = 2.0 + (240 - rows.mean() - 0.5) * 4.0 / frame.intrinsics[1]
        assert height == pytest.approx(lab.snapshot.qpos[2], abs=0.01)
        assert abs(lab.snapshot.qpos[2] - lab.snapshot.xpos[1, 2]) > 0.1


@pytest.mark.slow
def test_deformables_and_mocap_bodies_are_drawn():
    """Let a cloth fall and move a mocap body: both are where they are, with their entity."""
    path = package_file("mujoco_warp", "test_data/flex/floppy.xml")
    with LiveLab(world_from_file(path), LabCfg(mode="direct")) as lab:
        center = lab.snapshot.xpos[1:].mean(axis=0)
        pos = center + np.array([1.5, -1.5, 1.0])
        eye = lab.cameras.add(
            LabCameraCfg(name="eye", pos=tuple(pos), quat=quat_to_look(pos, center))
        )
        first = eye.frame("segmentation").image[..., 1] == FLEX
        assert first.sum() > 500 and (eye.frame("entity").image[first] == 0).all()
        lab.step(150)
        later = eye.frame("segmentation").image[..., 1] == FLEX
        assert (first != later).sum() > 200
    with lab_of(ARM) as lab:
        eye = lab.cameras.add(
            LabCameraCfg(
                name="eye", pos=(-1, -2, 0.2), quat=quat_to_look((-1, -2, 0.2), (-1, 0, 0.2))
            )
        )
        post = int(lab.model.body("post").id)
        assert eye.frame("body").image[240, 320] == post
        lab.call("set_mocap_pose", body="post", pos=[-1.0, 0.0, 0.6])
        ids = eye.frame("body").image
        assert ids[240, 320] != post and ids[125, 320] == post


def test_changes_of_the_model_are_seen():
    """Paint a geom, and rebuild the world: the next image shows it."""
    with lab_of(ARM) as lab:
        pos = (0.5, -1.5, 0.3)
        eye = lab.cameras.add(
            LabCameraCfg(name="eye", pos=pos, quat=quat_to_look(pos, (0.5, 0, 0.3)))
        )
        ball = lab.cameras.add(LabCameraCfg(name="on the ball", body="ball", pos=(0, 0, 0.5)))
        before = eye.frame().image[240, 320]
        geom = int(lab.model.body("ball").geomadr[0])
        lab.post(lambda m, d: m.geom_rgba.__setitem__(geom, (1, 0, 0, 1))).result(PATIENCE_S)
        red = eye.frame().image[240, 320]
        assert red[0] > 2 * red[1] and red[0] > 2 * red[2] and (red != before).any()
        bigger = ARM.replace('<freejoint/><geom size=".05"/>', '<freejoint/><geom size=".2"/>')
        assert ball.frame().width == 640
        few = (eye.frame("geom").image == geom).sum()
        assert lab.rebuild(lambda: world_from_spec(mujoco.MjSpec.from_string(bigger)))
        assert (eye.frame("geom").image == geom).sum() > 10 * few
        gone = ARM.replace('name="ball"', 'name="stone"')
        assert lab.rebuild(lambda: world_from_spec(mujoco.MjSpec.from_string(gone)))
        assert eye.frame().width == 640
        with pytest.raises(VerbError, match="body 'ball' that carries camera 'on the ball' is not"):
            ball.frame()


def test_frames_are_decoded_without_prior_knowledge():
    """Send header and bytes: the image is the same; pictures and JPEG files are for people."""
    with lab_of(BALLS) as lab:
        for kind in ("rgb", "depth", "segmentation", "geom", "body", "entity"):
            frame = lab.camera("fovy").frame(kind)
            image = decode_image(frame.header(), frame.to_bytes())
            assert image.dtype == frame.image.dtype
            np.testing.assert_array_equal(image, frame.image)
            assert frame.picture().shape == (200, 320, 3) and frame.picture().dtype == np.uint8
            assert frame.jpeg()[:2] == b"\xff\xd8" and frame.jpeg()[-2:] == b"\xff\xd9"
        (colors,) = {tuple(c) for c in frame.picture()[frame.image == -1]}
        assert colors == (0, 0, 0)
