"""Conversions of meshes to props of a live world."""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from manyworlds.lab.scene.items import check_name
from manyworlds.utils.extras import MissingExtraError
from manyworlds.validation.names import free_name

if TYPE_CHECKING:
    from manyworlds.entity import EntityCfg
    from manyworlds.lab.lab import LiveLab

ConversionState = Literal["running", "done", "failed", "cancelled"]
_CLOSE_S = 5.0
_LOG = logging.getLogger(__name__)
_EXPECTED = (ValueError, OSError, RuntimeError, MissingExtraError)
"""Errors of meshes, files and settings; others are defects of this program."""


class CancelledError(RuntimeError):
    """A conversion was cancelled."""


class Conversion:
    """Addition of an entity to a world; its mesh is decomposed in a thread of its own.

    Args:
        number: number of the conversion.
        name: name of the entity.
        add: adds the entity; it calls the function that it gets with the share that is done.
    """

    def __init__(
        self, number: int, name: str, add: Callable[[Callable[[float], None]], int]
    ) -> None:
        self.number = number
        self.name = name
        self.state: ConversionState = "running"
        """State of the conversion."""
        self.share = 0.0
        """Estimated share that is done, from 0 to 1."""
        self.pieces = 0
        """Number of convex pieces; 0 if the convex hull, or a primitive, collides."""
        self.text = ""
        """Sentences about the result, or the reason of a failure."""
        self.error: Exception | None = None
        """Error of a failure."""
        self._add = add
        self._cancelled = threading.Event()
        self._thread = threading.Thread(target=self._run, name="manyworlds-convert", daemon=True)
        self._thread.start()

    def cancel(self) -> None:
        """End the conversion, unless it has ended; the world stays as it is."""
        self._cancelled.set()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the conversion has ended, at most for some time [s]."""
        self._thread.join(timeout)

    def _report(self, share: float) -> None:
        self.share = share
        if self._cancelled.is_set():
            raise CancelledError(f"The conversion of '{self.name}' was cancelled.")

    def _run(self) -> None:
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                self.pieces = self._add(self._report)
            self.text = " ".join(dict.fromkeys(str(warning.message) for warning in caught))
            self.share = 1.0
            self.state = "done"
        except CancelledError as error:
            self.text = str(error)
            self.state = "cancelled"
        except _EXPECTED as error:  # who reads the conversion shows it
            self._fail(str(error), error)
        except Exception as error:
            _LOG.exception("The conversion of '%s' failed.", self.name)
            self._fail(f"{type(error).__name__}: {error}", error)

    def _fail(self, text: str, error: Exception) -> None:
        self.text = text
        self.error = error
        self.state = "failed"


class Conversions:
    """Conversions of a lab, by number.

    Args:
        lab: the lab whose world gets the props.
    """

    def __init__(self, lab: LiveLab) -> None:
        self._lab = lab
        self._lock = threading.Lock()
        self._all: dict[int, Conversion] = {}

    def start(
        self,
        cfg: EntityCfg,
        name: str,
        pos: Sequence[float] | None = None,
        quat: Sequence[float] = (1.0, 0.0, 0.0, 0.0),
        near: Sequence[float] = (0.0, 0.0),
        cleanup: Callable[[], object] = lambda: None,
    ) -> Conversion:
        """Start to add an entity, whose mesh is decomposed first, if it has one.

        Args:
            cfg: the entity.
            name: its name, `prop` if empty; a number is added if it is taken.
            pos: its position [m]; None for a free place on the ground.
            quat: its orientation (wxyz).
            near: place along x and y [m] at which, or beside which, a free one is chosen.
            cleanup: called at the end.

        Raises:
            ValueError: the name is not valid.
        """
        name = check_name(name or "prop")
        with self._lock:
            running = {c.name for c in self._all.values() if c.state == "running"}
            name = free_name(name, running | {*self._lab.scene.items, *self._lab.robots})

            def add(report: Callable[[float], None]) -> int:
                from manyworlds.entity.props import MeshProp

                try:
                    spec_fn = cfg.spec_fn
                    pieces = 0
                    if isinstance(spec_fn, MeshProp):
                        pieces = spec_fn.prepare(report)
                    report(1.0)
                    self._lab.scene.add(cfg, name, pos, quat, near=near)
                    return pieces
                finally:
                    cleanup()

            return self._begin(name, add)

    def run(self, name: str, work: Callable[[Callable[[float], None]], int]) -> Conversion:
        """Start another work on meshes of the world.

        Args:
            name: name of what it is done to.
            work: does it; see `Conversion`.
        """
        with self._lock:
            return self._begin(name, work)

    def _begin(self, name: str, work: Callable[[Callable[[float], None]], int]) -> Conversion:
        conversion = Conversion(len(self._all), name, work)
        self._all[conversion.number] = conversion
        return conversion

    def __getitem__(self, number: int) -> Conversion:
        """Return a conversion by its number.

        Raises:
            KeyError: there is none of this number.
        """
        if number not in self._all:
            raise KeyError(f"There is no conversion {number}; there were {len(self._all)}.")
        return self._all[number]

    def close(self) -> None:
        """Cancel all conversions that run, and wait for their ends."""
        for conversion in list(self._all.values()):
            conversion.cancel()
        for conversion in list(self._all.values()):
            conversion.wait(_CLOSE_S)
