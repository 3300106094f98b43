"""Conversion of configs to plain data and YAML, and back."""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import yaml

from manyworlds.utils.files import write_atomic

Plain: TypeAlias = "dict[str, Plain] | list[Plain] | str | float | None"
"""Plain data, as YAML and JSON hold it; numbers include integers and booleans."""
_T = TypeVar("_T")
_ABSENT = object()
_YAML_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, if it is there


def to_plain(value: object) -> Plain:
    """Convert a config to dicts, lists, strings and numbers; functions become their names."""
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
    if isinstance(value, functools.partial):
        given = [*map(repr, value.args), *(f"{k}={v!r}" for k, v in value.keywords.items())]
        return _anywhere(f"{to_plain(value.func)}({', '.join(given)})")
    if callable(value) and (name := getattr(value, "__qualname__", "")):
        return f"{getattr(value, '__module__', '')}:{name}"
    return _anywhere(repr(value))


def finite_or_none(plain: object) -> object:
    """Return plain data with None for numbers that are not finite, which JSON cannot store."""
    if isinstance(plain, dict):
        return {key: finite_or_none(item) for key, item in plain.items()}
    if isinstance(plain, list | tuple):
        return [finite_or_none(item) for item in plain]
    if isinstance(plain, float) and not math.isfinite(plain):
        return None
    return plain


def _anywhere(text: str) -> str:
    """Remove memory addresses, so that the text of an object is the same in each process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


def update_from_plain(config: _T, plain: object) -> _T:
    """Return `config` with the values of `plain`, as `to_plain` returned them.

    Dataclasses and the dicts that contain them are updated in place, entry by entry; other values
    are replaced. Functions and other objects are kept: only data is restored.

    Warns:
        UserWarning: the code has a different function than the saved config.

    Raises:
        ValueError: a value cannot be restored, since the code no longer has such an entry.
    """
    updated = _update(config, plain)
    for path, new, saved in _differences(to_plain(updated), plain):
        if isinstance(new, str) and isinstance(saved, str) and ":" in new and ":" in saved:
            warnings.warn(f"The saved configuration has '{saved}' as {path}, the code '{new}'.")
            continue
        raise ValueError(
            f"Cannot restore '{path}' of the saved configuration: the code no longer has it. "
            "Commands with --from-file take the settings of the task as it is now."
        )
    return updated


def _update(config: Any, plain: Any) -> Any:
    if plain is None:
        return None
    if plain == to_plain(config):
        return config
    if dataclasses.is_dataclass(config) and not isinstance(config, type):
        for name in {f.name for f in dataclasses.fields(config)} & set(plain):
            setattr(config, name, _update(getattr(config, name), plain[name]))
        return config
    if isinstance(config, dict) and isinstance(plain, dict):
        if any(map(_holds_code, config.values())):
            for key in [key for key in config if str(key) in plain]:
                config[key] = _update(config[key], plain[str(key)])
            return config
        return {key: _data(value) for key, value in plain.items()}
    if isinstance(config, enum.Enum):
        return type(config)[plain]
    if isinstance(config, list | tuple) and isinstance(plain, list):
        if any(map(_holds_code, config)) and len(config) == len(plain):
            return type(config)(_update(c, p) for c, p in zip(config, plain, strict=True))
        return type(config)(_data(value) for value in plain)
    if _holds_code(config):
        return config
    return _data(plain)


def _holds_code(value: object) -> bool:
    """Return whether a value contains more than data, so that it cannot be restored."""
    if isinstance(value, dict):
        return any(map(_holds_code, value.values()))
    return not isinstance(value, bool | int | float | str | list | tuple | None)


def _data(plain: Any) -> Any:
    """Convert lists to tuples, as configs use them."""
    if isinstance(plain, dict):
        return {key: _data(value) for key, value in plain.items()}
    if isinstance(plain, list):
        return tuple(_data(value) for value in plain)
    return plain


def _differences(
    new: object, saved: object, path: str = ""
) -> Iterator[tuple[str, object, object]]:
    """Yield path, present and saved value of each saved entry that differs."""
    if isinstance(new, dict) and isinstance(saved, dict):
        for key, value in saved.items():
            yield from _differences(new.get(key, _ABSENT), value, f"{path}.{key}".lstrip("."))
    elif new != saved and not (new != new and saved != saved):
        yield path, new, saved


def describe_differences(
    here: Plain, there: Plain, where: tuple[str, str], path: str = ""
) -> Iterator[str]:
    """Yield a line for each entry in which nested dicts differ, and for each that one lacks.

    Args:
        here: the one.
        there: the other.
        where: where the one and the other apply, as text: `("here", "in training")`.
        path: path of both, before each entry's name.
    """
    if not (isinstance(here, dict) and isinstance(there, dict)):
        if here != there:
            yield f"{path}: {here}, {where[1]} {there}"
        return
    for key in dict.fromkeys((*there, *here)):
        inner = f"{path}.{key}".lstrip(".")
        if key in here and key in there:
            yield from describe_differences(here[key], there[key], where, inner)
        elif key in here:
            yield f"{inner}: only {where[0]}"
        else:
            yield f"{inner}: only {where[1]}"


def flatten(plain: object, prefix: str = "") -> dict[str, object]:
    """Return the values of nested dicts by their paths, such as `sim.mujoco.timestep`."""
    if not isinstance(plain, dict) or not plain:
        return {prefix: plain}
    parts = (flatten(value, f"{prefix}.{key}".lstrip(".")) for key, value in plain.items())
    return {path: value for part in parts for path, value in part.items()}


def dump_yaml(filename: Path, data: object, sort_keys: bool = False) -> None:
    """Write a config as YAML, atomically.

    Args:
        filename: the file.
        data: the config: a dataclass, or plain data.
        sort_keys: True to write the entries in alphabetical order.
    """
    write_atomic(Path(filename), yaml.safe_dump(to_plain(data), sort_keys=sort_keys))


def load_yaml(path: Path) -> Any:
    """Read YAML as plain data.

    Raises:
        ValueError: the file is not YAML.
    """
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_YAML_LOADER)
    except yaml.YAMLError as error:
        raise ValueError(f"'{path}' is not valid YAML: {error}") from None
