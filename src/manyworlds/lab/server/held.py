"""Velocities that end by themselves, for keys and sticks that are held."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Annotated

import numpy as np

from manyworlds.lab.errors import VerbError
from manyworlds.lab.face import LabFace
from manyworlds.lab.server.loss import end_twist
from manyworlds.lab.server.operations import Request, operation
from manyworlds.lab.server.sessions import Session
from manyworlds.lab.verbs import VERBS
from manyworlds.lab.verbs.fields import Field, Number
from manyworlds.lab.verbs.registry import Reply

_LOG = logging.getLogger(__name__)

HOLD_S = 0.5
"""Time after which a held velocity ends [s]."""
_TWIST = VERBS["set_twist"].fields


class HeldTwists:
    """Velocities that robots have until a time, and the sessions that set them.

    Args:
        note: receives a sentence if a velocity cannot be ended.
    """

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._held: dict[str, tuple[Session, float]] = {}

    @property
    def robots(self) -> list[str]:
        """Names of the robots that have a held velocity; for any thread."""
        return list(self._held)

    def hold(self, robot: str, session: Session, until: float) -> None:
        """Note that a robot has a velocity until a time [s]."""
        self._held[robot] = session, until

    def forget(self, robot: str) -> None:
        """Note that a robot has no held velocity."""
        self._held.pop(robot, None)

    def expire(self, face: LabFace | None, now: float, driver: Session | None) -> None:
        """Stop robots whose time is over, or whose session does not drive any more."""
        for robot, (session, until) in list(self._held.items()):
            if now < until and session is driver:
                continue
            del self._held[robot]
            if face is None:
                continue
            try:
                end_twist(face, robot)
            except VerbError as error:
                self._note(f"the held velocity of '{robot}' could not be ended: {error}")
                _LOG.warning("The held velocity of '%s' could not be ended: %s", robot, error)


@operation(
    linear=_TWIST["linear"],
    angular=_TWIST["angular"],
    hold_s=Number(unit="s", text="time until it ends"),
)
def hold_twist(
    request: Request,
    articulation: Annotated[str, Field(text="robot")],
    linear: Annotated[np.ndarray, _TWIST["linear"]],
    angular: Annotated[np.ndarray, _TWIST["angular"]],
) -> Reply:
    """Set a velocity that ends 0.5 s later, and with the session; send it again to keep it."""
    server = request.server
    reply = request.verbs.set_twist(robot=articulation, linear=linear, angular=angular)
    if linear.any() or angular.any():
        server.held.hold(articulation, request.session, server.now + HOLD_S)
    else:
        server.held.forget(articulation)
    return {"linear": reply["linear"], "angular": reply["angular"], "hold_s": HOLD_S}
