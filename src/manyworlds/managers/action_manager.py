"""Action terms and their manager: from the policy's output to actuator targets."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch

from manyworlds.actuator.targets import CommandField
from manyworlds.managers.manager_base import BuiltTermManager, ManagerTermBase, TermTable
from manyworlds.spec.transmissions import TransmissionType
from manyworlds.validation.host_reads import reads_are_free
from manyworlds.validation.worlds import EnvIds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


@dataclass(kw_only=True)
class ActionTermCfg(ABC):
    """Configuration of an action term."""

    entity_name: str
    """Name of the entity in the scene."""
    clip: dict[str, tuple[float, float]] | None = None
    """Bounds of processed actions, by regular expression on names of targets."""
    pad_to: int | None = None
    """Number of columns of the action vector that the term has; it reads the first ones, and the
    others are stored as zero. None for as many as it reads. `BucketedRlEnv` sets it where buckets
    have other numbers."""
    optional: bool = False
    """Leave the term out where the scene lacks the entity."""

    @abstractmethod
    def build(self, env: ManagerBasedRlEnv) -> ActionTerm:
        """Build the term."""


class TargetColumns(NamedTuple):
    """Targets that an action sets in each control step."""

    entity: str
    transmission: TransmissionType
    field: CommandField
    names: Sequence[str]
    """Names of the joints, tendons or sites."""


class ActionTerm(ManagerTermBase):
    """Action term that converts its slice of the action vector into targets of an entity."""

    needs_substeps: bool = True
    """True if `apply_actions` must run before every physics step; False runs it once per control
    step, which is faster if it depends on the actions alone."""

    def __init__(self, cfg: ActionTermCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        self.cfg = cfg
        self._entity = env.scene.entity(cfg.entity_name)

    @property
    def padded_dim(self) -> int:
        """Width of the term's slice, with the columns that it does not read."""
        return self.cfg.pad_to or self.action_dim

    @property
    def sets(self) -> TargetColumns | None:
        """Targets that the term alone sets; None if unknown, as for terms that add to others."""
        return None

    @property
    @abstractmethod
    def action_dim(self) -> int:
        """Number of columns that the term reads."""

    @property
    @abstractmethod
    def raw_action(self) -> torch.Tensor:
        """Unprocessed slice of the policy's action, shape [num_envs, action_dim]."""

    @abstractmethod
    def process_actions(self, actions: torch.Tensor) -> None:
        """Process the term's slice, once per control step.

        Args:
            actions: unprocessed actions, shape [num_envs, action_dim].
        """

    @abstractmethod
    def apply_actions(self) -> None:
        """Write the targets to the entity."""


