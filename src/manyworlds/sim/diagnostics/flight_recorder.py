"""Flight recorder: the last calls before a world failed, in one file that can be replayed."""

from __future__ import annotations

import datetime
import json
import uuid
import warnings
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
import torch

from manyworlds.sim.diagnostics.status import FATAL, status_counts
from manyworlds.utils.extras import own_version
from manyworlds.utils.files import atomic_path
from manyworlds.utils.nan_guard import NanGuardCfg
from manyworlds.validation.worlds import Worlds

if TYPE_CHECKING:
    from manyworlds.sim.engines.engine import Engine
    from manyworlds.sim.fields.variant_rows import VariantRows

FORMAT = "manyworlds flight record 3"


class FlightRecorder:
    """Records the start states of the last steps and writes them to a file when a world fails.

    Recording costs one copy per call of the part of the state that a step changes. On a GPU, where
    reading the status waits for the device, worlds are checked before they are reset and once per
    half a buffer; on the CPU, after every call. Each world is written at most once between resets,
    and its record begins no earlier than its last reset. The native engine also records changes of
    model rows; the warp engine writes the rows that hold when the world fails.

    Args:
        cfg: options of the recording; read again at each event.
        engine: the engine that steps the worlds.
        variants: the variants of the entities, and the assignment of worlds to them.
    """

    def __init__(self, cfg: NanGuardCfg, engine: Engine, variants: VariantRows) -> None:
        cfg.check()
        self.cfg = cfg
        self.files: list[Path] = []
        """Files written so far."""
        self._engine = engine
        self._variants = variants
        self._variant_slots = [variants.snapshot()] * cfg.buffer_size
        self._slots = engine.record_slots(cfg.buffer_size)
        self._unchanged_inputs = [engine.static_inputs()] * cfg.buffer_size
        self._calls = [(0, False)] * cfg.buffer_size
        self._count = 0
        self._model_rows = _ModelRows(engine)
        self._since = np.zeros(engine.num_envs, np.int64)
        self._dumped = np.zeros(engine.num_envs, bool)
        self._interval = 1 if engine.device.type == "cpu" else max(1, cfg.buffer_size // 2)

    def step(self, nsubsteps: int, refresh: bool) -> None:
        """Record the state from which the worlds start, step them, and check their status."""
        slot = self._count % len(self._slots)
        self._variant_slots[slot] = self._variants.snapshot()
        self._engine.step(nsubsteps, refresh, self._slots[slot])
        self._unchanged_inputs[slot] = self._engine.static_inputs()
        self._calls[slot] = nsubsteps, refresh
        self._model_rows.note(self._count, self._oldest)
        self._count += 1
        if self._count % self._interval == 0:
            self.check()

    @property
    def _oldest(self) -> int:
        """Index of the oldest call whose start state is in the ring buffer."""
        return max(0, self._count - len(self._slots))

    def before_restart(self, worlds: Worlds) -> None:
        """Write failed worlds before their state is lost; monitor the restarted ones again."""
        if self._interval > 1:
            self.check()
        self._dumped[worlds.host_rows] = False
        self._since[worlds.host_rows] = self._count

    def check(self) -> None:
        """Write a file if any world has failed since the last check."""
        if self._engine.all_ok():
            return
        status = self._engine.status().cpu().numpy()
        bad = ((status & int(FATAL)) != 0) & ~self._dumped & (self._since < self._count)
        if not bad.any():
            return
        self._dumped |= bad
        if len(self.files) < self.cfg.max_dumps:
            worlds = np.flatnonzero(bad)
            self._dump(worlds, status[worlds])

    def _dump(self, worlds: np.ndarray, status: np.ndarray) -> None:
        folder = Path(self.cfg.output_dir or "nan_dumps")
        stamp = datetime.datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
        path = folder / f"nan_dump_{stamp}_{uuid.uuid4().hex[:8]}.npz"
        kept = worlds[: self.cfg.max_envs_to_dump]
        what = ", ".join(f"{count} {name}" for name, count in status_counts(status).items())
        try:
            with atomic_path(path) as temporary:
                np.savez_compressed(temporary, **self._record(kept, status[: len(kept)], worlds))
        except OSError as error:
            message = f"{len(worlds)} worlds failed ({what}), but '{path}' cannot be written: "
            warnings.warn(f"{message}{error.strerror or error}.", RuntimeWarning, 5)
            return
        self.files.append(path)
        warnings.warn(
            f"{len(worlds)} worlds failed ({what}): `manyworlds replay-dump '{path}'` shows "
            "where it began.",
            RuntimeWarning,
            5,
        )

    def _record(self, worlds: np.ndarray, status: np.ndarray, bad: np.ndarray) -> dict[str, Any]:
        engine = self._engine
        oldest = self._oldest
        slots = np.arange(oldest, self._count) % len(self._slots)
        calls = np.array([self._calls[slot] for slot in slots], np.int64)
        ids = torch.from_numpy(worlds).to(engine.device)
        states = torch.cat(
            [
                torch.stack([torch.as_tensor(rows[slot])[ids] for slot in slots.tolist()])
                for rows in (self._slots, self._unchanged_inputs)
            ],
            dim=-1,
        )
        model = np.empty(mujoco.mj_sizeModel(engine.mj_model), np.uint8)
        mujoco.mj_saveModel(engine.mj_model, None, model)
        metadata = {
            "format": FORMAT,
            "engine": engine.name,
            "num_envs": engine.num_envs,
            "bad_worlds": bad.tolist(),
            "variants": {
                name: [[names[i] for i in self._variant_slots[slot][name][ids]] for slot in slots]
                for name, names in self._variants.names.items()
            },
            "first_call": oldest,
            "time": datetime.datetime.now().astimezone().isoformat(),
            "versions": {"manyworlds": own_version(), "mujoco": mujoco.__version__},
        }
        return {
            "metadata": np.array(json.dumps(metadata)),
            "model": model,
            "worlds": worlds,
            "status": status,
            "states": states.double().cpu().numpy(),
            "last_states": engine.state_rows()[ids].double().cpu().numpy(),
            "begins": np.maximum(self._since[worlds] - oldest, 0),
            "nsubsteps": calls[:, 0],
            "refresh": calls[:, 1],
            **self._model_rows.of(worlds, oldest),
        }


class _ModelRows:
    """Model rows of all worlds, and their values before each change during the last calls."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._seen: dict[str, np.ndarray] = {}
        # Call, field, worlds, and the rows of these worlds before that call.
        self._changes: deque[tuple[int, str, np.ndarray, np.ndarray]] = deque()

    def note(self, call: int, oldest: int) -> None:
        """Record the rows that were replaced before `call`; drop changes before `oldest`."""
        written = self._engine.take_written_worlds()
        if written is None:
            return
        while self._changes and self._changes[0][0] <= oldest:
            self._changes.popleft()
        worlds = np.flatnonzero(written)
        for field, rows in self._engine.model_rows().items():
            if field not in self._seen:
                compiled = self._engine.defaults[field].ravel()[: rows[0].size]
                self._seen[field] = np.tile(compiled, (len(rows), 1)).reshape(rows.shape)
            seen = self._seen[field]
            now = rows[worlds]
            before = seen[worlds]
            changed = (now != before).reshape(len(worlds), -1).any(axis=1)
            if changed.any():
                self._changes.append((call, field, worlds[changed], before[changed]))
                seen[worlds[changed]] = now[changed]

    def of(self, worlds: np.ndarray, oldest: int) -> dict[str, np.ndarray]:
        """Return rows of these worlds in call `oldest` and their later changes, as in the file.

        Rows of a field have shape (number of worlds, ...).
        """
        found: dict[str, np.ndarray] = {}
        for field, rows in self._engine.model_rows().items():
            present = self._seen.get(field, rows)[worlds]
            changes: list[tuple[int, int, np.ndarray]] = []
            for call, name, changed, before in reversed(self._changes):
                if name != field or call <= oldest:
                    continue
                for i, j in np.argwhere(worlds[:, None] == changed):
                    changes.append((call - oldest, i, present[i].copy()))
                    present[i] = before[j]
            found[f"model.{field}"] = present
            if changes:
                calls, indices, values = zip(*reversed(changes), strict=True)
                found[f"changed_calls.{field}"] = np.array(calls)
                found[f"changed_worlds.{field}"] = np.array(indices)
                found[f"changed_rows.{field}"] = np.array(values)
        return found
