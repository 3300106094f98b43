"""How it moves: parallel worlds of one model, on MuJoCo C or on MuJoCo Warp."""

from manyworlds.sim.config import MujocoCfg, SimulationCfg
from manyworlds.sim.contacts import Contacts
from manyworlds.sim.diagnostics.status import FATAL, WorldStatus
from manyworlds.sim.engines.factory import choose_device
from manyworlds.sim.fields.element_rows import VARIANT_DEPENDENT_FIELDS
from manyworlds.sim.fields.recompute import RecomputeLevel
from manyworlds.sim.sim import Simulation
from manyworlds.sim.sim_data import TorchArray, WarpBridge
from manyworlds.utils.nan_guard import NanGuardCfg

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
