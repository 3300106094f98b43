"""Actuators in groups, against the same actuators one by one."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from manyworlds.actuator import (
    Actuator,
    ActuatorCfg,
    BuiltinDcMotorActuatorCfg,
    BuiltinMotorActuatorCfg,
    BuiltinPdActuatorCfg,
    BuiltinPositionActuatorCfg,
    DcMotorActuatorCfg,
    DcMotorInputMode,
    DcMotorPhysicalParams,
    DriveState,
    DriveTargets,
    IdealPdActuator,
    IdealPdActuatorCfg,
    TransmissionType,
    XmlActuatorCfg,
)
from manyworlds.entity import Entity
from manyworlds.signals import DelayBuffer
from manyworlds.utils.world_random import WorldRandom
from tests.actuator.robots import make, shake

PD = {"stiffness": 20.0, "damping": 1.0}
TENDON = TransmissionType.TENDON
LATE = {"delay_min_lag": 1, "delay_max_lag": 3, "delay_hold_prob": 1.0}


def _ideal(target: str, **kwargs) -> IdealPdActuatorCfg:
    return IdealPdActuatorCfg(target_names_expr=(target,), **PD | kwargs)


def _dc(target: str, **kwargs) -> DcMotorActuatorCfg:
    return DcMotorActuatorCfg(
        target_names_expr=(target,),
        effort_limit=5.0,
        saturation_effort=6.0,
        velocity_limit=9.0,
        **PD | kwargs,
    )


def _motor(target: str, kind: TransmissionType, **kwargs) -> BuiltinMotorActuatorCfg:
    return BuiltinMotorActuatorCfg(
        target_names_expr=(target,), transmission_type=kind, effort_limit=9.0, **kwargs
    )


JOINT, SITE = TransmissionType.JOINT, TransmissionType.SITE
ROBOTS: dict[str, tuple[ActuatorCfg, ...]] = {
    "three ideal": (_ideal(".*_hip"), _ideal("a_knee", stiffness=3.0), _ideal("b_knee")),
    "explicit, late, tendon, site": (
        _ideal("a_hip", **LATE),
        _ideal("b_hip", stiffness=7.0, **LATE),
        _dc("a_knee"),
        _dc("b_knee", stiffness=2.0),
        _ideal("both_knees", transmission_type=TENDON),
        _motor("thruster", SITE, **LATE),
        _motor("foot_a", SITE, gear=2.0),
    ),
    "built in, out of order": (
        BuiltinPositionActuatorCfg(target_names_expr=("b_knee",), **PD),
        BuiltinPdActuatorCfg(target_names_expr=("a_hip", "a_knee"), **PD),
        BuiltinPositionActuatorCfg(target_names_expr=("b_hip",), **PD, **LATE),
        BuiltinPdActuatorCfg(target_names_expr=("both_knees",), transmission_type=TENDON, **PD),
        _motor("foot_b", SITE),
        BuiltinDcMotorActuatorCfg(
            target_names_expr=("a_hip",),
            motor_params=DcMotorPhysicalParams(kt=1.0, ke=1.0, resistance=1.0),
            mode=DcMotorInputMode.VOLTAGE,
            **LATE,
        ),
        XmlActuatorCfg(target_names_expr=(".*_knee",), **LATE),
        _motor("a_knee", JOINT, gear=4.0),
    ),
}


def _one_by_one(entity: Entity, ctrl: torch.Tensor) -> None:
    for actuator in entity.actuators:
        cmd = actuator.apply_delay(actuator.get_command(entity.data))
        ctrl[:, actuator.global_ctrl_ids] = actuator.compute(cmd)


def _ungroup(entity: Entity) -> None:
    """Give every actuator a delay of its own, with the lag that it has."""
    for actuator in entity.actuators:
        if actuator.delay_buffer is None:
            continue
        lags = actuator.delay_buffer.current_lags
        actuator.share_delay(actuator.cfg.make_delay_buffer(3, "cpu"), first=True)
        actuator.set_lags(lags)


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("sort", [False, True])
def test_groups_compute_what_their_members_compute(name: str, sort: bool):
    """Write bit for bit the controls of each actuator run alone, over some steps and a reset."""
    xml = '<motor joint="b_knee" gear="2"/>' if name.startswith("built") else ""
    entity, sim = make(*ROBOTS[name], xml=xml, sort_actuators=sort)
    alone, _ = make(*ROBOTS[name], xml=xml, sort_actuators=sort)
    for mine, theirs in zip(entity.actuators, alone.actuators, strict=True):
        if mine.delay_buffer is not None:
            mine.set_lags(torch.tensor([1, 2, 3]))
            theirs.set_lags(torch.tensor([1, 2, 3]))
    _ungroup(alone)
    kp = torch.rand(3, 1) * 50.0
    for robot in (entity, alone):
        robot.actuators[0].set_gains(None, kp=kp.expand(3, len(robot.actuators[0].target_ids)))
    for step in range(6):
        shake(entity, sim, step)
        expected = torch.full_like(sim.data.ctrl, torch.nan)
        alone.data.data.qpos.copy_(sim.data.qpos)
        alone.data.data.qvel.copy_(sim.data.qvel)
        alone.data.data.ten_length.copy_(sim.data.ten_length)
        alone.data.data.ten_velocity.copy_(sim.data.ten_velocity)
        for field in ("joint_pos", "joint_vel", "joint_effort", "tendon_len", "tendon_vel"):
            target = f"{field}_target"
            getattr(alone.data, target).copy_(getattr(entity.data, target))
        alone.data.tendon_effort_target.copy_(entity.data.tendon_effort_target)
        alone.data.site_effort_target.copy_(entity.data.site_effort_target)
        sim.data.ctrl.fill_(torch.nan)
        entity.write_data_to_sim()
        _one_by_one(alone, expected)
        assert torch.equal(sim.data.ctrl, expected)


def test_equal_actuators_are_one_group():
    """Put what differs only in numbers together, and what differs in kind apart."""
    groups = make(*ROBOTS["explicit, late, tendon, site"])[0]._actuator_groups
    assert [len(group._members) for group in groups.fused_group._groups] == [2, 2, 1]
    assert len(groups.builtin_group._groups) == 1
    assert len(groups.builtin_group._delayed_groups) == 1
    assert groups.custom == ()


def test_a_group_costs_one_law_however_many_actuators_it_has():
    """Count tensor operations: as many for three groups of joints as for one."""
    counts = []
    for cfgs in ((_ideal(".*_(hip|knee)"),), ROBOTS["three ideal"]):
        entity, _ = make(*cfgs)
        entity.write_data_to_sim()
        counts.append(_count_operations(entity))
    one, three = counts
    # The order of joints in the groups asks for gathers of three targets and of the state.
    assert one <= 7 and three <= 12


def test_copies_are_one_operation_where_columns_are_contiguous():
    """Copy interleaved groups of joints at once, without gathering anything."""
    cfgs = [
        BuiltinPositionActuatorCfg(target_names_expr=(part,), **PD)
        for part in (".*_knee", ".*_hip")
    ]
    entity, _ = make(*cfgs, sort_actuators=True)
    entity.write_data_to_sim()
    assert _count_operations(entity) == 1


def _count_operations(entity: Entity) -> int:
    """Count the tensor operations, views left out, that writing the controls takes."""

    class Count(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            views = ("slice", "split", "view", "alias", "expand", "detach")
            if not any(func.__name__.startswith(view) for view in views):
                Count.count += 1
            return func(*args, **(kwargs or {}))

    with Count():
        entity.write_data_to_sim()
    return Count.count


def test_gains_set_on_one_actuator_reach_the_group():
    """Write through from an actuator's parameters to those that the law reads."""
    entity, sim = make(*ROBOTS["three ideal"])
    entity.data.joint_pos_target[:] = 1.0
    hips, knee, _ = entity.actuators
    knee.set_gains([1], kp=50.0)
    hips.stiffness[2] = 11.0
    entity.write_data_to_sim()
    ctrl = dict(zip(entity.actuator_names, sim.data.ctrl.T.tolist(), strict=True))
    assert ctrl["a_knee"] == [3.0, 50.0, 3.0]
    assert ctrl["b_hip"] == [20.0, 20.0, 11.0]


