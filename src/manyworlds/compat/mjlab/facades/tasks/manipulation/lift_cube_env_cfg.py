"""mjlab's cube lifting task without a robot and a cube.

Its terms are those of this project's task; the names of the robot's parts are empty.
"""

from __future__ import annotations

from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.managers import SceneEntityCfg
from manyworlds.scene import SceneCfg
from manyworlds.sensor import ContactMatch, ContactSensorCfg
from manyworlds.sim import MujocoCfg, SimulationCfg
from manyworlds.tasks.manipulation import lift_cube_env_cfg as ours
from manyworlds.tasks.manipulation import mdp
from manyworlds.terrains import TerrainEntityCfg
from manyworlds.utils.viewer_config import ViewerConfig

__all__ = ["make_lift_cube_env_cfg"]


def make_lift_cube_env_cfg() -> ManagerBasedRlEnvCfg:
    """Return the task on a plane, for entities "robot" and "cube" that are still to be added.

    To be set: scene entities; the pattern of the sensor "ee_ground_collision"; names in `asset_cfg`
    of observations, rewards and events; the body of the viewer.
    """
    cfg = ours.make_lift_cube_env_cfg()
    cfg.scene = SceneCfg(
        env_spacing=1.0,
        terrain=TerrainEntityCfg(),
        sensors=(
            ContactSensorCfg(
                name="ee_ground_collision",
                primary=ContactMatch(mode="subtree", pattern="", entity="robot"),
                secondary=ContactMatch(mode="body", pattern="terrain"),
                reduce="none",
                history_length=4,
            ),
        ),
    )
    cfg.sim = SimulationCfg(
        nconmax=55,
        njmax=600,
        mujoco=MujocoCfg(
            timestep=0.005, impratio=10, cone="elliptic", iterations=10, ls_iterations=20
        ),
    )
    cfg.viewer = ViewerConfig(
        origin_type=ViewerConfig.OriginType.ASSET_BODY,
        entity_name="robot",
        body_name="",
        distance=1.5,
        elevation=-5.0,
        azimuth=120.0,
    )
    action = cfg.actions["joint_pos"]
    assert isinstance(action, mdp.JointPositionActionCfg)
    action.scale = 0.5
    command = cfg.commands["lift_height"]
    assert isinstance(command, mdp.LiftingCommandCfg) and command.object_pose_range is not None
    command.object_pose_range.yaw = (-3.14, 3.14)
    for group in cfg.observations.values():
        group.terms["ee_to_cube"].params["asset_cfg"] = SceneEntityCfg("robot", site_names=())
    cfg.rewards["lift"].params["asset_cfg"] = SceneEntityCfg("robot", site_names=())
    cfg.events["reset_base"].params["velocity_range"] = {}
    cfg.events |= ours.fingertip_friction(())
    del cfg.terminations["diverged"]
    return cfg
