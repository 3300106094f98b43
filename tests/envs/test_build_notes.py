"""Notes on environments that can be built, as warnings and in the report of `check_env`."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import mujoco
import pytest
import torch

from manyworlds.actuator import (
    BuiltinMotorActuatorCfg,
    BuiltinPositionActuatorCfg,
    IdealPdActuatorCfg,
    XmlActuatorCfg,
)
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg, check_env, mdp
from manyworlds.managers import (
    EventTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
    TerminationTermCfg,
)
from manyworlds.scene import SceneCfg
from manyworlds.spec.config import CollisionCfg
from manyworlds.terrains import TerrainEntityCfg

HOPPER = """
<mujoco>
  <worldbody>
    <body name="trunk" pos="0 0 .6">
      <freejoint/>
      <geom name="trunk" size=".1"/>
      <body name="leg"><joint name="hip" axis="0 1 0" damping="1"/>
        <geom name="foot" type="capsule" fromto="0 0 0 0 0 -.4" size=".03"/>
      </body>
    </body>
  </worldbody>
  <actuator>{}</actuator>
</mujoco>
"""
SERVO = BuiltinPositionActuatorCfg(target_names_expr=("hip",), stiffness=20.0, damping=1.0)


def make_cfg(*actuators: Any, xml: str = "", **fields: Any) -> ManagerBasedRlEnvCfg:
    """Configure a hopper on a plane, without anything to note."""
    collisions = fields.pop("collisions", ())
    robot = EntityCfg(
        spec_fn=lambda: mujoco.MjSpec.from_string(HOPPER.format(xml)),
        articulation=EntityArticulationInfoCfg(actuators or (SERVO,)),
        collisions=collisions,
    )
    entities = {"robot": robot}
    scene = SceneCfg(num_envs=8, entities=entities, terrain=TerrainEntityCfg(terrain_type="plane"))
    names: dict[str, Any] = {"entity_name": "robot", "actuator_names": ("hip",)}
    terms = {"q": ObservationTermCfg(func=mdp.joint_pos_rel)}
    return ManagerBasedRlEnvCfg(
        decimation=4,
        scene=scene,
        observations={"actor": ObservationGroupCfg(terms=terms)},
        rewards={"speed": RewardTermCfg(func=mdp.joint_vel_l2, weight=-1.0)},
        **{
            "episode_length_s": 5.0,
            "actions": {"q": mdp.JointPositionActionCfg(**names)},
            "terminations": {"time": TerminationTermCfg(func=mdp.time_out, time_out=True)},
            **fields,
        },
    )


def notes(cfg: ManagerBasedRlEnvCfg) -> list[str]:
    """Return the warnings of the build, which are notes of the report."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ManagerBasedRlEnv(cfg, device="cpu")
    found = [str(warning.message) for warning in caught]
    report = check_env(cfg, num_envs=8, steps=3, device="cpu")
    assert set(found) <= {*report.notes, *(f"{finding}." for finding in report.findings)}
    return found


FRICTION: dict[str, Any] = {"asset_cfg": SceneEntityCfg("robot", geom_names=("foot",))}


def _friction(low: float, high: float) -> dict[str, EventTermCfg]:
    params = {**FRICTION, "ranges": (low, high)}
    return {"slip": EventTermCfg(func=mdp.dr.geom_friction, mode="startup", params=params)}


def test_nothing_is_noted_of_what_is_right():
    """Say nothing of limits of time, friction and actuators that have effect."""
    above = CollisionCfg(geom_names_expr=("foot",), priority=1)
    motor = BuiltinMotorActuatorCfg(target_names_expr=("hip",), effort_limit=5.0)
    motor_of_file = XmlActuatorCfg(target_names_expr=("hip",))
    late = {"time": TerminationTermCfg(func=mdp.time_out)}
    for cfg in (
        make_cfg(),
        make_cfg(events=_friction(1.5, 2.0)),
        make_cfg(events=_friction(0.2, 0.5), collisions=(above,)),
        make_cfg(terminations=late, is_finite_horizon=True),
        make_cfg(terminations={}, episode_length_s=0.0),
        make_cfg(motor_of_file, xml='<position name="servo" joint="hip" kp="5"/>'),
        make_cfg(SERVO, motor_of_file, xml='<motor name="own" joint="hip"/>'),
    ):
        assert notes(cfg) == []
    assert motor.gear == 1.0


@pytest.mark.parametrize(
    ("cfg", "message"),
    [
        (
            make_cfg(terminations={"late": TerminationTermCfg(func=mdp.time_out)}),
            "terminations.late counts the time limit as a failure, whose value is 0: set",
        ),
        (
            make_cfg(episode_length_s=0.0),
            "terminations.time ends each episode in its first step, because episode_length_s is 0",
        ),
        (
            make_cfg(xml='<motor name="own" joint="hip"/>'),
            "own actuators act on the joints ['hip'] beside those of BuiltinPositionActuatorCfg",
        ),
        (
            make_cfg(
                SERVO,
                XmlActuatorCfg(target_names_expr=("hip",)),
                xml='<position name="own" joint="hip" kp="5"/>',
            ),
            "own actuators act on the joints ['hip'] beside those of BuiltinPositionActuatorCfg",
        ),
        (
            make_cfg(IdealPdActuatorCfg(target_names_expr=("hip",), stiffness=0.0, damping=1.0)),
            "joints ['hip'] take effort and velocity targets, so position targets have no effect",
        ),
        (
            make_cfg(terminations={"t": TerminationTermCfg(func=partial(mdp.time_out))}),
            "terminations.t counts the time limit as a failure",
        ),
        (
            make_cfg(events=_friction(0.2, 0.9)),
            "randomize the friction of geom 'robot/foot', but its contacts have that of 'terrain', "
            "where it is less than 1, because MuJoCo takes the larger of two: give the geom",
        ),
        (
            make_cfg(
                events=_friction(1.5, 2.0),
                collisions=(CollisionCfg(geom_names_expr=("foot",), priority=-1),),
            ),
            "'terrain', which has the higher priority: give the geom a higher priority",
        ),
        (
            make_cfg(BuiltinMotorActuatorCfg(target_names_expr=("hip",), effort_limit=5.0)),
            "joints ['hip'] take effort targets, so position targets have no effect on them",
        ),
    ],
    ids=[
        *("failure", "no length", "two actuators", "two servos", "no stiffness", "partial"),
        *("friction", "priority", "deaf"),
    ],
)
def test_what_has_no_effect_is_noted(cfg, message):
    """Say it in one sentence when the environment is built, and in the report of the check."""
    (note,) = notes(cfg)
    assert message in note and "\n" not in note


def test_contacts_have_the_larger_friction():
    """Agree with MuJoCo on which friction a contact of the foot with the ground has."""
    with pytest.warns(UserWarning, match="where it is less than 1, because MuJoCo"):
        env = ManagerBasedRlEnv(make_cfg(events=_friction(0.2, 0.9)), device="cpu")
    env.sim.data.qpos[:, 2] = 0.4
    contacts = env.sim.contacts()
    assert len(contacts.friction) and torch.all(contacts.friction[:, 0] == 1.0)
