"""Constants of the arm; its actuators are those of its file."""

from pathlib import Path

import mujoco
from mjlab.actuator import XmlActuatorCfg
from mjlab.entity import EntityArticulationInfoCfg, EntityCfg
from mjlab.utils.spec_config import CameraCfg, CollisionCfg

ARM_XML = Path(__file__).with_name("arm.xml")

ARM_ACTION_SCALE = {"joint[1-3]": 0.3, "joint4": 0.4, "joint5": 0.8}

ARM_ACTUATORS = XmlActuatorCfg(joint_names_expr=("joint[1-5]",))
GRIPPER_ACTUATOR = XmlActuatorCfg(target_names_expr=("left_finger",), command_field="position")

HOME = EntityCfg.InitialStateCfg(
    joint_pos={
        "joint1": 0.0,
        "joint2": 0.6,
        "joint[34]": 1.2,
        "joint5": 0.0,
        ".*_finger": 0.03,
    },
)


def get_spec() -> mujoco.MjSpec:
    """Read the arm's MJCF."""
    return mujoco.MjSpec.from_file(str(ARM_XML))


def get_arm_cfg() -> EntityCfg:
    """Return a fresh config of the arm."""
    return EntityCfg(
        init_state=HOME,
        spec_fn=get_spec,
        articulation=EntityArticulationInfoCfg(
            actuators=(ARM_ACTUATORS, GRIPPER_ACTUATOR), soft_joint_pos_limit_factor=0.95
        ),
        cameras=(CameraCfg(name="overview", body="base", fovy=60.0, pos=(1.0, 0.0, 0.8)),),
        collisions=(
            CollisionCfg(
                geom_names_expr=(".*_collision",),
                contype=1,
                conaffinity=1,
                condim={".*_finger_collision": 6, ".*_collision": 3},
                priority={".*_finger_collision": 1, ".*_collision": 0},
                friction={".*_finger_collision": (1.0, 5e-3, 5e-4), ".*_collision": (0.6,)},
                disable_other_geoms=False,
            ),
        ),
    )
