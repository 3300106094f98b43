"""Per-world rows of model fields for entities that differ from world to world."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mujoco
import numpy as np
import torch

from manyworlds.sim.fields.absent_rows import AbsentRows, Lacks
from manyworlds.sim.fields.defaults import as_tensor
from manyworlds.sim.fields.element_rows import element_ids, kind_of
from manyworlds.sim.fields.model_fields import MODEL_FIELD_TABLE, derived_fields
from manyworlds.sim.fields.recompute import RecomputeLevel
from manyworlds.sim.fields.shared import field_shape
from manyworlds.sim.state import State, check_shapes
from manyworlds.validation.worlds import Worlds

if TYPE_CHECKING:
    from manyworlds.entity.variants.metadata import VariantMetadata
    from manyworlds.sim.engines.engine import Engine
    from manyworlds.spec.elements import SpecElement

VariantInfo = Sequence[tuple[str, "VariantMetadata"]]
"""Names of entities, each with a description of its variants."""

# Values of a geom in the worlds that lack it. Rays and cameras ignore transparent geoms.
_OFF: dict[str, float | list[float]] = {
    "geom_dataid": -1,
    "geom_matid": -1,
    "geom_contype": 0,
    "geom_conaffinity": 0,
    "geom_margin": 0.0,
    "geom_gap": 0.0,
    "geom_rgba": [0.0, 0.0, 0.0, 0.0],
}
_STATE = "variant."

_DERIVED = frozenset(derived_fields(RecomputeLevel.set_const)) - {"geom_aabb", "geom_rbound"}

# Inputs of these computations. Tendons and actuators may attach to sites.
_SOURCES = frozenset(
    name for name, field in MODEL_FIELD_TABLE.items() if (field.native or 0) > 0
) - frozenset(derived_fields(RecomputeLevel.set_const))
_NO_ROWS = np.zeros(0, np.int64)


@dataclass(frozen=True)
class _Table:
    """Values of a field by variant, shape [variant, column, ...]."""

    columns: np.ndarray
    values: np.ndarray


class VariantRows:
    """Holds the rows of all variants, and writes them to the worlds.

    Args:
        engine: the engine that steps the worlds.
        variant_info: the entities that have variants; their specs are compiled.

    Raises:
        ValueError: variants differ in a field that the engine holds once for all worlds.
    """

    def __init__(self, engine: Engine, variant_info: VariantInfo) -> None:
        self._engine = engine
        self._info = dict(variant_info)
        self._tables: dict[str, dict[str, _Table]] = {}
        self._ids: dict[str, dict[str, np.ndarray]] = {}
        self.names = {name: tuple(info.variant_names) for name, info in variant_info}
        """Names of the variants by entity."""
        self.worlds: dict[str, torch.Tensor] = {}
        """The variant of each world by entity, int64, shape (num_envs,)."""
        self._snapshot: dict[str, torch.Tensor] | None = None
        lacks: dict[str, dict[str, Lacks]] = {}
        for name, info in variant_info:
            ids = element_ids(engine.mj_model, info.elements)
            self._tables[name] = _tables(engine, name, info, ids)
            self._ids[name] = ids
            found = _lacks(info, ids)
            if found:
                lacks[name] = found
            variants = info.world_variants(name, engine.num_envs)
            with torch.inference_mode(False):
                self.worlds[name] = torch.from_numpy(variants).to(engine.device)
            info.worlds = self.worlds[name]
        self.absent = AbsentRows(engine, lacks, self._values_of)
        """Rows of elements that worlds lack."""
        self.absent.assign(self.worlds)
        for name, variants in self.worlds.items():
            worlds = np.arange(engine.num_envs)
            self._write_tables(self._tables[name], worlds, variants.cpu().numpy())
            self._recompute(name, worlds)
            if engine.derives_in_single_precision:
                self._write_tables(self._derived[name], worlds, variants.cpu().numpy())
        if self.worlds:
            # Derived fields were of the compiled model, which is that of the first variants.
            engine.forward(Worlds(None, engine.num_envs, engine.device))

    @functools.cached_property
    def _derived(self) -> dict[str, dict[str, _Table]]:
        """Fields that MuJoCo C computes from the tables: for defaults and in double precision."""
        model = self._engine.mj_model
        return {
            name: _derived_tables(model, len(self.names[name]), tables, self._ids[name])
            for name, tables in self._tables.items()
        }

    @functools.cached_property
    def fields(self) -> frozenset[str]:
        """Names of the fields whose default differs between worlds."""
        tables = (*self._tables.values(), *self._derived.values())
        return frozenset(field for table in tables for field in table)

    def own_fields(self, entity: str) -> frozenset[str]:
        """Names of the fields in which an entity's variants differ: none without variants."""
        return frozenset(self._tables.get(entity, ()))

    def assign(self, entity: str, env_ids: np.ndarray, variants: np.ndarray) -> np.ndarray:
        """Change an entity's variant in the given worlds; call `complete` afterwards.

        Returns:
            Ids of the changed worlds, shape (n,); worlds that had the variant already are skipped.

        Raises:
            ValueError: there is no such entity or variant.
        """
        if entity not in self._tables:
            known = ", ".join(map(repr, self._tables)) or "none"
            raise ValueError(f"Entity '{entity}' has no variants; those that have: {known}.")
        self._check_variants(entity, variants)
        worlds = self.worlds[entity]
        changed = worlds.cpu().numpy()[env_ids] != variants
        env_ids = env_ids[changed]
        variants = variants[changed]
        if env_ids.size:
            self._snapshot = None
            worlds[torch.from_numpy(env_ids)] = torch.tensor(variants, device=worlds.device)
            self.absent.assign(self.worlds)
            self._write_tables(self._tables[entity], env_ids, variants)
            self._tell(entity, env_ids)
        return env_ids

    def _tell(self, entity: str, env_ids: np.ndarray) -> None:
        """Tell an entity in which worlds its variants have changed."""
        on_assigned = self._info[entity].on_assigned
        if on_assigned is not None:
            on_assigned(env_ids)

    def restore(self, entity: str, fields: Iterable[str], env_ids: np.ndarray) -> None:
        """Restore an entity's rows of some fields to the compiled values of its variants."""
        variants = self.worlds[entity].cpu().numpy()[env_ids]
        for field in fields:
            columns = self._ids[entity].get(kind_of(field))
            if columns is not None and columns.size:
                values = self._values_of(entity, field, variants[:, None], columns)
                self._engine.write_rows(field, env_ids[:, None], columns, values)

    def _values_of(
        self, entity: str, field: str, variants: np.ndarray, ids: np.ndarray
    ) -> np.ndarray:
        """Return compiled values of elements of an entity for some variants.

        Args:
            entity: the entity.
            field: the model field.
            variants: indices of variants, which broadcast with `ids`.
            ids: model ids of the entity's elements.
        """
        values = self._engine.defaults[field][np.broadcast_arrays(ids, variants)[0]]
        table = self._tables[entity].get(field)
        if table is not None:
            order = np.argsort(table.columns)
            found = order[np.searchsorted(table.columns[order], ids) % len(order)]
            differs = np.broadcast_to(
                table.columns[found] == ids, values.shape[: np.ndim(variants)]
            )
            values[differs] = table.values[variants, found].reshape(values.shape)[differs]
        return values

    def complete(self, entity: str, env_ids: np.ndarray) -> None:
        """Recompute the fields that derive from rows of worlds that `assign` changed."""
        self._recompute(entity, env_ids)
        if self._engine.derives_in_single_precision:
            plain = env_ids[self._is_plain(entity, env_ids)]
            variants = self.worlds[entity].cpu().numpy()[plain]
            self._write_tables(self._derived[entity], plain, variants)

    def snapshot(self) -> dict[str, torch.Tensor]:
        """Return a copy of `worlds`, each of shape (num_envs,), reused until a variant changes."""
        if self._snapshot is None:
            self._snapshot = {name: worlds.clone() for name, worlds in self.worlds.items()}
        return self._snapshot

    def _check_variants(self, entity: str, variants: np.ndarray) -> None:
        count = len(self.names[entity])
        bad = variants[(variants < 0) | (variants >= count)]
        if bad.size:
            raise ValueError(
                f"Entity '{entity}' has no variant {bad[0]}: indices must be in [0, {count})."
            )

    def state(self, of: Worlds) -> State:
        """Return the variants of worlds as a part of their state."""
        return {f"{_STATE}{name}": worlds[of.rows].clone() for name, worlds in self.worlds.items()}

    def split(self, state: State, worlds: Worlds) -> tuple[State, State]:
        """Split a saved state into the variants, by entity, and the rest.

        Raises:
            ValueError: the variants are not those of these entities and worlds.
        """
        saved = {k.removeprefix(_STATE): v for k, v in state.items() if k.startswith(_STATE)}
        check_shapes(state, {f"{_STATE}{name}": (len(worlds),) for name in self.worlds})
        unknown = saved.keys() - self.worlds.keys()
        if unknown:
            raise ValueError(
                f"The saved state has variants of '{min(unknown)}', which has none here: use the "
                "same model."
            )
        for name, variants in saved.items():
            self._check_variants(name, variants.cpu().numpy())
        return saved, {k: v for k, v in state.items() if not k.startswith(_STATE)}

    def take(self, saved: State, worlds: Worlds) -> None:
        """Restore the variants in a saved state."""
        self._snapshot = None
        for name, variants in saved.items():
            self.worlds[name][worlds.rows] = variants.to(self._engine.device)
            self._tell(name, worlds.host_ids)
        self.absent.assign(self.worlds)

    def default(self, field: str) -> torch.Tensor:
        """Return a field's compiled values for the variants of each world, (num_envs, ...)."""
        engine = self._engine
        compiled = engine.defaults[field]
        value = as_tensor(compiled, field_shape(field, compiled.shape), engine.device)
        rows = value.repeat(engine.num_envs, *[1] * value.ndim)
        for name, tables in self._tables.items():
            table = tables.get(field, self._derived[name].get(field))
            if table is not None:
                shape = (*table.values.shape[:2], *rows.shape[2:])
                values = as_tensor(table.values, shape, engine.device)
                columns = torch.from_numpy(table.columns).to(engine.device)
                rows[:, columns] = values[self.worlds[name]]
        if field == "body_subtreemass":
            rows[:, 0] = self._total_mass()
        return rows

    def default_of_variants(self, field: str) -> torch.Tensor:
        """Return a field's compiled values for each variant of each entity, (variants, ...).

        Numbers of elements that a variant lacks are NaN.
        """
        engine = self._engine
        compiled = engine.defaults[field]
        value = as_tensor(compiled, field_shape(field, compiled.shape), engine.device)
        found = []
        for name, tables in self._tables.items():
            table = tables.get(field, self._derived[name].get(field))
            if table is not None:
                rows = value.repeat(len(table.values), *[1] * value.ndim)
                shape = (*table.values.shape[:2], *rows.shape[2:])
                columns = torch.from_numpy(table.columns).to(engine.device)
                rows[:, columns] = as_tensor(table.values, shape, engine.device)
                lacks = self.absent.of(name, field)
                if lacks is not None and rows.is_floating_point():
                    variants, places = np.nonzero(lacks[1])
                    rows[variants, lacks[0][places]] = torch.nan
                found.append(rows)
        if not found:
            return value.unsqueeze(0)
        return torch.cat(found)

    def _total_mass(self) -> torch.Tensor:
        """Return the total mass in each world [kg], (num_envs,); no entity owns the world's row."""
        engine = self._engine
        compiled = torch.from_numpy(engine.defaults["body_subtreemass"]).to(engine.device)
        masses = compiled.repeat(engine.num_envs, 1)
        for name, derived in self._derived.items():
            table = derived.get("body_subtreemass")
            if table is not None:
                values = torch.from_numpy(table.values).to(engine.device)
                masses[:, torch.from_numpy(table.columns).to(engine.device)] = values[
                    self.worlds[name]
                ]
        # Sum in MuJoCo's order, from the last body to the first.
        total = torch.zeros_like(masses[:, 0])
        for body in np.flatnonzero(engine.mj_model.body_parentid == 0)[:0:-1].tolist():
            total += masses[:, body]
        return total

    def _recompute(self, entity: str, env_ids: np.ndarray) -> None:
        if self._tables[entity]:
            worlds = Worlds(env_ids, self._engine.num_envs, self._engine.device).ascending
            self._engine.recompute_constants(RecomputeLevel.set_const, worlds)

    def _is_plain(self, entity: str, env_ids: np.ndarray) -> np.ndarray:
        """Return a mask of the worlds in which the entity's constants are those of its variant.

        Only there may MuJoCo C's values replace those of MuJoCo Warp, which are single precision.
        """
        engine = self._engine
        worlds = torch.from_numpy(env_ids).to(engine.device)
        plain = torch.ones(len(env_ids), dtype=torch.bool, device=engine.device)
        for field in sorted(_SOURCES & engine.expanded):
            columns = torch.from_numpy(self._ids[entity].get(kind_of(field), _NO_ROWS))
            index = (worlds[:, None], columns.to(engine.device))
            rows = engine.field_rows(field)[index].flatten(1)
            plain &= (rows == self.default(field)[index].flatten(1)).all(dim=1)
        return plain.cpu().numpy()

    def _write_tables(
        self, tables: dict[str, _Table], env_ids: np.ndarray, variants: np.ndarray
    ) -> None:
        for field, table in tables.items():
            self._engine.write_rows(field, env_ids[:, None], table.columns, table.values[variants])


