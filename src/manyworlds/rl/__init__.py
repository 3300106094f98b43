"""Reinforcement learning with rsl_rl's PPO; needs the extra `train`.

What needs rsl_rl or onnxruntime is imported on first use.
"""

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
from manyworlds.utils.lazy_names import lazy_names

if TYPE_CHECKING:
    from manyworlds.rl.onnx_policy import OnnxPolicy
    from manyworlds.rl.runner import OnPolicyRunner
    from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper

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

_MODULES = {
    "OnPolicyRunner": "manyworlds.rl.runner",
    "OnnxPolicy": "manyworlds.rl.onnx_policy",
    "RslRlVecEnvWrapper": "manyworlds.rl.vecenv_wrapper",
}

__getattr__ = lazy_names(__name__, _MODULES)
