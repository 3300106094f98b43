"""Recordings become motions: reading, resampling, differences, forward kinematics."""

from __future__ import annotations

import math
from dataclasses import replace

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.asset_zoo.humanoid import get_humanoid_cfg
from manyworlds.tasks.tracking.joint_motion import (
    ROOT_COLUMNS,
    JointMotion,
    check_recording,
    complete_motion,
    read_joint_motion,
)
from manyworlds.tasks.tracking.motion import Motion
from manyworlds.utils.math import quat_from_angle_axis

JOINTS = ("hip", "knee")


def _turning(fps: float, seconds: float, rate: float = 2.0) -> JointMotion:
    """A root that turns about a slanted axis and moves, with joints that swing."""
    t = torch.arange(round(seconds * fps) + 1, dtype=torch.float64) / fps
    axis = torch.tensor([1.0, 2.0, -1.0], dtype=torch.float64).expand(len(t), 3)
    return JointMotion(
        fps=fps,
        root_pos=torch.stack([t, 0.5 * t, 1.0 + 0.0 * t], dim=1),
        root_quat=quat_from_angle_axis(rate * t, axis),
        joint_pos=torch.stack([t.sin(), (2.0 * t).cos()], dim=1),
    )


def test_resampling_follows_lines_and_great_arcs():
    """Compare 30 to 50 frames per second with the motion itself; a line and a turn are exact."""
    resampled, exact = _turning(30.0, 2.0).resampled(50.0), _turning(50.0, 2.0)
    assert len(resampled.root_pos) == 101
    torch.testing.assert_close(resampled.root_pos, exact.root_pos, rtol=0.0, atol=1e-12)
    dot = (resampled.root_quat * exact.root_quat).sum(dim=1).abs()
    torch.testing.assert_close(dot, torch.ones_like(dot), rtol=0.0, atol=1e-12)
    # A chord is within h^2 / 8 times the curvature of its arc.
    bound = (1.0 / 30.0) ** 2 / 8.0 * torch.tensor([1.0, 4.0], dtype=torch.float64)
    assert ((resampled.joint_pos - exact.joint_pos).abs() <= bound).all()


def test_resampling_at_the_same_rate_changes_nothing():
    """Resample at the rate that the motion has."""
    motion = _turning(50.0, 1.0)
    same = motion.resampled(50.0)
    torch.testing.assert_close(same.joint_pos, motion.joint_pos, rtol=0.0, atol=1e-15)
    torch.testing.assert_close(same.root_quat, motion.root_quat, rtol=0.0, atol=1e-15)


def test_resampling_takes_opposite_quaternions_for_one_rotation():
    """Flip the sign of every other quaternion; nothing turns the long way."""
    motion = _turning(30.0, 1.0)
    signs = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(16)[:31].unsqueeze(1)
    flipped = JointMotion(**{**vars(motion), "root_quat": motion.root_quat * signs})
    dot = (flipped.resampled(50.0).root_quat * motion.resampled(50.0).root_quat).sum(dim=1)
    torch.testing.assert_close(dot.abs(), torch.ones_like(dot), rtol=0.0, atol=1e-12)


def test_velocities_are_central_differences():
    """Compare with the derivatives: exact where they are constant."""
    motion = _turning(100.0, 1.0)
    linear, angular, joints = motion.velocities()
    torch.testing.assert_close(
        linear, torch.tensor([[1.0, 0.5, 0.0]], dtype=torch.float64).expand_as(linear)
    )
    axis = torch.tensor([1.0, 2.0, -1.0], dtype=torch.float64) / math.sqrt(6.0)
    torch.testing.assert_close(angular, (2.0 * axis).expand_as(angular), rtol=0.0, atol=1e-9)
    t = torch.arange(101, dtype=torch.float64) / 100.0
    inner = slice(1, -1)
    torch.testing.assert_close(joints[inner, 0], t.cos()[inner], rtol=0.0, atol=2e-5)
    assert joints[0, 0] == pytest.approx(math.sin(0.01) / 0.01)


