"""An element of the model: its own rows of the model and the data."""

from __future__ import annotations

from collections.abc import Mapping

import mujoco
import numpy as np

_KINDS = {
    "body": ("mass", "xpos", "xquat", "xfrc_applied", "mocapid"),
    "geom": ("xpos", "xmat", "size", "type", "contype", "conaffinity", "dataid"),
    "joint": ("qpos", "qvel", "qacc", "xanchor", "xaxis", "range", "stiffness", "damping"),
    "actuator": ("ctrl", "force", "length", "ctrlrange", "gainprm", "biasprm"),
    "sensor": ("data", "dim", "adr", "type"),
    "tendon": ("length", "velocity", "stiffness", "damping", "range"),
    "site": ("xpos", "xmat", "size", "type", "bodyid"),
}
"""Attributes of views, as MuJoCo's own named access calls them."""
_SHAPES = {"xmat": (3, 3)}


class View:
    """Rows of one element; attributes are arrays that share memory with the engine's.

    Args:
        kind: of element.
        name: its full name.
        id: its number in the model.
        rows: its arrays by attribute.
    """

    def __init__(self, kind: str, name: str, id: int, rows: Mapping[str, np.ndarray]) -> None:
        self.kind, self.name, self.id = kind, name, id
        self._rows = rows

    def __getattr__(self, attribute: str) -> np.ndarray:
        """One of the element's arrays."""
        if attribute.startswith("_") or attribute not in self._rows:
            known = ", ".join(_KINDS.get(self.__dict__.get("kind", ""), ()))
            raise AttributeError(f"A view of a {self.kind} has no '{attribute}': it has {known}.")
        return self._rows[attribute]

    def __repr__(self) -> str:
        """Say what it is."""
        return f"View({self.kind} {self.id} '{self.name}')"


def make_view(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    kind: str,
    name: str,
    prefixes: Mapping[str, str] | None = None,
) -> View:
    """Find an element.

    Args:
        model: the model.
        data: its data.
        kind: body, geom, joint, actuator, sensor, tendon or site.
        name: its name, full or without the prefix of the only robot that has such an element.
        prefixes: prefix of each robot's elements, by the robot's name.

    Raises:
        KeyError: there is no such element, or several robots have one.
        ValueError: there is no such kind.
    """
    if kind not in _KINDS:
        raise ValueError(f"There is no kind '{kind}': choose one of {', '.join(_KINDS)}.")
    named = getattr(model, kind)
    found = [full for full in _candidates(name, prefixes or {}) if _has(named, full)]
    if not found:
        raise KeyError(f"There is no {kind} '{name}'.")
    if len(found) > 1 and found[0] != name:
        raise KeyError(f"Several robots have a {kind} '{name}': name one of {', '.join(found)}.")
    of_model, of_data = named(found[0]), getattr(data, kind)(found[0])
    rows = {}
    for attribute in _KINDS[kind]:
        source = of_data if hasattr(of_data, attribute) else of_model
        array = np.asarray(getattr(source, attribute))
        rows[attribute] = array.reshape(_SHAPES.get(attribute, array.shape))
    return View(kind, found[0], int(of_model.id), rows)


def _candidates(name: str, prefixes: Mapping[str, str]) -> list[str]:
    return list(dict.fromkeys([name, *(f"{prefix}{name}" for prefix in prefixes.values())]))


def _has(named, name: str) -> bool:
    try:
        named(name)
    except KeyError:
        return False
    return True
