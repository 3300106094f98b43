"""Core of domain randomization: from names to rows of the model, and draws into them.

A function of this package is written as a builder, which resolves names and ranges and returns a
`Randomization`; its decorator `randomizes` applies that to the worlds named. The event manager
builds it once for each term. A draw is then a few tensor operations over [worlds, elements,
columns], whatever the number of worlds.
"""

from __future__ import annotations

import copy
import functools
import inspect
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, ParamSpec, cast

import mujoco
import torch

from manyworlds.envs.mdp.dr.distributions import (
    ABS,
    GAUSSIAN,
    OPERATIONS,
    TAIL,
    Distribution,
    Operation,
    resolve_distribution,
    resolve_operation,
)
from manyworlds.envs.mdp.dr.limits import Limits
from manyworlds.managers.event_manager import requires_model_fields
from manyworlds.managers.scene_entity_config import SceneEntityCfg
from manyworlds.managers.selection_reads import check_selection
from manyworlds.sim import RecomputeLevel
from manyworlds.sim.fields.model_fields import MODEL_FIELD_TABLE
from manyworlds.utils.world_random import RandomStream
from manyworlds.validation.names import resolve_matching_names_values
from manyworlds.validation.rules import refuse
from manyworlds.validation.worlds import EnvIds, Worlds, assign, takes_worlds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv

P = ParamSpec("P")
ROBOT = SceneEntityCfg("robot")
Range = tuple[float, float]
Ranges = Range | Mapping[int, Range] | Mapping[str, Range]
"""One range for all, or one by column, or one by regular expression over names of elements."""
Axes = int | Sequence[int] | None

# What a field has rows for -> the kind of element to select, and where its rows are.
_ELEMENTS = {
    "body": ("body", "body_ids"),
    "joint": ("joint", "joint_ids"),
    "dof": ("joint", "joint_v_adr"),
    "position": ("joint", "joint_q_adr"),
    "geom": ("geom", "geom_ids"),
    "site": ("site", "site_ids"),
    "camera": ("camera", "cam_ids"),
    "light": ("light", "light_ids"),
    "material": ("material", "mat_ids"),
    "pair": ("pair", "pair_ids"),
    "tendon": ("tendon", "tendon_ids"),
    "actuator": ("actuator", "actuator_ids"),
    "control": ("actuator", "ctrl_ids"),
}
_OPTION = "opt."
# Where rows of ball joints are; one has several degrees of freedom.
_BALL_JOINTS = {"joint": "ball_joint_ids", "dof": "ball_joint_v_adr"}


class Randomization(ABC):
    """Event that is built: its names are resolved and its parameters checked.

    It accepts any number of worlds, also none.
    """

    def __call__(self, env: ManagerBasedRlEnv, env_ids: EnvIds) -> None:
        """Randomize the worlds named, all of them for None; see `apply`."""
        self.apply(env, Worlds.of(env_ids, env.num_envs, env.device))
        env.sim.restore_absent()

    @abstractmethod
    def apply(self, env: ManagerBasedRlEnv, worlds: Worlds) -> None:
        """Randomize some worlds, with numbers of `env.random`."""


def randomizes(
    *fields: str, reads: tuple[str, ...] = (), selects: tuple[str, ...] | None = None
) -> Callable[[Callable[P, Randomization]], Callable[P, None]]:
    """Make an event function of a builder, and declare the model fields that it changes.

    Both are called as `function(env, env_ids, **params)`. The builder does not use `env_ids`. The
    event function builds, randomizes the worlds named, recomputes what follows, and keeps nothing.
    Its attribute `prepare`, called as `prepare(env, **params)`, only builds; the event manager
    keeps what it returns.

    Args:
        fields: names of the fields that the event changes.
        reads: names of other fields that it reads.
        selects: kinds of elements that it reads of a selection; None for those of the fields.
    """
    kinds = frozenset(selects or ())
    if selects is None:
        kinds = frozenset(kind for field in fields for kind in element_kinds(field))

    def declare(builder: Callable[P, Randomization]) -> Callable[P, None]:
        build: Callable[..., Randomization] = builder
        signature = inspect.signature(builder)

        def prepare(env: ManagerBasedRlEnv, *args: Any, **kwargs: Any) -> Randomization:
            for name, value in signature.bind(env, None, *args, **kwargs).arguments.items():
                if isinstance(value, SceneEntityCfg):
                    check_selection(function, name, value)
            with torch.inference_mode(False):  # what is built outlives a rollout
                return build(env, None, *args, **kwargs)

        @functools.wraps(builder)
        def function(env: ManagerBasedRlEnv, env_ids: EnvIds, *args: Any, **kwargs: Any) -> None:
            prepare(env, *args, **kwargs)(env, env_ids)
            env.sim.recompute_constants(env.sim.recompute_level(fields), env_ids)

        levels = [MODEL_FIELD_TABLE[field].warp or RecomputeLevel.none for field in fields]
        level = max(levels, default=RecomputeLevel.none)
        event: Any = takes_worlds(requires_model_fields(*fields, recompute=level)(function))
        event.__signature__ = signature.replace(return_annotation="None")
        event.prepare = prepare
        event.reads_fields = reads
        event.selects = kinds
        return event

    return declare


