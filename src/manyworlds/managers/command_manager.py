"""Command terms and their manager: goals for the policy, resampled at random times."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from manyworlds.managers.manager_base import BuiltTermManager, ManagerTermBase, TermTable
from manyworlds.managers.not_finite import is_not_finite, mean_of_finite
from manyworlds.utils.clocks import count_down
from manyworlds.utils.overrides import overrides
from manyworlds.validation.host_reads import reads_are_free
from manyworlds.validation.rules import refuse
from manyworlds.validation.worlds import EnvIds, Worlds, takes_worlds

if TYPE_CHECKING:
    import viser

    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.utils.debug_visualizer import DebugVisualizer


@dataclass(kw_only=True)
class CommandTermCfg(ABC):
    """Configuration of a command term."""

    resampling_time_range: tuple[float, float]
    """Bounds of the time between two resamplings [s]."""
    debug_vis: bool = False
    """True to draw the command in viewers."""
    optional: bool = False
    """Leave the term out where the scene lacks the entity `entity_name`."""

    @abstractmethod
    def build(self, env: ManagerBasedRlEnv) -> CommandTerm:
        """Build the term."""


class CommandTerm(ManagerTermBase):
    """Command term: one command per world.

    A subclass with state of its own extends the attributes of this class:
    `state_attributes = (*CommandTerm.state_attributes, "my_buffer")`.

    Raises:
        TypeError: `_update_command` does not take `env_ids`.
    """

    state_attributes = ("time_left", "command_counter", "metrics")
    is_coupled: bool = False
    """True if new commands depend on other worlds, too."""

    def __init__(self, cfg: CommandTermCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        if not inspect.signature(self._update_command).parameters:
            raise TypeError(
                f"{type(self).__name__}._update_command must accept env_ids, the worlds to update "
                "(None for all): write `def _update_command(self, env_ids=None)`."
            )
        low, high = cfg.resampling_time_range
        if not 0.0 <= low <= high:
            refuse(
                f"{type(cfg).__name__}.resampling_time_range is {cfg.resampling_time_range} s: "
                "give (min, max) with 0 <= min <= max."
            )
        self.cfg = cfg
        self.metrics: dict[str, torch.Tensor] = {}
        """Metrics that are logged at the end of an episode, by name, each of shape [num_envs]."""
        self.time_left = torch.zeros(self.num_envs, device=self.device)
        """Time until the next resampling [s], shape [num_envs]."""
        self.command_counter = torch.zeros(self.num_envs, dtype=torch.long, device=self.device)
        """Number of resamplings since the episode began, shape [num_envs]."""

    @property
    @abstractmethod
    def command(self) -> torch.Tensor:
        """Current commands, shape [num_envs, ...]."""

    @abstractmethod
    def _resample_command(self, env_ids: torch.Tensor) -> None:
        """Sample new commands for the given worlds; `env_ids` has shape [num_ids]."""

    @abstractmethod
    def _update_command(self, env_ids: torch.Tensor | None) -> None:
        """Update commands that depend on the state, in the given worlds; None for all."""

    @abstractmethod
    def _update_metrics(self) -> None:
        """Compare the state with the command, and accumulate the result in `metrics`."""

    @takes_worlds
    def compute(self, dt: float | torch.Tensor, env_ids: EnvIds = None) -> None:
        """Advance the term by `dt`: update metrics, resample expired commands, update commands.

        A world whose episode ended, and which is reset in this step, keeps its command.

        Args:
            dt: time since the last call [s], a scalar or shape [num_envs].
            env_ids: worlds whose commands are updated after a partial reset. The commands of the
                other worlds, and all metrics and timers, do not change. None for all worlds.
        """
        if env_ids is not None:
            given: Any = self._worlds(env_ids).for_call(self._update_command)
            if given is not None:
                self._update_command(given)
            return
        self._update_metrics()
        expired = count_down(self.time_left, dt)
        self._resample_where(expired & ~self._env.resetting)
        self._update_command(None)

    @takes_worlds
    def reset(self, env_ids: EnvIds) -> dict[str, torch.Tensor]:  # type: ignore[override]
        """Resample the commands of given worlds; return the means of their metrics, shape [].

        Metrics that are not finite are left out; the mean is NaN if none is left.
        """
        worlds = self._worlds(env_ids)
        log = {}
        for name, values in self.metrics.items():
            log[name] = mean_of_finite(worlds.take_or_nan(values).flatten())
            worlds.put(values, 0.0)
        worlds.put(self.command_counter, 0)
        self._resample(worlds)
        return log

    def _resample_where(self, mask: torch.Tensor) -> None:
        """Resample the commands of the worlds in a mask of shape [num_envs].

        On a GPU this waits for the ids, unless `_resample_command` takes worlds.
        """
        worlds = Worlds.masked(mask)
        if reads_are_free(mask.device):
            worlds = self._worlds(mask)
        if worlds:
            self._resample(worlds)

    def _resample(self, worlds: Worlds) -> None:
        low, high = self.cfg.resampling_time_range
        self._env.random = self.random
        with self._env.sim.outdating(worlds):
            worlds.put(self.time_left, self.random.uniform(low, high, env_ids=worlds))
            given: Any = worlds.for_call(self._resample_command)
            if given is not None:
                self._resample_command(given)
            worlds.put(self.command_counter, worlds.take(self.command_counter) + 1)

    def debug_vis(self, visualizer: DebugVisualizer) -> None:
        """Draw the command if `cfg.debug_vis` is set."""
        if self.cfg.debug_vis:
            self._debug_vis_impl(visualizer)

    def _debug_vis_impl(self, visualizer: DebugVisualizer) -> None:
        """Draw the command; a hook."""

    def create_gui(
        self,
        name: str,
        server: viser.ViserServer,
        get_env_idx: Callable[[], int],
        on_change: Callable[[], None] | None = None,
        request_action: Callable[[str, Any], None] | None = None,
    ) -> None:
        """Add controls to a viewer's page; a hook that does nothing by default."""

    def create_debug_vis_gui(
        self, name: str, server: viser.ViserServer, on_change: Callable[[], None] | None = None
    ) -> None:
        """Add a checkbox that shows or hides the command to a viewer's page; a hook."""
        box = server.gui.add_checkbox(f"Show command '{name}'", self.cfg.debug_vis)

        @box.on_update
        def _(_event: object) -> None:
            self.cfg.debug_vis = box.value
            if on_change is not None:
                on_change()

    @property
    def is_drawable(self) -> bool:
        """True if the term has a drawing of its own."""
        return overrides(self, CommandTerm, "_debug_vis_impl", "debug_vis")

    def on_viewer_pause(self, paused: bool) -> None:
        """Handle a viewer that pauses or resumes; a hook."""

    def apply_gui_reset(self, env_ids: torch.Tensor) -> bool:
        """Replace a reset's sample by the command that a viewer requests; a hook.

        Returns:
            True if the command was replaced.
        """
        return False


