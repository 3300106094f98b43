"""A live world on the network: streams of states, and operations that programs request."""

from manyworlds.lab.server.config import LabServerCfg, Limits
from manyworlds.lab.server.dispatcher import Dispatcher
from manyworlds.lab.server.hub import LabHub
from manyworlds.lab.server.operations import OPERATIONS, Registry, Request
from manyworlds.lab.server.plugin import ServerPlugin
from manyworlds.lab.server.process import HubProcess

__all__ = [
    "OPERATIONS",
    "Dispatcher",
    "HubProcess",
    "LabHub",
    "LabServerCfg",
    "Limits",
    "Registry",
    "Request",
    "ServerPlugin",
]
