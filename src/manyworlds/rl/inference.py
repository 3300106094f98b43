"""Trained policy without its training."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import torch

if TYPE_CHECKING:
    from rsl_rl.models import MLPModel
    from tensordict import TensorDict

    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.envs.types import VecEnvObs


@dataclass(frozen=True)
class PolicyEstimate:
    """Value of the present observations, and how far actions differ while learning."""

    value: torch.Tensor | None
    """Expected sum of discounted rewards from now on, shape [worlds]; None without a critic, or
    with one that has a memory."""
    deviation: torch.Tensor | None
    """Standard deviation of the actions while learning, shape [worlds, actions]; None if the policy
    has no distribution."""


_ROWS = 16
"""Multiple of rows at which the matrix products of a CPU compute each row with the same bits.

With other numbers, the last rows go through other code, whose sums have another order.
"""


class InferencePolicy:
    """Function from observations to mean actions, shape [worlds, actions].

    On a CPU, the actions of a world are the same bits in a batch of any size, unless the policy is
    recurrent.

    Args:
        actor: network of the policy; a recurrent one remembers each world's past.
        clip_actions: bound on the magnitude of actions; None for no bound.
        env: environment at whose starts of episodes the memory of a world is cleared; None leaves
            this to `reset`.
        critic: network of the value, for `estimate`; None for none.
    """

    def __init__(
        self,
        actor: MLPModel,
        clip_actions: float | None = None,
        env: ManagerBasedRlEnv | None = None,
        critic: MLPModel | None = None,
    ) -> None:
        self.actor = actor
        self.critic = critic
        self.clip_actions = clip_actions
        self.env = env

    @torch.inference_mode()
    def __call__(self, obs: TensorDict | VecEnvObs) -> torch.Tensor:
        """Return the mean actions, shape [worlds, actions]."""
        if self.actor.is_recurrent and self.env is not None:
            self.actor.reset(self.env.episode_length_buf == 0)
        padded, worlds = _padded(obs, self.actor)
        actions = self.actor(padded)[:worlds]
        if self.clip_actions is not None:
            actions = actions.clamp(-self.clip_actions, self.clip_actions)
        return actions

    @torch.inference_mode()
    def estimate(self, obs: TensorDict | VecEnvObs) -> PolicyEstimate:
        """Return value and deviation; the memory of a recurrent policy stays as it is.

        On a CPU, they are the same bits in a batch of any size, as the actions are.
        """
        value = deviation = None
        distribution = self.actor.distribution
        if distribution is not None:
            memory = self.state_dict()
            padded, worlds = _padded(obs, self.actor)
            distribution.update(self.actor.mlp(self.actor.get_latent(padded)))
            deviation = distribution.std[:worlds]
            if memory:
                self.load_state_dict(memory)
        if self.critic is not None and not self.critic.is_recurrent:
            padded, worlds = _padded(obs, self.critic)
            value = self.critic(padded)[:worlds].squeeze(-1)
        return PolicyEstimate(value, deviation)

    @torch.inference_mode()
    def reset(self, dones: torch.Tensor | None = None) -> None:
        """Clear the memory of the worlds in a mask of shape [worlds]; None for all."""
        self.actor.reset(dones)

    def of_world(self, env_id: int, env: ManagerBasedRlEnv) -> InferencePolicy:
        """Return a copy with the memory of one world, for an environment of that world alone."""
        policy = InferencePolicy(copy.deepcopy(self.actor).to(env.device), self.clip_actions)
        if self.critic is not None:
            policy.critic = copy.deepcopy(self.critic).to(env.device)
        if self.env is not None:
            policy.env = env
        memory = {}
        for name, parts in self.state_dict().items():
            memory[name] = [part[:, env_id : env_id + 1].to(env.device) for part in parts]
        policy.load_state_dict(memory)
        return policy

    def state_dict(self) -> dict[str, list[torch.Tensor]]:
        """Return a copy of the memory, each part of shape [layers, worlds, size]; or nothing."""
        hidden = memory_parts(self.actor)
        if not hidden:
            return {}
        return {"hidden": [part.clone() for part in hidden]}

    @torch.inference_mode()
    def load_state_dict(self, state: dict[str, list[torch.Tensor]]) -> None:
        """Restore a memory that `state_dict` returned."""
        self.actor.reset()
        match [part.clone() for part in state.get("hidden", ())]:
            case [hidden]:
                self.actor.reset(hidden_state=hidden)
            case [hidden, cell]:
                self.actor.reset(hidden_state=(hidden, cell))


def memory_parts(network: MLPModel) -> tuple[torch.Tensor, ...]:
    """Return the memory of a network, each part of shape [layers, worlds, size].

    That of an LSTM has two parts, that of a GRU has one, and other networks have none.
    """
    hidden = network.get_hidden_state()
    if hidden is None:
        return ()
    if isinstance(hidden, torch.Tensor):
        return (hidden,)
    return hidden


def _padded(obs: TensorDict | VecEnvObs, network: MLPModel) -> tuple[TensorDict, int]:
    """Return observations of a network and the number of worlds.

    They have rows of zeros up to a multiple of `_ROWS`, unless the network is recurrent.
    """
    groups = {name: value for name, value in obs.items() if isinstance(value, torch.Tensor)}
    worlds = len(next(iter(groups.values())))
    missing = -worlds % _ROWS
    if missing and not network.is_recurrent:
        for name, value in groups.items():
            groups[name] = torch.cat([value, value.new_zeros(missing, *value.shape[1:])])
    return cast("TensorDict", groups), worlds  # rsl_rl's networks read groups by name only
