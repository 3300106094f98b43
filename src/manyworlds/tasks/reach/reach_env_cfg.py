"""Reach task in a plane with a two-joint arm. `manyworlds new-task` copies this file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mujoco
import torch

from manyworlds.actuator import BuiltinPositionActuatorCfg
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg, mdp
from manyworlds.managers import (
    CommandTerm,
    CommandTermCfg,
    EventTermCfg,
    MetricsTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
    TerminationTermCfg,
)
from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.scene import SceneCfg
from manyworlds.sim import MujocoCfg, SimulationCfg
from manyworlds.terrains import TerrainEntityCfg
from manyworlds.utils.viewer_config import ViewerConfig
from manyworlds.validation.worlds import EnvIds, takes_worlds

if TYPE_CHECKING:
    from manyworlds.rl import OnnxPolicy
    from manyworlds.share import ControlGraph, Value
    from manyworlds.utils.debug_visualizer import DebugVisualizer

ARM = """
<mujoco>
  <worldbody>
    <body name="upper" pos="0 0 .1">
      <joint name="shoulder" axis="0 0 1" damping=".5"/>
      <geom name="upper" type="capsule" fromto="0 0 0 .3 0 0" size=".03" rgba=".2 .4 .7 1"/>
      <body name="lower" pos=".3 0 0">
        <joint name="elbow" axis="0 0 1" range="-150 150" damping=".5"/>
        <geom name="lower" type="capsule" fromto="0 0 0 .25 0 0" size=".025" rgba=".9 .6 .2 1"/>
        <site name="tip" pos=".25 0 0"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
TIP = SceneEntityCfg("robot", site_names="tip")


def tip_position(env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg = TIP) -> torch.Tensor:
    """Position of the tip relative to the robot's root [m], shape [num_envs, 2]."""
    data = env.scene.entity(asset_cfg.name).data
    tip = data.site_pos_w[:, asset_cfg.index("site")].squeeze(1)
    return (tip - data.root_link_pos_w)[:, :2]


def _plain_tip_position(policy: OnnxPolicy, data: mujoco.MjData, params: dict[str, Any]) -> Any:
    """Return `tip_position` computed without an environment, shape [2]."""
    root = policy.description["entities"]["robot"]["root_body"]
    tip = root.rpartition("/")[0] + "/tip"
    return (data.site(tip).xpos - data.body(root).xpos)[:2]


PLAIN_OBSERVATION_FNS = {"tip_position": _plain_tip_position}
"""Functions that replace observation terms of this file where policies run in plain MuJoCo."""


def _onnx_tip_position(graph: ControlGraph, params: dict[str, Any]) -> Value:
    root = graph.policy.entities["robot"]["root_body"]
    tip = root.rpartition("/")[0] + "/tip"
    return (graph.position("site", tip) - graph.position("body", root))[:2]


ONNX_OBSERVATION_FNS = {"tip_position": _onnx_tip_position}
"""Functions that replace observation terms of this file in the pages of `manyworlds share`."""


def distance(
    env: ManagerBasedRlEnv, command_name: str, asset_cfg: SceneEntityCfg = TIP
) -> torch.Tensor:
    """Distance from the tip to its goal [m], shape [num_envs]."""
    goal = env.command_manager.get_command(command_name)
    return (tip_position(env, asset_cfg) - goal).norm(dim=1)


def reach(
    env: ManagerBasedRlEnv, command_name: str, asset_cfg: SceneEntityCfg = TIP
) -> torch.Tensor:
    """Kernel of the tip's distance to its goal, 1 at the goal, shape [num_envs]."""
    return torch.exp(-10.0 * distance(env, command_name, asset_cfg))


@dataclass(kw_only=True)
class ReachGoalCommandCfg(CommandTermCfg):
    """Configuration of goals on a ring around the robot's root."""

    radius: tuple[float, float] = (0.2, 0.5)
    """Bounds of the distance from the root [m]."""

    def build(self, env: ManagerBasedRlEnv) -> ReachGoalCommand:
        """Build the term."""
        return ReachGoalCommand(self, env)


