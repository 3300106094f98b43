"""Constants of the robot: model, actuators, collisions, posture and action scale."""

from pathlib import Path

import mujoco
from mjlab.actuator import BuiltinPositionActuatorCfg
from mjlab.entity import Entity, EntityArticulationInfoCfg, EntityCfg
from mjlab.utils.actuator import ElectricActuator, reflected_inertia
from mjlab.utils.spec_config import CollisionCfg

TROTTER_XML: Path = Path(__file__).parent / "xmls" / "trotter.xml"
assert TROTTER_XML.exists()


def get_spec() -> mujoco.MjSpec:
    """Read the robot's MJCF."""
    return mujoco.MjSpec.from_file(str(TROTTER_XML))


##
# Actuators.
##

ROTOR_INERTIA = 0.0001
HIP_GEAR_RATIO = 6
KNEE_GEAR_RATIO = HIP_GEAR_RATIO * 1.5

HIP_ACTUATOR = ElectricActuator(
    reflected_inertia=reflected_inertia(ROTOR_INERTIA, HIP_GEAR_RATIO),
    velocity_limit=30.1,
    effort_limit=23.7,
)
KNEE_ACTUATOR = ElectricActuator(
    reflected_inertia=reflected_inertia(ROTOR_INERTIA, KNEE_GEAR_RATIO),
    velocity_limit=20.06,
    effort_limit=35.55,
)

NATURAL_FREQ = 10 * 2.0 * 3.1415926535
DAMPING_RATIO = 2.0

STIFFNESS_HIP = HIP_ACTUATOR.reflected_inertia * NATURAL_FREQ**2
DAMPING_HIP = 2.0 * DAMPING_RATIO * HIP_ACTUATOR.reflected_inertia * NATURAL_FREQ
STIFFNESS_KNEE = KNEE_ACTUATOR.reflected_inertia * NATURAL_FREQ**2
DAMPING_KNEE = 2.0 * DAMPING_RATIO * KNEE_ACTUATOR.reflected_inertia * NATURAL_FREQ

TROTTER_HIP_ACTUATOR_CFG = BuiltinPositionActuatorCfg(
    target_names_expr=(".*_hip_joint", ".*_thigh_joint"),
    stiffness=STIFFNESS_HIP,
    damping=DAMPING_HIP,
    effort_limit=HIP_ACTUATOR.effort_limit,
    armature=HIP_ACTUATOR.reflected_inertia,
)
TROTTER_KNEE_ACTUATOR_CFG = BuiltinPositionActuatorCfg(
    target_names_expr=(".*_calf_joint",),
    stiffness=STIFFNESS_KNEE,
    damping=DAMPING_KNEE,
    effort_limit=KNEE_ACTUATOR.effort_limit,
    armature=KNEE_ACTUATOR.reflected_inertia,
    delay_min_lag=0,
    delay_max_lag=2,
)

##
# Keyframe.
##

INIT_STATE = EntityCfg.InitialStateCfg(
    pos=(0.0, 0.0, 0.29),
    joint_pos={
        ".*R_hip_joint": -0.1,
        ".*L_hip_joint": 0.1,
        ".*thigh_joint": 0.7,
        ".*calf_joint": -1.4,
    },
    joint_vel={".*": 0.0},
)

##
# Collisions.
##

_FOOT_REGEX = "^[FR][LR]_foot_collision$"

FEET_ONLY_COLLISION = CollisionCfg(
    geom_names_expr=(_FOOT_REGEX,),
    contype=0,
    conaffinity=1,
    condim=3,
    priority=1,
    friction=(0.6,),
    solimp=(0.9, 0.95, 0.023),
)

FULL_COLLISION = CollisionCfg(
    geom_names_expr=(".*_collision",),
    contype=1,
    conaffinity=1,
    condim={_FOOT_REGEX: 6, ".*_collision": 1},
    priority={_FOOT_REGEX: 1},
    friction={_FOOT_REGEX: (1, 5e-3, 5e-4)},
    solimp={_FOOT_REGEX: (0.9, 0.95, 0.023)},
)

##
# Final config.
##

TROTTER_ARTICULATION = EntityArticulationInfoCfg(
    actuators=(TROTTER_HIP_ACTUATOR_CFG, TROTTER_KNEE_ACTUATOR_CFG),
    soft_joint_pos_limit_factor=0.9,
)


def get_trotter_robot_cfg() -> EntityCfg:
    """Return a fresh robot config, so that tasks do not share one."""
    return EntityCfg(
        init_state=INIT_STATE,
        collisions=(FULL_COLLISION,),
        spec_fn=get_spec,
        articulation=TROTTER_ARTICULATION,
    )


TROTTER_ACTION_SCALE: dict[str, float] = {}
for a in TROTTER_ARTICULATION.actuators:
    assert isinstance(a, BuiltinPositionActuatorCfg)
    assert a.effort_limit is not None
    for n in a.target_names_expr:
        TROTTER_ACTION_SCALE[n] = 0.25 * a.effort_limit / a.stiffness


if __name__ == "__main__":
    import mujoco.viewer as viewer

    viewer.launch(Entity(get_trotter_robot_cfg()).spec.compile())
