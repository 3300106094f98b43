"""Lifting commands: target positions and initial poses of objects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import torch

from manyworlds.entity import Entity
from manyworlds.managers import CommandTerm, CommandTermCfg
from manyworlds.utils.devices import constants
from manyworlds.utils.math import dot, quat_from_euler_xyz
from manyworlds.validation.worlds import EnvIds, takes_worlds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.utils.debug_visualizer import DebugVisualizer

Range = tuple[float, float]
Difficulty = Literal["fixed", "dynamic"]


@dataclass
class _TargetPositionRange:
    """Bounds of target positions, relative to the world's origin [m]."""

    x: Range = (0.3, 0.5)
    y: Range = (-0.2, 0.2)
    z: Range = (0.2, 0.4)


@dataclass(kw_only=True)
class LiftingCommandCfg(CommandTermCfg):
    """Configuration of a command to lift one object to a target.

    Each resampling moves the object.
    """

    TargetPositionRangeCfg = _TargetPositionRange

    @dataclass
    class ObjectPoseRangeCfg:
        """Bounds of the object's initial pose, relative to the world's origin [m, rad]."""

        x: Range = (0.3, 0.35)
        y: Range = (-0.1, 0.1)
        z: Range = (0.02, 0.05)
        yaw: Range = (-math.pi, math.pi)

    @dataclass
    class VizCfg:
        """Visualization settings of the target."""

        target_color: tuple[float, float, float, float] = (1.0, 0.5, 0.0, 0.3)

    entity_name: str
    """Name of the object, which has a free joint."""
    success_threshold: float = 0.05
    """Distance to the target below which the object has arrived [m]."""
    difficulty: Difficulty = "fixed"
    """`fixed`: the target is the center of its range; `dynamic`: it is sampled from the range."""
    target_position_range: _TargetPositionRange = field(default_factory=_TargetPositionRange)
    object_pose_range: ObjectPoseRangeCfg | None = field(default_factory=ObjectPoseRangeCfg)
    """Bounds of the object's pose; None does not move the object."""
    viz: VizCfg = field(default_factory=VizCfg)

    def build(self, env: ManagerBasedRlEnv) -> LiftingCommand:
        """Build the term."""
        return LiftingCommand(self, env)


@dataclass(kw_only=True)
class MultiCubeLiftingCommandCfg(CommandTermCfg):
    """Configuration of a command to lift one of several objects to a target.

    Each resampling moves all objects.
    """

    TargetPositionRangeCfg = _TargetPositionRange

    @dataclass
    class ObjectPoseRangeCfg(LiftingCommandCfg.ObjectPoseRangeCfg):
        """Bounds of the objects' initial poses, relative to the world's origin [m, rad]."""

        x: Range = (0.25, 0.4)
        y: Range = (-0.15, 0.15)

    entity_names: tuple[str, ...] = ()
    """Names of the objects, which have free joints."""
    success_threshold: float = 0.05
    """Distance to the target below which the object has arrived [m]."""
    difficulty: Difficulty = "fixed"
    """`fixed`: the target is the center of its range; `dynamic`: it is sampled from the range."""
    target_position_range: _TargetPositionRange = field(default_factory=_TargetPositionRange)
    object_pose_range: ObjectPoseRangeCfg = field(default_factory=ObjectPoseRangeCfg)

    def build(self, env: ManagerBasedRlEnv) -> MultiCubeLiftingCommand:
        """Build the term."""
        return MultiCubeLiftingCommand(self, env)


