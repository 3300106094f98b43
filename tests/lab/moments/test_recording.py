"""Recordings: moments between frames."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nst

from manyworlds.lab.moments.recording import Recording, joint_names, state_index
from manyworlds.lab.world.world import STATE

quaternions = nst.arrays(float, 4, elements=st.floats(-1.0, 1.0))


@settings(max_examples=60)
@given(quaternions, quaternions, st.floats(0.0, 1.0))
def test_quaternions_stay_of_unit_length(first, second, alpha):
    """Sample between any two rotations: of unit length, on the shortest arc, at constant speed."""
    assume(np.linalg.norm(first) > 0.1 and np.linalg.norm(second) > 0.1)
    values = np.array([first, second])
    recording = Recording(np.array([3.0, 4.0]), values, {"qpos": {"ball": (0, 4)}})
    quat = recording.sample(alpha)
    assert np.linalg.norm(quat) == pytest.approx(1.0, abs=1e-12)
    a, b = (q / np.linalg.norm(q) for q in values)
    whole = 2.0 * np.arccos(min(1.0, abs(a @ b)))
    part = 2.0 * np.arccos(min(1.0, abs(a @ quat)))
    assert part == pytest.approx(alpha * whole, abs=1e-6)


def test_slow_recordings_play_smoothly():
    """Sample sixty frames a second a thousand times a second: even steps of angle and way."""
    times = np.arange(61) / 60.0
    angle = 3.0 * times
    quats = np.column_stack([np.cos(angle / 2), 0 * angle, 0 * angle, np.sin(angle / 2)])
    values = np.column_stack([2.0 * times, 0 * times, 0 * times, quats, 5.0 * times])
    index = {"qpos": {"root": (0, 7), "hip": (7, 1)}}
    recording = Recording(times, values, index)
    rows = np.array([recording.sample(k / 1000.0) for k in range(1000)])
    turned = np.unwrap(2.0 * np.arctan2(rows[:, 6], rows[:, 3]))
    assert np.diff(turned) == pytest.approx(0.003, abs=1e-5)
    assert np.diff(rows[:, 0]) == pytest.approx(0.002, abs=1e-5)
    assert np.diff(rows[:, 7]) == pytest.approx(0.005, abs=1e-5)


def test_frames_are_exact_at_their_times():
    """Sample at the clock of each frame, whatever the first time was, and outside."""
    rng = np.random.default_rng(0)
    times = 1e3 / 7.0 + np.cumsum(rng.uniform(1e-3, 1e-2, 200))
    values = rng.normal(size=(200, 3))
    recording = Recording(times, values, {"qpos": {"a": (0, 1)}})
    for frame, time in enumerate(recording.clock):
        assert np.array_equal(recording.sample(time), values[frame])
    assert np.array_equal(recording.sample(-1.0), values[0])
    assert np.array_equal(recording.sample(1e9), values[-1])


def test_the_camera_turns_the_shorter_way():
    """Look from 350 to 10 degrees: over zero."""
    values = np.array([[0.0, 0, 0, 0, 350, 0], [1.0, 0, 0, 0, 10, 0]])
    recording = Recording(np.array([0.0, 1.0]), values, {"camera": {"camera": (0, 6)}})
    assert recording.sample(0.5)[[0, 4]] == pytest.approx([0.5, 360.0])
    assert recording.sample(1.0)[4] == 10.0


def test_the_index_finds_the_fields_in_a_state(world):
    """Look each element up in a state vector of distinct numbers."""
    model, data = world.model, mujoco.MjData(world.model)
    state = np.arange(mujoco.mj_stateSize(model, STATE), dtype=float)
    state[mujoco.mj_stateSize(model, STATE & (int(mujoco.mjtState.mjSTATE_EQ_ACTIVE) - 1)) :] += 0.5
    mujoco.mj_setState(model, data, state, STATE)
    index = state_index(model)
    assert joint_names(model) == ["shoulder", "elbow", "ball:0"]
    for field, adr in (("qpos", model.jnt_qposadr), ("qvel", model.jnt_dofadr)):
        for joint, (start, width) in enumerate(index[field].values()):
            source = getattr(data, field)[adr[joint] :][:width]
            assert np.array_equal(state[start : start + width], source)
    for field, name in (("ctrl", "elbow"), ("mocap_pos", "post"), ("mocap_quat", "post")):
        start, width = index[field][name]
        assert np.array_equal(state[start : start + width], getattr(data, field)[-1].ravel())