class _Constant(IdealPdActuator):
    """Is computed alone, because it changes `compute`."""

    def compute(self, cmd):
        return torch.full_like(cmd.pos, 0.25)


class _ConstantCfg(IdealPdActuatorCfg):
    def build(self, entity, target_ids, target_names) -> Actuator:
        return _Constant(self, entity, target_ids, target_names)


def test_actuators_of_a_kind_of_their_own_run_alone():
    """Leave what changes the computation out of the groups."""
    custom = _ConstantCfg(target_names_expr=("a_hip",), **PD)
    entity, sim = make(_ideal(".*_knee"), custom)
    assert [type(each) for each in entity._actuator_groups.custom] == [_Constant]
    entity.write_data_to_sim()
    assert sim.data.ctrl[:, 2].tolist() == [0.25] * 3


@pytest.mark.parametrize("name", ROBOTS)
def test_a_run_resumes_bit_for_bit(name: str):
    """Save in the middle, go on, restore into another robot, and go on the same way."""
    xml = '<motor joint="b_knee" gear="2"/>' if name.startswith("built") else ""
    cfgs = tuple(
        replace(cfg, delay_hold_prob=0.3) if cfg.delay_max_lag else cfg for cfg in ROBOTS[name]
    )

    def play(entity: Entity, sim, steps: range) -> None:
        for step in steps:
            generator = torch.Generator().manual_seed(step)
            for target in ("joint_pos_target", "joint_effort_target", "site_effort_target"):
                values = getattr(entity.data, target)
                values.copy_(torch.rand(values.shape, generator=generator))
            if step == 7:
                entity.reset(torch.tensor([1]))
            entity.write_data_to_sim()
            sim.step()

    entity, sim = make(*cfgs, xml=xml)
    random = WorldRandom(3, "cpu", seed=1)
    entity.draw_from(random, "robot")
    gains = torch.rand(3, 1) * 9.0
    entity.actuators[0].set_gains(None, kp=gains)
    play(entity, sim, range(5))
    saved = entity.state_dict(), sim.state_dict(), random.state_dict()
    play(entity, sim, range(5, 10))
    other, other_sim = make(*cfgs, xml=xml)
    other_random = WorldRandom(3, "cpu", seed=2)
    other.draw_from(other_random, "robot")
    other.load_state_dict(saved[0])
    other_sim.load_state_dict(saved[1])
    other_random.load_state_dict(saved[2])
    play(other, other_sim, range(5, 10))
    assert torch.equal(sim.data.qpos, other_sim.data.qpos)
    assert torch.equal(sim.data.ctrl, other_sim.data.ctrl)
    assert torch.equal(entity.actuators[0].stiffness, other.actuators[0].stiffness)


