"""Learning: rsl_rl's PPO behind adapters of our own. Needs the extra `train`."""

from typing import TYPE_CHECKING, Any

from manyworlds.rl.config import (
    RslRlBaseRunnerCfg,
    RslRlModelCfg,
    RslRlOnPolicyRunnerCfg,
    RslRlPpoAlgorithmCfg,
)

if TYPE_CHECKING:
    from manyworlds.rl.runner import OnPolicyRunner
    from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper

__all__ = [
    "OnPolicyRunner",
    "RslRlBaseRunnerCfg",
    "RslRlModelCfg",
    "RslRlOnPolicyRunnerCfg",
    "RslRlPpoAlgorithmCfg",
    "RslRlVecEnvWrapper",
]


def __getattr__(name: str) -> Any:
    """Import what needs rsl_rl only when it is asked for."""
    if name == "OnPolicyRunner":
        from manyworlds.rl.runner import OnPolicyRunner

        return OnPolicyRunner
    if name == "RslRlVecEnvWrapper":
        from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper

        return RslRlVecEnvWrapper
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
