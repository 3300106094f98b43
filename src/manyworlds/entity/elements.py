"""Selection of an entity's elements by name, in the same way for every kind."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from manyworlds.validation.names import match_ids, resolve_matching_names

Names = str | Sequence[str]
Matches = tuple[list[int], list[str]]


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
        if subset is None:
            subset = self.names(kind)
        try:
            return resolve_matching_names(name_keys, subset, preserve_order)
        except ValueError as error:
            hint = ""
            if isinstance(name_keys, str):
                name_keys = [name_keys]
            with suppress(ValueError):  # the error names invalid regular expressions already
                balls = self._names["ball_joint"]
                if kind == "joint" and any(match_ids(key, balls) for key in name_keys):
                    hint = " Ball joints are a kind of their own: see find_ball_joints."
            raise ValueError(f"Cannot select by {kind} name. {error}{hint}") from None

    def find_bodies(
        self,
        name_keys: Names,
        preserve_order: bool = False,
        subset: Sequence[str] | None = None,
    ) -> Matches:
        """Return local ids and names of the bodies that match name patterns.

        See `find`, whose arguments have another order.
        """
        return self.find("body", name_keys, subset, preserve_order)

    def find_joints(
        self,
        name_keys: Names,
        joint_subset: Sequence[str] | None = None,
        preserve_order: bool = False,
    ) -> Matches:
        """Return local ids and names of the joints that match name patterns; see `find`."""
        return self.find("joint", name_keys, joint_subset, preserve_order)

    def find_ball_joints(
        self,
        name_keys: Names,
        ball_joint_subset: Sequence[str] | None = None,
        preserve_order: bool = False,
    ) -> Matches:
        """Return local ids and names of the ball joints that match name patterns; see `find`."""
        return self.find("ball_joint", name_keys, ball_joint_subset, preserve_order)

    def find_geoms(
        self,
        name_keys: Names,
        geom_subset: Sequence[str] | None = None,
        preserve_order: bool = False,
    ) -> Matches:
        """Return local ids and names of the geoms that match name patterns; see `find`."""
        return self.find("geom", name_keys, geom_subset, preserve_order)

    def find_sites(
        self,
        name_keys: Names,
        site_subset: Sequence[str] | None = None,
        preserve_order: bool = False,
    ) -> Matches:
        """Return local ids and names of the sites that match name patterns; see `find`."""
        return self.find("site", name_keys, site_subset, preserve_order)

    def find_tendons(
        self,
        name_keys: Names,
        tendon_subset: Sequence[str] | None = None,
        preserve_order: bool = False,
    ) -> Matches:
        """Return local ids and names of the tendons that match name patterns; see `find`."""
        return self.find("tendon", name_keys, tendon_subset, preserve_order)

    def find_actuators(
        self,
        name_keys: Names,
        actuator_subset: Sequence[str] | None = None,
        preserve_order: bool = False,
    ) -> Matches:
        """Return local ids and names of the actuators that match name patterns; see `find`."""
        return self.find("actuator", name_keys, actuator_subset, preserve_order)

    def find_cameras(
        self,
        name_keys: Names,
        camera_subset: Sequence[str] | None = None,
        preserve_order: bool = False,
    ) -> Matches:
        """Return local ids and names of the cameras that match name patterns; see `find`."""
        return self.find("camera", name_keys, camera_subset, preserve_order)

    def find_lights(
        self,
        name_keys: Names,
        light_subset: Sequence[str] | None = None,
        preserve_order: bool = False,
    ) -> Matches:
        """Return local ids and names of the lights that match name patterns; see `find`."""
        return self.find("light", name_keys, light_subset, preserve_order)

    def find_materials(
        self,
        name_keys: Names,
        material_subset: Sequence[str] | None = None,
        preserve_order: bool = False,
    ) -> Matches:
        """Return local ids and names of the materials that match name patterns; see `find`."""
        return self.find("material", name_keys, material_subset, preserve_order)

    def find_textures(
        self,
        name_keys: Names,
        texture_subset: Sequence[str] | None = None,
        preserve_order: bool = False,
    ) -> Matches:
        """Return local ids and names of the textures that match name patterns; see `find`."""
        return self.find("texture", name_keys, texture_subset, preserve_order)

    def find_pairs(
        self,
        name_keys: Names,
        pair_subset: Sequence[str] | None = None,
        preserve_order: bool = False,
    ) -> Matches:
        """Return local ids and names of the contact pairs that match name patterns; see `find`."""
        return self.find("pair", name_keys, pair_subset, preserve_order)

    @property
    def body_names(self) -> tuple[str, ...]:
        """Names of the bodies, in model order."""
        return self._names["body"]

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the hinge and slide joints, in model order."""
        return self._names["joint"]

    @property
    def ball_joint_names(self) -> tuple[str, ...]:
        """Names of the ball joints, in model order."""
        return self._names["ball_joint"]

    @property
    def geom_names(self) -> tuple[str, ...]:
        """Names of the geoms, in model order."""
        return self._names["geom"]

    @property
    def site_names(self) -> tuple[str, ...]:
        """Names of the sites, in model order."""
        return self._names["site"]

    @property
    def tendon_names(self) -> tuple[str, ...]:
        """Names of the tendons, in model order."""
        return self._names["tendon"]

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """Names of the actuators, in model order."""
        return self._names["actuator"]

    @property
    def camera_names(self) -> tuple[str, ...]:
        """Names of the cameras, in model order."""
        return self._names["camera"]

    @property
    def light_names(self) -> tuple[str, ...]:
        """Names of the lights, in model order."""
        return self._names["light"]

    @property
    def material_names(self) -> tuple[str, ...]:
        """Names of the materials, in model order."""
        return self._names["material"]

    @property
    def texture_names(self) -> tuple[str, ...]:
        """Names of the textures, in model order."""
        return self._names["texture"]

    @property
    def pair_names(self) -> tuple[str, ...]:
        """Names of the contact pairs, in model order."""
        return self._names["pair"]

    @property
    def num_bodies(self) -> int:
        """Number of bodies."""
        return len(self._names["body"])

    @property
    def num_joints(self) -> int:
        """Number of hinge and slide joints."""
        return len(self._names["joint"])

    @property
    def num_ball_joints(self) -> int:
        """Number of ball joints."""
        return len(self._names["ball_joint"])

    @property
    def num_geoms(self) -> int:
        """Number of geoms."""
        return len(self._names["geom"])

    @property
    def num_sites(self) -> int:
        """Number of sites."""
        return len(self._names["site"])

    @property
    def num_tendons(self) -> int:
        """Number of tendons."""
        return len(self._names["tendon"])

    @property
    def num_actuators(self) -> int:
        """Number of actuators."""
        return len(self._names["actuator"])

    @property
    def num_cameras(self) -> int:
        """Number of cameras."""
        return len(self._names["camera"])

    @property
    def num_lights(self) -> int:
        """Number of lights."""
        return len(self._names["light"])

    @property
    def num_materials(self) -> int:
        """Number of materials."""
        return len(self._names["material"])

    @property
    def num_textures(self) -> int:
        """Number of textures."""
        return len(self._names["texture"])

    @property
    def num_pairs(self) -> int:
        """Number of contact pairs."""
        return len(self._names["pair"])