def variant_indices(
    variant_ids: int | Sequence[int] | np.ndarray | torch.Tensor, count: int
) -> np.ndarray:
    """Convert indices of variants to one for each of `count` worlds, shape (count,).

    Raises:
        ValueError: they are not integers, or their number is not 1 or `count`.
    """
    variants = torch.as_tensor(variant_ids).cpu().numpy()
    integers = variants.dtype.kind in "iu" or not variants.size
    if not integers or variants.shape not in ((), (1,), (count,)):
        raise ValueError(
            f"variant_ids must be one integer or one for each of {count} worlds, got shape "
            f"{variants.shape} of {variants.dtype}."
        )
    return np.broadcast_to(variants, (count,))


def _tables(
    engine: Engine, entity: str, info: VariantMetadata, ids: dict[str, np.ndarray]
) -> dict[str, _Table]:
    """Return the values that differ between variants, by field; check the engine can hold them."""
    model = engine.mj_model
    _check_pairs(engine, entity, info, ids["geom"])
    rows = dict(info.rows)
    rows["geom_dataid"] = _asset_ids(info.assets["mesh"], info.meshes)
    for kind, names in info.materials.items():
        rows[f"{kind}_matid"] = _asset_ids(info.assets["material"], names)
    absent = ~info.filled
    tables: dict[str, _Table] = {}
    for field in {**rows, **_OFF}:
        columns = ids[kind_of(field)]
        compiled = getattr(model, field)[columns]
        shape = (len(absent), *compiled.shape)
        values = np.array(np.broadcast_to({field: compiled, **rows}[field], shape))
        problem = engine.expansion_problem(field)
        if field in _OFF:
            off = absent
            if problem:
                # Without per-world collision flags, a geom is disabled by removing its mesh.
                off = absent & info.has_primitive
            values[off] = _OFF[field]
        differs = _columns_that_differ(values)
        if not differs.any():
            continue
        if problem:
            raise ValueError(_refusal(engine, entity, info, field, values, differs))
        tables[field] = _Table(columns[differs], values[:, differs])
    return tables


