"""A guard that users put around steps of their own, and the options that it shares with ours.

A simulation guards its own steps with `SimulationCfg.nan_guard`: its files also contain inputs and
model rows, and `manyworlds replay-dump` replays them. Files of this guard contain states only.
"""

from __future__ import annotations

import datetime
import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import torch

from manyworlds.sim.views import WarpBridge
from manyworlds.utils.files import atomic_path
from manyworlds.utils.nan_guard import NanGuardCfg

__all__ = ["NanGuard", "NanGuardCfg"]

_CHECKED = ("qpos", "qvel", "qacc", "qacc_warmstart", "sensordata")
_State = mujoco.mjtState
_FIELDS = {
    _State.mjSTATE_QPOS: "qpos",
    _State.mjSTATE_QVEL: "qvel",
    _State.mjSTATE_ACT: "act",
    _State.mjSTATE_MOCAP_POS: "mocap_pos",
    _State.mjSTATE_MOCAP_QUAT: "mocap_quat",
}
"""Recorded fields by component of the state, in the order of `mj_getState`."""
_SPEC = sum(map(int, _FIELDS))


class NanGuard:
    """Keeps the last states of all worlds, and writes those of worlds that become NaN or infinite.

    The first bad event writes two files into `cfg.output_dir`: `nan_dump_<time>.npz`, with an array
    `states_step_<number>` of shape [num_dumped, state_size] for each recorded step and a dictionary
    `_metadata`, and `model_<time>.mjb`. Links `nan_dump_latest.npz` and `model_latest.mjb` name the
    newest ones. `mujoco.mj_setState(model, data, row, metadata["state_spec"])` restores a row.

    Args:
        cfg: the options; without `enabled` the guard does nothing.
        num_envs: number of worlds.
        mj_model: the model that all worlds share.

    Raises:
        ValueError: an option is invalid.
    """

    def __init__(self, cfg: NanGuardCfg, num_envs: int, mj_model: mujoco.MjModel) -> None:
        cfg.check()
        self.cfg = cfg
        self.enabled = cfg.enabled
        self.num_envs = num_envs
        self.mj_model = mj_model
        self.output_dir = Path(cfg.output_dir or "nan_dumps")
        self._states: deque[tuple[int, torch.Tensor]] = deque(maxlen=cfg.buffer_size)
        self._step = 0
        self._dumped = False

    def capture(self, wp_data: object) -> None:
        """Record the state of all worlds.

        Args:
            wp_data: `sim.data`, or MuJoCo Warp's data of the same worlds.
        """
        if not self.enabled or self._dumped:
            return
        data = _views(wp_data, self.num_envs)
        parts = [getattr(data, name).reshape(self.num_envs, -1) for name in _FIELDS.values()]
        self._states.append((self._step, torch.cat(parts, dim=1)))
        self._step += 1

    @contextmanager
    def watch(self, wp_data: object) -> Iterator[None]:
        """Record the state before a block that steps the worlds, and check them after it."""
        self.capture(wp_data)
        yield
        self.check_and_dump(wp_data)

    @staticmethod
    def detect_nans(data: object) -> torch.Tensor:
        """Return a mask of the worlds with a value that is NaN or infinite, shape [num_envs].

        Positions, velocities, accelerations, their warm start, and sensor values are checked.
        """
        views = _views(data, None)
        bad = [~torch.isfinite(getattr(views, name)).all(dim=1) for name in _CHECKED]
        return torch.stack(bad).any(dim=0)

    def check_and_dump(self, data: object) -> bool:
        """Check all worlds, and write the recorded states at the first bad event.

        Returns:
            True if a world has a bad value.
        """
        if not self.enabled:
            return False
        bad = self.detect_nans(data).nonzero().flatten().tolist()
        if bad and not self._dumped:
            self._dumped = True
            self._dump(bad)
        return bool(bad)

    def _dump(self, bad: list[int]) -> None:
        time = datetime.datetime.now()
        stamp = time.strftime("%Y%m%d_%H%M%S_%f")
        dumped = bad[: self.cfg.max_envs_to_dump]
        model, states = f"model_{stamp}.mjb", f"nan_dump_{stamp}.npz"
        metadata = {
            "num_envs_total": self.num_envs,
            "nan_env_ids": bad,
            "dumped_env_ids": dumped,
            "num_envs_dumped": len(dumped),
            "buffer_size": len(self._states),
            "detection_step": self._step,
            "timestamp": time.isoformat(),
            "model_file": model,
            "state_spec": _SPEC,
            "state_size": mujoco.mj_stateSize(self.mj_model, _SPEC),
        }
        arrays: dict[str, Any] = {"_metadata": np.array(metadata, dtype=object)}
        arrays |= {f"states_step_{i:06d}": s[dumped].cpu().numpy() for i, s in self._states}
        with atomic_path(self.output_dir / model) as path:
            mujoco.mj_saveModel(self.mj_model, str(path), None)
        with atomic_path(self.output_dir / states) as path:
            np.savez_compressed(path, **arrays)
        for latest, name in (("model_latest.mjb", model), ("nan_dump_latest.npz", states)):
            with atomic_path(self.output_dir / latest) as path:
                path.unlink()
                os.symlink(name, path)
        print(f"Worlds {bad} have NaN or infinite values: see {self.output_dir / states}.")


def _views(data: object, num_envs: int | None) -> WarpBridge:
    """Return the arrays of all worlds as tensors that share their memory."""
    if isinstance(data, WarpBridge):
        return data
    return WarpBridge(data, num_envs)
