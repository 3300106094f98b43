"""Present policy of a training, for a copy of one of its worlds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

import torch

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
        actor: Any = self._runner.alg.get_policy()
        hidden = actor.get_hidden_state()
        parts = () if hidden is None else hidden if isinstance(hidden, tuple) else (hidden,)
        weights, critic = self._weights() if self._held is None else self._held
        return {
            "iteration": self._runner.current_learning_iteration,
            "actor": weights,
            "critic": critic,
            "hidden": [part[:, env_id : env_id + 1].detach().cpu().clone() for part in parts],
        }

    def hold(self) -> None:
        """Keep a copy of the networks: learning changes them from now on."""
        self._held = self._weights()

    def release(self) -> None:
        """Use the networks themselves again: learning has changed them."""
        self._held = None

    def _weights(self) -> tuple[Weights, Weights]:
        """Return copies of the networks of the policy, or its average, and of the value."""
        algorithm = self._runner.alg
        critic = getattr(algorithm, "critic", None)
        actor = self._runner.acting_policy()
        return _copied(actor), {} if critic is None else _copied(critic)


def _copied(network: torch.nn.Module) -> Weights:
    return {name: value.detach().cpu().clone() for name, value in network.state_dict().items()}
