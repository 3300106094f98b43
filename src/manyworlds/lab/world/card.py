"""Card of one world of a batch: its variants, its terrain, and what was randomized."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
import torch

from manyworlds.entity import VariantEntityCfg
from manyworlds.envs.mdp.dr.descriptions import describe_draw
from manyworlds.envs.mdp.dr.distributions import LOG_UNIFORM, UNIFORM
from manyworlds.envs.mdp.dr.field_draws import FieldDraw, has_rows, resolved, selected_rows
from manyworlds.envs.mdp.dr.special import Sizes
from manyworlds.managers import EventTermCfg, SceneEntityCfg, Worlds
from manyworlds.managers.event_manager import plain_function
from manyworlds.sim.fields.model_fields import MODEL_FIELD_TABLE

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


_OBJECTS = {
    "body": mujoco.mjtObj.mjOBJ_BODY,
    "jnt": mujoco.mjtObj.mjOBJ_JOINT,
    "geom": mujoco.mjtObj.mjOBJ_GEOM,
    "site": mujoco.mjtObj.mjOBJ_SITE,
    "cam": mujoco.mjtObj.mjOBJ_CAMERA,
    "light": mujoco.mjtObj.mjOBJ_LIGHT,
    "mat": mujoco.mjtObj.mjOBJ_MATERIAL,
    "pair": mujoco.mjtObj.mjOBJ_PAIR,
    "eq": mujoco.mjtObj.mjOBJ_EQUALITY,
    "tendon": mujoco.mjtObj.mjOBJ_TENDON,
    "actuator": mujoco.mjtObj.mjOBJ_ACTUATOR,
    "sensor": mujoco.mjtObj.mjOBJ_SENSOR,
}
"""Kind of element by the first part of a field's name."""


@dataclass(frozen=True)
class RandomizedRows:
    """Rows of a model field that an event randomizes in one world."""

    event: str
    mode: str
    """Trigger of the event: startup, reset ..."""
    field: str
    names: tuple[str, ...]
    """Names of the elements, with their entity."""
    ids: np.ndarray
    """Rows in the model, shape [elements]."""
    nominal: np.ndarray
    """Values as compiled, shape [elements, width]."""
    low: np.ndarray | None
    """Smallest values that the event draws, shape [elements, width], NaN for columns that it does
    not draw; None if the bounds are not those of single values."""
    high: np.ndarray | None
    draw: str
    """Parameters of the event's draw."""

    def plain(self, model: mujoco.MjModel) -> list[dict[str, object]]:
        """Return a row for each element: its present value, beside what it is drawn from."""
        if self.field.startswith("opt."):
            values = np.asarray(getattr(model.opt, self.field.removeprefix("opt.")), float)
        else:
            values = np.asarray(getattr(model, self.field), float)[self.ids]
        values = values.reshape(len(self.names), -1)
        return [
            {
                "event": self.event,
                "mode": self.mode,
                "field": self.field,
                "element": element,
                "value": values[i].tolist(),
                "nominal": self.nominal[i].tolist(),
                "low": None if self.low is None else _finite(self.low[i]),
                "high": None if self.high is None else _finite(self.high[i]),
                "draw": self.draw,
            }
            for i, element in enumerate(self.names)
        ]


@dataclass(frozen=True)
class WorldCard:
    """Facts about one world of a batch."""

    env_id: int
    num_envs: int
    variants: dict[str, str]
    """Name of the variant, by entity."""
    terrain: dict[str, object]
    """Kind, level, column and difficulty of the world's cell; empty on a plane."""
    randomized: tuple[RandomizedRows, ...]
    others: tuple[dict[str, object], ...]
    """Events that randomize what is not in the model, with their draws."""

    def plain(self, model: mujoco.MjModel) -> dict[str, object]:
        """Return the card as plain data, with the present values of a model."""
        randomized = []
        for rows in self.randomized:
            randomized += rows.plain(model)
        return {
            "env_id": self.env_id,
            "num_envs": self.num_envs,
            "variants": dict(self.variants),
            "terrain": dict(self.terrain),
            "randomized": randomized,
            "others": list(self.others),
        }


def read_card(env: ManagerBasedRlEnv, env_id: int) -> WorldCard:
    """Return the card of a world; the batch does not change."""
    manager = env.event_manager
    randomized: list[RandomizedRows] = []
    others: list[dict[str, object]] = []
    for mode, names in manager.active_terms.items():
        for name in names:
            term = manager.get_term_cfg(name)
            fields = getattr(term.func, "model_fields", None)
            if fields is None:
                continue
            try:
                rows = list(_rows_of(env, env_id, name, mode, term, fields))
                if rows:
                    randomized += rows
                else:
                    others.append({"event": name, "mode": mode, "draw": describe_draw(term)})
            except Exception as error:  # terms are users' code, and a card must not bar the way in
                others.append({"event": name, "mode": mode, "draw": f"cannot be shown: {error}"})
    return WorldCard(
        env_id,
        env.num_envs,
        _variants(env, env_id),
        _terrain(env, env_id),
        tuple(randomized),
        tuple(others),
    )


