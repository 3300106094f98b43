"""Timers: one rule for rounding errors."""

import pytest
import torch

from manyworlds.utils.clocks import count_down, steps_in


@pytest.mark.parametrize(
    ("duration", "dt", "steps"),
    [
        (1.0, 0.02, 50),
        (10.0, 0.02, 500),
        (20.0, 0.01, 2000),
        (60.0, 0.005, 12000),
        (0.3, 0.1, 3),
        (0.03, 0.02, 2),
        (0.995, 0.02, 50),
        (0.0, 0.02, 0),
    ],
)
def test_a_duration_takes_its_number_of_steps_rounded_up(duration, dt, steps):
    """Count as many steps with a timer as by a division: none too many by rounding errors."""
    assert steps_in(duration, dt) == steps
    left = torch.full((2,), duration)
    count = 1
    while not count_down(left, dt).all():
        count += 1
    assert count == max(steps, 1)


def test_timers_may_have_steps_of_their_own():
    """Advance each timer by its own step; one of zero stands still."""
    left = torch.tensor([1.0, 1.0, 1.0, 0.0])
    steps = torch.tensor([0.0, 0.4, 1.0, 0.0])
    assert count_down(left, steps).tolist() == [False, False, True, True]
    assert left.tolist() == pytest.approx([1.0, 0.6, 0.0, 0.0])
    assert count_down(left, 0.0).tolist() == [False, False, True, True]
