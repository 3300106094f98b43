"""Constants of third-party robots as mjlab has them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from manyworlds.asset_zoo import third_party
from manyworlds.asset_zoo.humanoid import HUMANOID_ACTUATORS
from manyworlds.asset_zoo.motors import leg_collisions
from manyworlds.asset_zoo.quadruped import QUADRUPED_ACTUATORS
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from manyworlds.spec.config import CollisionCfg

GO1_HIP_ACTUATOR_CFG, GO1_KNEE_ACTUATOR_CFG = QUADRUPED_ACTUATORS
"""Position control of Go1's hips and thighs, and of its calves."""
GO1_ARTICULATION = EntityArticulationInfoCfg(
    actuators=QUADRUPED_ACTUATORS, soft_joint_pos_limit_factor=0.9
)
GO1_INIT_STATE = EntityCfg.InitialStateCfg(
    pos=(0.0, 0.0, 0.278),
    joint_pos={
        ".*thigh_joint": 0.9,
        ".*calf_joint": -1.8,
        ".*R_hip_joint": 0.1,
        ".*L_hip_joint": -0.1,
    },
)
_GO1_FEET = "^[FR][LR]_foot_collision$"
GO1_FULL_COLLISION = replace(leg_collisions(_GO1_FEET, condim=6), friction={_GO1_FEET: (1.0,)})

G1_ARTICULATION = EntityArticulationInfoCfg(
    actuators=HUMANOID_ACTUATORS, soft_joint_pos_limit_factor=0.9
)
KNEES_BENT_KEYFRAME = EntityCfg.InitialStateCfg(
    pos=(0.0, 0.0, 0.76),
    joint_pos={
        ".*_hip_pitch_joint": -0.312,
        ".*_knee_joint": 0.669,
        ".*_ankle_pitch_joint": -0.363,
        ".*_elbow_joint": 0.6,
        "left_shoulder_roll_joint": 0.2,
        "left_shoulder_pitch_joint": 0.2,
        "right_shoulder_roll_joint": -0.2,
        "right_shoulder_pitch_joint": 0.2,
    },
)
"""G1 with its knees bent."""
_G1_FEET = "^(left|right)_foot[1-7]_collision$"
G1_FULL_COLLISION = leg_collisions(_G1_FEET, condim=3)
"""Collisions of all parts of G1, also with each other."""
FULL_COLLISION_WITHOUT_SELF = replace(G1_FULL_COLLISION, contype=0, conaffinity=1)
"""Collisions of all parts of G1 with other entities."""
FEET_ONLY_COLLISION = CollisionCfg(
    geom_names_expr=(_G1_FEET,),
    contype=0,
    conaffinity=1,
    condim=3,
    priority=1,
    friction=(0.6,),
)
"""Collisions of G1's feet with other entities."""

get_i2rt_yam_spec = partial(third_party.third_party_spec, "i2rt_yam")
get_unitree_g1_spec = partial(third_party.third_party_spec, "unitree_g1")
get_unitree_go1_spec = partial(third_party.third_party_spec, "unitree_go1")


def get_go1_robot_cfg() -> EntityCfg:
    """Configure Unitree's Go1, standing, with position control of its 12 joints."""
    cfg = third_party.get_go1_robot_cfg()
    return replace(cfg, init_state=replace(GO1_INIT_STATE), collisions=(GO1_FULL_COLLISION,))


def get_g1_robot_cfg() -> EntityCfg:
    """Configure Unitree's G1, knees bent, with position control of its 29 joints."""
    cfg = third_party.get_g1_robot_cfg()
    return replace(cfg, init_state=replace(KNEES_BENT_KEYFRAME), collisions=(G1_FULL_COLLISION,))


_FILES = {"GO1_XML": "unitree_go1", "G1_XML": "unitree_g1", "YAM_XML": "i2rt_yam"}


def __getattr__(name: str) -> object:
    if name in _FILES:
        return third_party.third_party_file(_FILES[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
