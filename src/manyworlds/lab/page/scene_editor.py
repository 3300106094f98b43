"""Editor of the scene on the page: items, sources, copies, a gizmo, undo, scene files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.gizmos import PoseFields, add_gizmo
from manyworlds.lab.page.page_context import PageContext, PagePart
from manyworlds.lab.page.placing import Place, Placing
from manyworlds.lab.page.props import SIZES
from manyworlds.lab.page.tree_lines import tree_html, tree_line
from manyworlds.lab.page.verb_form import VerbForm
from manyworlds.spec.mesh_files import MESH_SUFFIXES
from manyworlds.spec.uploads import MODEL_SUFFIXES
from manyworlds.viewer.browser.markup import note_html
from manyworlds.viewer.browser.widgets import add_choice, relabel

if TYPE_CHECKING:
    import viser

    from manyworlds.lab.verb_methods import AddItemReply

_NONE = "none"
_FILES = ",".join((*MODEL_SUFFIXES, *MESH_SUFFIXES, ".zip"))
_ENDS_TASK = (
    "A task's environment steps this world. The first edit ends that: plain MuJoCo steps it then, "
    "without the task's commands, rewards and resets."
)


class ScenePart(PagePart):
    """Lists the items of the scene, and adds, moves, copies, renames and removes them."""

    period = 0.1

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        self._items: list[dict[str, Any]] = []
        self._whole = ""
        """Item that was selected as a whole, not by one of its bodies."""
        self._held = False
        self._grip = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
        """Pose of the item where a drag of it began."""
        self._seen_body = 0
        gui = ctx.gui
        self.warning = gui.add_html("")
        self.turns = add_choice(gui, "Edits", {"Undo": self._undo, "Redo": self._redo}, ctx.attempt)
        self.outcome = gui.add_html("")
        self.choice: viser.GuiDropdownHandle[Any] = gui.add_dropdown(
            "Item", (_NONE,), hint="Type to search."
        )
        ctx.on_change(self.choice, self._select)
        self.gizmo = gui.add_checkbox(
            "Move and turn in the view", False, hint="Drag the arrows and arcs at the item."
        )
        self.pose = PoseFields(ctx, lambda pos, quat: self._tell(lambda: self._move(pos, quat)))
        self._add_actions()
        self._add_sources()
        with gui.add_folder("Tree", expand_by_default=False):
            self.search = gui.add_text("Search", "", hint="Part of a name of an item or body.")
            ctx.on_change(self.search, lambda _: self._show_tree())
            self.tree = gui.add_html("")
        with gui.add_folder("Scene file", expand_by_default=False):
            self.file = gui.add_text("Folder", "scene", hint="Or a model file, to open it.")
            actions = {"Save": self._save, "Open": self._open}
            self.files = add_choice(gui, "File", self._told(actions), ctx.attempt)
        self._add_handle()
        ctx.answers["select_item"] = self._answer
        self.renew()

    def _add_actions(self) -> None:
        ctx = self._ctx
        gui = self._ctx.gui
        self.duplicate = ctx.add_button("Duplicate", lambda: self._tell(self._duplicate))
        self.remove = ctx.add_button("Remove", lambda: self._tell(self._remove))
        self.remove.color = "red"
        with gui.add_folder("Name and grid", expand_by_default=False):
            self.name = gui.add_text("New name", "")
            self.rename = ctx.add_button("Rename", lambda: self._tell(self._rename))
            self.counts = VerbForm(ctx, "add_item_grid")
            self.counts.add("rows", value=2)
            self.counts.add("columns", value=2)
            self.grid = ctx.add_button("Add grid", lambda: self._tell(self._grid))

    def _add_sources(self) -> None:
        ctx = self._ctx
        gui = self._ctx.gui
        reply = ctx.verbs.list_sources()
        names = (*reply["names"], *reply["menagerie"])
        with gui.add_folder("Add", expand_by_default=False):
            self.source = gui.add_dropdown("What", (*SIZES, *names), hint="Type to search.")
            self.placing = Placing(ctx, self._tell)
            self.added_name = gui.add_text("Name", "", hint="Empty: that of what is added.")
            self.add = self._add_button("Add", self._add_by_name)
            self.path = gui.add_text("File", "", hint="MJCF, URDF or mesh on the lab's machine.")
            self.add_file = self._add_button("Add file", self._add_by_path)
            self.upload = gui.add_upload_button("Upload file", mime_type=_FILES)
            self.upload.on_upload(lambda _: self._tell(lambda: self.placing.put(self._add_upload)))

    def _add_button(self, label: str, add: Callable[[Place], str]) -> viser.GuiButtonHandle:
        return self._ctx.add_button(label, lambda: self._tell(lambda: self.placing.put(add)))

    def renew(self) -> list[str]:
        """List the items of the new world; the selected one stays if it is there."""
        self._held = False
        self._list()
        self._add_handle()
        return []

    def update(self, snapshot: Snapshot) -> None:
        """Show what can be undone, and the gizmo at the selected item."""
        ctx = self._ctx
        if ctx.body != self._seen_body:
            self._seen_body = ctx.body
            name = ctx.view.name_of(ctx.body)
            owner = next((i["name"] for i in self._items if name and name in i["bodies"]), _NONE)
            if owner != self.choice.value:
                self.choice.value = owner
                self._whole = ""
                ctx.verbs.select_item(item="" if owner == _NONE else owner)
                self._show_tree()
        task = ctx.lab.environment is not None
        self.warning.content = note_html(_ENDS_TASK if task else "")
        item = self._item()
        named = "" if item is None else f" '{item['name']}'"
        for label, button in (("Duplicate", self.duplicate), ("Remove", self.remove)):
            relabel(button, f"{label}{named}")
            if button.disabled != (item is None):
                button.disabled = item is None
        shown = self.gizmo.value and item is not None
        self.handle.visible = shown
        self.pose.visible = item is not None
        if item is not None and not self._held:
            pose = ctx.verbs.read_item_pose(item=self.choice.value)
            self.pose.show(np.array(pose["pos"]), np.array(pose["quat"]))
            self.handle.position = np.array(pose["pos"])
            self.handle.wxyz = np.array(pose["quat"])

    def drag(self, phase: str, position: np.ndarray, quat: np.ndarray) -> None:
        """Handle an event of a drag: a tint shows the item there, which moves when it ends."""
        ctx = self._ctx
        if not self._held and phase != "end":
            pose = ctx.verbs.read_item_pose(item=self.choice.value)
            self._grip = np.array(pose["pos"]), np.array(pose["quat"])
        self._held = phase != "end"
        start_pos, start_quat = self._grip
        ctx.moved = start_pos, start_quat, position, quat
        if not self._held:
            self._tell(lambda: self._move(position, quat))
            ctx.moved = None

    def _add_handle(self) -> None:
        self.handle = add_gizmo(self._ctx, "item", (0.2, 0.6), self.drag)

    def _list(self) -> None:
        reply = self._ctx.verbs.list_items()
        self._items = reply["items"]
        names = (_NONE, *(item["name"] for item in self._items))
        self.choice.options = names
        if reply["selected"] in names:
            self.choice.value = reply["selected"]
            self._select_bodies()
        self._show_tree()

    def _show_tree(self) -> None:
        reply = self._ctx.verbs.read_item_tree(search=self.search.value.strip())
        lines = [line for node in reply["tree"] for line in self._lines(node)]
        self.tree.content = tree_html(lines, "nothing of this name")

    def _lines(self, node: dict[str, Any], depth: int = 0) -> list[str]:
        """Return the lines of an item or body, and of what is in it."""
        name = node["name"]
        note = node["kind"]
        ask = "select_item"
        body = 0
        if depth:
            body = self._ctx.view.id_of(name)
            ask = "select_body" if body else ""
            note = "" if note == "body" else note
        line = tree_line(
            name or "without a name",
            note,
            depth=depth,
            selected=not depth and name == self.choice.value,
            ask=ask,
            argument=body or name,
        )
        lines = [line]
        for child in node["children"]:
            lines += self._lines(child, depth + 1)
        return lines

    def _item(self) -> dict[str, Any] | None:
        return next((i for i in self._items if i["name"] == self.choice.value), None)

    def _chosen(self) -> str:
        if self._item() is None:
            raise ValueError("Select an item first.")
        return self.choice.value

    def _select(self, name: str) -> None:
        self._ctx.verbs.select_item(item="" if name == _NONE else name)
        self._ctx.select("body", 0)
        self._whole = name
        self._select_bodies()
        self._show_tree()

    def _select_bodies(self) -> None:
        """Select the bodies of the item that was chosen as a whole."""
        ctx = self._ctx
        item = self._item()
        if item is not None and item["name"] == self._whole:
            named = (ctx.view.id_of(body) for body in item["bodies"])
            bodies = tuple(body for body in named if body)
            ctx.select_item(item["name"], bodies)
        self._seen_body = ctx.body

    def _answer(self, browser: str, message: dict[str, Any]) -> dict[str, object]:
        """Select the item whose line was clicked in a browser."""
        name = str(message["name"])
        if name in self.choice.options:
            self.choice.value = name
            self._select(name)
        return {}

    def _told(self, actions: dict[str, Callable[[], str]]) -> dict[str, Callable[[], object]]:
        """Return actions that show their outcome, or their error, in the tab."""
        return {label: lambda act=act: self._tell(act) for label, act in actions.items()}

    def _tell(self, action: Callable[[], str]) -> None:
        self._ctx.attempt_at(self.outcome, action)
        self._list()

    def _select_new(self, what: str, reply: AddItemReply) -> str:
        """Select the item of a reply; return what was done with it, as a sentence."""
        name = reply["item"]["name"]
        self._whole = name
        self._ctx.verbs.select_item(item=name)
        return _told(f"{what} '{name}'.", reply["notes"])

    def _undo(self) -> None:
        self._tell(lambda: f"Undone: {self._ctx.verbs.undo()['label']}.")

    def _redo(self) -> None:
        self._tell(lambda: f"Redone: {self._ctx.verbs.redo()['label']}.")

    def _move(self, position: np.ndarray, quat: np.ndarray) -> str:
        reply = self._ctx.verbs.move_item(item=self._chosen(), pos=position, quat=quat)
        return _told(f"'{self.choice.value}' was moved.", reply["notes"])

    def _duplicate(self) -> str:
        item = self._chosen()
        reply = self._ctx.verbs.duplicate_item(item=item)
        return self._select_new(f"'{item}' was duplicated as", reply)

    def _remove(self) -> str:
        item = self._chosen()
        reply = self._ctx.verbs.remove_item(item=item)
        return _told(f"'{item}' was removed.", reply["notes"])

    def _rename(self) -> str:
        name = self.name.value.strip()
        item = self._chosen()
        reply = self._ctx.verbs.rename_item(item=item, name=name)
        return self._select_new(f"'{item}' is now called", reply)

    def _grid(self) -> str:
        item = self._chosen()
        reply = self._ctx.verbs.add_item_grid(item=item, **self.counts.values())
        return _told(f"A grid of '{item}' was added.", reply["notes"])

    def _add_by_name(self, place: Place) -> str:
        source = self.source.value
        name = self.added_name.value.strip()
        if source in SIZES:
            shape: Any = source
            prop = self._ctx.verbs.add_prop(
                shape=shape, size=list(SIZES[shape]), name=name or source, **place
            )
            self._whole = prop["name"]
            self._ctx.verbs.select_item(item=prop["name"])
            return f"Added '{prop['name']}'."
        reply = self._ctx.verbs.add_item(source=source, name=name, **place)
        return self._select_new("Added", reply)

    def _add_by_path(self, place: Place) -> str:
        path = self.path.value.strip()
        if not path:
            raise ValueError("Give the path of a file.")
        name = self.added_name.value.strip()
        reply = self._ctx.verbs.add_item_file(path=Path(path).expanduser(), name=name, **place)
        return self._select_new("Added", reply)

    def _add_upload(self, place: Place) -> str:
        file = self.upload.value
        name = self.added_name.value.strip()
        reply = self._ctx.verbs.upload_item(
            file=file.name, content=file.content, name=name, **place
        )
        return self._select_new("Added", reply)

    def _folder(self) -> str:
        folder = self.file.value.strip()
        if not folder:
            raise ValueError("Give the path of a folder.")
        return str(Path(folder).expanduser())

    def _save(self) -> str:
        reply = self._ctx.verbs.save_scene(folder=self._folder())
        return _told(f"The scene was saved to {reply['folder']}.", reply["notes"])

    def _open(self) -> str:
        path = self._folder()
        reply = self._ctx.verbs.open_scene(path=path)
        return _told(f"The scene {path} was opened.", reply["notes"])


def _told(what: str, notes: Iterable[str]) -> str:
    """Return what was done, and notes on it, a line each."""
    return "\n".join([what, *notes])