class ActionManager(BuiltTermManager[ActionTerm]):
    """Manager of action terms: splits the action vector among them, in the order of the dict."""

    state_attributes = ("_action", "_prev_action", "_prev_prev_action")

    def __init__(self, cfg: Mapping[str, ActionTermCfg | None], env: ManagerBasedRlEnv) -> None:
        super().__init__(cfg, env)
        self._warn_of_overlaps()
        shape = (self.num_envs, self.total_action_dim)
        self._action = torch.zeros(shape, device=self.device)
        self._prev_action = torch.zeros_like(self._action)
        self._prev_prev_action = torch.zeros_like(self._action)
        self._present: torch.Tensor | None = None
        if any(term.padded_dim != term.action_dim for term in self._class_terms.values()):
            self._present = self._read_columns()
        parts = self._action.split(self.action_term_dim, dim=1)
        terms = self._class_terms.values()
        self._slices = [part[:, : t.action_dim] for part, t in zip(parts, terms, strict=True)]

    @property
    def action_term_dim(self) -> list[int]:
        """Width of each term's slice, in the order of the terms."""
        return [term.padded_dim for term in self._class_terms.values()]

    @property
    def total_action_dim(self) -> int:
        """Width of the action vector, summed over all terms."""
        return sum(self.action_term_dim)

    @property
    def needs_substeps(self) -> bool:
        """True if at least one term must be applied before every physics step."""
        return any(term.needs_substeps for term in self._class_terms.values())

    @property
    def action(self) -> torch.Tensor:
        """Unprocessed action of the last step, shape [num_envs, total_action_dim]."""
        return self._action

    @property
    def prev_action(self) -> torch.Tensor:
        """Unprocessed action of the step before the last, shape [num_envs, total_action_dim]."""
        return self._prev_action

    @property
    def prev_prev_action(self) -> torch.Tensor:
        """Action of the step before `prev_action`, shape [num_envs, total_action_dim]."""
        return self._prev_prev_action

    def _read_columns(self) -> torch.Tensor:
        """Return a mask of the columns of the action vector that terms read.

        Raises:
            ValueError: a term reads more columns than it has.
        """
        present: list[bool] = []
        for name, term in self._class_terms.items():
            unread = term.padded_dim - term.action_dim
            if unread < 0:
                raise ValueError(
                    f"{self.kind} term '{name}' reads {term.action_dim} columns, but pad_to is "
                    f"{term.padded_dim}: give at least {term.action_dim}."
                )
            present += [True] * term.action_dim + [False] * unread
        return torch.tensor(present, device=self.device)

    @property
    def present(self) -> torch.Tensor | None:
        """Mask of the columns that terms read, shape [total_action_dim]; None if they read all."""
        return self._present

    def _warn_of_overlaps(self) -> None:
        """Warn of terms without effect, because a later one sets the same targets."""
        last: dict[tuple[str, str, str, str], str] = {}
        for name, term in self._class_terms.items():
            sets = term.sets
            if sets is None:
                continue
            kind = sets.transmission.value
            lost: dict[str, list[str]] = {}
            for target in sets.names:
                key = (sets.entity, kind, sets.field, target)
                if key in last:
                    lost.setdefault(last[key], []).append(target)
                last[key] = name
            for first, targets in lost.items():
                warnings.warn(
                    f"Action terms '{first}' and '{name}' both set the {sets.field} targets of the "
                    f"{kind}s {targets} of '{sets.entity}', so the first has no effect there: "
                    "leave them out of one of the terms.",
                    stacklevel=4,
                )

    def get_active_iterable_terms(self, env_idx: int) -> Sequence[tuple[str, Sequence[float]]]:
        """Return each term's unprocessed slice of the last action in one world."""
        parts = self._action[env_idx].cpu().split(self.action_term_dim)
        return [(n, part.tolist()) for n, part in zip(self._class_terms, parts, strict=True)]

    def _tables(self) -> Iterable[TermTable]:
        rows = [
            [i, name, type(term).__name__, term.padded_dim]
            for i, (name, term) in enumerate(self._class_terms.items())
        ]
        yield self.kind, ("index", "name", "term", "width"), rows

    def process_action(self, action: torch.Tensor) -> None:
        """Store a new action and let each term process its slice, once per control step.

        Args:
            action: unprocessed action, shape [num_envs, total_action_dim].

        Raises:
            ValueError: the shape is wrong or, on the CPU, an element is not finite.
        """
        if action.shape != self._action.shape:
            raise ValueError(
                f"The action has shape {tuple(action.shape)}, expected "
                f"{tuple(self._action.shape)} for terms {self.active_terms}."
            )
        # On a GPU this check would synchronize the host with the device in every step. A sum is
        # finite only if all elements are, and much cheaper than the test of each.
        if reads_are_free(action.device) and not math.isfinite(action.sum()):
            for world, column in (~torch.isfinite(action)).nonzero().tolist():
                raise ValueError(
                    f"The action of world {world} is {action[world, column].item()} in column "
                    f"{column}: actions must be finite; look for NaN in the policy's input or "
                    "weights."
                )
        self._prev_prev_action.copy_(self._prev_action)
        self._prev_action.copy_(self._action)
        self._action.copy_(action)
        if self._present is not None:
            self._action *= self._present
        for (name, term), part in zip(self._class_terms.items(), self._slices, strict=True):
            capture = self.capture
            if capture is not None and capture.breaks_at(self.kind, name):
                capture.call(term.process_actions, part)
            else:
                term.process_actions(part)

    def apply_action(self) -> None:
        """Write the targets of all terms to their entities."""
        for name, term in self._class_terms.items():
            capture = self.capture
            if capture is not None and capture.breaks_at(self.kind, name):
                capture.call(term.apply_actions)
            else:
                term.apply_actions()

    def reset(self, env_ids: EnvIds = None) -> dict[str, torch.Tensor]:
        """Set the stored actions of the given worlds to zero and reset the terms."""
        worlds = self._worlds(env_ids)
        for buffer in (self._action, self._prev_action, self._prev_prev_action):
            worlds.put(buffer, 0.0)
        return super().reset(worlds)
