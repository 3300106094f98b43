"""Simulation of parallel worlds of one model, with MuJoCo C or MuJoCo Warp.

Names are imported on first use, because most of them need torch.
"""

from typing import TYPE_CHECKING

from manyworlds.utils.lazy_names import lazy_names

if TYPE_CHECKING:
    from manyworlds.sim.config import MujocoCfg, SimulationCfg
    from manyworlds.sim.contacts import Contacts
    from manyworlds.sim.diagnostics.status import FATAL, WorldStatus
    from manyworlds.sim.engines.factory import choose_device
    from manyworlds.sim.fields.element_rows import VARIANT_DEPENDENT_FIELDS
    from manyworlds.sim.fields.recompute import RecomputeLevel
    from manyworlds.sim.sim import Simulation
    from manyworlds.sim.torch_array import TorchArray
    from manyworlds.sim.views import DataView, ModelView, WarpBridge
    from manyworlds.utils.nan_guard import NanGuardCfg

__all__ = [
    "FATAL",
    "VARIANT_DEPENDENT_FIELDS",
    "Contacts",
    "DataView",
    "ModelView",
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

_MODULES = {
    "Contacts": "manyworlds.sim.contacts",
    "DataView": "manyworlds.sim.views",
    "FATAL": "manyworlds.sim.diagnostics.status",
    "ModelView": "manyworlds.sim.views",
    "MujocoCfg": "manyworlds.sim.config",
    "NanGuardCfg": "manyworlds.utils.nan_guard",
    "RecomputeLevel": "manyworlds.sim.fields.recompute",
    "Simulation": "manyworlds.sim.sim",
    "SimulationCfg": "manyworlds.sim.config",
    "TorchArray": "manyworlds.sim.torch_array",
    "VARIANT_DEPENDENT_FIELDS": "manyworlds.sim.fields.element_rows",
    "WarpBridge": "manyworlds.sim.views",
    "WorldStatus": "manyworlds.sim.diagnostics.status",
    "choose_device": "manyworlds.sim.engines.factory",
}

__getattr__ = lazy_names(__name__, _MODULES)
