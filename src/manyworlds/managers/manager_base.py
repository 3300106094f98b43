"""What all managers share: copying, resolving and calling terms."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import torch

from manyworlds.managers.scene_entity_config import SceneEntityCfg
from manyworlds.utils.indices import EnvIds
from manyworlds.utils.state import Stateful

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


@dataclass(kw_only=True)
class ManagerTermBaseCfg:
    """A term: a function of the environment, with parameters."""

    func: Callable[..., Any]
    """Called as `func(env, **params)`; a class is first instantiated with `cfg=` and `env=`."""
    params: dict[str, Any] = field(default_factory=dict)
    """Keyword arguments; every `SceneEntityCfg` among them is resolved against the scene."""


CfgT = TypeVar("CfgT", bound=ManagerTermBaseCfg)


class _OfEnv(Stateful):
    """Belongs to an environment."""

    def __init__(self, env: ManagerBasedRlEnv) -> None:
        self._env = env

    @property
    def num_envs(self) -> int:
        """Number of worlds."""
        return self._env.num_envs

    @property
    def device(self) -> torch.device:
        """Where the tensors live."""
        return self._env.device


class ManagerTermBase(_OfEnv):
    """A term that keeps state between calls."""

    @property
    def name(self) -> str:
        """Name of the term's class."""
        return type(self).__name__

    def reset(self, env_ids: EnvIds = None) -> Any:
        """Forget what belongs to the episodes of the worlds named."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the term."""
        raise NotImplementedError


class ManagerBase(_OfEnv, Generic[CfgT]):
    """Runs the terms of one kind.

    The configuration is copied: terms that are None are left out, entities in parameters are
    resolved, and classes are instantiated in the copy.
    """

    def __init__(self, cfg: Mapping[str, CfgT | None], env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        self._class_terms: dict[str, ManagerTermBase] = {}
        self._terms = self._prepare_terms(cfg)

    @property
    def kind(self) -> str:
        """Name of the manager, for messages."""
        return type(self).__name__

    @property
    def active_terms(self) -> Any:
        """Names of the terms."""
        return list(self._terms)

    def get_term_cfg(self, term_name: str) -> CfgT:
        """Return the manager's own copy of a term's config.

        Raises:
            ValueError: there is no such term.
        """
        if term_name not in self._terms:
            raise ValueError(
                f"{self.kind} has no term '{term_name}'. "
                f"Available: {', '.join(self._terms) or 'none'}."
            )
        return self._terms[term_name]

    def reset(self, env_ids: EnvIds = None) -> dict[str, torch.Tensor]:
        """Begin new episodes in the worlds named; return what to log about the old ones."""
        for term in self._class_terms.values():
            term.reset(env_ids)
        return {}

    def state_dict(self) -> dict[str, Any]:
        """State of the manager and of the terms that keep state."""
        terms = {name: term.state_dict() for name, term in self._class_terms.items()}
        return {**super().state_dict(), "terms": terms}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state that `state_dict` returned."""
        super().load_state_dict(state)
        for name, term in self._class_terms.items():
            term.load_state_dict(state["terms"][name])

    def _prepare_terms(self, cfg: Mapping[str, CfgT | None], group: str = "") -> dict[str, CfgT]:
        return {
            name: self._prepare(group + name, copy.deepcopy(term_cfg))
            for name, term_cfg in cfg.items()
            if term_cfg is not None
        }

    def _prepare(self, name: str, term_cfg: CfgT) -> CfgT:
        if not callable(term_cfg.func):
            raise TypeError(f"{self.kind} term '{name}' needs a callable func, got {term_cfg.func}")
        for value in term_cfg.params.values():
            if isinstance(value, SceneEntityCfg):
                try:
                    value.resolve(self._env.scene)
                except (KeyError, ValueError) as error:
                    message = error.args[0] if error.args else error
                    raise ValueError(f"{self.kind} term '{name}': {message}") from None
        if inspect.isclass(term_cfg.func):
            make = cast("Callable[..., Any]", term_cfg.func)
            term = make(cfg=term_cfg, env=self._env)
            term_cfg.func = term
            if isinstance(term, ManagerTermBase):
                self._class_terms[name] = term
        return term_cfg

    def _call(self, name: str, term_cfg: ManagerTermBaseCfg, *args: Any) -> Any:
        """Call a term; an error says which term of which manager raised it."""
        try:
            return term_cfg.func(self._env, *args, **term_cfg.params)
        except Exception as error:
            error.add_note(f"in {self.kind} term '{name}' with params {term_cfg.params}")
            raise

    def _check_shape(self, name: str, value: Any) -> None:
        if not isinstance(value, torch.Tensor) or value.shape != (self.num_envs,):
            got = tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
            raise ValueError(
                f"{self.kind} term '{name}' returned {got}, expected ({self.num_envs},): "
                "return one value per world."
            )
