"""Reinforcement learning with rsl_rl's PPO; needs the extra `train`."""

import importlib
from typing import TYPE_CHECKING

from manyworlds.rl.config import (
    RslRlBaseRunnerCfg,
    RslRlDistillationAlgorithmCfg,
    RslRlDistillationRunnerCfg,
    RslRlModelCfg,
    RslRlOnPolicyRunnerCfg,
    RslRlPpoAlgorithmCfg,
    RslRlRndCfg,
    RslRlSymmetryCfg,
)

if TYPE_CHECKING:
    from manyworlds.rl.onnx_policy import OnnxPolicy
    from manyworlds.rl.runner import OnPolicyRunner
    from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper

_LAZY = {
    "OnPolicyRunner": ("manyworlds.rl.runner", "OnPolicyRunner"),
    "RslRlVecEnvWrapper": ("manyworlds.rl.vecenv_wrapper", "RslRlVecEnvWrapper"),
    "OnnxPolicy": ("manyworlds.rl.onnx_policy", "OnnxPolicy"),
}

__all__ = [
    "OnPolicyRunner",
    "OnnxPolicy",
    "RslRlBaseRunnerCfg",
    "RslRlDistillationAlgorithmCfg",
    "RslRlDistillationRunnerCfg",
    "RslRlModelCfg",
    "RslRlOnPolicyRunnerCfg",
    "RslRlPpoAlgorithmCfg",
    "RslRlRndCfg",
    "RslRlSymmetryCfg",
    "RslRlVecEnvWrapper",
]


def __getattr__(name: str) -> object:
    """Import objects that need rsl_rl or onnxruntime on first access."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _LAZY[name]
    return getattr(importlib.import_module(module), attribute)
