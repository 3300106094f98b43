"""Parameters of actuators that are stored in the model, per world and target."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

import mujoco
import numpy as np
import torch

from manyworlds.sim.views import ModelView
from manyworlds.sim.write_mark import WriteMark
from manyworlds.validation.worlds import EnvIds, Worlds, assign

Cell = tuple[str, int, float]
"""A model field, one of its columns, and the factor from the parameter to its value."""

_FLAGS = {
    "actuator_forcerange": "actuator_forcelimited",
    "actuator_ctrlrange": "actuator_ctrllimited",
    "jnt_actfrcrange": "jnt_actfrclimited",
    "tendon_actfrcrange": "tendon_actfrclimited",
}


class GainParameter:
    """A gain, which MuJoCo may store in several columns.

    Args:
        model: the simulation's model.
        cells: the columns that store the gain; the first one is read.
        rows: the rows of the fields, one per target.
    """

    def __init__(self, model: ModelView, cells: Sequence[Cell], rows: torch.Tensor) -> None:
        self._model = model
        self._cells = cells
        self._rows = rows

    def read(self) -> torch.Tensor:
        """Return the gain, shape [num_envs, num_targets]."""
        field, column, unit = self._cells[0]
        return getattr(self._model, field)[:, self._rows, column] * unit

    def read_default(self) -> torch.Tensor:
        """Return the gain as compiled, shape [num_envs or 1, num_targets]."""
        field, column, unit = self._cells[0]
        return self._model.default_rows(field)[:, self._rows, column] * unit

    def write(self, value: torch.Tensor, env_ids: EnvIds, targets: slice | torch.Tensor) -> None:
        """Set the gain of some worlds and targets."""
        for field, column, unit in self._cells:
            rows = self._rows[targets]
            assign(getattr(self._model, field)[..., column], value * unit, env_ids, rows)


class ControlGears:
    """Factors from targets to controls, whose unit is the length of the actuator before its gear.

    Args:
        model: the simulation's model.
        rows: row of `actuator_gear` of each control.
        geared: mask of the controls that are positions or velocities; efforts have the factor 1.
    """

    def __init__(self, model: ModelView, rows: torch.Tensor, geared: torch.Tensor) -> None:
        self.model = model
        self.rows = rows
        self.geared = geared
        self._factors: torch.Tensor | None = None
        self._mark = WriteMark()
        compiled = model.default_rows("actuator_gear")[:, rows, 0]
        if not bool((geared & (compiled != 1.0)).any()):
            self._mark.moved(model.actuator_gear)  # no factors until gears are written

    def read(self) -> torch.Tensor | None:
        """Return the factors, shape [num_envs, number of controls]; None if all are 1."""
        gears = self.model.actuator_gear
        if self._mark.moved(gears):
            own = gears.as_subclass(torch.Tensor)[:, self.rows, 0]
            self._factors = torch.where(self.geared, own, 1.0)
        return self._factors


class LimitParameter:
    """Largest effort of actuators before their gears, stored in ranges of the model.

    A write scales both bounds of a range that is not symmetric.

    Args:
        owner: name of the actuator in messages.
        mj_model: the compiled model, with the ranges and their flags.
        model: the simulation's model.
        rows: the fields that limit the effort, and the rows of each, one per target.
        differs: worlds hold variants, whose ranges may have other proportions.
    """

    def __init__(
        self,
        owner: str,
        mj_model: mujoco.MjModel,
        model: ModelView,
        rows: Mapping[str, torch.Tensor],
        differs: bool = False,
    ) -> None:
        self._owner = owner
        self._differs = differs
        self._model = model
        self._rows = rows
        self._shape: dict[str, torch.Tensor] = {}
        self._mask: dict[str, torch.Tensor] = {}
        counts = np.zeros(len(next(iter(rows.values()))), dtype=int)
        for field, ids in rows.items():
            host = ids.cpu().numpy()
            ranges = torch.from_numpy(getattr(mj_model, field)[host][None])
            self._shape[field] = _shape_of(ranges).float().to(ids.device)
            limited = getattr(mj_model, _FLAGS[field])[host].astype(bool)
            self._mask[field] = torch.tensor(limited, device=ids.device)
            counts += limited
        # Known on the host, so that writing limits does not wait for a GPU in the usual case.
        self._all_limited = bool((counts == len(rows)).all())

    def read(self) -> torch.Tensor:
        """Return the limit, infinite for targets without one, shape [num_envs, num_targets]."""
        return self._read(functools.partial(getattr, self._model))

    def read_default(self) -> torch.Tensor:
        """Return the limit as compiled, shape [num_envs or 1, num_targets]."""
        return self._read(self._model.default_rows)

    def _read(self, rows_of: Callable[[str], torch.Tensor]) -> torch.Tensor:
        limits = []
        for field, ids in self._rows.items():
            size = rows_of(field)[:, ids].abs().amax(dim=-1)
            mask = self._mask[field]
            if self._differs:
                mask = getattr(self._model, _FLAGS[field])[..., ids] != 0
            limits.append(torch.where(mask, size, torch.inf))
        return torch.stack(limits).amin(dim=0)

    def write(self, value: torch.Tensor, env_ids: EnvIds, targets: slice | torch.Tensor) -> None:
        """Set the limit of some worlds and targets.

        Raises:
            ValueError: the compiled model has no limit there.
        """
        limited = None
        if not self._all_limited:
            limited = torch.stack([mask[targets] for mask in self._mask.values()])
            if not bool(limited.any(dim=0).all()):
                raise ValueError(
                    f"{self._owner} has no effort limit to change: the model was compiled without"
                    " one. Set effort_limit (an XML actuator: forcerange)."
                )
        value = value.unsqueeze(-1)
        for i, (field, ids) in enumerate(self._rows.items()):
            shape = self._shape[field]
            if self._differs:
                shape = _shape_of(self._model.default_rows(field)[:, ids])
            ranges = value * self._of_worlds(shape, env_ids)[:, targets]
            rows = ids[targets]
            if limited is not None:
                ranges = ranges[:, limited[i]]
                rows = rows[limited[i]]
            assign(getattr(self._model, field), ranges, env_ids, rows)

    @staticmethod
    def _of_worlds(rows: torch.Tensor, env_ids: EnvIds) -> torch.Tensor:
        """Select the rows of worlds; a single row applies to all."""
        if len(rows) == 1:
            return rows
        return Worlds.of(env_ids, len(rows), rows.device).take(rows)


def _shape_of(ranges: torch.Tensor) -> torch.Tensor:
    """Divide ranges, [..., 2], by their larger bound; an empty one stays zero."""
    size = ranges.abs().amax(dim=-1, keepdim=True)
    return ranges / torch.where(size > 0.0, size, torch.ones_like(size))
