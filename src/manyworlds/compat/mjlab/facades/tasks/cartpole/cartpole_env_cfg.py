"""mjlab's cartpole tasks, with this project's cartpole."""

from __future__ import annotations

import math

import mujoco

from manyworlds.actuator import XmlActuatorCfg
from manyworlds.asset_zoo.cartpole import MOTOR_FORCE, cartpole_spec
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from manyworlds.envs import ManagerBasedRlEnvCfg, mdp
from manyworlds.managers import (
    EventTermCfg,
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
from manyworlds.tasks.cartpole.cartpole_env_cfg import cartpole_smooth_reward, pole_angle_cos_sin
from manyworlds.terrains import TerrainEntityCfg
from manyworlds.utils.viewer_config import ViewerConfig

__all__ = [
    "cartpole_balance_env_cfg",
    "cartpole_ppo_runner_cfg",
    "cartpole_smooth_reward",
    "cartpole_swingup_env_cfg",
    "pole_angle_cos_sin",
]

_FOREVER = 1e9  # longer than any episode [s]


def cartpole_balance_env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Return the task of keeping the pole upright, starting near the upright position."""
    return _env_cfg(hinge_angle=0.0, slider_range=(-0.1, 0.1), play=play)


def cartpole_swingup_env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Return the task of swinging the hanging pole up and keeping it upright."""
    return _env_cfg(hinge_angle=math.pi, slider_range=(0.0, 0.0), play=play)


def cartpole_ppo_runner_cfg() -> RslRlOnPolicyRunnerCfg:
    """Return the PPO settings of both tasks."""
    return RslRlOnPolicyRunnerCfg(
        experiment_name="cartpole",
        num_steps_per_env=32,
        max_iterations=500,
        actor=RslRlModelCfg(hidden_dims=(64, 64), distribution_cfg=gaussian_distribution()),
        critic=RslRlModelCfg(hidden_dims=(64, 64)),
        algorithm=RslRlPpoAlgorithmCfg(entropy_coef=0.01),
    )


def _get_spec() -> mujoco.MjSpec:
    """Build the cartpole with a motor, whose control of 1 is its maximum force."""
    spec = cartpole_spec()
    motor = spec.add_actuator(
        name="slider",
        target="slider",
        trntype=mujoco.mjtTrn.mjTRN_JOINT,
        ctrllimited=True,
        ctrlrange=(-1.0, 1.0),
    )
    motor.set_to_motor()
    motor.gear[0] = MOTOR_FORCE
    return spec


def _terms() -> dict[str, ObservationTermCfg]:
    return {
        "cart_pos": ObservationTermCfg(
            func=mdp.joint_pos_rel,
            params={"asset_cfg": SceneEntityCfg("cartpole", joint_names=("slider",))},
        ),
        "pole_angle": ObservationTermCfg(
            func=pole_angle_cos_sin,
            params={"asset_cfg": SceneEntityCfg("cartpole", joint_names=("hinge_1",))},
        ),
        "cart_vel": ObservationTermCfg(
            func=mdp.joint_vel_rel,
            params={"asset_cfg": SceneEntityCfg("cartpole", joint_names=("slider",))},
        ),
        "pole_vel": ObservationTermCfg(
            func=mdp.joint_vel_rel,
            params={"asset_cfg": SceneEntityCfg("cartpole", joint_names=("hinge_1",))},
        ),
    }


def _env_cfg(
    hinge_angle: float, slider_range: tuple[float, float], play: bool
) -> ManagerBasedRlEnvCfg:
    cartpole = EntityCfg(
        spec_fn=_get_spec,
        init_state=EntityCfg.InitialStateCfg(joint_pos={"slider": 0.0, "hinge_1": hinge_angle}),
        articulation=EntityArticulationInfoCfg(
            actuators=(XmlActuatorCfg(target_names_expr=("slider",)),)
        ),
    )
    actor = ObservationGroupCfg(terms=_terms(), enable_corruption=not play)
    return ManagerBasedRlEnvCfg(
        decimation=5,
        episode_length_s=_FOREVER if play else 50.0,
        scene=SceneCfg(
            env_spacing=4.0, terrain=TerrainEntityCfg(), entities={"cartpole": cartpole}
        ),
        sim=SimulationCfg(mujoco=MujocoCfg(timestep=0.01, disableflags=("contact",))),
        viewer=ViewerConfig(
            origin_type=ViewerConfig.OriginType.ASSET_BODY,
            entity_name="cartpole",
            body_name="cart",
            distance=4.0,
            elevation=-15.0,
            azimuth=0.0,
        ),
        observations={"actor": actor, "critic": ObservationGroupCfg(terms=_terms())},
        actions={
            "effort": mdp.JointEffortActionCfg(entity_name="cartpole", actuator_names=("slider",))
        },
        events={
            "reset_slider": EventTermCfg(
                func=mdp.reset_joints_by_offset,
                mode="reset",
                params={
                    "position_range": slider_range,
                    "velocity_range": (-0.01, 0.01),
                    "asset_cfg": SceneEntityCfg("cartpole", joint_names=("slider",)),
                },
            ),
            "reset_hinge": EventTermCfg(
                func=mdp.reset_joints_by_offset,
                mode="reset",
                params={
                    "position_range": (-0.034, 0.034),
                    "velocity_range": (-0.01, 0.01),
                    "asset_cfg": SceneEntityCfg("cartpole", joint_names=("hinge_1",)),
                },
            ),
        },
        rewards={
            "smooth_reward": RewardTermCfg(
                func=cartpole_smooth_reward,
                weight=1.0,
                params={
                    "cart_cfg": SceneEntityCfg("cartpole", joint_names=("slider",)),
                    "hinge_cfg": SceneEntityCfg("cartpole", joint_names=("hinge_1",)),
                },
            )
        },
        terminations={"time_out": TerminationTermCfg(func=mdp.time_out, time_out=True)},
    )
