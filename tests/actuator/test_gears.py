"""Gears: a joint follows its targets, and feels `gear` times the actuator's limited effort."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.actuator import (
    ActuatorCfg,
    BuiltinDcMotorActuatorCfg,
    BuiltinMotorActuatorCfg,
    BuiltinMuscleActuatorCfg,
    BuiltinPdActuatorCfg,
    BuiltinPositionActuatorCfg,
    BuiltinVelocityActuatorCfg,
    DcMotorActuatorCfg,
    DcMotorInputMode,
    DcMotorPhysicalParams,
    DelayedActuatorCfg,
    IdealPdActuatorCfg,
    LearnedMlpActuatorCfg,
    TransmissionType,
    XmlActuatorCfg,
)
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from tests.actuator.robots import JOINTS, Engine, make, shake, simulate
from tests.robots import robot_file

ALL = (".*_(hip|knee)",)
MOTOR = DcMotorPhysicalParams(kt=0.5, ke=0.5, resistance=2.0)
TENDON, SITE = TransmissionType.TENDON, TransmissionType.SITE
GAINS: dict[str, Any] = {"target_names_expr": ALL, "stiffness": 8.0, "damping": 0.5}
ENGINES = pytest.mark.parametrize("engine", ["native", "warp"])


def _xml(element: str) -> str:
    return "".join(element.format(f'joint="{joint}"') for joint in JOINTS)


# Kind -> configuration, gear, actuators of the XML file, and the effort before the gear, from the
# actuator's own position and velocity (behind the gear, they are those of the joint) and targets.
Law = Callable[..., torch.Tensor]
JOINT_KINDS: dict[str, tuple[ActuatorCfg, float, str, Law]] = {
    "motor": (
        BuiltinMotorActuatorCfg(target_names_expr=ALL, effort_limit=0.6, gear=3.0),
        *(3.0, "", lambda q, v, p, w, e: e.clip(-0.6, 0.6)),
    ),
    "motor turned around": (
        BuiltinMotorActuatorCfg(target_names_expr=ALL, effort_limit=0.6, gear=-0.5),
        *(-0.5, "", lambda q, v, p, w, e: e.clip(-0.6, 0.6)),
    ),
    "late motor": (
        DelayedActuatorCfg(
            base_cfg=BuiltinMotorActuatorCfg(target_names_expr=ALL, effort_limit=0.6, gear=3.0),
            delay_max_lag=2,
        ),
        # The first target after a reset fills what is on its way.
        *(3.0, "", lambda q, v, p, w, e: e.clip(-0.6, 0.6)),
    ),
    "dc motor, voltage": (
        BuiltinDcMotorActuatorCfg(
            target_names_expr=ALL,
            motor_params=MOTOR,
            mode=DcMotorInputMode.VOLTAGE,
            gear=3.0,
            effort_limit=0.1,
        ),
        *(3.0, "", lambda q, v, p, w, e: (0.25 * (e - 0.5 * v)).clip(-0.1, 0.1)),
    ),
    "dc motor, position": (
        BuiltinDcMotorActuatorCfg(**GAINS, motor_params=MOTOR, voltage_limit=1e3, gear=-2.0),
        *(-2.0, "", lambda q, v, p, w, e: 8.0 * (p - q) - 0.5 * v),
    ),
    "dc motor, velocity": (
        BuiltinDcMotorActuatorCfg(
            target_names_expr=ALL,
            motor_params=MOTOR,
            mode=DcMotorInputMode.VELOCITY,
            damping=0.3,
            voltage_limit=1e3,
            gear=2.0,
        ),
        *(2.0, "", lambda q, v, p, w, e: 0.3 * (w - v)),
    ),
    "motor of the file": (
        XmlActuatorCfg(target_names_expr=ALL),
        *(3.0, _xml('<motor {} gear="3" forcerange="-.6 .6"/>')),
        lambda q, v, p, w, e: e.clip(-0.6, 0.6),
    ),
    "position of the file": (
        XmlActuatorCfg(target_names_expr=ALL),
        *(-2.0, _xml('<position {} gear="-2" kp="8" kv=".5" forcerange="-5 5"/>')),
        lambda q, v, p, w, e: (8.0 * (p - q) - 0.5 * v).clip(-5.0, 5.0),
    ),
    "velocity of the file": (
        XmlActuatorCfg(target_names_expr=ALL),
        *(0.5, _xml('<velocity {} gear=".5" kv="3"/>')),
        lambda q, v, p, w, e: 3.0 * (w - v),
    ),
}


def _check_against_mujoco(sim: Any, atol: float) -> None:
    """Compare the forces of every world with plain MuJoCo's for the same state and controls."""
    data = mujoco.MjData(sim.mj_model)
    for world in range(len(sim.data.qpos)):
        for field in ("qpos", "qvel", "act", "ctrl"):
            getattr(data, field)[:] = getattr(sim.data, field)[world].numpy()
        mujoco.mj_forward(sim.mj_model, data)
        assert np.abs(data.qfrc_actuator).max() > 0.0
        for field in ("actuator_force", "qfrc_actuator"):
            ours = getattr(sim.data, field)[world].numpy()
            np.testing.assert_allclose(ours, getattr(data, field), rtol=1e-5, atol=atol)


