"""Base class of all sensors."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import mujoco
import torch

from manyworlds.sensor.sampling import Sampler, is_multiple
from manyworlds.signals import NoiseCfg, NoiseModelCfg
from manyworlds.sim.views import DataView, ModelView
from manyworlds.utils.overrides import overrides
from manyworlds.utils.state import Stateful
from manyworlds.utils.world_random import WorldRandom
from manyworlds.validation.worlds import EnvIds, takes_worlds

if TYPE_CHECKING:
    from manyworlds.entity import Entity
    from manyworlds.sensor.sensor_context import SensorContext
    from manyworlds.utils.debug_visualizer import DebugVisualizer

T = TypeVar("T")

NOT_REQUESTED: Any = None
"""Default of output that a sensor has only on request: users who requested it need no check."""


@dataclass
class SensorCfg(ABC):
    """Options of all sensors: name, update period, latency, and noise.

    Without options, a sensor measures the present state whenever it is read. With `update_period`
    or `latency` it takes samples at every update after the first read, so that held or delayed
    samples have the values of their time.
    """

    name: str
    """Name of the sensor, as in `scene[name]`."""
    _: KW_ONLY
    update_period: float = 0.0
    """Minimum time between two samples of a world [s]; a sample is held in between. The first one
    after a reset is new. A period that is not a multiple of the physics timestep is extended to the
    next physics step."""
    latency: float | tuple[float, float] = 0.0
    """Age of a sample when it is delivered [s], or a range from which each world draws at reset;
    at least this age, to the next physics step. Early in an episode, the first sample is
    delivered."""
    noise: NoiseCfg | NoiseModelCfg | None = None
    """Noise added to the floating-point tensors of each new sample; see `Sensor.noise_fields`."""

    @property
    def prefixed_name(self) -> str:
        """Name of the sensor in the model."""
        return self.name

    @property
    def latency_range(self) -> tuple[float, float]:
        """Minimum and maximum latency [s]."""
        if isinstance(self.latency, int | float):
            return self.latency, self.latency
        low, high = self.latency
        return low, high

    @property
    def samples_eagerly(self) -> bool:
        """True if samples are taken at each update, not only when they are read."""
        return self.update_period > 0 or self.latency_range[1] > 0

    def check_options(self) -> None:
        """Check the options that all sensors share.

        Raises:
            TypeError: `noise` is not a noise configuration.
            ValueError: a time is negative or infinite, or the range of latencies is reversed.
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

    def samples_within(self, period: float) -> bool:
        """Return whether samples from between control steps, `period` [s] apart, are delivered.

        Otherwise, samples at the control steps are enough.
        """
        if not self.samples_eagerly or is_multiple(self.update_period, period):
            return False
        low, high = self.latency_range
        in_step = not self.update_period or is_multiple(period, self.update_period)
        delayed_in_step = low == high and (low == 0.0 or is_multiple(low, period))
        return not (in_step and delayed_in_step)

    @abstractmethod
    def build(self) -> Sensor[Any]:
        """Build the sensor."""


