"""Curriculum terms and their manager: changes of the task in the course of training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from manyworlds.managers.manager_base import ManagerBase, ManagerTermBaseCfg
from manyworlds.validation.worlds import EnvIds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


@dataclass(kw_only=True)
class CurriculumTermCfg(ManagerTermBaseCfg[Callable[..., object]]):
    """Configuration of a curriculum term; `func(env, env_ids, **params)` returns values to log.

    A term runs whenever worlds are reset. `env_ids` are those whose episode ended; there are none
    when the environment is built and in a reset of worlds that have not stepped since their last.
    The return value is a number, a tensor of one element, a dict of these, or None.
    """


class CurriculumManager(ManagerBase[CurriculumTermCfg]):
    """Manager of curriculum terms, which run for worlds that are about to be reset."""

    derived_attributes = ("_log",)

    def __init__(self, cfg: Mapping[str, CurriculumTermCfg | None], env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        self._terms = self._prepare_all(cfg)
        self._log: dict[str, Any] = {}

    def compute(self, env_ids: EnvIds = None) -> None:
        """Run all terms for worlds whose episodes ended, before they are reset; None for all."""
        for name, term in self._terms.items():
            given = self._worlds(env_ids).for_call(term.func)
            if given is None:
                continue
            value = self._call(name, term, given)
            if isinstance(value, dict):
                values = {f"Curriculum/{name}/{key}": item for key, item in value.items()}
            else:
                values = {f"Curriculum/{name}": value}
            self._log.update((key, item) for key, item in values.items() if item is not None)

    def reset(self, env_ids: EnvIds = None) -> dict[str, Any]:
        """Return the last values of all terms for the log."""
        super().reset(env_ids)
        return dict(self._log)

    def get_active_iterable_terms(self, env_idx: int) -> list[tuple[str, list[float]]]:
        """Return the last values of all terms, which are the same in all worlds."""
        return [(key.split("/", 1)[1], [float(value)]) for key, value in self._log.items()]


class NullCurriculumManager(CurriculumManager):
    """Curriculum manager without terms."""

    def __init__(self) -> None:
        self._terms = {}
        self._functions = {}
        self._class_terms = {}
        self._log = {}
