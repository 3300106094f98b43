"""Networks that all joints share: one policy for robots with other numbers and kinds of joints.

An observation group holds a token of each joint, of `mdp.joint_tokens`; the other groups hold what
the whole robot observes. A joint's token and these observations are encoded together, the
encodings of a robot's joints are pooled by attention, and one decoder gives the action of each
joint from its own encoding and the pool. This is a permutation-equivariant network of sets (Zaheer
et al., 2017, arXiv:1703.06114). No parameter belongs to a column, so that a policy acts on robots
that it was not trained on.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import nn

from manyworlds.utils.extras import require_extra

require_extra("rsl_rl", "train")
from rsl_rl.models import MLPModel  # noqa: E402
from rsl_rl.modules import MLP, EmpiricalNormalization, HiddenState  # noqa: E402
from rsl_rl.utils import resolve_nn_activation  # noqa: E402

from manyworlds.rl.masked_actions import MaskedGaussianDistribution  # noqa: E402

if TYPE_CHECKING:
    from tensordict import TensorDict

_HEADS = 4  # weighted means of a robot's joints, each with weights of its own
_NEVER = -1e9  # finite: a world without joints, which pads a batch, would give NaN else


class _JointModel(MLPModel):
    """Observations and their normalization, which actor and critic share.

    Args:
        obs: observations by group.
        obs_groups: groups of each network: one of tokens, shape [worlds, joints, size], and at
            least one of shape [worlds, n].
        obs_set: name of the network.
        output_dim: number of outputs.
        settings: further settings of rsl_rl's `MLPModel`.

    Raises:
        ValueError: the groups are others.
    """

    joint_group: str
    """Name of the group of tokens."""

    def __init__(
        self,
        obs: TensorDict,
        obs_groups: dict[str, list[str]],
        obs_set: str,
        output_dim: int,
        **settings: object,
    ) -> None:
        known = cast("dict[str, Any]", settings)
        super().__init__(obs, obs_groups, obs_set, output_dim, **known)
        self.num_joints, self.token_size = obs[self.joint_group].shape[1:]
        self.token_normalizer: nn.Module = nn.Identity()
        if self.obs_normalization:
            self.token_normalizer = EmpiricalNormalization(self.token_size)

    def get_latent(
        self,
        obs: TensorDict,
        masks: torch.Tensor | None = None,
        hidden_state: HiddenState = None,
    ) -> torch.Tensor:
        """Return what each joint's encoder reads, shape [worlds, joints, 1 + n + size].

        The first column is 1 for joints, and 0 for tokens that pad the group.
        """
        return _joint_inputs(super().get_latent(obs), obs[self.joint_group], self.token_normalizer)

    def update_normalization(self, obs: TensorDict) -> None:
        """Update the statistics of observations, and of the tokens of joints."""
        super().update_normalization(obs)
        if self.obs_normalization:
            tokens = obs[self.joint_group]
            cast("EmpiricalNormalization", self.token_normalizer).update(tokens[tokens[..., 0] > 0])

    def as_onnx(self, verbose: bool = False) -> ExportedJointModel:
        """Return a copy for export, with the inputs `obs` and that of the group of tokens."""
        return ExportedJointModel(self)

    def as_jit(self) -> ExportedJointModel:
        """Return a copy for export, as `as_onnx` does."""
        return ExportedJointModel(self)

    def _split(self, hidden_dims: tuple[int, ...] | list[int]) -> tuple[int, list[int]]:
        """Return the size of a joint's encoding, and those of the decoder's layers.

        Raises:
            ValueError: there is only one.
        """
        width, *decoder = hidden_dims
        if not decoder:
            raise ValueError(
                f"hidden_dims of {type(self).__name__} is {tuple(hidden_dims)}, but must be the "
                "size of a joint's encoding and at least one size of the decoder, such as (64, 64)."
            )
        return width, decoder

    def _get_obs_dim(
        self, obs: TensorDict, obs_groups: dict[str, list[str]], obs_set: str
    ) -> tuple[list[str], int]:
        """Return the groups without tokens, and their number of columns."""
        flat = [name for name in obs_groups[obs_set] if obs[name].ndim == 2]
        joints = [name for name in obs_groups[obs_set] if obs[name].ndim == 3]
        if not flat or len(joints) != 1 or len(flat) + 1 != len(obs_groups[obs_set]):
            shapes = {name: tuple(obs[name].shape[1:]) for name in obs_groups[obs_set]}
            raise ValueError(
                f"{type(self).__name__} reads one group of tokens, shape [joints, size], and at "
                f"least one of shape [n], but obs_groups['{obs_set}'] has the shapes {shapes}: "
                "observe mdp.joint_tokens in a group of its own."
            )
        (self.joint_group,) = joints
        return super()._get_obs_dim(obs, {obs_set: flat}, obs_set)


class JointActorModel(_JointModel):
    """Policy that gives one action for each joint's token.

    The first of `hidden_dims` is the size of a joint's encoding; the others are those of the
    decoder.

    Args:
        obs: observations by group; see `JointCriticModel`.
        obs_groups: groups of each network.
        obs_set: name of the network.
        output_dim: number of actions, which is that of tokens.
        hidden_dims: sizes of layers.
        activation: name of the activation.
        settings: further settings of rsl_rl's `MLPModel`.

    Raises:
        ValueError: the numbers of actions and tokens differ, there is only one size of layers, or
            the distribution is not a `MaskedGaussianDistribution`.
    """

    def __init__(
        self,
        obs: TensorDict,
        obs_groups: dict[str, list[str]],
        obs_set: str,
        output_dim: int,
        hidden_dims: tuple[int, ...] | list[int] = (64, 64),
        activation: str = "elu",
        **settings: object,
    ) -> None:
        super().__init__(
            obs,
            obs_groups,
            obs_set,
            output_dim,
            hidden_dims=hidden_dims,
            activation=activation,
            **settings,
        )
        if self.num_joints != output_dim:
            raise ValueError(
                f"The group '{self.joint_group}' has tokens of {self.num_joints} joints, but there "
                f"are {output_dim} actions: select the joints that have actions, in their order, "
                "by asset_cfg of mdp.joint_tokens."
            )
        if not isinstance(self.distribution, MaskedGaussianDistribution):
            raise ValueError(
                f"The distribution of {type(self).__name__} is a "
                f"{type(self.distribution).__name__}, which counts the actions of tokens that pad "
                "a robot: set distribution_cfg to masked_gaussian_distribution(shared_std=True)."
            )
        size = self.obs_dim + self.token_size
        self.mlp = _JointNetwork(  # type: ignore[assignment]
            size, *self._split(hidden_dims), activation
        )


class JointCriticModel(_JointModel):
    """Value of a robot: the mean encoding of its joints and what the robot observes, decoded.

    The first of `hidden_dims` is the size of a joint's encoding; the others are those of the
    decoder.

    Args:
        obs: observations by group.
        obs_groups: groups of each network: one of tokens, shape [worlds, joints, size], and at
            least one of shape [worlds, n].
        obs_set: name of the network.
        output_dim: number of outputs.
        hidden_dims: sizes of layers.
        activation: name of the activation.
        settings: further settings of rsl_rl's `MLPModel`.

    Raises:
        ValueError: the groups are others.
    """

    def __init__(
        self,
        obs: TensorDict,
        obs_groups: dict[str, list[str]],
        obs_set: str,
        output_dim: int,
        hidden_dims: tuple[int, ...] | list[int] = (64, 128, 128),
        activation: str = "elu",
        **settings: object,
    ) -> None:
        super().__init__(
            obs,
            obs_groups,
            obs_set,
            output_dim,
            hidden_dims=hidden_dims,
            activation=activation,
            **settings,
        )
        self.mlp = _PooledNetwork(  # type: ignore[assignment]
            self.obs_dim, self.token_size, *self._split(hidden_dims), output_dim, activation
        )


class _JointNetwork(nn.Module):
    """Encoder of joints, attention that pools a robot's joints, and decoder of joints.

    Args:
        size: number of inputs of a joint.
        width: size of a joint's encoding.
        hidden_dims: sizes of the decoder's hidden layers.
        activation: name of the activation.
    """

    def __init__(self, size: int, width: int, hidden_dims: list[int], activation: str) -> None:
        super().__init__()
        first, *others = hidden_dims
        self.encoder = MLP(size, width, [width], activation, last_activation=activation)
        self.scores = nn.Linear(width, _HEADS)
        self.from_joint = nn.Linear(width, first)
        self.from_pool = nn.Linear(_HEADS * width, first, bias=False)
        self.activation = resolve_nn_activation(activation)
        self.decoder = nn.Linear(first, 1)
        if others:
            self.decoder = MLP(first, 1, others, activation)

    def forward(self, joints: torch.Tensor) -> torch.Tensor:
        """Return means and mask, [worlds, 2, joints], from the model's `get_latent`."""
        present = joints[..., 0]
        encoded = self.encoder(joints[..., 1:])
        scores = self.scores(encoded).masked_fill((present < 0.5).unsqueeze(-1), _NEVER)
        weights = torch.softmax(scores, dim=1)
        pool = (weights.transpose(1, 2) @ encoded).flatten(1)
        hidden = self.from_joint(encoded) + self.from_pool(pool).unsqueeze(1)
        mean = self.decoder(self.activation(hidden)).squeeze(-1)
        return torch.stack([mean, present], dim=-2)


