"""Sensors that measure distances along rays."""

from __future__ import annotations

import functools
import warnings
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Literal, TypedDict, get_args

import mujoco
import numpy as np
import torch

from manyworlds.sensor.builtin_sensor import ObjRef, check_exists
from manyworlds.sensor.ray_patterns import (
    GridPatternCfg,
    PatternCfg,
    PinholeCameraPatternCfg,
    RingPatternCfg,
)
from manyworlds.sensor.sampling import leaves, with_leaves
from manyworlds.sensor.sensor import Sensor, SensorCfg
from manyworlds.sim.views import DataView, ModelView
from manyworlds.spec.elements import id_of_element
from manyworlds.utils.debug_visualizer import Color
from manyworlds.utils.math import dot, matrix_from_quat, quat_from_matrix
from manyworlds.utils.overrides import overrides
from manyworlds.validation.host_reads import reads_are_free
from manyworlds.validation.worlds import EnvIds, Worlds, takes_worlds

if TYPE_CHECKING:
    from manyworlds.entity import Entity
    from manyworlds.sensor.sensor_context import SensorContext
    from manyworlds.utils.debug_visualizer import DebugVisualizer

__all__ = [
    "GridPatternCfg",
    "PatternCfg",
    "PinholeCameraPatternCfg",
    "RayAlignment",
    "RayCastData",
    "RayCastSensor",
    "RayCastSensorCfg",
    "RayFrameDescription",
    "RaysDescription",
    "RingPatternCfg",
]

RayAlignment = Literal["base", "yaw", "world"]
"""Axes of the rays: those of the frame, those turned about the vertical only, or the world's."""

# Arrays with poses of frames in MjData, and with bodies of frames in MjModel.
_FRAMES = {
    "body": ("xpos", "xmat", None),
    "site": ("site_xpos", "site_xmat", "site_bodyid"),
    "geom": ("geom_xpos", "geom_xmat", "geom_bodyid"),
}

# Within this sine of the vertical (3 degrees), the x axis defines no heading.
_SINGULAR = 0.05

# Distance of a frame from the origin of its body, from which a tilt displaces its rays visibly [m].
_SWINGING = 1.0


class RayFrameDescription(TypedDict):
    """Description of a frame that rays are attached to."""

    type: str
    name: str
    exclude: str | None
    """Body that the frame's rays pass through."""


class RaysDescription(TypedDict):
    """Description of a sensor's rays as plain data, with the names of the scene's model."""

    frames: list[RayFrameDescription]
    offsets: list[list[float]]
    """Origins of each frame's rays, in the axes of the rays [m]."""
    directions: list[list[float]]
    alignment: RayAlignment
    max_distance: float
    geom_groups: list[int] | None


@dataclass(init=False)
class RayCastData:
    """Hits of rays, for B worlds, F frames, and R rays in all, ordered by frame.

    Orientations of frames are given as `frame_mat_w` or as `frame_quat_w` and computed in the other
    form, quaternions at the first access. For one frame, `pos_w` and `quat_w` are sufficient.

    Raises:
        ValueError: neither is given.
    """

    distances: torch.Tensor
    """Distance to the hit [m]; -1 for a miss. Shape [B, R]."""
    normals_w: torch.Tensor
    """Surface normal at the hit in the world frame; zero for a miss. Shape [B, R, 3]."""
    hit_pos_w: torch.Tensor
    """Hit position in the world frame [m]; the ray's origin for a miss. Shape [B, R, 3]."""
    pos_w: torch.Tensor
    """Position of the first frame in the world frame [m], shape [B, 3]."""
    _: KW_ONLY
    frame_pos_w: torch.Tensor
    """Positions of the frames in the world frame [m], shape [B, F, 3]."""
    frame_mat_w: torch.Tensor
    """Rotation matrices of the frames in the world frame, shape [B, F, 3, 3]."""

    def __init__(
        self,
        distances: torch.Tensor,
        normals_w: torch.Tensor,
        hit_pos_w: torch.Tensor,
        pos_w: torch.Tensor,
        quat_w: torch.Tensor | None = None,
        frame_pos_w: torch.Tensor | None = None,
        frame_quat_w: torch.Tensor | None = None,
        frame_mat_w: torch.Tensor | None = None,
    ) -> None:
        self.distances = distances
        self.normals_w = normals_w
        self.hit_pos_w = hit_pos_w
        self.pos_w = pos_w
        if frame_pos_w is None:
            frame_pos_w = pos_w.unsqueeze(1)
        self.frame_pos_w = frame_pos_w
        if frame_quat_w is None and quat_w is not None:
            frame_quat_w = quat_w.unsqueeze(1)
        if frame_quat_w is not None:
            self.frame_quat_w = frame_quat_w
            if frame_mat_w is None:
                frame_mat_w = matrix_from_quat(frame_quat_w)
        if frame_mat_w is None:
            raise ValueError(f"{type(self).__name__} needs frame_mat_w, frame_quat_w or quat_w.")
        self.frame_mat_w = frame_mat_w

    @functools.cached_property
    def frame_quat_w(self) -> torch.Tensor:
        """Orientations of the frames (wxyz), shape [B, F, 4]; computed at the first access."""
        return quat_from_matrix(self.frame_mat_w)

    @property
    def quat_w(self) -> torch.Tensor:
        """Orientation of the first frame (wxyz), shape [B, 4]."""
        return self.frame_quat_w[:, 0]


