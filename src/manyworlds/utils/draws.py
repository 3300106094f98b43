"""Names of the parts of a control step whose random numbers concern only some worlds.

A batch draws numbers for all worlds at once, from one stream. `draw_tapes` records and repeats the
row of one world of each draw. This module loads nothing, so that each term can import it.
"""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from typing import TYPE_CHECKING

from manyworlds.validation.worlds import EnvIds

if TYPE_CHECKING:
    from manyworlds.utils.draw_tapes import Tape

COUPLED = "coupled"
"""Part of a step whose results also depend on other worlds, such as the start of an episode that a
curriculum chooses. Its draws are not recorded; the state after the step is stored instead."""
COMMAND = "command"
"""Part of a step that resamples commands."""

TAPE: ContextVar[Tape | None] = ContextVar("tape", default=None)
"""Recorder or replay of the draws of this thread, if any."""


def draws_of(name: str, worlds: EnvIds) -> contextlib.AbstractContextManager[object]:
    """Name the part of a step whose draws concern only some worlds.

    Code that runs for some of the worlds, and draws numbers for these or for all, runs within this
    context, so that the numbers of one world are known. It costs nothing while nobody records.

    Args:
        name: name of the part, such as that of the term.
        worlds: the worlds, in the order of the drawn rows.
    """
    tape = TAPE.get()
    return contextlib.nullcontext() if tape is None else tape.part(name, worlds)