class _Lifting(CommandTerm):
    """Target position for one of several objects.

    Raises:
        ValueError: there are no objects, or an object does not have a free joint.
    """

    cfg: Any
    state_attributes = (*CommandTerm.state_attributes, "target_pos", "_chosen")

    def __init__(self, cfg: Any, env: ManagerBasedRlEnv, objects: Sequence[str]) -> None:
        super().__init__(cfg, env)
        if not objects:
            raise ValueError(f"{type(cfg).__name__} has no objects: name some in entity_names.")
        self.objects: list[Entity] = [env.scene.entity(name) for name in objects]
        for name, entity in zip(objects, self.objects, strict=True):
            if entity.is_fixed_base:
                raise ValueError(
                    f"{type(cfg).__name__} lifts '{name}', whose base is fixed: name an entity "
                    "with a free joint."
                )
        with torch.inference_mode(False):
            zeros = torch.zeros(self.num_envs, device=self.device)
            self.target_pos = torch.zeros(self.num_envs, 3, device=self.device)
            """Target position of the object in the world frame [m], shape [num_envs, 3]."""
            self._chosen = zeros.long()
            names = ("object_height", "position_error", "at_goal", "episode_success")
            self.metrics = {name: zeros.clone() for name in names}

    @property
    def command(self) -> torch.Tensor:
        """Target position of the object in the world frame [m], shape [num_envs, 3]."""
        return self.target_pos

    @property
    def steering(self) -> dict[str, tuple[float, float]]:
        """Bounds of targets that a page may set, by name, in order [m]."""
        ranges = self.cfg.target_position_range
        return {"x": ranges.x, "y": ranges.y, "z": ranges.z}

    @property
    def target_object_pos(self) -> torch.Tensor:
        """Position of the selected object in the world frame [m], shape [num_envs, 3]."""
        if len(self.objects) == 1:
            return self.objects[0].data.root_link_pos_w
        positions = torch.stack([entity.data.root_link_pos_w for entity in self.objects], dim=1)
        rows = self._chosen.view(-1, 1, 1).expand(-1, 1, 3)
        return positions.gather(1, rows).squeeze(1)

    def compute_success(self) -> torch.Tensor:
        """Return a mask of worlds whose object has arrived at its target, shape [num_envs]."""
        return self._distance() < self.cfg.success_threshold

    def _distance(self) -> torch.Tensor:
        error = self.target_object_pos - self.target_pos
        return dot(error, error).sqrt()

    @takes_worlds
    def _resample_command(self, env_ids: EnvIds) -> None:
        worlds = self._worlds(env_ids)
        origins = worlds.take(self._env.scene.env_origins)
        ranges = self.cfg.target_position_range
        low, high = self._bounds(ranges.x, ranges.y, ranges.z)
        if self.cfg.difficulty == "fixed":
            target = ((low + high) / 2.0).expand(worlds.num_rows, 3)
        else:
            target = self.random.uniform(low, high, (3,), worlds)
        worlds.put(self.target_pos, target + origins)
        if len(self.objects) > 1:
            chosen = self.random.integers(0, len(self.objects), env_ids=worlds)
            worlds.put(self._chosen, chosen)
        if self.cfg.object_pose_range is None:
            return
        ranges = self.cfg.object_pose_range
        low, high = self._bounds(ranges.x, ranges.y, ranges.z, ranges.yaw)
        for entity in self.objects:
            drawn = self.random.uniform(low, high, (4,), worlds)
            position = drawn[:, :3] + origins
            zero = torch.zeros_like(drawn[:, 3])
            pose = torch.cat([position, quat_from_euler_xyz(zero, zero, drawn[:, 3])], dim=1)
            entity.write_root_link_pose_to_sim(pose, worlds)
            entity.write_root_link_velocity_to_sim(torch.zeros_like(pose[:, :6]), worlds)

    def _bounds(self, *ranges: Range) -> torch.Tensor:
        rows = [(float(low), float(high)) for low, high in ranges]
        return constants(tuple(rows), self.device).T

    @takes_worlds
    def _update_command(self, env_ids: EnvIds = None) -> None:
        """Do nothing: the target does not depend on the state."""

    def _update_metrics(self) -> None:
        success = self.compute_success().float()
        origin = self._env.scene.env_origins
        self.metrics["object_height"].copy_(self.target_object_pos[:, 2] - origin[:, 2])
        self.metrics["position_error"].copy_(self._distance())
        self.metrics["at_goal"].copy_(success)
        self.metrics["episode_success"].clamp_(min=success)

    def _debug_vis_impl(self, visualizer: DebugVisualizer) -> None:
        color = getattr(self.cfg, "viz", LiftingCommandCfg.VizCfg()).target_color
        for env in visualizer.get_env_indices(self.num_envs):
            target = self.target_pos[env].cpu().numpy()
            visualizer.add_sphere(target, self.cfg.success_threshold, color)


class LiftingCommand(_Lifting):
    """Command to lift one object.

    Raises:
        ValueError: the object does not have a free joint.
    """

    cfg: LiftingCommandCfg

    def __init__(self, cfg: LiftingCommandCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(cfg, env, (cfg.entity_name,))


class MultiCubeLiftingCommand(_Lifting):
    """Command to lift one of several objects; each resampling selects one.

    Raises:
        ValueError: there are no objects, an object does not have a free joint, or the objects
            differ in their number of geoms.
    """

    cfg: MultiCubeLiftingCommandCfg

    def __init__(self, cfg: MultiCubeLiftingCommandCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(cfg, env, cfg.entity_names)
        geoms = [entity.indexing.geom_ids for entity in self.objects]
        if len({len(ids) for ids in geoms}) > 1:
            counts = {n: len(i) for n, i in zip(cfg.entity_names, geoms, strict=True)}
            raise ValueError(
                f"MultiCubeLiftingCommand needs objects with equal numbers of geoms, got {counts}."
            )
        self._geom_ids = torch.stack(geoms).to(self.device)

    @property
    def target_geom_ids(self) -> torch.Tensor:
        """Ids of the selected object's geoms in the model, shape [num_envs, num_geoms]."""
        return self._geom_ids[self._chosen]
