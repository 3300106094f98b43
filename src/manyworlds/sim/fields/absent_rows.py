"""Rows of elements that a world lacks, which no write may change.

Variants share the elements of one model. Where a world lacks one, its rows hide it: without color,
mesh and collisions, or without weight. A value that is written there, for instance by an event that
colors all geoms of an entity, would let it appear.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch

from manyworlds.sim.fields.element_rows import fields_of, kind_of, kinds

if TYPE_CHECKING:
    from manyworlds.sim.engines.engine import Engine

_COMPUTED = {"geom_aabb", "geom_rbound"}
# These have a row for each control, of which an actuator may have several.
_OF_CONTROLS = {"actuator_ctrllimited", "actuator_ctrlrange"}
# Ids of assets, which are not among the fields that a spec has as numbers.
_ASSET_IDS = {"geom_dataid", "geom_matid", "site_matid", "tendon_matid"}

Lacks = tuple[np.ndarray, np.ndarray]
"""Model ids of elements that some variant lacks, shape [n], and a mask of the variants that lack
them, shape [num_variants, n]."""


class AbsentRows:
    """Restores the rows of absent elements after writes.

    Args:
        engine: the engine, whose tensors tell whether they were written.
        lacks: by entity and kind of element; only those that some variant lacks.
        compiled: returns an entity's values of a field for some variants, given the entity, the
            field, variants of shape [n] and model ids of shape [n].
    """

    def __init__(
        self,
        engine: Engine,
        lacks: dict[str, dict[str, Lacks]],
        compiled: Callable[[str, str, np.ndarray, np.ndarray], np.ndarray],
    ) -> None:
        self._engine = engine
        self.exist = bool(lacks)
        """True if some variant lacks an element."""
        self._lacks = lacks
        self._compiled = compiled
        concerned = {kind for by_kind in lacks.values() for kind in by_kind}
        own = {field for kind in kinds() if kind in concerned for field in fields_of(kind)}
        own |= {field for field in _ASSET_IDS if kind_of(field) in concerned}
        compiled_rows = engine.defaults
        if len(compiled_rows["actuator_ctrlrange"]) != len(compiled_rows["actuator_trntype"]):
            own -= _OF_CONTROLS
        self._fields = own - _COMPUTED
        self._variants: dict[str, np.ndarray] = {}
        self._rows: dict[str, list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = {}
        self._versions: dict[str, int] = {}
        self._num_expanded = -1
        self._tensors: dict[str, torch.Tensor] = {}
        """Rows of the fields that have any, looked up again once more fields have some."""

    def assign(self, variants: dict[str, torch.Tensor]) -> None:
        """Take note of the variant of each world, by entity, shape [num_envs]."""
        self._variants = {entity: variants[entity].cpu().numpy() for entity in self._lacks}
        self._rows.clear()
        self._versions.clear()

    def of(self, entity: str, field: str) -> Lacks | None:
        """Return which rows of a field some variants of an entity lack; None if they lack none."""
        return self._lacks.get(entity, {}).get(kind_of(field))

    def restore(self) -> None:
        """Write the compiled values of absent elements to the fields that were written since."""
        if len(self._engine.expanded) != self._num_expanded:
            self._num_expanded = len(self._engine.expanded)
            fields = sorted(self._fields & self._engine.expanded)
            self._tensors = {field: self._engine.field_rows(field) for field in fields}
        for field, tensor in self._tensors.items():
            if tensor._version == self._versions.get(field):
                continue
            if field not in self._rows:
                self._rows[field] = self._find(field)
            for worlds, columns, values in self._rows[field]:
                self._engine.write_rows(field, worlds, columns, values)
            self._versions[field] = tensor._version

    def _find(self, field: str) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """List the worlds and model ids of absent elements, and their values, by entity."""
        found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        for entity, by_kind in self._lacks.items():
            if kind_of(field) not in by_kind:
                continue
            ids, mask = by_kind[kind_of(field)]
            variants = self._variants[entity]
            worlds, columns = np.nonzero(mask[variants])
            if len(worlds):
                values = self._compiled(entity, field, variants[worlds], ids[columns])
                found.append((worlds, ids[columns], values))
        return found
