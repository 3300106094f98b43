"""Event terms, called as `func(env, env_ids, **params)`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from manyworlds.entity import VariantEntityCfg
from manyworlds.entity.variants.config import MergedEntityCfg
from manyworlds.managers.event_manager import EventTermCfg
from manyworlds.managers.manager_base import ManagerTermBase
from manyworlds.managers.scene_entity_config import SceneEntityCfg
from manyworlds.utils.clocks import count_down
from manyworlds.utils.math import (
    pose_bounds,
    quat_apply,
    quat_from_euler_xyz,
    quat_mul,
)
from manyworlds.utils.math.vectors import cross
from manyworlds.validation.worlds import EnvIds, Worlds, takes_worlds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.utils.debug_visualizer import DebugVisualizer

Ranges = Mapping[str, tuple[float, float]]

_ROBOT = SceneEntityCfg("robot")


def resolve_env_ids(env: ManagerBasedRlEnv, env_ids: EnvIds) -> torch.Tensor:
    """Return the world ids on the device, int64, shape (n,); None selects all worlds."""
    return Worlds.of(env_ids, env.num_envs, env.device).ids


@takes_worlds
def reset_scene_to_default(env: ManagerBasedRlEnv, env_ids: EnvIds) -> None:
    """Set every entity to its initial state, at its world's origin."""
    worlds = Worlds.of(env_ids, env.num_envs, env.device)
    for entity in env.scene.entities.values():
        data = entity.data
        if entity.is_mocap or not entity.is_fixed_base:
            root = worlds.take(data.default_root_state)
            position = root[:, :3] + worlds.take(env.scene.env_origins)
            root = torch.cat([position, root[:, 3:]], dim=1)
            if entity.is_mocap:
                entity.write_mocap_pose_to_sim(root, worlds)
            else:
                entity.write_root_state_to_sim(root, worlds)
        if entity.num_joints:
            position = worlds.take(data.default_joint_pos)
            velocity = worlds.take(data.default_joint_vel)
            entity.write_joint_state_to_sim(position, velocity, env_ids=worlds)
        if entity.num_ball_joints:
            quat = worlds.take(data.default_ball_joint_quat)
            ang_vel = torch.zeros_like(quat[..., 1:])
            entity.write_ball_joint_state_to_sim(quat, ang_vel, env_ids=worlds)


def randomize_variant(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    weights: Mapping[str, float] | None = None,
    asset_cfg: SceneEntityCfg = _ROBOT,
) -> None:
    """Sample an entity's variant in each of the given worlds.

    A world that samples its current variant does not change. In the others, events that have
    randomized the entity's model are applied again, to the values of the new variant: those of
    `mdp.dr` with the world's stored numbers, others by another call. The position of this term in
    `events` is therefore free, unless variants start at different poses: then terms that place the
    root follow it. Events of mode 'reset' that follow it run once, after it.

    Args:
        env: the environment.
        env_ids: ids of the worlds; None for all.
        weights: relative probabilities by variant name; 1 for variants without an entry. None uses
            the weights of the entity's configuration, which default to 1.
        asset_cfg: the entity.

    Raises:
        ValueError: the entity has no variants, or weights are not by name or name no variant.
    """
    ids = resolve_env_ids(env, env_ids)
    cfg = env.scene.entity(asset_cfg.name).cfg
    if not isinstance(cfg, VariantEntityCfg) or isinstance(cfg, MergedEntityCfg):
        raise ValueError(f"Entity '{asset_cfg.name}' has no variants: make it a VariantEntityCfg.")
    if weights is not None:
        if not isinstance(weights, Mapping):
            raise ValueError(f"weights is {weights!r}: give numbers by name of variant, or None.")
        cfg = replace(cfg, assignment=dict(weights))
    likely = torch.tensor(cfg.weights(), device=env.device)
    variants = env.random.choice(likely, ids)
    env.sim.assign_variants(asset_cfg.name, ids, variants)


@takes_worlds
def reset_joints_by_offset(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    position_range: tuple[float, float],
    velocity_range: tuple[float, float],
    asset_cfg: SceneEntityCfg = _ROBOT,
) -> None:
    """Set joints to their defaults plus uniform offsets, with positions clipped to soft limits.

    Args:
        env: the environment.
        env_ids: ids of the worlds; None for all.
        position_range: bounds of the position offset [rad or m].
        velocity_range: bounds of the velocity offset [rad/s or m/s].
        asset_cfg: the entity and its joints.
    """
    worlds = Worlds.of(env_ids, env.num_envs, env.device)
    entity = env.scene.entity(asset_cfg.name)
    joints = asset_cfg.index("joint")
    position = worlds.take(entity.data.default_joint_pos)[:, joints]
    velocity = worlds.take(entity.data.default_joint_vel)[:, joints]
    shape = position.shape[1:]
    position = position + env.random.uniform(*position_range, shape, worlds)
    velocity = velocity + env.random.uniform(*velocity_range, shape, worlds)
    limits = worlds.take(entity.data.soft_joint_pos_limits)[:, joints]
    position = position.clamp(limits[..., 0], limits[..., 1])
    entity.write_joint_state_to_sim(position, velocity, joints, worlds)