def _to_meta(thing: Any) -> Any:
    """Replace all tensors that groups hold by ones that have no values."""
    if isinstance(thing, torch.Tensor):
        return thing.to("meta")
    if isinstance(thing, list | tuple):
        return type(thing)(_to_meta(item) for item in thing)
    if isinstance(thing, dict):
        return {key: _to_meta(item) for key, item in thing.items()}
    if isinstance(thing, DelayBuffer):
        return DelayBuffer(thing.min_lag, thing.max_lag, 3, "meta")
    if type(thing).__name__ in (
        *("ActuatorGroups", "BuiltinActuatorGroup", "FusedActuatorGroup"),
        *("_CopyGroup", "_FusedGroup"),
    ):
        for name, value in vars(thing).items():
            setattr(thing, name, _to_meta(value))
    return thing


@pytest.mark.parametrize("name", ROBOTS)
def test_controls_are_written_without_waiting_for_a_device(name: str):
    """Run on tensors without values: reading one, or mixing in a host tensor, would raise."""
    xml = '<motor joint="b_knee" gear="2"/>' if name.startswith("built") else ""
    entity, sim = make(*ROBOTS[name], xml=xml)
    groups = _to_meta(entity._actuator_groups)
    data = SimpleNamespace(
        drive_targets=lambda kind: DriveTargets(*map(_to_meta, entity.data.drive_targets(kind))),
        drive_state=lambda kind: DriveState(*map(_to_meta, entity.data.drive_state(kind))),
        data=SimpleNamespace(ctrl=_to_meta(sim.data.ctrl)),
    )
    for _ in range(3):
        groups.apply_controls(data)
