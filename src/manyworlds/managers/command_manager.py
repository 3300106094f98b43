"""Commands: what a policy is asked to do, drawn anew from time to time."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from manyworlds.managers.manager_base import BuiltTermManager, ManagerTermBase

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


@dataclass(kw_only=True)
class CommandTermCfg(ABC):
    """How often a command is drawn, and whether viewers draw it."""

    resampling_time_range: tuple[float, float]
    """Bounds of the time between two draws [s]."""
    debug_vis: bool = False
    """Whether viewers draw it."""

    @abstractmethod
    def build(self, env: ManagerBasedRlEnv) -> CommandTerm:
        """Make the term."""


class CommandTerm(ManagerTermBase):
    """A command per world.

    A subclass with state of its own lists it beside that of this class:
    `state_attributes = (*CommandTerm.state_attributes, "my_buffer")`.

    Raises:
        TypeError: `_update_command` does not take `env_ids`.
    """

    state_attributes = ("time_left", "command_counter", "metrics")

    def __init__(self, cfg: CommandTermCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        if not inspect.signature(self._update_command).parameters:
            raise TypeError(
                f"{type(self).__name__}._update_command must accept env_ids, the worlds to update "
                "(None for all): write `def _update_command(self, env_ids=None)`."
            )
        low, high = cfg.resampling_time_range
        if not 0.0 <= low <= high:
            raise ValueError(
                f"{type(cfg).__name__}.resampling_time_range is {cfg.resampling_time_range} s: "
                "give (min, max) with 0 <= min <= max."
            )
        self.cfg = cfg
        self.metrics: dict[str, torch.Tensor] = {}
        """What is logged at the end of an episode, by name, each of shape [num_envs]."""
        self.time_left = torch.zeros(self.num_envs, device=self.device)
        """Time until the next draw [s], shape [num_envs]."""
        self.command_counter = torch.zeros(self.num_envs, dtype=torch.long, device=self.device)
        """Draws since the episode began, shape [num_envs]."""

    @property
    @abstractmethod
    def command(self) -> torch.Tensor:
        """The present commands, shape [num_envs, ...]."""

    @abstractmethod
    def _resample_command(self, env_ids: torch.Tensor) -> None:
        """Draw new commands for the worlds named."""

    @abstractmethod
    def _update_command(self, env_ids: torch.Tensor | None) -> None:
        """Follow the state between draws, in the worlds named; None for all."""

    @abstractmethod
    def _update_metrics(self) -> None:
        """Compare the state with the command, and add to `metrics`."""

    def compute(self, dt: float | torch.Tensor, env_ids: torch.Tensor | None = None) -> None:
        """Let time go by: update metrics, draw where the time is over, follow the state.

        Args:
            dt: time since the last call [s], one for all worlds or shape [num_envs].
            env_ids: the worlds whose commands are updated after a partial reset; the others, and
                all metrics and timers, stay as they are. None for all.
        """
        if env_ids is not None:
            self._update_command(env_ids)
            return
        self._update_metrics()
        self.time_left -= dt
        self._resample_where(self.time_left <= 0.0)
        self._update_command(None)

    def reset(self, env_ids: torch.Tensor) -> dict[str, torch.Tensor]:
        """Draw anew in the worlds named; return the means of their metrics."""
        log = {}
        for name, values in self.metrics.items():
            log[name] = values[env_ids].mean()
            values[env_ids] = 0.0
        self.command_counter[env_ids] = 0
        self._resample(env_ids)
        return log

    def _resample_where(self, mask: torch.Tensor) -> None:
        """Draw anew in the worlds of a mask.

        On a GPU the host waits here to learn their ids. A term that draws for all worlds and keeps
        what the mask selects overrides this, and waits for nothing.
        """
        if len(ids := mask.nonzero().squeeze(-1)):
            self._resample(ids)

    def _resample(self, env_ids: torch.Tensor) -> None:
        low, high = self.cfg.resampling_time_range
        self.time_left[env_ids] = torch.empty(len(env_ids), device=self.device).uniform_(low, high)
        self.command_counter[env_ids] += 1
        self._resample_command(env_ids)

    def debug_vis(self, visualizer: Any) -> None:
        """Draw the command where `cfg.debug_vis` asks for it."""
        if self.cfg.debug_vis:
            self._debug_vis_impl(visualizer)

    def _debug_vis_impl(self, visualizer: Any) -> None:
        """Draw the command."""

    def create_gui(
        self,
        name: str,
        server: Any,
        get_env_idx: Callable[[], int],
        on_change: Callable[[], None] | None = None,
        request_action: Callable[[str, Any], None] | None = None,
    ) -> None:
        """Offer controls in a viewer's page; a hook that does nothing unless overridden."""

    def on_viewer_pause(self, paused: bool) -> None:
        """Take note that a viewer paused or went on; a hook."""

    def apply_gui_reset(self, env_ids: torch.Tensor) -> bool:
        """Put what a viewer asks for in place of a reset's draw; a hook. Return whether it did."""
        return False


class CommandManager(BuiltTermManager[CommandTerm]):
    """Runs the commands."""

    def _tables(self) -> Iterable[tuple[str, Sequence[str], list[list[Any]]]]:
        rows = [
            [i, name, type(term).__name__, term.cfg.resampling_time_range]
            for i, (name, term) in enumerate(self._class_terms.items())
        ]
        yield self.kind, ("index", "name", "term", "drawn every [s]"), rows

    def get_command(self, name: str) -> torch.Tensor:
        """Return a command by name, shape [num_envs, ...].

        Raises:
            ValueError: there is no such term.
        """
        return self.get_term(name).command

    def get_active_iterable_terms(self, env_idx: int) -> list[tuple[str, list[float]]]:
        """Each command of one world, for viewers."""
        return [
            (name, term.command[env_idx].flatten().tolist())
            for name, term in self._class_terms.items()
        ]

    def compute(self, dt: float | torch.Tensor, env_ids: torch.Tensor | None = None) -> None:
        """Let `dt` [s] go by in all commands; see `CommandTerm.compute`."""
        for term in self._class_terms.values():
            term.compute(dt, env_ids)

    def reset(self, env_ids: torch.Tensor) -> dict[str, torch.Tensor]:  # type: ignore[override]
        """Draw anew in the worlds named; log the means of their metrics."""
        return {
            f"Metrics/{name}/{metric}": value
            for name, term in self._class_terms.items()
            for metric, value in term.reset(env_ids).items()
        }

    def create_gui(
        self,
        server: Any,
        get_env_idx: Callable[[], int],
        on_change: Callable[[], None] | None = None,
        request_action: Callable[[str, Any], None] | None = None,
    ) -> None:
        """Let the commands offer controls in a viewer's page."""
        for name, term in self._class_terms.items():
            term.create_gui(name, server, get_env_idx, on_change, request_action)

    def on_viewer_pause(self, paused: bool) -> None:
        """Tell the commands that a viewer paused or went on."""
        for term in self._class_terms.values():
            term.on_viewer_pause(paused)

    def apply_gui_reset(self, env_ids: torch.Tensor) -> bool:
        """Put what a viewer asks for in place of a reset's draws; return whether any did."""
        return any([term.apply_gui_reset(env_ids) for term in self._class_terms.values()])


class NullCommandManager(CommandManager):
    """A manager without commands."""

    def __init__(self) -> None:
        self._terms, self._class_terms = {}, {}