class _PooledNetwork(nn.Module):
    """Encoder of joints, mean of their encodings, and decoder of a robot.

    Args:
        obs_dim: number of observations of a robot.
        token_size: number of columns of a token.
        width: size of a joint's encoding.
        hidden_dims: sizes of the decoder's hidden layers.
        output_dim: number of outputs.
        activation: name of the activation.
    """

    def __init__(
        self,
        obs_dim: int,
        token_size: int,
        width: int,
        hidden_dims: list[int],
        output_dim: int,
        activation: str,
    ) -> None:
        super().__init__()
        self.obs_dim = obs_dim
        self.encoder = MLP(obs_dim + token_size, width, [width], activation)
        self.decoder = MLP(obs_dim + width, output_dim, hidden_dims, activation)

    def forward(self, joints: torch.Tensor) -> torch.Tensor:
        """Return the outputs, [worlds, output_dim], from the model's `get_latent`."""
        present = joints[..., :1]
        encoded = self.encoder(joints[..., 1:]) * present
        pooled = encoded.sum(dim=1) / present.sum(dim=1).clamp(min=1.0)
        observed = joints[:, 0, 1 : 1 + self.obs_dim]  # the same for all joints
        return self.decoder(torch.cat([observed, pooled], dim=-1))


class ExportedJointModel(nn.Module):
    """Copy of a `JointActorModel` for export, whose number of joints may change.

    Args:
        model: the model.
    """

    is_recurrent = False

    def __init__(self, model: _JointModel) -> None:
        super().__init__()
        self.obs_normalizer = copy.deepcopy(model.obs_normalizer)
        self.token_normalizer = copy.deepcopy(model.token_normalizer)
        self.mlp = copy.deepcopy(model.mlp)
        self.deterministic_output: nn.Module = nn.Identity()
        if model.distribution is not None:
            self.deterministic_output = model.distribution.as_deterministic_output_module()
        self._sizes = model.obs_dim, model.num_joints, model.token_size
        self.joint_group = model.joint_group
        """Name of the group of tokens, and of their input."""
        self.input_names = ["obs", self.joint_group]
        self.output_names = ["actions"]

    def forward(self, obs: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """Return actions, shape [worlds, joints], for observations and tokens."""
        joints = _joint_inputs(self.obs_normalizer(obs), tokens, self.token_normalizer)
        return self.deterministic_output(self.mlp(joints))

    def get_dummy_inputs(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return inputs for tracing."""
        obs_dim, num_joints, token_size = self._sizes
        return torch.zeros(1, obs_dim), torch.zeros(1, num_joints, token_size)


def _joint_inputs(
    observed: torch.Tensor, tokens: torch.Tensor, normalizer: nn.Module
) -> torch.Tensor:
    """Return what each joint's encoder reads, shape [worlds, joints, 1 + n + size].

    Args:
        observed: normalized observations of the robots, shape [worlds, n].
        tokens: tokens, shape [worlds, joints, size], the first column of which is the mask.
        normalizer: normalization of tokens.
    """
    of_robot = observed.unsqueeze(1).expand(-1, tokens.shape[1], -1)
    return torch.cat([tokens[..., :1], of_robot, normalizer(tokens)], dim=-1)
