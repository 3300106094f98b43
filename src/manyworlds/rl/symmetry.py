"""Mirror symmetry in learning: mirrored batches for rsl_rl's extension, and a symmetric network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from rsl_rl.extensions import Symmetry
from rsl_rl.models import MLPModel
from rsl_rl.utils import resolve_callable
from torch import nn
from torch.nn.utils import parametrize

from manyworlds.managers.mirror import EnvMirror, Reflection

if TYPE_CHECKING:
    from rsl_rl.storage import RolloutStorage
    from tensordict import TensorDict

    from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper


def mirror_batch(
    env: RslRlVecEnvWrapper, obs: TensorDict | None = None, actions: torch.Tensor | None = None
) -> tuple[TensorDict | None, torch.Tensor | None]:
    """Return a batch followed by its mirror image, for rsl_rl's `data_augmentation_func`.

    Groups that no network observes are repeated as they are.

    Args:
        env: the environment, with its `mirror`.
        obs: observations by group, each of shape [n, ...]; None for none.
        actions: actions, shape [n, num_actions]; None for none.

    Returns:
        Observations and actions, of shape [2 n, ...].
    """
    mirror = env.mirror
    assert mirror is not None, "the runner sets it if the symmetry is configured"
    if obs is not None:
        image = obs.clone(recurse=False)
        for name, reflection in mirror.groups.items():
            image[name] = reflection.to(obs[name].device)(obs[name])
        obs = cast("TensorDict", torch.cat([cast("Any", obs), image]))
    if actions is not None:
        actions = torch.cat([actions, mirror.action.to(actions.device)(actions)])
    return obs, actions


def add_mirror(
    env: RslRlVecEnvWrapper,
    obs_groups: Mapping[str, Sequence[str]],
    models: Mapping[str, dict[str, object]],
    augments: bool,
) -> None:
    """Build the mirror images that a run needs, if any.

    Sets `env.mirror`, and the argument `mirror` of symmetric networks, which is not plain data.

    Args:
        env: the environment.
        obs_groups: observation groups of each network.
        models: settings of each network; those of symmetric ones are modified.
        augments: whether `mirror_batch` mirrors the observations of all networks.

    Raises:
        ValueError: the robot or a term has no mirror image.
    """
    networks = [name for name, model in models.items() if _is_symmetric(model)]
    groups = {group for name in (models if augments else networks) for group in obs_groups[name]}
    if not groups:
        return
    env.mirror = mirror = EnvMirror(env.unwrapped, sorted(groups))
    for name in networks:
        obs = Reflection.join(mirror.groups[group].to("cpu") for group in obs_groups[name])
        value = Reflection.of([0], [1.0])  # of a state's mirror image, which is as good
        models[name]["mirror"] = obs, mirror.action.to("cpu") if name == "actor" else value


def _is_symmetric(model: Mapping[str, object]) -> bool:
    found = resolve_callable(model.get("class_name", MLPModel))  # type: ignore[arg-type]
    return isinstance(found, type) and issubclass(found, SymmetricMLPModel)


class SymmetricMLPModel(MLPModel):
    """rsl_rl's `MLPModel` whose action for a mirrored observation is the mirrored action.

    The mean action is the average of the network's action and of the mirror image of its action for
    the mirror image of the observation; the statistics of observations and the standard deviations
    of actions are symmetric, too. As a critic, it has equal values for both observations. Tables of
    mirror images are part of the checkpoint and of exported policies.

    Args:
        obs: observations by group.
        obs_groups: groups of each network.
        obs_set: name of the network.
        output_dim: number of outputs.
        mirror: reflections of observations and of outputs, which the runner adds.
        hidden_dims: widths of the hidden layers.
        activation: activation function, by rsl_rl's name.
        obs_normalization: whether observations are normalized.
        distribution_cfg: settings of the distribution of outputs; None for none.

    Raises:
        ValueError: the standard deviation of actions depends on the state.
    """

    mlp: MirrorAverage  # type: ignore[assignment]

    def __init__(
        self,
        obs: TensorDict,
        obs_groups: dict[str, list[str]],
        obs_set: str,
        output_dim: int,
        mirror: tuple[Reflection, Reflection],
        hidden_dims: Sequence[int] = (256, 256, 256),
        activation: str = "elu",
        obs_normalization: bool = False,
        distribution_cfg: dict[str, str | float] | None = None,
    ) -> None:
        super().__init__(
            obs,
            obs_groups,
            obs_set,
            output_dim,
            hidden_dims=tuple(hidden_dims),
            activation=activation,
            obs_normalization=obs_normalization,
            distribution_cfg=distribution_cfg,
        )
        self.mlp = MirrorAverage(cast("nn.Sequential", self.mlp), *mirror)
        if self.distribution is None:
            return
        if self.distribution.input_dim != output_dim:
            raise ValueError(
                f"SymmetricMLPModel has the distribution {type(self.distribution).__name__}, whose "
                "spread depends on the state: use GaussianDistribution."
            )
        for name in ("std_param", "log_std_param"):
            if hasattr(self.distribution, name):
                average = _PairAverage(self.mlp.output_index)
                parametrize.register_parametrization(self.distribution, name, average)

    def update_normalization(self, obs: TensorDict) -> None:
        """Update the statistics from observations and their mirror images."""
        if not self.obs_normalization:
            return
        flat = torch.cat([obs[group] for group in self.obs_groups], dim=-1)
        normalizer: Any = self.obs_normalizer
        normalizer.update(torch.cat([flat, self.mlp.mirror_input(flat)]))
        # Without this, rounding in sums of another order would break the symmetry.
        normalizer._mean = 0.5 * (normalizer._mean + self.mlp.mirror_input(normalizer._mean))
        normalizer._var = 0.5 * (normalizer._var + normalizer._var[:, self.mlp.input_index])
        normalizer._std = normalizer._var.sqrt()


class MirrorSymmetry(Symmetry):
    """rsl_rl's `Symmetry`, which reuses the outputs that the actor has for the batch."""

    def compute_loss(
        self, actor: MLPModel, batch: RolloutStorage.Batch, original_batch_size: int
    ) -> torch.Tensor:
        """Return rsl_rl's mirror loss, after the actor's distribution was updated for the batch.

        Args:
            actor: the network.
            batch: samples, followed by their mirror images with `use_data_augmentation`.
            original_batch_size: number of samples.
        """
        own, images = actor.output_mean.tensor_split([original_batch_size])
        if not self.use_data_augmentation:
            observations, _ = self.data_augmentation_func(
                env=self.env, obs=batch.observations, actions=None
            )
            images = actor(observations[original_batch_size:])
        _, wanted = self.data_augmentation_func(env=self.env, obs=None, actions=own.detach())
        loss = nn.functional.mse_loss(images, wanted[original_batch_size:])
        return loss if self.use_mirror_loss else loss.detach()


