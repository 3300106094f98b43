"""Verbs of the scene: items are added, moved, copied, renamed and removed; edits are undone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np

from manyworlds.lab.errors import VerbError
from manyworlds.lab.scene.items import ItemRequest, SceneItem
from manyworlds.lab.scene.sources import menagerie_names, registered_names, uploads_folder
from manyworlds.lab.verbs.fields import (
    Content,
    Field,
    FilePath,
    Flag,
    Integer,
    Listing,
    Numbers,
    Texts,
    Values,
)
from manyworlds.lab.verbs.registry import Reply, verb
from manyworlds.spec.uploads import read_upload

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

_POS = Numbers(size=3, unit="m", text="position of the item's origin in the world")
_QUAT = Numbers(size=4, unit="wxyz", text="orientation of the item's origin in the world")
_Pos = Annotated[np.ndarray | None, _POS]
_Quat = Annotated[np.ndarray | None, _QUAT]
_NewPos = Annotated[
    np.ndarray | None,
    Numbers(
        size=3,
        unit="m",
        text="position of the item's origin; a free place on the ground if left out",
    ),
]
_Near = Annotated[
    Sequence[float],
    Numbers(size=2, unit="m", text="place at which, or beside which, a free one is chosen"),
]
_ORIGIN = (0.0, 0.0)
_Item = Annotated[str, Field(text="name of an item")]
_NewName = Annotated[str, Field(text="name of the new item; a free one if left out")]
_Id = Annotated[str, Field(text="name for programs that stays; the name if left out")]
_ITEM = Values(text="name, id, kind, source, prefix, bodies, pos and quat of the item")
_ITEMS = Listing(text="name, id, kind, source, prefix, bodies, pos and quat of each item")
_NOTES = Texts(text="sentences about what the edit did besides what was asked")


@verb(item=_ITEM, notes=_NOTES)
def add_item(
    lab: LiveLab,
    source: Annotated[
        str, Field(text="name of an entity of the package or of a robot of MuJoCo Menagerie")
    ],
    name: _NewName = "",
    pos: _NewPos = None,
    quat: _Quat = None,
    id: _Id = "",
    near: _Near = _ORIGIN,
) -> Reply:
    """Add a robot or prop by its name; the world keeps running meanwhile."""
    if source not in registered_names() and ("/" in source or "\\" in source or "." in source):
        raise VerbError(
            "bad_value", f"add_item: source must be a name, got '{source}'; see add_item_file."
        )
    return _added(lab, lab.scene.add(source, name, pos, quat, id, near))


@verb(item=_ITEM, notes=_NOTES)
def add_item_file(
    lab: LiveLab,
    path: Annotated[Path, FilePath(text="MJCF, URDF or mesh file")],
    name: _NewName = "",
    pos: _NewPos = None,
    quat: _Quat = None,
    id: _Id = "",
    near: _Near = _ORIGIN,
) -> Reply:
    """Add a robot or prop from a file on the lab's machine."""
    return _added(lab, lab.scene.add(path, name, pos, quat, id, near))


@verb(item=_ITEM, notes=_NOTES)
def upload_item(
    lab: LiveLab,
    file: Annotated[str, Field(text="name of the file")],
    content: Annotated[bytes, Content(text="content of an MJCF, URDF or mesh file")],
    name: _NewName = "",
    pos: _NewPos = None,
    quat: _Quat = None,
    id: _Id = "",
    near: _Near = _ORIGIN,
) -> Reply:
    """Add a robot or prop from the content of a file, which the lab keeps."""
    path = read_upload(file, content, uploads_folder())
    return _added(lab, lab.scene.add(path, name, pos, quat, id, near))


@verb(item=_ITEM, notes=_NOTES)
def add_light(
    lab: LiveLab,
    name: Annotated[str, Field(text="name of the light")] = "light",
    pos: Annotated[Sequence[float], _POS] = (0.0, 0.0, 3.0),
    direction: Annotated[Sequence[float], Numbers(size=3, text="direction of the light")] = (
        *(0.0, 0.0),
        -1.0,
    ),
    color: Annotated[Sequence[float], Numbers(size=3, text="color, 0 to 1")] = (0.7, 0.7, 0.7),
    directional: Annotated[bool, Flag(text="true for light from afar, as of the sun")] = False,
) -> Reply:
    """Add a light to the world, which cameras and recordings show."""
    return _added(lab, lab.scene.add_light(name, pos, direction, color, directional))


@verb(item=_ITEM, notes=_NOTES)
def duplicate_item(
    lab: LiveLab, item: _Item, name: _NewName = "", pos: _Pos = None, quat: _Quat = None
) -> Reply:
    """Add a copy of an item, beside it if no position is given."""
    return _added(lab, lab.scene.duplicate(item, name, pos, quat))


@verb(items=_ITEMS, notes=_NOTES)
def add_item_grid(
    lab: LiveLab,
    item: _Item,
    rows: Annotated[int, Integer(low=1, high=1024, text="items along y")],
    columns: Annotated[int, Integer(low=1, high=1024, text="items along x")],
    spacing: Annotated[
        np.ndarray | None, Numbers(size=2, unit="m", text="distances along x and y")
    ] = None,
) -> Reply:
    """Add copies of an item that form a grid with it, of at most 1024 items."""
    given = None
    if spacing is not None:
        given = (float(spacing[0]), float(spacing[1]))
    copies = lab.scene.grid(item, rows, columns, given)
    return {"items": [_plain(copy) for copy in copies], "notes": list(lab.scene.notes)}


