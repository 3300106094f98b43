"""Descriptions of the world in exported policies."""

import json
from typing import Any

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.actuator import (
    BuiltinDcMotorActuatorCfg,
    BuiltinMotorActuatorCfg,
    BuiltinPdActuatorCfg,
    BuiltinPositionActuatorCfg,
    BuiltinVelocityActuatorCfg,
    DcMotorActuatorCfg,
    DcMotorPhysicalParams,
    IdealPdActuatorCfg,
)
from manyworlds.envs import ManagerBasedRlEnv, mdp
from manyworlds.managers.action_manager import ActionTerm, ActionTermCfg
from manyworlds.rl.exporter_utils import get_base_metadata
from manyworlds.rl.plain_actuators import PlainActuators
from manyworlds.rl.policy_description import describe_policy, gains

ON_SLIDER: dict[str, Any] = {"target_names_expr": ("slider",)}
DC: dict[str, Any] = {"effort_limit": 3.0, "saturation_effort": 5.0, "velocity_limit": 2.0}


@pytest.mark.parametrize(
    ("actuators", "expected"),
    [
        ([BuiltinMotorActuatorCfg(**ON_SLIDER, effort_limit=10.0)], (0.0, 0.0)),
        ([BuiltinPositionActuatorCfg(**ON_SLIDER, stiffness=7.0, damping=0.5)], (7.0, 0.5)),
        ([BuiltinVelocityActuatorCfg(**ON_SLIDER, damping=0.5)], (0.0, 0.5)),
        ([BuiltinPdActuatorCfg(**ON_SLIDER, stiffness=7.0, damping=0.5)], (7.0, 0.5)),
        ([IdealPdActuatorCfg(**ON_SLIDER, stiffness=7.0, damping=0.5)], (7.0, 0.5)),
        ([DcMotorActuatorCfg(**ON_SLIDER, **DC, stiffness=7.0, damping=0.5)], (7.0, 0.5)),
    ],
    ids=lambda value: type(value[0]).__name__ if isinstance(value, list) else "",
)
def test_gains_are_those_of_every_kind_of_actuator(env_cfg, actuators, expected):
    """Report stiffness and damping as configured, 0 for joints without them."""
    env_cfg.scene.entities["cartpole"].articulation.actuators = tuple(actuators)
    env_cfg.actions, env_cfg.rewards = {}, {}
    env = ManagerBasedRlEnv(env_cfg)
    stiffness, damping = gains(env.scene["cartpole"])
    assert stiffness == pytest.approx([expected[0], 0.0], rel=1e-6)
    assert damping == pytest.approx([expected[1], 0.0], rel=1e-6)


def test_the_base_metadata_need_no_robot_of_that_name(env):
    """Describe the entity that the first action moves, whatever its name."""
    found = get_base_metadata(env, "here")
    assert found["run_path"] == "here" and found["action_scale"] == [10.0]
    assert found["joint_names"] == ["slider", "hinge_1"]
    assert found["default_joint_pos"] == pytest.approx([0.0, 3.1415927])
    assert found["observation_names"] == ["cart_pos", "pole_angle", "joint_vel"]
    assert found["observation_terms_scale"] == [1.0] * 3


def test_infinite_bounds_become_null(env_cfg):
    """Write what JSON cannot hold as null, in clips and limits."""
    actuator = IdealPdActuatorCfg(**ON_SLIDER, stiffness=1.0, damping=0.0, delay_max_lag=4)
    env_cfg.scene.entities["cartpole"].articulation.actuators = (actuator,)
    env_cfg.actions = {
        "position": mdp.JointPositionActionCfg(
            entity_name="cartpole",
            actuator_names=("slider",),
            clip={"hinge.*|slider": (-1.0, 1e400)},
        )
    }
    described = json.loads(json.dumps(describe_policy(ManagerBasedRlEnv(env_cfg)), allow_nan=False))
    assert described["actions"]["position"]["clip"] == [[-1.0], [None]]
    (actuator,) = described["actuators"]
    assert actuator["params"]["force_limit"] == [None]
    delayed = ["position", "velocity", "effort"]
    assert actuator["delay"] == {"min_lag": 0, "max_lag": 4, "commands": delayed}


class _Push(ActionTerm):
    @property
    def action_dim(self) -> int:
        return 1

    @property
    def raw_action(self) -> torch.Tensor:
        return torch.zeros(4, 1)

    def process_actions(self, actions) -> None:
        """Ignore."""

    def apply_actions(self) -> None:
        """Do nothing."""


class _PushCfg(ActionTermCfg):
    def build(self, env) -> ActionTerm:
        """Make the term."""
        return _Push(self, env)


def test_what_plain_mujoco_cannot_run_is_named(env_cfg):
    """Name action terms and actuators whose ways are unknown."""
    env_cfg.rewards = {}
    env_cfg.actions["push"] = _PushCfg(entity_name="cartpole")
    env = ManagerBasedRlEnv(env_cfg)
    described = describe_policy(env)
    with pytest.raises(ValueError, match="Action term 'push' is a _Push, which plain MuJoCo"):
        PlainActuators(env.sim.mj_model, described)
    described["actuators"][0] |= {"type": "Learned", "commands": None}
    with pytest.raises(ValueError, match=r"actuator of \['cartpole/slider'\] is a Learned"):
        PlainActuators(env.sim.mj_model, described)


@pytest.mark.parametrize("gear", [3.0, -0.5])
def test_plain_mujoco_sends_geared_motors_what_the_environment_does(env_cfg, gear):
    """Write the same controls for the same actions: efforts before the gear, scaled and offset."""
    motor = BuiltinMotorActuatorCfg(**ON_SLIDER, effort_limit=10.0, gear=gear)
    env_cfg.scene.entities["cartpole"].articulation.actuators = (motor,)
    env = ManagerBasedRlEnv(env_cfg)
    plain = PlainActuators(env.sim.mj_model, json.loads(json.dumps(describe_policy(env))))
    env.step(torch.full((4, 1), 0.25))
    data = mujoco.MjData(env.sim.mj_model)
    plain.take(np.array([0.25]))
    plain.apply(data)
    assert data.ctrl.tolist() == env.sim.data.ctrl[0].tolist() == [2.5]
    mujoco.mj_forward(env.sim.mj_model, data)
    assert data.qfrc_actuator[0] == 2.5 * gear


@pytest.mark.parametrize("gear", [3.0, -0.5])
def test_plain_mujoco_sends_geared_servos_what_the_environment_does(env_cfg, gear):
    """Write the same controls for the same actions: positions of the joint times the gear."""
    servo = BuiltinDcMotorActuatorCfg(
        **ON_SLIDER,
        motor_params=DcMotorPhysicalParams(kt=0.5, ke=0.5, resistance=2.0),
        **{"stiffness": 5.0, "voltage_limit": 24.0, "gear": gear},
    )
    env_cfg.scene.entities["cartpole"].articulation.actuators = (servo,)
    env_cfg.actions = {
        "q": mdp.JointPositionActionCfg(entity_name="cartpole", actuator_names=("slider",))
    }
    env = ManagerBasedRlEnv(env_cfg)
    plain = PlainActuators(env.sim.mj_model, json.loads(json.dumps(describe_policy(env))))
    env.step(torch.full((4, 1), 0.25))
    data = mujoco.MjData(env.sim.mj_model)
    plain.take(np.array([0.25]))
    plain.apply(data)
    assert data.ctrl.tolist() == env.sim.data.ctrl[0].tolist() == [0.25 * gear]
