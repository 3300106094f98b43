"""What to optimise: the manager-based environment and the terms that come with it."""

from manyworlds.envs.env_checker import Finding, Report, check_env
from manyworlds.envs.gymnasium_adapter import GymEnv, GymVectorEnv
from manyworlds.envs.manager_based_rl_env import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.envs.types import VecEnvObs, VecEnvStepReturn

__all__ = [
    "Finding",
    "GymEnv",
    "GymVectorEnv",
    "ManagerBasedRlEnv",
    "ManagerBasedRlEnvCfg",
    "Report",
    "VecEnvObs",
    "VecEnvStepReturn",
    "check_env",
]
