"""Descriptions of what events randomize, for people."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from manyworlds.entity import ELEMENT_KINDS
from manyworlds.envs.mdp.dr.distributions import Distribution, Operation
from manyworlds.managers.event_manager import EventTermCfg, event_fields
from manyworlds.managers.scene_entity_config import SceneEntityCfg


def randomized_fields(term: EventTermCfg) -> Sequence[str]:
    """Return the model fields that an event changes, or its name if it changes none."""
    fields = event_fields(term.func).written
    if fields:
        return fields
    return (getattr(term.func, "__name__", "state"),)


def randomized_elements(term: EventTermCfg) -> str:
    """Return the entity and the selected elements."""
    asset_cfg = term.params.get("asset_cfg")
    if not isinstance(asset_cfg, SceneEntityCfg):
        return ""
    names: list[str] = []
    for kind in ELEMENT_KINDS:
        names += asset_cfg.names(kind) or ()
    shown = f"{asset_cfg.name}: {', '.join(names[:3]) or 'all'}"
    if len(names) > 3:
        shown += f" and {len(names) - 3} more"
    return shown


def describe_draw(term: EventTermCfg) -> str:
    """Return the parameters of the draw as text."""
    known = inspect.signature(term.func).parameters.values()
    defaults = {p.name: p.default for p in known if p.default is not p.empty}
    params = {
        name: value
        for name, value in {**defaults, **term.params}.items()
        if not (_is_default(value) or isinstance(value, SceneEntityCfg))
    }
    shown = []
    for name in ("operation", "distribution"):
        if name in params:
            word = params.pop(name)
            if isinstance(word, Operation | Distribution):
                word = word.name
            shown.append(str(word))
    ranges = params.pop("ranges", None)
    if ranges:
        shown.append(str(ranges))
    return " ".join([*shown, *(f"{name}={value}" for name, value in params.items())])


def _is_default(value: object) -> bool:
    """Return True for values that say nothing; others may be arrays, which do not compare."""
    return value is None or value is False or (isinstance(value, tuple) and value == (0.0, 0.0))
