"""Manager-based environment and its general terms."""

from typing import TYPE_CHECKING

from manyworlds.envs.env_checker import EnvReport, Finding, check_env
from manyworlds.envs.environment_of_world import (
    environment_of_moment,
    environment_of_world,
)
from manyworlds.envs.gymnasium_adapter import GymEnv, GymVectorEnv
from manyworlds.envs.manager_based_rl_env import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.envs.types import VecEnvObs, VecEnvStepReturn
from manyworlds.envs.world_moment import WorldMoment, world_moment
from manyworlds.utils.lazy_names import lazy_names

if TYPE_CHECKING:
    from manyworlds.envs.world_record import WorldRecord, WorldRecorder

__all__ = [
    "EnvReport",
    "Finding",
    "GymEnv",
    "GymVectorEnv",
    "ManagerBasedRlEnv",
    "ManagerBasedRlEnvCfg",
    "VecEnvObs",
    "VecEnvStepReturn",
    "WorldMoment",
    "WorldRecord",
    "WorldRecorder",
    "check_env",
    "environment_of_moment",
    "environment_of_world",
    "world_moment",
]

# The recording of draws loads torch.
__getattr__ = lazy_names(__name__, dict.fromkeys(("WorldRecord", "WorldRecorder"), ".world_record"))
