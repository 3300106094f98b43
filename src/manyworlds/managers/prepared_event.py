"""Events that are built once for many calls."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch

from manyworlds.managers.scene_entity_config import SceneEntityCfg
from manyworlds.utils.state import Stateful

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.managers.event_manager import EventTermCfg


class PreparedEvent(Stateful):
    """Event term whose function provides `prepare`, which builds it for many calls.

    `prepare(env, **params)` checks the parameters and returns an object that is called as
    `object(env, env_ids)`. It is built at the first call, and again at the first call after
    a change of the parameters: a curriculum may edit them in place. The object accepts any number
    of worlds, also none.

    Args:
        func: the function, or a partial of it.
    """

    derived_attributes = ("_params", "_apply")  # built again after a change of parameters

    def __init__(self, func: Callable[..., Any]) -> None:
        self.func = func
        """The function, as the term's config names it."""
        self._prepare: Callable[..., Callable[..., object]] = plain_function(func).prepare
        self._fixed: Mapping[str, Any] = getattr(func, "keywords", {})
        self._params: dict[str, Any] | None = None
        self._apply: Callable[..., object] = self._prepare

    @staticmethod
    def of(term_cfg: EventTermCfg) -> PreparedEvent | None:
        """Make the prepared event of a term; None if its function does not provide `prepare`."""
        function = plain_function(term_cfg.func)
        provides = inspect.isfunction(function) and hasattr(function, "prepare")
        return PreparedEvent(term_cfg.func) if provides else None

    def __call__(
        self, env: ManagerBasedRlEnv, env_ids: torch.Tensor | None, **params: Any
    ) -> object:
        """Let the event happen in the worlds named, all of them for None."""
        self.build(env, params)
        return self._apply(env, env_ids)

    def build(self, env: ManagerBasedRlEnv, params: Mapping[str, object]) -> None:
        """Build the event, unless it is built with these parameters.

        Raises:
            Exception: the parameters are wrong.
        """
        params = {**self._fixed, **params}
        if params != self._params:
            self._apply = self._prepare(env, **params)
            self._params = _snapshot(params)


def plain_function(func: Any) -> Any:
    """Return the function within partial ones."""
    while isinstance(func, functools.partial):
        func = func.func
    return func


def _snapshot(value: Any) -> Any:
    """Copy the parts of parameters that may be edited in place."""
    if isinstance(value, SceneEntityCfg):
        return copy.deepcopy(value)
    if isinstance(value, Mapping):
        return {key: _snapshot(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return (list if isinstance(value, list) else tuple)(map(_snapshot, value))
    return value