def test_complete_motion_agrees_with_mujoco(clip):
    """Compare all bodies of random frames with MuJoCo's own kinematics, over several chunks."""
    generator = torch.Generator().manual_seed(3)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    frames = 150
    motion = JointMotion(
        fps=50.0,
        root_pos=0.01 * draw(frames, 3).cumsum(0),
        root_quat=torch.nn.functional.normalize(1.0 + 0.01 * draw(frames, 4).cumsum(0), dim=1),
        joint_pos=0.02 * draw(frames, 29).cumsum(0),
    )
    seen: list[tuple[int, int]] = []
    complete = complete_motion(get_humanoid_cfg(), motion, lambda *done: seen.append(done))
    assert seen == [(128, 150), (150, 150)]
    model = get_humanoid_cfg().build().spec.compile()
    data = mujoco.MjData(model)
    linear, angular, joints = motion.velocities()
    for frame in (0, 1, 127, 128, 149):
        data.qpos[:] = torch.cat(
            [v[frame] for v in (motion.root_pos, motion.root_quat)]
        ).tolist() + (motion.joint_pos[frame].tolist())
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, motion.root_quat[frame].numpy())
        local = turn.reshape(3, 3).T @ angular[frame].numpy()
        data.qvel[:] = [*linear[frame], *local, *joints[frame]]
        mujoco.mj_forward(model, data)
        for i, name in enumerate(complete.body_names):
            body = model.body(name).id
            velocity = np.zeros(6)
            mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, body, velocity, 0)
            for array, expected in (
                (complete.body_pos_w, data.xpos[body]),
                (complete.body_quat_w, data.xquat[body]),
                (complete.body_ang_vel_w, velocity[:3]),
                (complete.body_lin_vel_w, velocity[3:]),
            ):
                np.testing.assert_allclose(array[frame, i], expected, rtol=1e-5, atol=2e-5)


def _write(path, rows, header=None):
    text = "" if header is None else ",".join(header) + "\n"
    path.write_text(text + "".join(",".join(map(str, row)) + "\n" for row in rows))
    return path


ROWS = [[1, 2, 3, 0.1, 0.2, 0.3, 0.9, 10 + i, 20 + i] for i in range(4)]


def test_csv_columns_are_in_the_robot_s_order(tmp_path):
    """Read a file without names; its quaternion has the scalar last."""
    motion = read_joint_motion(_write(tmp_path / "m.csv", ROWS), JOINTS, 30.0)
    assert motion.root_pos[0].tolist() == [1.0, 2.0, 3.0]
    assert motion.root_quat[0].tolist() == [0.9, 0.1, 0.2, 0.3]
    assert motion.joint_pos[:, 1].tolist() == [20.0, 21.0, 22.0, 23.0]


def test_csv_columns_are_found_by_name(tmp_path):
    """Read a file with names in another order and a column that is not needed."""
    header = ["time", "knee", "hip", *ROOT_COLUMNS]
    rows = [[0.0, row[8], row[7], *row[:7]] for row in ROWS]
    motion = read_joint_motion(_write(tmp_path / "m.csv", rows, header), JOINTS, 30.0)
    assert motion.joint_pos[0].tolist() == [10.0, 20.0]
    assert motion.root_quat[0].tolist() == [0.9, 0.1, 0.2, 0.3]


def test_lines_are_counted_from_one_with_both_ends(tmp_path):
    """Read some of the lines; refuse a range that is not there."""
    path = _write(tmp_path / "m.csv", ROWS)
    motion = read_joint_motion(path, JOINTS, 30.0, (2, 3))
    assert motion.joint_pos[:, 0].tolist() == [11.0, 12.0]
    with pytest.raises(ValueError, match="not within 1 to 4"):
        read_joint_motion(path, JOINTS, 30.0, (2, 9))


