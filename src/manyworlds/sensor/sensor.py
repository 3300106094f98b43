"""The contract of all sensors."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import mujoco
import torch

from manyworlds.sensor.sampling import Sampler
from manyworlds.signals import NoiseCfg, NoiseModelCfg
from manyworlds.sim.sim_data import WarpBridge
from manyworlds.utils.state import Stateful
from manyworlds.validation.worlds import EnvIds

if TYPE_CHECKING:
    from manyworlds.entity import Entity

T = TypeVar("T")


@dataclass(kw_only=True)
class SensorCfg(ABC):
    """What every sensor can be told: its name, how often it samples, how late and how exactly.

    Without options a sensor shows the simulation as it is. With `update_period` or `latency` it
    takes samples at every update once somebody has read it, so that what is held or late is what
    was there at that time.
    """

    name: str
    """What `scene[name]` finds it by."""
    update_period: float = 0.0
    """Shortest time between two samples of a world [s], held in between; the first sample after a
    reset is fresh. A period that is no multiple of the time between updates lasts until the next
    update."""
    latency: float | tuple[float, float] = 0.0
    """Age of a sample when it is delivered [s], or a range that each world draws from at reset.
    Early in an episode the first sample is delivered."""
    noise: NoiseCfg | NoiseModelCfg | None = None
    """Noise on the floating-point tensors of each new sample; see `Sensor.noise_fields`."""

    @property
    def prefixed_name(self) -> str:
        """Its name in the model."""
        return self.name

    @property
    def latency_range(self) -> tuple[float, float]:
        """Shortest and longest latency [s]."""
        if isinstance(self.latency, int | float):
            return self.latency, self.latency
        low, high = self.latency
        return low, high

    @property
    def samples_eagerly(self) -> bool:
        """Whether samples have to be taken at each update, not only when they are read."""
        return self.update_period > 0 or self.latency_range[1] > 0

    def check_options(self) -> None:
        """Check what all sensors share.

        Raises:
            TypeError: the noise is none.
            ValueError: a time is negative or infinite, or the range of latencies is upside down.
        """
        low, high = self.latency_range
        if not 0 <= self.update_period < math.inf:
            raise ValueError(
                f"Sensor '{self.name}': update_period is {self.update_period} s: "
                "give a finite time of at least 0."
            )
        if not 0 <= low <= high < math.inf:
            raise ValueError(
                f"Sensor '{self.name}': latency is {self.latency} s: give a finite time of at "
                "least 0, or (min, max) with min at most max."
            )
        if not isinstance(self.noise, NoiseCfg | NoiseModelCfg | None):
            raise TypeError(
                f"Sensor '{self.name}': noise must be a NoiseCfg or a NoiseModelCfg, got "
                f"{self.noise!r}: give UniformNoiseCfg(n_min=..., n_max=...) for instance."
            )

    @abstractmethod
    def build(self) -> Sensor[Any]:
        """Make the sensor."""


class Sensor(ABC, Generic[T], Stateful):
    """Something to observe: a tensor, or a dataclass of tensors, all of shape [num_envs, ...].

    A sensor that nobody reads costs nothing: `update` marks its data as old, and only reading
    `data` computes them. A subclass sets `cfg` and provides `edit_spec`, `initialize` and
    `_compute_data`; periods, latencies, noise and partial resets come with this class. One that
    overrides `reset` or `update` calls the base's, too.
    """

    cfg: Any = None
    """Its `SensorCfg`, or None; where a subclass sets none, the scene does."""
    requires_sensor_context: ClassVar[bool] = False
    """Whether the scene must call `set_context` before the first read."""
    noise_fields: ClassVar[tuple[str, ...] | None] = None
    """Fields of a data class that noise is put on; None for all floating-point tensors."""

    derived_attributes = ("_cache",)

    def __init__(self) -> None:
        self._cache: T | None = None
        self._sampler: Sampler | None = None

    @property
    def needs_substeps(self) -> bool:
        """Whether it must be updated after every physics step."""
        return False

    @property
    def data(self) -> T:
        """What it measures; computed at most once between calls that change the simulation."""
        if self._cache is None:
            self._cache = self._sample() if self._has_options else self._compute_data()
        return self._cache

    @abstractmethod
    def edit_spec(self, scene_spec: mujoco.MjSpec, entities: dict[str, Entity]) -> None:
        """Add what it needs to the scene, after all entities; runs before compilation."""

    @abstractmethod
    def initialize(
        self, mj_model: mujoco.MjModel, model: WarpBridge, data: WarpBridge, device: torch.device
    ) -> None:
        """Find itself in the compiled scene."""

    def keep_substeps(self, spec: mujoco.MjSpec, count: int) -> None:
        """Be ready for updates that stand for up to `count` physics steps; before compilation."""

    @abstractmethod
    def _compute_data(self) -> T:
        """Measure all worlds as they are now."""

    def set_context(self, ctx: Any) -> None:
        """Take what the sensors that cast rays or render share."""

    def reset(self, env_ids: EnvIds = None) -> None:
        """Begin anew in the worlds named; the samples of the others stay."""
        self._invalidate_cache()
        if self._sampler is not None:
            self._sampler.reset(env_ids)

    def update(self, dt: float) -> None:
        """Take note that `dt` [s] went by."""
        self._invalidate_cache()
        if self._sampler is not None:
            self._sampler.advance(dt)
            if self.cfg is not None and self.cfg.samples_eagerly:
                self._sampler.take(self._compute_data)

    def invalidate(self, env_ids: EnvIds = None) -> None:
        """Take note that these worlds were changed between updates.

        Samples stay that `update_period` or `latency` hold; a sensor without them takes new ones.
        """
        self._invalidate_cache()
        if self._sampler is not None and not self.cfg.samples_eagerly:
            self._sampler.expire(env_ids)

    def debug_vis(self, visualizer: Any) -> None:
        """Draw what it measures."""

    def state_dict(self) -> dict[str, Any]:
        """Copy its state, samples included."""
        sampler = None if self._sampler is None else self._sampler.state_dict()
        return {**super().state_dict(), "sampler": sampler}

    def state_parts(self) -> Iterator[tuple[str, Any]]:
        """Yield what `state_dict` saves; see `Stateful.state_parts`."""
        yield from super().state_parts()
        yield "._sampler", self._sampler

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state that `state_dict` returned."""
        super().load_state_dict(state)
        self._invalidate_cache()
        if state["sampler"] is None:
            self._sampler = None
            return
        if self._sampler is None:
            self._sampler = self._make_sampler(self._compute_data())
        self._sampler.load_state_dict(state["sampler"])

    def _invalidate_cache(self) -> None:
        self._cache = None

    @property
    def _has_options(self) -> bool:
        cfg = self.cfg
        return cfg is not None and (cfg.samples_eagerly or cfg.noise is not None)

    def _make_sampler(self, sample: T) -> Sampler:
        assert self.cfg is not None
        return Sampler(self.cfg, self.noise_fields, sample)

    def _sample(self) -> T:
        if self._sampler is None:
            first = self._compute_data()
            self._sampler = self._make_sampler(first)
            self._sampler.take(lambda: first)
        else:
            self._sampler.take(self._compute_data)
        return self._sampler.deliver()
