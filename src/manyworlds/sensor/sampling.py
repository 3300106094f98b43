"""Sampling of sensors, with an update period, latency, and noise."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import torch

from manyworlds.signals import NoiseModelCfg
from manyworlds.utils.state import Stateful, changing_only, fields_of, is_dataclass
from manyworlds.utils.world_random import WorldRandom
from manyworlds.validation.host_reads import reads_are_free
from manyworlds.validation.worlds import EnvIds, Worlds

if TYPE_CHECKING:
    from manyworlds.sensor.sensor import SensorCfg

# Tolerance for rounding errors in sample times.
_TOLERANCE = 1e-6
T = TypeVar("T")


def is_multiple(value: float, unit: float) -> bool:
    """Return whether a positive time is a whole number of units, except for rounding."""
    count = value / unit
    return round(count) >= 1 and abs(count - round(count)) < _TOLERANCE


def leaves(data: object) -> dict[str, torch.Tensor]:
    """Return the tensors of a sample, each (num_envs, ...), by field; a lone tensor has name ''."""
    if isinstance(data, torch.Tensor):
        return {"": data}
    if not is_dataclass(data):
        raise TypeError(
            f"A sample is a tensor or a dataclass of tensors, got {type(data).__name__}."
        )
    values = fields_of(data)
    return {name: value for name, value in values.items() if isinstance(value, torch.Tensor)}


def with_leaves(data: T, tensors: dict[str, torch.Tensor]) -> T:
    """Return a sample like `data` with other tensors."""
    if is_dataclass(data):
        return cast("T", dataclasses.replace(data, **tensors))
    return cast("T", tensors[""])


class Sampler(Stateful, Generic[T]):
    """Stores and delivers the samples of one sensor, with a separate clock for each world.

    A few samples of each world are stored with their ages. The youngest one that is at least as old
    as the world's latency is delivered, or the first one of the episode if none is. No decision is
    made on the host, except on the CPU, where steps without due samples are skipped.

    Args:
        cfg: the sensor's options.
        noise_fields: fields to which noise is added; None for all.
        sample: a first sample, without options, which defines the shapes.
        random: random numbers of the worlds; None makes some of its own.
    """

    state_attributes = ("_age", "_latency", "_samples", "_noise")

    def __init__(
        self,
        cfg: SensorCfg,
        noise_fields: tuple[str, ...] | None,
        sample: T,
        random: WorldRandom | None = None,
    ) -> None:
        self._cfg = cfg
        self._like = sample
        tensors = leaves(sample)
        first = next(iter(tensors.values()))
        num_envs = len(first)
        device = first.device
        self._min_latency, self._max_latency = cfg.latency_range
        self._interval = max(cfg.update_period * (1 - _TOLERANCE), 1e-9)
        self._samples: dict[str, torch.Tensor] = {}
        with torch.inference_mode(False):
            self._rows = torch.arange(num_envs, device=device)
            self._age = torch.full(
                (num_envs, 1), math.inf, dtype=torch.float64, device=device
            )  # age of each sample [s]; infinite if there is none
            self._latency = self._age.new_full((num_envs,), self._min_latency)
            for name, tensor in tensors.items():
                self._samples[name] = tensor.new_zeros(num_envs, 1, *tensor.shape[1:])
        self._noise = {}
        if cfg.noise is not None:
            model = cfg.noise
            if not isinstance(model, NoiseModelCfg):
                model = NoiseModelCfg(noise_cfg=model)
            self._noise = {
                name: model.class_type(model, num_envs, device)
                for name, tensor in tensors.items()
                if tensor.is_floating_point() and (noise_fields is None or name in noise_fields)
            }
        if random is None:
            random = WorldRandom(num_envs, device)
        self._random = random
        self._latencies = self._random.stream(f"sensors/{cfg.name}/latency")
        for name, noise_model in self._noise.items():
            noise_model.draw_from(self._random, f"sensors/{cfg.name}/noise of {name}")
        self._draw_latency(torch.ones_like(self._rows, dtype=torch.bool))

    def reset(self, env_ids: EnvIds) -> None:
        """Discard the samples of the given worlds and draw their latencies; new samples are due."""
        worlds = Worlds.of(env_ids, len(self._rows), self._rows.device)
        self._draw_latency(self.expire(worlds))
        for model in self._noise.values():
            model.reset(worlds.for_term(model.reset))

    def expire(self, env_ids: EnvIds) -> torch.Tensor:
        """Discard the samples of the given worlds; return their mask, shape [num_envs]."""
        worlds = Worlds.of(env_ids, len(self._rows), self._rows.device).mask
        self._age.masked_fill_(worlds[:, None], math.inf)
        return worlds

    def advance(self, dt: float) -> None:
        """Increase the age of all samples by `dt` [s]."""
        if dt == 0.0:
            return
        self._age += dt
        spacing = max(self._cfg.update_period, dt)
        self._grow(math.ceil(self._max_latency / spacing - _TOLERANCE) + 1)

    def is_due(self, dt: float) -> bool:
        """Return whether a world that has samples may be due for another one in `dt` [s].

        On a GPU, where the host would wait for the answer, it may always be.
        """
        if not reads_are_free(self._age.device) or self._cfg.update_period <= dt:
            return True
        youngest = self._age.amin(dim=1)
        return bool((youngest.isfinite() & (youngest + dt >= self._interval)).any())

    def take(self, compute: Callable[[], T], first: bool = True) -> None:
        """Take a sample in the worlds in which one is due.

        Args:
            compute: function that measures all worlds.
            first: take the first samples of episodes, too.
        """
        youngest = self._age.amin(dim=1)
        due = youngest >= self._interval
        if not first:
            due &= youngest.isfinite()
        if reads_are_free(due.device) and not due.any():
            return
        oldest = self._age.argmax(dim=1)
        for name, tensor in leaves(compute()).items():
            if name in self._noise:
                with changing_only(self._noise[name], due), self._random.only(due):
                    tensor = self._noise[name](tensor)
            kept = self._samples[name]
            mask = due.view(-1, *[1] * (tensor.ndim - 1))
            kept[self._rows, oldest] = torch.where(mask, tensor, kept[self._rows, oldest])
        age = self._age[self._rows, oldest]
        self._age[self._rows, oldest] = torch.where(due, torch.zeros_like(age), age)

    def deliver(self) -> T:
        """Return the sample that each world observes now."""
        if self._age.shape[1] == 1:
            tensors = {name: kept[:, 0] for name, kept in self._samples.items()}
        else:
            # The youngest sample that is old enough, else the oldest; never an empty slot.
            late = self._age >= self._latency[:, None] - _TOLERANCE
            empty = self._age.isinf()
            rank = torch.where(late, -self._age, self._age - 1e9).masked_fill(empty, -math.inf)
            pick = rank.argmax(dim=1)
            tensors = {name: kept[self._rows, pick] for name, kept in self._samples.items()}
        return with_leaves(self._like, tensors)

    def saved_values(self) -> dict[str, object]:
        """Return the samples, their ages, latencies and the noise."""
        return {
            "age": self._age,
            "latency": self._latency,
            "samples": self._samples,
            "noise": self._noise,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state that `state_dict` returned."""
        self._grow(state["age"].shape[1])
        self._age.copy_(state["age"])
        self._latency.copy_(state["latency"])
        for name, kept in self._samples.items():
            kept.copy_(state["samples"][name])
        for name, model in self._noise.items():
            model.load_state_dict(state["noise"][name])

    def _draw_latency(self, worlds: torch.Tensor) -> None:
        span = self._max_latency - self._min_latency
        if span == 0.0:
            return
        drawn = self._min_latency + span * self._latencies.uniform(env_ids=worlds).double()
        self._latency.copy_(torch.where(worlds, drawn, self._latency))

    def _grow(self, size: int) -> None:
        """Allocate `size` samples per world."""
        more = size - self._age.shape[1]
        if more <= 0:
            return
        with torch.inference_mode(False):
            empty = self._age.new_full((len(self._rows), more), math.inf)
            self._age = torch.cat([self._age, empty], dim=1)
            for name, kept in self._samples.items():
                room = kept.new_zeros(len(self._rows), more, *kept.shape[2:])
                self._samples[name] = torch.cat([kept, room], dim=1)
