"""Report of a control step of the environment that drives a world."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StepReport:
    """Results of the last control step."""

    step: int
    """Number of control steps since the episode began."""
    rewards: dict[str, float]
    """Weighted reward terms, not scaled by the control period."""
    total: float
    """Reward of the step."""
    ended_by: tuple[str, ...]
    """Names of the termination terms that were true."""
    episodes: int
    """Number of episodes that ended since the lab was opened."""
    last_end: str
    """Termination terms of the last episode's end, as text; empty before the first."""
    metrics: dict[str, float]
    """Metric terms."""
    commands: dict[str, tuple[float, ...]]
    """Values of the command terms."""