class CommandManager(BuiltTermManager[CommandTerm]):
    """Manager of command terms."""

    not_finite_status = "nan_command_metric"
    not_finite_effect = "whose episodes are left out of the log"

    def not_finite(self) -> torch.Tensor | None:
        """Return a mask of worlds with a metric that is not finite, shape [num_envs]."""
        metrics = list(self._metrics().values())
        if not metrics:
            return None
        return is_not_finite(torch.stack(metrics)).any(dim=0)

    def not_finite_terms(self) -> dict[str, torch.Tensor]:
        """Return masks of worlds by metric, shape [num_envs]."""
        return {name: is_not_finite(values) for name, values in self._metrics().items()}

    def _metrics(self) -> dict[str, torch.Tensor]:
        """Return the metrics of all terms by 'term/metric', each of shape [num_envs]."""
        return {
            f"{name}/{metric}": values
            for name, term in self._class_terms.items()
            for metric, values in term.metrics.items()
        }

    def _tables(self) -> Iterable[TermTable]:
        rows = [
            [i, name, type(term).__name__, term.cfg.resampling_time_range]
            for i, (name, term) in enumerate(self._class_terms.items())
        ]
        yield self.kind, ("index", "name", "term", "drawn every [s]"), rows

    def get_command(self, name: str) -> torch.Tensor:
        """Return the current commands of a term, shape [num_envs, ...].

        Raises:
            ValueError: the term does not exist.
        """
        return self.get_term(name).command

    def get_active_iterable_terms(self, env_idx: int) -> list[tuple[str, list[float]]]:
        """Return the current command of each term in one world."""
        return [
            (name, term.command[env_idx].flatten().tolist())
            for name, term in self._class_terms.items()
        ]

    def compute(self, dt: float | torch.Tensor, env_ids: EnvIds = None) -> None:
        """Advance all commands by `dt` [s]; see `CommandTerm.compute`."""
        worlds = None if env_ids is None else self._worlds(env_ids)
        for name, term in self._class_terms.items():
            capture = self.capture
            if capture is not None and capture.breaks_at(self.kind, name):
                capture.call(_compute, term, dt, worlds, writes=True)
            else:
                _compute(term, dt, worlds)

    def reset(self, env_ids: EnvIds) -> dict[str, torch.Tensor]:  # type: ignore[override]
        """Resample the commands of given worlds; log the means of their metrics, shape []."""
        worlds = self._worlds(env_ids)
        log: dict[str, torch.Tensor] = {}
        for name, term in self._class_terms.items():
            capture = self.capture
            if capture is not None and capture.breaks_at(self.kind, name):
                values = capture.call(_reset, term, worlds, writes=True)
            else:
                values = _reset(term, worlds)
            for metric, value in values.items():
                log[f"Metrics/{name}/{metric}"] = value
        return log

    def create_gui(
        self,
        server: viser.ViserServer,
        get_env_idx: Callable[[], int],
        on_change: Callable[[], None] | None = None,
        request_action: Callable[[str, Any], None] | None = None,
    ) -> None:
        """Add the controls of all terms to a viewer's page."""
        for name, term in self._class_terms.items():
            term.create_gui(name, server, get_env_idx, on_change, request_action)

    def create_debug_vis_gui(
        self, server: viser.ViserServer, on_change: Callable[[], None] | None = None
    ) -> None:
        """Add a checkbox for each term that draws to a viewer's page."""
        for name, term in self._class_terms.items():
            if term.is_drawable:
                term.create_debug_vis_gui(name, server, on_change)

    def on_viewer_pause(self, paused: bool) -> None:
        """Notify the terms that a viewer paused or resumed."""
        for term in self._class_terms.values():
            term.on_viewer_pause(paused)

    def apply_gui_reset(self, env_ids: torch.Tensor) -> bool:
        """Replace the samples of a reset by the commands that a viewer requests.

        Returns:
            True if any command was replaced.
        """
        return any([term.apply_gui_reset(env_ids) for term in self._class_terms.values()])


def _compute(term: CommandTerm, dt: float | torch.Tensor, worlds: Worlds | None) -> None:
    """Advance a term; see `CommandTerm.compute`."""
    if worlds is None:
        term.compute(dt, None)
        return
    given: Any = worlds.for_call(term.compute)
    if given is not None:
        term.compute(dt, given)


def _reset(term: CommandTerm, worlds: Worlds) -> dict[str, torch.Tensor]:
    """Resample a term; see `CommandTerm.reset`."""
    given: Any = worlds.for_call(term.reset)
    if given is None:
        return {}
    return term.reset(given)


class NullCommandManager(CommandManager):
    """Command manager without terms."""

    def __init__(self) -> None:
        self._terms = {}
        self._functions = {}
        self._class_terms = {}

    def reset(self, env_ids: EnvIds = None) -> dict[str, torch.Tensor]:
        """Return an empty log; its values would have shape []."""
        return {}
