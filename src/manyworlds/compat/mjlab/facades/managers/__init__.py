"""Managers, with a base class that prepares its terms as that of mjlab."""

from manyworlds.compat.mjlab.facades.managers.manager_base import ManagerBase

__all__ = ["ManagerBase"]
