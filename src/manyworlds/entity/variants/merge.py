"""One spec for all variants of an entity: a geom for every geom that any of them needs."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import mujoco
import numpy as np

from manyworlds.entity.variants.assignment import Assignment
from manyworlds.entity.variants.compiled import CompiledVariants
from manyworlds.entity.variants.metadata import (
    GeomRole,
    SlotKey,
    VariantGeomSpec,
    VariantMetadata,
    VariantSlot,
)
from manyworlds.entity.variants.validate import (
    RESERVED_NAME_PREFIXES,
    body_paths,
    geom_role,
    geom_uses,
    validate_variant_specs,
    variant_error,
)
from manyworlds.sim.fields.element_rows import kind_of
from manyworlds.spec.elements import copy_spec_data
from manyworlds.utils.mujoco_messages import MujocoWarnings

_MESH = mujoco.mjtGeom.mjGEOM_MESH
# Below this, MuJoCo would not compute what compensates gravity in other worlds.
_NO_GRAVCOMP = 1e-300


@dataclass
class _Place:
    """A geom of the merged spec, and the geom of each variant that it stands for, or None."""

    key: SlotKey
    geoms: list[mujoco.MjsGeom | None]
    name: str = ""

    @property
    def shared(self) -> bool:
        """True if the geom is a primitive of the same type in all variants."""
        if None in self.geoms:
            return False
        types = {geom.type for geom in self.geoms if geom is not None}
        return len(types) == 1 and types != {_MESH}

    def filler(self) -> tuple[int, mujoco.MjsGeom]:
        """Return the index of the first variant that has the geom, and that geom."""
        return next((i, geom) for i, geom in enumerate(self.geoms) if geom is not None)


def merge_variants(
    template: mujoco.MjSpec,
    specs: dict[str, mujoco.MjSpec | None],
    assignment: Assignment,
) -> tuple[mujoco.MjSpec, VariantMetadata]:
    """Turn the spec of one variant into one for all of them.

    Args:
        template: the spec of the first variant that is not None, to be edited.
        specs: complete specs by variant, which are emptied; None for an absent object.
        assignment: which worlds hold which variant.

    Returns:
        The merged spec, and how the variants differ.

    Raises:
        ValueError: variants cannot take turns, or do not compile.
    """
    given = {name: spec for name, spec in specs.items() if spec is not None}
    names = list(given)
    validate_variant_specs(names, list(given.values()))
    paths = body_paths(template)
    places = _places(list(paths), list(given.values()))
    _name(places, _geoms_in_use(given, places))
    # The compilation below empties the specs, so everything else is read from them before.
    facts = _read(places, given)
    _rebuild_geoms(template, paths, places, names)
    compiled = CompiledVariants(given, {name: facts.sources[i] for i, name in enumerate(names)})
    present = np.array([spec is not None for spec in specs.values()])
    # A row must be complete, so an absent object has the values of the first variant. Without
    # geoms it touches nothing, and with its gravity compensated it does not fall.
    index = {name: i for i, name in enumerate(names)}
    order = [index.get(name, 0) for name in specs]
    filled = np.array([[g is not None for g in place.geoms] for place in places], bool)
    filled = filled.reshape(len(places), len(names)).T[order] & present[:, None]
    rows = {field: values[order] for field, values in compiled.rows.items()}
    if not present.all():
        rows["body_gravcomp"][~present] = 1.0
        # MuJoCo compensates gravity only if the compiled model has a body that asks for it.
        for body in template.bodies[1:]:
            body.gravcomp = body.gravcomp or _NO_GRAVCOMP
    merged = _with_assets(template, compiled.assets)
    slot_specs: list[tuple[VariantGeomSpec | None, ...]] = []
    for i, is_present in zip(order, present, strict=True):
        if is_present:
            slot_specs.append(tuple(variants[i] for _, variants in facts.slots))
        else:
            slot_specs.append((None,) * len(facts.slots))
    return merged, VariantMetadata(
        variant_names=tuple(specs),
        assignment=assignment,
        slots=tuple(slot for slot, _ in facts.slots),
        variant_slot_specs=tuple(slot_specs),
        geom_names=tuple(place.name for place in places),
        rows=_differing(rows, filled),
        filled=filled,
        present=present,
        meshes=tuple(facts.meshes[i] for i in order),
        materials={kind: tuple(m[i] for i in order) for kind, m in facts.materials.items()},
    )


# Which geom stands for which.


def _places(paths: list[str], specs: list[mujoco.MjSpec]) -> list[_Place]:
    """Return the geoms of the merged spec, body by body, in the order of the first variant.

    MuJoCo lists contacts in the order of geoms, and each world must equal its variant compiled
    alone.
    """
    bodies = [body_paths(spec) for spec in specs]
    places: list[_Place] = []
    for path in paths:
        by_role: dict[GeomRole, list[list[mujoco.MjsGeom]]] = {"visual": [], "collision": []}
        for found in bodies:
            own: dict[GeomRole, list[mujoco.MjsGeom]] = {"visual": [], "collision": []}
            for geom in found[path].geoms:
                own[geom_role(geom)].append(geom)
            for role, geoms in own.items():
                by_role[role].append(geoms)
        first = {geom.name: i for i, geom in enumerate(bodies[0][path].geoms)}
        keyed: list[tuple[int, bool, _Place]] = []
        for role, variants in by_role.items():
            rows = _align(variants)
            # Geoms that the first variant lacks come after the one before them.
            position = -1
            for i, row in enumerate(rows):
                if row[0] is not None:
                    position = first[row[0].name]
                keyed.append((position, row[0] is None, _Place(SlotKey(path, role, i), row)))
        places += [place for *_, place in sorted(keyed, key=lambda item: item[:2])]
    return places


def _align(variants: list[list[mujoco.MjsGeom]]) -> list[list[mujoco.MjsGeom | None]]:
    """Put geoms of several variants into rows, each in its own order.

    Primitives that all variants have in common share a row, and meshes before, between and after
    them are counted off. Where the primitives differ, all geoms are counted off.
    """
    runs = [[[]] for _ in variants]
    shared: list[list[mujoco.MjsGeom]] = []
    for geoms, found in zip(variants, runs, strict=True):
        shared.append([geom for geom in geoms if geom.type != _MESH])
        for geom in geoms:
            if geom.type == _MESH:
                found[-1].append(geom)
            else:
                found.append([])
    if len({tuple(geom.type for geom in primitives) for primitives in shared}) > 1:
        return _count_off(variants)
    # All variants have as many runs of meshes: one before, between and after each two primitives.
    rows: list[list[mujoco.MjsGeom | None]] = []
    for i in range(len(runs[0])):
        if i:
            rows.append([primitives[i - 1] for primitives in shared])
        rows += _count_off([found[i] for found in runs])
    return rows


def _count_off(variants: list[list[mujoco.MjsGeom]]) -> list[list[mujoco.MjsGeom | None]]:
    """Put the first geoms of all variants into a row, then the second ones, and so on."""
    return [list(row) for row in itertools.zip_longest(*variants)]


def _geoms_in_use(specs: dict[str, mujoco.MjSpec], places: list[_Place]) -> set[str]:
    """Return names of the first variant's geoms that sensors, pairs and tendons refer to.

    Raises:
        ValueError: in another variant, they refer to a geom of another place.
    """
    reference: list[tuple[str, str]] = []
    names = list(specs)
    for i, (name, spec) in enumerate(specs.items()):
        uses = geom_uses(spec)
        reference = reference or uses
        usual_keys = _keys_by_name(places, 0)
        keys = _keys_by_name(places, i)
        for (what, usual), (_, geom) in zip(reference, uses, strict=True):
            if usual_keys.get(usual) != keys.get(geom):
                raise variant_error(
                    name,
                    f"its {what} refers to geom '{geom}', which does not stand for '{usual}' of "
                    f"variant '{names[0]}'",
                    "let it refer to geoms of the same body, role and number",
                )
    return {geom for _, geom in reference}


def _keys_by_name(places: list[_Place], variant: int) -> dict[str, SlotKey]:
    """Return the places of a variant's geoms by the names of the geoms."""
    keys: dict[str, SlotKey] = {}
    for place in places:
        geom = place.geoms[variant]
        if geom is not None:
            keys[geom.name] = place.key
    return keys


