"""Manager-based environment and its general terms."""

from manyworlds.envs.bucketed_rl_env import BucketedRlEnv, make_env
from manyworlds.envs.env_checker import EnvReport, Finding, check_env
from manyworlds.envs.gymnasium_adapter import GymEnv, GymVectorEnv
from manyworlds.envs.manager_based_rl_env import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.envs.types import VecEnvObs, VecEnvStepReturn

__all__ = [
    "BucketedRlEnv",
    "EnvReport",
    "Finding",
    "GymEnv",
    "GymVectorEnv",
    "ManagerBasedRlEnv",
    "ManagerBasedRlEnvCfg",
    "VecEnvObs",
    "VecEnvStepReturn",
    "check_env",
    "make_env",
]