@pytest.mark.slow_on_warp
@ENGINES
@pytest.mark.parametrize("kind", JOINT_KINDS)
def test_joints_feel_gear_times_the_actuators_effort(kind: str, engine: Engine):
    """Send targets of the joint, bound the effort before the gear, and turn it by the gear."""
    cfg, gear, xml, law = JOINT_KINDS[kind]
    entity, sim = make(cfg, xml=xml, engine=engine)
    shake(entity, sim)
    data = entity.data
    entity.write_data_to_sim()
    sim.forward()
    (actuator,) = entity.actuators
    (field,) = actuator.command_fields
    short = {"position": "pos", "velocity": "vel", "effort": "effort"}[field]
    factor = 1.0 if field == "effort" else gear
    assert torch.equal(sim.data.ctrl, factor * getattr(data, f"joint_{short}_target"))
    expected = law(
        gear * data.joint_pos,
        gear * data.joint_vel,
        gear * data.joint_pos_target,
        gear * data.joint_vel_target,
        data.joint_effort_target,
    )
    close = {"rtol": 1e-4, "atol": 1e-5}
    torch.testing.assert_close(data.actuator_force, expected, **close)
    torch.testing.assert_close(data.qfrc_actuator, gear * expected, **close)
    _check_against_mujoco(sim, atol=1e-6 if engine == "native" else 1e-4)


@ENGINES
@pytest.mark.parametrize("gear", [3.0, -0.5])
@pytest.mark.parametrize(("transmission", "name"), [(TENDON, "both_knees"), (SITE, "thruster")])
def test_motors_on_tendons_and_sites_have_gears(
    transmission: TransmissionType, name: str, gear: float, engine: Engine
):
    """Pull a tendon, or push a site along its x axis, with `gear` times the motor's effort."""
    cfg = BuiltinMotorActuatorCfg(
        target_names_expr=(name,), transmission_type=transmission, effort_limit=0.6, gear=gear
    )
    entity, sim = make(cfg, engine=engine)
    shake(entity, sim)
    index = entity.names(transmission.value).index(name)
    targets = getattr(entity.data, f"{transmission.value}_effort_target")
    targets[:, index] = torch.tensor([0.25, -0.5, 7.0])
    entity.write_data_to_sim()
    sim.forward()
    effort = gear * torch.tensor([0.25, -0.5, 0.6])
    dof = {TENDON: entity.data.joint_vel.shape[1] + 6 - 3, SITE: 0}[transmission]  # a_knee; x
    torch.testing.assert_close(sim.data.qfrc_actuator[:, dof], effort)
    _check_against_mujoco(sim, atol=1e-6 if engine == "native" else 1e-4)


@ENGINES
@pytest.mark.parametrize(("transmission", "name"), [(TENDON, "both_knees"), ("joint", "a_hip")])
def test_muscles_are_those_of_a_file_with_that_gear(
    transmission: TransmissionType, name: str, engine: Engine
):
    """Scale length and force of a muscle by a gear that also turns them around."""
    transmission = TransmissionType(transmission)
    cfg = BuiltinMuscleActuatorCfg(
        target_names_expr=(name,),
        transmission_type=transmission,
        length_range=(-2.0, 2.0),
        force=20.0,
        gear=-1.5,
    )
    entity, sim = make(cfg, engine=engine, num_envs=1)
    element = f'<muscle {transmission.value}="{name}" lengthrange="-2 2" force="20" gear="-1.5"/>'
    _, plain = make(xml=element, num_envs=1)
    getattr(entity.data, f"{transmission.value}_effort_target")[:] = 0.7
    plain.data.ctrl[:] = 0.7
    entity.write_joint_position_to_sim(torch.tensor([[0.3, -0.2, 0.1, 0.4]]))
    plain.data.qpos[:, 7:] = torch.tensor([[0.3, -0.2, 0.1, 0.4]])
    for _ in range(5):
        entity.write_data_to_sim()
        sim.step()
        plain.step()
    sim.forward()
    plain.forward()
    assert plain.data.qfrc_actuator.abs().max() > 0.1
    close = {"rtol": 0.0, "atol": 0.0} if engine == "native" else {"rtol": 1e-3, "atol": 1e-3}
    torch.testing.assert_close(sim.data.qfrc_actuator, plain.data.qfrc_actuator, **close)


