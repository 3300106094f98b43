"""Typed fields of verbs: their checks, and their descriptions for forms and protocols."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from manyworlds.lab.errors import VerbError, near

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab


PlainMap = Mapping[str, Any]
"""Plain values by name, as JSON and msgpack have them."""
PlainDict = dict[str, Any]
"""The same, to be changed."""


@dataclass(frozen=True, kw_only=True)
class Field:
    """Field of a verb or of its reply: any text by default."""

    type: ClassVar[str] = "string"
    text: str = ""
    """Meaning, as a noun phrase."""
    unit: str = ""

    def check(self, value: object, lab: LiveLab) -> object:
        """Return the value in the field's type.

        Raises:
            VerbError: it is of another type or out of its bounds; the message continues `FIELD `.
        """
        if isinstance(value, str):
            return value
        raise bad("text", value)

    def describe(self) -> dict[str, object]:
        """Return type, meaning, unit and bounds as plain data."""
        known = {"type": self.type, "text": self.text, "unit": self.unit}
        return {key: value for key, value in known.items() if value}


@dataclass(frozen=True, kw_only=True)
class Anything(Field):
    """Value of any type."""

    type: ClassVar[str] = "any"

    def check(self, value: object, lab: LiveLab) -> object:
        """Return the value."""
        return value


@dataclass(frozen=True, kw_only=True)
class Flag(Field):
    """True or false."""

    type: ClassVar[str] = "bool"

    def check(self, value: object, lab: LiveLab) -> bool:
        """Return the value as a bool."""
        if isinstance(value, bool | np.bool_):
            return bool(value)
        raise bad("true or false", value)


@dataclass(frozen=True, kw_only=True)
class Number(Field):
    """Finite number within bounds."""

    type: ClassVar[str] = "float"
    low: float = -math.inf
    high: float = math.inf
    infinite: bool = False
    """True to accept infinity."""

    def check(self, value: object, lab: LiveLab) -> float:
        """Return the value as a float."""
        if isinstance(value, numbers.Real) and not isinstance(value, bool):
            number = float(value)
            inside = math.isfinite(number) and self.low <= number <= self.high
            if inside or (self.infinite and number == math.inf):
                return number
        raise bad(self._bounds("a number"), value)

    def _bounds(self, what: str) -> str:
        text = what
        if not math.isinf(self.high):
            text += f" from {self.low:g} to {self.high:g}"
        elif not math.isinf(self.low):
            text += f" of at least {self.low:g}"
        if self.unit:
            text += f" [{self.unit}]"
        if self.infinite:
            text += ", or inf"
        return text

    def describe(self) -> dict[str, object]:
        """Return type, meaning, unit and bounds as plain data."""
        bounds = {"low": self.low, "high": self.high}
        described = super().describe()
        described |= {key: value for key, value in bounds.items() if math.isfinite(value)}
        if self.infinite:
            described["infinite"] = True
        return described


@dataclass(frozen=True, kw_only=True)
class Integer(Number):
    """Whole number within bounds; programs that only know floats may send 3.0."""

    type: ClassVar[str] = "int"

    def check(self, value: object, lab: LiveLab) -> int:
        """Return the value as an int."""
        try:
            number = super().check(value, lab)
        except VerbError:
            number = 0.5
        if number.is_integer():
            return int(number)
        raise bad(self._bounds("a whole number"), value)


@dataclass(frozen=True, kw_only=True)
class Choice(Field):
    """One of several words."""

    options: tuple[str, ...]

    def check(self, value: object, lab: LiveLab) -> str:
        """Return the value."""
        if isinstance(value, str) and value in self.options:
            return value
        raise bad(f"one of {', '.join(self.options)}", value, near(value, self.options))

    def describe(self) -> dict[str, object]:
        """Return type, meaning and options as plain data."""
        return super().describe() | {"options": list(self.options)}


@dataclass(frozen=True, kw_only=True)
class Name(Field):
    """Name of something that the lab has at present."""

    of: str
    """Kind of the named things: a key of `NAMES`."""

    def check(self, value: object, lab: LiveLab) -> str:
        """Return the value."""
        known = list(NAMES[self.of](lab))
        if isinstance(value, str) and value in known:
            return value
        if self.of == "robot":
            check_actuators(value, lab)
        what = f"the name of a {self.of} ({', '.join(known) or 'there is none'})"
        raise bad(what, value, near(value, known), code=f"unknown_{self.of}")

    def describe(self) -> dict[str, object]:
        """Return type, meaning and the kind of the named things as plain data."""
        return super().describe() | {"name_of": self.of}


NAMES: dict[str, Callable[[LiveLab], Iterable[str]]] = {
    "robot": lambda lab: (robot.name for robot in lab.controls),
    "entity": lambda lab: lab.world.robots,
    "state": lambda lab: lab.states.names,
    "camera": lambda lab: lab.cameras,
}
"""Present names by kind of thing: robots with actuators, all robots, saved states, cameras."""


def check_actuators(robot: object, lab: LiveLab) -> None:
    """Refuse the name of a robot that is there, but has no actuators.

    Raises:
        VerbError: it is such a name.
    """
    if not isinstance(robot, str) or robot in [*NAMES["robot"](lab)]:
        return
    if robot in lab.world.robots:
        raise VerbError(
            "unknown_robot",
            f"must be a robot with actuators, and '{robot}' has none: push its bodies (push_body), "
            "or add actuators to its model.",
        )


@dataclass(frozen=True, kw_only=True)
class Body(Field):
    """Body by its name, or by its id in MuJoCo; checked values are ids."""

    type: ClassVar[str] = "string or int"
    mocap: bool = False
    """True to accept mocap bodies only."""

    def check(self, value: object, lab: LiveLab) -> int:
        """Return the id of the body."""
        model = lab.world.model
        names = [model.body(i).name for i in range(model.nbody)]
        found = -1
        if isinstance(value, str) and value in names and value:
            found = names.index(value)
        elif isinstance(value, numbers.Real) and not isinstance(value, bool):
            number = float(value)
            if number.is_integer() and 0 < number < model.nbody:
                found = int(number)
        if found <= 0:
            what = f"the name of a body, or an id from 1 to {model.nbody - 1}"
            raise bad(what, value, near(value, names), code="unknown_body")
        if self.mocap and model.body_mocapid[found] < 0:
            known = [name for i, name in enumerate(names) if model.body_mocapid[i] >= 0]
            what = f"a mocap body ({', '.join(known) or 'there is none'})"
            raise bad(what, value, code="not_mocap_body")
        return found


@dataclass(frozen=True, kw_only=True)
class Numbers(Field):
    """Several finite numbers: a vector, or a quaternion (w, x, y, z) if `unit` is `wxyz`."""

    type: ClassVar[str] = "float[]"
    size: int = 0
    """Number of values; 0 for any."""

    def check(self, value: object, lab: LiveLab) -> np.ndarray:
        """Return the value as an array, shape [n]."""
        try:
            array = np.array(value, float)
        except (TypeError, ValueError):
            array = np.array(math.nan)
        many = array.ndim == 1 and array.size == (self.size or array.size)
        still = self.unit == "wxyz" and not array.any()
        if many and np.isfinite(array).all() and not still:
            return array
        what = "finite numbers"
        if self.size:
            what = f"{self.size} {what}"
        if self.unit:
            what += f" [{self.unit}]"
        if still:
            what += ", not all 0"
        raise bad(what, value)

    def describe(self) -> dict[str, object]:
        """Return type, meaning, unit and size as plain data."""
        described = super().describe()
        if self.size:
            described["size"] = self.size
        return described


@dataclass(frozen=True, kw_only=True)
class NumberMap(Field):
    """Finite numbers by name."""

    type: ClassVar[str] = "map of float"

    def check(self, value: object, lab: LiveLab) -> dict[str, float]:
        """Return the value as a dict of floats."""
        if not isinstance(value, Mapping):
            raise bad("a map of numbers by name", value)
        for name, number in value.items():
            real = isinstance(number, numbers.Real) and not isinstance(number, bool)
            if not isinstance(name, str) or not real or not math.isfinite(float(number)):
                raise bad(f"finite at {name!r}", number)
        return {name: float(number) for name, number in value.items()}


@dataclass(frozen=True, kw_only=True)
class Values(Field):
    """Values of any type by name, which the verb checks itself."""

    type: ClassVar[str] = "map"

    def check(self, value: object, lab: LiveLab) -> dict[str, object]:
        """Return the value as a dict."""
        if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
            return dict(value)
        raise bad("a map of values by name", value)


@dataclass(frozen=True, kw_only=True)
class Texts(Field):
    """List of texts."""

    type: ClassVar[str] = "string[]"

    def check(self, value: object, lab: LiveLab) -> list[str]:
        """Return the value as a list."""
        if isinstance(value, Sequence) and all(isinstance(item, str) for item in value):
            return list(value)
        raise bad("a list of texts", value)


@dataclass(frozen=True, kw_only=True)
class Listing(Field):
    """List of maps."""

    type: ClassVar[str] = "map[]"

    def check(self, value: object, lab: LiveLab) -> list[Mapping[str, object]]:
        """Return the value as a list."""
        if isinstance(value, Sequence) and all(isinstance(item, Mapping) for item in value):
            return list(value)
        raise bad("a list of maps", value)


@dataclass(frozen=True, kw_only=True)
class Content(Field):
    """Content of a file."""

    type: ClassVar[str] = "bytes"

    def check(self, value: object, lab: LiveLab) -> bytes:
        """Return the value as bytes."""
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value)
        raise bad("bytes", value)


@dataclass(frozen=True, kw_only=True)
class FilePath(Field):
    """Path of a file on the machine of the lab.

    Programs in the lab's own process may name any file. A protocol that serves callers from outside
    must resolve such a path inside of one folder, and refuse those that leave it.
    """

    type: ClassVar[str] = "path"

    def check(self, value: object, lab: LiveLab) -> Path:
        """Return the value as a path."""
        if isinstance(value, str | Path) and str(value):
            return Path(value)
        raise bad("the path of a file", value)


ENDED = Field(text="session of the replay that this ended; empty for none")
"""Field `ended_replay` of replies."""


def bad(what: str, value: object, hint: str = ".", code: str = "bad_value") -> VerbError:
    """Return the error of a value that is not as declared."""
    got = repr(value)
    if len(got) > 80:
        got = f"{got[:77]}..."
    return VerbError(code, f"must be {what}, got {got}{hint}")
