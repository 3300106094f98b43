"""Random numbers keyed by world: functions of the seed, the world's id and its own history.

A world draws the same numbers in a batch of any size, whatever other worlds do, and alone in an
environment of its own. The generator is counter-based: number i of a stream is the output function
of SplitMix64 at `key + i * golden ratio`, where the key follows from the seed, the name of the
stream and the id of the world. The whole state is one counter for each stream and world.

Source: G. L. Steele, D. Lea and C. H. Flood, "Fast splittable pseudorandom number generators",
OOPSLA 2014.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import torch

from manyworlds.utils.state import Stateful

Bound: TypeAlias = "torch.Tensor | float"  # quoted: torch is loaded at its first use

_GOLDEN = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB
_WORD = 2**64
_UNIT = 2.0**-24  # a float32 has 24 bits
_CHUNK = 2**14  # numbers that are made at a time on a CPU, within its cache
_STEPS = np.arange(1, _CHUNK + 1, dtype=np.uint64) * np.uint64(_GOLDEN)


class RandomStream:
    """Random numbers of one term, in all worlds; `WorldRandom.stream` makes it.

    Each method draws numbers of a given shape for each of the worlds named. Their rows depend on
    these worlds alone.

    Args:
        name: name of the stream.
        num_envs: number of worlds.
        device: device of the numbers.
    """

    def __init__(self, name: str, num_envs: int, device: torch.device) -> None:
        self.name = name
        """Name of the stream."""
        with torch.inference_mode(False):
            self.keys = torch.zeros(num_envs, dtype=torch.long, device=device)
            """Key of each world, shape [num_envs]."""
            self.counters = torch.zeros_like(self.keys)
            """Numbers that each world has drawn, shape [num_envs]."""
        self._only: torch.Tensor | None = None
        self._on_host = device.type == "cpu"

    def uniform(
        self,
        low: Bound = 0.0,
        high: Bound = 1.0,
        shape: tuple[int, ...] = (),
        env_ids: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Draw from [low, high), shape [n, *shape].

        Args:
            low: lower bound; it broadcasts to the result.
            high: upper bound, likewise.
            shape: shape of the numbers of one world.
            env_ids: ids of the n worlds; None for all.
        """
        return low + (high - low) * self._unit(shape, env_ids)

    def log_uniform(
        self,
        low: Bound,
        high: Bound,
        shape: tuple[int, ...] = (),
        env_ids: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Draw from [low, high), uniform in the logarithm; bounds are positive; see `uniform`."""
        first, last = (torch.as_tensor(bound).log() for bound in (low, high))
        first = first.to(self.keys.device)
        last = last.to(self.keys.device)
        return self.uniform(first, last, shape, env_ids).exp()

    def normal(
        self,
        mean: Bound = 0.0,
        std: Bound = 1.0,
        shape: tuple[int, ...] = (),
        env_ids: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Draw from normal distributions, shape [n, *shape]; see `uniform`.

        Source: G. E. P. Box and M. E. Muller, "A note on the generation of random normal deviates"
        (1958).
        """
        count = math.prod(shape)
        pairs = (count + 1) // 2
        unit = self._unit((2, pairs), env_ids)
        # 1 - unit is never zero.
        radius = (-2.0 * torch.log1p(-unit[:, 0])).sqrt()
        angle = 2.0 * math.pi * unit[:, 1]
        both = torch.cat([radius * angle.cos(), radius * angle.sin()], dim=1)
        return mean + std * both[:, :count].reshape(len(both), *shape)

    def integers(
        self,
        low: int,
        high: int,
        shape: tuple[int, ...] = (),
        env_ids: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Draw integers from [low, high), int64, shape [n, *shape]; see `uniform`."""
        unit = self._unit(shape, env_ids)
        return low + (unit * (high - low)).long().clamp_(max=max(high - low - 1, 0))

    def choice(self, weights: torch.Tensor, env_ids: torch.Tensor | None = None) -> torch.Tensor:
        """Draw indices with relative frequencies, int64, shape [n].

        Args:
            weights: relative frequencies, shape [k], or [n, k] where each world has its own.
            env_ids: ids of the n worlds; None for all.
        """
        edges = weights.cumsum(-1)
        whole = edges[..., -1:]
        last = (edges < whole).sum(-1)  # the last one whose frequency is not zero
        unit = self._unit((1,), env_ids)
        drawn = torch.searchsorted(edges, unit * whole, right=True).squeeze(-1)
        return torch.minimum(drawn, last)

    @contextlib.contextmanager
    def only(self, worlds: torch.Tensor) -> Iterator[None]:
        """Let draws for all worlds move some worlds alone, those of a mask of shape [num_envs]."""
        before = self._only
        self._only = worlds
        yield
        self._only = before

    def _unit(self, shape: tuple[int, ...], env_ids: torch.Tensor | None) -> torch.Tensor:
        """Draw uniformly from [0, 1), float32, shape [n, *shape]."""
        count = math.prod(shape)
        make = _unit_on_host if self._on_host else _unit_on_device
        drawn = make(self.keys, self.counters, count, env_ids)
        if env_ids is not None:
            self.counters[env_ids] += count
        elif self._only is not None:
            self.counters += count * self._only
        else:
            self.counters += count
        return drawn.view(len(drawn), *shape)


class WorldRandom(Stateful):
    """Streams of random numbers of the worlds of a batch.

    Args:
        num_envs: number of worlds.
        device: device of the numbers.
        seed: the seed.
        first_world: id of the first world; processes that share a batch have worlds of their own.
    """

    def __init__(
        self, num_envs: int, device: torch.device | str, seed: int = 0, first_world: int = 0
    ) -> None:
        self._num_envs = num_envs
        self._device = torch.device(device)
        self.seed = seed
        """The seed."""
        with torch.inference_mode(False):
            worlds = torch.arange(first_world, first_world + num_envs, device=self._device)
            self.world_ids = worlds
            """Ids of the worlds, shape [num_envs]. A fork keeps that which its world had."""
        self.streams: dict[str, RandomStream] = {}
        """Streams by name."""

    def stream(self, name: str) -> RandomStream:
        """Return the stream of a name, the same one at each call."""
        found = self.streams.get(name)
        if found is None:
            found = RandomStream(name, self._num_envs, self._device)
            self.streams[name] = found
            self._set_keys(found)
        return found

    def reseed(self, seed: int) -> None:
        """Begin all streams again with another seed."""
        self.seed = seed
        for stream in self.streams.values():
            self._set_keys(stream)
            stream.counters.zero_()

    def saved_values(self) -> dict[str, object]:
        """Return the seed, the ids of the worlds, and the counters by name of their stream."""
        counters = {name: stream.counters for name, stream in self.streams.items()}
        return {"seed": self.seed, "world_ids": self.world_ids, "counters": counters}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state that `state_dict` returned; streams that it lacks begin again."""
        self.world_ids.copy_(state["world_ids"])
        self.reseed(state["seed"])
        for name, counters in state["counters"].items():
            self.stream(name).counters.copy_(counters)

    def _set_keys(self, stream: RandomStream) -> None:
        digest = hashlib.blake2b(stream.name.encode(), digest_size=8).digest()
        key = _mixed(np.array([self.seed % _WORD], np.uint64))
        key = _mixed(key + np.uint64(int.from_bytes(digest, "little")))
        ids = self.world_ids.cpu().numpy().astype(np.uint64)
        keys = _mixed(key + (ids + np.uint64(1)) * np.uint64(_GOLDEN))
        stream.keys.copy_(torch.from_numpy(keys.view(np.int64)))


def _mixed(bits: np.ndarray) -> np.ndarray:
    """Replace unsigned numbers by the output function of SplitMix64 at them."""
    bits ^= bits >> np.uint64(30)
    bits *= np.uint64(_FIRST)
    bits ^= bits >> np.uint64(27)
    bits *= np.uint64(_SECOND)
    bits ^= bits >> np.uint64(31)
    return bits


def _unit_on_host(
    keys: torch.Tensor, counters: torch.Tensor, count: int, env_ids: torch.Tensor | None
) -> torch.Tensor:
    """Make numbers in [0, 1) on the CPU, shape [n, count]; NumPy is the quickest there."""
    start = keys.numpy().view(np.uint64)
    drawn = counters.numpy().view(np.uint64)
    if env_ids is not None:
        ids = env_ids.numpy()
        start = start[ids]
        drawn = drawn[ids]
    start = start + drawn * np.uint64(_GOLDEN)
    steps = _STEPS[:count]
    if count > _CHUNK:
        steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_GOLDEN)
    made = np.empty((len(start), count), np.float32)
    rows = max(1, _CHUNK // max(count, 1))
    for first in range(0, len(start), rows):
        bits = _mixed(start[first : first + rows, None] + steps)
        bits >>= np.uint64(64 - 24)
        np.multiply(bits, np.float32(_UNIT), out=made[first : first + rows], casting="unsafe")
    return torch.from_numpy(made)


def _unit_on_device(
    keys: torch.Tensor, counters: torch.Tensor, count: int, env_ids: torch.Tensor | None
) -> torch.Tensor:
    """Make the same numbers where the worlds are, without a wait for the host."""
    if env_ids is not None:
        keys = keys[env_ids]
        counters = counters[env_ids]
    steps = torch.arange(1, count + 1, device=keys.device)
    bits = keys[:, None] + (counters[:, None] + steps) * _signed(_GOLDEN)
    bits ^= _shifted(bits, 30)
    bits *= _signed(_FIRST)
    bits ^= _shifted(bits, 27)
    bits *= _signed(_SECOND)
    bits ^= _shifted(bits, 31)
    return _shifted(bits, 64 - 24).float() * _UNIT


def _shifted(bits: torch.Tensor, count: int) -> torch.Tensor:
    """Shift to the right as unsigned numbers; PyTorch has signed ones alone."""
    return (bits >> count) & (2 ** (64 - count) - 1)


def _signed(value: int) -> int:
    """Return the signed number with the bits of an unsigned one."""
    return value - _WORD if value >= _WORD // 2 else value
