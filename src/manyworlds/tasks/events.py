"""Event terms shared by several tasks."""

from __future__ import annotations

from collections.abc import Mapping

from manyworlds.envs import mdp
from manyworlds.managers import EventTermCfg, SceneEntityCfg
from manyworlds.managers.manager_base import EventTerm


def reset_joints(
    asset_cfg: SceneEntityCfg | None = None, position: float = 0.0, velocity: float = 0.0
) -> EventTermCfg:
    """Return an event that resets joints to their defaults plus uniform noise.

    Args:
        asset_cfg: the joints; None for all joints of the robot.
        position: largest offset [rad or m].
        velocity: largest velocity offset [rad/s or m/s].
    """
    return EventTermCfg(
        func=mdp.reset_joints_by_offset,
        mode="reset",
        params={
            "position_range": (0.0 - position, position),  # not -0.0
            "velocity_range": (0.0 - velocity, velocity),
            "asset_cfg": asset_cfg or SceneEntityCfg("robot", joint_names=(".*",)),
        },
    )


def at_startup(
    table: Mapping[str, tuple[EventTerm, dict[str, object]]],
) -> dict[str, EventTermCfg]:
    """Return startup events from a table: name -> function, parameters."""
    return {
        name: EventTermCfg(func=func, mode="startup", params=params)
        for name, (func, params) in table.items()
    }
