"""Selection of an entity's elements by name, in the same way for every kind."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import suppress

from manyworlds.validation.names import match_ids, resolve_matching_names

Names = str | Sequence[str]
Matches = tuple[list[int], list[str]]


def _finder(kind: str) -> Callable[..., Matches]:
    def find(
        self: NamedElements,
        name_keys: Names,
        subset: Sequence[str] | None = None,
        preserve_order: bool = False,
        **named_subset: Sequence[str] | None,
    ) -> Matches:
        subset = named_subset.pop(f"{kind}_subset", subset)
        if named_subset:
            raise TypeError(f"find_* for {kind} got unexpected arguments {sorted(named_subset)}.")
        return self.find(kind, name_keys, subset, preserve_order)

    find.__doc__ = f"Select elements of kind {kind}; see `find`. `subset` names `{kind}_subset`."
    parameters = dict(inspect.signature(find).parameters)
    del parameters["named_subset"]
    parameters["subset"] = parameters["subset"].replace(name=f"{kind}_subset")
    find.__signature__ = inspect.Signature([*parameters.values()])  # type: ignore[attr-defined]
    return find


def _names_of(kind: str) -> property:
    def names(self: NamedElements) -> tuple[str, ...]:
        return self.names(kind)

    return property(names, doc=f"Names of the elements of kind {kind}, in model order.")


def _count_of(kind: str) -> property:
    def count(self: NamedElements) -> int:
        return len(self.names(kind))

    return property(count, doc=f"Number of elements of kind {kind}.")


class NamedElements:
    """Names of elements by kind, and methods that select elements by name.

    Names are relative to the entity; free joints and the world body are not listed. A joint is a
    hinge or a slide, with one position and one velocity; ball joints are a kind of their own.
    """

    _names: dict[str, tuple[str, ...]]

    def names(self, kind: str) -> tuple[str, ...]:
        """Return the names of all elements of a kind (see `ELEMENT_KINDS`), in model order."""
        return self._names[kind]

    def find(
        self,
        kind: str,
        name_keys: Names,
        subset: Sequence[str] | None = None,
        preserve_order: bool = False,
    ) -> Matches:
        """Select elements of a kind by regular expressions that match the whole name.

        Names of attached parts, such as `left/elbow`, also match without their prefix if the result
        is unambiguous.

        Args:
            kind: the kind, a key of `ELEMENT_KINDS`.
            name_keys: one or more patterns; each must match something.
            subset: names to select from; the ids are then indices into it.
            preserve_order: order the result by pattern instead of by model order.

        Returns:
            Entity-local ids and names.

        Raises:
            ValueError: a pattern matches nothing or is ambiguous, or a name is matched twice.
        """
        candidates = self.names(kind) if subset is None else subset
        try:
            return resolve_matching_names(name_keys, candidates, preserve_order)
        except ValueError as error:
            hint = ""
            keys = [name_keys] if isinstance(name_keys, str) else name_keys
            balls = self._names["ball_joint"] if kind == "joint" else ()
            with suppress(ValueError):  # the error names invalid regular expressions already
                if any(match_ids(key, balls) for key in keys):
                    hint = " Ball joints are a kind of their own: see find_ball_joints."
            raise ValueError(f"Cannot select by {kind} name. {error}{hint}") from None

    def find_bodies(
        self,
        name_keys: Names,
        preserve_order: bool = False,
        subset: Sequence[str] | None = None,
    ) -> Matches:
        """Select bodies; see `find`, whose arguments have another order."""
        return self.find("body", name_keys, subset, preserve_order)

    find_joints = _finder("joint")
    find_geoms = _finder("geom")
    find_sites = _finder("site")
    find_tendons = _finder("tendon")
    find_cameras = _finder("camera")
    find_lights = _finder("light")
    find_materials = _finder("material")
    find_textures = _finder("texture")
    find_pairs = _finder("pair")
    find_actuators = _finder("actuator")
    find_ball_joints = _finder("ball_joint")

    body_names = _names_of("body")
    joint_names = _names_of("joint")
    geom_names = _names_of("geom")
    site_names = _names_of("site")
    tendon_names = _names_of("tendon")
    camera_names = _names_of("camera")
    light_names = _names_of("light")
    material_names = _names_of("material")
    texture_names = _names_of("texture")
    pair_names = _names_of("pair")
    actuator_names = _names_of("actuator")
    ball_joint_names = _names_of("ball_joint")

    num_bodies = _count_of("body")
    num_joints = _count_of("joint")
    num_geoms = _count_of("geom")
    num_sites = _count_of("site")
    num_tendons = _count_of("tendon")
    num_cameras = _count_of("camera")
    num_lights = _count_of("light")
    num_materials = _count_of("material")
    num_textures = _count_of("texture")
    num_pairs = _count_of("pair")
    num_actuators = _count_of("actuator")
    num_ball_joints = _count_of("ball_joint")
