"""Tree of bodies, and properties of the selected body."""

from __future__ import annotations

from functools import partial

import mujoco
import numpy as np

from manyworlds.lab.edits.editable_fields import EDITABLE, body_of, name_of, number_of
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import PageContext, PagePart
from manyworlds.lab.page.tree_lines import tree_html, tree_line
from manyworlds.viewer.browser.markup import status_html
from manyworlds.viewer.browser.widgets import Section, add_choice

_NONE = "none"
_MOST_BUTTONS = 60
_PARTS = ("joint", "geom", "site", "camera", "light", "actuator", "sensor")


class TreePart(PagePart):
    """Finds and selects bodies; a click on a body in the view selects it, too."""

    period = 0.25

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        self._read()
        gui = ctx.gui
        self.choice = gui.add_dropdown("Body", tuple(self._names), hint="Type to search.")
        ctx.on_change(self.choice, lambda name: ctx.select("body", self._names.index(name)))
        self.filter = gui.add_text(
            "Find", "", hint="Part of a name, or a kind: joint, geom, site ..."
        )
        self.found = Section(gui)
        ctx.on_change(self.filter, self.find)
        self.parts = Section(gui)
        self.info = gui.add_html("")
        with gui.add_folder("Tree", expand_by_default=False):
            self.tree = gui.add_html("")
        self._shown = -1

    def _read(self) -> None:
        self._model = self._ctx.lab.model
        self._names = [_NONE, *self._ctx.view.labels[1:]]

    def renew(self) -> list[str]:
        """List the bodies of the new world."""
        self._read()
        self.choice.options = tuple(self._names)
        self.find(self.filter.value)
        self._shown = -1
        return []

    def update(self, snapshot: Snapshot) -> None:
        """Show the selected body."""
        body = self._ctx.body
        if body != self._shown:
            self._shown = body
            self.choice.value = self._names[body]
            self.tree.content = _tree(self._model, self._names, body)
            self._list(self.parts, parts_of(self._model, body) if body else {})
        self.info.content = _info(self._model, body, snapshot) if body else ""

    def find(self, text: str) -> None:
        """List the elements whose kind or name has a text, as buttons."""
        self._list(self.found, matches(self._model, text) if text.strip() else {})

    def _list(self, section: Section, elements: dict[str, list[int]]) -> None:
        """Show buttons that select elements, a row for each kind."""
        ctx = self._ctx
        shown = 0
        with section.empty():
            for kind, ids in elements.items():
                few = ids[: max(0, _MOST_BUTTONS - shown)]
                shown += len(few)
                by_label = {name_of(self._model, kind, i): i for i in few}
                actions = {label: partial(ctx.select, kind, i) for label, i in by_label.items()}
                if actions:
                    more = f" ({len(ids)})" if len(ids) > len(few) else ""
                    add_choice(ctx.gui, f"{kind.capitalize()}{more}", actions, ctx.attempt)


def matches(model: mujoco.MjModel, text: str) -> dict[str, list[int]]:
    """Return the elements whose kind or name has a text, by kind."""
    text = text.strip().lower()
    found = {}
    for kind in EDITABLE:
        first = 1 if kind == "body" else 0  # not the world
        ids = range(first, number_of(model, kind))
        chosen = [i for i in ids if kind == text or text in name_of(model, kind, i).lower()]
        if chosen:
            found[kind] = chosen
    return found


def parts_of(model: mujoco.MjModel, body: int) -> dict[str, list[int]]:
    """Return the elements on a body, or acting on it, and its parent and children, by kind."""
    found: dict[str, list[int]] = {}
    around = [int(model.body_parentid[body]), *np.flatnonzero(model.body_parentid == body).tolist()]
    around = [other for other in around if other]
    if around:
        found["body"] = around
    for kind in _PARTS:
        ids = [i for i in range(number_of(model, kind)) if body_of(model, kind, i) == body]
        if ids:
            found[kind] = ids
    return found


def _tree(model: mujoco.MjModel, names: list[str], selected: int) -> str:
    depth = np.zeros(model.nbody, int)
    lines = []
    for body in range(1, model.nbody):
        depth[body] = depth[model.body_parentid[body]] + 1
        kinds = model.jnt_type[model.jnt_bodyid == body].tolist()
        joints = [mujoco.mjtJoint(kind).name.removeprefix("mjJNT_").lower() for kind in kinds]
        lines.append(
            tree_line(
                names[body],
                " ".join(joints),
                depth=int(depth[body]) - 1,
                selected=body == selected,
                ask="select_body",
                argument=body,
            )
        )
    return tree_html(lines)


def _info(model: mujoco.MjModel, body: int, snapshot: Snapshot) -> str:
    position = " ".join(f"{x:.3f}" for x in snapshot.xpos[body])
    rows = [
        ("Mass", f"{model.body_mass[body]:.4g} kg"),
        ("With children", f"{model.body_subtreemass[body]:.4g} kg"),
        ("Position", f"{position} m"),
        ("Geoms", str(model.body_geomnum[body])),
    ]
    return status_html(rows, name_em=7.0)
