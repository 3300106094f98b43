"""Compiled values of many variants, and their assets under names of their own.

Each compilation has a fixed cost, so variants are compiled a few dozen at a time. Then everything
but the assets is deleted, so that the rest can be attached to the merged spec. MuJoCo computes the
convex hull of a mesh only if a geom that collides has ever been compiled with it: without these
compilations, meshes that are only in the rows of some worlds would have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from itertools import chain

import mujoco
import numpy as np

from manyworlds.entity.variants.validate import variant_error
from manyworlds.sim.fields.element_rows import element_ids, fields_of, kinds, list_elements
from manyworlds.spec.elements import SpecElement
from manyworlds.utils.devices import usable_cores

# More make larger inertia matrices, which MuJoCo inverts whole.
_CHUNK = 32

# How much room in the state an element takes: no row of a world can change that.
ROOM = {
    "actuator": ("actuator_actnum", "actuator_ctrlnum", "actuator_outnum", "actuator_history"),
    "sensor": ("sensor_dim", "sensor_history"),
}

Sources = Sequence[int | None]
"""Index of the variant's geom that each merged geom stands for, or None."""


class CompiledVariants:
    """Variants of one entity, compiled: values by field, and assets.

    Args:
        specs: complete specs by variant, which are emptied.
        sources: of each merged geom, which geom of a variant it stands for, by variant.

    Raises:
        ValueError: a variant does not compile, or its state would have another size.
    """

    def __init__(self, specs: dict[str, mujoco.MjSpec], sources: dict[str, Sources]) -> None:
        names = list(specs)
        chunks = [names[i : i + _CHUNK] for i in range(0, len(names), _CHUNK)]
        # MuJoCo compiles without Python's lock: meanwhile the next ones are attached.
        with ThreadPoolExecutor(usable_cores()) as pool:
            parts = [_Chunk({name: specs[name] for name in chunk}, pool) for chunk in chunks]
            rows: list[dict[str, np.ndarray]] = []
            for part, chunk in zip(parts, chunks, strict=True):
                rows.append(part.read([sources[name] for name in chunk]))
        self.assets = [part.whole for part in parts]
        """Specs that hold nothing but assets, named `<variant>/<asset>`."""
        self.rows = {field: np.concatenate([part[field] for part in rows]) for field in rows[0]}
        """Compiled values by field, [variant, element, ...]; those of absent geoms are not used."""
        # What the state of a world holds must have the same size in all variants.
        for field in chain.from_iterable(ROOM.values()):
            values = self.rows.pop(field, np.zeros((1, 0)))
            differs = (values != values[:1]).reshape(len(values), -1).any(axis=1)
            if differs.any():
                other = int(differs.argmax())
                raise variant_error(
                    names[other],
                    f"its {field} must be that of variant '{names[0]}', but it is "
                    f"{values[other].tolist()} instead of {values[0].tolist()}",
                    "give all variants actuators with as many activations and sensors as long",
                )


class _Chunk:
    """Variants that are compiled together."""

    def __init__(self, specs: dict[str, mujoco.MjSpec], pool: Executor) -> None:
        self.whole = mujoco.MjSpec()
        # Deleting one frame is much faster than deleting all that is in it one by one.
        self._everything = self.whole.worldbody.add_frame()
        self._elements: list[dict[str, tuple[SpecElement, ...]]] = []
        for name, spec in specs.items():
            for key in list(spec.keys):
                spec.delete(key)
            self._elements.append(list_elements(spec))
            frame = self.whole.worldbody.add_frame()
            frame.set_frame(self._everything)
            self.whole.attach(spec, prefix=f"{name}/", frame=frame)
        self._model = pool.submit(_compile, self.whole, list(specs))

    def read(self, sources: Sequence[Sources]) -> dict[str, np.ndarray]:
        """Return the compiled values, each [variant, element, ...], and delete all but the assets.

        Arrays have shape [num_variants, num_elements, ...].
        """
        model = self._model.result()
        elements = self._elements
        # All variants have as many of everything, but not of geoms.
        together = {kind: [e for own in elements for e in own[kind]] for kind in elements[0]}
        ids = element_ids(model, together)
        chosen: list[list[int]] = []
        start = 0
        for own, variant in zip(elements, sources, strict=True):
            # The values of a geom that the variant lacks are not used: those of any geom will do.
            chosen.append([0 if i is None else start + i for i in variant])
            start += len(own["geom"])
        geoms = np.zeros(1, np.int64)
        if together["geom"]:
            geoms = ids["geom"]
        ids["geom"] = geoms[np.array(chosen, np.int64)]
        rows: dict[str, np.ndarray] = {}
        for kind in kinds():
            index = ids[kind].reshape(len(elements), -1)
            if not index.size:
                continue
            for field in sorted({*fields_of(kind), *ROOM.get(kind, ())}):
                values = getattr(model, field)
                if len(values):
                    rows[field] = values[index]
                else:  # only geoms that no variant of this chunk has
                    rows[field] = np.zeros((*index.shape, *values.shape[1:]), values.dtype)
        self.whole.delete(self._everything)
        return rows


def _compile(whole: mujoco.MjSpec, names: list[str]) -> mujoco.MjModel:
    # Hulls with few vertices save time, since their values are not read. But a mesh's inertia may
    # need its own, and one without faces takes those of its hull, as a file may.
    convex = mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX
    kept: list[tuple[mujoco.MjsMesh, int]] = []
    for mesh in whole.meshes:
        if mesh.inertia != convex and len(mesh.userface):
            kept.append((mesh, mesh.maxhullvert))
            mesh.maxhullvert = 4
    try:
        return whole.compile()
    except ValueError as error:
        name = next((n for n in names if f"{n}/" in str(error)), ", ".join(names))
        raise variant_error(name, f"it does not compile: {error}", "mend its spec") from error
    finally:
        for mesh, count in kept:
            mesh.maxhullvert = count
