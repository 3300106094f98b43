"""Settings of a lab."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from manyworlds.lab.loop.physics_loop import Mode
from manyworlds.lab.moments.timeline_parts import TimelineCfg
from manyworlds.lab.recording.recorder import RecorderCfg
from manyworlds.lab.robots.control import PANEL


@dataclass(kw_only=True)
class LabCfg:
    """Settings of a lab at its start."""

    start_paused: bool = False
    """True to start paused."""
    mode: Mode | Literal["auto"] = "live"
    """`live` to advance by itself, `direct` to wait for calls of `step`; `auto` is `live`."""
    mode_lock: bool = False
    """True to refuse later changes of the mode."""
    speed: float = 1.0
    """Simulated seconds per second, 0.05 to 10, or infinity for as fast as possible."""
    options: dict[str, Any] = field(default_factory=dict)
    """Options of MuJoCo that override the model's, by their names in `mujoco.MjOption`."""
    start_owner: str = PANEL
    """Owner of each robot at the start, by name of the robot."""
    recorder: RecorderCfg = field(default_factory=RecorderCfg)
    """Settings of recordings."""
    timeline: TimelineCfg = field(default_factory=TimelineCfg)
    """Settings of the timeline."""