@dataclass
class RayCastSensorCfg(SensorCfg):
    """Configuration of a sensor with a pattern of rays on one or several frames.

    A ray starts at the frame's origin plus its place in the pattern, which is turned as
    `ray_alignment` says. Rays that shall start above a body however it tilts are attached to the
    body, with `pattern.offset`; a site above the body moves sideways as the body tilts.
    """

    @dataclass
    class VizCfg:
        """Appearance of `debug_vis`; lengths are in units of the model's mean size."""

        hit_color: Color = (0.0, 1.0, 0.0, 0.8)
        miss_color: Color = (1.0, 0.0, 0.0, 0.4)
        hit_sphere_color: Color = (0.0, 1.0, 1.0, 1.0)
        hit_sphere_radius: float = 0.5
        show_rays: bool = False
        show_normals: bool = False
        normal_color: Color = (1.0, 1.0, 0.0, 1.0)
        normal_length: float = 5.0

    frame: ObjRef | tuple[ObjRef, ...]
    """Bodies, sites or geoms that the rays are attached to."""
    pattern: PatternCfg = field(default_factory=GridPatternCfg)
    """Pattern of the rays of each frame."""
    ray_alignment: RayAlignment = "base"
    """Rotation of the rays: with the frame (base), with its heading only (yaw), or fixed (world).
    If the frame's x axis is vertical, the heading is that of its y axis minus a quarter turn."""
    max_distance: float = 10.0
    """Distance beyond which hits count as misses [m]."""
    exclude_parent_body: bool = True
    """Let rays pass through the body to which their frame belongs."""
    include_geom_groups: tuple[int, ...] | None = (0, 1, 2)
    """Groups of the geoms that rays can hit; None for all."""
    debug_vis: bool = False
    viz: VizCfg = field(default_factory=VizCfg)

    @property
    def frames(self) -> tuple[ObjRef, ...]:
        """All frames, as a tuple."""
        if isinstance(self.frame, tuple):
            return self.frame
        return (self.frame,)

    def build(self) -> RayCastSensor:
        """Build the sensor."""
        return RayCastSensor(self)


