"""Simulation of parallel worlds of one model, with MuJoCo C or MuJoCo Warp."""

from typing import TYPE_CHECKING

from manyworlds.sim.config import MujocoCfg, SimulationCfg
from manyworlds.sim.contacts import Contacts
from manyworlds.sim.diagnostics.status import FATAL, WorldStatus
from manyworlds.sim.engines.factory import choose_device
from manyworlds.sim.fields.element_rows import VARIANT_DEPENDENT_FIELDS
from manyworlds.sim.fields.recompute import RecomputeLevel
from manyworlds.sim.sim import Simulation
from manyworlds.sim.sim_data import WarpBridge
from manyworlds.utils.nan_guard import NanGuardCfg

if TYPE_CHECKING:
    from manyworlds.sim.torch_array import TorchArray

__all__ = [
    "FATAL",
    "VARIANT_DEPENDENT_FIELDS",
    "Contacts",
    "MujocoCfg",
    "NanGuardCfg",
    "RecomputeLevel",
    "Simulation",
    "SimulationCfg",
    "TorchArray",
    "WarpBridge",
    "WorldStatus",
    "choose_device",
]


def __getattr__(name: str) -> object:
    # TorchArray subclasses Tensor and so needs torch, which is imported late: see `defer_import`.
    if name == "TorchArray":
        from manyworlds.sim.torch_array import TorchArray

        return TorchArray
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