def resolved(env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg) -> SceneEntityCfg:
    """Return a selection that is resolved, or a resolved copy of one that is not."""
    if asset_cfg.is_resolved:
        return asset_cfg
    asset_cfg = copy.deepcopy(asset_cfg)
    asset_cfg.resolve(env.scene)
    return asset_cfg


def element_kind(field: str) -> str:
    """Kind of element that a model field has rows for, as `SceneEntityCfg` names kinds."""
    return _ELEMENTS[MODEL_FIELD_TABLE[field].element][0]


def has_rows(field: str) -> bool:
    """Return True if elements of entities have rows of a model field."""
    return field in MODEL_FIELD_TABLE and MODEL_FIELD_TABLE[field].element in _ELEMENTS


def element_kinds(field: str) -> set[str]:
    """Kinds of elements that a model field has rows for."""
    kinds = {element_kind(field)}
    if MODEL_FIELD_TABLE[field].element in _BALL_JOINTS:
        kinds.add("ball_joint")
    return kinds


def selected(env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg, kind: str) -> tuple[str, ...]:
    """Names of the elements of a kind that a resolved selection has.

    Raises:
        ValueError: it has none.
    """
    names = asset_cfg.names(kind)
    if names is None:
        names = env.scene.entity(asset_cfg.name).names(kind)
    if not names:
        raise ValueError(
            f"'{asset_cfg.name}' has no {kind} to randomize: name another entity in asset_cfg."
        )
    return tuple(names)


def selected_rows(
    env: ManagerBasedRlEnv, field: str, asset_cfg: SceneEntityCfg | None
) -> tuple[tuple[str, ...], list[torch.Tensor]]:
    """Return names of the selected elements that have a model field, and the rows of each.

    A selection without joints has all joints, also ball joints. Options belong to no entity, and
    have one row.

    Raises:
        ValueError: there are none, or some of the elements cannot have the field.
    """
    element = MODEL_FIELD_TABLE[field].element
    if asset_cfg is None:
        return (element,), [torch.zeros(1, dtype=torch.long, device=env.sim.device)]
    kind, source = _ELEMENTS[element]
    entity = env.scene.entity(asset_cfg.name)
    balls: tuple[str, ...] = ()
    if kind == "joint" and (asset_cfg.is_given("ball_joint") or not asset_cfg.is_given(kind)):
        balls = entity.names("ball_joint")
        if asset_cfg.ball_joint_names is not None:
            balls = tuple(asset_cfg.ball_joint_names)
    if balls and element not in _BALL_JOINTS:
        raise ValueError(
            f"{field} of ball joints cannot be randomized, but '{asset_cfg.name}' has "
            f"{', '.join(balls)}: name the other joints in joint_names."
        )
    names: tuple[str, ...] = ()
    places: list[torch.Tensor] = []
    others = asset_cfg.names(kind)
    if others is None:
        others = entity.names(kind)
    if asset_cfg.is_given("ball_joint") and not asset_cfg.is_given(kind):
        others = ()
    if others or not balls:
        names = selected(env, asset_cfg, kind)
        rows = getattr(entity.indexing, source)
        if len(rows) != len(entity.names(kind)):
            raise ValueError(
                f"'{asset_cfg.name}' has an actuator with several controls, so that {field} "
                "has no row for each actuator: write sim.model in a term of your own."
            )
        places = list(rows[asset_cfg.index(kind)].reshape(-1, 1))
    if balls:
        rows = getattr(entity.indexing, _BALL_JOINTS[element])[asset_cfg.index("ball_joint")]
        names += balls
        places += list(rows.reshape(len(balls), -1))
    return names, places


