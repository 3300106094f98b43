"""Policies for robots with different numbers of actions, whose padded columns do not count.

Where a batch holds robots of different kinds, actions have as many columns as the robot with most
of them, and a mask says which columns are real in each world.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch
from rsl_rl.models import MLPModel
from rsl_rl.modules import MLP, EmpiricalNormalization, GaussianDistribution
from torch import nn
from torch.distributions import Normal

if TYPE_CHECKING:
    from tensordict import TensorDict


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


class MaskedMLPModel(MLPModel):
    """rsl_rl's `MLPModel` as a policy whose padded actions do not count.

    `mdp.action_mask` is the first term of the last group that it observes. The network observes the
    mask, too.

    Args:
        obs: observations by group, each of shape [worlds, n].
        obs_groups: groups of each network.
        obs_set: name of the network.
        output_dim: number of actions.
        hidden_dims: sizes of hidden layers.
        activation: name of the activation.
        settings: further settings of rsl_rl's `MLPModel`.

    Raises:
        ValueError: the last group has fewer columns than there are actions, or the distribution is
            not a `MaskedGaussianDistribution`.
    """

    def __init__(
        self,
        obs: TensorDict,
        obs_groups: dict[str, list[str]],
        obs_set: str,
        output_dim: int,
        hidden_dims: tuple[int, ...] | list[int] = (256, 256, 256),
        activation: str = "elu",
        **settings: object,
    ) -> None:
        known = cast("dict[str, Any]", settings)
        super().__init__(obs, obs_groups, obs_set, output_dim, hidden_dims, activation, **known)
        last = self.obs_groups[-1]
        size = obs[last].shape[-1]
        if size < output_dim:
            raise ValueError(
                f"The last group that {type(self).__name__} observes, '{last}', has {size} "
                f"columns, but there are {output_dim} actions: observe mdp.action_mask in a group "
                f"of its own, and name it last in obs_groups['{obs_set}']."
            )
        start = self.obs_dim - size
        mask = slice(start, start + output_dim)
        if not isinstance(self.distribution, MaskedGaussianDistribution):
            raise ValueError(
                f"The distribution of {type(self).__name__} is a "
                f"{type(self.distribution).__name__}, which has no mask: set distribution_cfg to "
                "masked_gaussian_distribution()."
            )
        if self.obs_normalization:
            self.obs_normalizer = _NormalizationOfObservations(self.obs_dim, mask)
        network = MLP(self.obs_dim, output_dim, hidden_dims, activation)
        self.mlp = _WithMask(network, mask)  # type: ignore[assignment]


class _NormalizationOfObservations(EmpiricalNormalization):
    """Normalization of all columns but those of the mask.

    Args:
        size: number of columns.
        mask: columns of the mask.
    """

    def __init__(self, size: int, mask: slice) -> None:
        super().__init__(size)
        self.mask = mask

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return normalized observations with the mask as it is, shape [..., size]."""
        values = super().forward(x)
        parts = (values[..., : self.mask.start], x[..., self.mask], values[..., self.mask.stop :])
        return torch.cat(parts, dim=-1)


class _WithMask(nn.Module):
    """Network that returns the mask among its inputs beside its outputs.

    Args:
        network: the network.
        mask: columns of the mask.
    """

    def __init__(self, network: nn.Module, mask: slice) -> None:
        super().__init__()
        self.network = network
        self.mask = mask

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return means and mask, shape [..., 2, output_dim]."""
        return torch.stack([self.network(x), x[..., self.mask]], dim=-2)
