"""Cartpole tasks.

The smooth reward is that of the DeepMind Control Suite (Tassa et al., 2018, arXiv:1801.00690,
section 'cartpole'): the product of four factors for an upright pole, a centered cart, a small
control and a low velocity.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
import torch

from manyworlds.asset_zoo.cartpole import MOTOR_FORCE, cartpole_cfg
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg, mdp
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
from manyworlds.spec.edits import add_checker_material, add_ground_plane, add_sky
from manyworlds.utils.viewer_config import ViewerConfig

if TYPE_CHECKING:
    from manyworlds.rl import OnnxPolicy
    from manyworlds.share import ControlGraph, Value

_GAUSSIAN_AT_MARGIN = math.log(0.1)  # the kernel is 0.1 at the margin


_CART = SceneEntityCfg("cartpole", joint_names="slider")
_HINGE = SceneEntityCfg("cartpole", joint_names="hinge_1")


def pole_angle_cos_sin(env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg = _HINGE) -> torch.Tensor:
    """Cosine and sine of the pole's angle from upright, shape [num_envs, 2]."""
    angle = env.scene.entity(asset_cfg.name).data.joint_pos[:, asset_cfg.index("joint")]
    return torch.cat([angle.cos(), angle.sin()], dim=1)


def _plain_pole_angle(policy: OnnxPolicy, data: mujoco.MjData, params: dict[str, Any]) -> Any:
    """Return `pole_angle_cos_sin` computed without an environment, shape [2]."""
    angle = policy.joint_positions(data, params)
    return np.concatenate([np.cos(angle), np.sin(angle)])


PLAIN_OBSERVATION_FNS = {"pole_angle_cos_sin": _plain_pole_angle}
"""Observation functions of this task for policies in plain MuJoCo."""


def _onnx_pole_angle(graph: ControlGraph, params: dict[str, Any]) -> Value:
    angle = graph.joint_positions(params)
    return graph.concat([angle.cos(), angle.sin()])


ONNX_OBSERVATION_FNS = {"pole_angle_cos_sin": _onnx_pole_angle}
"""Observation functions of this task for policies in shared pages."""


def cartpole_smooth_reward(
    env: ManagerBasedRlEnv, cart_cfg: SceneEntityCfg = _CART, hinge_cfg: SceneEntityCfg = _HINGE
) -> torch.Tensor:
    """Product of factors in [0, 1] for the smooth reward of the module, shape [num_envs].

    The factors are 1 for an upright pole, a centered cart, no control, and a pole at rest.
    """
    data = env.scene.entity(cart_cfg.name).data
    cart = cart_cfg.index("joint")
    hinge = hinge_cfg.index("joint")
    upright = (data.joint_pos[:, hinge].cos() + 1.0) / 2.0
    centered = (1.0 + _gaussian(data.joint_pos[:, cart], margin=2.0)) / 2.0
    gentle = 1.0 - env.action_manager.action.clamp(-1.0, 1.0).square() / 5.0
    slow = (1.0 + _gaussian(data.joint_vel[:, hinge], margin=5.0)) / 2.0
    return (upright * centered * gentle * slow).squeeze(1)


def _gaussian(x: torch.Tensor, margin: float) -> torch.Tensor:
    """Gaussian kernel that is 1 at zero and 0.1 at the margin, shape [num_envs]."""
    return torch.exp(x.square() * (_GAUSSIAN_AT_MARGIN / margin**2))


def _backdrop(spec: mujoco.MjSpec) -> None:
    """Add sky, light and a floor without collisions."""
    add_sky(spec)
    spec.worldbody.add_light(
        pos=(0, -2, 6), dir=(0, 0.3, -1), type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL
    )
    floor = add_ground_plane(spec, name="floor")
    floor.contype = floor.conaffinity = 0
    floor.material = add_checker_material(spec, name="floor")


