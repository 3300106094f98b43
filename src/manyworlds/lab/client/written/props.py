"""Verbs of `manyworlds.lab.verbs.props`, as methods.

Written by `python tools/write_client_verbs.py`; a test compares them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from numpy.typing import ArrayLike

from manyworlds.lab.client.caller import Reply, VerbCaller


class PropsVerbs(VerbCaller):
    """Verbs of a live world: props."""

    def add_prop(
        self,
        shape: Literal["sphere", "capsule", "cylinder", "ellipsoid", "box", "plane"],
        size: ArrayLike,
        name: str = "prop",
        mode: Literal["dynamic", "static", "mocap"] = "dynamic",
        mass: float = 0.0,
        pos: ArrayLike | None = None,
        quat: ArrayLike | None = None,
    ) -> Reply:
        """Add a primitive to the world, which goes on.

        Args:
            shape: kind of primitive.
            size: sizes of the primitive as in MuJoCo [m].
            name: name of the new entity; a number is added if it is taken.
            mode: motion of the prop.
            mass: mass; 0 for the density of water [kg], from 0.
            pos: position in the world [m].
            quat: orientation in the world [wxyz].

        Returns:
            `conversion` (int, number of the conversion), `name` (string, name of the entity in the
            world), `state` (string, state of the conversion), `share` (float, estimated share that
            is done), `pieces` (int, number of convex pieces; 0 for none), `text` (string, sentences
            about the result, or the reason of a failure), `frame_id`, `time`.
        """
        return self.call(
            "add_prop", shape=shape, size=size, name=name, mode=mode, mass=mass, pos=pos, quat=quat
        )

    def add_mesh_prop(
        self,
        content: bytes,
        file_name: str,
        name: str = "",
        mode: Literal["dynamic", "static", "mocap"] = "dynamic",
        threshold: float = 0.05,
        mass: float = 0.0,
        scale: ArrayLike | None = None,
        pos: ArrayLike | None = None,
        quat: ArrayLike | None = None,
        wait: bool = True,
    ) -> Reply:
        """Convert an uploaded mesh to a prop with convex pieces, and add it to the world.

        Args:
            content: content of the mesh file.
            file_name: its name, whose ending is its format.
            name: name of the new entity; a number is added if it is taken.
            mode: motion of the prop.
            threshold: threshold of CoACD from 0.01; 0 lets the convex hull collide, from 0, to 1.
            mass: mass; 0 for the density of water [kg], from 0.
            scale: factor of all coordinates, or of x, y and z.
            pos: position in the world [m].
            quat: orientation in the world [wxyz].
            wait: true to reply when the prop is in the world.

        Returns:
            `conversion` (int, number of the conversion), `name` (string, name of the entity in the
            world), `state` (string, state of the conversion), `share` (float, estimated share that
            is done), `pieces` (int, number of convex pieces; 0 for none), `text` (string, sentences
            about the result, or the reason of a failure), `frame_id`, `time`.
        """
        return self.call(
            "add_mesh_prop",
            content=content,
            file_name=file_name,
            name=name,
            mode=mode,
            threshold=threshold,
            mass=mass,
            scale=scale,
            pos=pos,
            quat=quat,
            wait=wait,
        )

    def add_mesh_prop_from_file(
        self,
        path: str | Path,
        name: str = "",
        mode: Literal["dynamic", "static", "mocap"] = "dynamic",
        threshold: float = 0.05,
        mass: float = 0.0,
        scale: ArrayLike | None = None,
        pos: ArrayLike | None = None,
        quat: ArrayLike | None = None,
        wait: bool = True,
    ) -> Reply:
        """Convert a mesh file to a prop with convex pieces, and add it to the world.

        Args:
            path: mesh file.
            name: name of the new entity; a number is added if it is taken.
            mode: motion of the prop.
            threshold: threshold of CoACD from 0.01; 0 lets the convex hull collide, from 0, to 1.
            mass: mass; 0 for the density of water [kg], from 0.
            scale: factor of all coordinates, or of x, y and z.
            pos: position in the world [m].
            quat: orientation in the world [wxyz].
            wait: true to reply when the prop is in the world.

        Returns:
            `conversion` (int, number of the conversion), `name` (string, name of the entity in the
            world), `state` (string, state of the conversion), `share` (float, estimated share that
            is done), `pieces` (int, number of convex pieces; 0 for none), `text` (string, sentences
            about the result, or the reason of a failure), `frame_id`, `time`.
        """
        return self.call(
            "add_mesh_prop_from_file",
            path=path,
            name=name,
            mode=mode,
            threshold=threshold,
            mass=mass,
            scale=scale,
            pos=pos,
            quat=quat,
            wait=wait,
        )

    def read_conversion(
        self,
        conversion: int,
    ) -> Reply:
        """Return the state of a conversion.

        Args:
            conversion: number of the conversion, from 0.

        Returns:
            `conversion` (int, number of the conversion), `name` (string, name of the entity in the
            world), `state` (string, state of the conversion), `share` (float, estimated share that
            is done), `pieces` (int, number of convex pieces; 0 for none), `text` (string, sentences
            about the result, or the reason of a failure), `frame_id`, `time`.
        """
        return self.call("read_conversion", conversion=conversion)

    def cancel_conversion(
        self,
        conversion: int,
    ) -> Reply:
        """Cancel a conversion: its process ends, and the world stays as it is.

        Args:
            conversion: number of the conversion, from 0.

        Returns:
            `conversion` (int, number of the conversion), `name` (string, name of the entity in the
            world), `state` (string, state of the conversion), `share` (float, estimated share that
            is done), `pieces` (int, number of convex pieces; 0 for none), `text` (string, sentences
            about the result, or the reason of a failure), `frame_id`, `time`.
        """
        return self.call("cancel_conversion", conversion=conversion)

    def read_region_heights(
        self,
        center: ArrayLike | None = None,
        size: ArrayLike | None = None,
        resolution: ArrayLike | None = None,
        fill: float = 0.0,
        include: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        groups: ArrayLike | None = None,
    ) -> Reply:
        """Sample the heights of a region of the world as it is now, as a preview of a height field.

        Args:
            center: center of the region [m].
            size: extent along x and y [m].
            resolution: samples along x and y, 2 to 512.
            fill: height where there is no surface [m].
            include: names of geoms or bodies to sample; empty for all.
            exclude: names of geoms or bodies to leave out.
            groups: groups of geoms to sample.

        Returns:
            `heights` (float[], heights row by row, the first row at the lowest y), `counts`
            (float[], samples of the preview along x and y), `capped` (bool, true if the field has
            more samples than the 128 of a preview), `frame_id`, `time`.
        """
        return self.call(
            "read_region_heights",
            center=center,
            size=size,
            resolution=resolution,
            fill=fill,
            include=include,
            exclude=exclude,
            groups=groups,
        )

    def add_height_field(
        self,
        center: ArrayLike | None = None,
        size: ArrayLike | None = None,
        resolution: ArrayLike | None = None,
        fill: float = 0.0,
        include: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        groups: ArrayLike | None = None,
        base_thickness: float = 0.1,
        name: str = "terrain",
        pos: ArrayLike | None = None,
    ) -> Reply:
        """Sample a region of the world as it is now, and add it as a height field.

        Args:
            center: center of the region [m].
            size: extent along x and y [m].
            resolution: samples along x and y, 2 to 512.
            fill: height where there is no surface [m].
            include: names of geoms or bodies to sample; empty for all.
            exclude: names of geoms or bodies to leave out.
            groups: groups of geoms to sample.
            base_thickness: depth of the base [m], from 0.01, to 1.
            name: name of the new entity; a number is added if it is taken.
            pos: position in the world [m].

        Returns:
            `conversion` (int, number of the conversion), `name` (string, name of the entity in the
            world), `state` (string, state of the conversion), `share` (float, estimated share that
            is done), `pieces` (int, number of convex pieces; 0 for none), `text` (string, sentences
            about the result, or the reason of a failure), `frame_id`, `time`.
        """
        return self.call(
            "add_height_field",
            center=center,
            size=size,
            resolution=resolution,
            fill=fill,
            include=include,
            exclude=exclude,
            groups=groups,
            base_thickness=base_thickness,
            name=name,
            pos=pos,
        )