@takes_worlds
def reset_root_state_uniform(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    pose_range: Ranges,
    velocity_range: Ranges | None = None,
    asset_cfg: SceneEntityCfg = _ROBOT,
) -> None:
    """Set a root to its initial state at the world's origin plus uniform noise.

    Args:
        env: the environment.
        env_ids: ids of the worlds; None for all.
        pose_range: bounds by x, y, z [m] in the world, and roll, pitch, yaw [rad] about the
            root's axes; 0 for names that are left out.
        velocity_range: bounds of the velocity in the world by the same names [m/s, rad/s].
        asset_cfg: the entity. An entity with a fixed base takes a pose, but no velocity.

    Raises:
        ValueError: the entity's pose cannot be set, it has no velocity, or a name is wrong.
    """
    worlds = Worlds.of(env_ids, env.num_envs, env.device)
    origins = worlds.take(env.scene.env_origins)
    _place_root(env, worlds, origins, pose_range, velocity_range, asset_cfg)


@takes_worlds
def reset_root_state_from_flat_patches(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    patch_name: str = "spawn",
    pose_range: Ranges | None = None,
    velocity_range: Ranges | None = None,
    asset_cfg: SceneEntityCfg = _ROBOT,
) -> None:
    """Set a root on a flat patch of its world's terrain cell, plus uniform noise.

    On a plane, all of which is flat, the term is equal to `reset_root_state_uniform`.

    Args:
        env: the environment.
        env_ids: ids of the worlds; None for all.
        patch_name: name of the patches in `flat_patch_sampling` of sub-terrains.
        pose_range: noise around the patch's center, see `reset_root_state_uniform`.
        velocity_range: see `reset_root_state_uniform`.
        asset_cfg: the entity.

    Raises:
        ValueError: the terrain has no such patches; see also `reset_root_state_uniform`.
    """
    worlds = Worlds.of(env_ids, env.num_envs, env.device)
    terrain = env.scene.terrain
    if terrain is None or terrain.terrain_origins is None:
        origins = worlds.take(env.scene.env_origins)
    elif (patches := terrain.flat_patches.get(patch_name)) is None:
        raise ValueError(
            f"The terrain has no flat patches '{patch_name}', only "
            f"{sorted(terrain.flat_patches)}: name them in flat_patch_sampling of a sub-terrain."
        )
    else:
        pick = env.random.integers(0, patches.shape[2], env_ids=worlds)
        cells = worlds.take(terrain.terrain_levels), worlds.take(terrain.terrain_types)
        origins = patches[(*cells, pick)]
    _place_root(env, worlds, origins, pose_range or {}, velocity_range, asset_cfg)


def _place_root(
    env: ManagerBasedRlEnv,
    worlds: Worlds,
    origins: torch.Tensor,
    pose_range: Ranges,
    velocity_range: Ranges | None,
    asset_cfg: SceneEntityCfg,
) -> None:
    """Set a root to its initial state, relative to origins [m], plus uniform noise."""
    entity = env.scene.entity(asset_cfg.name)
    if entity.is_fixed_base and (velocity_range or not entity.is_mocap):
        problem = "its base is fixed and has no velocity: leave out velocity_range"
        if not entity.is_mocap:
            problem = "it is fixed to the world: give it a free joint or a mocap body"
        raise ValueError(f"Cannot reset the root state of '{asset_cfg.name}': {problem}.")
    initial = worlds.take(entity.data.default_root_state)
    noise = env.random.uniform(*pose_bounds(pose_range, env.device), (6,), worlds)
    position = initial[:, :3] + origins + noise[:, :3]
    turn = quat_from_euler_xyz(*noise[:, 3:].unbind(-1))
    pose = torch.cat([position, quat_mul(initial[:, 3:7], turn)], dim=-1)
    if entity.is_mocap:
        entity.write_mocap_pose_to_sim(pose, worlds)
        return
    low, high = pose_bounds(velocity_range or {}, env.device)
    velocity = initial[:, 7:] + env.random.uniform(low, high, (6,), worlds)
    entity.write_root_state_to_sim(torch.cat([pose, velocity], dim=-1), worlds)


