"""The MDP's clerks: each runs one kind of term."""

from manyworlds.managers.action_manager import ActionManager, ActionTerm, ActionTermCfg
from manyworlds.managers.event_manager import (
    EventManager,
    EventMode,
    EventTermCfg,
    requires_model_fields,
)
from manyworlds.managers.manager_base import ManagerBase, ManagerTermBase, ManagerTermBaseCfg
from manyworlds.managers.observation_manager import (
    ObservationGroupCfg,
    ObservationManager,
    ObservationTermCfg,
)
from manyworlds.managers.reward_manager import RewardManager, RewardTermCfg
from manyworlds.managers.scene_entity_config import SceneEntityCfg
from manyworlds.managers.termination_manager import TerminationManager, TerminationTermCfg

__all__ = [
    "ActionManager",
    "ActionTerm",
    "ActionTermCfg",
    "EventManager",
    "EventMode",
    "EventTermCfg",
    "ManagerBase",
    "ManagerTermBase",
    "ManagerTermBaseCfg",
    "ObservationGroupCfg",
    "ObservationManager",
    "ObservationTermCfg",
    "RewardManager",
    "RewardTermCfg",
    "SceneEntityCfg",
    "TerminationManager",
    "TerminationTermCfg",
    "requires_model_fields",
]
