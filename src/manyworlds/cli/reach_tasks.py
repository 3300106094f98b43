"""Programs that `manyworlds new-task --robot` writes for robots with a fixed base."""

from __future__ import annotations

import json
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from manyworlds.cli.source_text import drive_constant, numbers, path_source

if TYPE_CHECKING:
    from manyworlds.asset_zoo.fixed_base import FixedBaseModel

_CONTROL_S = 0.02
"""Control period of a new task, unless the model's timestep is longer [s]."""
_REACH = Template('''"""The task $name: the end of a robot with a fixed base reaches goals.

The constants were derived from the robot's model. Check them against its data sheet.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mujoco
import torch

from manyworlds.actuator import BuiltinPositionActuatorCfg
from manyworlds.asset_zoo.fixed_base import reachable_points
from manyworlds.asset_zoo.legged import JointDrive
from manyworlds.asset_zoo.robot_file import robot_spec
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
from manyworlds.rl.config import (
    RslRlModelCfg,
    RslRlOnPolicyRunnerCfg,
    RslRlPpoAlgorithmCfg,
    gaussian_distribution,
)
from manyworlds.scene import SceneCfg
from manyworlds.sim import MujocoCfg, SimulationCfg
from manyworlds.tasks import register_task
from manyworlds.terrains import TerrainEntityCfg
from manyworlds.utils.viewer_config import ViewerConfig

if TYPE_CHECKING:
    from manyworlds.rl import OnnxPolicy
    from manyworlds.share import ControlGraph, Value
    from manyworlds.utils.debug_visualizer import DebugVisualizer

FILE = $file  # noqa: E501
HEIGHT = $height
"""Height of the file's origin above the ground [m]."""
TIP_BODY = $tip
TIP_POS = $tip_pos
"""Point of this body that reaches, in its frame [m]."""
REACH = $reach
"""Largest distance of a goal from the base [m]."""
POSE = $pose
"""Default pose [rad or m]."""
$drives
SCALES = {
$scales
}
"""Change of a joint's target for an action of 1 [rad or m]. Joints without one hold their pose."""
TIP = SceneEntityCfg("robot", site_names="reaching_tip")
ARM = SceneEntityCfg("robot", joint_names=tuple(SCALES))


def robot() -> mujoco.MjSpec:
    """Return the robot, with a site at its tip."""
    spec = robot_spec(FILE, fixed_base=True)
    spec.body(TIP_BODY).add_site(name="reaching_tip", pos=TIP_POS, group=5)
    return spec


def tip_position(env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg = TIP) -> torch.Tensor:
    """Position of the tip relative to the file's origin [m], shape [num_envs, 3]."""
    data = env.scene.entity(asset_cfg.name).data
    return data.site_pos_w[:, asset_cfg.index("site")].squeeze(1) - data.root_link_pos_w


def _plain_tip_position(policy: OnnxPolicy, data: mujoco.MjData, params: dict[str, Any]) -> Any:
    """Return `tip_position` computed without an environment, shape [3]."""
    root = policy.description["entities"]["robot"]["root_body"]
    tip = root.rpartition("/")[0] + "/reaching_tip"
    return data.site(tip).xpos - data.body(root).xpos


PLAIN_OBSERVATION_FNS = {"tip_position": _plain_tip_position}
"""Functions that replace observation terms of this file where policies run in plain MuJoCo."""


def _onnx_tip_position(graph: ControlGraph, params: dict[str, Any]) -> Value:
    """Add `tip_position` to a graph, shape [3]."""
    root = graph.policy.entities["robot"]["root_body"]
    tip = root.rpartition("/")[0] + "/reaching_tip"
    return graph.position("site", tip) - graph.position("body", root)


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
    return torch.exp(-5.0 * distance(env, command_name, asset_cfg) / REACH)


@dataclass(kw_only=True)
class ReachGoalCommandCfg(CommandTermCfg):
    """Configuration of goals that the robot reaches without touching the ground or itself."""

    def build(self, env: ManagerBasedRlEnv) -> ReachGoalCommand:
        """Build the term."""
        return ReachGoalCommand(self, env)


class ReachGoalCommand(CommandTerm):
    """Command with a goal position for each world."""

    cfg: ReachGoalCommandCfg
    state_attributes = (*CommandTerm.state_attributes, "goal")

    def __init__(self, cfg: ReachGoalCommandCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(cfg, env)
        points = reachable_points(robot(), TIP_BODY, TIP_POS, tuple(SCALES), HEIGHT)
        self.points = torch.tensor(points, dtype=torch.float32, device=self.device)
        self.goal = torch.zeros(self.num_envs, 3, device=self.device)

    @property
    def command(self) -> torch.Tensor:
        """Goals relative to the file's origin [m], shape [num_envs, 3]."""
        return self.goal

    def _resample_command(self, env_ids: torch.Tensor) -> None:
        rows = self.random.integers(0, len(self.points), env_ids=env_ids)
        self.goal[env_ids] = self.points[rows]

    def _update_command(self, env_ids: torch.Tensor | None) -> None:
        """Do nothing: goals do not depend on the state."""

    def _update_metrics(self) -> None:
        """Do nothing: the task's metrics are separate terms."""

    def _debug_vis_impl(self, visualizer: DebugVisualizer) -> None:
        for env in visualizer.get_env_indices(self.num_envs):
            root = self._env.scene.entity("robot").data.root_link_pos_w[env]
            place = (root + self.goal[env]).cpu().numpy()
            visualizer.add_sphere(place, 0.04 * REACH, (0.2, 0.8, 0.3, 0.6))


def env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Return the environment; `play` is for playback."""
    arm = EntityCfg(
        spec_fn=robot,
        init_state=EntityCfg.InitialStateCfg(pos=(0.0, 0.0, HEIGHT), joint_pos={**POSE, ".*": 0.0}),
        articulation=EntityArticulationInfoCfg(
            actuators=tuple(
                BuiltinPositionActuatorCfg(
                    target_names_expr=(name,),
                    stiffness=drive.stiffness,
                    damping=drive.damping,
                    effort_limit=drive.effort_limit,
                    armature=drive.armature,
                )
                for name, drive in DRIVES.items()
            ),
            file_actuators="replace",  # instead of those of the file, if it has some
        ),
    )
    return ManagerBasedRlEnvCfg(
        scene=SceneCfg(
            num_envs=16 if play else 512,
            entities={"robot": arm},
            terrain=TerrainEntityCfg(),  # floor, light and sky
            extent=1.0,  # reference length of shadows [m]
        ),
        sim=SimulationCfg(mujoco=MujocoCfg(timestep=$timestep)),
        decimation=$decimation,
        episode_length_s=1e9 if play else 6.0,
        commands={"goal": ReachGoalCommandCfg(resampling_time_range=(3.0, 3.0), debug_vis=True)},
        actions={
            "joints": mdp.JointPositionActionCfg(
                entity_name="robot", actuator_names=tuple(SCALES), scale=SCALES
            )
        },
        observations={
            "actor": ObservationGroupCfg(terms=observation_terms()),
            "critic": ObservationGroupCfg(terms=observation_terms()),
        },
        rewards={
            "reach": RewardTermCfg(func=reach, weight=1.0, params={"command_name": "goal"}),
            "smooth": RewardTermCfg(func=mdp.action_rate_l2, weight=-0.003),
        },
        terminations={
            "time_out": TerminationTermCfg(func=mdp.time_out, time_out=True),
            "diverged": TerminationTermCfg(func=mdp.bad_world),
        },
        events={
            "joints": EventTermCfg(
                func=mdp.reset_joints_by_offset,
                mode="reset",
                params={
                    "position_range": (-0.1, 0.1),
                    "velocity_range": (0.0, 0.0),
                    "asset_cfg": ARM,
                },
            )
        },
        metrics={"distance": MetricsTermCfg(func=distance, params={"command_name": "goal"})},
        viewer=ViewerConfig(
            origin_type=ViewerConfig.OriginType.ASSET_BODY,
            entity_name="robot",
            body_name=$root,
            lookat=(0.0, 0.0, 0.3 * REACH),
            distance=2.4 * REACH,
            elevation=-25.0,
        ),
    )


def observation_terms() -> dict[str, ObservationTermCfg]:
    """Return the observations of a network."""
    return {
        "joint_pos": ObservationTermCfg(func=mdp.joint_pos_rel, params={"asset_cfg": ARM}),
        "joint_vel": ObservationTermCfg(
            func=mdp.joint_vel_rel, params={"asset_cfg": ARM}, scale=0.1
        ),
        "tip": ObservationTermCfg(func=tip_position),
        "goal": ObservationTermCfg(func=mdp.generated_commands, params={"command_name": "goal"}),
        "actions": ObservationTermCfg(func=mdp.last_action),
    }


def rl_cfg() -> RslRlOnPolicyRunnerCfg:
    """Return the learner's settings."""
    return RslRlOnPolicyRunnerCfg(
        experiment_name="$stem",
        max_iterations=200,
        actor=RslRlModelCfg(obs_normalization=True, distribution_cfg=gaussian_distribution()),
        critic=RslRlModelCfg(obs_normalization=True),
        algorithm=RslRlPpoAlgorithmCfg(entropy_coef=0.002),
    )


register_task("$name", env_cfg(), env_cfg(play=True), rl_cfg())
''')


def reach_source(name: str, path: Path, file: Path, model: FixedBaseModel) -> str:
    """Return the program of a task in which a robot with a fixed base reaches goals.

    Args:
        name: name of the task.
        path: path of the program.
        file: the robot's model.
        model: facts about the robot.
    """
    pose = "{}"
    if model.pose:
        pose = f"{{\n{numbers(model.pose)}\n}}"
    return _REACH.substitute(
        name=name,
        stem=path.stem,
        file=path_source(file, path.parent),
        height=repr(model.height),
        tip=json.dumps(model.tip),
        tip_pos=repr(model.tip_pos),
        reach=repr(model.reach),
        pose=pose,
        drives=drive_constant(model.drives),
        scales=numbers(model.scales),
        root=json.dumps(model.root),
        timestep=repr(model.timestep),
        decimation=max(1, round(_CONTROL_S / model.timestep)),
    )