@takes_worlds
def randomize_terrain(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    levels: tuple[int, int] | None = None,
    shares: dict[str, float] | None = None,
) -> None:
    """Move worlds to random cells of the terrain; do nothing on a plane or without terrain.

    Args:
        env: the environment.
        env_ids: ids of the worlds; None for all.
        levels: lowest and highest level (row) of the terrain to draw from; None for all.
        shares: relative frequencies of cells by kind of terrain, of which others have 1; None for
            equal ones.
    """
    if env.scene.terrain is not None:
        env.scene.terrain.randomize_env_origins(env_ids, levels, shares)


@takes_worlds
def push_by_setting_velocity(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    velocity_range: Ranges,
    asset_cfg: SceneEntityCfg = _ROBOT,
) -> None:
    """Add a uniformly sampled velocity to that of a floating base, which models a sudden push.

    Args:
        env: the environment.
        env_ids: ids of the worlds; None for all.
        velocity_range: bounds in the world by x, y, z [m/s] and roll, pitch, yaw [rad/s].
        asset_cfg: the entity.
    """
    worlds = Worlds.of(env_ids, env.num_envs, env.device)
    entity = env.scene.entity(asset_cfg.name)
    data = entity.data.data
    indexing = entity.indexing
    push = env.random.uniform(*pose_bounds(velocity_range, env.device), (6,), worlds)
    # From qvel itself, not from quantities derived from it: another event may have just set it.
    # qvel of a free joint is linear velocity in the world frame, angular velocity in the body
    # frame.
    velocity = worlds.take(data.qvel[:, indexing.free_joint_v_index])
    quat = worlds.take(data.qpos[:, indexing.free_joint_q_index])[:, 3:]
    angular = quat_apply(quat, velocity[:, 3:])
    velocity = torch.cat([velocity[:, :3], angular], dim=-1)
    entity.write_root_link_velocity_to_sim(velocity + push, worlds)


@takes_worlds
def apply_external_force_torque(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    force_range: tuple[float, float],
    torque_range: tuple[float, float],
    asset_cfg: SceneEntityCfg = _ROBOT,
) -> None:
    """Apply uniformly sampled wrenches to bodies, until they are overwritten or reset.

    Args:
        env: the environment.
        env_ids: ids of the worlds; None for all.
        force_range: bounds of each component in the world, at centers of mass [N].
        torque_range: bounds of each component in the world [N m].
        asset_cfg: the entity and its bodies, each with its own wrench.
    """
    worlds = Worlds.of(env_ids, env.num_envs, env.device)
    entity = env.scene.entity(asset_cfg.name)
    bodies = asset_cfg.index("body")
    shape = entity.data.body_external_force[0, bodies].shape
    forces = env.random.uniform(*force_range, shape, worlds)
    torques = env.random.uniform(*torque_range, shape, worlds)
    entity.write_external_wrench_to_sim(forces, torques, worlds, bodies)