class Rows:
    """Rows of one model field that belong to elements of an entity.

    Args:
        env: the environment.
        field: name of the model field.
        asset_cfg: the entity and which of its elements; None for an option.
        chosen: which of the selected elements, by position; None for all.
    """

    def __init__(
        self,
        env: ManagerBasedRlEnv,
        field: str,
        asset_cfg: SceneEntityCfg | None,
        chosen: list[int] | None = None,
    ) -> None:
        self.field = field
        if asset_cfg is not None:
            asset_cfg = resolved(env, asset_cfg)
        names, places = selected_rows(env, field, asset_cfg)
        if chosen is None:
            chosen = list(range(len(names)))
        counts = torch.tensor([len(places[i]) for i in chosen])
        self.elements = tuple(names[i] for i in chosen)
        """Names of the elements."""
        self.names = tuple(names[i] for i in chosen for _ in places[i])
        """Name of the element of each row."""
        self.ids = torch.cat([places[i] for i in chosen])
        """Rows in the model, shape [rows]: one an element, or several for a ball joint."""
        if asset_cfg is not None and field in ("body_pos", "body_quat"):
            _check_attached(env, field, asset_cfg.name, self.names, self.ids.tolist())
        device = self.ids.device
        self._element = torch.arange(len(chosen)).repeat_interleave(counts).to(device)
        self.width = math.prod(MODEL_FIELD_TABLE[field].shape[:1])
        """Columns of the field; a scalar field has one."""
        self._scalar = not MODEL_FIELD_TABLE[field].shape
        self._sim = env.sim
        self._default = None
        if field not in env.sim.per_world_default_fields:
            default = env.sim.get_default_of_variants(field)[0]
            if asset_cfg is None:
                default = default.unsqueeze(0)
            self._default = default[self.ids].reshape(len(self.ids), self.width)

    def spread(self, values: torch.Tensor) -> torch.Tensor:
        """Give each row the values of its element: [..., elements, width] to [..., rows, width]."""
        if len(self.elements) == len(self.ids):
            return values
        return values[..., self._element, :]

    def default(self, worlds: Worlds) -> torch.Tensor:
        """Values as compiled, shape [worlds, elements, width]; do not write."""
        shape = (worlds.num_rows, len(self.ids), self.width)
        if self._default is not None:
            return self._default.expand(shape)
        # Worlds may have become other variants since the last draw.
        every = self._sim.get_default_field(self.field)
        return worlds.pick(every, self.ids).reshape(shape)

    def compiled(self) -> torch.Tensor:
        """Values of all variants as compiled, shape [variants, elements, width]."""
        every = self._sim.get_default_of_variants(self.field)
        if self.field.startswith(_OPTION):
            every = every.unsqueeze(1)
        return every[:, self.ids].reshape(len(every), len(self.ids), self.width)

    def present(self, env: ManagerBasedRlEnv, worlds: Worlds) -> torch.Tensor:
        """Values as they are now, shape [worlds, elements, width]: a copy."""
        rows = worlds.pick(self._rows(env), self.ids)
        return rows.reshape(worlds.num_rows, len(self.ids), self.width)

    def _rows(self, env: ManagerBasedRlEnv) -> torch.Tensor:
        """Rows of all worlds, shape [num_envs, rows of the field, ...]."""
        if self.field.startswith(_OPTION):
            return getattr(env.sim.model.opt, self.field.removeprefix(_OPTION)).unsqueeze(1)
        return getattr(env.sim.model, self.field)

    def write(
        self,
        env: ManagerBasedRlEnv,
        worlds: Worlds,
        values: torch.Tensor,
        columns: torch.Tensor | None = None,
    ) -> None:
        """Write values of shape [worlds, elements, width], or only some of their columns."""
        if self._scalar:
            values = values.squeeze(-1)
        elif columns is not None:
            drawn = values[..., columns]
            values = self.present(env, worlds)
            values[..., columns] = drawn
        assign(self._rows(env), values, worlds, self.ids)


def _check_attached(
    env: ManagerBasedRlEnv, field: str, entity: str, names: Sequence[str], bodies: Sequence[int]
) -> None:
    """Refuse to place bodies whose pose is state, and warn if they are among others."""
    model = env.sim.mj_model
    moving = [
        name
        for name, body in zip(names, bodies, strict=True)
        if model.body_mocapid[body] >= 0
        or (model.jnt_type[model.jnt_bodyid == body] == mujoco.mjtJoint.mjJNT_FREE).any()
    ]
    if not moving:
        return
    message = (
        f"dr.{field} has no effect on {', '.join(map(repr, moving))} of '{entity}', whose pose is "
        "part of the state: select other bodies, and place this one with "
        "mdp.reset_root_state_uniform."
    )
    if len(moving) == len(bodies):
        refuse(message)
        return
    warnings.warn(message, UserWarning, 2)


