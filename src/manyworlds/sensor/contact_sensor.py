"""Contacts between elements of a scene: forces, positions, and durations."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

import mujoco
import numpy as np
import torch

from manyworlds.sensor.sensor import NOT_REQUESTED, Sensor, SensorCfg
from manyworlds.sim.views import DataView, ModelView
from manyworlds.utils.declared import declared
from manyworlds.utils.overrides import overrides
from manyworlds.validation.checks import check_count
from manyworlds.validation.names import match_ids, near_matches, resolve_matching_names
from manyworlds.validation.worlds import EnvIds, Worlds, as_index, takes_worlds

if TYPE_CHECKING:
    from manyworlds.entity import Entity
    from manyworlds.utils.debug_visualizer import DebugVisualizer

# Outputs of MuJoCo's contact sensor, in its order, with their dimensions.
FIELDS = {"found": 1, "force": 3, "torque": 3, "dist": 1, "pos": 3, "normal": 3, "tangent": 3}
_IN_HISTORY = ("force", "torque", "dist")
_REDUCE = ("none", "mindist", "maxforce", "netforce")
_POLICIES = ("first", "any", "error")
_OBJ_TYPES = {
    "geom": mujoco.mjtObj.mjOBJ_GEOM,
    "body": mujoco.mjtObj.mjOBJ_BODY,
    "subtree": mujoco.mjtObj.mjOBJ_XBODY,
}


@dataclass
class ContactMatch:
    """Selects geoms, bodies, or subtrees of bodies."""

    mode: Literal["geom", "body", "subtree"]
    pattern: str | tuple[str, ...]
    """Regular expressions of names in the entity, or else in the scene."""
    entity: str | None = None
    exclude: tuple[str, ...] = ()
    """Names, or regular expressions of names, to exclude."""


@dataclass
class ContactSensorCfg(SensorCfg):
    """Configuration of a contact sensor: contacts to match, and data to report."""

    primary: ContactMatch
    """Elements whose contacts are measured; each matching element has its own rows."""
    secondary: ContactMatch | None = None
    """Elements that a primary may touch; None for any."""
    fields: tuple[str, ...] = ("found", "force")
    """Data to report: any of found, force, torque, dist, pos, normal, tangent."""
    reduce: Literal["none", "mindist", "maxforce", "netforce"] = "maxforce"
    """Selection of contacts for a primary's slots: the first ones, the deepest, or those with the
    largest forces; netforce puts their sum into the first slot."""
    num_slots: int = 1
    """Number of contacts to report per primary."""
    secondary_policy: Literal["first", "any", "error"] = "first"
    """Behavior if several elements match `secondary`: use the first, match contacts with any
    object, or raise an error."""
    track_air_time: bool = False
    """Track the time of each primary in contact and in the air, at every physics step."""
    global_frame: bool = False
    """Report force and torque in the world frame instead of the contact frame."""
    history_length: int = 0
    """Number of physics steps with a history of force, torque and dist."""
    debug: bool = False
    """Draw contacts and forces; requires the fields found, pos, force, normal and tangent."""

    def build(self) -> ContactSensor:
        """Build the sensor."""
        return ContactSensor(self)


@dataclass
class ContactData:
    """Output of a contact sensor for P primaries of S slots each, N = P * S, primary-major.

    Fields that were not requested are None; a slot without a contact contains zeros.
    """

    found: torch.Tensor = NOT_REQUESTED
    """Number of contacts of the primary, shape [num_envs, N]; 0 in an empty slot."""
    force: torch.Tensor = NOT_REQUESTED
    """Force of the primary on the secondary [N], shape [num_envs, N, 3]: (normal, tangent,
    tangent2) in the contact frame, or the world frame with `netforce` or `global_frame`."""
    torque: torch.Tensor = NOT_REQUESTED
    """Torque [N m], in the same frame as the force, shape [num_envs, N, 3]."""
    dist: torch.Tensor = NOT_REQUESTED
    """Distance [m], negative in penetration, shape [num_envs, N]."""
    pos: torch.Tensor = NOT_REQUESTED
    """Contact position in the world frame [m], shape [num_envs, N, 3]."""
    normal: torch.Tensor = NOT_REQUESTED
    """Direction from primary to secondary in the world frame, shape [num_envs, N, 3]."""
    tangent: torch.Tensor = NOT_REQUESTED
    """First tangent in the world frame, shape [num_envs, N, 3]."""
    current_air_time: torch.Tensor = NOT_REQUESTED
    """Time since the last contact [s], 0 in contact, shape [num_envs, P]."""
    last_air_time: torch.Tensor = NOT_REQUESTED
    """Duration of the last air phase [s], shape [num_envs, P]."""
    current_contact_time: torch.Tensor = NOT_REQUESTED
    """Time since contact began [s], 0 in the air, shape [num_envs, P]."""
    last_contact_time: torch.Tensor = NOT_REQUESTED
    """Duration of the last contact [s], shape [num_envs, P]."""
    force_history: torch.Tensor = NOT_REQUESTED
    """Forces [N] of the last H physics steps, newest first, shape [num_envs, N, H, 3]."""
    torque_history: torch.Tensor = NOT_REQUESTED
    """Torques [N m] of the last H physics steps, newest first, shape [num_envs, N, H, 3]."""
    dist_history: torch.Tensor = NOT_REQUESTED
    """Distances [m] of the last H physics steps, newest first, shape [num_envs, N, H]."""


_TIMES = tuple(field.name for field in fields(ContactData) if field.name.endswith("_time"))


class ContactSensor(Sensor[ContactData]):
    """Measures contacts with one MuJoCo contact sensor per primary, `<sensor>_<primary>`.

    The fields are copies, which may be kept. Fields that MuJoCo computes from forces, and data
    tracked over physics steps, describe the state before the last physics step; if a sensor has one
    field that needs forces, so do all of its fields.

    Raises:
        ValueError: the configuration contradicts itself.
    """

    noise_fields = ("force", "torque", "dist", "pos")
    state_attributes = ("_times", "_history", "_newest")
    world_columns = ("_times", "_history")
    shared_attributes = ("_newest",)
    derived_attributes = ("_now",)  # views of the simulation's data
    primary_names: list[str] = declared()
    """Names of the primaries, relative to their entity; after `edit_spec`."""

    def __init__(self, cfg: ContactSensorCfg) -> None:
        super().__init__()
        _check(cfg)
        self.cfg: ContactSensorCfg = cfg
        self.primary_names = []
        self._times: torch.Tensor | None = None  # [4, num_envs, P], in the order of _TIMES
        self._history: dict[str, torch.Tensor] = {}  # each [H, num_envs, N, ...]: a ring
        self._newest = torch.zeros(1, dtype=torch.long)  # where a captured graph can move it
        self._tracks = cfg.track_air_time or cfg.history_length > 0
        self._kept = 0  # number of physics steps with samples in MuJoCo's buffer
        wanted = set(cfg.fields)
        if self._tracks:
            # With force among them, MuJoCo evaluates all fields once per physics step. Without it,
            # some states would be measured twice and others never.
            wanted |= {"found", "force"}
        self._fields = [name for name in FIELDS if name in wanted]
        self._keeps = [name for name in _IN_HISTORY if name in cfg.fields and cfg.history_length]

    @property
    def needs_substeps(self) -> bool:
        """True if the sensor must be updated after every physics step."""
        own = overrides(self, ContactSensor, "update")
        return own or (self._tracks and not self._kept)

    def edit_spec(self, scene_spec: mujoco.MjSpec, entities: dict[str, Entity]) -> None:
        """Add a MuJoCo sensor for each primary.

        Raises:
            ValueError: a pattern matches nothing, or more than `secondary_policy` allows.
        """
        cfg = self.cfg
        self.primary_names, prefix = _resolve(cfg, "primary", scene_spec, entities)
        options: dict[str, Any] = {}
        if cfg.secondary is not None:
            names, secondary_prefix = _resolve(cfg, "secondary", scene_spec, entities)
            if len(names) > 1 and cfg.secondary_policy == "error":
                raise ValueError(
                    f"Contact sensor '{cfg.name}': secondary matches {names}, but "
                    "secondary_policy='error' allows one: make its pattern more specific."
                )
            if len(names) == 1 or cfg.secondary_policy == "first":
                first = secondary_prefix + names[0]
                kind, name = self._object_of(cfg.secondary, first, scene_spec, entities)
                options |= {"reftype": kind, "refname": name}
        dataspec = sum(1 << list(FIELDS).index(name) for name in self._fields)
        for name in self.primary_names:
            kind, object_name = self._object_of(cfg.primary, prefix + name, scene_spec, entities)
            scene_spec.add_sensor(
                name=f"{cfg.name}_{name}",
                type=mujoco.mjtSensor.mjSENS_CONTACT,
                objtype=kind,
                objname=object_name,
                intprm=[dataspec, _REDUCE.index(cfg.reduce), cfg.num_slots],
                **options,
            )

    def _object_of(
        self,
        match: ContactMatch,
        name: str,
        scene_spec: mujoco.MjSpec,
        entities: dict[str, Entity],
    ) -> tuple[mujoco.mjtObj, str]:
        """Return kind and name of the object that has the geoms of a selected element."""
        if match.mode == "geom":
            return _OBJ_TYPES["geom"], name
        for entity in entities.values():
            if name not in entity.moved_geoms:
                continue
            body = entity.moved_geoms[name]
            own = set(entity.names("geom"))
            others = [geom for geom in scene_spec.body(body).geoms if geom.name not in own]
            touching = [geom for geom in others if geom.contype or geom.conaffinity]
            if touching:
                warnings.warn(
                    f"Contact sensor '{self.cfg.name}': the geoms of '{name}' belong to the body "
                    f"'{body}', so that contacts with its other geoms, such as "
                    f"'{touching[0].name}', count as well: give these a body of their own, or set "
                    "TerrainEntityCfg.on_world_body=False.",
                    stacklevel=2,
                )
            return _OBJ_TYPES["body"], body
        return _OBJ_TYPES[match.mode], name

    def keep_substeps(self, spec: mujoco.MjSpec, count: int) -> None:
        """Let MuJoCo buffer the samples of `count` physics steps, which an update then reads."""
        # Samples with a period or a latency are taken at updates instead.
        if self._tracks and not self.cfg.samples_eagerly:
            self._kept = count
            for name in self.primary_names:
                spec.sensor(f"{self.cfg.name}_{name}").nsample = count

    def initialize(
        self, mj_model: mujoco.MjModel, model: ModelView, data: DataView, device: torch.device
    ) -> None:
        """Find the sensor's columns in `sensordata`, and allocate tracked data."""
        self._warn_of_untouchable(mj_model)
        columns: list[int] = []
        kept: list[int] = []
        for name in self.primary_names:
            sensor = mj_model.sensor(f"{self.cfg.name}_{name}")
            width = sensor.dim[0]
            adr = mj_model.sensor_historyadr[sensor.id]
            columns += range(sensor.adr[0], sensor.adr[0] + width)
            kept += range(adr, adr + 2 + self._kept * (1 + width))
        self._columns = as_index(torch.tensor(columns, device=device))
        self._kept_columns = as_index(torch.tensor(kept, device=device))
        # Distances of the buffered samples from the newest, oldest first, shape (samples, 1).
        self._distances = torch.arange(self._kept, device=device).flip(0)[:, None]
        self._timestep = float(mj_model.opt.timestep)
        self._sim_data = data
        self._source: torch.Tensor | None = None
        self._now: dict[str, torch.Tensor] = {}
        if not self._tracks:
            return
        now = self._measure()
        num_envs = len(next(iter(now.values())))
        with torch.inference_mode(False):
            # With float64, sums over the steps of a long episode stay exact.
            shape = (len(_TIMES), num_envs, len(self.primary_names))
            self._times = torch.zeros(shape, dtype=torch.float64, device=device)
            self._newest = torch.zeros(1, dtype=torch.long, device=device)
            for name in self._keeps:
                shape = (self.cfg.history_length, *now[name].shape)
                self._history[name] = torch.zeros(shape, device=device)

    @takes_worlds
    def reset(self, env_ids: EnvIds = None) -> None:
        """Clear times and histories of the given worlds."""
        super().reset(env_ids)
        if self._times is None:
            return
        worlds = Worlds.of(env_ids, self._times.shape[1], self._times.device).mask
        for tracked in (self._times, *self._history.values()):
            tracked.masked_fill_(worlds.view(1, -1, *[1] * (tracked.ndim - 2)), 0.0)

    def update(self, dt: float) -> None:
        """Track the contacts of the last `dt` [s]."""
        if self._tracks:
            steps = round(dt / self._timestep)
            if 1 < steps <= self._kept:
                self._track(self._last_samples(steps), self._timestep)
            else:
                now = {name: value.unsqueeze(0) for name, value in self._measure().items()}
                self._track(now, dt)
        super().update(dt)

    def compute_first_contact(self, dt: float, abs_tol: float = 1e-6) -> torch.Tensor:
        """Return a mask of primaries with new contact in the last `dt` [s], shape [num_envs, P].

        Raises:
            RuntimeError: air time is not tracked.
        """
        return self._began("current_contact_time", dt + abs_tol)

    def compute_first_air(self, dt: float, abs_tol: float = 1e-6) -> torch.Tensor:
        """Return a mask of primaries that lost contact in the last `dt` [s], shape [num_envs, P].

        Raises:
            RuntimeError: air time is not tracked.
        """
        return self._began("current_air_time", dt + abs_tol)

    def debug_vis(self, visualizer: DebugVisualizer) -> None:
        """Draw a sphere at each contact, and an arrow along its force, with 1 m per kN."""
        data = self.data
        if not self.cfg.debug or data.found is None or data.pos is None:
            return
        force = data.force
        if force is not None and self.cfg.reduce != "netforce" and not self.cfg.global_frame:
            if data.normal is not None and data.tangent is not None:
                force = _to_world(force, data.normal, data.tangent)
            else:
                force = None
        size = visualizer.meansize
        for env in visualizer.get_env_indices(len(data.found)):
            for slot in data.found[env].nonzero().squeeze(-1).tolist():
                pos = data.pos[env, slot].cpu().numpy()
                visualizer.add_sphere(pos, 0.2 * size, (1.0, 0.6, 0.0, 1.0))
                if force is not None:
                    tip = pos + 1e-3 * force[env, slot].cpu().numpy()
                    visualizer.add_arrow(pos, tip, (1.0, 0.2, 0.0, 1.0), width=0.1 * size)

    def _warn_of_untouchable(self, mj_model: mujoco.MjModel) -> None:
        """Warn of patterns whose elements have no geom that can be in contact."""
        primary = self.cfg.primary
        secondary = self.cfg.secondary
        sensors = [mj_model.sensor(f"{self.cfg.name}_{name}").id for name in self.primary_names]
        kinds = mj_model.sensor_objtype[sensors]
        ids = mj_model.sensor_objid[sensors]
        touchable = [
            _is_touchable(mj_model, kind, index) for kind, index in zip(kinds, ids, strict=True)
        ]
        patterns = primary.pattern
        if isinstance(patterns, str):
            patterns = [patterns]
        silent = []
        for pattern in patterns:
            found = match_ids(pattern, self.primary_names)
            if found and not any(touchable[i] for i in found):
                silent.append(("primary", pattern))
        kind = mj_model.sensor_reftype[sensors[0]]
        index = mj_model.sensor_refid[sensors[0]]
        if secondary is not None and index >= 0 and not _is_touchable(mj_model, kind, index):
            silent.append(("secondary", secondary.pattern))
        for role, pattern in silent:
            warnings.warn(
                f"Contact sensor '{self.cfg.name}' never finds a contact: no {role} that "
                f"{pattern!r} matches has a geom that can collide: name others, or give their "
                "geoms a contype or conaffinity.",
                stacklevel=2,
            )

    def _compute_data(self) -> ContactData:
        now = self._measure()
        # Copies, which users may keep.
        data = ContactData(**{name: now[name].clone() for name in self.cfg.fields})
        if self.cfg.track_air_time and self._times is not None:
            for name, time in zip(_TIMES, self._times.float(), strict=True):
                setattr(data, name, time)
        for name, ring in self._history.items():
            setattr(data, f"{name}_history", ring[self._newest_first()].movedim(0, 2))
        return data

    def _measure(self) -> dict[str, torch.Tensor]:
        """Return the current value of each field for all slots: views, unless rotated."""
        source = self._sim_data.sensordata
        if source is not self._source or not isinstance(self._columns, slice):
            self._source = source
            self._now = self._split(source[:, self._columns])
        return self._turned(self._now)

    def _last_samples(self, steps: int) -> dict[str, torch.Tensor]:
        """Return each field of all slots at the last physics steps, [steps, num_envs, ...].

        The oldest step is the first.
        """
        # For each primary: a user value, the position of the newest sample, times, and samples.
        kept = self._sim_data.history[:, self._kept_columns]
        kept = kept.unflatten(1, (len(self.primary_names), -1))
        samples = kept[..., 2 + self._kept :].unflatten(-1, (self._kept, -1))
        newest = kept[:, 0, 1].long()
        positions = (newest - self._distances[-steps:]) % self._kept
        # All steps at once, shape (steps, num_envs, primaries, values of a primary).
        taken = samples.movedim(2, 0).take_along_dim(positions[:, :, None, None], dim=0)
        return self._turned(self._split(taken.flatten(2)))

    def _newest_first(self) -> torch.Tensor:
        """Return the places of the ring, from the newest sample back in time."""
        lags = torch.arange(self.cfg.history_length, device=self._newest.device)
        return (self._newest + lags) % self.cfg.history_length

    def _turned(self, fields: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return the fields with forces and torques in the frame that `cfg` selects."""
        fields = dict(fields)
        if self.cfg.global_frame and self.cfg.reduce != "netforce":
            for name in fields.keys() & {"force", "torque"}:
                fields[name] = _to_world(fields[name], fields["normal"], fields["tangent"])
        return fields

    def _split(self, columns: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return each field of all slots, as views of these columns."""
        rows = len(self.primary_names) * self.cfg.num_slots
        slots = columns.unflatten(-1, (rows, -1))
        widths = [FIELDS[name] for name in self._fields]
        fields = dict(zip(self._fields, slots.split(widths, dim=-1), strict=True))
        for name in fields.keys() & {"found", "dist"}:
            fields[name] = fields[name].squeeze(-1)
        return fields

    def _track(self, samples: dict[str, torch.Tensor], dt: float) -> None:
        """Track samples that are `dt` [s] apart, each field of shape [steps, num_envs, ...]."""
        if self._history:
            for step in range(len(samples["found"])):
                # The ring is written backwards: reading forward from the newest goes back in time.
                self._newest.sub_(1).remainder_(self.cfg.history_length)
                for name, ring in self._history.items():
                    ring.index_copy_(0, self._newest, samples[name][step : step + 1])
        if not self.cfg.track_air_time or self._times is None:
            return
        current = self._times[::2]
        last = self._times[1::2]
        # The first slot is filled if any is.
        for touching in samples["found"][:, :, :: self.cfg.num_slots] > 0:
            ended = torch.stack([touching, ~touching])  # air phases, contacts
            torch.where(ended & (current > 0), current, last, out=last)
            current.add_(dt).masked_fill_(ended, 0.0)

    def _began(self, name: str, limit: float) -> torch.Tensor:
        if not self.cfg.track_air_time or self._times is None:
            raise RuntimeError(
                f"Contact sensor '{self.cfg.name}' does not track air time: "
                "set track_air_time=True in its configuration."
            )
        time = self._times[_TIMES.index(name)]
        return (time > 0) & (time < limit)


def _is_touchable(model: mujoco.MjModel, kind: int, index: int) -> bool:
    """Return whether an object has a geom that collides, or that is in a pair."""
    if kind == int(mujoco.mjtObj.mjOBJ_GEOM):
        geoms = np.array([index])
    elif kind == int(mujoco.mjtObj.mjOBJ_BODY):
        geoms = np.flatnonzero(model.geom_bodyid == index)
    else:
        inside = np.arange(model.nbody) == index
        for body in range(1, model.nbody):
            inside[body] |= inside[model.body_parentid[body]]
        geoms = np.flatnonzero(inside[model.geom_bodyid])
    collides = (model.geom_contype[geoms] | model.geom_conaffinity[geoms]) != 0
    paired = np.isin(geoms, [model.pair_geom1, model.pair_geom2])
    return bool((collides | paired).any())


def _check(cfg: ContactSensorCfg) -> None:
    who = f"Contact sensor '{cfg.name}'"
    unknown = set(cfg.fields) - set(FIELDS)
    if unknown:
        raise ValueError(f"{who}: unknown fields {sorted(unknown)}: choose from {list(FIELDS)}.")
    if cfg.reduce not in _REDUCE:
        raise ValueError(f"{who}: unknown reduce '{cfg.reduce}': choose from {_REDUCE}.")
    if not cfg.fields:
        raise ValueError(f"{who} has no fields: choose from {list(FIELDS)}.")
    if cfg.secondary_policy not in _POLICIES:
        raise ValueError(
            f"{who}: unknown secondary_policy '{cfg.secondary_policy}': choose from {_POLICIES}."
        )
    check_count(f"{who}: num_slots", cfg.num_slots, 1)
    check_count(f"{who}: history_length", cfg.history_length, 0)
    if cfg.history_length and not set(cfg.fields) & set(_IN_HISTORY):
        raise ValueError(f"{who} has a history without fields: add one of {_IN_HISTORY} to fields.")
    if cfg.global_frame and cfg.reduce != "netforce" and not {"normal", "tangent"} <= {*cfg.fields}:
        raise ValueError(
            f"{who}: global_frame=True requires 'normal' and 'tangent' in fields, "
            f"got {cfg.fields}: add them."
        )
    for match in (cfg.primary, cfg.secondary):
        if match is not None and match.mode not in _OBJ_TYPES:
            raise ValueError(f"{who}: unknown mode '{match.mode}': use one of {list(_OBJ_TYPES)}.")


def _resolve(
    cfg: ContactSensorCfg, role: str, scene_spec: mujoco.MjSpec, entities: dict[str, Entity]
) -> tuple[list[str], str]:
    """Return the names that a match selects, and their prefix in the scene."""
    match: ContactMatch = getattr(cfg, role)
    who = f"Contact sensor '{cfg.name}': {role}"
    kind = "geom" if match.mode == "geom" else "body"
    prefix = ""
    if match.entity is None and kind == "geom":
        names = [geom.name for geom in scene_spec.geoms]
    elif match.entity is None:
        names = [body.name for body in scene_spec.bodies]
    elif match.entity in entities:
        entity = entities[match.entity]
        names = list(entity.names(kind))
        if entity.has_prefix:
            prefix = f"{match.entity}/"
    else:
        raise ValueError(
            f"{who} names the entity '{match.entity}', but the scene has {sorted(entities)}."
        )
    try:
        found = resolve_matching_names(match.pattern, [name for name in names if name])[1]
        left_out: set[str] = set()
        for pattern in match.exclude:
            hits = [pattern]
            if pattern not in found:
                hits = [found[i] for i in match_ids(pattern, found)]
            if not hits:
                warnings.warn(
                    f"{who} excludes '{pattern}', which is none of {found}: correct it, or leave "
                    f"it out.{near_matches(pattern, found)}",
                    stacklevel=2,
                )
            left_out.update(hits)
    except ValueError as error:
        where = "the scene"
        if match.entity:
            where = f"the entity '{match.entity}'"
        raise ValueError(f"{who} looks for a {kind} in {where}: {error}") from None
    kept = [name for name in found if name not in left_out]
    if not kept:
        raise ValueError(f"{who} matches {found}, all of which exclude={match.exclude} removes.")
    return kept, prefix


def _to_world(vector: torch.Tensor, normal: torch.Tensor, tangent: torch.Tensor) -> torch.Tensor:
    """Rotate from the frame (normal, tangent, normal x tangent) to the world, all [..., 3]."""
    x, y, z = vector.split(1, dim=-1)
    return x * normal + y * tangent + z * torch.linalg.cross(normal, tangent)