class apply_body_impulse(ManagerTermBase):  # noqa: N801
    """Wrenches on bodies for random durations, separated by random pauses; for mode 'step'.

    Each world has its own timer, which starts with a pause. A reset of the entity clears the
    wrench with its other inputs, and starts a new pause.

    Raises:
        ValueError: the mode of the event is not 'step'.
    """

    selects = frozenset({"body"})

    @dataclass
    class VizCfg:
        """Visualization settings of `debug_vis`."""

        rgba: tuple[float, float, float, float] = (0.9, 0.2, 0.8, 0.9)
        scale: float = 0.005
        """Length of an arrow per force [m/N]."""
        width: float = 0.015
        """Width of an arrow [m]."""
        min_force: float = 1.0
        """Minimum force that is drawn [N]."""

    state_attributes = ("_time_left", "_active", "_wrench")

    def __init__(self, cfg: EventTermCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        if cfg.mode != "step":
            raise ValueError(
                f"apply_body_impulse must run every step, but its mode is '{cfg.mode}': use 'step'."
            )
        asset_cfg: SceneEntityCfg = cfg.params["asset_cfg"]
        self.viz = self.VizCfg()
        self._entity = env.scene.entity(asset_cfg.name)
        self._bodies = asset_cfg.index("body")
        self._cooldown_s: tuple[float, float] = cfg.params["cooldown_s"]
        point = cfg.params.get("body_point_offset")
        self._point = None
        if point is not None:
            self._point = torch.tensor(point, dtype=torch.float32, device=self.device)
        with torch.inference_mode(False):
            self._wrench = torch.zeros_like(self._present_wrench())
            self._active = torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)
            self._time_left = self.random.uniform(*self._cooldown_s)

    @takes_worlds
    def __call__(
        self,
        env: ManagerBasedRlEnv,
        env_ids: EnvIds,
        force_range: tuple[float, float],
        torque_range: tuple[float, float],
        duration_s: tuple[float, float],
        cooldown_s: tuple[float, float],
        asset_cfg: SceneEntityCfg,
        body_point_offset: tuple[float, float, float] | None = None,
    ) -> None:
        """Advance the timers by a control step; start and stop impulses that are due.

        Args:
            env: the environment.
            env_ids: ids of the worlds; None for all.
            force_range: bounds of each component in the world [N].
            torque_range: bounds of each component in the world [N m].
            duration_s: bounds of the duration of an impulse [s].
            cooldown_s: bounds of the pause after an impulse and after a reset [s].
            asset_cfg: the entity and its bodies, each with its own wrench.
            body_point_offset: point of application of the force, relative to the body's center of
                mass, in the body's frame [m]; None for the center of mass.
        """
        left = self._time_left.clone()
        due = count_down(left, env.step_dt)
        if env_ids is not None:
            chosen = self._worlds(env_ids).mask
            due = due & chosen
            left = torch.where(chosen, left, self._time_left)
        touched = due | self._active
        begins = due & ~self._active
        self._active ^= due
        drawn = self._draw_wrench(force_range, torque_range) * _over_bodies(begins)
        self._wrench.copy_(torch.where(_over_bodies(due), drawn, self._wrench))
        duration = self.random.uniform(*duration_s)
        pause = self.random.uniform(*cooldown_s)
        timer = torch.where(begins, duration, pause)
        self._time_left.copy_(torch.where(due, timer, left))
        # Do not overwrite wrenches of other terms in worlds that pause.
        wrench = torch.where(_over_bodies(touched), self._centered(), self._present_wrench())
        self._entity.write_external_wrench_to_sim(
            wrench[..., :3], wrench[..., 3:], body_ids=self._bodies
        )

    @takes_worlds
    def reset(self, env_ids: EnvIds = None) -> None:
        """Start a pause in the given worlds."""
        worlds = self._worlds(env_ids)
        worlds.put(self._active, False)
        worlds.put(self._wrench, 0.0)
        worlds.put(self._time_left, self.random.uniform(*self._cooldown_s, env_ids=worlds))

    def debug_vis(self, visualizer: DebugVisualizer) -> None:
        """Draw the active forces as arrows from their points of application."""
        start = self._entity.data.body_com_pos_w[:, self._bodies]
        if self._point is not None:
            start = start + self._arm(self._point)
        force = self._wrench[..., :3]
        start, end = (x.cpu().numpy() for x in (start, start + self.viz.scale * force))
        strong = (force.norm(dim=-1) >= self.viz.min_force).cpu().numpy()
        for env in visualizer.get_env_indices(self.num_envs):
            for body in strong[env].nonzero()[0]:
                tail = start[env, body]
                tip = end[env, body]
                visualizer.add_arrow(tail, tip, self.viz.rgba, width=self.viz.width)

    def _draw_wrench(
        self, force_range: tuple[float, float], torque_range: tuple[float, float]
    ) -> torch.Tensor:
        """Draw a wrench on each body in each world, shape [num_envs, bodies, 6]."""
        shape = self._wrench[0, ..., :3].shape
        force = self.random.uniform(*force_range, shape)
        torque = self.random.uniform(*torque_range, shape)
        return torch.cat([force, torque], dim=-1)

    def _present_wrench(self) -> torch.Tensor:
        return self._entity.data.body_external_wrench[:, self._bodies]

    def _arm(self, point: torch.Tensor) -> torch.Tensor:
        """Vectors from centers of mass to the points of application, in the world frame [m]."""
        quat = self._entity.data.body_link_quat_w[:, self._bodies]
        return quat_apply(quat, point.expand(*quat.shape[:-1], 3))

    def _centered(self) -> torch.Tensor:
        """Wrenches about the centers of mass."""
        if self._point is None:
            return self._wrench
        force, torque = self._wrench.split(3, dim=-1)
        return torch.cat([force, torque + cross(self._arm(self._point), force)], dim=-1)


def _over_bodies(mask: torch.Tensor) -> torch.Tensor:
    """Expand a mask of worlds to wrenches, shape [num_envs, bodies, 6]."""
    return mask[:, None, None]
