"""Trained policy without its training."""

from __future__ import annotations

from typing import Any

import torch


class InferencePolicy:
    """Function from observations to mean actions, shape [worlds, actions].

    Args:
        actor: network of the policy; a recurrent one remembers each world's past.
        clip_actions: bound on the magnitude of actions; None for no bound.
    """

    def __init__(self, actor: Any, clip_actions: float | None = None) -> None:
        self.actor = actor
        self.clip_actions = clip_actions

    @torch.inference_mode()
    def __call__(self, obs: Any) -> torch.Tensor:
        """Return the mean actions, shape [worlds, actions]."""
        actions = self.actor(obs)
        clip = self.clip_actions
        return actions if clip is None else actions.clamp(-clip, clip)

    @torch.inference_mode()
    def reset(self, dones: torch.Tensor | None = None) -> None:
        """Clear the memory of the worlds in a mask of shape [worlds]; None for all."""
        self.actor.reset(dones)

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of the memory; empty for a policy without one."""
        hidden = self.actor.get_hidden_state()
        if hidden is None:
            return {}
        parts = hidden if isinstance(hidden, tuple) else (hidden,)
        return {"hidden": [part.clone() for part in parts]}

    @torch.inference_mode()
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a memory that `state_dict` returned."""
        hidden = tuple(part.clone() for part in state.get("hidden", ()))
        self.actor.reset()
        if hidden:
            self.actor.reset(hidden_state=hidden if len(hidden) > 1 else hidden[0])
