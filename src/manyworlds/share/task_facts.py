"""What a page knows of a task: commands, randomization, start, ends of episodes, and camera."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypedDict, cast

import mujoco
import numpy as np

from manyworlds.envs.mdp.dr.field_draws import FieldDraw
from manyworlds.managers.event_manager import plain_function
from manyworlds.sim.fields.model_fields import MODEL_FIELD_TABLE
from manyworlds.viewer.browser.command_sliders import TWIST_LABELS

if TYPE_CHECKING:
    from manyworlds.entity import Entity
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.managers import EventTermCfg, SceneEntityCfg
    from manyworlds.utils.viewer_config import ViewerConfig

_NAMED = {
    "body": "body",
    "joint": "joint",
    "dof": "joint",
    "geom": "geom",
    "site": "site",
    "camera": "camera",
    "light": "light",
    "material": "material",
    "pair": "pair",
    "tendon": "tendon",
    "actuator": "actuator",
}
"""Kinds of elements, as `mj_id2name` knows them, by what a model field has rows for."""
_FROM_THE_SIDE = -15.0
"""Elevation above which a camera looks from the side [degrees]."""
_POSE = ("x", "y", "z", "roll", "pitch", "yaw")
_NO_END_S = 1e6
"""Length of episodes from which on they do not end [s]."""


class CommandFacts(TypedDict):
    """A command term and its bounds."""

    name: str
    labels: list[str]
    low: list[float]
    high: list[float]
    start: list[float]
    keys: None
    kind: str


class WorldFacts(TypedDict, total=False):
    """What the page does in one world besides physics."""

    randomization: list[dict[str, object]]
    terminations: list[dict[str, object]]
    reset: dict[str, object]
    camera: dict[str, object]


def command_facts(env: ManagerBasedRlEnv) -> list[CommandFacts]:
    """Describe the commands that a user may set: those with the property `steering`."""
    facts: list[CommandFacts] = []
    for name in env.command_manager.active_terms:
        term: Any = env.command_manager.get_term(name)
        bounds: Mapping[str, tuple[float, float]] | None = getattr(term, "steering", None)
        if bounds is None:
            continue
        kind = "numbers"
        start = _plain(term.command[0].tolist())
        if bounds.keys() == TWIST_LABELS.keys():
            kind = "velocity"
            start = [0.0] * len(bounds)
        elif [*bounds] == ["x", "y", "z"]:
            kind = "pose"
        facts.append(
            {
                "name": name,
                "labels": [TWIST_LABELS.get(key, key) for key in bounds],
                "low": _plain([low for low, _ in bounds.values()]),
                "high": _plain([high for _, high in bounds.values()]),
                "start": start,
                "keys": None,
                "kind": kind,
            }
        )
    return facts


def world_facts(env: ManagerBasedRlEnv, model: mujoco.MjModel) -> WorldFacts:
    """Describe the world of a task.

    Args:
        env: the environment.
        model: the model of the page's world, with elements of the same names.
    """
    return {
        "randomization": [
            entry for name, term in _events(env) for entry in _draws(env, model, name, term)
        ],
        "terminations": list(_terminations(env)),
        "reset": {"ranges": [entry for _, term in _events(env) for entry in _starts(env, term)]},
        "camera": _camera(env, model),
    }


def _events(env: ManagerBasedRlEnv) -> Iterator[tuple[str, EventTermCfg]]:
    manager = env.event_manager
    for mode, names in manager.active_terms.items():
        if mode in ("startup", "reset"):
            for name in names:
                yield name, manager.get_term_cfg(name)


def _draws(
    env: ManagerBasedRlEnv, model: mujoco.MjModel, name: str, term: EventTermCfg
) -> Iterator[dict[str, object]]:
    """Yield the draws of model fields that an event makes."""
    prepare = getattr(plain_function(term.func), "prepare", None)
    if prepare is None:
        return
    draw = prepare(env, **term.params)
    if not isinstance(draw, FieldDraw) or draw.operation.name not in ("abs", "scale", "add"):
        return
    if draw.bounds.distribution.name not in ("uniform", "log_uniform", "gaussian"):
        return
    field = draw.rows.field
    if MODEL_FIELD_TABLE[field].element not in _NAMED:
        return
    axes = None
    if draw.columns is not None:
        axes = draw.columns.tolist()
    low = draw.bounds.low[:, draw.source]
    high = draw.bounds.high[:, draw.source]
    rows = np.array(draw.rows.ids.tolist())
    groups = [rows]
    if len(low) > 1:  # each element has bounds of its own
        groups = [rows[[i]] for i in range(len(rows))]
    for i, group in enumerate(groups):
        ids = [_same_row(env.sim.mj_model, model, field, int(row)) for row in group]
        found = [row for row in ids if row is not None]
        if found:
            yield {
                "label": name.replace("_", " "),
                "field": field,
                "ids": found,
                "operation": draw.operation.name,
                "axes": axes,
                "low": _plain(low[i].tolist()),
                "high": _plain(high[i].tolist()),
                "distribution": draw.bounds.distribution.name,
                "shared": draw.bounds.shared,
            }


def _same_row(trained: mujoco.MjModel, model: mujoco.MjModel, field: str, row: int) -> int | None:
    """Return the row of a field in another model that belongs to the element of the same name."""
    element = MODEL_FIELD_TABLE[field].element
    offset = 0
    if element == "dof":
        joint = int(trained.dof_jntid[row])
        offset = row - int(trained.jnt_dofadr[joint])
        row = joint
    kind = mujoco.mju_str2Type(_NAMED[element])
    name = mujoco.mj_id2name(trained, kind, row)
    if not name:
        return None
    found = mujoco.mj_name2id(model, kind, name)
    if found < 0:
        return None
    if element == "dof":
        return int(model.jnt_dofadr[found]) + offset
    return found


def _starts(env: ManagerBasedRlEnv, term: EventTermCfg) -> Iterator[dict[str, object]]:
    """Yield the ranges in which an event places joints at the start of an episode."""
    function = getattr(plain_function(term.func), "__name__", "")
    asset_cfg = cast("SceneEntityCfg | None", term.params.get("asset_cfg"))
    entity_name = "robot"
    if asset_cfg is not None:
        entity_name = asset_cfg.name
    if function == "reset_root_state_uniform":
        entity = env.scene.entity(entity_name)
        ranges = [term.params["pose_range"].get(axis, (0.0, 0.0)) for axis in _POSE]
        if not entity.is_fixed_base and np.any(ranges):
            low, high = np.array(ranges, float).T.tolist()
            yield {"body": _root_body(entity, entity_name), "low": low, "high": high}
    if function == "reset_joints_by_offset":
        low, high = term.params["position_range"]
        entity = env.scene.entity(entity_name)
        names = entity.joint_names
        if asset_cfg is not None and asset_cfg.names("joint"):
            names = asset_cfg.names("joint")
        if (low, high) != (0.0, 0.0):
            for joint in names or ():
                yield {"joint": f"{entity_name}/{joint}", "low": [low], "high": [high]}


def _terminations(env: ManagerBasedRlEnv) -> Iterator[dict[str, object]]:
    """Yield the ends of episodes that the page can tell."""
    manager = env.termination_manager
    for name in manager.active_terms:
        term = manager.get_term_cfg(name)
        function = getattr(term.func, "__name__", "")
        label = name.replace("_", " ")
        entity_name = getattr(term.params.get("asset_cfg"), "name", "robot")
        if function == "time_out" and env.cfg.episode_length_s < _NO_END_S:
            yield {"label": label, "kind": "time", "limit_s": env.cfg.episode_length_s}
        if function == "bad_orientation":
            body = _root_body(env.scene.entity(entity_name), entity_name)
            limit = term.params["limit_angle"]
            yield {"label": label, "kind": "tilt", "body": body, "limit_rad": limit}
        if function == "root_height_below_minimum":
            body = _root_body(env.scene.entity(entity_name), entity_name)
            low = term.params["minimum_height"]
            yield {"label": label, "kind": "height", "body": body, "low": low}


def _root_body(entity: Entity, name: str) -> str:
    return f"{name}/{entity.body_names[entity.indexing.root_index]}"


def _camera(env: ManagerBasedRlEnv, model: mujoco.MjModel) -> dict[str, object]:
    cfg: ViewerConfig = env.cfg.viewer
    body = None
    if cfg.origin_type is not cfg.OriginType.WORLD and cfg.entity_name in env.scene.entities:
        entity = env.scene.entity(cfg.entity_name)
        body = _root_body(entity, cfg.entity_name)
        if cfg.body_name and cfg.origin_type is not cfg.OriginType.ASSET_ROOT:
            body = f"{cfg.entity_name}/{cfg.body_name}"
        if mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, body) < 0:
            body = None
    camera: dict[str, object] = {
        "lookat": list(cfg.lookat),
        "distance": cfg.distance,
        "azimuth": cfg.azimuth,
        "elevation": cfg.elevation,
        "track_body": body,
    }
    if body is not None and cfg.elevation > _FROM_THE_SIDE:
        # Films look from the side; who drives a robot sees more from behind and above.
        camera |= {"distance": 1.5 * cfg.distance, "azimuth": 125.0, "elevation": -18.0}
    return camera


def _plain(numbers: list[float]) -> list[float]:
    """Return numbers of float32 without digits that they do not have."""
    return [float(f"{number:.7g}") for number in numbers]
