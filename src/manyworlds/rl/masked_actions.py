"""Policies for robots with different numbers of actions, whose padded columns do not count.

Where a batch holds robots of different kinds, actions have as many columns as the robot with most
of them, and a mask says which columns are real in each world.
"""

from __future__ import annotations

import torch
from rsl_rl.modules import GaussianDistribution
from torch import nn
from torch.distributions import Normal


class MaskedGaussianDistribution(GaussianDistribution):
    """Normal distribution of the real columns; the padded ones are 0, and count nowhere.

    A network gives it shape [..., 2, output_dim]: means, and the mask, which is 1 in real columns
    and 0 in padded ones. Log probability, entropy and divergence are sums over the real columns,
    and have no gradient with respect to the means of the others.

    Args:
        output_dim: number of columns.
        shared_std: use one standard deviation for all columns, because they have another meaning in
            each robot.
        settings: further settings of rsl_rl's `GaussianDistribution`.
    """

    def __init__(
        self, output_dim: int, shared_std: bool = False, **settings: float | str | bool
    ) -> None:
        super().__init__(1 if shared_std else output_dim, **settings)  # type: ignore[arg-type]
        self.output_dim = output_dim
        self._real = torch.empty(0, dtype=torch.bool)

    @property
    def input_dim(self) -> list[int]:  # type: ignore[override]
        """Shape of a network's output for one world."""
        return [2, self.output_dim]

    def update(self, mlp_output: torch.Tensor) -> None:
        """Take means and mask, shape [..., 2, output_dim]."""
        self._real = mlp_output[..., 1, :] > 0.5
        super().update(self.deterministic_output(mlp_output))
        std = torch.where(self._real, self._normal.stddev, 1.0)
        self._distribution = Normal(self._normal.mean, std)

    def sample(self) -> torch.Tensor:
        """Sample, shape [..., output_dim]; padded columns are 0."""
        return super().sample() * self._real

    def deterministic_output(self, mlp_output: torch.Tensor) -> torch.Tensor:
        """Return the means, shape [..., output_dim]; padded columns are 0."""
        return _means_of_real_columns(mlp_output)

    def as_deterministic_output_module(self) -> nn.Module:
        """Return `deterministic_output` as a module that can be exported."""
        return _MeansOfRealColumns()

    @property
    def std(self) -> torch.Tensor:
        """Standard deviations, shape [..., output_dim]; padded columns are 0."""
        return self._normal.stddev * self._real

    @property
    def entropy(self) -> torch.Tensor:
        """Entropy of the real columns, shape [...]."""
        return (self._normal.entropy() * self._real).sum(dim=-1)

    @property
    def params(self) -> tuple[torch.Tensor, ...]:
        """Mean and standard deviation, each [..., output_dim]; 0 and 1 in padded columns.

        They are the same there before and after an update, so that their divergence is 0.
        """
        return self._normal.mean, self._normal.stddev

    def log_prob(self, outputs: torch.Tensor) -> torch.Tensor:
        """Return the log probability of the real columns, shape [...]."""
        return (self._normal.log_prob(outputs) * self._real).sum(dim=-1)

    @property
    def _normal(self) -> Normal:
        assert self._distribution is not None, "update comes first"
        return self._distribution


def _means_of_real_columns(output: torch.Tensor) -> torch.Tensor:
    """Return means with zeros where the mask is 0, [..., n], from shape [..., 2, n]."""
    mean = output[..., 0, :]
    return torch.where(output[..., 1, :] > 0.5, mean, torch.zeros_like(mean))


class _MeansOfRealColumns(nn.Module):
    def forward(self, mlp_output: torch.Tensor) -> torch.Tensor:
        """Return the means, shape [..., n], of outputs of shape [..., 2, n]."""
        return _means_of_real_columns(mlp_output)
