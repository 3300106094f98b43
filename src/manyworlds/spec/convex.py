"""Approximately convex pieces of meshes."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from manyworlds.validation.checks import check_count

THRESHOLDS = (0.01, 1.0)
"""Lowest and highest threshold of a decomposition."""


@dataclass(kw_only=True)
class CoacdCfg:
    """Settings of the decomposition by CoACD (Wei et al., 2022, arXiv:2205.02961)."""

    threshold: float = 0.05
    """Concavity above which a piece is divided further, as a share of the mesh's size, in
    [0.01, 1]; lower values give more pieces."""
    max_pieces: int | None = None
    """Largest number of pieces, which merges the most similar ones; None for no limit."""
    seed: int = 0
    """Random seed of the search for cuts."""

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Check the settings.

        Raises:
            ValueError: a setting is out of bounds.
        """
        low, high = THRESHOLDS
        if not low <= self.threshold <= high:
            raise ValueError(
                f"CoacdCfg.threshold must be in [{low}, {high}], got {self.threshold}: lower "
                "values give more pieces."
            )
        if self.max_pieces is not None:
            check_count("CoacdCfg.max_pieces", self.max_pieces, 1)
        check_count("CoacdCfg.seed", self.seed, 0)

    def settings(self) -> dict[str, object]:
        """Return all settings by name."""
        return dataclasses.asdict(self)
