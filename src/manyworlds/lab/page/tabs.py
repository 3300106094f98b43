"""Tabs of a page: their parts, as classes, or by name, for the page's program to import."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyworlds.lab.page.page_context import PageContext, Part

PartMaker = Callable[["PageContext"], "Part"]
Tabs = Mapping[str, Sequence["PartMaker | str"]]
"""Parts of each tab, by its title: classes, or their names `module:Class`."""
TABS: dict[str, tuple[PartMaker | str, ...]] = {
    "Robot": (
        "manyworlds.lab.page.training_differences:DifferencesPart",
        "manyworlds.lab.page.robot_sliders:RobotPart",
        "manyworlds.lab.page.pose_sequences:SequencePart",
        "manyworlds.lab.page.launcher_part:AppliedPart",
    ),
    "Play": (
        "manyworlds.lab.page.drive_controls:DriveControls",
        "manyworlds.lab.page.launcher_part:LauncherPart",
        "manyworlds.lab.page.launcher_part:ContactPart",
    ),
    "Plots": (
        "manyworlds.lab.page.plots:PlotPart",
        "manyworlds.lab.page.readouts:ReadoutPart",
    ),
    "View": (
        "manyworlds.lab.page.camera_controls:CameraPart",
        "manyworlds.lab.page.overlay_controls:OverlayPart",
        "manyworlds.lab.page.mocap_handles:MocapPart",
    ),
    "Cameras": (
        "manyworlds.lab.page.camera_images:CameraImagePart",
        "manyworlds.lab.page.film_controls:FilmPart",
    ),
    "Scene": (
        "manyworlds.lab.page.scene_editor:ScenePart",
        "manyworlds.lab.page.building:BuildPart",
        "manyworlds.lab.page.scene_lights:SceneLightsPart",
        "manyworlds.lab.page.props:PropPart",
        "manyworlds.lab.page.props:HeightFieldPart",
        "manyworlds.lab.page.user_shapes:UserShapesPart",
    ),
    "World": (
        "manyworlds.lab.page.world_card:WorldCardPart",
        "manyworlds.lab.page.body_tree:TreePart",
        "manyworlds.lab.page.inspector:InspectorPart",
        "manyworlds.lab.page.pose_gizmo:GizmoPart",
        "manyworlds.lab.page.joint_poses:JointPosePart",
        "manyworlds.lab.page.physics_options:OptionsPart",
    ),
    "States": (
        "manyworlds.lab.page.keyframes:KeyframePart",
        "manyworlds.lab.page.saved_states:SavedStatePart",
    ),
    "Record": ("manyworlds.lab.page.record_and_replay:RecordPart",),
}
"""Parts of each tab of the lab's page, by its title."""


def name_parts(tabs: Tabs) -> dict[str, list[str]]:
    """Return the names `module:Class` of the parts of each tab.

    Raises:
        ValueError: another process cannot import a part.
    """
    return {title: [_name(part, title) for part in parts] for title, parts in tabs.items()}


def find_parts(parts: Iterable[PartMaker | str]) -> tuple[PartMaker, ...]:
    """Import the parts that are given by their names.

    Raises:
        ValueError: there is no such module, or no such class in it.
    """
    return tuple(_find(part) if isinstance(part, str) else part for part in parts)


def _name(part: PartMaker | str, title: str) -> str:
    if isinstance(part, str):
        return part
    module = getattr(part, "__module__", "")
    name = getattr(part, "__qualname__", repr(part))
    if module == "__main__" or not module or not name.replace(".", "_").isidentifier():
        why = "it has no name in a module"
        if module == "__main__":
            why = "it is in the program itself"
        raise ValueError(
            f"The page runs in a process of its own, which cannot import the part '{name}' of the "
            f"tab '{title}': {why}. Put the class into a module that can be imported, or use "
            "PageServer."
        )
    return f"{module}:{name}"


def _find(name: str) -> PartMaker:
    module, _, path = name.partition(":")
    try:
        found = importlib.import_module(module)
        for each in path.split("."):
            found = getattr(found, each)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"The page cannot import its part '{name}': {error}. Name it as 'module:Class'."
        ) from error
    return found  # type: ignore[return-value]  # a class
