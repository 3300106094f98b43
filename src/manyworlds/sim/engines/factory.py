"""Choice of the engine that steps the worlds, and of its device."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import mujoco
import torch

from manyworlds.sim.options import refuse_warp_options
from manyworlds.utils.devices import as_device
from manyworlds.utils.extras import install_hint, is_installed

if TYPE_CHECKING:
    from manyworlds.sim.config import SimulationCfg
    from manyworlds.sim.engines.engine import Engine


def choose_device(cfg: SimulationCfg, device: str | torch.device | None) -> torch.device:
    """Return the requested device; for None, CUDA if the worlds can run there.

    If only MuJoCo Warp is missing for that, warn.

    Raises:
        ValueError: there is no such device or engine, or the engine cannot run there.
    """
    engine = _asked(cfg)
    if engine not in ("auto", "native", "warp"):
        raise ValueError(f"engine must be one of auto, native, warp, got '{engine}'.")
    if device is None:
        device = "cuda" if _can_use_gpu(engine) else "cpu"
    if engine == "native" and str(device).split(":")[0] != "cpu":
        raise ValueError(
            f"The native engine runs on the CPU, got device '{device}': "
            "use device='cpu' or engine='warp'."
        )
    found = as_device(device)
    if found.type not in ("cpu", "cuda"):
        raise ValueError(f"Engines run on the CPU or on CUDA, got device '{device}': use 'cpu'.")
    return found


def make_engine(
    cfg: SimulationCfg, mj_model: mujoco.MjModel, num_envs: int, device: str | torch.device | None
) -> Engine:
    """Make the engine that a configuration requests."""
    device = choose_device(cfg, device)
    kind = _asked(cfg)
    if kind == "auto":
        kind = "warp" if device.type == "cuda" else "native"
    if kind == "warp":
        from manyworlds.sim.engines.warp import WarpEngine

        return WarpEngine(mj_model, num_envs, device, cfg.nconmax, cfg.njmax, cfg.apply_wp_opt)
    refuse_warp_options(cfg)
    from manyworlds.sim.engines.native import NativeEngine

    return NativeEngine(mj_model, num_envs, cfg.num_threads)


def _can_use_gpu(engine: str) -> bool:
    """Return True if there is a GPU that the engine can use; `auto` needs MuJoCo Warp for it."""
    if engine == "native" or not torch.cuda.is_available():
        return False
    if engine == "warp" or is_installed("mujoco_warp"):
        return True
    warnings.warn(
        "There is a GPU, but MuJoCo Warp is not installed, so that the worlds run on the CPU: "
        f"run {install_hint('gpu')}, to use the GPU.",
        stacklevel=2,  # one place, so that Python shows it once
    )
    return False


def _asked(cfg: SimulationCfg) -> str:
    """Return the engine that a configuration requests."""
    return cfg.engine
