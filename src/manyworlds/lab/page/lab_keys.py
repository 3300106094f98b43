"""Keys of the lab's page."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from manyworlds.lab.page.camera_controls import CameraPart
from manyworlds.lab.page.film_controls import FilmPart
from manyworlds.lab.page.overlay_controls import OverlayPart
from manyworlds.lab.page.page_context import PageContext, Part
from manyworlds.lab.page.task_panel import TaskPart
from manyworlds.lab.page.top_bar import TopBar
from manyworlds.lab.page.transport_bar import TransportPart
from manyworlds.viewer.browser.keys import PageKeys
from manyworlds.viewer.browser.overlays.table import OVERLAY_KEYS


def lab_keys(
    ctx: PageContext, top_bar: TopBar, parts: dict[str, Part], collapsed: bool = False
) -> PageKeys:
    """Register the keys of the page.

    Args:
        ctx: context of the page.
        top_bar: part with the controls of time.
        parts: parts of the page by name; keys of parts that it lacks are left out.
        collapsed: whether the panel is hidden at first.
    """
    actions: dict[str, Callable[[], object]] = {
        "pause": top_bar.toggle,
        "step": ctx.step,
        "undo": ctx.undo,
        "redo": ctx.redo,
        "reset": top_bar.reset,
        "slower": lambda: top_bar.change_speed(-1),
        "faster": lambda: top_bar.change_speed(1),
    }
    camera = parts.get("CameraPart")
    overlays = parts.get("OverlayPart")
    if isinstance(camera, CameraPart):
        actions |= {"frame": camera.frame, "follow": camera.toggle_follow}
    if isinstance(overlays, OverlayPart):
        actions |= {"visuals": overlays.toggle_visuals, "coloring": overlays.next_coloring}
        actions |= {
            name: partial(overlays.toggle, *switched) for name, switched in OVERLAY_KEYS.items()
        }
    if "LauncherPart" in parts:
        actions["launch"] = lambda: ctx.verbs.fire_launcher()
    transport = parts.get("TransportPart")
    if isinstance(transport, TransportPart):
        actions |= {"back": partial(transport.step, -1), "forward": partial(transport.step, 1)}
    film = parts.get("FilmPart")
    if isinstance(film, FilmPart):
        actions["cinema"] = film.toggle
    if "TaskPart" in parts:
        actions["debug_shapes"] = partial(_toggle_shapes, parts)
    return PageKeys(ctx.gui, "lab", actions, ctx.attempt, collapsed)


def _toggle_shapes(parts: dict[str, Part]) -> None:
    task = parts.get("TaskPart")
    if isinstance(task, TaskPart):  # a rebuilt world may have no task
        task.toggle_shapes()