def _lacks(info: VariantMetadata, ids: dict[str, np.ndarray]) -> dict[str, Lacks]:
    """Return which elements of an entity some of its variants lack, by kind of element."""
    found: dict[str, Lacks] = {}
    for kind, columns in ids.items():
        absent = ~info.present[:, None]
        if kind == "geom":
            absent = ~info.filled
        mask = np.broadcast_to(absent, (len(absent), len(columns)))
        some = mask.any(axis=0)
        if some.any():
            found[kind] = columns[some], mask[:, some]
    return found


def _check_pairs(engine: Engine, entity: str, info: VariantMetadata, geoms: np.ndarray) -> None:
    """Check that explicit contact pairs, which ignore contype, have geoms of all variants."""
    model = engine.mj_model
    gone = ~info.filled
    if engine.skips_absent_meshes:
        gone &= info.has_primitive
    for pair, ends in enumerate(zip(model.pair_geom1, model.pair_geom2, strict=True)):
        found = np.argwhere(gone & np.isin(geoms, ends))
        if len(found):
            variant = info.variant_names[found[0, 0]]
            geom = model.geom(geoms[found[0, 1]]).name
            raise ValueError(
                f"Contact pair '{model.pair(pair).name}' lets geom '{geom}' collide in all worlds, "
                f"but variant '{variant}' of entity '{entity}' lacks it: let contype and "
                "conaffinity decide instead of a pair."
            )


