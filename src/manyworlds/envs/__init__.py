"""Manager-based environment and its general terms."""

from manyworlds.envs.env_checker import EnvReport, Finding, check_env
from manyworlds.envs.gymnasium_adapter import GymEnv, GymVectorEnv
from manyworlds.envs.manager_based_rl_env import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.envs.types import VecEnvObs, VecEnvStepReturn

__all__ = [
    "EnvReport",
    "Finding",
    "GymEnv",
    "GymVectorEnv",
    "ManagerBasedRlEnv",
    "ManagerBasedRlEnvCfg",
    "VecEnvObs",
    "VecEnvStepReturn",
    "check_env",
]
