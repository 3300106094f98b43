"""Comparison of compiled models, field by field, and model files of installed packages."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import mujoco
import numpy as np
import pytest

from tests.robots import robot_file

ALLOWED = {
    "paths": "texts of the paths of files, which an export renames",
    "npaths": "length of these texts",
    "nbuffer": "size of the memory that includes these texts",
    "signature": "hash of the spec, which includes these texts",
}
"""Fields in which an exported model may differ, and why; so may addresses of paths."""


def differences(model: mujoco.MjModel, expected: mujoco.MjModel) -> list[str]:
    """Return the fields of two models, and of their options, that are not equal bit for bit."""
    found: list[str] = []
    compared = 0
    for part in ("", "opt", "vis", "stat"):
        a, b = (getattr(m, part) if part else m for m in (model, expected))
        skip = () if part else ALLOWED
        for name in dir(b):
            if name.startswith("_") or name in skip or name.endswith("pathadr"):
                continue
            found += [
                f"{part}.{name}{tail}" for tail in _differences(getattr(a, name), getattr(b, name))
            ]
            compared += 1
    assert compared > 400
    return found


def _differences(a: object, b: object) -> Iterator[str]:
    if isinstance(b, np.ndarray):
        if not np.array_equal(a, b, equal_nan=b.dtype.kind == "f"):
            yield ""
    elif isinstance(b, bytes | int | float | str):
        if a != b:
            yield ""
    elif not callable(b):
        for name in dir(b):
            if not name.startswith("_"):
                yield from (
                    f".{name}{tail}" for tail in _differences(getattr(a, name), getattr(b, name))
                )


def assert_same(model: mujoco.MjModel, expected: mujoco.MjModel) -> None:
    """Require that two models are equal, bit for bit."""
    assert differences(model, expected) == []


def model_files(package: str) -> list[Path]:
    """Return the XML files of an installed package; empty if it is not installed."""
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        return []
    return sorted(Path(found.submodule_search_locations[0]).rglob("*.xml"))


def find_model(name: str) -> Path:
    """Return a model file such as `dm_control:suite/dog.xml`, or skip the test that asks for it."""
    package, _, path = name.partition(":")
    if package == "robots":
        return robot_file(path)
    if package == "here":
        return Path(__file__).with_name("data") / path
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        pytest.skip(f"needs {package}")
    return Path(found.submodule_search_locations[0]) / path
