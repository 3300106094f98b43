"""Selection of an entity and its elements in the parameters of a term."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

import torch

from manyworlds.entity import ELEMENT_KINDS, Entity
from manyworlds.validation.names import match_ids
from manyworlds.validation.worlds import as_index

if TYPE_CHECKING:
    from manyworlds.scene import Scene

Names = str | tuple[str, ...] | list[str] | None
Ids = list[int] | slice


_Indices = dict[str, tuple[Ids, "slice | torch.Tensor"]]
"""Ids by kind, and the index of a tensor that is made of them."""


def _all() -> slice:
    return slice(None)


@dataclass(kw_only=False, repr=False)
class SceneEntityCfg:
    """Names an entity and, by regular expressions or ids, some of its elements.

    Managers resolve a copy once: names become ids, ids become names, and where both are given they
    must agree. Ids are local to the entity; all elements in model order become `slice(None)`. The
    default of a term's parameter is copied and resolved like one in `params`.
    """

    name: str
    """Name of the entity in the scene."""
    joint_names: Names = None
    joint_ids: Ids = field(default_factory=_all)
    body_names: Names = None
    body_ids: Ids = field(default_factory=_all)
    geom_names: Names = None
    geom_ids: Ids = field(default_factory=_all)
    site_names: Names = None
    site_ids: Ids = field(default_factory=_all)
    actuator_names: Names = None
    actuator_ids: Ids = field(default_factory=_all)
    tendon_names: Names = None
    tendon_ids: Ids = field(default_factory=_all)
    camera_names: Names = None
    camera_ids: Ids = field(default_factory=_all)
    light_names: Names = None
    light_ids: Ids = field(default_factory=_all)
    material_names: Names = None
    material_ids: Ids = field(default_factory=_all)
    texture_names: Names = None
    texture_ids: Ids = field(default_factory=_all)
    pair_names: Names = None
    pair_ids: Ids = field(default_factory=_all)
    preserve_order: bool = False
    """Order ids by pattern instead of by model order."""
    ball_joint_names: Names = None
    """Ball joints. Patterns of `joint_names` that match ball joints select them, too."""
    ball_joint_ids: Ids = field(default_factory=_all)
    _indices = None  # not a field: found by `resolve`, and no part of copies

    def __getstate__(self) -> dict[str, object]:
        """Leave indices out of copies, which may be resolved in another scene."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @property
    def is_resolved(self) -> bool:
        """True if names have become ids."""
        return self._indices is not None

    def __repr__(self) -> str:
        """Show what is not as by default."""
        values = [(f.name, getattr(self, f.name)) for f in fields(self)[1:]]
        shown = [f", {key}={value!r}" for key, value in values if value not in _DEFAULTS]
        return f"SceneEntityCfg({self.name!r}{''.join(shown)})"

    def resolve(self, scene: Scene) -> None:
        """Find the elements in the scene.

        Raises:
            KeyError: the scene has no such entity.
            ValueError: names match nothing, ids are out of range, or names and ids disagree.
        """
        entity = scene[self.name]
        indices: _Indices = {}
        self._find_ball_joints(entity)
        for kind in SELECTED_KINDS:
            if not self.is_given(kind):
                continue
            self._resolve_kind(kind, entity)
            found = self.ids(kind)
            if not isinstance(found, slice):
                indices[kind] = found, as_index(torch.tensor(found, device=scene.device))
        self._indices = indices

    def names(self, kind: str) -> Names:
        """Return the names or patterns of a kind; None if it has none."""
        return getattr(self, f"{kind}_names")

    def ids(self, kind: str) -> Ids:
        """Return the ids of the elements of a kind."""
        return getattr(self, f"{kind}_ids")

    def is_given(self, kind: str) -> bool:
        """Return True if elements of a kind are selected, by names or ids."""
        return self.names(kind) is not None or self.ids(kind) != slice(None)

    def index(self, kind: str) -> slice | torch.Tensor:
        """Return the cheapest index of the elements of a kind.

        It is a slice, or ids of shape [elements], on the scene's device once resolved.
        """
        ids: Ids = getattr(self, f"{kind}_ids")
        if isinstance(ids, slice):
            return ids
        if self._indices is not None and kind in self._indices:
            known, index = self._indices[kind]
            if known is ids:
                return index
        return as_index(ids)

    def _find_ball_joints(self, entity: Entity) -> None:
        """Select the ball joints that `joint_names` match, and take patterns for them alone out."""
        if self.joint_names is None or self.is_given("ball_joint"):
            return
        balls = entity.names("ball_joint")
        joints = entity.names("joint")
        patterns = self.joint_names
        if isinstance(patterns, str):
            patterns = [patterns]
        found: dict[str, None] = {}  # in order, without duplicates
        others: list[str] = []
        for pattern in patterns:
            matched = match_ids(pattern, balls)
            found.update((balls[i], None) for i in matched)
            if not matched or match_ids(pattern, joints):
                others.append(pattern)
        if found:
            self.ball_joint_names = tuple(found)
            self.joint_names = tuple(others)

    def _resolve_kind(self, kind: str, entity: Entity) -> None:
        """Find ids of names, or names of ids; see `resolve`."""
        names = self.names(kind)
        ids = self.ids(kind)
        available = entity.names(kind)
        every_id = list(range(len(available)))
        if isinstance(ids, slice):
            given = every_id[ids]
        else:
            given = [int(i) for i in ids]
        bad = [i for i in given if not 0 <= i < len(available)]
        if bad:
            raise ValueError(
                f"SceneEntityCfg('{self.name}') gives {kind}_ids={given}, but {bad[0]} is not "
                f"in [0, {len(available)}): the entity has {len(available)} of kind {kind}."
            )
        if names is not None:
            found, found_names = entity.find(kind, names, preserve_order=self.preserve_order)
            if ids != slice(None) and given != found:
                raise ValueError(
                    f"SceneEntityCfg('{self.name}') gives {kind}_names={names!r}, which are ids "
                    f"{found}, but also {kind}_ids={ids}: give one of them, or make them agree."
                )
        else:
            found = given
            found_names = [available[i] for i in given]
        setattr(self, f"{kind}_names", tuple(found_names))
        setattr(self, f"{kind}_ids", found)
        if found == every_id:
            setattr(self, f"{kind}_ids", slice(None))


SELECTED_KINDS = (*ELEMENT_KINDS, "ball_joint")
"""Kinds of elements that a selection may have."""
_DEFAULTS = (None, slice(None), False)
