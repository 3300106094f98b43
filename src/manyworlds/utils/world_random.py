"""Random numbers keyed by world: functions of the seed, the world's id and its own history.

A world draws the same numbers in a batch of any size, whatever other worlds do, and alone in an
environment of its own. Each world has a generator SplitMix64 for each stream of numbers: a 64-bit
state, which each number moves by the golden ratio, and a function that mixes the state. States
begin as functions of the seed, the name of the stream and the id of the world.

Source: G. L. Steele, D. Lea and C. H. Flood, "Fast splittable pseudorandom number generators",
OOPSLA 2014.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch

from manyworlds.utils.state import Stateful
from manyworlds.validation.host_reads import reads_are_free
from manyworlds.validation.worlds import Worlds, takes_worlds

_Bound: TypeAlias = "torch.Tensor | float"  # quoted: torch is loaded at its first use

_GOLDEN = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB
_WORD = 2**64
_BITS = 24  # of a float32
_UNIT = 2.0**-_BITS
_ROWS = 16  # of the table of states at first
_CHUNK = 2**14  # numbers that are made at a time on a CPU, within its cache

# NumPy converts a Python number at each use, which takes longer than the operation on few numbers.
_HOST_GOLDEN = np.uint64(_GOLDEN)
_HOST_FIRST = np.uint64(_FIRST)
_HOST_SECOND = np.uint64(_SECOND)
_HOST_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
_HOST_LAST_SHIFT = np.uint64(64 - _BITS)
_HOST_ONE = np.float32(1.0)
_HOST_UNIT = np.float32(_UNIT)
_HOST_MINUS_TWO = np.float32(-2.0)
_HOST_TURN = np.float32(2.0 * math.pi)
_HOST_STEPS = np.arange(1, _CHUNK + 1, dtype=np.uint64) * _HOST_GOLDEN


class RandomStream:
    """Random numbers of one term, in all worlds; `WorldRandom.stream` makes it.

    Each method draws numbers of a given shape for each of the worlds named. Their rows depend on
    these worlds alone.

    Args:
        owner: the streams of the batch.
        name: name of the stream.
        shared: whether all worlds share the numbers, which then have one row.
        states: state of each world's generator, shape [num_envs], or [1] if they share it.
    """

    def __init__(self, owner: WorldRandom, name: str, shared: bool, states: torch.Tensor) -> None:
        self.name = name
        """Name of the stream."""
        self.is_shared = shared
        """True if all worlds share the numbers."""
        self._owner = owner
        self.use(states)

    def use(self, states: torch.Tensor) -> None:
        """Keep the states in a tensor, which remains the caller's, shape [num_envs]."""
        self.states = states
        """State of each world's generator, shape [num_envs]."""
        self._host: np.ndarray | None = None
        if reads_are_free(states.device):
            self._host = states.numpy().view(np.uint64)

    @takes_worlds
    def uniform(
        self,
        low: _Bound = 0.0,
        high: _Bound = 1.0,
        shape: tuple[int, ...] = (),
        env_ids: Worlds | torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Draw from [low, high), shape [n, *shape].

        Args:
            low: lower bound; it broadcasts to the result.
            high: upper bound, likewise.
            shape: shape of the numbers of one world.
            env_ids: ids of the n worlds, or `Worlds`; or a mask of shape [num_envs], which draws
                for all worlds and moves the streams of its worlds alone; None for all.
        """
        return low + (high - low) * self._unit(shape, env_ids)

    @takes_worlds
    def log_uniform(
        self,
        low: _Bound,
        high: _Bound,
        shape: tuple[int, ...] = (),
        env_ids: Worlds | torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Draw from [low, high), uniform in the logarithm; bounds are positive; see `uniform`."""
        first, last = (torch.as_tensor(bound).log() for bound in (low, high))
        first = first.to(self.states.device)
        last = last.to(self.states.device)
        return self.uniform(first, last, shape, env_ids).exp()

    @takes_worlds
    def normal(
        self,
        mean: _Bound = 0.0,
        std: _Bound = 1.0,
        shape: tuple[int, ...] = (),
        env_ids: Worlds | torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Draw from normal distributions, shape [n, *shape]; see `uniform`.

        Source: G. E. P. Box and M. E. Muller, "A note on the generation of random normal deviates"
        (1958).
        """
        count = math.prod(shape)
        unit = self._unit((2, (count + 1) // 2), env_ids)
        if self._host is not None:
            both = _normal_on_host(unit)
        else:
            both = _normal_on_device(unit)
        return mean + std * both[:, :count].view(len(both), *shape)

    def integers(
        self,
        low: int,
        high: int,
        shape: tuple[int, ...] = (),
        env_ids: Worlds | torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Draw integers from [low, high), int64, shape [n, *shape]; see `uniform`."""
        unit = self._unit(shape, env_ids)
        return low + (unit * (high - low)).long().clamp_(max=max(high - low - 1, 0))

    def choice(
        self, weights: torch.Tensor, env_ids: Worlds | torch.Tensor | None = None
    ) -> torch.Tensor:
        """Draw indices with relative frequencies, int64, shape [n].

        Args:
            weights: relative frequencies, shape [k], or [n, k] where each world has its own.
            env_ids: ids or mask of the worlds; see `uniform`.
        """
        edges = weights.cumsum(-1)
        whole = edges[..., -1:]
        last = (edges < whole).sum(-1)  # the last one whose frequency is not zero
        unit = self._unit((1,), env_ids)
        drawn = torch.searchsorted(edges, unit * whole, right=True).squeeze(-1)
        return torch.minimum(drawn, last)

    def _unit(self, shape: tuple[int, ...], env_ids: Worlds | torch.Tensor | None) -> torch.Tensor:
        """Draw uniformly from [0, 1), float32, shape [n, *shape]."""
        if isinstance(env_ids, Worlds):
            env_ids = env_ids.mask if env_ids.is_masked else env_ids.ids_or_none
        count = math.prod(shape)
        moving = self._owner.moving
        if self.is_shared:
            moving = None
        if env_ids is not None and env_ids.dtype == torch.bool:
            moving = env_ids if moving is None else env_ids & moving
            env_ids = None
        if moving is not None and env_ids is not None:
            moving = moving[env_ids]
        if self._host is None:
            drawn = self._draw_on_device(count, env_ids, moving)
            return drawn.view(len(drawn), *shape)
        # On the CPU NumPy is quickest.
        host = self._host
        ids: np.ndarray | None = None
        start = host
        if env_ids is not None:
            ids = env_ids.numpy()
            start = host[ids]
        steps = _HOST_STEPS
        if count > _CHUNK:
            steps = np.arange(1, count + 1, dtype=np.uint64) * _HOST_GOLDEN
        made = np.empty((len(start), count), np.float32)
        rows = max(1, _CHUNK // max(count, 1))
        for first in range(0, len(start), rows):
            bits = _mixed(start[first : first + rows, None] + steps[:count])
            bits >>= _HOST_LAST_SHIFT
            made[first : first + rows] = bits
        made *= _HOST_UNIT
        if count:
            moved = steps[count - 1]
            if moving is not None:
                moved = moved * moving.numpy()
            if ids is None:
                host += moved
            else:
                host[ids] += moved
        return torch.from_numpy(made).view(len(made), *shape)

    def _draw_on_device(
        self, count: int, env_ids: torch.Tensor | None, moving: torch.Tensor | None
    ) -> torch.Tensor:
        """Draw uniformly without a wait for the host, shape [n, count].

        Args:
            count: how many numbers of each world.
            env_ids: ids of the n worlds; None for all.
            moving: mask of those whose streams move, shape [n]; None for all.
        """
        start = self.states
        if env_ids is not None:
            start = start[env_ids]
        drawn = _unit_on_device(start, count)  # before the states move
        way: torch.Tensor | int = _signed(count * _GOLDEN % _WORD)
        if moving is not None:
            way = way * moving
        if env_ids is None:
            self.states += way
        else:
            self.states[env_ids] += way
        return drawn


class WorldRandom(Stateful):
    """Streams of random numbers of the worlds of a batch.

    Args:
        num_envs: number of worlds.
        device: device of the numbers.
        seed: the seed.
        world_ids: ids of the worlds, of which the parts of a batch have their own; None counts
            from 0.
    """

    derived_attributes = ("streams", "moving")
    world_columns = ("states",)
    shared_attributes = ("shared",)

    def __init__(
        self,
        num_envs: int,
        device: torch.device | str,
        seed: int = 0,
        world_ids: Sequence[int] | None = None,
    ) -> None:
        if world_ids is None:
            world_ids = range(num_envs)
        self.seed = seed
        """The seed."""
        with torch.inference_mode(False):
            self.world_ids = torch.tensor(world_ids, dtype=torch.long)
            """Ids of the worlds, on the host, shape [num_envs]. A fork keeps its world's."""
            self._states = torch.zeros(_ROWS, num_envs, dtype=torch.long, device=device)
        self.streams: dict[str, RandomStream] = {}
        """Streams by name."""
        self.moving: torch.Tensor | None = None
        """Mask of the worlds whose streams move; None for all. See `only`."""

    def stream(self, name: str, shared: bool = False) -> RandomStream:
        """Return the stream of a name, the same one at each call.

        Args:
            name: the name.
            shared: whether all worlds share the numbers, which then have one row.
        """
        found = self.streams.get(name)
        if found is None:
            if shared:
                states = torch.zeros_like(self._states[0, :1])
            else:
                states = self._next_row()
            found = RandomStream(self, name, shared, states)
            self.streams[name] = found
            self._begin(found)
        return found

    @contextlib.contextmanager
    def only(self, worlds: torch.Tensor) -> Iterator[None]:
        """Let draws move the streams of some worlds alone, where all are drawn but few are used.

        Args:
            worlds: mask of the worlds that use their numbers, shape [num_envs].
        """
        before = self.moving
        self.moving = worlds
        try:
            yield
        finally:
            self.moving = before

    def reseed(self, seed: int) -> None:
        """Begin all streams again with another seed."""
        self.seed = seed
        for stream in self.streams.values():
            self._begin(stream)

    def saved_values(self) -> dict[str, object]:
        """Return the seed, the ids of the worlds, and the states with the names of streams."""
        own = self._own()
        shared = [stream for stream in self.streams.values() if stream.is_shared]
        return {
            "seed": self.seed,
            "world_ids": self.world_ids,
            "names": [stream.name for stream in own],
            "states": self._states[: len(own)],
            "shared": {stream.name: stream.states for stream in shared},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state that `state_dict` returned; streams that it lacks begin."""
        self.world_ids.copy_(state["world_ids"])
        self.reseed(state["seed"])
        for name, states in zip(state["names"], state["states"], strict=True):
            self.stream(name).states.copy_(states)
        for name, states in state["shared"].items():
            self.stream(name, shared=True).states.copy_(states)

    def go_back(self, state: dict[str, Any]) -> None:
        """Restore a state, and drop the streams begun since then, whose terms are gone."""
        known = {*state["names"], *state["shared"]}
        self.streams = {name: stream for name, stream in self.streams.items() if name in known}
        self.load_state_dict(state)

    def _own(self) -> list[RandomStream]:
        """Return the streams that have numbers for each world, in the order of the table."""
        return [stream for stream in self.streams.values() if not stream.is_shared]

    def _next_row(self) -> torch.Tensor:
        """Return the next row of the table of states, which is saved at once."""
        own = self._own()
        if len(own) == len(self._states):
            with torch.inference_mode(False):
                self._states = torch.cat([self._states, torch.zeros_like(self._states)])
            for other, states in zip(own, self._states, strict=False):
                other.use(states)
        return self._states[len(own)]

    def _begin(self, stream: RandomStream) -> None:
        """Set the states of a stream to where the seed begins it."""
        digest = hashlib.blake2b(stream.name.encode(), digest_size=8).digest()
        start = _mixed(np.array([self.seed % _WORD], np.uint64))
        start = _mixed(start + np.uint64(int.from_bytes(digest, "little")))
        if not stream.is_shared:
            ids = self.world_ids.numpy().astype(np.uint64)
            start = _mixed(start + (ids + np.uint64(1)) * _HOST_GOLDEN)
        stream.states.copy_(torch.from_numpy(start.view(np.int64)))


def _mixed(bits: np.ndarray) -> np.ndarray:
    """Replace unsigned numbers by the output function of SplitMix64 at them."""
    first, second, third = _HOST_SHIFTS
    shifted = bits >> first
    bits ^= shifted
    bits *= _HOST_FIRST
    np.right_shift(bits, second, out=shifted)
    bits ^= shifted
    bits *= _HOST_SECOND
    np.right_shift(bits, third, out=shifted)
    bits ^= shifted
    return bits


def _normal_on_host(unit: torch.Tensor) -> torch.Tensor:
    """Turn uniform numbers into normal ones, [n, 2, pairs] into [n, 2 * pairs]."""
    first, second = unit.numpy().transpose(1, 0, 2)
    radius = np.sqrt(_HOST_MINUS_TWO * np.log(_HOST_ONE - first))  # 1 - first is never zero
    angle = _HOST_TURN * second
    return torch.from_numpy(np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], 1))


def _normal_on_device(unit: torch.Tensor) -> torch.Tensor:
    first, second = unit.unbind(1)
    radius = (-2.0 * (1.0 - first).log()).sqrt()
    angle = 2.0 * math.pi * second
    return torch.cat([radius * angle.cos(), radius * angle.sin()], dim=1)


def _unit_on_device(start: torch.Tensor, count: int) -> torch.Tensor:
    """Make the numbers where the worlds are, without a wait for the host, shape [n, count]."""
    steps = torch.arange(1, count + 1, device=start.device) * _signed(_GOLDEN)
    bits = start[:, None] + steps
    bits ^= _shifted(bits, 30)
    bits *= _signed(_FIRST)
    bits ^= _shifted(bits, 27)
    bits *= _signed(_SECOND)
    bits ^= _shifted(bits, 31)
    return _shifted(bits, 64 - _BITS).float() * _UNIT


def _shifted(bits: torch.Tensor, count: int) -> torch.Tensor:
    """Shift to the right as unsigned numbers; PyTorch has signed ones alone."""
    return (bits >> count) & (2 ** (64 - count) - 1)


def _signed(value: int) -> int:
    """Return the signed number with the bits of an unsigned one."""
    return value - _WORD if value >= _WORD // 2 else value