def _columns_that_differ(values: np.ndarray) -> np.ndarray:
    """Return a mask of the columns of [variant, column, ...] in which the variants differ."""
    return (values != values[:1]).any(axis=(0, *range(2, values.ndim)))


def _asset_ids(
    assets: Mapping[str, SpecElement], names: Sequence[Sequence[str | None]]
) -> np.ndarray:
    ids = {name: asset.id for name, asset in assets.items()} | {None: -1}
    return np.array([[ids[name] for name in row] for row in names], np.int32)


def _refusal(
    engine: Engine,
    entity: str,
    info: VariantMetadata,
    field: str,
    values: np.ndarray,
    differs: np.ndarray,
) -> str:
    column = int(differs.argmax())
    other = int((values[:, column] != values[0, column]).reshape(len(values), -1).any(1).argmax())
    names = info.variant_names
    return (
        f"The variants of entity '{entity}' differ in {field}, which the {engine.name} engine "
        f"holds once for all worlds: it is {values[0, column].tolist()} for '{names[0]}' and "
        f"{values[other, column].tolist()} for '{names[other]}'. To fix it, "
        f"{engine.expansion_remedy}give all variants one value."
    )


def _derived_tables(
    mj_model: mujoco.MjModel, count: int, tables: dict[str, _Table], ids: dict[str, np.ndarray]
) -> dict[str, _Table]:
    """Return the fields that MuJoCo C computes from the rows of the entity's variants."""
    if not tables:
        return {}
    model = copy.copy(mj_model)
    data = mujoco.MjData(model)
    compiled = {
        field: getattr(model, field).copy()
        for field in {*tables, *mujoco.MjModel._setconst_outputs}
    }
    computed: dict[str, list[np.ndarray]] = {field: [] for field in _DERIVED - tables.keys()}
    for variant in range(count):
        for field, values in compiled.items():
            getattr(model, field)[:] = values
        for field, table in tables.items():
            getattr(model, field)[table.columns] = table.values[variant]
        mujoco.mj_setConst(model, data)
        for field, rows in computed.items():
            rows.append(getattr(model, field)[ids[kind_of(field)]])
    found: dict[str, _Table] = {}
    for field, rows in computed.items():
        own = np.array(rows)
        differs = _columns_that_differ(own)
        if differs.any():
            found[field] = _Table(ids[kind_of(field)][differs], own[:, differs])
    return found
