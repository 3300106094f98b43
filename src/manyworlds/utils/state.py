"""Saving and restoring whatever has state."""

from __future__ import annotations

from typing import Any, ClassVar

import torch


class Stateful:
    """Names the attributes that make up an object's state.

    An attribute may be a tensor, a number, a dict of either, or another stateful object (or a
    dict or list of such objects).
    """

    state_attributes: ClassVar[tuple[str, ...]] = ()

    def state_dict(self) -> dict[str, Any]:
        """Copy the state: tensors, numbers, and nested dicts of them."""
        return {name: _save(getattr(self, name)) for name in self.state_attributes}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state that `state_dict` returned; tensors are written in place.

        Raises:
            ValueError: the saved state does not fit this object.
        """
        missing = set(self.state_attributes) - set(state)
        if missing:
            raise ValueError(
                f"The saved state of {type(self).__name__} lacks {sorted(missing)}: "
                "was it saved from another configuration?"
            )
        for name in self.state_attributes:
            setattr(self, name, _load(getattr(self, name), state[name], name))


def _save(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone()
    if hasattr(value, "state_dict"):
        return value.state_dict()
    if isinstance(value, dict):
        return {key: _save(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_save(item) for item in value]
    return value


def _load(value: Any, saved: Any, name: str) -> Any:
    if isinstance(value, torch.Tensor):
        if value.shape != saved.shape:
            raise ValueError(
                f"Saved '{name}' has shape {tuple(saved.shape)}, expected {tuple(value.shape)}: "
                "use the same configuration and number of worlds."
            )
        if value.is_inference() and not torch.is_inference_mode_enabled():
            value = value.clone()  # it came from a rollout, and would take no writes here
        return value.copy_(saved)
    if hasattr(value, "load_state_dict"):
        value.load_state_dict(saved)
        return value
    if isinstance(value, dict):
        if set(value) != set(saved):
            raise ValueError(f"Saved '{name}' has {sorted(saved)}, expected {sorted(value)}.")
        return {key: _load(item, saved[key], f"{name}.{key}") for key, item in value.items()}
    if isinstance(value, list):
        return [
            _load(v, s, f"{name}[{i}]") for i, (v, s) in enumerate(zip(value, saved, strict=True))
        ]
    return saved
