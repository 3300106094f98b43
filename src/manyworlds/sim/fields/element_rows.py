"""Model fields of a spec element, and the rows that it occupies in them."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import mujoco
import numpy as np

from manyworlds.sim.fields.model_fields import derived_fields
from manyworlds.sim.fields.recompute import RecomputeLevel
from manyworlds.spec.elements import SpecElement, dof_width, qpos_width

VARIANT_DEPENDENT_FIELDS = (
    "geom_size",
    "geom_rbound",
    "geom_aabb",
    "geom_pos",
    "geom_quat",
    "body_mass",
    "body_subtreemass",
    "body_inertia",
    "body_invweight0",
    "body_ipos",
    "body_iquat",
)
"""Fields that derive from a geom's mesh."""

# Kind of element -> the attribute of MjSpec that lists it.
_LISTS = {
    "body": "bodies",
    "jnt": "joints",
    "geom": "geoms",
    "site": "sites",
    "cam": "cameras",
    "light": "lights",
    "pair": "pairs",
    "eq": "equalities",
    "tendon": "tendons",
    "actuator": "actuators",
    "sensor": "sensors",
}
# Rows that belong to a joint or a tendon.
_PARTS = ("dof", "qpos", "wrap")

# Suffixes of the names of address fields, and of other fields that MuJoCo computes rather than
# takes from the author of the model.
_STRUCTURE = ("id", "adr", "num", "plugin", "signature", "sameframe", "history", "user", "length0")
_COMPUTED = frozenset(
    (
        "body_simple",
        "body_contype",
        "body_conaffinity",
        "body_margin",
        "pair_geom1",
        "pair_geom2",
        "dof_M0",
        "dof_length",
        *(set(derived_fields(RecomputeLevel.set_const)) - {"geom_aabb", "geom_rbound"}),
    )
)

_NONE = np.zeros(0, np.int64)
# By type of joint.
_DOFS = np.array([dof_width(i) for i in range(4)])
_POSITIONS = np.array([qpos_width(i) for i in range(4)])

Elements = Mapping[str, Sequence[SpecElement]]
"""Spec elements by kind: 'body', 'jnt', 'geom', ..."""


def list_elements(spec: mujoco.MjSpec) -> dict[str, tuple[SpecElement, ...]]:
    """List the elements of a spec by kind, without the world body."""
    elements = {kind: tuple(getattr(spec, name)) for kind, name in _LISTS.items()}
    elements["body"] = elements["body"][1:]
    return elements


@functools.cache
def fields_of(kind: str) -> tuple[str, ...]:
    """Return the fields that the author of a model chooses for elements of a kind."""
    model = mujoco.MjSpec().compile()
    return tuple(
        name
        for name in dir(model)
        if kind_of(name) == kind
        and isinstance(getattr(model, name), np.ndarray)
        and (name == "geom_fluid" or not name.endswith(_STRUCTURE))
        and name not in _COMPUTED
    )


def kinds() -> tuple[str, ...]:
    """Return all kinds of rows that elements have."""
    return (*_LISTS, *_PARTS)


def kind_of(field: str) -> str:
    """Return the kind of rows that a field has."""
    return field.split("_")[0].rstrip("0")


def element_ids(model: mujoco.MjModel, elements: Elements) -> dict[str, np.ndarray]:
    """Return row indices, shape (n,), of elements in a model compiled from their spec, by kind."""
    ids = {
        kind: np.array([e.id for e in items], np.int64) if items else _NONE
        for kind, items in elements.items()
    }
    joints = ids["jnt"]
    tendons = ids["tendon"]
    types = model.jnt_type[joints]
    ids["dof"] = _ranges(model.jnt_dofadr[joints], _DOFS[types])
    ids["qpos"] = _ranges(model.jnt_qposadr[joints], _POSITIONS[types])
    ids["wrap"] = _ranges(model.tendon_adr[tendons], model.tendon_num[tendons])
    return ids


def _ranges(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    if not len(starts):
        return _NONE
    return np.concatenate([np.arange(a, a + n) for a, n in zip(starts, counts, strict=True)])
