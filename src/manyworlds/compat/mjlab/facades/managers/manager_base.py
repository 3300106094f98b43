"""Base class of managers that programs add to an environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from manyworlds.compat.mjlab.facades.extended import Extended
from manyworlds.managers import manager_base

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.managers.manager_base import ManagerTermBaseCfg


class ManagerBase(manager_base.ManagerBase[Any], metaclass=Extended):
    """Manager whose subclass prepares its terms in `_prepare_terms` when it is initialized."""

    extended = manager_base.ManagerBase

    def __init__(self, env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        self._prepare_terms()

    def _prepare_terms(self) -> None:
        """Prepare the terms of the subclass's configuration.

        Raises:
            NotImplementedError: the subclass does not define it.
        """
        raise NotImplementedError(f"{type(self).__name__} must define _prepare_terms(self).")

    def _resolve_common_term_cfg(self, term_name: str, term_cfg: ManagerTermBaseCfg) -> None:
        """Resolve the entities of a term in place, and instantiate a term that is a class."""
        self._prepare(term_name, term_cfg)