def _name(places: list[_Place], in_use: set[str]) -> None:
    """Keep a name that all variants give a geom, or that is in use; else say where it is."""
    for place in places:
        first = place.geoms[0]
        names = {geom.name for geom in place.geoms if geom is not None}
        is_common = len(names) == 1 and None not in place.geoms
        if first is not None and (first.name in in_use or is_common):
            place.name = first.name
        else:
            key = place.key
            pad = RESERVED_NAME_PREFIXES[0]
            place.name = f"{pad}{key.body_path[1:]}/{key.role}/{key.ordinal}"


@dataclass
class _Facts:
    """Values read from the variants' specs before the specs are emptied."""

    sources: list[list[int | None]]
    meshes: list[tuple[str | None, ...]]
    materials: dict[str, list[tuple[str | None, ...]]]
    slots: list[tuple[VariantSlot, list[VariantGeomSpec | None]]]


def _read(places: list[_Place], specs: dict[str, mujoco.MjSpec]) -> _Facts:
    """Read what the merged entity needs of the variants' specs."""
    facts = _Facts([], [], {"geom": [], "site": [], "tendon": []}, [])
    for i, (name, spec) in enumerate(specs.items()):
        index = {geom.name: k for k, geom in enumerate(spec.geoms)}
        geoms = [place.geoms[i] for place in places]
        sources: list[int | None] = []
        meshes: list[str | None] = []
        for geom in geoms:
            source = None
            mesh = None
            if geom is not None:
                source = index[geom.name]
                if geom.type == _MESH:
                    mesh = f"{name}/{geom.meshname}"
            sources.append(source)
            meshes.append(mesh)
        facts.sources.append(sources)
        facts.meshes.append(tuple(meshes))
        elements = {"geom": geoms, "site": spec.sites, "tendon": spec.tendons}
        for kind, items in elements.items():
            materials: list[str | None] = []
            for element in items:
                if element is None or not element.material:
                    materials.append(None)
                else:
                    materials.append(f"{name}/{element.material}")
            facts.materials[kind].append(tuple(materials))
    for kind in ("site", "tendon"):
        # Only few engines can give these a material in each world, and most have one for all.
        own = {tuple(m and m.split("/", 1)[1] for m in row) for row in facts.materials[kind]}
        if len(own) == 1:
            del facts.materials[kind]
    facts.slots = _read_slots(places)
    return facts


