"""Policies and worlds as a folder of files that a browser runs without a server."""

from manyworlds.share.control_graph import ControlGraph
from manyworlds.share.folder import PageCard, PagePolicy, PageWorld, write_folder
from manyworlds.share.values import Graph, Value

__all__ = [
    "ControlGraph",
    "Graph",
    "PageCard",
    "PagePolicy",
    "PageWorld",
    "Value",
    "write_folder",
]
