"""Events that several tasks have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from manyworlds.envs import mdp
from manyworlds.managers import EventTermCfg, SceneEntityCfg


def reset_joints() -> EventTermCfg:
    """Put all joints of the robot where they are initially, at every reset; ranges may be set."""
    return EventTermCfg(
        func=mdp.reset_joints_by_offset,
        mode="reset",
        params={
            "position_range": (0.0, 0.0),
            "velocity_range": (0.0, 0.0),
            "asset_cfg": SceneEntityCfg("robot", joint_names=(".*",)),
        },
    )


def at_startup(table: Mapping[str, tuple[Any, dict[str, Any]]]) -> dict[str, EventTermCfg | None]:
    """Make events that happen once, before the first episode: name -> function, parameters."""
    return {
        name: EventTermCfg(func=func, mode="startup", params=params)
        for name, (func, params) in table.items()
    }