def _read_slots(places: list[_Place]) -> list[tuple[VariantSlot, list[VariantGeomSpec | None]]]:
    """Read the geoms of each slot: those of a body next to each other, visual ones first."""
    slots: list[tuple[VariantSlot, list[VariantGeomSpec | None]]] = []
    for place in sorted(places, key=lambda p: (p.key.body_path, p.key.role != "visual")):
        if place.shared:
            continue
        names: list[str | None] = []
        read: list[VariantGeomSpec | None] = []
        for geom in place.geoms:
            if geom is None:
                names.append(None)
                read.append(None)
            else:
                names.append(geom.name)
                read.append(VariantGeomSpec.read(geom))
        slots.append((VariantSlot(place.key, place.name, tuple(names)), read))
    return slots


# The merged spec.


def _rebuild_geoms(
    template: mujoco.MjSpec,
    paths: dict[str, mujoco.MjsBody],
    places: list[_Place],
    names: list[str],
) -> None:
    """Add, rename and order the geoms of the template; let them use the variants' assets."""
    own = {geom.name: geom for geom in template.geoms}
    # MjSpec can only append: once a body has a new geom, those that follow are made again.
    behind: set[str] = set()
    for place in places:
        path = place.key.body_path
        first = place.geoms[0]
        variant, filler = place.filler()
        geom: mujoco.MjsGeom | None = None
        if first is not None:
            geom = own[first.name]
        if geom is None:
            behind.add(path)
            geom = paths[path].add_geom()
            copy_spec_data(filler, geom)
            # The template is the first variant, which lacks this geom.
            geom.mass = 0.0
            geom.density = 0.0
        elif path in behind:
            source = geom
            geom = paths[path].add_geom()
            copy_spec_data(source, geom)
            if source.frame is not None:
                geom.set_frame(source.frame)
            template.delete(source)
        geom.name = place.name
        geom.meshname = geom.meshname and f"{names[variant]}/{geom.meshname}"
        geom.material = geom.material and f"{names[variant]}/{geom.material}"
    for element in (*template.sites, *template.tendons):
        element.material = element.material and f"{names[0]}/{element.material}"


def _with_assets(template: mujoco.MjSpec, assets: list[mujoco.MjSpec]) -> mujoco.MjSpec:
    """Replace the template's own assets by those of all variants."""
    for kind in ("meshes", "materials", "textures"):
        for asset in list(getattr(template, kind)):
            template.delete(asset)
    # MuJoCo warns that the files of variants may clash; their assets have other names.
    with MujocoWarnings(lambda _: None):
        for spec in assets:
            template.attach(spec, prefix="", frame=template.worldbody.add_frame())
    return template.copy()


def _differing(rows: dict[str, np.ndarray], filled: np.ndarray) -> dict[str, np.ndarray]:
    """Keep the fields in which variants differ; geoms that are not there do not count."""
    first = filled.argmax(axis=0)
    found: dict[str, np.ndarray] = {}
    for field, values in rows.items():
        if kind_of(field) == "geom":
            # So that a field is not given rows because of values that no world uses.
            usual = values[first, np.arange(filled.shape[1])]
            values[~filled] = np.broadcast_to(usual, values.shape)[~filled]
        if (values != values[:1]).any():
            found[field] = values
    return found
