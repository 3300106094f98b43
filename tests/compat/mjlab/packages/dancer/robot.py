"""The robot."""

from pathlib import Path

import mujoco
from mjlab.actuator import DelayedActuatorCfg, IdealPdActuatorCfg
from mjlab.actuator.dc_actuator import DcMotorActuatorCfg
from mjlab.entity import EntityArticulationInfoCfg, EntityCfg
from mjlab.utils.os import update_assets
from mjlab.utils.spec_config import CollisionCfg

DANCER_XML = Path(__file__).parent / "dancer.xml"


def get_assets(meshdir: str) -> dict[str, bytes]:
    """Collect meshes; there are none."""
    assets: dict[str, bytes] = {}
    update_assets(assets, DANCER_XML.parent / "assets", meshdir)
    return assets


def get_spec() -> mujoco.MjSpec:
    """Read the MJCF, without its own actuators."""
    spec = mujoco.MjSpec.from_file(str(DANCER_XML))
    spec.assets = get_assets(spec.meshdir)
    for actuator in list(spec.actuators):
        spec.delete(actuator)
    for geom in spec.geoms:
        if geom.name.endswith("_visual"):
            geom.group = 2
    return spec


HIPS = DcMotorActuatorCfg(
    target_names_expr=(".*_hip_.*",),
    stiffness=60.0,
    damping=2.0,
    effort_limit=40.0,
    saturation_effort=60.0,
    velocity_limit=20.0,
    armature=0.01,
)
KNEES = DelayedActuatorCfg(
    base_cfg=IdealPdActuatorCfg(
        target_names_expr=(".*_knee",), stiffness=60.0, damping=2.0, effort_limit=60.0
    ),
    delay_min_lag=0,
    delay_max_lag=2,
)
ANKLES = IdealPdActuatorCfg(
    target_names_expr=(".*_ankle",), stiffness=20.0, damping=0.8, effort_limit=20.0
)

HOME_KEYFRAME = EntityCfg.InitialStateCfg(
    pos=(0, 0, 0.41),
    joint_pos={".*_hip_pitch": -0.3, ".*_knee": 0.6, ".*_ankle": -0.3, ".*_elbow": 0.5},
    joint_vel={".*": 0.0},
)

FEET_COLLISION = CollisionCfg(
    geom_names_expr=[r"^(L|R)_foot[12]_collision$", "tail_collision"],
    condim={r"^(L|R)_foot\d_collision$": 3, ".*_collision": 1},
    priority={r"^(L|R)_foot\d_collision$": 1},
    friction={r"^(L|R)_foot\d_collision$": (0.8,)},
    disable_other_geoms=True,
)

DANCER_ACTION_SCALE = {".*_hip_.*": 0.2, ".*_knee": 0.25, ".*_ankle": 0.2}


def get_dancer_cfg() -> EntityCfg:
    """Return a fresh config."""
    return EntityCfg(
        init_state=HOME_KEYFRAME,
        spec_fn=get_spec,
        articulation=EntityArticulationInfoCfg(
            actuators=(HIPS, KNEES, ANKLES), soft_joint_pos_limit_factor=0.9
        ),
        collisions=(FEET_COLLISION,),
    )
