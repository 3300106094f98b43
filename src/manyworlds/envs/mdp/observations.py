"""Observation terms, each of shape [num_envs, n]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mujoco
import torch

from manyworlds.envs.mdp import mirrors
from manyworlds.managers.scene_entity_config import SceneEntityCfg
from manyworlds.managers.symmetry import symmetry
from manyworlds.sensor import BuiltinSensor, RayCastSensor, Sensor
from manyworlds.sensor.builtin_sensor import ROTATIONS
from manyworlds.sim.gravity import gravity_direction

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv

_ROBOT = SceneEntityCfg("robot")
_BODIES = (mujoco.mjtObj.mjOBJ_BODY, mujoco.mjtObj.mjOBJ_XBODY)


@symmetry(mirrors.polar)
def base_lin_vel(env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg = _ROBOT) -> torch.Tensor:
    """Linear velocity of the root in its own frame [m/s], shape [num_envs, 3]."""
    return env.scene.entity(asset_cfg.name).data.root_link_lin_vel_b


@symmetry(mirrors.axial)
def base_ang_vel(env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg = _ROBOT) -> torch.Tensor:
    """Angular velocity of the root in its own frame [rad/s], shape [num_envs, 3]."""
    return env.scene.entity(asset_cfg.name).data.root_link_ang_vel_b


@symmetry(mirrors.polar)
def projected_gravity(env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg = _ROBOT) -> torch.Tensor:
    """Unit vector of gravity in the root's frame, or zero without gravity, shape [num_envs, 3]."""
    return env.scene.entity(asset_cfg.name).data.projected_gravity_b


@symmetry(mirrors.joint_positions)
def joint_pos_rel(
    env: ManagerBasedRlEnv, biased: bool = False, asset_cfg: SceneEntityCfg = _ROBOT
) -> torch.Tensor:
    """Joint positions relative to their defaults [rad or m], shape [num_envs, joints].

    Args:
        env: the environment.
        biased: return positions as measured by the encoders, bias included.
        asset_cfg: the entity and its joints.
    """
    data = env.scene.entity(asset_cfg.name).data
    ids = asset_cfg.index("joint")
    position = data.joint_pos_biased if biased else data.joint_pos
    return position[:, ids] - data.default_joint_pos[:, ids]


@symmetry(mirrors.joints)
def joint_vel_rel(env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg = _ROBOT) -> torch.Tensor:
    """Joint velocities relative to their defaults [rad/s or m/s], shape [num_envs, joints]."""
    data = env.scene.entity(asset_cfg.name).data
    ids = asset_cfg.index("joint")
    return data.joint_vel[:, ids] - data.default_joint_vel[:, ids]


@symmetry(mirrors.unchanged)
def variant_id(
    env: ManagerBasedRlEnv, one_hot: bool = False, asset_cfg: SceneEntityCfg = _ROBOT
) -> torch.Tensor:
    """Index of the variant of an entity in each world, shape [num_envs, 1].

    Args:
        env: the environment.
        one_hot: return a one-hot encoding, shape [num_envs, num_variants].
        asset_cfg: the entity.
    """
    variants = env.sim.world_to_variant[asset_cfg.name]
    if not one_hot:
        return variants[:, None].float()
    count = len(env.scene.entity(asset_cfg.name).variant_metadata.variant_names)
    return torch.nn.functional.one_hot(variants, count).float()


@symmetry(mirrors.actions)
def last_action(env: ManagerBasedRlEnv, action_name: str | None = None) -> torch.Tensor:
    """Unprocessed last action of one term or of all terms, shape [num_envs, action_dim].

    Args:
        env: the environment.
        action_name: name of the action term; None for the whole action vector.
    """
    if action_name is None:
        return env.action_manager.action
    return env.action_manager.get_term(action_name).raw_action


def action_mask(env: ManagerBasedRlEnv) -> torch.Tensor:
    """One for each action that a term reads, 0 for columns that pad them, [num_envs, action_dim].

    Only actions of a robot with fewer joints than others of a `BucketedRlEnv` are padded.
    """
    present = env.action_manager.present
    if present is None:
        return torch.ones_like(env.action_manager.action)
    return present.float().repeat(env.num_envs, 1)


@symmetry(mirrors.command)
def generated_commands(env: ManagerBasedRlEnv, command_name: str) -> torch.Tensor:
    """Current command of a command term, shape [num_envs, ...]."""
    return env.command_manager.get_command(command_name)


@symmetry(mirrors.builtin_sensor)
def builtin_sensor(env: ManagerBasedRlEnv, sensor_name: str) -> torch.Tensor:
    """Output of a MuJoCo sensor, in the sensor's units, shape [num_envs, sensor_dim]."""
    return env.scene.sensor(sensor_name, Sensor).data


@symmetry(mirrors.builtin_sensor)
def projected_gravity_from_sensor(env: ManagerBasedRlEnv, sensor_name: str) -> torch.Tensor:
    """Unit vector of gravity in a sensor's frame, or zero without gravity, shape [num_envs, 3].

    Args:
        env: the environment.
        sensor_name: `framezaxis` sensor of the world body with that frame as its reference, which
            measures the world's z axis in the frame. Noise and latency of the sensor are in the
            value as far as gravity points along -z; the rest of gravity is turned without them.

    Raises:
        ValueError: the sensor measures something else.
    """
    sensor = env.scene.sensor(sensor_name, BuiltinSensor)
    model = env.sim.mj_model
    index = model.sensor(sensor.name).id
    frame = model.sensor_refid[index]
    owner = mujoco.mjtObj(model.sensor_objtype[index])
    of_world = owner in _BODIES and model.sensor_objid[index] == 0
    kind = mujoco.mjtSensor(model.sensor_type[index])
    if kind != mujoco.mjtSensor.mjSENS_FRAMEZAXIS or not of_world or frame < 0:
        raise ValueError(
            f"projected_gravity_from_sensor needs a framezaxis sensor of the world body with a "
            f"reference frame, and '{sensor.name}' is another: give it obj=ObjRef('body', 'world') "
            "and a ref, or observe its output with builtin_sensor."
        )
    up = sensor.data
    field = ROTATIONS[mujoco.mjtObj(model.sensor_reftype[index])]
    rotation = getattr(env.sim.data, field)[:, frame]
    rest = gravity_direction(env.sim.model)
    rest[:, 2] += 1.0
    return torch.matmul(rest.unsqueeze(1), rotation).squeeze(1) - up


@symmetry(mirrors.rays)
def height_scan(
    env: ManagerBasedRlEnv,
    sensor_name: str,
    offset: float = 0.0,
    miss_value: float | None = None,
) -> torch.Tensor:
    """Height of a ray sensor's frame above the hit points of its rays [m], [num_envs, rays].

    Args:
        env: the environment.
        sensor_name: ray-cast sensor; each of its frames is compared with the hits of its own rays.
        offset: value that is subtracted from the heights [m].
        miss_value: value for rays without a hit [m]; None for the sensor's maximum distance.
    """
    sensor = env.scene.sensor(sensor_name, RayCastSensor)
    data = sensor.data
    hits = data.hit_pos_w[..., 2].unflatten(1, (data.frame_pos_w.shape[1], -1))
    heights = (data.frame_pos_w[..., 2:] - hits - offset).flatten(1)
    miss = sensor.cfg.max_distance if miss_value is None else miss_value
    return heights.masked_fill(data.distances < 0.0, miss)
