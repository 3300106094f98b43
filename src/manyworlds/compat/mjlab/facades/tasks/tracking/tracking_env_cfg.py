"""mjlab's tracking task without a robot and a motion.

Its terms are those of this project's task; the names of the robot's parts are empty.
"""

from __future__ import annotations

from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.managers import SceneEntityCfg
from manyworlds.scene import SceneCfg
from manyworlds.sim import MujocoCfg, SimulationCfg
from manyworlds.tasks.tracking import mdp
from manyworlds.tasks.tracking import tracking_env_cfg as ours
from manyworlds.tasks.tracking.tracking_env_cfg import VELOCITY_RANGE
from manyworlds.terrains import TerrainEntityCfg
from manyworlds.utils.viewer_config import ViewerConfig

__all__ = ["VELOCITY_RANGE", "make_tracking_env_cfg"]


def make_tracking_env_cfg() -> ManagerBasedRlEnvCfg:
    """Return the task on a plane, for a robot "robot" that is still to be added.

    To be set: scene entities and a contact sensor "self_collision"; file, anchor and bodies of the
    command "motion"; names in `asset_cfg` of events and in the termination "ee_body_pos"; the body
    of the viewer.
    """
    cfg = ours.make_tracking_env_cfg()
    cfg.scene = SceneCfg(terrain=TerrainEntityCfg())
    cfg.sim = SimulationCfg(
        nconmax=35, njmax=250, mujoco=MujocoCfg(timestep=0.005, iterations=10, ls_iterations=20)
    )
    cfg.viewer = ViewerConfig(
        origin_type=ViewerConfig.OriginType.ASSET_BODY,
        entity_name="robot",
        body_name="",
        distance=2.8,
        elevation=-5.0,
        azimuth=120.0,
        fovy=55.0,
    )
    action = cfg.actions["joint_pos"]
    assert isinstance(action, mdp.JointPositionActionCfg)
    action.scale = 0.5
    cfg.events["base_com"].params["asset_cfg"] = SceneEntityCfg("robot", body_names=())
    cfg.events["foot_friction"].params["asset_cfg"] = SceneEntityCfg("robot", geom_names=())
    del cfg.terminations["diverged"]
    return cfg
