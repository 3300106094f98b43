"""The last call of each world on the native engine, which can be repeated.

A derived field that has not been read is never copied. Its first read must return the values of
the last call, not of the present state, so the last call is repeated from its start state.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from manyworlds.validation.worlds import Worlds

if TYPE_CHECKING:
    from mujoco.batch import Batch

# A forward counts as a call without substeps.
_FORWARD = (0, int(mujoco.mjtStage.mjSTAGE_ACC))
# The parts of the state before the buffers of samples, which follow each other as their bits.
_BEFORE_HISTORY = int(mujoco.mjtState.mjSTATE_HISTORY) - 1


class LastCalls:
    """Inputs of each world's derived fields: a state, model rows, and the last call.

    Args:
        batch: the worlds.
        mj_model: their compiled model.
        num_state_columns: number of leading columns of the state that a step may change.
        unchanged_inputs: a copy of the other columns; read-only.
    """

    def __init__(
        self,
        batch: Batch,
        mj_model: mujoco.MjModel,
        num_state_columns: int,
        unchanged_inputs: np.ndarray,
    ) -> None:
        self._batch = batch
        self._state_columns = batch.state[:, :num_state_columns]
        self._start = self._state_columns.copy()
        self._inputs = _inputs(mj_model, num_state_columns)
        self._unchanged_inputs = unchanged_inputs
        # Substeps, zero for `forward`, and the last stage that was computed.
        self._calls = np.tile(np.array(_FORWARD, np.int32), (batch.nsim, 1))
        # By model field: the rows of those worlds that were written since their last call.
        self._rows: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def note(self, unchanged_inputs: np.ndarray, nsubsteps: int, stage: int) -> None:
        """Record that all worlds step from the present state; inputs as in the constructor."""
        for part in self._inputs:
            np.copyto(self._start[:, part], self._state_columns[:, part])
        self._unchanged_inputs = unchanged_inputs
        self._calls[:] = nsubsteps, stage
        for _, written in self._rows.values():
            written[:] = False

    def note_forward(self, rows: np.ndarray | slice) -> None:
        """Record that `mj_forward` runs in the given worlds."""
        self._take(rows, self._batch.state, _FORWARD)

    def keep(self, field: str, rows: np.ndarray, worlds: np.ndarray | slice) -> None:
        """Copy rows of a model field that are about to be overwritten in some worlds."""
        if field not in self._rows:
            self._rows[field] = np.empty_like(rows), np.zeros(len(rows), bool)
        kept, written = self._rows[field]
        new = np.zeros_like(written)
        new[worlds] = True
        new &= ~written
        kept[new] = rows[new]
        written |= new

    def repeat(
        self,
        run: Callable[..., None],
        rows: Mapping[str, np.ndarray],
        worlds: Worlds,
    ) -> None:
        """Compute the outputs of the batch again by repeating the last calls of some worlds.

        States, model rows and counts of warnings stay as they are.

        Args:
            run: calls a function of the batch, and ignores failures.
            rows: the batch's rows of expanded model fields.
            worlds: in ascending order.
        """
        batch = self._batch
        state = batch.state.copy()
        warnings = batch.warning.copy()
        present = {field: rows[field].copy() for field in self._rows}
        try:
            self._state_columns[:] = self._start
            batch.state[:, self._start.shape[1] :] = self._unchanged_inputs
            for field, (kept, written) in self._rows.items():
                rows[field][written] = kept[written]
            calls = self._calls[worlds.host_rows]
            for nsubsteps, stage in np.unique(calls, axis=0).tolist():
                ids = np.flatnonzero((calls == (nsubsteps, stage)).all(axis=1))
                ids = worlds.host_ids[ids]
                if nsubsteps:
                    run(batch.step, ids, nsubsteps, stage)
                else:
                    run(batch.forward, ids, stage)
        finally:
            batch.state[:] = state
            batch.warning[:] = warnings
            for field, values in present.items():
                rows[field][:] = values

    def arrays(
        self, rows: Mapping[str, np.ndarray], of: Collection[str] = ()
    ) -> dict[str, np.ndarray]:
        """Return the arrays that `load` needs, one row per world, shape (num_envs, ...).

        Args:
            rows: the batch's rows of expanded model fields.
            of: model fields to include in addition to those written since the last calls.
        """
        arrays = {"state": np.hstack([self._start, self._unchanged_inputs]), "call": self._calls}
        for field, present in rows.items():
            before, written = self._rows.get(field, (present, np.zeros(len(present), bool)))
            if written.any() or field in of:
                values = arrays[f"model.{field}"] = present.copy()
                values[written] = before[written]
        return arrays

    def load(
        self,
        saved: Mapping[str, np.ndarray],
        rows: Mapping[str, np.ndarray],
        worlds: np.ndarray | slice,
    ) -> None:
        """Restore what `arrays` returned; if absent, the worlds count as after `forward`."""
        states = self._batch.state.copy()
        if "state" in saved:
            states[worlds] = saved["state"]
        self._take(worlds, states, saved.get("call", _FORWARD))
        for field, present in rows.items():
            values = saved.get(f"model.{field}")
            if values is not None:
                self.keep(field, present, worlds)
                self._rows[field][0][worlds] = values

    def _take(
        self,
        worlds: np.ndarray | slice,
        states: np.ndarray,
        calls: np.ndarray | tuple[int, int],
    ) -> None:
        width = self._start.shape[1]
        self._start[worlds] = states[worlds, :width]
        self._calls[worlds] = calls
        inputs = states[worlds, width:]
        if not np.array_equal(self._unchanged_inputs[worlds], inputs, equal_nan=True):
            # The original belongs to the engine.
            self._unchanged_inputs = self._unchanged_inputs.copy()
            self._unchanged_inputs[worlds] = inputs
        for _, written in self._rows.values():
            written[worlds] = False


def _inputs(mj_model: mujoco.MjModel, num_state_columns: int) -> list[slice]:
    """Return the state columns that outputs depend on, which may exclude buffers of samples.

    MuJoCo reads the samples of a sensor or actuator only where it has a delay or an interval.
    Elsewhere a sensor's buffer is output alone, and often most of the state.
    """
    delays = mj_model.actuator_delay, mj_model.sensor_delay, mj_model.sensor_interval
    if any(values.any() for values in delays):
        return [slice(0, num_state_columns)]
    start = mujoco.mj_stateSize(mj_model, _BEFORE_HISTORY)
    return [slice(0, start), slice(start + mj_model.nhistory, num_state_columns)]
