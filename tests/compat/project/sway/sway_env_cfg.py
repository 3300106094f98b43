"""The environment and the learner."""

import mujoco
from mjlab.actuator import BuiltinPositionActuatorCfg
from mjlab.entity import EntityArticulationInfoCfg, EntityCfg
from mjlab.envs import ManagerBasedRlEnvCfg
from mjlab.envs.mdp.actions import JointPositionActionCfg
from mjlab.managers.action_manager import ActionTermCfg
from mjlab.managers.curriculum_manager import CurriculumTermCfg
from mjlab.managers.event_manager import EventTermCfg
from mjlab.managers.metrics_manager import MetricsTermCfg
from mjlab.managers.observation_manager import ObservationGroupCfg, ObservationTermCfg
from mjlab.managers.reward_manager import RewardTermCfg
from mjlab.managers.scene_entity_config import SceneEntityCfg
from mjlab.managers.termination_manager import TerminationTermCfg
from mjlab.rl import (
    RslRlModelCfg,
    RslRlOnPolicyRunnerCfg,
    RslRlPpoAlgorithmCfg,
)
from mjlab.scene import SceneCfg
from mjlab.sensor import ContactMatch, ContactSensorCfg
from mjlab.sim import MujocoCfg, SimulationCfg
from mjlab.terrains import TerrainEntityCfg
from mjlab.utils.noise import UniformNoiseCfg as Unoise
from mjlab.utils.spec_config import CollisionCfg
from mjlab.viewer import ViewerConfig

from . import mdp

