"""Learning algorithms of rsl_rl, adjusted by subclassing."""

from __future__ import annotations

from typing import Any, cast

import torch
from rsl_rl.extensions import Symmetry
from rsl_rl.utils import resolve_callable
from tensordict import TensorDict

from manyworlds.rl.symmetry import MirrorSymmetry
from manyworlds.utils.devices import torch_threads


class AdjustedAlgorithm:
    """Base class that comes before an algorithm of rsl_rl; see `adjusted`."""

    gamma: float
    update_threads: int | None = None
    """Number of torch threads that `update` runs with; None for the present number."""
    symmetry: Symmetry | None

    def __init__(self, *args: object, **kwargs: object) -> None:
        learner: Any = super()
        learner.__init__(*args, **kwargs)
        if (symmetry := getattr(self, "symmetry", None)) is not None:
            self.symmetry = MirrorSymmetry(**vars(symmetry))

    def update(self) -> dict[str, float]:
        """Learn from the collected steps; return mean losses."""
        learner: Any = super()
        with torch_threads(self.update_threads or torch.get_num_threads()):
            return learner.update()

    def process_env_step(
        self, obs: TensorDict, rewards: torch.Tensor, dones: torch.Tensor, extras: dict[str, Any]
    ) -> None:
        """Record one step; bootstrap a time-out with the value of the final observation.

        rsl_rl takes the value of the observation before it, which is one step old. That remains so
        for a recurrent critic, because a call for its value would advance its memory.
        """
        critic: Any = getattr(self, "critic", None)
        learner: Any = super()
        final = {"final_obs", "time_outs"} <= extras.keys()
        if final and critic is not None and not critic.is_recurrent:
            extras = dict(extras)
            value = critic(extras["final_obs"].to(rewards.device)).detach().squeeze(1)
            time_outs = extras.pop("time_outs").to(rewards.device)
            # Not a product: the final observation of a world that diverged is not finite.
            rewards = torch.where(time_outs, rewards + self.gamma * value, rewards)
        learner.process_env_step(obs, rewards, dones, extras)


def adjusted(algorithm: type | str) -> type:
    """Derive a class from an algorithm of rsl_rl, or of its kind.

    Args:
        algorithm: the class, or its name as rsl_rl resolves it, such as `PPO` or `module:class`.
    """
    base = cast("type", resolve_callable(algorithm))
    return type(base.__name__, (AdjustedAlgorithm, base), {"__doc__": base.__doc__})
