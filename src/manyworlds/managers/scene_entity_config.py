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

    def __getstate__(self) -> dict[str, object]:
        """Leave indices out of copies, which may be resolved in another scene."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @property
    def is_resolved(self) -> bool:
        """True if names have become ids."""
        return hasattr(self, "_indices")

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
        indices: dict[str, tuple[Ids, slice | torch.Tensor]] = {}
        self._find_ball_joints(entity)
        for kind in SELECTED_KINDS:
            if not self.is_given(kind):
                continue
            names = getattr(self, f"{kind}_names")
            ids = getattr(self, f"{kind}_ids")
            self._resolve_kind(kind, names, ids, entity)
            found: Ids = getattr(self, f"{kind}_ids")
            if not isinstance(found, slice):
                indices[kind] = found, as_index(torch.tensor(found, device=scene.device))
        self._indices = indices

    def is_given(self, kind: str) -> bool:
        """Return True if elements of a kind are selected, by names or ids."""
        names = getattr(self, f"{kind}_names")
        ids = getattr(self, f"{kind}_ids")
        return names is not None or ids != slice(None)

    def index(self, kind: str) -> slice | torch.Tensor:
        """Return the cheapest index of the elements of a kind.

        It is a slice, or ids of shape [elements], on the scene's device once resolved.
        """
        ids: Ids = getattr(self, f"{kind}_ids")
        if isinstance(ids, slice):
            return ids
        known, index = getattr(self, "_indices", {}).get(kind, (None, slice(None)))
        return index if known is ids else as_index(ids)

    def _find_ball_joints(self, entity: Entity) -> None:
        """Select the ball joints that `joint_names` match, and take patterns for them alone out."""
        if self.joint_names is None or self.is_given("ball_joint"):
            return
        balls = entity.names("ball_joint")
        joints = entity.names("joint")
        patterns = [self.joint_names] if isinstance(self.joint_names, str) else self.joint_names
        found = [balls[i] for pattern in patterns for i in match_ids(pattern, balls)]
        if found:
            self.ball_joint_names = tuple(dict.fromkeys(found))
            alone = [p for p in patterns if match_ids(p, balls) and not match_ids(p, joints)]
            self.joint_names = tuple(p for p in patterns if p not in alone)

    def _resolve_kind(self, kind: str, names: Names, ids: Ids, entity: Entity) -> None:
        available = entity.names(kind)
        every_id = list(range(len(available)))
        given = every_id[ids] if isinstance(ids, slice) else [int(i) for i in ids]
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
        setattr(self, f"{kind}_ids", slice(None) if found == every_id else found)
        setattr(self, f"{kind}_names", tuple(found_names))


SELECTED_KINDS = (*ELEMENT_KINDS, "ball_joint")
"""Kinds of elements that a selection may have."""
_DEFAULTS = (None, slice(None), False)