_XML = """
<mujoco>
  <worldbody>
    <body name="rail" pos="0 0 1.5">
      <geom name="rail" type="capsule" fromto="-1 0 0 1 0 0" size=".02" mass="1"/>
      <body name="cart">
        <joint name="slide" type="slide" axis="1 0 0" range="-1 1" damping="1"/>
        <geom name="cart_collision" type="box" size=".1 .1 .05" mass="1"/>
        <body name="pole">
          <joint name="swing" type="hinge" axis="0 1 0" damping=".01"/>
          <geom name="pole_collision" type="capsule" fromto="0 0 .1 0 0 .8" size=".03" mass=".1"/>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def get_robot_cfg() -> EntityCfg:
    """Configure the robot."""
    return EntityCfg(
        spec_fn=lambda: mujoco.MjSpec.from_string(_XML),
        init_state=EntityCfg.InitialStateCfg(joint_pos={".*": 0.0}, joint_vel={".*": 0.0}),
        articulation=EntityArticulationInfoCfg(
            actuators=(
                BuiltinPositionActuatorCfg(
                    target_names_expr=("slide",), stiffness=100.0, damping=10.0, effort_limit=50.0
                ),
            ),
            soft_joint_pos_limit_factor=0.9,
        ),
        collisions=(CollisionCfg(geom_names_expr=(".*_collision",), condim=3, friction=(0.6,)),),
    )


def _scene() -> SceneCfg:
    touch = ContactSensorCfg(
        name="pole_touch",
        primary=ContactMatch(mode="geom", pattern="pole_collision", entity="robot"),
        secondary=ContactMatch(mode="body", pattern="terrain"),
        fields=("found", "force"),
        reduce="netforce",
    )
    return SceneCfg(
        num_envs=8,
        env_spacing=3.0,
        terrain=TerrainEntityCfg(terrain_type="plane"),
        entities={"robot": get_robot_cfg()},
        sensors=(touch,),
    )


def _observations(play: bool) -> dict[str, ObservationGroupCfg]:
    actor_terms = {
        "joint_pos": ObservationTermCfg(
            func=mdp.joint_pos_rel, noise=Unoise(n_min=-0.01, n_max=0.01), history_length=2
        ),
        "joint_vel": ObservationTermCfg(
            func=mdp.joint_vel_rel, noise=Unoise(n_min=-0.1, n_max=0.1), scale=0.1
        ),
        "actions": ObservationTermCfg(func=mdp.last_action),
    }
    return {
        "actor": ObservationGroupCfg(
            terms=actor_terms, concatenate_terms=True, enable_corruption=not play
        ),
        "critic": ObservationGroupCfg(
            terms={**actor_terms}, concatenate_terms=True, enable_corruption=False
        ),
    }


def _events() -> dict[str, EventTermCfg]:
    return {
        "reset_base": EventTermCfg(func=mdp.reset_scene_to_default, mode="reset"),
        "reset_joints": EventTermCfg(
            func=mdp.reset_joints_by_offset,
            mode="reset",
            params={
                "position_range": (-0.1, 0.1),
                "velocity_range": (-0.1, 0.1),
                "asset_cfg": SceneEntityCfg("robot", joint_names=(".*",)),
            },
        ),
        "friction": EventTermCfg(
            func=mdp.randomize_sliding,
            mode="startup",
            params={
                "friction_range": (0.3, 1.2),
                "asset_cfg": SceneEntityCfg("robot", geom_names=(".*_collision",)),
            },
        ),
    }


def _rewards() -> dict[str, RewardTermCfg]:
    swing = SceneEntityCfg("robot", joint_names=("swing",))
    return {
        "upright": RewardTermCfg(
            func=mdp.upright_exp, weight=1.0, params={"std": 0.5, "asset_cfg": swing}
        ),
        "smooth": RewardTermCfg(func=mdp.smooth_action, weight=-0.01, params={"rate": 0.1}),
        "action_rate_l2": RewardTermCfg(func=mdp.action_rate_l2, weight=-0.01),
        "dof_pos_limits": RewardTermCfg(
            func=mdp.joint_pos_limits,
            weight=-1.0,
            params={"asset_cfg": SceneEntityCfg("robot", joint_names=("slide",))},
        ),
    }


def sway_env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Keep the pole up by moving the cart."""
    actions: dict[str, ActionTermCfg] = {
        "joint_pos": JointPositionActionCfg(
            entity_name="robot", actuator_names=(".*",), scale=0.5, use_default_offset=True
        )
    }
    stages = {
        "reward_name": "action_rate_l2",
        "stages": [{"step": 0, "weight": -0.01}, {"step": 24000, "weight": -0.1}],
    }
    terminations = {
        "time_out": TerminationTermCfg(func=mdp.time_out, time_out=True),
        "nan": TerminationTermCfg(func=mdp.nan_detection),
    }
    return ManagerBasedRlEnvCfg(
        scene=_scene(),
        observations=_observations(play),
        actions=actions,
        events=_events(),
        rewards=_rewards(),
        terminations=terminations,
        curriculum={"action_rate": CurriculumTermCfg(func=mdp.reward_curriculum, params=stages)},
        metrics={"mean_action_acc": MetricsTermCfg(func=mdp.mean_action_acc)},
        viewer=ViewerConfig(
            origin_type=ViewerConfig.OriginType.ASSET_BODY,
            entity_name="robot",
            body_name="cart",
            distance=3.0,
        ),
        sim=SimulationCfg(
            nconmax=35, njmax=100, mujoco=MujocoCfg(timestep=0.005, iterations=10, ls_iterations=20)
        ),
        decimation=4,
        episode_length_s=int(1e9) if play else 2.0,
    )


def sway_ppo_runner_cfg() -> RslRlOnPolicyRunnerCfg:
    """Configure the learner."""
    return RslRlOnPolicyRunnerCfg(
        actor=RslRlModelCfg(
            hidden_dims=(32, 32),
            activation="elu",
            obs_normalization=True,
            distribution_cfg={
                "class_name": "GaussianDistribution",
                "init_std": 1.0,
                "std_type": "scalar",
            },
        ),
        critic=RslRlModelCfg(hidden_dims=(32, 32), activation="elu", obs_normalization=True),
        algorithm=RslRlPpoAlgorithmCfg(entropy_coef=0.01, num_learning_epochs=2),
        experiment_name="sway",
        save_interval=50,
        num_steps_per_env=24,
        max_iterations=100,
    )
