"""Overlays of a world that the pages have, with their labels and keys."""

from __future__ import annotations

import mujoco

from manyworlds.viewer.browser.icon_row import Icon
from manyworlds.viewer.browser.keys import KEYS

_Flag = mujoco.mjtVisFlag
OVERLAYS = {
    "contact_points": "Contact points",
    "contact_forces": "Contact forces",
    "collision": "Robot collision geoms",
    "other_collision": "Other collision geoms",
    "convex_hulls": "Convex hulls",
    "joints": "Joints",
    "sites": "Sites",
    "tendons": "Tendons",
    "inertia": "Inertia boxes",
    "com": "Centers of mass",
    "actuators": "Actuators",
    "cameras": "Cameras",
    "lights": "Lights",
    "rangefinders": "Rangefinders",
}
"""Labels of the overlays, by name."""
FLAGS = {
    "inertia": _Flag.mjVIS_INERTIA,
    "com": _Flag.mjVIS_COM,
    "actuators": _Flag.mjVIS_ACTUATOR,
    "cameras": _Flag.mjVIS_CAMERA,
    "lights": _Flag.mjVIS_LIGHT,
    "rangefinders": _Flag.mjVIS_RANGEFINDER,
}
"""Flags of the overlays that MuJoCo's visualizer draws, by name."""
FRAMES = {
    "None": mujoco.mjtFrame.mjFRAME_NONE,
    "Bodies": mujoco.mjtFrame.mjFRAME_BODY,
    "Geoms": mujoco.mjtFrame.mjFRAME_GEOM,
    "Sites": mujoco.mjtFrame.mjFRAME_SITE,
}
"""Elements whose frames MuJoCo's visualizer draws, by label."""
OVERLAY_KEYS = {
    "contacts": ("contact_forces", "contact_points"),
    "collision": ("collision",),
    "joints": ("joints",),
    "other_collision": ("other_collision",),
    "tendons": ("tendons",),
    "inertia": ("inertia",),
    "com": ("com",),
}
"""Overlays that an action of `keys.KEYS` switches, by its name; all follow the first."""
_ICONS = {
    "contact_points": "focus-centered",
    "contact_forces": "arrow-up-circle",
    "collision": "robot",
    "other_collision": "wall",
    "convex_hulls": "hexagon",
    "joints": "3d-rotate",
    "sites": "map-pin",
    "tendons": "wave-sine",
    "inertia": "weight",
    "com": "crosshair",
    "actuators": "engine",
    "cameras": "camera",
    "lights": "bulb",
    "rangefinders": "ruler-measure",
}


def overlay_icons() -> dict[str, Icon]:
    """Return the looks of the overlays' switches, with the keys that switch them, by name."""
    keys = {name: KEYS[action].keys[0] for action, names in OVERLAY_KEYS.items() for name in names}
    return {name: Icon(_ICONS[name], label, keys.get(name, "")) for name, label in OVERLAYS.items()}


def frames_label(frame: int) -> str:
    """Return the label in `FRAMES` of a value of `mujoco.mjtFrame`; 'None' if it has none."""
    return next((label for label, kind in FRAMES.items() if kind == frame), "None")
