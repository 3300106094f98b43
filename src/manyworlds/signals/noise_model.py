"""Noise that is built for a number of worlds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from manyworlds.utils.state import Stateful
from manyworlds.validation.worlds import EnvIds, as_rows

if TYPE_CHECKING:
    from manyworlds.signals import noise_cfg


class NoiseModel(Stateful):
    """Puts noise on a signal, independently at each step."""

    def __init__(
        self, noise_model_cfg: noise_cfg.NoiseModelCfg, num_envs: int, device: torch.device | str
    ) -> None:
        """Copy the configuration to a device.

        Raises:
            ValueError: there are no worlds.
        """
        if num_envs < 1:
            raise ValueError(f"num_envs must be >= 1, got {num_envs}: give every world its noise.")
        self._num_envs = num_envs
        self._device = device
        self._noise_cfg = noise_model_cfg.noise_cfg.to(device)

    def reset(self, env_ids: EnvIds = None) -> None:
        """Begin a new episode in some worlds, or in all."""

    def __call__(self, data: torch.Tensor) -> torch.Tensor:
        """Return `data`, shape [num_envs, ...], with noise; `data` stays as it is."""
        return self._noise_cfg.apply(data)


class NoiseModelWithAdditiveBias(NoiseModel):
    """Adds a bias, too, which each world draws when it is reset."""

    state_attributes = ("_bias",)

    def __init__(
        self,
        noise_model_cfg: noise_cfg.NoiseModelWithAdditiveBiasCfg,
        num_envs: int,
        device: torch.device | str,
    ) -> None:
        """Copy the configuration to a device; biases are drawn with the first signal.

        Raises:
            ValueError: there are no worlds, or nothing to draw the bias from.
        """
        super().__init__(noise_model_cfg, num_envs, device)
        if noise_model_cfg.bias_noise_cfg is None:
            raise ValueError("bias_noise_cfg is None: say what to draw the bias from.")
        self._bias_noise_cfg = noise_model_cfg.bias_noise_cfg.to(device)
        self._per_component = noise_model_cfg.sample_bias_per_component
        self._bias: torch.Tensor | None = None

    def reset(self, env_ids: EnvIds = None) -> None:
        """Draw the biases of some worlds, or of all, for a new episode."""
        if self._bias is None:
            return
        rows = as_rows(env_ids, self._num_envs, self._bias.device)
        # Drawn for all worlds, so that random numbers do not depend on how many are reset.
        self._bias[rows] = self._bias_noise_cfg.apply(torch.zeros_like(self._bias))[rows]

    def __call__(self, data: torch.Tensor) -> torch.Tensor:
        """Return `data`, shape [num_envs, ...], with noise and bias; `data` stays as it is.

        Raises:
            ValueError: there is not one row for each world.
        """
        if len(data) != self._num_envs:
            raise ValueError(
                f"The data has {len(data)} rows, but the noise model was built for "
                f"{self._num_envs} worlds: give one row for each."
            )
        if self._bias is None:
            shape = data.shape if self._per_component else (len(data), *[1] * (data.ndim - 1))
            self._allocate(shape, data.dtype)
            self.reset()
        assert self._bias is not None
        return super().__call__(data) + self._bias

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state that `state_dict` returned."""
        bias = state.get("_bias")
        if bias is None:
            self._bias = None
        elif self._bias is None:
            self._allocate(bias.shape, bias.dtype)
        super().load_state_dict(state)

    def _allocate(self, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        with torch.inference_mode(False):
            self._bias = torch.zeros(shape, dtype=dtype, device=self._device)
