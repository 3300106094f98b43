"""Selection of what actuators drive, by its own names or by those of its actuators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from manyworlds.validation.names import match_ids, match_whole, near_matches

V = TypeVar("V")


@dataclass(frozen=True)
class DrivenTargets:
    """Joints, tendons or sites that actuators drive.

    A pattern must match a whole name of a target. If there is none, it is matched against the
    names of actuators, and selects their targets.
    """

    kind: str
    """Kind of the targets: joint, tendon or site."""
    names: tuple[str, ...]
    """Names of the targets, in model order."""
    actuators: tuple[tuple[str, str], ...]
    """Names of the actuators, which may be empty, and of their targets."""

    def of(self, names: Sequence[str]) -> DrivenTargets:
        """Return some of the targets, in the given order."""
        actuators = tuple(pair for pair in self.actuators if pair[1] in names)
        return replace(self, names=tuple(names), actuators=actuators)

    def select(self, patterns: str | Sequence[str], preserve_order: bool = False) -> list[str]:
        """Select targets by regular expressions, each of which must match something.

        Args:
            patterns: regular expressions.
            preserve_order: order by pattern instead of by model order.

        Raises:
            ValueError: a pattern matches nothing, or has two meanings; or two patterns match the
                same name.
        """
        # The target of each name, and the pattern that matched the name.
        targets = [*self.names, *(target for _, target in self.actuators)]
        selected: dict[int, str] = {}
        if isinstance(patterns, str):
            patterns = [patterns]
        for pattern in patterns:
            hits = self._match(pattern)
            if not hits:
                raise ValueError(self._unmatched(pattern))
            for i in hits:
                if i in selected:
                    raise ValueError(
                        f"{self.kind} '{targets[i]}' is matched by both '{selected[i]}' and "
                        f"'{pattern}': make the patterns exclude each other."
                    )
                selected[i] = pattern
        # Two actuators of one target, such as position and velocity, count once.
        found = dict.fromkeys(targets[i] for i in selected)
        if preserve_order:
            return list(found)
        return [name for name in self.names if name in found]

    def values(self, table: V | Mapping[str, V], default: V) -> tuple[V, ...]:
        """Return a value for each target: one for all, or from a table by pattern.

        The first match wins; targets without a match get the default.

        Raises:
            ValueError: a pattern other than '.*' matches nothing, or has two meanings.
        """
        if not isinstance(table, Mapping):
            return (table,) * len(self.names)
        targets = [*self.names, *(target for _, target in self.actuators)]
        found: dict[str, V] = {}
        for pattern, value in table.items():
            hits = self._match(pattern)
            if not hits and pattern != ".*":
                raise ValueError(self._unmatched(pattern))
            for i in hits:
                found.setdefault(targets[i], value)
        return tuple(found.get(name, default) for name in self.names)

    def _match(self, pattern: str) -> list[int]:
        """Return indices into the names of targets, followed by those of actuators."""
        labels = [name for name, _ in self.actuators]
        own = match_ids(pattern, self.names)
        if not own:
            return [len(self.names) + i for i in match_ids(pattern, labels)]
        # The end of an actuator's name does not contradict the whole name of a target.
        if match_whole(pattern, self.names):
            hits = match_whole(pattern, labels)
        else:
            hits = match_ids(pattern, labels)
        # An actuator without a name cannot be meant, and contradicts nothing.
        named = {target for name, target in self.actuators if name}
        as_target = [self.names[i] for i in own]
        driven = {target for name, target in (self.actuators[i] for i in hits) if name}
        if driven and driven != named.intersection(as_target):
            as_actuator = [name for name in self.names if name in driven]
            raise ValueError(
                f"'{pattern}' matches the {self.kind}s {as_target} by their own names, but "
                f"{as_actuator} by the names of their actuators: make it match the names of one "
                "kind only, or rename the actuators in spec_fn."
            )
        return own

    def _unmatched(self, pattern: str) -> str:
        actuators = [name for name, _ in self.actuators if name]
        near = near_matches(pattern, {*self.names, *actuators})
        return (
            f"'{pattern}' matches none of the {self.kind}s {list(self.names)} and none of the "
            f"actuators {actuators} that drive them.{near}"
        )