class Sensor(ABC, Generic[T], Stateful):
    """A measurement: a tensor, or a dataclass of tensors, each of shape [num_envs, ...].

    A sensor that is not read costs nothing: `update` only marks its data as outdated, and reading
    `data` computes it. A subclass sets `cfg` and implements `edit_spec`, `initialize` and
    `_compute_data`; this class implements periods, latencies, noise and partial resets. An override
    of `reset` or `update` must call the base method.
    """

    cfg: Any = None
    """The sensor's `SensorCfg`, or None; if a subclass does not set it, the scene does."""
    requires_sensor_context: ClassVar[bool] = False
    """True if the scene must call `set_context` before the first read."""
    noise_fields: ClassVar[tuple[str, ...] | None] = None
    """Data fields to which noise is added; None for all floating-point tensors."""

    derived_attributes = ("_cache", "is_at_control_step")

    def __init__(self) -> None:
        self._cache: T | None = None
        self._sampler: Sampler | None = None
        self._random: WorldRandom | None = None
        self.is_at_control_step = True
        """False during updates between control steps, in which no first samples are taken."""

    @property
    def needs_substeps(self) -> bool:
        """True if the sensor must be updated after every physics step.

        By default, a subclass with its own `update` must be.
        """
        return overrides(self, Sensor, "update")

    @property
    def data(self) -> T:
        """Measured data; computed at most once between calls that change the simulation."""
        if self._cache is None:
            cfg = self.cfg
            if cfg is not None and (cfg.samples_eagerly or cfg.noise is not None):
                self._cache = self._sample()
            else:
                self._cache = self._compute_data()
        return self._cache

    @abstractmethod
    def edit_spec(self, scene_spec: mujoco.MjSpec, entities: dict[str, Entity]) -> None:
        """Add the required elements to the scene's spec; called after all entities are added."""

    @abstractmethod
    def initialize(
        self, mj_model: mujoco.MjModel, model: ModelView, data: DataView, device: torch.device
    ) -> None:
        """Find the sensor's elements in the compiled scene."""

    def keep_substeps(self, spec: mujoco.MjSpec, count: int) -> None:
        """Prepare for updates that cover up to `count` physics steps; called before compilation."""

    @abstractmethod
    def _compute_data(self) -> T:
        """Measure the present state of all worlds."""

    def set_context(self, ctx: SensorContext) -> None:
        """Set the context of sensors that cast rays or render images."""

    def draw_from(self, random: WorldRandom) -> None:
        """Draw latencies and noise from these random numbers, from now on."""
        self._random = random

    @takes_worlds
    def reset(self, env_ids: EnvIds = None) -> None:
        """Discard the samples of the given worlds; those of the others are kept."""
        self._invalidate_cache()
        if self._sampler is not None:
            self._sampler.reset(env_ids)

    def update(self, dt: float) -> None:
        """Advance the sensor's time by `dt` [s], and mark its data as outdated."""
        self._invalidate_cache()
        if self._sampler is not None:
            self._sampler.advance(dt)
            if self.cfg is not None and self.cfg.samples_eagerly:
                self._sampler.take(self._compute_data, first=self.is_at_control_step)

    def is_due(self, dt: float) -> bool:
        """Return whether an update by `dt` [s] takes a sample, which needs current fields."""
        if self._sampler is None or not self.cfg.samples_eagerly:
            return False
        return self._sampler.is_due(dt)

    @takes_worlds
    def invalidate(self, env_ids: EnvIds = None) -> None:
        """Mark data of these worlds as outdated, after a change between updates.

        Samples held by `update_period` or `latency` are kept; other sensors measure again.
        """
        self._invalidate_cache()
        if self._sampler is not None and not self.cfg.samples_eagerly:
            self._sampler.expire(env_ids)

    def debug_vis(self, visualizer: DebugVisualizer) -> None:
        """Draw the measured data."""

    def saved_values(self) -> dict[str, object]:
        """Return the saved values of the sensor, including samples."""
        return {**super().saved_values(), "sampler": self._sampler}

    def state_parts(self) -> Iterator[tuple[str, object]]:
        """Yield the parts of the state that `state_dict` saves; see `Stateful.state_parts`."""
        yield from super().state_parts()
        yield "._sampler", self._sampler

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state that `state_dict` returned."""
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

    def _make_sampler(self, sample: T) -> Sampler:
        assert self.cfg is not None
        return Sampler(self.cfg, self.noise_fields, sample, self._random)

    def _sample(self) -> T:
        if self._sampler is None:
            first = self._compute_data()
            self._sampler = self._make_sampler(first)
            self._sampler.take(lambda: first)
        else:
            self._sampler.take(self._compute_data)
        return self._sampler.deliver()