@dataclass(frozen=True)
class Bounds:
    """Bounds to draw between, by element and column."""

    low: torch.Tensor
    """Shape [elements, columns], or [1, columns] where all elements have the same."""
    high: torch.Tensor
    """Likewise."""
    distribution: Distribution
    shared: bool = False
    """True gives all elements of a world the same draw."""

    def __post_init__(self) -> None:
        self.distribution.check(self.low, self.high)
        if self.shared and len(self.low) > 1:
            raise ValueError(
                "shared_random draws one value for all elements, but their ranges differ by name: "
                "give one range, or set shared_random=False."
            )

    def sample(self, random: RandomStream, worlds: Worlds, elements: int) -> torch.Tensor:
        """Draw for some worlds, shape [worlds, elements, columns]."""
        rows = 1 if self.shared else elements
        shape = (rows, self.low.shape[1])
        if self.distribution.draw is not None:
            given: Any = worlds.for_call(self.distribution.draw)
            if given is None:
                given = worlds.ids
            drawn = self.distribution.draw(random, self.low, self.high, shape, given)
        else:
            every = (worlds.num_rows, *shape)
            low = self.low.expand(every)
            high = self.high.expand(every)
            drawn = self.distribution.sample(low, high, every, str(self.low.device))
        return drawn.expand(worlds.num_rows, elements, -1)


def make_bounds(
    rows: Sequence[Sequence[Range]],
    distribution: Distribution | str,
    device: torch.device,
    shared: bool = False,
) -> Bounds:
    """Make bounds of ranges, one by element (or one for all) and column.

    Raises:
        ValueError: a range is no pair of numbers, or the distribution cannot draw from it.
    """
    for row in rows:
        for bounds in row:
            if not _is_range(bounds):
                raise ValueError(f"A range must be two numbers (lower, upper), got {bounds!r}.")
    if all(list(row) == list(rows[0]) for row in rows):
        rows = rows[:1]
    low, high = torch.tensor(rows, dtype=torch.float32, device=device).unbind(-1)
    return Bounds(low, high, resolve_distribution(distribution), shared)


def _is_range(value: object) -> bool:
    return (
        isinstance(value, Sequence)
        and len(value) == 2
        and all(isinstance(bound, Real) for bound in value)
    )


