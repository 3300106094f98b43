"""Configuration of the recorder of worlds that fail."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass


@dataclass
class NanGuardCfg:
    """Options of the recording, which is written to a file when a world fails."""

    enabled: bool = False
    buffer_size: int = 100
    """Number of `Simulation.step` calls to keep, at one state row per world and call."""
    output_dir: str | None = None
    """Folder of the files. None uses `nan_dumps` in the run's folder during training, else in the
    current folder."""
    max_envs_to_dump: int = 5
    """Maximum number of worlds in one file, if several fail in one call."""
    _: KW_ONLY
    max_dumps: int = 20
    """Maximum number of files; later failures are not written."""

    def check(self) -> None:
        """Check that the sizes are positive.

        Raises:
            ValueError: one is not; the message has its name, value and bound.
        """
        for name in ("buffer_size", "max_envs_to_dump", "max_dumps"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ValueError(
                    f"NanGuardCfg.{name} must be a whole number of at least 1, got {value!r}: "
                    "set enabled=False to disable recording."
                )
