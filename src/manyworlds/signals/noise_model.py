"""Noise models for a given number of worlds."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import torch

from manyworlds.utils.state import Stateful
from manyworlds.utils.world_random import WorldRandom
from manyworlds.validation.worlds import EnvIds, Worlds, takes_worlds

if TYPE_CHECKING:
    from manyworlds.signals import noise_cfg


class NoiseModel(Stateful):
    """Adds noise to a signal, independently at each step."""

    def __init__(
        self, noise_model_cfg: noise_cfg.NoiseModelCfg, num_envs: int, device: torch.device | str
    ) -> None:
        """Copy the configuration to a device.

        Raises:
            ValueError: `num_envs` is less than 1.
        """
        if num_envs < 1:
            raise ValueError(f"num_envs must be >= 1, got {num_envs}: use at least one world.")
        self._num_envs = num_envs
        self._device = device
        self._noise_cfg = noise_model_cfg.noise_cfg.to(device)

    def draw_from(self, random: WorldRandom, name: str) -> None:
        """Draw from the stream of a name from now on, and not from torch's generator."""
        self._noise_cfg = self._noise_cfg.to(self._device, random.stream(name))

    @takes_worlds
    def reset(self, env_ids: EnvIds = None) -> None:
        """Start a new episode in some worlds, or in all."""

    def __call__(self, data: torch.Tensor) -> torch.Tensor:
        """Return `data` with noise, shape [num_envs, ...]; `data` is unchanged."""
        return self._noise_cfg.apply(data)


class NoiseModelWithAdditiveBias(NoiseModel):
    """Adds noise and a bias that each world samples at its reset."""

    state_attributes = ("_bias",)

    def __init__(
        self,
        noise_model_cfg: noise_cfg.NoiseModelWithAdditiveBiasCfg,
        num_envs: int,
        device: torch.device | str,
    ) -> None:
        """Copy the configuration to a device; biases are sampled with the first signal.

        Raises:
            ValueError: `num_envs` is less than 1, or `bias_noise_cfg` is None.
        """
        super().__init__(noise_model_cfg, num_envs, device)
        if noise_model_cfg.bias_noise_cfg is None:
            raise ValueError("bias_noise_cfg is None: give a noise for the bias.")
        self._bias_noise_cfg = noise_model_cfg.bias_noise_cfg.to(device)
        self._per_component = noise_model_cfg.sample_bias_per_component
        self._bias: torch.Tensor | None = None
        self._random: WorldRandom | None = None

    def draw_from(self, random: WorldRandom, name: str) -> None:
        """Draw from streams that begin with a name from now on, and not from torch's generator."""
        super().draw_from(random, name)
        self._random = random
        self._bias_noise_cfg = self._bias_noise_cfg.to(self._device, random.stream(f"{name}/bias"))

    @takes_worlds
    def reset(self, env_ids: EnvIds = None) -> None:
        """Sample the biases of some worlds, or of all, for a new episode."""
        if self._bias is None:
            return
        worlds = Worlds.of(env_ids, self._num_envs, self._bias.device)
        only = self._random.only(worlds.mask) if self._random else contextlib.nullcontext()
        with only:
            drawn = self._bias_noise_cfg.apply(torch.zeros_like(self._bias))
        worlds.put(self._bias, worlds.take(drawn))

    def __call__(self, data: torch.Tensor) -> torch.Tensor:
        """Return `data` with noise and bias, shape [num_envs, ...]; `data` is unchanged.

        Raises:
            ValueError: the number of rows differs from the number of worlds.
        """
        if len(data) != self._num_envs:
            raise ValueError(
                f"The data has {len(data)} rows, but the noise model was built for "
                f"{self._num_envs} worlds: give one row per world."
            )
        if self._bias is None:
            shape = data.shape if self._per_component else (len(data), *[1] * (data.ndim - 1))
            self._allocate(shape, data.dtype)
            self.reset()
        assert self._bias is not None
        return super().__call__(data) + self._bias

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Restore a state that `state_dict` returned."""
        bias = state.get("_bias")
        if bias is None:
            self._bias = None
        elif self._bias is None and isinstance(bias, torch.Tensor):
            self._allocate(bias.shape, bias.dtype)
        super().load_state_dict(state)

    def _allocate(self, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        with torch.inference_mode(False):
            self._bias = torch.zeros(shape, dtype=dtype, device=self._device)