@dataclass(frozen=True)
class FieldDraw(Randomization):
    """Draw of values of one model field."""

    entity: str
    """Name of the entity; empty for an option."""
    rows: Rows
    bounds: Bounds
    operation: Operation
    columns: torch.Tensor | None
    """Columns that are written; None for all."""
    source: torch.Tensor
    """Position among the drawn columns of the one that each written column takes."""
    limits: Limits
    cuts: bool
    """True cuts what is beyond the limits. False writes what `ends` was found to keep within."""

    def ends(self, base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Return the smallest and the largest values that it makes of base values, before a cut.

        Columns that are not written are as in `base`. None if they are not known: the operation
        changes the present values, or the distribution does not tell.
        """
        accumulates = not self.operation.uses_defaults and self.operation != ABS
        ends_of = self.bounds.distribution.ends
        if accumulates or ends_of is None:
            return None
        ends = []
        for drawn in ends_of(self.bounds.low, self.bounds.high):
            values = base.clone()
            combined = self._combined(base, drawn.expand(len(self.rows.elements), -1))
            values[..., self._written] = combined[..., self._written]
            ends.append(values)
        return torch.minimum(*ends), torch.maximum(*ends)

    def apply(self, env: ManagerBasedRlEnv, worlds: Worlds) -> None:
        """Draw for some worlds."""
        rows = self.rows
        if self.operation.uses_defaults:
            base = rows.default(worlds)
        else:
            base = rows.present(env, worlds)
        drawn = self.bounds.sample(env.random, worlds, len(rows.elements))
        values = self._combined(base, drawn)
        if self.cuts:
            values = self.limits.cut(values)
        rows.write(env, worlds, values, self.columns)

    def _combined(self, base: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        """Return the new values, of which only some columns are written."""
        random = self.operation.initialize(base)
        random[..., self._written] = self.rows.spread(drawn[..., self.source])
        return self.operation.combine(base, random)

    @property
    def _written(self) -> slice | torch.Tensor:
        if self.columns is None:
            return slice(None)
        return self.columns


def field_draw(
    env: ManagerBasedRlEnv,
    field: str,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg | None,
    distribution: Distribution | str,
    operation: Operation | str,
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
    *,
    default_axes: Axes = None,
    tied: Mapping[int, int] | None = None,
) -> FieldDraw:
    """Build a draw of values of a model field for elements of an entity.

    Args:
        env: the environment.
        field: name of the model field.
        ranges: see `Ranges`.
        asset_cfg: the entity and its elements; None for an option.
        distribution: a name or a `Distribution`.
        operation: a name or an `Operation`.
        axes: columns to draw; None for those of `ranges`, else `default_axes`.
        shared_random: whether all elements of a world get the same draw.
        clamp: whether values beyond the bounds of the field are cut instead of refused.
        default_axes: None for all columns.
        tied: columns that take the draw of another column, where that is drawn.

    Raises:
        ValueError: a range, an axis, a name, a distribution or an operation does not fit, or values
            would be out of the bounds of the field.
    """
    entity = ""
    if asset_cfg is not None:
        asset_cfg = resolved(env, asset_cfg)
        entity = asset_cfg.name
    by_axis: Mapping[int, Range] | None = None
    if isinstance(ranges, Mapping) and all(isinstance(key, int) for key in ranges):
        by_axis = cast("Mapping[int, Range]", ranges)
        default_axes = list(by_axis)
    if axes is None:
        axes = default_axes
    columns = _columns(field, axes)
    names, _ = selected_rows(env, field, asset_cfg)
    chosen, table = _table(names, ranges, by_axis, columns)
    # Tied columns are written, too, with the numbers that are drawn for others.
    twins = {twin: axis for twin, axis in (tied or {}).items() if axis in columns}
    written = sorted({*columns, *twins})
    source = [columns.index(twins.get(axis, axis)) for axis in written]
    how = resolve_operation(operation)
    device = env.sim.device
    bounds = make_bounds(table, distribution, device, shared_random)
    rows = Rows(env, field, asset_cfg, chosen)
    # What follows from an own operation, between the ends of a range, is not known.
    known = how in OPERATIONS.values() and bounds.distribution.ends is not None
    some_columns: torch.Tensor | None = None
    if len(written) != rows.width:
        some_columns = torch.tensor(written, device=device)
    draw = FieldDraw(
        entity,
        rows,
        bounds,
        how,
        some_columns,
        torch.tensor(source, device=device),
        _limits(env, rows, moves_upper=1 in written),
        cuts=clamp or not known,
    )
    if not clamp:
        base = draw.rows.compiled()
        ends = draw.ends(base)
        if ends is not None:
            what = f"operation '{how.name}' with these ranges"
            if bounds.distribution == GAUSSIAN:
                what += f" and {TAIL:g} standard deviations"
            draw.limits.check(base, *ends, what)
    env.sim.expand_model_fields((field,))
    return draw


def _limits(env: ManagerBasedRlEnv, rows: Rows, moves_upper: bool) -> Limits:
    """Return the bounds of the values in some rows."""
    bounds = MODEL_FIELD_TABLE[rows.field].bounds
    used = torch.ones(len(rows.ids), 1, dtype=torch.bool, device=rows.ids.device)
    if bounds.used_where:
        flags = getattr(env.sim.mj_model, bounds.used_where)
        used = torch.as_tensor(flags, device=used.device)[rows.ids].bool().reshape(-1, 1)
    return Limits(rows.field, rows.names, bounds, used, moves_upper)


def _columns(field: str, axes: Axes) -> list[int]:
    """Columns of a field, checked."""
    every = list(range(math.prod(MODEL_FIELD_TABLE[field].shape[:1])))
    if axes is None:
        return every
    if isinstance(axes, int):
        axes = [axes]
    if not axes or any(axis not in every for axis in axes):
        raise ValueError(f"Invalid axes {list(axes)} for {field}: give some of {every}.")
    return sorted(set(axes))


def _table(
    names: tuple[str, ...],
    ranges: Ranges,
    by_axis: Mapping[int, Range] | None,
    columns: list[int],
) -> tuple[list[int] | None, list[list[Range]]]:
    """Positions of names that have ranges, None for all, and their ranges by column."""
    if by_axis is not None:
        missing = set(columns) - set(by_axis)
        if missing:
            raise ValueError(f"ranges={dict(by_axis)} has none for axes {sorted(missing)}.")
        return None, [[by_axis[axis] for axis in columns]]
    if isinstance(ranges, Mapping):
        by_pattern = cast("Mapping[str, Range]", ranges)
        chosen, _, by_name = resolve_matching_names_values(by_pattern, names)
        return chosen, [[bounds] * len(columns) for bounds in by_name]
    return None, [[cast("Range", ranges)] * len(columns)]