@verb(item=_ITEM, notes=_NOTES)
def move_item(lab: LiveLab, item: _Item, pos: _Pos = None, quat: _Quat = None) -> Reply:
    """Move an item: its initial pose, and its present one if its base moves."""
    return _added(lab, lab.scene.move(item, pos, quat))


@verb(item=_ITEM, notes=_NOTES)
def rename_item(lab: LiveLab, item: _Item, name: Annotated[str, Field(text="new name")]) -> Reply:
    """Give an item another name; its state and its id stay."""
    return _added(lab, lab.scene.rename(item, name))


@verb(notes=_NOTES)
def remove_item(lab: LiveLab, item: _Item) -> Reply:
    """Remove an item, and all that refers to it."""
    lab.scene.remove(item)
    return {"notes": list(lab.scene.notes)}


@verb(done=Texts(text="sentences about what was done; none if all was as requested"), notes=_NOTES)
def apply_scene(
    lab: LiveLab,
    items: Annotated[
        list[Mapping[str, object]],
        Listing(text="`id`, `source` (a name, as for add_item), and `name`, `pos`, `quat`"),
    ],
) -> Reply:
    """Add, move or replace items by their ids; the same again changes nothing."""
    done = lab.scene.apply([_request(item) for item in items])
    notes = list(lab.scene.notes) if done else []
    return {"done": done, "notes": notes}


@verb(
    reads=True,
    items=_ITEMS,
    selected=Field(text="name of the selected item; empty for none"),
    undo=Texts(text="edits that can be undone, the oldest first"),
    redo=Texts(text="edits that can be redone, the next one last"),
    notes=_NOTES,
)
def list_items(
    lab: LiveLab,
    search: Annotated[str, Field(text="part of a name, id or source; empty for all")] = "",
) -> Reply:
    """Return the items of the scene, and the edits that can be undone."""
    scene = lab.scene
    history = lab.history
    return {
        "items": [_plain(item) for item in scene.find(search)],
        "selected": scene.selected,
        "undo": list(history.done),
        "redo": list(history.undone),
        "notes": list(scene.notes),
    }


@verb(reads=True, tree=Listing(text="name, kind and children of each item"))
def read_item_tree(
    lab: LiveLab,
    search: Annotated[str, Field(text="part of a name of an item or body; empty for all")] = "",
) -> Reply:
    """Return items and their bodies as a tree."""
    return {"tree": [asdict(node) for node in lab.scene.tree(search)]}


@verb(reads=True, pos=_POS, quat=_QUAT)
def read_item_pose(lab: LiveLab, item: _Item) -> Reply:
    """Return the present pose of an item's origin."""
    pos, quat = lab.scene.pose(item)
    return {"pos": pos.tolist(), "quat": quat.tolist()}


_CORNER = Numbers(size=3, unit="m", text="corner of the box")


@verb(reads=True, low=_CORNER, high=_CORNER)
def read_item_bounds(lab: LiveLab, item: _Item) -> Reply:
    """Return a box around an item as it is now, along the axes of the world."""
    box = lab.scene.bounds(item)
    return {"low": list(box.low), "high": list(box.high)}


@verb(
    reads=True,
    names=Texts(text="names of entities of the package"),
    menagerie=Texts(text="robots of MuJoCo Menagerie; none without the extra 'robots'"),
)
def list_sources(lab: LiveLab) -> Reply:
    """Return the names by which items can be added."""
    return {"names": list(registered_names()), "menagerie": list(menagerie_names())}


@verb(selected=Field(text="name of the selected item"))
def select_item(
    lab: LiveLab, item: Annotated[str, Field(text="name of an item; empty for none")]
) -> Reply:
    """Select an item, which pages show."""
    lab.scene.select(item)
    return {"selected": lab.scene.selected}


@verb(folder=Field(text="the folder"), notes=_NOTES)
def save_scene(
    lab: LiveLab, folder: Annotated[Path, FilePath(text="folder to write, or to replace")]
) -> Reply:
    """Write the scene to a folder: scene.xml for plain MuJoCo, assets, and names."""
    return {"folder": str(lab.scene.save(folder)), "notes": list(lab.scene.notes)}


@verb(notes=_NOTES)
def open_scene(
    lab: LiveLab, path: Annotated[Path, FilePath(text="folder of a scene, or a model file")]
) -> Reply:
    """Replace the world by a scene file; this can be undone."""
    lab.scene.open(path)
    return {"notes": list(lab.scene.notes)}


def _added(lab: LiveLab, item: SceneItem) -> Reply:
    return {"item": _plain(item), "notes": list(lab.scene.notes)}


def _plain(item: SceneItem) -> Reply:
    plain = asdict(item)
    del plain["roots"]
    for key, value in plain.items():
        if isinstance(value, tuple):
            plain[key] = list(value)
    return plain


def _request(item: Mapping[str, object]) -> ItemRequest:
    """Return a request from plain data."""
    known = {"id": str, "source": str, "name": str, "pos": Sequence, "quat": Sequence}
    for key, value in item.items():
        if key not in known:
            raise VerbError(
                "bad_request", f"apply_scene: an item has no field '{key}': {', '.join(known)}."
            )
        if value is not None and not isinstance(value, known[key]):
            raise VerbError("bad_value", f"apply_scene: {key} has a wrong type, got {value!r}.")
    for key in ("id", "source"):
        if not item.get(key):
            raise VerbError("missing_field", f"apply_scene: each item needs '{key}'.")
    given = {key: value for key, value in item.items() if value is not None}
    return ItemRequest(**given)  # type: ignore[arg-type]