def _learned(folder: Any) -> LearnedMlpActuatorCfg:
    torch.jit.script(torch.nn.Linear(2, 1)).save(folder / "net.pt")
    return LearnedMlpActuatorCfg(
        target_names_expr=ALL,
        network_file=str(folder / "net.pt"),
        pos_scale=1.0,
        vel_scale=1.0,
        torque_scale=1.0,
        history_length=1,
        effort_limit=2.0,
        saturation_effort=4.0,
        velocity_limit=20.0,
    )


UNGEARED: dict[str, Callable[[Any], ActuatorCfg]] = {
    "position": lambda _: BuiltinPositionActuatorCfg(**GAINS, effort_limit=5.0),
    "velocity": lambda _: BuiltinVelocityActuatorCfg(target_names_expr=ALL, damping=3.0),
    "pd pair": lambda _: BuiltinPdActuatorCfg(**GAINS),
    "ideal pd": lambda _: IdealPdActuatorCfg(**GAINS, effort_limit=5.0),
    "dc": lambda _: DcMotorActuatorCfg(
        **GAINS, effort_limit=5.0, saturation_effort=9.0, velocity_limit=20.0
    ),
    "learned": _learned,
    "motor": lambda _: BuiltinMotorActuatorCfg(target_names_expr=ALL, effort_limit=0.6, gear=3.0),
}


@ENGINES
@pytest.mark.parametrize("kind", UNGEARED)
def test_a_gear_given_to_one_world_acts_there_alone(kind: str, engine: Engine, tmp_path):
    """Feel another gear, as `dr.actuator_gear` writes it, after the limit of every kind."""
    entity, sim = make(UNGEARED[kind](tmp_path), engine=engine)
    (actuator,) = entity.actuators
    gear = 3.0 if kind == "motor" else 1.0
    before = actuator.force_limit.clone()
    sim.model.actuator_gear[1, :, 0] *= 2.0
    shake(entity, sim)
    entity.write_data_to_sim()
    sim.forward()
    scale = torch.tensor([gear, 2.0 * gear, gear])[:, None]
    felt = sim.data.actuator_force * scale
    felt = felt.unflatten(1, (-1, 4)).sum(dim=1)  # a pair's two efforts add up
    torch.testing.assert_close(entity.data.qfrc_actuator, felt, rtol=1e-5, atol=1e-5)
    assert torch.equal(actuator.force_limit, before)
    data = mujoco.MjData(sim.mj_model)
    sim.mj_model.actuator_gear[:, 0] *= 2.0
    for name in ("qpos", "qvel", "ctrl"):
        getattr(data, name)[:] = getattr(sim.data, name)[1].numpy()
    mujoco.mj_forward(sim.mj_model, data)
    ours = sim.data.qfrc_actuator[1].numpy()
    np.testing.assert_allclose(ours, data.qfrc_actuator, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("cfg", [BuiltinMotorActuatorCfg, BuiltinMuscleActuatorCfg])
@pytest.mark.parametrize("gear", [0.0, float("nan"), float("inf")])
def test_gears_of_nothing_are_refused(cfg: type, gear: float):
    """Name the gear that transmits nothing."""
    own = {"effort_limit": 1.0} if cfg is BuiltinMotorActuatorCfg else {}
    with pytest.raises(
        ValueError, match=f"{cfg.__name__}.gear must be a finite number.*got {gear}"
    ):
        cfg(target_names_expr=ALL, gear=gear, **own)


@pytest.mark.slow_on_warp
@ENGINES
@pytest.mark.parametrize(
    ("file", "joints"),
    [("unitree_go1/go1.xml", "F._calf_joint"), ("i2rt_yam/yam.xml", "joint[1-3]")],
)
def test_robots_feel_the_gear(file: str, joints: str, engine: Engine):
    """Give 2 N m to motors behind a gear of 3, and feel 6 N m at each joint."""
    path = str(robot_file(file))
    motor = BuiltinMotorActuatorCfg(target_names_expr=(joints,), effort_limit=5.0, gear=3.0)

    def bare() -> mujoco.MjSpec:
        spec = mujoco.MjSpec.from_file(path)
        for actuator in list(spec.actuators):
            spec.delete(actuator)
        for key in list(spec.keys):
            spec.delete(key)
        return spec

    cfg = EntityCfg(spec_fn=bare, articulation=EntityArticulationInfoCfg(actuators=(motor,)))
    entity, sim = simulate(cfg, num_envs=2, engine=engine)
    ids, _ = entity.find_joints(joints)
    entity.set_joint_effort_target(torch.tensor([[2.0], [50.0]]).expand(2, len(ids)), ids)
    entity.write_data_to_sim()
    sim.forward()
    assert entity.data.qfrc_actuator[:, ids].tolist() == [[6.0] * len(ids), [15.0] * len(ids)]
    _check_against_mujoco(sim, atol=1e-6 if engine == "native" else 1e-4)
