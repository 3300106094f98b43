"""Event terms shared by several tasks."""

from __future__ import annotations

from collections.abc import Mapping

from manyworlds.envs import mdp
from manyworlds.managers import EventTermCfg, SceneEntityCfg
from manyworlds.managers.manager_base import EventTerm


def reset_joints() -> EventTermCfg:
    """Reset all joints of the robot to their initial positions; offset ranges may be set."""
    return EventTermCfg(
        func=mdp.reset_joints_by_offset,
        mode="reset",
        params={
            "position_range": (0.0, 0.0),
            "velocity_range": (0.0, 0.0),
            "asset_cfg": SceneEntityCfg("robot", joint_names=(".*",)),
        },
    )


def at_startup(
    table: Mapping[str, tuple[EventTerm, dict[str, object]]],
) -> dict[str, EventTermCfg | None]:
    """Return startup events from a table: name -> function, parameters."""
    return {
        name: EventTermCfg(func=func, mode="startup", params=params)
        for name, (func, params) in table.items()
    }
