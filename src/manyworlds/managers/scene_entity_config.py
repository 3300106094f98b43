"""Naming parts of an entity in a term's parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from manyworlds.entity import ELEMENT_KINDS, Entity
from manyworlds.utils.indices import as_index

if TYPE_CHECKING:
    from manyworlds.scene import Scene

Names = str | tuple[str, ...] | None
Ids = list[int] | slice


def _all() -> slice:
    return slice(None)


@dataclass(kw_only=False)
class SceneEntityCfg:
    """Names an entity and, by regular expressions or ids, some of its elements.

    Managers resolve it once: names become ids, ids become names, and where both are given they
    must agree. Ids are local to the entity; all elements in model order become `slice(None)`.
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

    def resolve(self, scene: Scene) -> None:
        """Find the elements in the scene.

        Raises:
            KeyError: the scene has no such entity.
            ValueError: names match nothing, ids are out of range, or names and ids disagree.
        """
        entity = scene[self.name]
        self._indices: dict[str, tuple[Ids, slice | torch.Tensor]] = {}
        for kind in ELEMENT_KINDS:
            self._resolve_kind(kind, entity)
            ids: Ids = getattr(self, f"{kind}_ids")
            if not isinstance(ids, slice):
                self._indices[kind] = ids, as_index(torch.tensor(ids, device=scene.device))

    def index(self, kind: str) -> slice | torch.Tensor:
        """The cheapest index of the elements of a kind, on the scene's device once resolved."""
        ids: Ids = getattr(self, f"{kind}_ids")
        known, index = getattr(self, "_indices", {}).get(kind, (None, slice(None)))
        return index if known is ids else as_index(ids)

    def _resolve_kind(self, kind: str, entity: Entity) -> None:
        names: Names = getattr(self, f"{kind}_names")
        ids: Ids = getattr(self, f"{kind}_ids")
        available = entity.names(kind)
        if names is None and isinstance(ids, slice):
            return
        if names is not None:
            found, found_names = entity.find(kind, names, preserve_order=self.preserve_order)
            every_id = list(range(len(available)))
            given = every_id[ids] if isinstance(ids, slice) else list(ids)
            if ids != slice(None) and given != found:
                raise ValueError(
                    f"SceneEntityCfg('{self.name}') gives {kind}_names={names!r}, which are ids "
                    f"{found}, but also {kind}_ids={ids}: give one of them, or make them agree."
                )
        else:
            assert not isinstance(ids, slice)
            found = list(ids)
            if bad := [i for i in found if not 0 <= i < len(available)]:
                raise ValueError(
                    f"SceneEntityCfg('{self.name}') gives {kind}_ids={found}, but {bad[0]} is not "
                    f"in [0, {len(available)}): the entity has {len(available)} of kind {kind}."
                )
            found_names = [available[i] for i in found]
        every = found == list(range(len(available)))
        setattr(self, f"{kind}_ids", slice(None) if every else found)
        setattr(self, f"{kind}_names", tuple(found_names))
