"""Loading of checkpoint files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import torch

AVERAGED = "averaged_state_dict"
"""Key of the averaged policy in a checkpoint."""

# Names of networks before rsl_rl 4 (in one state dict), in rsl_rl 4, and in current releases.
_OLD_NAMES = {"std": "distribution.std_param", "log_std": "distribution.log_std_param"}


def load_checkpoint(path: Path, map_location: str = "cpu") -> dict[str, Any]:
    """Read a checkpoint without running code that it contains.

    Checkpoints of older releases of rsl_rl are converted to the current format.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: the file is not a checkpoint.
    """
    if not path.is_file():
        raise FileNotFoundError(f"There is no checkpoint '{path}': give the path of a .pt file.")
    try:
        checkpoint = _migrate(torch.load(path, weights_only=True, map_location=map_location))
        _ = acting_weights(checkpoint), checkpoint["iter"]
    except Exception:
        raise ValueError(
            f"'{path}' is not a checkpoint of a training run, or it is damaged: choose another."
        ) from None
    return checkpoint


def acting_weights(checkpoint: Mapping[str, object]) -> dict[str, torch.Tensor]:
    """Return the state dict of the policy that playback uses: the average, if there is one.

    Each tensor has the shape of its parameter.
    """
    policy = checkpoint.get(AVERAGED) or checkpoint.get("student_state_dict")
    return cast("dict[str, torch.Tensor]", policy or checkpoint["actor_state_dict"])


def _migrate(checkpoint: dict[str, Any]) -> dict[str, Any]:
    if "model_state_dict" in checkpoint:
        both = checkpoint.pop("model_state_dict")
        for network in ("actor", "critic"):
            checkpoint[f"{network}_state_dict"] = {
                name: value
                for old, value in both.items()
                if (name := _own_name(old, network)) is not None
            }
    for network in ("actor_state_dict", "critic_state_dict"):
        state = checkpoint.get(network, {})
        for old in set(state) & set(_OLD_NAMES):
            state[_OLD_NAMES[old]] = state.pop(old)
    return checkpoint


def _own_name(name: str, network: str) -> str | None:
    """Return the name of a common entry in one network's state dict; None if it has none."""
    if name in _OLD_NAMES:
        return name if network == "actor" else None
    for prefix, new in ((f"{network}.", "mlp."), (f"{network}_obs_normalizer.", "obs_normalizer.")):
        if name.startswith(prefix):
            return new + name.removeprefix(prefix)
    return None