@pytest.mark.parametrize(
    ("rows", "header", "message"),
    [
        ([row[:-1] for row in ROWS], None, "8 columns in line 1, but the robot needs 9.*hip, knee"),
        ([*ROWS, [*ROWS[0][:-1], "fast"]], None, "Line 5 .* not a number"),
        (ROWS, [*ROOT_COLUMNS, "hip", "elbow"], r"no columns \['knee'\]"),
        (ROWS[:1], None, "2 frames or more"),
        ([ROWS[0], [1, 2, 3, 0, 0, 0, 0, 1, 1]], None, "Frame 1 .* zero quaternion"),
        ([ROWS[0], [float("nan"), *ROWS[1][1:]]], None, "Frame 1 .* not finite"),
    ],
)
def test_a_wrong_csv_file_says_what_is_wrong(tmp_path, rows, header, message):
    """Read files with a mistake each."""
    with pytest.raises(ValueError, match=message):
        read_joint_motion(_write(tmp_path / "m.csv", rows, header), JOINTS, 30.0)


def test_a_file_of_bytes_is_no_recording(tmp_path):
    """Name the file that is no text."""
    path = tmp_path / "m.csv"
    path.write_bytes(b"\x00\xd8\xff")
    with pytest.raises(ValueError, match=r"m\.csv' is not a CSV file"):
        read_joint_motion(path, JOINTS, 30.0)


def test_an_npz_file_is_resampled(tmp_path, clip):
    """Read the clip back as a recording; its joints are as they were."""
    path = clip.save(tmp_path / "clip.npz")
    motion = read_joint_motion(path, clip.joint_names, fps=1.0)
    assert motion.fps == 50.0
    again = complete_motion(get_humanoid_cfg(), motion)
    np.testing.assert_allclose(again.joint_pos, clip.joint_pos, atol=1e-6)
    np.testing.assert_allclose(again.body_pos_w, clip.body_pos_w, atol=1e-5)
    with pytest.raises(ValueError, match="36 columns, but the robot needs 9"):
        read_joint_motion(path, JOINTS, 30.0)


def test_an_npz_file_is_ordered_by_its_names(tmp_path, clip):
    """Read joints and the root by name; refuse bodies of another order without names."""
    joints, bodies = np.arange(len(clip.joint_names))[::-1], np.arange(len(clip.body_names))[::-1]
    other = clip.in_order(clip.joint_names[::-1], clip.body_names[::-1])
    assert np.array_equal(other.joint_vel, clip.joint_vel[:, joints])
    assert np.array_equal(other.body_pos_w, clip.body_pos_w[:, bodies])
    path = other.save(tmp_path / "other.npz")
    assert Motion.load(path).body_names == clip.body_names[::-1]
    motion = read_joint_motion(path, clip.joint_names, 1.0, None, 0, clip.body_names)
    np.testing.assert_allclose(motion.joint_pos, clip.joint_pos, atol=1e-6)
    np.testing.assert_allclose(motion.root_pos, clip.body_pos_w[:, 0], atol=1e-6)
    check_recording(path, get_humanoid_cfg())
    nameless = replace(other, joint_names=(), body_names=()).save(tmp_path / "nameless.npz")
    with pytest.raises(ValueError, match=r"nameless.npz' are not where its joints put them"):
        check_recording(nameless, get_humanoid_cfg())
    arrays = ("body_pos_w", "body_quat_w", "body_lin_vel_w", "body_ang_vel_w")
    fewer = {name: getattr(clip, name)[:, 1:] for name in arrays}
    with pytest.raises(ValueError, match=r"has \d+ bodies, but the robot has"):
        check_recording(
            replace(clip, body_names=(), **fewer).save(tmp_path / "fewer.npz"), get_humanoid_cfg()
        )
    with pytest.raises(ValueError, match=r"has no joint \['tail'\], but"):
        clip.in_order(["tail"], clip.body_names)


def test_another_robot_s_recording_is_refused():
    """Give the humanoid two joints."""
    with pytest.raises(ValueError, match="2 joints, but the robot has 29 joints and a free base"):
        complete_motion(get_humanoid_cfg(), _turning(50.0, 1.0))