class RayCastSensor(Sensor[RayCastData]):
    """Casts rays when its data is read, in the worlds that have changed since the last read.

    Raises:
        ValueError: a frame is not a body, site or geom, or an option is out of range.
    """

    derived_attributes = ("_last", "_fresh")
    requires_sensor_context = True
    noise_fields = ("distances",)

    def __init__(self, cfg: RayCastSensorCfg) -> None:
        super().__init__()
        self.cfg: RayCastSensorCfg = cfg
        _check(cfg)
        self._ctx: SensorContext | None = None
        self._last: RayCastData | None = None
        self._moved_geoms: dict[str, str] = {}
        self._fresh: torch.Tensor | None = None
        """Mask of the worlds with valid last data, shape [num_envs]; None if there are none."""

    @property
    def needs_substeps(self) -> bool:
        """True if a subclass has its own `update`."""
        return overrides(self, RayCastSensor, "update")

    @property
    def include_geom_groups(self) -> tuple[int, ...] | None:
        """Groups of the geoms that rays can hit; None for all."""
        return self.cfg.include_geom_groups

    @property
    def num_frames(self) -> int:
        """Number of frames that rays are attached to."""
        return len(self.cfg.frames)

    @property
    def num_rays_per_frame(self) -> int:
        """Number of rays per frame."""
        return len(self._offsets)

    @property
    def num_rays(self) -> int:
        """Number of rays of all frames."""
        return self.num_frames * self.num_rays_per_frame

    def edit_spec(self, scene_spec: mujoco.MjSpec, entities: dict[str, Entity]) -> None:
        """Check that the frames exist; rays add nothing to a scene."""
        for ref in self.cfg.frames:
            check_exists(f"Sensor '{self.cfg.name}'", ref, scene_spec, entities)
        for entity in entities.values():
            self._moved_geoms.update(entity.moved_geoms)

    def initialize(
        self, mj_model: mujoco.MjModel, model: ModelView, data: DataView, device: torch.device
    ) -> None:
        """Find the frames, and precompute constants."""
        cfg = self.cfg
        self._sim_data = data
        self._device = torch.device(device)
        self._offsets, self._directions = cfg.pattern.generate_rays(mj_model, device)
        self._distinct = self._directions
        if (self._directions == self._directions[0]).all():
            self._distinct = self._directions[:1]
        # Vertical rays do not change with a rotation about the vertical.
        self._upright = cfg.ray_alignment == "yaw" and not bool(self._distinct[:, :2].any())
        names = [ref.prefixed_name() for ref in cfg.frames]
        ids = [
            id_of_element(mj_model, ref.type, name)
            for ref, name in zip(cfg.frames, names, strict=True)
        ]
        types = [ref.type for ref in cfg.frames]
        if cfg.ray_alignment != "base":
            _warn_about_swinging_frames(cfg, mj_model, ids)
        self._ids = {}
        order = []
        for kind in dict.fromkeys(types):
            rows = [row for row, other in enumerate(types) if other == kind]
            self._ids[kind] = torch.tensor([ids[row] for row in rows], device=device)
            order += rows
        self._order: torch.Tensor | None = None
        if order != sorted(order):
            self._order = torch.tensor(order).argsort().to(device)
        # Bodies that have the geoms of others.
        with_geoms = {
            mj_model.body(old).id: mj_model.body(new).id for old, new in self._moved_geoms.items()
        }
        bodies: list[int] = []
        for kind, i in zip(types, ids, strict=True):
            lookup = _FRAMES[kind][2]
            body = i
            if lookup is not None:
                body = int(getattr(mj_model, lookup)[i])
            bodies.append(with_geoms.get(body, body))
        self._bodies = [mj_model.body(body).name for body in bodies]
        exclude = torch.tensor(bodies, dtype=torch.int32, device=device)
        self._bodyexclude: int | torch.Tensor = -1
        if cfg.exclude_parent_body:
            self._bodyexclude = exclude.repeat_interleave(self.num_rays_per_frame)
        groups = cfg.include_geom_groups
        self._geomgroup = None
        if groups is not None:
            self._geomgroup = [int(group in groups) for group in range(mujoco.mjNGROUP)]
            if not np.isin(mj_model.geom_group, groups).any():
                warnings.warn(
                    f"Sensor '{cfg.name}' never hits anything: no geom is in include_geom_groups="
                    f"{groups}; the geoms are in {sorted({*mj_model.geom_group.tolist()})}.",
                    stacklevel=2,
                )

    def describe(self) -> RaysDescription:
        """Describe the rays, to cast them without the sensor."""
        frames: list[RayFrameDescription] = []
        for ref, body in zip(self.cfg.frames, self._bodies, strict=True):
            exclude = None
            if self.cfg.exclude_parent_body:
                exclude = body
            frames.append({"type": ref.type, "name": ref.prefixed_name(), "exclude": exclude})
        groups = self.include_geom_groups
        if groups is not None:
            groups = list(groups)
        return {
            "frames": frames,
            "offsets": self._offsets.tolist(),
            "directions": self._directions.tolist(),
            "alignment": self.cfg.ray_alignment,
            "max_distance": self.cfg.max_distance,
            "geom_groups": groups,
        }

    def set_context(self, ctx: SensorContext) -> None:
        """Set the context that casts rays."""
        self._ctx = ctx
        ctx.add_raycast(self)

    @takes_worlds
    def reset(self, env_ids: EnvIds = None) -> None:
        """Reset the given worlds; rays of the other worlds are not cast again."""
        super().reset(env_ids)
        self._forget(env_ids)

    @takes_worlds
    def invalidate(self, env_ids: EnvIds = None) -> None:
        """Mark data of these worlds as outdated, after a change between updates."""
        super().invalidate(env_ids)
        self._forget(env_ids)

    def update(self, dt: float) -> None:
        """Advance the sensor's time by `dt` [s]."""
        self._fresh = None
        super().update(dt)

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Restore a state that `state_dict` returned."""
        self._fresh = None
        super().load_state_dict(state)

    def debug_vis(self, visualizer: DebugVisualizer) -> None:
        """Draw hits as spheres, and rays and normals as arrows, as `cfg.viz` specifies."""
        if not self.cfg.debug_vis:
            return
        viz = self.cfg.viz
        size = visualizer.meansize
        data = self.data
        origins, directions = (part.cpu().numpy() for part in self._rays(None)[:2])
        hits = data.hit_pos_w.cpu().numpy()
        normals = data.normals_w.cpu().numpy()
        missed = (data.distances < 0).cpu().numpy()
        for env in visualizer.get_env_indices(len(missed)):
            for ray in range(self.num_rays):
                start = origins[env, ray]
                end = hits[env, ray]
                if missed[env, ray]:
                    end = start + self.cfg.max_distance * directions[env, ray]
                if viz.show_rays:
                    color = viz.miss_color if missed[env, ray] else viz.hit_color
                    visualizer.add_arrow(start, end, color, width=0.1 * size)
                if missed[env, ray]:
                    continue
                radius = viz.hit_sphere_radius * size
                visualizer.add_sphere(end, radius, viz.hit_sphere_color)
                if viz.show_normals:
                    tip = end + viz.normal_length * size * normals[env, ray]
                    visualizer.add_arrow(end, tip, viz.normal_color, width=0.1 * size)

    def _compute_data(self) -> RayCastData:
        last = self._last
        fresh = self._fresh
        worlds = None
        if last is not None and fresh is not None:
            worlds = (~fresh).nonzero().flatten()
        if last is None or worlds is None or len(worlds) == len(last.distances):
            last = self._measure(None)
        elif len(worlds):
            rows = leaves(self._measure(worlds))
            old = leaves(last)
            last = with_leaves(
                last, {name: old[name].index_copy(0, worlds, rows[name]) for name in rows}
            )
        self._last = last
        # On a GPU all rays are cast again, since selecting worlds would wait for the device.
        if reads_are_free(self._device):
            with torch.inference_mode(False):
                self._fresh = torch.ones(len(last.distances), dtype=torch.bool)
        return last

    def _measure(self, worlds: torch.Tensor | None) -> RayCastData:
        """Cast the rays of the given worlds; None for all."""
        if self._ctx is None:
            raise RuntimeError(
                f"Sensor '{self.cfg.name}' has no sensor context: initialize the scene before "
                "reading it."
            )
        origins, directions, positions, matrices = self._rays(worlds)
        rays = self._ctx.ray(
            origins,
            directions,
            geomgroup=self._geomgroup,
            bodyexclude=self._bodyexclude,
            cutoff=self.cfg.max_distance,
            env_ids=worlds,
        )
        data = RayCastData(
            distances=rays.dist,
            normals_w=rays.normal,
            hit_pos_w=torch.addcmul(origins, rays.dist.clamp(min=0.0)[..., None], directions),
            pos_w=positions[:, 0],
            frame_pos_w=positions,
            frame_mat_w=matrices,
        )
        return self._finish(data, directions)

    def _finish(self, data: RayCastData, directions: torch.Tensor) -> RayCastData:
        """Compute further data from the hits of rays with these directions."""
        return data

    def _rays(
        self, worlds: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return origins and directions of the rays, and positions and matrices of the frames."""
        positions = []
        matrices = []
        for kind, ids in self._ids.items():
            pos, mat, _ = _FRAMES[kind]
            # Index directly, to avoid a copy of the frames of all worlds.
            index = (slice(None), ids)
            if worlds is not None:
                index = (worlds[:, None], ids)
            positions.append(getattr(self._sim_data, pos)[index])
            matrices.append(getattr(self._sim_data, mat)[index])
        pos = torch.cat(positions, dim=1)
        mat = torch.cat(matrices, dim=1)
        if self._order is not None:
            pos = pos[:, self._order]
            mat = mat[:, self._order]
        if self.cfg.ray_alignment == "world":
            origins = pos[:, :, None] + self._offsets
            directions = self._distinct.expand(*pos.shape[:2], -1, -1)
        else:
            turn = mat
            if self.cfg.ray_alignment == "yaw":
                turn = heading(mat)
            origins = _turned(turn, self._offsets, pos)
            directions = self._distinct.expand(*pos.shape[:2], -1, -1)
            if not self._upright:
                directions = _turned(turn, self._distinct, torch.zeros_like(pos))
        directions = directions.expand(-1, -1, self.num_rays_per_frame, -1)
        return origins.flatten(1, 2), directions.flatten(1, 2), pos, mat

    def _forget(self, env_ids: EnvIds) -> None:
        if self._fresh is None:
            return
        worlds = Worlds.of(env_ids, len(self._fresh), self._fresh.device)
        if worlds.is_all:
            self._fresh = None
        else:
            worlds.put(self._fresh, False)


