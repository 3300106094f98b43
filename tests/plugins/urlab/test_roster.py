"""Roster of a world that other threads replace."""

from __future__ import annotations

import mujoco
import pytest

from manyworlds.lab import LabCfg, LiveLab, world_from_spec
from manyworlds.lab.verb_methods import LabVerbs
from manyworlds.lab.verbs import VerbError
from manyworlds.plugins.urlab.roster import RosterCache
from tests.lab.server.conftest import two_robots

EMPTY = '<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/></worldbody></mujoco>'


class SharedFace:
    """Face of a lab whose other threads turn to another lab after `describe_world`."""

    def __init__(self, labs: list[LiveLab]) -> None:
        self.labs = labs

    def __getattr__(self, name: str) -> object:
        return getattr(self.labs[0], name)

    @property
    def verbs(self) -> LabVerbs:
        """Verbs of the present lab, each of which turns to the next one."""
        return LabVerbs(self.call)

    def call(self, verb: str, **fields: object) -> dict[str, object]:
        """Carry out a verb in the present lab, and turn to the next one."""
        reply = self.labs[0].call(verb, **fields)
        if len(self.labs) > 1:
            self.labs.pop(0)
        return reply


@pytest.mark.parametrize("order", ["robots first", "robots last"])
def test_a_roster_is_of_one_world(order, lab):
    """Find the members again if another thread takes a rebuilt world meanwhile."""
    with LiveLab(world_from_spec(mujoco.MjSpec.from_string(EMPTY)), LabCfg(mode="direct")) as empty:
        labs = [lab, empty] if order == "robots first" else [empty, lab]
        last = labs[-1]
        roster = RosterCache().get(SharedFace(labs))  # type: ignore[arg-type]
        assert roster.model is last.model
        assert set(roster.members) == set(last.robots) | ({"box"} if last is lab else set())


def test_a_world_that_never_stays(lab):
    """Refuse a face whose world is another one after each question."""
    with LiveLab(two_robots(), LabCfg(mode="direct")) as other:
        face = SharedFace([lab, other] * 40)
        with pytest.raises(VerbError, match="changes all the time"):
            RosterCache().get(face)  # type: ignore[arg-type]
