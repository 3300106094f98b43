"""Events that are built once, and the random numbers that they keep for each world."""

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


class Draws(Stateful):
    """Random numbers that a term drew last in each world.

    Args:
        num_envs: number of worlds.
        device: device of the numbers.
    """

    def __init__(self, num_envs: int, device: torch.device) -> None:
        self._num_envs = num_envs
        self._device = device
        self._values: dict[str, torch.Tensor] = {}
        self._layouts: dict[str, str] = {}
        self.repeats = False
        """True gives worlds the numbers that they have, instead of new ones."""

    def draw(
        self,
        what: str,
        layout: str,
        worlds: torch.Tensor,
        sample: Callable[[int], torch.Tensor],
    ) -> torch.Tensor:
        """Draw numbers for some worlds, or repeat those that they have.

        Args:
            what: name of the numbers, of which a term may draw several.
            layout: meaning of the numbers. If it differs from that of the last draw, new numbers
                are drawn for all worlds, since the old ones mean something else.
            worlds: ids of the worlds.
            sample: called with a number of worlds; returns a row for each.

        Returns:
            A row for each of the worlds named, shape [len(worlds), ...].
        """
        known = self._layouts.get(what)
        if known == layout and self.repeats:
            return self._values[what][worlds]
        drawn = sample(len(worlds) if known in (None, layout) else self._num_envs)
        if known != layout:
            self._layouts[what] = layout
            with torch.inference_mode(False):
                self._values[what] = torch.zeros(
                    self._num_envs, *drawn.shape[1:], dtype=drawn.dtype, device=self._device
                )
            if known is not None:
                return self._values[what].copy_(drawn)[worlds]
        self._values[what][worlds] = drawn
        return drawn

    def saved_values(self) -> dict[str, object]:
        """Return the numbers and their meanings."""
        return {"layouts": self._layouts, "values": self._values}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load a state that `state_dict` returned."""
        self._layouts = dict(state["layouts"])
        with torch.inference_mode(False):
            self._values = {
                what: drawn.clone().to(self._device) for what, drawn in state["values"].items()
            }


class PreparedEvent(Stateful):
    """Event term whose function provides `prepare`, which builds it for many calls.

    `prepare(env, **params)` checks the parameters and returns an object that is called as
    `object(env, env_ids, draws)`. It is built at the first call, and again at the first call after
    a change of the parameters: a curriculum may edit them in place. The object accepts any number
    of worlds, also none.

    Args:
        func: the function, or a partial of it.
    """

    state_attributes = ("draws",)
    derived_attributes = ("_params", "_apply")  # built again after a change of parameters

    def __init__(self, func: Callable[..., Any]) -> None:
        self.func = func
        """The function, as the term's config names it."""
        self.draws: Draws | None = None
        """Random numbers of each world, where they are kept; see `EventMemory`."""
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
        return self._apply(env, env_ids, self.draws)

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
