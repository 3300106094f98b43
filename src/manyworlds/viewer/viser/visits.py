"""Visits: one world of the play page, opened on the same page by another program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from manyworlds.utils.seeding import RngState

if TYPE_CHECKING:
    import viser

    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.viewer.base import PolicyProtocol
    from manyworlds.viewer.browser.world_grid import GroupKind
    from manyworlds.viewer.viser.overlays import SelectedWorldOverlays


@dataclass(frozen=True)
class VisitedWorld:
    """A world of a batch, and the policy that acts in it."""

    env: ManagerBasedRlEnv
    """The batch, without wrappers; it does not step during the visit."""
    env_id: int
    policy: PolicyProtocol
    """Policy of the batch."""
    commands: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Commands that a user holds in this world, by name of the term."""
    speed: float = 1.0
    """Simulated seconds per second."""
    paused: bool = False
    overlays: frozenset[str] = frozenset()
    """Names of the overlays that are on; see `viewer.browser.overlays.table.OVERLAYS`."""
    frames: int = 0
    """Elements whose frames are drawn (`mujoco.mjtFrame`)."""


class Visit(Protocol):
    """An opened world."""

    def show(self, server: viser.ViserServer, leave: Callable[[], None]) -> None:
        """Serve the world's page, and let it run.

        Args:
            server: server of the page, which is empty.
            leave: call it, from any thread, when a user wants to return to the batch.
        """
        ...

    def close(self) -> None:
        """Stop the world, and clear the page."""
        ...


WalkIn = Callable[[VisitedWorld], Visit]
"""Opens a world without changing the batch; `manyworlds.lab.page.walk_in` opens it in a lab."""


@dataclass(frozen=True)
class OpenVisit:
    """A visit, and the state in which the batch and its page go on afterwards."""

    visit: Visit
    was_paused: bool
    rng: RngState
    """State of the random generators, from which the visited world draws, too."""
    overlays: SelectedWorldOverlays
    """Overlays of the page before the visit, which are removed from it."""
    debug: bool
    """True if debug shapes were drawn."""
    groups: dict[GroupKind, list[bool]]
    """Groups of geoms and sites that were drawn."""
