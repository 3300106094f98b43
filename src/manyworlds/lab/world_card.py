"""Card of one world of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


@dataclass(frozen=True)
class WorldCard:
    """Facts."""


def read_card(env: ManagerBasedRlEnv, env_id: int) -> WorldCard:
    """Return."""
    return WorldCard()