class MirrorAverage(nn.Module):
    """Average of a network's output and the mirror image of that for the mirrored input.

    Both are computed at once. The weights of the first and last layers are mirrored instead of
    inputs and outputs, of which there are more.

    Args:
        mlp: the network, whose first and last layers are linear.
        inputs: reflection of inputs.
        outputs: reflection of outputs.
    """

    input_index: torch.Tensor
    input_sign: torch.Tensor
    output_index: torch.Tensor
    output_sign: torch.Tensor

    def __init__(self, mlp: nn.Sequential, inputs: Reflection, outputs: Reflection) -> None:
        super().__init__()
        self.mlp = mlp
        for name, reflection in (("input", inputs), ("output", outputs)):
            self.register_buffer(f"{name}_index", reflection.index.clone())
            self.register_buffer(f"{name}_sign", reflection.sign.clone())

    def mirror_input(self, x: torch.Tensor) -> torch.Tensor:
        """Return the mirror image of inputs, shape [n, inputs]."""
        return x.index_select(1, self.input_index) * self.input_sign

    def mirror_output(self, x: torch.Tensor) -> torch.Tensor:
        """Return the mirror image of outputs, shape [n, outputs]."""
        return x.index_select(1, self.output_index) * self.output_sign

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return outputs, shape [n, outputs], of inputs, shape [n, inputs]."""
        first, *hidden, last = cast("list[nn.Linear]", list(self.mlp))
        # A reflection is its own inverse and its own transpose.
        weight = torch.cat([first.weight, self.mirror_input(first.weight)])
        both = nn.functional.linear(x, weight, first.bias.repeat(2))
        both = both.view(-1, first.out_features)  # inputs and mirrored inputs in turn
        for layer in hidden:
            both = layer(both)
        weight = torch.cat([last.weight, self.mirror_output(last.weight.T).T], dim=1)
        bias = last.bias + self.mirror_output(last.bias[None])[0]
        return nn.functional.linear(both.view(-1, 2 * last.in_features), 0.5 * weight, 0.5 * bias)


class _PairAverage(nn.Module):
    """Average of each element with that of its mirror image."""

    index: torch.Tensor

    def __init__(self, index: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("index", index.clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the averages, shape [n]."""
        return 0.5 * (x + x[self.index])
