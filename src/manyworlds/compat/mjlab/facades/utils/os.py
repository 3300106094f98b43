"""Files, with `dump_yaml` for any path and order of keys."""

from __future__ import annotations

from pathlib import Path

from manyworlds.utils import config


def dump_yaml(filename: str | Path, data: object, sort_keys: bool = False) -> None:
    """Write data or a config as YAML; a file name without the suffix `.yaml` gets it."""
    path = Path(filename)
    if path.suffix != ".yaml":
        path = path.with_name(f"{path.name}.yaml")
    path.parent.mkdir(parents=True, exist_ok=True)
    config.dump_yaml(path, data, sort_keys)
