"""Trained policy without its training."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
        if self.actor.is_recurrent:
            if self.env is not None:
                self.actor.reset(self.env.episode_length_buf == 0)
            actions = self.actor(obs)  # type: ignore[arg-type]  # a mapping is enough
        else:
            padded, worlds = _padded(obs)
            actions = self.actor(padded)[:worlds]  # type: ignore[arg-type]
        clip = self.clip_actions
        return actions if clip is None else actions.clamp(-clip, clip)

    @torch.inference_mode()
    def estimate(self, obs: TensorDict | VecEnvObs) -> PolicyEstimate:
        """Return value and deviation; the memory of a recurrent policy stays as it is."""
        value = deviation = None
        distribution = self.actor.distribution
        if distribution is not None:
            memory = self.state_dict()
            distribution.update(self.actor.mlp(self.actor.get_latent(obs)))  # type: ignore[arg-type]
            deviation = distribution.std
            if memory:
                self.load_state_dict(memory)
        if self.critic is not None and not self.critic.is_recurrent:
            value = self.critic(obs).squeeze(-1)  # type: ignore[arg-type]
        return PolicyEstimate(value, deviation)

    @torch.inference_mode()
    def reset(self, dones: torch.Tensor | None = None) -> None:
        """Clear the memory of the worlds in a mask of shape [worlds]; None for all."""
        self.actor.reset(dones)

    def of_world(self, env_id: int, env: ManagerBasedRlEnv) -> InferencePolicy:
        """Return a copy with the memory of one world, for an environment of that world alone."""
        memory = self.state_dict()
        actor = copy.deepcopy(self.actor).to(env.device)
        critic = None if self.critic is None else copy.deepcopy(self.critic).to(env.device)
        own_env = None if self.env is None else env
        policy = InferencePolicy(actor, self.clip_actions, own_env, critic)
        parts = {
            name: [part[:, env_id : env_id + 1].to(env.device) for part in parts]
            for name, parts in memory.items()
        }
        policy.load_state_dict(parts)
        return policy

    def state_dict(self) -> dict[str, list[torch.Tensor]]:
        """Return a copy of the memory, each part of shape [layers, worlds, size]; or nothing."""
        hidden = self.actor.get_hidden_state()
        if hidden is None:
            return {}
        parts = hidden if isinstance(hidden, tuple) else (hidden,)
        return {"hidden": [part.clone() for part in parts]}

    @torch.inference_mode()
    def load_state_dict(self, state: dict[str, list[torch.Tensor]]) -> None:
        """Restore a memory that `state_dict` returned."""
        self.actor.reset()
        match [part.clone() for part in state.get("hidden", ())]:
            case [hidden]:
                self.actor.reset(hidden_state=hidden)
            case [hidden, cell]:
                self.actor.reset(hidden_state=(hidden, cell))


def _padded(obs: TensorDict | VecEnvObs) -> tuple[dict[str, torch.Tensor], int]:
    """Return observations with rows of zeros up to a multiple of `_ROWS`, and their own number."""
    groups = {name: value for name, value in obs.items() if isinstance(value, torch.Tensor)}
    worlds = len(next(iter(groups.values())))
    missing = -worlds % _ROWS
    if missing:
        for name, value in groups.items():
            groups[name] = torch.cat([value, value.new_zeros(missing, *value.shape[1:])])
    return groups, worlds
