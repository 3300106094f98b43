"""Methods of rsl_rl that have a second, faster implementation here, and a check that they are it.

A second implementation computes what rsl_rl's does. If the method was changed, by a newer version,
a fork, or a replacement at run time, the changed one must run.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import inspect
import types
import warnings
from collections.abc import Callable

_KNOWN = {  # SHA-256 of the sources in rsl_rl 5.5.0 and 5.5.1
    "70ae0e38b5fc39e24f62dd213753bd05c3663538c848b561893dd284bd07ecea",  # PPO.update
    "930a814dd21dd2003e6694fd8faeb1d91aecab7ae468741276b44860b6de5d47",  # PPO.act
    "0454dc3eb3ac68291fa35f644d50d9f4977b3c676c2479eeea3358232a0e8ee0",  # PPO.process_env_step
    "468c1e28dbb6c0ce13d7802a08ca091f649a35c3d4869818fbe925460089b240",  # Distillation.act
    "756bc69b9fc7dcacb91971fa446e589788b8a9fee997bd50fcb0f9f825b1c6c1",  # mini_batch_generator
    "0eecb2ae2f6b70073523491f73412638e1bf40a3b3d5283adcad33379f9c8b2b",  # Symmetry.compute_loss
}


def is_known(method: Callable[..., object]) -> bool:
    """Return True if a method of rsl_rl is the one that a second implementation stands for."""
    # Not `inspect.getsource(method)`, which shows what a decorator hides.
    code = getattr(method, "__code__", None)
    return isinstance(code, types.CodeType) and _digest(code) in _KNOWN


def warn_changed(name: str, effect: str) -> None:
    """Warn that a method was changed, and name the effect."""
    version = importlib.metadata.version("rsl-rl-lib")
    warnings.warn(
        f"rsl_rl's {name} is not that of the versions 5.5.0 and 5.5.1, but of {version} or "
        f"replaced at run time: {effect}.",
        stacklevel=3,
    )


@functools.cache
def _digest(code: types.CodeType) -> str | None:
    """Return a digest of a function's source; None if there is no source."""
    try:
        source = inspect.getsource(code)
    except OSError:
        return None
    return hashlib.sha256(source.encode()).hexdigest()
