"""Verbs of `manyworlds.lab.verbs.scene`, as methods.

Written by `python tools/write_client_verbs.py`; a test compares them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from numpy.typing import ArrayLike

from manyworlds.lab.client.caller import Reply, VerbCaller


class SceneVerbs(VerbCaller):
    """Verbs of a live world: scene."""

    def add_item(
        self,
        source: str,
        name: str = "",
        pos: ArrayLike | None = None,
        quat: ArrayLike | None = None,
        id: str = "",
    ) -> Reply:
        """Add a robot or prop by its name; the world goes on meanwhile.

        Args:
            source: name of an entity of the package or of a robot of MuJoCo Menagerie.
            name: name of the new item; a free one if left out.
            pos: position of the item's origin; a free place on the ground if left out [m].
            quat: orientation of the item's origin in the world [wxyz].
            id: name for programs that stays; the name if left out.

        Returns:
            `item` (map, name, id, kind, source, prefix, bodies, pos and quat of the item), `notes`
            (string[], sentences about what the edit did besides what was asked), `frame_id`,
            `time`.
        """
        return self.call("add_item", source=source, name=name, pos=pos, quat=quat, id=id)

    def add_item_file(
        self,
        path: str | Path,
        name: str = "",
        pos: ArrayLike | None = None,
        quat: ArrayLike | None = None,
        id: str = "",
    ) -> Reply:
        """Add a robot or prop from a file on the lab's machine.

        Args:
            path: MJCF, URDF or mesh file.
            name: name of the new item; a free one if left out.
            pos: position of the item's origin; a free place on the ground if left out [m].
            quat: orientation of the item's origin in the world [wxyz].
            id: name for programs that stays; the name if left out.

        Returns:
            `item` (map, name, id, kind, source, prefix, bodies, pos and quat of the item), `notes`
            (string[], sentences about what the edit did besides what was asked), `frame_id`,
            `time`.
        """
        return self.call("add_item_file", path=path, name=name, pos=pos, quat=quat, id=id)

    def upload_item(
        self,
        file: str,
        content: bytes,
        name: str = "",
        pos: ArrayLike | None = None,
        quat: ArrayLike | None = None,
        id: str = "",
    ) -> Reply:
        """Add a robot or prop from the content of a file, which the lab keeps.

        Args:
            file: name of the file.
            content: content of an MJCF, URDF or mesh file.
            name: name of the new item; a free one if left out.
            pos: position of the item's origin; a free place on the ground if left out [m].
            quat: orientation of the item's origin in the world [wxyz].
            id: name for programs that stays; the name if left out.

        Returns:
            `item` (map, name, id, kind, source, prefix, bodies, pos and quat of the item), `notes`
            (string[], sentences about what the edit did besides what was asked), `frame_id`,
            `time`.
        """
        return self.call(
            "upload_item", file=file, content=content, name=name, pos=pos, quat=quat, id=id
        )

    def add_light(
        self,
        name: str = "light",
        pos: ArrayLike | None = None,
        direction: ArrayLike | None = None,
        color: ArrayLike | None = None,
        directional: bool = False,
    ) -> Reply:
        """Add a light to the world, which cameras and recordings show.

        Args:
            name: name of the light.
            pos: position of the item's origin in the world [m].
            direction: direction of the light.
            color: color, 0 to 1.
            directional: true for light from afar, as of the sun.

        Returns:
            `item` (map, name, id, kind, source, prefix, bodies, pos and quat of the item), `notes`
            (string[], sentences about what the edit did besides what was asked), `frame_id`,
            `time`.
        """
        return self.call(
            "add_light",
            name=name,
            pos=pos,
            direction=direction,
            color=color,
            directional=directional,
        )

    def duplicate_item(
        self,
        item: str,
        name: str = "",
        pos: ArrayLike | None = None,
        quat: ArrayLike | None = None,
    ) -> Reply:
        """Add a copy of an item, beside it if no position is given.

        Args:
            item: name of an item.
            name: name of the new item; a free one if left out.
            pos: position of the item's origin in the world [m].
            quat: orientation of the item's origin in the world [wxyz].

        Returns:
            `item` (map, name, id, kind, source, prefix, bodies, pos and quat of the item), `notes`
            (string[], sentences about what the edit did besides what was asked), `frame_id`,
            `time`.
        """
        return self.call("duplicate_item", item=item, name=name, pos=pos, quat=quat)

    def add_item_grid(
        self,
        item: str,
        rows: int,
        columns: int,
        spacing: ArrayLike | None = None,
    ) -> Reply:
        """Add copies of an item that form a grid with it, of at most 1024 items.

        Args:
            item: name of an item.
            rows: items along y, from 1, to 1024.
            columns: items along x, from 1, to 1024.
            spacing: distances along x and y [m].

        Returns:
            `items` (map[], name, id, kind, source, prefix, bodies, pos and quat of each item),
            `notes` (string[], sentences about what the edit did besides what was asked),
            `frame_id`, `time`.
        """
        return self.call("add_item_grid", item=item, rows=rows, columns=columns, spacing=spacing)

    def move_item(
        self,
        item: str,
        pos: ArrayLike | None = None,
        quat: ArrayLike | None = None,
    ) -> Reply:
        """Move an item: its initial pose, and its present one if its base moves.

        Args:
            item: name of an item.
            pos: position of the item's origin in the world [m].
            quat: orientation of the item's origin in the world [wxyz].

        Returns:
            `item` (map, name, id, kind, source, prefix, bodies, pos and quat of the item), `notes`
            (string[], sentences about what the edit did besides what was asked), `frame_id`,
            `time`.
        """
        return self.call("move_item", item=item, pos=pos, quat=quat)

    def rename_item(
        self,
        item: str,
        name: str,
    ) -> Reply:
        """Give an item another name; its state and its id stay.

        Args:
            item: name of an item.
            name: new name.

        Returns:
            `item` (map, name, id, kind, source, prefix, bodies, pos and quat of the item), `notes`
            (string[], sentences about what the edit did besides what was asked), `frame_id`,
            `time`.
        """
        return self.call("rename_item", item=item, name=name)

    def remove_item(
        self,
        item: str,
    ) -> Reply:
        """Remove an item, and all that refers to it.

        Args:
            item: name of an item.

        Returns:
            `notes` (string[], sentences about what the edit did besides what was asked),
            `frame_id`, `time`.
        """
        return self.call("remove_item", item=item)

    def apply_scene(
        self,
        items: Sequence[Mapping[str, object]],
    ) -> Reply:
        """Add, move or replace items by their ids; the same again changes nothing.

        Args:
            items: `id`, `source` (a name, as for add_item), and `name`, `pos`, `quat`.

        Returns:
            `done` (string[], sentences about what was done; none if all was as requested), `notes`
            (string[], sentences about what the edit did besides what was asked), `frame_id`,
            `time`.
        """
        return self.call("apply_scene", items=items)

    def list_items(
        self,
        search: str = "",
    ) -> Reply:
        """Return the items of the scene, and the edits that can be undone.

        Args:
            search: part of a name, id or source; empty for all.

        Returns:
            `items` (map[], name, id, kind, source, prefix, bodies, pos and quat of each item),
            `selected` (string, name of the selected item; empty for none), `undo` (string[], edits
            that can be undone, the oldest first), `redo` (string[], edits that can be redone, the
            next one last), `notes` (string[], sentences about what the edit did besides what was
            asked), `frame_id`, `time`.
        """
        return self.call("list_items", search=search)

    def read_item_tree(
        self,
        search: str = "",
    ) -> Reply:
        """Return items and their bodies as a tree.

        Args:
            search: part of a name of an item or body; empty for all.

        Returns:
            `tree` (map[], name, kind and children of each item), `frame_id`, `time`.
        """
        return self.call("read_item_tree", search=search)

    def read_item_pose(
        self,
        item: str,
    ) -> Reply:
        """Return the present pose of an item's origin.

        Args:
            item: name of an item.

        Returns:
            `pos` (float[], position of the item's origin in the world), `quat` (float[],
            orientation of the item's origin in the world), `frame_id`, `time`.
        """
        return self.call("read_item_pose", item=item)

    def read_item_bounds(
        self,
        item: str,
    ) -> Reply:
        """Return a box around an item as it is now, along the axes of the world.

        Args:
            item: name of an item.

        Returns:
            `low` (float[], corner of the box), `high` (float[], corner of the box), `frame_id`,
            `time`.
        """
        return self.call("read_item_bounds", item=item)

    def list_sources(self) -> Reply:
        """Return the names by which items can be added.

        Returns:
            `names` (string[], names of entities of the package), `menagerie` (string[], robots of
            MuJoCo Menagerie; none without the extra 'robots'), `frame_id`, `time`.
        """
        return self.call("list_sources")

    def select_item(
        self,
        item: str,
    ) -> Reply:
        """Select an item, which pages show.

        Args:
            item: name of an item; empty for none.

        Returns:
            `selected` (string, name of the selected item), `frame_id`, `time`.
        """
        return self.call("select_item", item=item)

    def save_scene(
        self,
        folder: str | Path,
    ) -> Reply:
        """Write the scene to a folder: scene.xml for plain MuJoCo, assets, and names.

        Args:
            folder: folder to write, or to replace.

        Returns:
            `folder` (string, the folder), `notes` (string[], sentences about what the edit did
            besides what was asked), `frame_id`, `time`.
        """
        return self.call("save_scene", folder=folder)

    def open_scene(
        self,
        path: str | Path,
    ) -> Reply:
        """Replace the world by a scene file; this can be undone.

        Args:
            path: folder of a scene, or a model file.

        Returns:
            `notes` (string[], sentences about what the edit did besides what was asked),
            `frame_id`, `time`.
        """
        return self.call("open_scene", path=path)
