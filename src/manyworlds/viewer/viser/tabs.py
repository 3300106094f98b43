"""The tabs beside the controls: overlays and groups, commands, checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mujoco

from manyworlds.viewer.browser.markup import status_html
from manyworlds.viewer.viser.checkpoints import CheckpointManager
from manyworlds.viewer.viser.overlays import OVERLAYS

if TYPE_CHECKING:
    import viser

    from manyworlds.viewer.viser.viewer import ViserPlayViewer

_EYE: Any = "eye"
_DISK: Any = "device-floppy"
_GAMEPAD: Any = "device-gamepad-2"
_Flag = mujoco.mjtVisFlag
_FLAGS = {
    "Inertia boxes": _Flag.mjVIS_INERTIA,
    "Centers of mass": _Flag.mjVIS_COM,
    "Actuators": _Flag.mjVIS_ACTUATOR,
    "Cameras": _Flag.mjVIS_CAMERA,
    "Lights": _Flag.mjVIS_LIGHT,
}
_FRAMES = {
    "None": mujoco.mjtFrame.mjFRAME_NONE,
    "Bodies": mujoco.mjtFrame.mjFRAME_BODY,
    "Geoms": mujoco.mjtFrame.mjFRAME_GEOM,
    "Sites": mujoco.mjtFrame.mjFRAME_SITE,
}


def add_visualization_tab(server: viser.ViserServer, viewer: ViserPlayViewer, tabs: Any) -> None:
    """What is drawn over the selected world, and which groups are drawn in all worlds."""
    gui = server.gui
    with tabs.add_tab("Visualization", icon=_EYE):
        if hasattr(viewer.env.unwrapped, "update_visualizers"):
            _checkbox(gui, viewer, "Debug shapes", True, "debug")
            if viewer.num_shown > 1:
                _checkbox(gui, viewer, "... in all worlds", False, "debug_all")
        for name, label in OVERLAYS.items():
            _checkbox(gui, viewer, label, False, "overlay", name)
        for label, flag in _FLAGS.items():
            _checkbox(gui, viewer, label, False, "flag", int(flag))
        frames = gui.add_dropdown("Frames", tuple(_FRAMES))
        frames.on_update(lambda _: _request(viewer, "frames", int(_FRAMES[frames.value])))
        if viewer.cameras.has_cameras:
            viewer.cameras.setup_controls()
        with gui.add_folder("Groups", expand_by_default=False):
            for kind, shown in viewer.groups.items():
                for group, visible in enumerate(shown):
                    label = f"{kind}s of group {group}"
                    _checkbox(gui, viewer, label, visible, "group", kind, group)


def add_command_tab(server: viser.ViserServer, viewer: ViserPlayViewer, tabs: Any) -> None:
    """Sliders for commands that can be steered, and what command terms add of their own."""
    manager: Any = getattr(viewer.env.unwrapped, "command_manager", None)
    terms = {name: manager.get_term(name) for name in manager.active_terms} if manager else {}
    steered = {name: term for name, term in terms.items() if hasattr(term, "steering")}
    own = [term for term in terms.values() if _has_gui(term)]
    if not steered and not own:
        return
    gui = server.gui
    with tabs.add_tab("Commands", icon=_GAMEPAD):
        for name, term in steered.items():
            _add_sliders(gui, viewer, name, term)
        if own:
            manager.create_gui(
                server, lambda: viewer.env_idx, viewer.request_redraw, viewer.request_action
            )


def _has_gui(term: Any) -> bool:
    from manyworlds.managers import CommandTerm

    return type(term).create_gui is not CommandTerm.create_gui


def _add_sliders(gui: Any, viewer: ViserPlayViewer, name: str, term: Any) -> None:
    active = gui.add_checkbox(
        f"Steer '{name}'", False, hint="Set the command of the selected world by hand."
    )
    sliders = []
    for label, (low, high) in term.steering.items():
        # A range that training left narrow still lets one steer both ways.
        reach = max(abs(low), abs(high), 0.1)
        sliders.append(gui.add_slider(label, -reach, reach, reach / 50, 0.0))

    def send(_: Any) -> None:
        values = [slider.value for slider in sliders] if active.value else None
        _request(viewer, "steer", name, values)

    stop = gui.add_button("Stop")

    @stop.on_click
    def _(_: Any) -> None:
        for slider in sliders:
            slider.value = 0.0

    for handle in (active, *sliders):
        handle.on_update(send)


class CheckpointTab:
    """The checkpoints of the run that is played.

    Args:
        server: where the tab goes.
        viewer: whose requests to make.
        tabs: beside which tabs.
        manager: where checkpoints come from.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        viewer: ViserPlayViewer,
        tabs: Any,
        manager: CheckpointManager,
    ) -> None:
        self._manager = manager
        gui = server.gui
        with tabs.add_tab("Checkpoints", icon=_DISK):
            self._text = gui.add_html("")
            self._choice = gui.add_dropdown("Checkpoint", (manager.current_name,))
            load = gui.add_button("Load")
            load.on_click(lambda _: _request(viewer, "checkpoint", self._choice.value))
            follow = gui.add_checkbox(
                "Follow the newest",
                manager.follow,
                hint="Load each new checkpoint as soon as training has written it.",
            )
            follow.on_update(lambda _: setattr(manager, "follow", bool(follow.value)))
        self.update(manager.fetch_available())

    def update(self, available: list[tuple[str, str]]) -> None:
        """Show which checkpoints there are and which is played."""
        names = tuple(name for name, _ in available) or (self._manager.current_name,)
        if self._choice.options != names:
            self._choice.options = names
        ages = dict(available)
        rows = [("Run", self._manager.run_name), ("Status", self._manager.run_status)]
        rows += [("Playing", self._manager.current_name)]
        rows += [("Written", ages.get(self._manager.current_name))]
        known = ((name, value) for name, value in rows if value)
        self._text.content = status_html(known, name_em=4.5)


def _checkbox(gui: Any, viewer: ViserPlayViewer, label: str, value: bool, *request: Any) -> None:
    box = gui.add_checkbox(label, value)
    box.on_update(lambda _: _request(viewer, *request, bool(box.value)))


def _request(viewer: ViserPlayViewer, *payload: Any) -> None:
    viewer.request_action("custom", payload)
