"""Configs as plain data: to YAML and back."""

from __future__ import annotations

import dataclasses
import enum
from pathlib import Path
from typing import Any

import yaml

from manyworlds.utils.os import write_atomic


def to_plain(value: Any) -> Any:
    """Turn a config into dicts, lists, strings and numbers; functions become their names."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    if callable(value):
        module, name = getattr(value, "__module__", ""), getattr(value, "__qualname__", "")
        return f"{module}:{name}" if name else repr(value)
    return repr(value)


def update_from_plain(config: Any, plain: Any) -> Any:
    """Return `config` with the values of `plain`, where `to_plain` can express them.

    Dataclasses and dicts are updated in place, entry by entry. Functions and other objects stay
    as they are in `config`: only data is taken from outside.
    """
    if dataclasses.is_dataclass(config) and not isinstance(config, type):
        for name in {f.name for f in dataclasses.fields(config)} & set(plain or {}):
            setattr(config, name, update_from_plain(getattr(config, name), plain[name]))
        return config
    if isinstance(config, dict) and isinstance(plain, dict):
        for key in [key for key in config if str(key) in plain]:
            config[key] = update_from_plain(config[key], plain[str(key)])
        return config
    if isinstance(config, enum.Enum):
        return type(config)[plain]
    if isinstance(config, list | tuple) and isinstance(plain, list):
        if len(config) == len(plain):
            items = [update_from_plain(c, p) for c, p in zip(config, plain, strict=True)]
        else:
            items = plain
        return type(config)(items)
    if isinstance(config, bool | int | float | str) or config is None:
        return plain if isinstance(plain, bool | int | float | str | None) else config
    return config


def dump_yaml(path: Path, config: Any) -> None:
    """Write a config as YAML, whole or not at all."""
    write_atomic(path, yaml.safe_dump(to_plain(config), sort_keys=False))


def load_yaml(path: Path) -> Any:
    """Read YAML as plain data.

    Raises:
        ValueError: the file is not YAML.
    """
    try:
        return yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise ValueError(f"'{path}' is not valid YAML: {error}") from None
