"""A live world on the network: streams of states, and operations that programs request."""

from manyworlds.lab.network.config import LabServerCfg, Limits
from manyworlds.lab.network.dispatcher import Dispatcher
from manyworlds.lab.network.hub import LabHub
from manyworlds.lab.network.operations import OPERATIONS
from manyworlds.lab.network.process import HubProcess

__all__ = ["OPERATIONS", "Dispatcher", "HubProcess", "LabHub", "LabServerCfg", "Limits"]
