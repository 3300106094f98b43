"""Loading of torch's compiler."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

_NAME = "torch._dynamo"


@contextlib.contextmanager
def without_torch_compiler() -> Iterator[None]:
    """Let modules and optimizers load without torch's compiler, which takes more than a second.

    tensordict and torch's optimizers load it only to mark functions that it must not compile. Here,
    such functions stay as they are. What else is asked of the compiler loads it, here and later.
    """
    if _NAME in sys.modules:
        yield
        return
    sys.modules[_NAME] = stand_in = _StandIn(_NAME)
    try:
        yield
    finally:
        if sys.modules.get(_NAME) is stand_in:
            del sys.modules[_NAME]


class _StandIn(ModuleType):
    """Takes the place of the compiler for functions that mark others."""

    @staticmethod
    def disable(fn: Callable[..., Any], *_: object, **__: object) -> Callable[..., Any]:
        return fn

    @staticmethod
    def allow_in_graph(fn: Callable[..., Any]) -> Callable[..., Any]:
        return fn

    @staticmethod
    def assume_constant_result(fn: Callable[..., Any]) -> Callable[..., Any]:
        return fn

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # of modules as such
            raise AttributeError(name)
        if sys.modules.get(_NAME) is self:
            del sys.modules[_NAME]
        return getattr(importlib.import_module(_NAME), name)