def _turned(turn: torch.Tensor, vectors: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
    """Rotate vectors [N, 3] by matrices [B, F, 3, 3], add [B, F, 3]; return [B, F, N, 3]."""
    # Not a matrix product, which a GPU may round to 10 bits and which is slow on a CPU.
    result = shift[..., None]
    for axis, column in enumerate(turn.unbind(dim=-1)):
        result = torch.addcmul(result, column[..., None], vectors[:, axis])
    return result.transpose(-1, -2)


def heading(matrices: torch.Tensor) -> torch.Tensor:
    """Return the rotations about the vertical to the headings of frames, shape [..., 3, 3].

    The heading is the direction of the x axis. If that is vertical, it is the direction of the y
    axis minus a quarter turn, which is the same direction whenever the y axis is horizontal.
    """
    x = matrices[..., :2, 0]
    y = matrices[..., :2, 1]
    beside = torch.stack([y[..., 1], -y[..., 0]], dim=-1)
    level = torch.where(dot(x, x)[..., None] > _SINGULAR**2, x, beside)
    level = level / dot(level, level)[..., None].sqrt()
    result = torch.zeros_like(matrices)
    result[..., :2, 0] = level
    result[..., 0, 1] = -level[..., 1]
    result[..., 1, 1] = level[..., 0]
    result[..., 2, 2] = 1.0
    return result


def _warn_about_swinging_frames(
    cfg: RayCastSensorCfg, model: mujoco.MjModel, ids: list[int]
) -> None:
    """Warn about frames that are so far from their bodies that small tilts displace the rays."""
    for ref, index in zip(cfg.frames, ids, strict=True):
        lookup = _FRAMES[ref.type][2]
        if lookup is None or model.body_weldid[getattr(model, lookup)[index]] == 0:
            continue
        place = getattr(model, f"{ref.type}_pos")[index]
        distance = float(np.linalg.norm(place))
        if distance > _SWINGING:
            warnings.warn(
                f"Sensor '{cfg.name}' has ray_alignment='{cfg.ray_alignment}', but its frame, "
                f"{ref.type} '{ref.prefixed_name()}', is {distance:.3g} m from the origin of its "
                "body and moves sideways as the body tilts: attach the rays to the body, with "
                f"offset=({place[0]:.3g}, {place[1]:.3g}, {place[2]:.3g}) in the pattern.",
                stacklevel=2,
            )


def _check(cfg: RayCastSensorCfg) -> None:
    who = f"Sensor '{cfg.name}'"
    if not cfg.frames:
        raise ValueError(f"{who} has no frame: give at least one body, site or geom.")
    for ref in cfg.frames:
        if ref.type not in _FRAMES:
            raise ValueError(f"{who}: frame.type must be 'body', 'site', or 'geom', got {ref.type}")
    if cfg.ray_alignment not in get_args(RayAlignment):
        raise ValueError(
            f"{who}: ray_alignment must be one of {get_args(RayAlignment)}, "
            f"got '{cfg.ray_alignment}'."
        )
    if not cfg.max_distance > 0:
        raise ValueError(f"{who}: max_distance must be positive, got {cfg.max_distance} m.")
    groups = cfg.include_geom_groups
    if groups is not None and not set(groups) <= set(range(mujoco.mjNGROUP)):
        raise ValueError(
            f"{who}: include_geom_groups must be among 0 to {mujoco.mjNGROUP - 1}, got {groups}."
        )
