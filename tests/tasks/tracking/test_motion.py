"""Motion files: what comes back, and what is refused."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from manyworlds.tasks.tracking.motion import Motion

ARRAYS = {
    "joint_pos": np.zeros((5, 2)),
    "joint_vel": np.zeros((5, 2)),
    "body_pos_w": np.zeros((5, 3, 3)),
    "body_quat_w": np.tile([1.0, 0.0, 0.0, 0.0], (5, 3, 1)),
    "body_lin_vel_w": np.zeros((5, 3, 3)),
    "body_ang_vel_w": np.zeros((5, 3, 3)),
}


def test_save_and_load_bring_back_the_same(tmp_path, clip):
    """Write the clip and read it."""
    loaded = Motion.load(clip.save(tmp_path / "clip.npz"))
    for name in (*ARRAYS, "fps", "joint_names", "body_names"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(clip, name))
    assert loaded.duration == pytest.approx(8.0)


def test_load_takes_files_of_other_tools(tmp_path):
    """Read a file with `fps` as a list and without names, as mjlab's converter writes it."""
    np.savez(tmp_path / "motion.npz", fps=[50], **ARRAYS)
    motion = Motion.load(tmp_path / "motion.npz")
    assert (motion.fps, motion.num_frames, motion.joint_names) == (50, 5, ())
    assert Motion.load(tmp_path / "motion.npz", default_fps=30.0).fps == 50


def test_a_frame_rate_can_be_assumed(tmp_path):
    """Take the given frame rate for a file that states none."""
    np.savez(tmp_path / "motion.npz", **ARRAYS)
    assert Motion.load(tmp_path / "motion.npz", default_fps=30.0).fps == 30.0


@pytest.mark.parametrize("key", ["fps", *ARRAYS])
def test_a_missing_key_is_named(tmp_path, key):
    """Leave out one array; read which, its shape, and what makes such files."""
    arrays = {"fps": np.array([50.0]), **ARRAYS}
    del arrays[key]
    np.savez(tmp_path / "motion.npz", **arrays)
    with pytest.raises(ValueError, match=rf"has no '{key}' \(.*motion convert"):
        Motion.load(tmp_path / "motion.npz")


@pytest.mark.parametrize(
    ("key", "array", "expected"),
    [
        ("joint_vel", np.zeros((5, 3)), r"shape \(5, 3\), expected \(5, 2\)"),
        ("joint_pos", np.zeros((1, 2)), "2 frames or more"),
        ("body_pos_w", np.zeros((5, 9)), r"shape \(5, 9\), expected \(5, bodies, 3\)"),
        ("body_quat_w", np.zeros((5, 4, 4)), "shape|length"),
        ("body_quat_w", np.full((5, 3, 4), 2.0), "unit quaternions, scalar first"),
        ("body_ang_vel_w", np.full((5, 3, 3), np.nan), "not finite in frame 0"),
        ("fps", np.array([0.0]), "must be above 0"),
        ("fps", np.array([50.0, 60.0]), "expected one number"),
    ],
)
def test_a_wrong_array_is_named(tmp_path, key, array, expected):
    """Replace one array; read its name, its shape and the shape expected."""
    np.savez(tmp_path / "motion.npz", **{"fps": np.array([50.0]), **ARRAYS, key: array})
    with pytest.raises(ValueError, match=rf"'(fps|joint_vel|{key})' of .*{expected}"):
        Motion.load(tmp_path / "motion.npz")


class _Trap:
    """Raises when it is unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("a pickle was executed",))


def test_pickles_are_never_executed(tmp_path):
    """Hide a program in an array, and in the whole file."""
    trap = np.empty(1, dtype=object)
    trap[0] = _Trap()
    path = tmp_path / "motion.npz"
    np.savez(path, **{"fps": np.array([50.0]), **ARRAYS, "joint_pos": trap})
    with pytest.raises(ValueError, match="'joint_pos' of the motion file .* cannot be read"):
        Motion.load(path)
    path.write_bytes(pickle.dumps(_Trap()))
    with pytest.raises(ValueError, match="is not an NPZ file"):
        Motion.load(path)


def test_a_missing_file_is_named(tmp_path):
    """Ask for a file that is not there."""
    with pytest.raises(FileNotFoundError, match="nowhere.npz"):
        Motion.load(tmp_path / "nowhere.npz")


def test_frames_must_agree(clip):
    """Cut one array short."""
    with pytest.raises(ValueError, match="'joint_vel' of the clip"):
        replace(clip, joint_vel=clip.joint_vel[:-1])
