"""Objects that tests of a project put in place of an environment, with what our managers need.

mjlab's managers and terms read little of their environment, so that a mock or a small class with
`num_envs`, `device` and a dictionary as scene is sufficient there.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

_BASE = "manyworlds.managers.manager_base"
_init: Callable[..., None] | None = None
"""Constructor of objects of an environment, as it was written, while it is replaced."""


class _Wrapper:
    """Object that has all attributes of another one, and some of its own."""

    def __init__(self, wrapped: Any) -> None:
        self._wrapped = wrapped

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wrapped, name)


class _Scene(_Wrapper):
    """Scene that may be a dictionary of entities and sensors."""

    def __init__(self, wrapped: Any, device: Any) -> None:
        super().__init__(wrapped)
        self.device = device

    @property
    def entities(self) -> Any:
        """Names and entities, or all that the scene has."""
        if isinstance(self._wrapped, dict):
            return self._wrapped
        return getattr(self._wrapped, "entities", {})

    def __getitem__(self, name: str) -> Any:
        return self._wrapped[name]

    def entity(self, name: str) -> Any:
        """Return an entity by name."""
        return self._wrapped[name]

    sensor = entity


class _Simulation(_Wrapper):
    """Simulation of which nothing is known but what the project's own object has."""

    def __init__(self, wrapped: Any, num_envs: int, device: Any) -> None:
        super().__init__(wrapped)
        self.num_envs = num_envs
        self.device = device
        self.world_to_variant: dict[str, Any] = {}

    @contextlib.contextmanager
    def outdating(self, env_ids: Any = None) -> Iterator[None]:
        """Do nothing."""
        yield

    def outdate(self, env_ids: Any = None) -> None:
        """Do nothing."""

    def restore_absent(self) -> None:
        """Do nothing."""

    def recompute_constants(self, level: Any, env_ids: Any = None) -> None:
        """Recompute what the object's own method does."""
        self._wrapped.recompute_constants(level)

    def recompute_level(self, fields: Any) -> Any:
        """Return the lowest level."""
        from manyworlds.sim import RecomputeLevel

        return RecomputeLevel.none


def attach() -> None:
    """Complete the environments of managers and terms that are made from now on."""
    global _init
    if _init is not None or _BASE not in sys.modules:
        return
    base = sys.modules[_BASE]._OfEnv
    written = base.__init__

    @functools.wraps(written)
    def initialize(self: object, env: Any) -> None:
        _complete(env)
        written(self, env)

    _init = written
    base.__init__ = initialize


def detach() -> None:
    """Undo `attach`."""
    global _init
    if _init is not None:
        sys.modules[_BASE]._OfEnv.__init__ = _init
        _init = None


def _complete(env: Any) -> None:
    """Give an object that is no environment of ours what managers and terms use."""
    import torch

    from manyworlds.scene import Scene
    from manyworlds.sim import Simulation
    from manyworlds.utils.world_random import WorldRandom

    if isinstance(getattr(env, "random_streams", None), WorldRandom):
        return
    env.random_streams = WorldRandom(env.num_envs, env.device)
    env.random = env.random_streams.stream("env")
    env.resetting = torch.zeros(env.num_envs, dtype=torch.bool, device=env.device)
    scene = getattr(env, "scene", None)
    if not isinstance(scene, Scene):
        env.scene = _Scene(scene, env.device)
    sim = getattr(env, "sim", None)
    if not isinstance(sim, Simulation):
        env.sim = _Simulation(sim, env.num_envs, env.device)
