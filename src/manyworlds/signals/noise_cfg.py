"""Configurations of noise on signals. They hold only numbers and are never mutated."""

from __future__ import annotations

import abc
import copy
import dataclasses
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeVar

import numpy as np
import torch

from manyworlds.signals import noise_model
from manyworlds.utils.world_random import RandomStream

NoiseParam = float | tuple[float, ...]
"""One number for all components of a signal, or one for each."""

Cfg = TypeVar("Cfg", bound="NoiseCfg")


@dataclass(kw_only=True)
class NoiseCfg(abc.ABC):
    """Base class of noise that is sampled at every call."""

    operation: Literal["add", "scale", "abs"] = "add"
    """Add the noise to the signal, multiply the signal by it, or replace the signal by it."""

    _random = None  # type: RandomStream | None  # not a field of the configuration

    def __post_init__(self) -> None:
        if self.operation not in ("add", "scale", "abs"):
            raise ValueError(
                f"{type(self).__name__}.operation is '{self.operation}': "
                "use 'add', 'scale' or 'abs'."
            )

    @abc.abstractmethod
    def sample(self, data: torch.Tensor) -> torch.Tensor:
        """Sample noise with a shape that broadcasts to `data`, and its dtype and device."""

    def apply(self, data: torch.Tensor) -> torch.Tensor:
        """Return `data` with noise, shape [num_envs, ..., components]; `data` is unchanged.

        Raises:
            ValueError: the length of a tuple differs from the number of components.
        """
        noise = self.sample(data)
        if self.operation == "add":
            return data + noise
        if self.operation == "scale":
            return data * noise
        return noise.expand_as(data).clone()

    def to(self: Cfg, device: torch.device | str, random: RandomStream | None = None) -> Cfg:
        """Return a copy for `apply`, with tuples converted to tensors.

        Args:
            device: device of the signals.
            random: source of the random numbers of noise of this package, for signals of shape
                [num_envs, ...]; None uses torch's default generator.
        """
        ours = copy.copy(self)
        ours._random = random
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, tuple):
                with torch.inference_mode(False):
                    setattr(ours, field.name, torch.tensor(value, device=device))
        return ours

    def _param(self, name: str, data: torch.Tensor) -> torch.Tensor | float:
        """Convert a value to the type of `data`: one number, or one per component."""
        value = getattr(self, name)
        if isinstance(value, int | float):
            return value
        if len(value) != data.shape[-1]:
            raise ValueError(
                f"{type(self).__name__}.{name} has {len(value)} values, but the data has "
                f"{data.shape[-1]} components: give one number, or one per component."
            )
        return torch.as_tensor(value, dtype=data.dtype, device=data.device)

    def _require(self, low: str | float, high: str) -> None:
        """Check that one parameter, or number, is at most another, component by component."""
        if isinstance(low, str):
            bound = getattr(self, low)
            name = f"{low} ({bound})"
        else:
            bound = low
            name = f"{low:g}"
        value = getattr(self, high)
        try:
            fits = np.less_equal(bound, value).all()
        except ValueError:
            fits = False
        if not fits:
            raise ValueError(
                f"{type(self).__name__}.{high} ({value}) must be >= {name} in every component."
            )


@dataclass
class ConstantNoiseCfg(NoiseCfg):
    """A constant offset."""

    bias: NoiseParam = 0.0

    def sample(self, data: torch.Tensor) -> torch.Tensor:
        """Return the bias: a number, or shape [components]."""
        return torch.as_tensor(self._param("bias", data), dtype=data.dtype, device=data.device)


@dataclass
class UniformNoiseCfg(NoiseCfg):
    """Uniformly distributed noise in [n_min, n_max)."""

    n_min: NoiseParam = -1.0
    n_max: NoiseParam = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("n_min", "n_max")

    def sample(self, data: torch.Tensor) -> torch.Tensor:
        """Sample each element independently; the result has the shape of `data`."""
        low = self._param("n_min", data)
        high = self._param("n_max", data)
        if self._random is None:
            return low + (high - low) * torch.rand_like(data)
        return self._random.uniform(low, high, data.shape[1:]).to(data.dtype)


@dataclass
class GaussianNoiseCfg(NoiseCfg):
    """Normally distributed noise."""

    mean: NoiseParam = 0.0
    std: NoiseParam = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require(0.0, "std")

    def sample(self, data: torch.Tensor) -> torch.Tensor:
        """Sample each element independently; the result has the shape of `data`."""
        mean = self._param("mean", data)
        std = self._param("std", data)
        if self._random is None:
            return mean + std * torch.randn_like(data)
        return self._random.normal(mean, std, data.shape[1:]).to(data.dtype)


@dataclass(kw_only=True)
class NoiseModelCfg:
    """Noise for a given number of worlds."""

    class_type: ClassVar[type[noise_model.NoiseModel]] = noise_model.NoiseModel

    noise_cfg: NoiseCfg
    """Noise that is sampled at each step."""


@dataclass(kw_only=True)
class NoiseModelWithAdditiveBiasCfg(NoiseModelCfg):
    """Noise at each step, plus a bias that each world samples at its reset."""

    class_type: ClassVar[type[noise_model.NoiseModel]] = noise_model.NoiseModelWithAdditiveBias

    bias_noise_cfg: NoiseCfg | None = None
    """Distribution of the bias; required."""
    sample_bias_per_component: bool = True
    """Sample a bias for each component of the signal, instead of one per world."""

    def __post_init__(self) -> None:
        if self.bias_noise_cfg is None:
            raise ValueError(
                "NoiseModelWithAdditiveBiasCfg.bias_noise_cfg is None: give a noise for the bias, "
                "or use NoiseModelCfg."
            )
        if self.bias_noise_cfg.operation == "scale":
            raise ValueError(
                "NoiseModelWithAdditiveBiasCfg.bias_noise_cfg has the operation 'scale', which "
                "leaves every bias zero: use 'add' or 'abs'."
            )
