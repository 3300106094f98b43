"""Series of numbers after each step."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from manyworlds.lab.play import series
from manyworlds.lab.play.series import thin_out
from tests.lab.task.test_env_stepper import open_task


def test_a_series_has_each_step_from_its_first_reading(lab):
    """Read a joint, step, and read again: all states since the first reading are there."""
    lab.series.read(["elbow velocity"], 60.0)
    states = [lab.snapshot.qvel[1]]
    for _ in range(30):
        lab.loop.iterate_once()
        states.append(lab.snapshot.qvel[1])
    kept = lab.series.read(["elbow velocity"], 60.0)["elbow velocity"]
    np.testing.assert_array_equal(kept["values"][:, 0], states)
    assert kept["times"][-1] == lab.snapshot.time
    recent = lab.series.read(["elbow velocity"], 0.01)["elbow velocity"]
    assert recent["times"][0] >= lab.snapshot.time - 0.0101


def test_states_of_the_past_are_not_in_a_series(lab):
    """Go back on the timeline, and continue from there: what came later is cut."""
    lab.series.read(["elbow position"], 60.0)
    for _ in range(30):
        lab.loop.iterate_once()
    lab.timeline.seek(0.02)
    past = lab.snapshot.time
    lab.timeline.branch(play=True)
    lab.loop.iterate_once()
    times = lab.series.read(["elbow position"], 60.0)["elbow position"]["times"]
    assert times[-1] == lab.snapshot.time == pytest.approx(past + lab.model.opt.timestep)
    assert (np.diff(times) > 0.0).all()


def test_contacts_are_quantities(lab):
    """Let a ball fall: the force on it is that of MuJoCo's contacts."""
    names = ["number of contacts", "ball contact force"]
    lab.series.read(names, 60.0)
    for _ in range(400):
        lab.loop.iterate_once()
    series = lab.series.read(names, 60.0)
    data = lab.loop.data
    force = np.zeros(6)
    total = 0.0
    ball = lab.model.body("ball").id
    for contact in range(data.ncon):
        if ball in lab.model.geom_bodyid[data.contact[contact].geom]:
            mujoco.mj_contactForce(lab.model, data, contact, force)
            total += force[0]
    assert total > 0.0
    assert series["ball contact force"]["values"][-1, 0] == pytest.approx(total)
    assert series["number of contacts"]["values"][-1, 0] == data.ncon


def test_an_unknown_quantity_is_refused(lab):
    """Ask for a wrong name: the error names one that is near."""
    with pytest.raises(KeyError, match="elbow position"):
        lab.series.read(["elbow positon"], 1.0)


def test_series_are_bounded(lab, monkeypatch):
    """Refuse to keep more quantities than the most, so that programs do not slow the steps."""
    monkeypatch.setattr(series, "_MOST_SERIES", 2)
    lab.series.read(["elbow position", "elbow velocity"], 60.0)
    lab.series.read(["elbow position"], 60.0)
    with pytest.raises(ValueError, match="2 quantities are kept after each step"):
        lab.series.read(["number of contacts"], 60.0)


def test_thinning_keeps_extremes():
    """Thin out a long series with one peak: the peak stays, and times ascend."""
    values = np.zeros((10_000, 1))
    values[4321] = 5.0
    times, thin = thin_out(np.arange(10_000.0), values, 100)
    assert len(times) <= 100 and thin.max() == 5.0 and (np.diff(times) >= 0).all()
    same, _ = thin_out(np.arange(50.0), values[:50], 100)
    assert len(same) == 50


def test_rewards_are_quantities():
    """Plot the reward of a task and its terms: they are those of the last control step."""
    lab = open_task()
    names = [name for name in lab.series.quantities() if name.startswith("reward")]
    assert len(names) > 1
    lab.series.read(names, 60.0)
    lab.step(40)
    series = lab.series.read(names, 60.0)
    assert lab.environment is not None
    report = lab.environment.report
    assert series["reward"]["values"][-1, 0] == report.total
    for term, value in report.rewards.items():
        assert series[f"reward of {term}"]["values"][-1, 0] == value
    lab.stop()
