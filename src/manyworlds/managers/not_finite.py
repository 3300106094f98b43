"""Values of terms that are NaN or infinite: counted per world, named once, or an error."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from manyworlds.managers.manager_base import ManagerBase


class NotFiniteReport:
    """Report of the worlds in which terms of any manager are not finite.

    Masks stay on their device until the environment reads all values of a step at once. The terms
    are looked up only if there is such a world.

    Args:
        managers: managers whose values count.
    """

    def __init__(self, managers: Sequence[ManagerBase]) -> None:
        self._managers = [manager for manager in managers if manager.active_terms]
        self._read: list[ManagerBase] = []
        self._named: set[tuple[str, str]] = set()

    @property
    def raises(self) -> bool:
        """True if the nan_policy of a term is "error"."""
        return any(
            manager.nan_policy(name) == "error"
            for manager in self._managers
            for name in manager.not_finite_terms()
        )

    def masks(self) -> list[torch.Tensor]:
        """Return a mask of worlds of each manager that has one, shape [num_envs]."""
        self._read = []
        masks: list[torch.Tensor] = []
        for manager in self._managers:
            mask = manager.not_finite()
            if mask is not None:
                self._read.append(manager)
                masks.append(mask)
        return masks

    def tell(
        self, rows: np.ndarray, diverged: np.ndarray, *, is_over: bool = False
    ) -> dict[str, int]:
        """Name terms once, and count the worlds by manager.

        Args:
            rows: the last masks on the host, shape [masks, num_envs].
            diverged: mask of worlds whose episode ended because their state is bad, which is
                counted elsewhere, shape [num_envs].
            is_over: whether further steps have been made since, so that the manager is named
                instead of its term.

        Returns:
            Numbers of worlds, if any, by their names in the log.

        Raises:
            ValueError: a term whose `nan_policy` is "error" is not finite.
        """
        counts = {}
        for manager, row in zip(self._read, rows, strict=True):
            if not row.any():
                continue
            counts[f"Status/{manager.not_finite_status}"] = int(np.count_nonzero(row))
            worlds = np.flatnonzero(row.astype(bool) & ~diverged)
            if worlds.size and is_over:
                self._name_manager(manager, worlds)
            elif worlds.size:
                self._name(manager, worlds)
        return counts

    def _name_manager(self, manager: ManagerBase, worlds: np.ndarray) -> None:
        """Say once that a term of a manager has not been finite in some worlds."""
        policies = {manager.nan_policy(name) for name in manager.not_finite_terms()}
        key = manager.kind, ""
        if "warn" not in policies or key in self._named:
            return
        self._named.add(key)
        warnings.warn(
            f"A term of {manager.kind} was NaN or infinite in worlds {_shown(worlds.tolist())}, "
            f"{manager.not_finite_effect}: set SimulationCfg.capture='off' to find out which one.",
            stacklevel=6,
        )

    def _name(self, manager: ManagerBase, worlds: np.ndarray) -> None:
        """Name the terms that are not finite in any of the worlds."""
        ids = torch.from_numpy(worlds).to(manager.device)
        for name, mask in manager.not_finite_terms().items():
            policy = manager.nan_policy(name)
            key = manager.kind, name
            if policy == "sanitize" or (policy == "warn" and key in self._named):
                continue
            bad = worlds[mask[ids].cpu().numpy()].tolist()
            if not bad:
                continue
            message = f"{manager.kind} term '{name}' is NaN or infinite in worlds {_shown(bad)}"
            remedy = (
                "correct its function, or end episodes of diverged worlds with the termination "
                "mdp.bad_world"
            )
            if policy == "error":
                raise ValueError(f"{message}, and its nan_policy is 'error': {remedy}.")
            self._named.add(key)
            warnings.warn(f"{message}, {manager.not_finite_effect}: {remedy}.", stacklevel=6)


def _shown(worlds: list[int]) -> str:
    shown = str(worlds[:8])
    if len(worlds) > 8:
        shown += f" and {len(worlds) - 8} more"
    return shown


def is_not_finite(values: torch.Tensor) -> torch.Tensor:
    """Return a mask of values that are NaN or infinite, of their shape."""
    # Two operations; `torch.isfinite` takes four.
    return (values - values) != 0.0


def mean_of_finite(values: torch.Tensor) -> torch.Tensor:
    """Return the mean of the finite values along the last dimension; NaN if none is finite."""
    return values.float().where(values.isfinite(), torch.nan).nanmean(dim=-1)
