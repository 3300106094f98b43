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

from manyworlds.managers.symmetry import EnvSymmetry, Reflection

if TYPE_CHECKING:
    from rsl_rl.storage import RolloutStorage
    from tensordict import TensorDict

    from manyworlds.rl.storage import MiniBatch
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


def mirror_loss(symmetry: Symmetry, actor: MLPModel, batch: MiniBatch, size: int) -> torch.Tensor:
    """Return the mirror loss, shape [], once the actor has the outputs of the batch.

    rsl_rl computes these outputs again. An extension of another class has a loss of its own.

    Args:
        symmetry: the extension.
        actor: the network.
        batch: samples, followed by their mirror images with `use_data_augmentation`.
        size: number of samples.
    """
    if type(symmetry) is not Symmetry:
        return symmetry.compute_loss(actor, cast("RolloutStorage.Batch", batch), size)
    own, images = actor.output_mean.tensor_split([size])
    if not symmetry.use_data_augmentation:
        both, _ = symmetry.data_augmentation_func(
            env=symmetry.env, obs=batch.observations, actions=None
        )
        images = actor(both[size:])
    _, wanted = symmetry.data_augmentation_func(env=symmetry.env, obs=None, actions=own.detach())
    loss = nn.functional.mse_loss(images, wanted[size:])
    if not symmetry.use_mirror_loss:
        return loss.detach()  # for the log
    return loss


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
    symmetric = []
    for name, model in models.items():
        found = resolve_callable(cast("str", model.get("class_name", "MLPModel")))
        if isinstance(found, type) and issubclass(found, SymmetricMLPModel):
            symmetric.append(name)
    mirrored = symmetric
    if augments:
        mirrored = list(models)
    groups = {group for name in mirrored for group in obs_groups[name]}
    if not groups:
        return
    mirror = EnvSymmetry(env.unwrapped, sorted(groups))
    env.mirror = mirror
    for name in symmetric:
        inputs = Reflection.join(mirror.groups[group].to("cpu") for group in obs_groups[name])
        outputs = mirror.action.to("cpu")
        if name == "critic":
            outputs = Reflection.of([0], [1.0])  # a state's mirror image is as good
        models[name]["mirror"] = inputs, outputs


class SymmetricMLPModel(MLPModel):
    """rsl_rl's `MLPModel` whose action for a mirrored observation is the mirrored action.

    Each layer is a `SymmetricLinear`; the mirror image of hidden values has them in reverse order.
    The statistics of observations and the standard deviations of actions are symmetric, too. As a
    critic, it has equal values for both observations. Tables of mirror images are part of the
    checkpoint and of exported policies.

    Args:
        obs: observations by group.
        obs_groups: groups of each network.
        obs_set: name of the network.
        output_dim: number of outputs.
        mirror: reflections of observations and of outputs, which the runner adds.
        settings: further settings of rsl_rl's `MLPModel`.

    Raises:
        ValueError: the standard deviation of actions depends on the state.
    """

    def __init__(
        self,
        obs: TensorDict,
        obs_groups: dict[str, list[str]],
        obs_set: str,
        output_dim: int,
        mirror: tuple[Reflection, Reflection],
        **settings: Any,
    ) -> None:
        super().__init__(obs, obs_groups, obs_set, output_dim, **settings)
        inputs, outputs = mirror
        self.mirror_input = ReflectionLayer(inputs)

        if self.distribution is not None:
            kind = type(self.distribution).__name__
            if self.distribution.input_dim != len(outputs):
                raise ValueError(
                    f"SymmetricMLPModel has the distribution {kind}, whose spread depends on the "
                    "state: use GaussianDistribution."
                )
            for name in ("std_param", "log_std_param"):
                if hasattr(self.distribution, name):
                    average = _PairAverage(outputs.index)
                    parametrize.register_parametrization(self.distribution, name, average)

        layers = [i for i, layer in enumerate(self.mlp) if isinstance(layer, nn.Linear)]
        for i in layers:
            layer = cast("nn.Linear", self.mlp[i])
            reverse = range(layer.out_features)[::-1]
            images = Reflection.of(reverse, [1.0] * len(reverse))
            if i == layers[-1]:
                images = outputs
            self.mlp[i] = SymmetricLinear(layer, inputs, images)
            inputs = images

    def update_normalization(self, obs: TensorDict) -> None:
        """Update the statistics from observations and their mirror images."""
        if not self.obs_normalization:
            return
        flat = torch.cat([obs[group] for group in self.obs_groups], dim=-1)
        normalizer: Any = self.obs_normalizer
        normalizer.update(torch.cat([flat, self.mirror_input(flat)]))
        # Without this, rounding in sums of another order would break the symmetry.
        normalizer._mean = 0.5 * (normalizer._mean + self.mirror_input(normalizer._mean))
        normalizer._var = 0.5 * (normalizer._var + self.mirror_input(normalizer._var).abs())
        normalizer._std = normalizer._var.sqrt()


class ReflectionLayer(nn.Module):
    """Mirror images of vectors, by a reflection that is part of the state dict.

    Args:
        reflection: the reflection of vectors of n elements.
    """

    index: torch.Tensor
    sign: torch.Tensor

    def __init__(self, reflection: Reflection) -> None:
        super().__init__()
        self.register_buffer("index", reflection.index.clone())
        self.register_buffer("sign", reflection.sign.clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the mirror image of each vector, shape [..., n]."""
        return x.index_select(-1, self.index) * self.sign


class SymmetricLinear(nn.Linear):
    """Linear layer whose output for a mirrored input is the mirrored output.

    It uses the average of its parameters and their mirror image. This takes as many operations for
    a batch as a layer without symmetry.

    Args:
        layer: the layer whose parameters it takes over.
        inputs: reflection of inputs.
        outputs: reflection of outputs.
    """

    def __init__(self, layer: nn.Linear, inputs: Reflection, outputs: Reflection) -> None:
        super().__init__(layer.in_features, layer.out_features)
        self.inputs = ReflectionLayer(inputs)
        self.outputs = ReflectionLayer(outputs)
        with torch.no_grad():
            # The average of two independent values has a spread that is smaller by this factor.
            self.weight.copy_(layer.weight * 2.0**0.5)
            self.bias.copy_(layer.bias * 2.0**0.5)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return outputs, shape [n, out_features], of inputs, shape [n, in_features]."""
        # A reflection is its own inverse and its own transpose.
        image = self.outputs(self.inputs(self.weight).T).T
        bias = 0.5 * (self.bias + self.outputs(self.bias))
        return nn.functional.linear(input, 0.5 * (self.weight + image), bias)


class _PairAverage(nn.Module):
    """Average of each element with that of its mirror image."""

    index: torch.Tensor

    def __init__(self, index: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("index", index.clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the averages, shape [n]."""
        return 0.5 * (x + x[self.index])
