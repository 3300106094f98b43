"""What to optimise: the manager-based environment and the terms that come with it."""

from manyworlds.envs.gymnasium_adapter import GymEnv, GymVectorEnv
from manyworlds.envs.manager_based_rl_env import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.envs.types import VecEnvObs, VecEnvStepReturn

__all__ = [
    "GymEnv",
    "GymVectorEnv",
    "ManagerBasedRlEnv",
    "ManagerBasedRlEnvCfg",
    "VecEnvObs",
    "VecEnvStepReturn",
]
