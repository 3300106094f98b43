"""The flight recorder: the last calls before a world went bad, in one file that can be replayed."""

from __future__ import annotations

import datetime
import json
import uuid
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
import torch

from manyworlds import __version__
from manyworlds.sim.status import FATAL, status_counts
from manyworlds.utils.nan_guard import NanGuardCfg
from manyworlds.utils.os import atomic_path

if TYPE_CHECKING:
    from manyworlds.sim.engine import Engine

FORMAT = "manyworlds flight record 1"


class FlightRecorder:
    """Keeps what each of the last steps started from; writes a file when a world goes bad.

    A call costs one copy of the state rows. On a GPU, where looking at the status would wait for
    it, worlds are checked before they are reset and once per half a buffer; on the CPU after every
    call. Each world is written once until it is reset. A world's record begins no earlier than the
    last change of its model rows, which are written as they are when it goes bad.

    Args:
        cfg: what to record; read anew at each event.
        engine: what steps the worlds.
    """

    def __init__(self, cfg: NanGuardCfg, engine: Engine) -> None:
        cfg.check()
        self.cfg = cfg
        self.files: list[Path] = []
        """Files written so far."""
        self._engine = engine
        rows = engine.state_rows()
        size = (cfg.buffer_size, *rows.shape)
        # Zeros make the memory real now rather than during the first steps.
        self._ring = torch.zeros(size, dtype=rows.dtype, device=rows.device)
        self._calls = np.zeros((cfg.buffer_size, 2), np.int64)
        self._count = 0
        self._since = np.zeros(engine.num_envs, np.int64)
        self._dumped = torch.zeros(engine.num_envs, dtype=torch.bool, device=rows.device)
        self._interval = 1 if rows.device.type == "cpu" else max(1, cfg.buffer_size // 2)

    def step(self, nsubsteps: int, refresh: bool) -> None:
        """Record what the worlds start from, step them, and look at what became of them."""
        slot = self._count % self.cfg.buffer_size
        self._ring[slot].copy_(self._engine.state_rows())
        written = self._engine.take_written_worlds()
        if written is not None:
            self._since[written] = self._count
        self._calls[slot] = nsubsteps, refresh
        self._count += 1
        self._engine.step(nsubsteps, refresh)
        if self._count % self._interval == 0:
            self.check()

    def before_reset(self, env_ids: np.ndarray | None) -> None:
        """Write bad worlds while their state is still there; watch worlds anew that are reset."""
        if self._interval > 1:
            self.check()
        ids = slice(None)
        if env_ids is not None:
            ids = torch.from_numpy(env_ids).long().to(self._dumped.device)
        self._dumped[ids] = False

    def check(self) -> None:
        """Write a file if any world went bad that was well before."""
        status = self._engine.status()
        fatal = status & int(FATAL)
        if not fatal.any():
            return
        bad = fatal != 0
        worlds = (bad & ~self._dumped).nonzero().squeeze(-1).cpu().numpy()
        if not len(worlds) or not self._count:
            return
        self._dumped |= bad
        if len(self.files) < self.cfg.max_dumps:
            self._dump(worlds, status.cpu().numpy()[worlds])

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
            message = f"{len(worlds)} worlds went bad ({what}), but '{path}' cannot be written: "
            warnings.warn(f"{message}{error.strerror or error}.", RuntimeWarning, 5)
            return
        self.files.append(path)
        warnings.warn(
            f"{len(worlds)} worlds went bad ({what}): `manyworlds replay-dump '{path}'` tells "
            "where it began.",
            RuntimeWarning,
            5,
        )

    def _record(self, worlds: np.ndarray, status: np.ndarray, bad: np.ndarray) -> dict[str, Any]:
        engine, size = self._engine, self.cfg.buffer_size
        oldest = max(0, self._count - size)
        slots = np.arange(oldest, self._count) % size
        ids = torch.from_numpy(worlds).to(self._ring.device)
        states = torch.stack([self._ring[slot, ids] for slot in slots.tolist()])
        model = np.empty(mujoco.mj_sizeModel(engine.mj_model), np.uint8)
        mujoco.mj_saveModel(engine.mj_model, None, model)
        metadata = {
            "format": FORMAT,
            "engine": engine.name,
            "num_envs": engine.num_envs,
            "bad_worlds": bad.tolist(),
            "first_call": oldest,
            "time": datetime.datetime.now().astimezone().isoformat(),
            "versions": {"manyworlds": __version__, "mujoco": mujoco.__version__},
        }
        rows = {f"model.{name}": array[worlds] for name, array in engine.model_rows().items()}
        return {
            "metadata": np.array(json.dumps(metadata)),
            "model": model,
            "worlds": worlds,
            "status": status,
            "states": states.double().cpu().numpy(),
            "last_states": engine.state_rows()[ids].double().cpu().numpy(),
            "begins": np.maximum(self._since[worlds] - oldest, 0),
            "nsubsteps": self._calls[slots, 0],
            "refresh": self._calls[slots, 1],
            **rows,
        }
