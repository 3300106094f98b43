"""Policies and worlds as a folder of files that a browser runs without a server."""

from manyworlds.share.control_graph import ControlGraph
from manyworlds.share.values import Graph, Value

__all__ = ["ControlGraph", "Graph", "Value"]
