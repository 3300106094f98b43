"""The clip of our own: a biped could do this."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from manyworlds.asset_zoo.humanoid import get_humanoid_cfg
from manyworlds.tasks.tracking.clip import wave_and_squat
from manyworlds.tasks.tracking.config.humanoid import CLIP


@pytest.fixture(scope="module")
def stand(clip):
    """A model on a floor, and a function that puts it into a frame."""
    spec = get_humanoid_cfg().build().spec
    floor = spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[1, 1, 0.1])
    model = spec.compile()
    data = mujoco.MjData(model)

    def put(frame: int) -> mujoco.MjData:
        data.qpos[:] = [
            *clip.body_pos_w[frame, 0],
            *clip.body_quat_w[frame, 0],
            *clip.joint_pos[frame],
        ]
        mujoco.mj_forward(model, data)
        return data

    return model, put, floor.id


def _soles(model):
    return [model.geom(f"{s}_foot{i}_collision").id for s in ("left", "right") for i in (1, 2)]


def test_feet_stay_on_the_ground_where_they_are(clip, stand):
    """Measure soles against the floor in every frame: within 1 cm of it, and never sliding."""
    model, put, floor = stand
    places = []
    for frame in range(clip.num_frames):
        data = put(frame)
        for geom in _soles(model):
            assert abs(mujoco.mj_geomDistance(model, data, geom, floor, 1.0, None)) < 1e-3
        places.append(data.geom_xpos[_soles(model)].copy())
    assert np.ptp(places, axis=0).max() < 1e-4


def test_the_robot_could_stand_like_this(clip, stand):
    """Keep the centre of mass, and the point where the ground would push, over the soles."""
    model, put, _ = stand
    com = []
    for frame in range(clip.num_frames):
        data = put(frame)
        com.append(data.subtree_com[1].copy())
    com = np.array(com)
    # The zero moment point of a body whose mass moves as one: M. Vukobratovic and B. Borovac,
    # "Zero-moment point: thirty five years of its life" (2004).
    acceleration = np.gradient(np.gradient(com, axis=0), axis=0) * clip.fps**2
    push = com[:, 2:] / (9.81 + acceleration[:, 2:])
    zmp = com[:, :2] - push * acceleration[:, :2]
    soles = data.geom_xpos[_soles(model)]
    x, y = soles[:, 0].mean(), np.abs(soles[:, 1]).max()
    for point in (com[:, :2], zmp):
        assert (np.abs(point[:, 0] - x) < 0.06).all()
        assert (np.abs(point[:, 1]) < y - 0.03).all()


def test_joints_keep_their_limits(clip):
    """Compare with the soft limits, and velocities with what motors can do."""
    model = get_humanoid_cfg().build().spec.compile()
    low, high = model.jnt_range[1:].T
    middle, half = 0.5 * (low + high), 0.45 * (high - low)
    assert (np.abs(clip.joint_pos - middle) <= half + 1e-6).all()
    assert np.abs(clip.joint_vel).max() < 5.0


def test_the_robot_waves_shifts_its_weight_and_squats(clip):
    """Find in the bodies' paths what the clip is called after, and rest at both ends."""
    path = {name: clip.body_pos_w[:, i] for i, name in enumerate(clip.body_names)}
    assert np.ptp(path["right_wrist_yaw_link"][:, 2]) > 0.3
    assert np.ptp(path["pelvis"][:, 1]) > 0.03
    assert np.ptp(path["pelvis"][:, 2]) == pytest.approx(0.12, abs=1e-3)
    np.testing.assert_allclose(clip.body_pos_w[0], clip.body_pos_w[-1], atol=1e-5)
    assert np.abs(clip.joint_vel[[0, -1]]).max() < 1e-3


def test_a_squat_that_is_too_deep_is_refused():
    """Sink by more than the legs are long."""
    with pytest.raises(ValueError, match="choose a smaller ClipRobot.squat"):
        wave_and_squat(replace(CLIP, squat=1.0))
