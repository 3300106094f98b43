"""Policies that act in the environment that drives a world."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import torch

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.envs.types import VecEnvObs


class EnvironmentPolicy(Protocol):
    """Map from the observations of an environment to its actions.

    It may also have `reset(dones=None)`, which clears its memory of the worlds in a mask of shape
    [num_envs], or of all; and `state_dict` and `load_state_dict`, which saved states then include.
    """

    def __call__(self, obs: VecEnvObs, /) -> torch.Tensor:
        """Return the actions, shape [num_envs, num_actions]."""
        ...


@runtime_checkable
class ResettablePolicy(Protocol):
    """Policy with a memory."""

    def reset(self, dones: torch.Tensor | None = None) -> object:
        """Clear the memory of the worlds in a mask of shape [num_envs]; None for all."""
        ...


@runtime_checkable
class RecurrentPolicy(ResettablePolicy, Protocol):
    """Policy whose memory can be saved."""

    def state_dict(self) -> dict[str, object]:
        """Return the memory."""
        ...

    def load_state_dict(self, state: dict[str, object], /) -> object:
        """Set the memory that `state_dict` returned."""
        ...


@runtime_checkable
class _OfWorlds(Protocol):
    def of_world(self, env_id: int, env: ManagerBasedRlEnv, /) -> EnvironmentPolicy: ...


def policy_of_world(
    policy: EnvironmentPolicy | None, env_id: int, env: ManagerBasedRlEnv
) -> EnvironmentPolicy | None:
    """Return the policy of a batch for one of its worlds.

    Args:
        policy: the policy of the batch.
        env_id: index of the world in the batch.
        env: environment of the world alone.

    Raises:
        ValueError: the policy has a memory that cannot be divided.
    """
    if isinstance(policy, _OfWorlds):
        return policy.of_world(env_id, env)
    if isinstance(policy, ResettablePolicy):
        raise ValueError(
            f"{type(policy).__name__} has a memory of all worlds (`reset`), so it cannot go on in "
            f"world {env_id} alone: give it a method of_world(env_id, env) that returns the policy "
            "of one world."
        )
    return policy
