"""Values of a model over time: what was edited, from what, to what."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import mujoco
import numpy as np

from manyworlds.lab.world.model_facts import APPEARANCE
from manyworlds.lab.world.model_values import STATISTICS
from manyworlds.lab.world.options import read_options

_OPTION = "opt."
_STATISTIC = "stat."
_VOLUMES = ("bvh_aabb", "bvh_child", "bvh_depth", "bvh_nodeid")
Values = dict[str, np.ndarray]


@dataclass(frozen=True)
class ModelChange:
    """Values that changed between two frames."""

    frame: int
    """Number of the first frame after the change."""
    before: Values
    """Values of before, by field; those of options begin with `opt.`, statistics with `stat.`."""
    after: Values
    inside: bool
    """True if the step itself changed them, as an environment that randomizes does."""


class ModelLog:
    """Changes of a model's values, which can be taken back and redone.

    Meshes, textures and skins, which are most of a model and are never edited, are left out, with
    the bounding volumes of meshes.

    Args:
        model: the model.
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        self._model = model
        self.changes: deque[ModelChange] = deque()
        """All changes, by frame."""
        self._made = 0  # number of them that the model has now
        names = (name for name in dir(model) if not name.startswith(APPEARANCE))
        arrays = {name: getattr(model, name) for name in names}
        self._arrays = {n: a for n, a in arrays.items() if isinstance(a, np.ndarray) and a.size}
        of_bodies = int(model.body_bvhnum.sum())  # those of meshes follow
        for name in _VOLUMES:
            self._arrays[name] = getattr(model, name)[:of_bodies]
        self._known = {name: np.copy(value) for name, value in self._now().items()}

    @property
    def num_bytes(self) -> int:
        """Memory of the changes."""
        count = 0
        for change in self.changes:
            count += sum(value.nbytes for value in change.before.values())
            count += sum(value.nbytes for value in change.after.values())
        return count

    def note(self, frame: int, inside: bool) -> tuple[str, ...]:
        """Keep what changed since the last call.

        Args:
            frame: number of the first frame after the change.
            inside: see `ModelChange.inside`.

        Returns:
            Names of the fields that changed.
        """
        now = self._now()
        fields = tuple(
            name for name, known in self._known.items() if now[name].tobytes() != known.tobytes()
        )
        if fields:
            before = {name: self._known[name] for name in fields}
            after = {name: np.copy(now[name]) for name in fields}
            self._known |= after
            self.changes.append(ModelChange(frame, before, after, inside))
            self._made = len(self.changes)
        return fields

    def go(self, frame: int, *, inside: bool = True) -> bool:
        """Give the model the values of a frame; return True if that changes some.

        Args:
            frame: number of the frame.
            inside: False to leave out changes that the steps themselves make, on the way forward.
        """
        moved = False
        while self._made and self.changes[self._made - 1].frame > frame:
            self._made -= 1
            self._write(self.changes[self._made].before)
            moved = True
        while self._made < len(self.changes) and self.changes[self._made].frame <= frame:
            change = self.changes[self._made]
            if inside or not change.inside:
                self._write(change.after)
            else:
                self._known |= change.after
            self._made += 1
            moved = True
        return moved

    def take_back(self) -> Values:
        """Take back the changes that were not kept by `note`, and return their values."""
        now = self._now()
        known = {n: v for n, v in self._known.items() if now[n].tobytes() != v.tobytes()}
        edits = {name: np.copy(now[name]) for name in known}
        self._write(known)
        return edits

    def edit(self, values: Values) -> None:
        """Write values that `take_back` returned, which the next `note` keeps."""
        known = dict(self._known)
        self._write(values)
        self._known = known

    def cut(self) -> list[ModelChange]:
        """Remove the changes that the model does not have now, and return them."""
        cut = [self.changes.pop() for _ in range(len(self.changes) - self._made)]
        return cut[::-1]

    def forget(self, frame: int) -> None:
        """Forget changes up to a frame, which cannot be taken back any more."""
        while self.changes and self._made and self.changes[0].frame <= frame:
            self.changes.popleft()
            self._made -= 1

    def _write(self, values: Values) -> None:
        for name, value in values.items():
            part, _, field = name.rpartition(".")
            if part:
                setattr(getattr(self._model, part), field, value if value.ndim else value.item())
            else:
                np.copyto(self._arrays[name], value)
        self._known |= values

    def _now(self) -> Values:
        """Return the present values; arrays share the memory of the model."""
        now = dict(self._arrays)
        for name, value in read_options(self._model.opt).items():
            now[_OPTION + name] = value
        for name in STATISTICS:
            now[_STATISTIC + name] = np.asarray(getattr(self._model.stat, name))
        return now
