"""Targets that arrive late, against lists of what was commanded."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manyworlds.actuator import (
    ActuatorCfg,
    BuiltinMotorActuatorCfg,
    BuiltinPdActuatorCfg,
    BuiltinPositionActuatorCfg,
    DelayedActuator,
    DelayedActuatorCfg,
    IdealPdActuatorCfg,
    TransmissionType,
)
from tests.actuator.robots import make

ALL = (".*_(hip|knee)",)
POSITION = BuiltinPositionActuatorCfg(target_names_expr=ALL, stiffness=8.0, damping=0.5)
PD = BuiltinPdActuatorCfg(target_names_expr=ALL, stiffness=8.0, damping=0.5)
IDEAL = IdealPdActuatorCfg(target_names_expr=ALL, stiffness=0.0, damping=0.0)
HELD = {"delay_hold_prob": 1.0}


def _play(entity, sim, steps: int, resets: dict[int, list[int]], seed: int = 0):
    """Command numbers that tell step and joint; compare each control with a list of commands."""
    generator = torch.Generator().manual_seed(seed)
    given: list[list[torch.Tensor]] = [[] for _ in range(3)]
    for step in range(steps):
        if step in resets:
            entity.reset(torch.tensor(resets[step]))
        target = torch.rand(3, 4, generator=generator)
        entity.set_joint_position_target(target)
        entity.set_joint_velocity_target(target + 10.0)
        entity.set_joint_effort_target(target + 20.0)
        for world, history in enumerate(given):
            if world in resets.get(step, []):
                history.clear()
            history.append(target[world])
        entity.write_data_to_sim()
        lags = entity.actuators[0].delay_buffer.current_lags.tolist()
        late = [
            history[max(-1 - lag, -len(history))] for history, lag in zip(given, lags, strict=True)
        ]
        yield torch.stack(late), lags


@settings(max_examples=15)
@given(
    low=st.integers(0, 3),
    more=st.integers(0, 3),
    hold=st.sampled_from([0.0, 0.5, 1.0]),
    period=st.integers(0, 3),
    seed=st.integers(0, 100),
)
def test_controls_are_the_targets_of_some_steps_ago(low, more, hold, period, seed):
    """Delay all targets of an actuator by the lag that its world has."""
    if low + more == 0:
        more = 1
    torch.manual_seed(seed)
    cfg = replace(
        PD,
        delay_min_lag=low,
        delay_max_lag=low + more,
        delay_hold_prob=hold,
        delay_update_period=period,
    )
    entity, sim = make(cfg)
    assert entity.needs_substeps
    for late, lags in _play(entity, sim, 12, {5: [1], 6: [0, 2]}, seed):
        assert all(low <= lag <= low + more for lag in lags)
        assert torch.equal(sim.data.ctrl, torch.cat([late, late + 10.0], dim=1))


@pytest.mark.parametrize("base", [POSITION, IDEAL])
def test_wrapper_and_fields_are_one(base: ActuatorCfg):
    """Get from `DelayedActuatorCfg` what the delay fields give."""
    delay = {"delay_min_lag": 2, "delay_max_lag": 2}
    wrapped, sim = make(DelayedActuatorCfg(base_cfg=base, **delay))
    (actuator,) = wrapped.actuators
    assert type(actuator) is type(make(base)[0].actuators[0])
    assert isinstance(actuator, DelayedActuator) and actuator.has_delay
    assert not isinstance(make(base)[0].actuators[0], DelayedActuator)
    offset = 20.0 if base is IDEAL else 0.0
    for late, _ in _play(wrapped, sim, 5, {}):
        torch.testing.assert_close(sim.data.ctrl, late + offset)
    assert base.delay_max_lag == 0


def test_only_chosen_targets_are_late():
    """Delay positions, and let velocities and efforts pass."""
    cfg = DelayedActuatorCfg(base_cfg=PD, delay_min_lag=1, delay_max_lag=1, delay_target="position")
    entity, sim = make(cfg)
    for late, _ in _play(entity, sim, 4, {}):
        now = entity.data.joint_vel_target
        assert torch.equal(sim.data.ctrl, torch.cat([late, now], dim=1))


def test_a_delay_is_given_once():
    """Refuse to wrap what has a delay."""
    with pytest.raises(ValueError, match="give the delay in one place"):
        DelayedActuatorCfg(base_cfg=replace(POSITION, delay_max_lag=1), delay_max_lag=2)


def test_lags_may_be_set_within_their_range():
    """Clamp lags, set those of the worlds named, and keep them if held."""
    cfg = replace(POSITION, delay_min_lag=1, delay_max_lag=3, **HELD)
    entity, sim = make(cfg)
    (actuator,) = entity.actuators
    actuator.set_lags(torch.tensor([0, 2, 9]))
    for _, lags in _play(entity, sim, 4, {}):
        assert lags == [1, 2, 3]
    actuator.set_lags(torch.tensor([1]), torch.tensor([2]))
    assert actuator.delay_buffer.current_lags.tolist() == [1, 2, 1]
    with pytest.raises(ValueError, match="has no delay: set delay_max_lag"):
        make(POSITION)[0].actuators[0].set_lags(torch.tensor([1, 1, 1]))


def test_actuators_with_equal_delays_share_one():
    """Set the lag of one group of joints, and have the others follow."""
    delay = {"delay_max_lag": 4, **HELD}
    cfgs = [
        BuiltinMotorActuatorCfg(target_names_expr=(part,), effort_limit=9.0, gear=gear, **delay)
        for part, gear in (("a_(hip|knee)", 1.0), ("b_(hip|knee)", 2.0))
    ]
    cfgs.append(
        BuiltinMotorActuatorCfg(
            target_names_expr=("thruster",),
            transmission_type=TransmissionType.SITE,
            effort_limit=9.0,
            **delay,
        )
    )
    entity, sim = make(*cfgs)
    a, b, thruster = entity.actuators
    assert a.delay_buffer is b.delay_buffer is not thruster.delay_buffer
    b.set_lags(torch.tensor([0, 1, 3]))
    for late, lags in _play(entity, sim, 5, {}):
        assert lags == [0, 1, 3]
        expected = late + 20.0
        torch.testing.assert_close(sim.data.ctrl[:, :4], expected)