def _variants(env: ManagerBasedRlEnv, env_id: int) -> dict[str, str]:
    found = {}
    for name, chosen in env.sim.world_to_variant.items():
        cfg = env.cfg.scene.entities[name]
        assert isinstance(cfg, VariantEntityCfg)
        found[name] = [*cfg.variants][int(chosen[env_id])]
    return found


def _terrain(env: ManagerBasedRlEnv, env_id: int) -> dict[str, object]:
    terrain = env.scene.terrain
    if terrain is None:
        return {}
    cell = terrain.cell_of(env_id)
    if not cell:
        return {}
    return dict(zip(("type", "level", "column", "difficulty"), cell, strict=True))


def _rows_of(
    env: ManagerBasedRlEnv,
    env_id: int,
    name: str,
    mode: str,
    term: EventTermCfg,
    fields: tuple[str, ...],
) -> Iterator[RandomizedRows]:
    """Return the rows of each field that an event changes."""
    built = _build(env, term)
    if isinstance(built, Sizes):
        built = built.draw
    world = Worlds([env_id], env.num_envs, env.device)
    draw = describe_draw(term)
    selection = _selection(env, term)
    for field in fields:
        known = MODEL_FIELD_TABLE.get(field)
        if known is not None and known.derived:
            continue  # follows from what is drawn
        nominal = _compiled(env, field, env_id)
        low = None
        high = None
        if isinstance(built, FieldDraw) and built.rows.field == field:
            ids = built.rows.ids.cpu().numpy()
            elements = built.rows.names
            entity = f"{built.entity}/" if built.entity else ""
            names = tuple(entity + element for element in elements)
            low, high = _bounds(built, built.rows.default(world).cpu())
        elif field.startswith("opt."):
            ids = np.zeros(1, int)
            names = ("option",)
        elif selection is not None and has_rows(field):
            elements, places = selected_rows(env, field, selection)
            ids = torch.cat(places).cpu().numpy()
            names = ()
            for element, rows in zip(elements, places, strict=True):
                names += (f"{selection.name}/{element}",) * len(rows)
        else:
            ids = _changed(env, field, env_id, nominal)
            names = tuple(_name(env.sim.mj_model, field, int(row)) for row in ids)
        if len(ids):
            rows = nominal[ids]
            yield RandomizedRows(name, mode, field, names, ids, rows, low, high, draw)


def _compiled(env: ManagerBasedRlEnv, field: str, env_id: int) -> np.ndarray:
    """Return the compiled values of a field in a world, shape [rows, width]."""
    values = env.sim.get_default_field(field)
    if field in env.sim.per_world_default_fields:
        values = values[env_id]
    values = values.cpu().double().numpy()
    if field.startswith("opt."):
        return values.reshape(1, -1)
    return values.reshape(len(values), -1)


def _changed(env: ManagerBasedRlEnv, field: str, env_id: int, nominal: np.ndarray) -> np.ndarray:
    """Return the rows in which a world differs from the compiled model."""
    present = getattr(env.sim.model, field)[env_id].cpu().double().numpy()
    differs = present.reshape(nominal.shape) != nominal
    return differs.any(axis=1).nonzero()[0]


def _name(model: mujoco.MjModel, field: str, row: int) -> str:
    """Return the name of the element that has a row of a field, or its kind and number."""
    kind = field.partition("_")[0].rstrip("0")
    if kind == "dof":
        kind = "jnt"
        row = int(model.dof_jntid[row])
    if kind == "qpos":
        kind = "jnt"
        row = int(np.searchsorted(model.jnt_qposadr, row, side="right")) - 1
    name = ""
    if kind in _OBJECTS:
        name = mujoco.mj_id2name(model, _OBJECTS[kind], row)
    return name or f"{kind} {row}"


def _build(env: ManagerBasedRlEnv, term: EventTermCfg) -> object:
    """Build the event of a term without drawing anything; None if it cannot be built so."""
    prepare = getattr(plain_function(term.func), "prepare", None)
    if prepare is None:
        return None
    fixed = term.func.keywords if isinstance(term.func, functools.partial) else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the event manager has built it before, and warned
        return prepare(env, **{**fixed, **term.params})


def _selection(env: ManagerBasedRlEnv, term: EventTermCfg) -> SceneEntityCfg | None:
    """Return the entity and the elements that an event is for; None if it does not say."""
    chosen = term.params.get("asset_cfg")
    if chosen is None:
        function = plain_function(term.func)
        parameter = inspect.signature(function).parameters.get("asset_cfg")
        if parameter is not None:
            chosen = parameter.default
    return resolved(env, chosen) if isinstance(chosen, SceneEntityCfg) else None


def _bounds(draw: FieldDraw, base: torch.Tensor) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the bounds of the values that a draw can give, shape [elements, width] each."""
    if draw.bounds.distribution not in (UNIFORM, LOG_UNIFORM):
        return None, None
    ends = draw.ends(base)
    if ends is None:
        return None, None  # relative to the last value
    shown = []
    for end in ends:
        if draw.cuts:
            end = draw.limits.cut(end)
        drawn = torch.full_like(base, torch.nan)
        written = slice(None) if draw.columns is None else draw.columns
        drawn[..., written] = end[..., written]
        shown.append(drawn[0].double().numpy())
    return shown[0], shown[1]


def _finite(row: np.ndarray) -> list[Any]:
    return [float(value) if np.isfinite(value) else None for value in row]
