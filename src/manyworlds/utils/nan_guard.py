"""Configuration of the guard that records worlds until they go bad."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(kw_only=True)
class NanGuardCfg:
    """What to record, and where to write it when a world goes bad."""

    enabled: bool = False
    buffer_size: int = 100
    """Calls of `Simulation.step` to remember; each takes one state row per world."""
    output_dir: str | None = None
    """Folder for the files. None takes `nan_dumps` in the run's folder while training, else in the
    current folder."""
    max_envs_to_dump: int = 5
    """Worlds to write into one file, when several go bad in one call."""
    max_dumps: int = 20
    """Files to write at most; worlds that go bad later leave none."""

    def check(self) -> None:
        """Refuse sizes that record nothing.

        Raises:
            ValueError: names the field, its value and the bound.
        """
        for name in ("buffer_size", "max_envs_to_dump", "max_dumps"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ValueError(
                    f"NanGuardCfg.{name} must be a whole number of at least 1, got {value!r}: "
                    "set enabled=False to record nothing."
                )
