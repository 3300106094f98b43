"""Mini-batches of a rollout."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import torch
from rsl_rl.modules import HiddenState
from rsl_rl.storage import RolloutStorage
from tensordict import TensorDict


class MiniBatch(Protocol):
    """Mini-batch of n samples; for recurrent networks, of padded sequences of n worlds."""

    observations: TensorDict
    """Observations by group, shape [n, ...]."""
    actions: torch.Tensor
    """Actions, shape [n, num_actions]."""
    values: torch.Tensor
    """Values before the update, shape [n, 1]."""
    advantages: torch.Tensor
    """Advantages, shape [n, 1]."""
    returns: torch.Tensor
    """Returns, shape [n, 1]."""
    old_actions_log_prob: torch.Tensor
    """Log probabilities of the actions before the update, shape [n, 1]."""
    old_distribution_params: tuple[torch.Tensor, ...]
    """Parameters of the distributions of actions before the update, each of shape [n, ...]."""
    hidden_states: tuple[HiddenState, HiddenState]
    """Memories of recurrent networks at the start of each sequence."""
    masks: torch.Tensor | None
    """True where padded sequences have samples; None for samples."""


def shuffled_mini_batches(
    storage: RolloutStorage, num_mini_batches: int, num_epochs: int
) -> Iterator[RolloutStorage.Batch]:
    """Generate the mini-batches of all epochs, of shape [worlds * steps / mini-batches, ...].

    They are those of rsl_rl's storage, which collects their rows in each epoch. Here they are
    slices of one shuffled copy.

    Args:
        storage: storage with a rollout.
        num_mini_batches: number of mini-batches of an epoch.
        num_epochs: number of epochs.
    """
    size = storage.num_envs * storage.num_transitions_per_env // num_mini_batches
    order = torch.randperm(num_mini_batches * size, device=storage.device)

    def shuffled(rows: torch.Tensor) -> torch.Tensor:
        return rows.flatten(0, 1)[order]

    assert storage.distribution_params is not None, "a rollout was stored"
    observations = storage.observations.flatten(0, 1)[order]
    actions = shuffled(storage.actions)
    values = shuffled(storage.values)
    advantages = shuffled(storage.advantages)
    returns = shuffled(storage.returns)
    log_prob = shuffled(storage.actions_log_prob)
    params = [shuffled(values) for values in storage.distribution_params]
    for _ in range(num_epochs):
        for start in range(0, num_mini_batches * size, size):
            part = slice(start, start + size)
            yield RolloutStorage.Batch(
                observations=observations[part],
                actions=actions[part],
                values=values[part],
                advantages=advantages[part],
                returns=returns[part],
                old_actions_log_prob=log_prob[part],
                old_distribution_params=tuple(values[part] for values in params),
            )
