"""Present policy of a training, for a copy of one of its worlds."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

import torch

from manyworlds.rl.inference import memory_parts

if TYPE_CHECKING:
    from manyworlds.rl.runner import OnPolicyRunner

Weights = dict[str, torch.Tensor]


class SentPolicy(TypedDict):
    """Policy as plain data."""

    iteration: int
    actor: Weights
    critic: Weights
    """Network of the value; empty for a student, which has none."""
    hidden: list[torch.Tensor]
    """Memory of a recurrent policy for one world."""


class TrainingPolicy:
    """Policy of a runner as plain data, at any time of the training.

    Args:
        runner: the runner, which trains.
    """

    def __init__(self, runner: OnPolicyRunner) -> None:
        self._runner = runner
        self._held: tuple[Weights, Weights] | None = None

    def of_world(self, env_id: int) -> SentPolicy:
        """Return iteration, networks, and the memory of a recurrent policy for one world."""
        world = slice(env_id, env_id + 1)
        memory = memory_parts(self._runner.alg.get_policy())
        actor, critic = self._held or self._weights()
        return {
            "iteration": self._runner.current_learning_iteration,
            "actor": actor,
            "critic": critic,
            "hidden": [part[:, world].detach().cpu().clone() for part in memory],
        }

    def hold(self) -> None:
        """Keep a copy of the networks: learning changes them from now on."""
        self._held = self._weights()

    def release(self) -> None:
        """Use the networks themselves again: learning has changed them."""
        self._held = None

    def _weights(self) -> tuple[Weights, Weights]:
        """Return copies of the networks of the policy, or its average, and of the value."""
        critic: Weights = {}
        if hasattr(self._runner.alg, "critic"):
            critic = _copied(self._runner.alg.critic)
        return _copied(self._runner.acting_policy()), critic


def _copied(network: torch.nn.Module) -> Weights:
    return {name: value.detach().cpu().clone() for name, value in network.state_dict().items()}
