"""Convolutions with a spatial softmax, whose outputs are positions in an image.

Each channel is reduced to the expected position of its activation (Levine et al., 2016,
arXiv:1504.00702, section 5.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from manyworlds.rl.config import Settings
from manyworlds.utils.extras import require_extra

require_extra("rsl_rl", "train")
from rsl_rl.models.cnn_model import CNNModel  # noqa: E402
from rsl_rl.modules import CNN  # noqa: E402

if TYPE_CHECKING:
    from tensordict import TensorDict


class SpatialSoftmax(nn.Module):
    """Expected image coordinates of each channel, in [-1, 1], x before y.

    Args:
        height: height of the images [pixels].
        width: width of the images [pixels].
        temperature: divisor of activations before the softmax.
    """

    def __init__(self, height: int, width: int, temperature: float = 1.0) -> None:
        super().__init__()
        y, x = torch.meshgrid(
            torch.linspace(-1.0, 1.0, height), torch.linspace(-1.0, 1.0, width), indexing="ij"
        )
        self.temperature = temperature
        self.positions: torch.Tensor
        self.register_buffer("positions", torch.stack([x.flatten(), y.flatten()], dim=1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map activations of shape [batch, channels, height, width] to [batch, 2 * channels]."""
        weights = torch.softmax(x.flatten(2) / self.temperature, dim=-1)
        return (weights @ self.positions).flatten(1)


class SpatialSoftmaxCNN(nn.Module):
    """Convolutions followed by a spatial softmax.

    Args:
        input_dim: height and width of the images [pixels].
        input_channels: channels of the images.
        temperature: temperature of the softmax.
        cnn_kwargs: settings of rsl_rl's `CNN`; its `global_pool` and `flatten` do not apply.
    """

    output_channels = None

    def __init__(
        self,
        input_dim: tuple[int, int],
        input_channels: int,
        temperature: float = 1.0,
        **cnn_kwargs: Any,
    ) -> None:
        super().__init__()
        settings = cnn_kwargs | {"global_pool": "none", "flatten": False}
        self.cnn = CNN(input_dim=input_dim, input_channels=input_channels, **settings)
        # rsl_rl's formula of sizes is not valid for every padding: compute them by a forward pass.
        with torch.no_grad():
            image = self.cnn(torch.zeros(1, input_channels, *input_dim))
        self.spatial_softmax = SpatialSoftmax(image.shape[2], image.shape[3], temperature)
        self._output_dim = 2 * image.shape[1]

    @property
    def output_dim(self) -> int:
        """Number of outputs: two for each channel."""
        return self._output_dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map images, shape [batch, channels, height, width], to shape [batch, output_dim]."""
        return self.spatial_softmax(self.cnn(x))


class SpatialSoftmaxCNNModel(CNNModel):
    """rsl_rl's `CNNModel` with a `SpatialSoftmaxCNN` for each group of images.

    `cnn_cfg` holds the settings of all groups, or those of each group by its name: rsl_rl's
    settings, `spatial_softmax_temperature`, and `spatial_softmax`, which if False leaves rsl_rl's
    `CNN` as it is.

    Raises:
        ValueError: convolutions are neither configured nor given, or not for these groups.
    """

    def __init__(
        self,
        obs: TensorDict,
        obs_groups: dict[str, list[str]],
        obs_set: str,
        output_dim: int,
        cnn_cfg: Settings | None = None,
        cnns: nn.ModuleDict | dict[str, nn.Module] | None = None,
        hidden_dims: Sequence[int] = (256, 256, 256),
        activation: str = "elu",
        obs_normalization: bool = False,
        distribution_cfg: Settings | None = None,
    ) -> None:
        if cnns is None:
            self._get_obs_dim(obs, obs_groups, obs_set)
            cnns = self._make_cnns(cnn_cfg)
        super().__init__(
            obs,
            obs_groups,
            obs_set,
            output_dim,
            hidden_dims=list(hidden_dims),
            activation=activation,
            obs_normalization=obs_normalization,
            distribution_cfg=distribution_cfg,
            cnns=cnns,
        )

    def _make_cnns(self, cnn_cfg: Settings | None) -> dict[str, nn.Module]:
        if cnn_cfg is None:
            raise ValueError(
                "CNN configurations must be provided if CNNs are not shared: set cnn_cfg."
            )
        groups = self.obs_groups_2d
        if not all(isinstance(settings, dict) for settings in cnn_cfg.values()):
            cnn_cfg = dict.fromkeys(groups, cnn_cfg)
        if set(cnn_cfg) != set(groups):
            raise ValueError(
                "The number of CNN configurations must match the number of 2D observation groups: "
                f"cnn_cfg has {sorted(cnn_cfg)}, the groups are {sorted(groups)}."
            )
        # A plain dict: modules cannot be assigned before the parent's constructor has run.
        cnns: dict[str, nn.Module] = {}
        for group, dim, channels in zip(
            groups, self.obs_dims_2d, self.obs_channels_2d, strict=True
        ):
            settings = dict(cnn_cfg[group])
            temperature = settings.pop("spatial_softmax_temperature", 1.0)
            if settings.pop("spatial_softmax", True):
                cnns[group] = SpatialSoftmaxCNN(tuple(dim), channels, temperature, **settings)
            else:
                cnns[group] = CNN(tuple(dim), channels, **settings)
        return cnns
