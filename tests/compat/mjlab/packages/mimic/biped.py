"""The humanoid."""

from dataclasses import dataclass, replace
from pathlib import Path

import mujoco
import torch
from mjlab.actuator import ActuatorCmd, DcMotorActuatorCfg, IdealPdActuator, IdealPdActuatorCfg
from mjlab.entity import EntityArticulationInfoCfg, EntityCfg
from mjlab.utils.spec_config import CollisionCfg

BIPED_XML = Path(__file__).parent / "biped.xml"


class SmoothPdActuator(IdealPdActuator):
    """PD control whose damping sees the mean of the last two velocities."""

    last_vel: torch.Tensor | None = None

    def compute(self, cmd: ActuatorCmd) -> torch.Tensor:
        """Return the efforts; the last velocities are kept, not copied."""
        vel = cmd.vel if self.last_vel is None else 0.5 * (cmd.vel + self.last_vel)
        self.last_vel = cmd.vel
        return super().compute(replace(cmd, vel=vel))


@dataclass(kw_only=True)
class SmoothPdActuatorCfg(IdealPdActuatorCfg):
    """Settings of smooth PD control."""

    def build(self, entity, target_ids, target_names) -> SmoothPdActuator:
        """Build the actuator."""
        actuator = SmoothPdActuator(self, entity, target_ids, target_names)
        assert actuator._target_names == list(target_names)
        return actuator


LEGS = DcMotorActuatorCfg(
    target_names_expr=(".*_hip_.*_joint", ".*_knee_joint", ".*_ankle_pitch_joint"),
    stiffness=120.0,
    damping=4.0,
    effort_limit=90.0,
    saturation_effort=120.0,
    velocity_limit=30.0,
)
UPPER_BODY = SmoothPdActuatorCfg(
    target_names_expr=("waist_yaw_joint", ".*_shoulder_pitch_joint"),
    stiffness=60.0,
    damping=2.0,
    effort_limit=30.0,
)

ACTION_SCALE = {
    name: 0.25 * actuator.effort_limit / actuator.stiffness
    for actuator in (LEGS, UPPER_BODY)
    for name in actuator.target_names_expr
}


def get_spec() -> mujoco.MjSpec:
    """Read the humanoid's MJCF."""
    return mujoco.MjSpec.from_file(str(BIPED_XML))


def get_biped_cfg() -> EntityCfg:
    """Return the humanoid; it begins at the keyframe of its file."""
    return EntityCfg(
        spec_fn=get_spec,
        init_state=EntityCfg.InitialStateCfg(pos=(0.0, 0.0, 0.6), joint_pos=None),
        articulation=EntityArticulationInfoCfg(
            actuators=(LEGS, UPPER_BODY), soft_joint_pos_limit_factor=0.95
        ),
        collisions=(
            CollisionCfg(
                geom_names_expr=(".*_collision",),
                contype=1,
                conaffinity=1,
                condim={".*_foot_collision": 3, ".*_collision": 1},
                priority={".*_foot_collision": 1, ".*_collision": 0},
                friction={".*_foot_collision": (0.8,)},
            ),
        ),
    )
