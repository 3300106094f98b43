"""Recorder terms and their manager: hooks that record data of episodes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from manyworlds.managers.manager_base import ManagerBase, ManagerTermBase, ManagerTermBaseCfg
from manyworlds.validation.worlds import EnvIds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


@dataclass
class RecorderTermCfg(ManagerTermBaseCfg[Callable[..., object]]):
    """Configuration of a recorder; `func` is a subclass of `RecorderTerm`."""


class RecorderTerm(ManagerTermBase):
    """Base class of recorders; a subclass overrides the hooks that it needs."""

    def __init__(self, cfg: RecorderTermCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        self.cfg = cfg

    def record_pre_reset(self, env_ids: torch.Tensor) -> None:
        """Record worlds in the final state of their episodes, before they are reset.

        `env.obs_buf` is the observation before the last action; the observation of the final state
        is `env.extras["final_obs"]`.
        """

    def record_post_reset(self, env_ids: torch.Tensor) -> None:
        """Record worlds at the beginning of an episode, with its first observation."""

    def record_post_step(self) -> None:
        """Record all worlds at the end of a control step."""

    def close(self) -> None:
        """Write remaining data and close files."""

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: recorders work through their hooks."""


class RecorderManager(ManagerBase[RecorderTermCfg]):
    """Manager of recorders, whose hooks run in the order of the dict.

    Raises:
        TypeError: a term is not a subclass of `RecorderTerm`.
    """

    _class_terms: dict[str, RecorderTerm]

    def __init__(self, cfg: Mapping[str, RecorderTermCfg | None], env: ManagerBasedRlEnv) -> None:
        for name, term in cfg.items():
            if term is None:
                continue
            if not (inspect.isclass(term.func) and issubclass(term.func, RecorderTerm)):
                raise TypeError(
                    f"RecorderManager term '{name}' needs a RecorderTerm subclass as func, got "
                    f"{term.func!r}."
                )
        super().__init__(env)
        self._terms = self._prepare_all(cfg)

    def __contains__(self, name: str) -> bool:
        return name in self._terms

    def get_term(self, name: str) -> RecorderTerm:
        """Return a recorder by name.

        Raises:
            KeyError: the term does not exist.
        """
        if name not in self._terms:
            raise KeyError(self._missing(name, self._terms))
        return self._class_terms[name]

    def record_pre_reset(self, env_ids: EnvIds) -> None:
        """Call `record_pre_reset` of all recorders for worlds whose episodes ended."""
        for term in self._class_terms.values():
            given: Any = self._worlds(env_ids).for_call(term.record_pre_reset)
            if given is not None:
                term.record_pre_reset(given)

    def record_post_reset(self, env_ids: EnvIds) -> None:
        """Call `record_post_reset` of all recorders for worlds whose episodes begin."""
        for term in self._class_terms.values():
            given: Any = self._worlds(env_ids).for_call(term.record_post_reset)
            if given is not None:
                term.record_post_reset(given)

    def record_post_step(self) -> None:
        """Call `record_post_step` of all recorders."""
        for term in self._class_terms.values():
            term.record_post_step()

    def close(self) -> None:
        """Close all recorders."""
        for term in self._class_terms.values():
            term.close()


class NullRecorderManager(RecorderManager):
    """Recorder manager without terms."""

    def __init__(self) -> None:
        self._terms = {}
        self._functions = {}
        self._class_terms = {}