class ReachGoalCommand(CommandTerm):
    """Command with a goal position for each world."""

    cfg: ReachGoalCommandCfg
    state_attributes = (*CommandTerm.state_attributes, "goal")

    def __init__(self, cfg: ReachGoalCommandCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(cfg, env)
        self.goal = torch.zeros(self.num_envs, 2, device=self.device)

    @property
    def command(self) -> torch.Tensor:
        """Goals relative to the robot's root [m], shape [num_envs, 2]."""
        return self.goal

    @property
    def steering(self) -> dict[str, tuple[float, float]]:
        """Bounds of goals that a page may set, by name, in order [m]."""
        reach = self.cfg.radius[1]
        return {"x [m]": (-reach, reach), "y [m]": (-reach, reach)}

    @takes_worlds
    def _resample_command(self, env_ids: EnvIds) -> None:
        worlds = self._worlds(env_ids)
        low, high = self.cfg.radius
        radius = self.random.uniform(low, high, env_ids=worlds)
        angle = self.random.uniform(0.0, 2.0 * torch.pi, env_ids=worlds)
        goal = torch.stack([angle.cos(), angle.sin()], dim=1) * radius[:, None]
        worlds.put(self.goal, goal)

    @takes_worlds
    def _update_command(self, env_ids: EnvIds = None) -> None:
        """Do nothing: goals do not depend on the state."""

    def _update_metrics(self) -> None:
        """Do nothing: the task's metrics are separate terms."""

    def _debug_vis_impl(self, visualizer: DebugVisualizer) -> None:
        for env in visualizer.get_env_indices(self.num_envs):
            root = self._env.scene.entity("robot").data.root_link_pos_w[env].cpu().numpy().copy()
            root[:2] += self.goal[env].cpu().numpy()
            visualizer.add_sphere(root, 0.03, (0.2, 0.8, 0.3, 0.6))


def env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Return the environment: scene, actions, observations, rewards and terminations."""
    robot = EntityCfg(
        spec_fn=lambda: mujoco.MjSpec.from_string(ARM),
        articulation=EntityArticulationInfoCfg(
            actuators=(
                BuiltinPositionActuatorCfg(target_names_expr=(".*",), stiffness=20.0, damping=1.0),
            )
        ),
    )
    return ManagerBasedRlEnvCfg(
        scene=SceneCfg(
            num_envs=16 if play else 512,
            entities={"robot": robot},
            terrain=TerrainEntityCfg(),  # floor, light and sky
            extent=1.0,  # reference length of shadows [m]
        ),
        sim=SimulationCfg(mujoco=MujocoCfg(timestep=0.005)),
        decimation=4,
        episode_length_s=1e9 if play else 4.0,
        commands={"goal": ReachGoalCommandCfg(resampling_time_range=(2.0, 2.0), debug_vis=True)},
        actions={
            "joints": mdp.JointPositionActionCfg(
                entity_name="robot", actuator_names=(".*",), scale=1.5
            )
        },
        observations={
            "actor": ObservationGroupCfg(terms=observation_terms()),
            "critic": ObservationGroupCfg(terms=observation_terms()),
        },
        rewards={
            "reach": RewardTermCfg(func=reach, weight=1.0, params={"command_name": "goal"}),
            "smooth": RewardTermCfg(func=mdp.action_rate_l2, weight=-0.01),
        },
        terminations={"time_out": TerminationTermCfg(func=mdp.time_out, time_out=True)},
        events={
            "joints": EventTermCfg(
                func=mdp.reset_joints_by_offset,
                mode="reset",
                params={"position_range": (-1.0, 1.0), "velocity_range": (0.0, 0.0)},
            )
        },
        metrics={"distance": MetricsTermCfg(func=distance, params={"command_name": "goal"})},
        viewer=ViewerConfig(entity_name="robot", body_name="upper", distance=1.5, elevation=-50.0),
    )


def observation_terms() -> dict[str, ObservationTermCfg]:
    """Return the observations of a network."""
    return {
        "joint_pos": ObservationTermCfg(func=mdp.joint_pos_rel),
        "joint_vel": ObservationTermCfg(func=mdp.joint_vel_rel),
        "tip": ObservationTermCfg(func=tip_position),
        "goal": ObservationTermCfg(func=mdp.generated_commands, params={"command_name": "goal"}),
    }


def rl_cfg() -> RslRlOnPolicyRunnerCfg:
    """Return the learner's settings."""
    return RslRlOnPolicyRunnerCfg(experiment_name="reach", max_iterations=100)
