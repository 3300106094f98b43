"""How it moves: parallel worlds of one model, on MuJoCo C or on MuJoCo Warp."""

from manyworlds.sim.recompute import RecomputeLevel
from manyworlds.sim.sim import MujocoCfg, Simulation, SimulationCfg
from manyworlds.sim.sim_data import TorchArray, WarpBridge

__all__ = [
    "MujocoCfg",
    "RecomputeLevel",
    "Simulation",
    "SimulationCfg",
    "TorchArray",
    "WarpBridge",
]
