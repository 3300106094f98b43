"""Gallery: small worlds of the package, with what to do in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import mujoco

from manyworlds.asset_zoo import worlds
from manyworlds.lab.errors import near
from manyworlds.lab.world.world import World, world_from_spec

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab


@dataclass(frozen=True)
class GalleryWorld:
    """One world of the gallery."""

    text: str
    """Contents of the world, and ways to play with them."""
    build: Callable[[], mujoco.MjSpec]
    """Returns its spec, with its initial state as a keyframe."""
    robot: str = ""
    """Name of its robot, whose elements have this name and a slash as prefix; empty for none."""
    prepare: Callable[[LiveLab], None] = lambda lab: None
    """Sets up inputs and launches of its lab."""
    film: tuple[float, float, float] = (3.0, 130.0, -20.0)
    """Camera of its film: distance [m], azimuth and elevation [degrees]."""
    policy: Path | None = None
    """Policy that controls the robot."""

    def world(self) -> World:
        """Build the world."""
        robots = {self.robot: f"{self.robot}/"} if self.robot else None
        return world_from_spec(self.build(), robots=robots)


def _steer_arm(lab: LiveLab) -> None:
    keys = (("KeyL", "KeyJ"), ("KeyI", "KeyK"), ("KeyU", "KeyO"))
    for joint, (up, down) in enumerate(keys, 1):
        lab.bindings.bind(up, f"joint{joint}", 0.8, "accumulate", "arm")
        lab.bindings.bind(down, f"joint{joint}", -0.8, "accumulate", "arm")
    lab.bindings.bind("KeyG", "left_finger", -0.0375, "toggle", "arm")


def _aim_at_humanoid(lab: LiveLab) -> None:
    for body in ("ball", "crate"):
        lab.launcher.aim(body, "humanoid/torso_link", path="ballistic", reset=True)


def _aim_at_cloth(lab: LiveLab) -> None:
    lab.launcher.aim("ball", (0.0, 0.0, 0.7), path="ballistic", reset=True)


def _crouch(lab: LiveLab) -> None:
    for leg in ("FL", "FR", "RL", "RR"):
        lab.bindings.bind("KeyC", f"{leg}_thigh_joint", 0.35, "hold", "quadruped")
        lab.bindings.bind("KeyC", f"{leg}_calf_joint", -0.6, "hold", "quadruped")


_WALK = Path(worlds.__file__).parent / "policies" / "quadruped.onnx"
"""Policy of `manyworlds train Velocity-Flat-Quadruped` after 333 iterations."""


GALLERY: dict[str, GalleryWorld] = {
    "quadruped-to-drive": GalleryWorld(
        "a quadruped that walks; drive it with W A S D, turn it with Q E, and push the crates",
        worlds.quadruped_to_drive,
        "quadruped",
        policy=_WALK,
        film=(3.6, 140.0, -25.0),
    ),
    "arm-and-blocks": GalleryWorld(
        "an arm with a gripper, and blocks; drive it with J L, I K, U O and G",
        worlds.arm_and_blocks,
        "arm",
        _steer_arm,
        (1.6, 140.0, -25.0),
    ),
    "quadruped-on-hills": GalleryWorld(
        "a quadruped on a height field; it crouches while C is held",
        worlds.quadruped_on_hills,
        "quadruped",
        _crouch,
        (3.2, 130.0, -25.0),
    ),
    "humanoid-and-launcher": GalleryWorld(
        "a humanoid, and a ball and a crate that L throws at it",
        worlds.humanoid_and_launcher,
        "humanoid",
        _aim_at_humanoid,
        (4.2, 60.0, -12.0),
    ),
    "bowl-and-ball": GalleryWorld(
        "a bowl of flat pieces, and balls that roll in it",
        worlds.bowl_and_ball,
        film=(1.9, 130.0, -35.0),
    ),
    "cloth-on-a-pole": GalleryWorld(
        "a cloth that hangs from a pole, and a ball that L throws at it",
        worlds.cloth_on_a_pole,
        prepare=_aim_at_cloth,
        film=(2.9, 125.0, -15.0),
    ),
    "swinging-bridge": GalleryWorld(
        "a bridge of planks between two towers, and crates that fall on it",
        worlds.swinging_bridge,
        film=(4.2, 115.0, -15.0),
    ),
}
"""All worlds of the gallery, by name."""


def open_gallery(name: str, lab_of: Callable[[World], LiveLab]) -> LiveLab:
    """Open a world of the gallery as a lab.

    Args:
        name: name of the world.
        lab_of: makes the lab of a world, such as `LiveLab`.

    Raises:
        KeyError: there is no such world.
    """
    if name not in GALLERY:
        hint = near(name, GALLERY, f": choose one of {', '.join(GALLERY)}.")
        raise KeyError(f"The gallery has no world '{name}'{hint}")
    shown = GALLERY[name]
    lab = lab_of(shown.world())
    try:
        if shown.policy is not None:
            lab.run_policy(shown.policy, shown.robot)
        shown.prepare(lab)
    except Exception:
        lab.stop()
        raise
    return lab
