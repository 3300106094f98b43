"""Mirror symmetry in learning: mirrored batches for rsl_rl's extension, and a symmetric network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from rsl_rl.models import MLPModel
from rsl_rl.utils import resolve_callable
from torch import nn
from torch.nn.utils import parametrize

from manyworlds.managers.mirror import EnvMirror, Reflection
from manyworlds.rl.config import MIRROR_BATCH

if TYPE_CHECKING:
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


def add_mirror(settings: dict[str, Any], env: RslRlVecEnvWrapper) -> None:
    """Build the mirror images that the settings of a run ask for.

    Sets `env.mirror`, and the argument `mirror` of symmetric networks, which is not plain data.

    Raises:
        ValueError: the robot or a term has no mirror image.
    """
    obs_groups = settings["obs_groups"]
    networks = [name for name in ("actor", "critic") if _is_symmetric(settings.get(name, {}))]
    augments = (settings["algorithm"].get("symmetry_cfg") or {}).get("data_augmentation_func")
    observers = ("actor", "critic") if augments == MIRROR_BATCH else networks
    groups = {group for name in observers for group in obs_groups[name]}
    if not groups:
        return
    env.mirror = mirror = EnvMirror(env.unwrapped, sorted(groups))
    for name in networks:
        obs = Reflection.join(mirror.groups[group].to("cpu") for group in obs_groups[name])
        value = Reflection.of([0], [1.0])  # of a state's mirror image, which is as good
        settings[name]["mirror"] = obs, mirror.action.to("cpu") if name == "actor" else value


def _is_symmetric(model: dict[str, Any]) -> bool:
    found = resolve_callable(model["class_name"]) if "class_name" in model else None
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
        kwargs: settings of `MLPModel`.

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
        mirror: Sequence[Reflection],
        **kwargs: Any,
    ) -> None:
        super().__init__(obs, obs_groups, obs_set, output_dim, **kwargs)
        self.mlp = MirrorAverage(cast("nn.Module", self.mlp), *mirror)
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


class MirrorAverage(nn.Module):
    """Average of a network's output and the mirror image of that for the mirrored input."""

    input_index: torch.Tensor
    input_sign: torch.Tensor
    output_index: torch.Tensor
    output_sign: torch.Tensor

    def __init__(self, mlp: nn.Module, inputs: Reflection, outputs: Reflection) -> None:
        super().__init__()
        self.mlp = mlp
        for name, reflection in (("input", inputs), ("output", outputs)):
            self.register_buffer(f"{name}_index", reflection.index.clone())
            self.register_buffer(f"{name}_sign", reflection.sign.clone())

    def mirror_input(self, x: torch.Tensor) -> torch.Tensor:
        """Return the mirror image of inputs, shape [n, inputs]."""
        return x[:, self.input_index] * self.input_sign

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return outputs, shape [n, outputs], of inputs, shape [n, inputs]."""
        image = self.mlp(self.mirror_input(x))
        return 0.5 * (self.mlp(x) + image[:, self.output_index] * self.output_sign)


class _PairAverage(nn.Module):
    """Average of each element with that of its mirror image."""

    index: torch.Tensor

    def __init__(self, index: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("index", index.clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the averages, shape [n]."""
        return 0.5 * (x + x[self.index])
