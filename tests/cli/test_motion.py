"""`manyworlds motion`: recordings and clips become files."""

from __future__ import annotations

import numpy as np
import pytest

from manyworlds.cli.main import main
from manyworlds.tasks.tracking.motion import Motion

TASK = "Tracking-Flat-Humanoid"


def test_clips_and_recordings_become_motions(tmp_path, capsys):
    """Write the clip, take half of its frames as a recording, and convert that back."""
    path = tmp_path / "clip.npz"
    assert main(["motion", "clip", str(path), "--task", TASK]) == 0
    assert "401 frames at 50 per second, 29 joints, 30 bodies" in capsys.readouterr().out
    clip = Motion.load(path)
    root = [clip.body_pos_w[:, 0], np.roll(clip.body_quat_w[:, 0], -1, axis=1)]
    rows = np.concatenate([*root, clip.joint_pos], axis=1)[::2]
    recording = tmp_path / "recording.csv"
    np.savetxt(recording, rows, delimiter=",")
    assert main(["motion", "convert", str(recording), "--task", TASK, "--fps", "25"]) == 0
    converted = Motion.load(tmp_path / "recording.npz")
    assert (converted.fps, converted.num_frames) == (50.0, 401)
    np.testing.assert_allclose(converted.body_pos_w, clip.body_pos_w, atol=2e-3)
    np.testing.assert_allclose(converted.joint_vel, clip.joint_vel, atol=0.1)
    assert converted.joint_names == clip.joint_names


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["convert", "nowhere.csv", "--task", TASK], "There is no motion file 'nowhere.csv'"),
        (["convert", "here.npz", "--task", TASK], "name --output"),
        (["clip", "out.npz", "--task", "Cartpole-Balance"], "tracks no motion"),
    ],
)
def test_mistakes_are_told_in_one_line(arguments, message, capsys):
    """Ask for what cannot be."""
    assert main(["motion", *arguments]) == 1
    assert message in capsys.readouterr().err