def _observations() -> dict[str, ObservationGroupCfg]:
    """Define observations: cart position, cosine and sine of the pole angle, and velocities."""
    terms = {
        "cart_pos": ObservationTermCfg(
            func=mdp.joint_pos_rel,
            params={"asset_cfg": SceneEntityCfg("cartpole", joint_names="slider")},
        ),
        "pole_angle": ObservationTermCfg(
            func=pole_angle_cos_sin,
            params={"asset_cfg": SceneEntityCfg("cartpole", joint_names="hinge_1")},
        ),
        "joint_vel": ObservationTermCfg(
            func=mdp.joint_vel_rel, params={"asset_cfg": SceneEntityCfg("cartpole")}
        ),
    }
    return {"actor": ObservationGroupCfg(terms=terms)}


def _cartpole_env_cfg(hinge_angle: float, hinge_range: float, play: bool) -> ManagerBasedRlEnvCfg:
    return ManagerBasedRlEnvCfg(
        decimation=5,
        episode_length_s=1e9 if play else 10.0,
        scene=SceneCfg(
            num_envs=9 if play else 1024,
            entities={"cartpole": cartpole_cfg(hinge_angle)},
            spec_fn=_backdrop,
        ),
        sim=SimulationCfg(mujoco=MujocoCfg(timestep=0.01, disableflags=("contact",))),
        viewer=ViewerConfig(
            entity_name="cartpole",
            body_name="rail",
            distance=4.6,
            elevation=-10.0,
            enable_shadows=False,
            enable_reflections=False,
        ),
        observations=_observations(),
        actions={
            "effort": mdp.JointEffortActionCfg(
                entity_name="cartpole", actuator_names=("slider",), scale=MOTOR_FORCE
            )
        },
        rewards={
            "smooth_reward": RewardTermCfg(
                func=cartpole_smooth_reward,
                weight=1.0,
                params={
                    "cart_cfg": SceneEntityCfg("cartpole", joint_names="slider"),
                    "hinge_cfg": SceneEntityCfg("cartpole", joint_names="hinge_1"),
                },
            )
        },
        terminations={
            "time_out": TerminationTermCfg(func=mdp.time_out, time_out=True),
            "diverged": TerminationTermCfg(func=mdp.bad_world),
        },
        events={
            "reset_cart": EventTermCfg(
                func=mdp.reset_joints_by_offset,
                mode="reset",
                params={
                    "position_range": (-0.1, 0.1),
                    "velocity_range": (-0.01, 0.01),
                    "asset_cfg": SceneEntityCfg("cartpole", joint_names="slider"),
                },
            ),
            "reset_hinge": EventTermCfg(
                func=mdp.reset_joints_by_offset,
                mode="reset",
                params={
                    "position_range": (-hinge_range, hinge_range),
                    "velocity_range": (-0.01, 0.01),
                    "asset_cfg": SceneEntityCfg("cartpole", joint_names="hinge_1"),
                },
            ),
        },
    )


def cartpole_balance_env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Return the task of keeping the pole upright, starting near the upright position."""
    return _cartpole_env_cfg(hinge_angle=0.0, hinge_range=0.034, play=play)


def cartpole_swingup_env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Return the task of swinging the hanging pole up and keeping it upright."""
    return _cartpole_env_cfg(hinge_angle=math.pi, hinge_range=0.1, play=play)


def cartpole_ppo_runner_cfg() -> RslRlOnPolicyRunnerCfg:
    """Return PPO settings that solve both tasks within a minute on two CPU cores."""
    return RslRlOnPolicyRunnerCfg(
        experiment_name="cartpole",
        num_steps_per_env=16,
        max_iterations=100,
        save_interval=50,
        obs_groups={"actor": ("actor",), "critic": ("actor",)},
        actor=RslRlModelCfg(hidden_dims=(64, 64), distribution_cfg=gaussian_distribution()),
        critic=RslRlModelCfg(hidden_dims=(64, 64)),
        algorithm=RslRlPpoAlgorithmCfg(entropy_coef=0.005),
    )
