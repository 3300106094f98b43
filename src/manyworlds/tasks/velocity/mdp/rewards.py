"""Rewards of legged locomotion, each of shape [num_envs].

Kernels are `exp(-error^2 / std^2)`. Costs of the feet apply only if the commanded speed,
`|v_xy| + |w_z|`, is above a threshold.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch

from manyworlds.envs.mdp.rewards import inverse_deviations
from manyworlds.managers import ManagerTermBase, RewardTermCfg, SceneEntityCfg
from manyworlds.sensor import BuiltinSensor, ContactSensor, TerrainHeightSensor
from manyworlds.tasks.velocity.mdp.terrain_utils import terrain_normal_from_sensors
from manyworlds.tasks.velocity.mdp.velocity_command import UniformVelocityCommand, total_speed
from manyworlds.utils.math import dot
from manyworlds.validation.worlds import assign, takes_worlds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.utils.debug_visualizer import DebugVisualizer
    from manyworlds.validation.worlds import EnvIds

_ROBOT = SceneEntityCfg("robot")
_NORMAL = (0.9, 0.6, 0.1, 0.7)
_AXIS = (0.2, 0.4, 0.9, 0.7)
_ARROW_LENGTH = 0.4  # [m]


def track_linear_velocity(
    env: ManagerBasedRlEnv, std: float, command_name: str, asset_cfg: SceneEntityCfg = _ROBOT
) -> torch.Tensor:
    """Kernel of the error of the root's linear velocity, shape [num_envs].

    The error includes the vertical velocity, whose target is 0; `std` is in m/s.
    """
    velocity = env.scene.entity(asset_cfg.name).data.root_link_lin_vel_b
    error = _squared_norm(velocity[:, :2] - _command(env, command_name)[:, :2])
    return _kernel(error + velocity[:, 2].square(), std)


def track_angular_velocity(
    env: ManagerBasedRlEnv, std: float, command_name: str, asset_cfg: SceneEntityCfg = _ROBOT
) -> torch.Tensor:
    """Kernel of the error of the root's angular velocity, shape [num_envs].

    The error includes roll and pitch rates, whose targets are 0; `std` is in rad/s.
    """
    velocity = env.scene.entity(asset_cfg.name).data.root_link_ang_vel_b
    error = (velocity[:, 2] - _command(env, command_name)[:, 2]).square()
    return _kernel(error + _squared_norm(velocity[:, :2]), std)


def command_progress(
    env: ManagerBasedRlEnv,
    command_name: str,
    command_threshold: float = 0.1,
    asset_cfg: SceneEntityCfg = _ROBOT,
) -> torch.Tensor:
    """Velocity along the commanded one, as a share of it from -1 to 1, shape [num_envs].

    Unlike a kernel, it has the same slope at all velocities. Zero for commanded linear speeds
    below `command_threshold` [m/s].
    """
    velocity = env.scene.entity(asset_cfg.name).data.root_link_lin_vel_b[:, :2]
    command = _command(env, command_name)[:, :2]
    squared = _squared_norm(command)
    share = (dot(velocity, command) / squared.clamp(min=1e-6)).clamp(-1.0, 1.0)
    return share * (squared > command_threshold**2)


def turn_error(
    env: ManagerBasedRlEnv, command_name: str, asset_cfg: SceneEntityCfg = _ROBOT
) -> torch.Tensor:
    """Absolute error of the root's yaw rate [rad/s], shape [num_envs].

    Unlike a kernel, it has the same slope at all rates, and roll and pitch rates do not hide it.
    """
    velocity = env.scene.entity(asset_cfg.name).data.root_link_ang_vel_b
    return (velocity[:, 2] - _command(env, command_name)[:, 2]).abs()


class upright(ManagerTermBase):  # noqa: N801
    """Kernel of the sine of the angle between a body's z axis and the direction of gravity.

    With ray-cast sensors, the terrain's normal is used instead of gravity. The value is 1 in worlds
    without gravity.

    Raises:
        ValueError: more than one body is selected.
    """

    selects = frozenset({"body"})

    def __init__(self, cfg: RewardTermCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        asset_cfg: SceneEntityCfg = cfg.params.get("asset_cfg", _ROBOT)
        indexing = env.scene.entity(asset_cfg.name).indexing
        self._body = indexing.root_body_id
        if asset_cfg.body_names is not None:
            bodies = indexing.body_ids[asset_cfg.index("body")].tolist()
            if len(bodies) > 1:
                raise ValueError(
                    f"upright takes one body, but asset_cfg names {asset_cfg.body_names}."
                )
            if bodies:
                self._body = bodies[0]
        self._sensors: tuple[str, ...] | None = cfg.params.get("terrain_sensor_names")

    def __call__(
        self,
        env: ManagerBasedRlEnv,
        std: float,
        asset_cfg: SceneEntityCfg = _ROBOT,
        terrain_sensor_names: tuple[str, ...] | None = None,
    ) -> torch.Tensor:
        """Compute the term, shape [num_envs].

        Args:
            env: the environment.
            std: standard deviation of the kernel, as a sine.
            asset_cfg: the entity and its body; the root if no body is selected.
            terrain_sensor_names: ray-cast sensors that measure the terrain's normal; None for
                gravity.
        """
        matrix = env.sim.data.xmat[:, self._body]
        if terrain_sensor_names is None:
            normal = env.scene.entity(asset_cfg.name).data.gravity_vec_w  # the sign has no effect
        else:
            normal = terrain_normal_from_sensors(env, terrain_sensor_names)
        return _kernel(_squared_norm((normal.unsqueeze(2) * matrix[:, :, :2]).sum(dim=1)), std)

    def debug_vis(self, visualizer: DebugVisualizer) -> None:
        """Draw the terrain's normal and the body's z axis, if sensors measure the normal."""
        if self._sensors is None:
            return
        data = self._env.sim.data
        normals = terrain_normal_from_sensors(self._env, self._sensors)
        for env in visualizer.get_env_indices(self.num_envs):
            start = data.xpos[env, self._body].cpu().numpy()
            for axis, color in ((normals[env], _NORMAL), (data.xmat[env, self._body, :, 2], _AXIS)):
                end = start + _ARROW_LENGTH * axis.cpu().numpy()
                visualizer.add_arrow(start, end, color, width=0.01)


class variable_posture(ManagerTermBase):  # noqa: N801
    """Proximity to the default joint positions: `exp(-mean(((q - q_default) / std)^2))`.

    The standard deviations depend on the commanded speed.

    Raises:
        ValueError: a joint has no standard deviation, or one that is not positive.
    """

    selects = frozenset({"joint"})

    def __init__(self, cfg: RewardTermCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        params = cfg.params
        entity = env.scene.entity(params["asset_cfg"].name)
        self._inverse_std = torch.stack(
            [
                inverse_deviations(entity, params["asset_cfg"], params[f"std_{gait}"])
                for gait in ("standing", "walking", "running")
            ]
        )

    def __call__(
        self,
        env: ManagerBasedRlEnv,
        std_standing: Mapping[str, float],
        std_walking: Mapping[str, float],
        std_running: Mapping[str, float],
        asset_cfg: SceneEntityCfg,
        command_name: str,
        walking_threshold: float = 0.5,
        running_threshold: float = 1.5,
    ) -> torch.Tensor:
        """Compute the term, shape [num_envs].

        Args:
            env: the environment.
            std_standing: standard deviations [rad or m] by regular expression on joint names, for
                speeds below `walking_threshold`; read when the term is built.
            std_walking: standard deviations for speeds below `running_threshold`.
            std_running: standard deviations for higher speeds.
            asset_cfg: the entity and its joints.
            command_name: name of the velocity command.
            walking_threshold: speed above which the robot walks [m/s + rad/s].
            running_threshold: speed above which the robot runs [m/s + rad/s].
        """
        data = env.scene.entity(asset_cfg.name).data
        ids = asset_cfg.index("joint")
        speed = commanded_speed(env, command_name)
        gait = (speed >= walking_threshold).long() + (speed >= running_threshold)
        error = data.joint_pos[:, ids] - data.default_joint_pos[:, ids]
        return torch.exp(-(error * self._inverse_std[gait]).square().mean(dim=1))


def body_angular_velocity_penalty(
    env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg = _ROBOT
) -> torch.Tensor:
    """Squared horizontal angular velocity of bodies [rad^2/s^2], shape [num_envs].

    Raises:
        ValueError: no body is selected.
    """
    data = env.scene.entity(asset_cfg.name).data
    velocity = data.body_link_ang_vel_w[:, asset_cfg.index("body"), :2]
    _require_some(velocity, asset_cfg, "body")
    return velocity.square().flatten(1).sum(dim=1)


def angular_momentum_penalty(env: ManagerBasedRlEnv, sensor_name: str) -> torch.Tensor:
    """Squared angular momentum of a sensor [kg^2 m^4/s^2], shape [num_envs]."""
    return _squared_norm(env.scene.sensor(sensor_name, BuiltinSensor).data)


def feet_air_time(
    env: ManagerBasedRlEnv,
    sensor_name: str,
    threshold_min: float = 0.05,
    threshold_max: float = 0.5,
    command_name: str | None = None,
    command_threshold: float = 0.5,
    mean: bool = False,
) -> torch.Tensor:
    """Number of feet with an air time between two thresholds [s], shape [num_envs].

    With `mean`, it is their share of all feet, for robots with different numbers of feet.
    """
    time = env.scene.sensor(sensor_name, ContactSensor).data.current_air_time
    swinging = ((time > threshold_min) & (time < threshold_max)).float()
    if mean:
        swinging = swinging.mean(dim=1)
    else:
        swinging = swinging.sum(dim=1)
    return _where_moving(env, swinging, command_name, command_threshold)


def feet_single_stance(
    env: ManagerBasedRlEnv,
    sensor_name: str,
    command_name: str | None = None,
    command_threshold: float = 0.2,
) -> torch.Tensor:
    """1 where exactly one foot is on the ground and -1 where none is, shape [num_envs]."""
    time = env.scene.sensor(sensor_name, ContactSensor).data.current_contact_time
    standing = (time > 0.0).sum(dim=1)
    value = (standing == 1).float() - (standing == 0).float()
    return _where_moving(env, value, command_name, command_threshold)


def feet_clearance(
    env: ManagerBasedRlEnv,
    target_height: float,
    height_sensor_name: str,
    command_name: str | None = None,
    command_threshold: float = 0.01,
    asset_cfg: SceneEntityCfg = _ROBOT,
) -> torch.Tensor:
    """Sum of the feet's height errors, weighted by their speeds [m^2/s], shape [num_envs].

    Equal to the sum of `|height - target_height| * |v_xy|` over the feet.

    Raises:
        ValueError: no site is selected.
    """
    heights = env.scene.sensor(height_sensor_name, TerrainHeightSensor).data.heights
    off = (heights - target_height).abs()
    cost = (off * _squared_norm(_feet_velocity(env, asset_cfg)).sqrt()).sum(dim=1)
    return _where_moving(env, cost, command_name, command_threshold)


class feet_swing_height(ManagerTermBase):  # noqa: N801
    """Squared relative error of the maximum height of a swing, counted at touchdown."""

    state_attributes = ("_peak",)

    def __init__(self, cfg: RewardTermCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        name = cfg.params["height_sensor_name"]
        heights = env.scene.sensor(name, TerrainHeightSensor).data.heights
        with torch.inference_mode(False):
            self._peak = torch.zeros(heights.shape, device=self.device)

    def __call__(
        self,
        env: ManagerBasedRlEnv,
        sensor_name: str,
        height_sensor_name: str,
        target_height: float,
        command_name: str,
        command_threshold: float,
    ) -> torch.Tensor:
        """Compute the term, shape [num_envs].

        Args:
            env: the environment.
            sensor_name: contact sensor of the feet, which tracks air time.
            height_sensor_name: `TerrainHeightSensor` of the same feet.
            target_height: target of the maximum height of a swing [m].
            command_name: name of the velocity command.
            command_threshold: speed above which the cost applies [m/s + rad/s].
        """
        sensor = env.scene.sensor(sensor_name, ContactSensor)
        touching = sensor.data.found > 0
        heights = env.scene.sensor(height_sensor_name, TerrainHeightSensor).data.heights
        torch.where(touching, self._peak, torch.maximum(self._peak, heights), out=self._peak)
        landed = sensor.compute_first_contact(dt=env.step_dt)
        cost = ((self._peak / target_height - 1.0).square() * landed).sum(dim=1)
        self._peak.masked_fill_(touching, 0.0)
        return _where_moving(env, cost, command_name, command_threshold)

    @takes_worlds
    def reset(self, env_ids: EnvIds = None) -> None:
        """Reset the maximum heights of the given worlds."""
        assign(self._peak, 0.0, env_ids)


def feet_slip(
    env: ManagerBasedRlEnv,
    sensor_name: str,
    command_name: str,
    command_threshold: float = 0.01,
    asset_cfg: SceneEntityCfg = _ROBOT,
) -> torch.Tensor:
    """Sum of squared horizontal speeds of feet in contact [m^2/s^2], shape [num_envs].

    Raises:
        ValueError: no site is selected.
    """
    touching = env.scene.sensor(sensor_name, ContactSensor).data.found > 0
    cost = (_squared_norm(_feet_velocity(env, asset_cfg)) * touching).sum(dim=1)
    return _where_moving(env, cost, command_name, command_threshold)


def soft_landing(
    env: ManagerBasedRlEnv,
    sensor_name: str,
    command_name: str | None = None,
    command_threshold: float = 0.05,
) -> torch.Tensor:
    """Sum of contact forces [N] of feet that touched down in this step, shape [num_envs]."""
    sensor = env.scene.sensor(sensor_name, ContactSensor)
    landed = sensor.compute_first_contact(dt=env.step_dt)
    cost = (_squared_norm(sensor.data.force).sqrt() * landed).sum(dim=1)
    return _where_moving(env, cost, command_name, command_threshold)


def commanded_speed(env: ManagerBasedRlEnv, command_name: str) -> torch.Tensor:
    """Sum of linear and angular speed of a velocity command, shape [num_envs]."""
    term = env.command_manager.get_term(command_name)
    if isinstance(term, UniformVelocityCommand):
        return term.speed
    return total_speed(term.command)


def _command(env: ManagerBasedRlEnv, name: str) -> torch.Tensor:
    return env.command_manager.get_command(name)


def _where_moving(
    env: ManagerBasedRlEnv, cost: torch.Tensor, command_name: str | None, threshold: float
) -> torch.Tensor:
    if command_name is None:
        return cost
    return cost * (commanded_speed(env, command_name) > threshold)


def _feet_velocity(env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg) -> torch.Tensor:
    """Return horizontal velocities of sites in the world [m/s], shape [num_envs, sites, 2]."""
    velocity = env.scene.entity(asset_cfg.name).data.site_lin_vel_w[:, asset_cfg.index("site"), :2]
    _require_some(velocity, asset_cfg, "site")
    return velocity


def _require_some(values: torch.Tensor, asset_cfg: SceneEntityCfg, kind: str) -> None:
    """Raise if an empty list of names selects no element, shape [num_envs, elements, ...]."""
    if values.shape[1] == 0:
        raise ValueError(
            f"{asset_cfg!r} selects no {kind} of '{asset_cfg.name}': set {kind}_names."
        )


def _squared_norm(vectors: torch.Tensor) -> torch.Tensor:
    return dot(vectors, vectors)


def _kernel(squared_error: torch.Tensor, std: float) -> torch.Tensor:
    return torch.exp(squared_error * (-1.0 / std**2))
