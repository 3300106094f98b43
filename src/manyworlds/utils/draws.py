"""Names of the parts of a control step whose random numbers concern only some worlds.

A batch draws numbers for all worlds at once, from one stream. `draw_tapes` records and repeats the
row of one world of each draw. This module loads nothing, so that each term can import it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
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

TAPES: ContextVar[tuple[Tape, ...]] = ContextVar("tapes", default=())
"""Recorders and replays of the draws of this thread."""


def draws_of(name: str, worlds: EnvIds) -> contextlib.AbstractContextManager[object]:
    """Name the part of a step whose draws concern only some worlds.

    Code that runs for some of the worlds, and draws numbers for these or for all, runs within this
    context, so that the numbers of one world are known. It costs nothing while nobody records.

    Args:
        name: name of the part, such as that of the term.
        worlds: the worlds, in the order of the drawn rows.
    """
    tapes = TAPES.get()
    return _parts(tapes, name, worlds) if tapes else contextlib.nullcontext()


@contextlib.contextmanager
def _parts(tapes: Sequence[Tape], name: str, worlds: EnvIds) -> Iterator[None]:
    """Begin a part of the step on all tapes."""
    with contextlib.ExitStack() as stack:
        for tape in tapes:
            stack.enter_context(tape.part(name, worlds))
        yield
