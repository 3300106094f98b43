"""Managers of the environment: each runs the terms of one kind."""

from manyworlds.managers.action_manager import ActionManager, ActionTerm, ActionTermCfg
from manyworlds.managers.command_manager import (
    CommandManager,
    CommandTerm,
    CommandTermCfg,
    NullCommandManager,
)
from manyworlds.managers.curriculum_manager import (
    CurriculumManager,
    CurriculumTermCfg,
    NullCurriculumManager,
)
from manyworlds.managers.event_manager import (
    EventManager,
    EventMode,
    EventTermCfg,
    requires_model_fields,
)
from manyworlds.managers.manager_base import ManagerBase, ManagerTermBase, ManagerTermBaseCfg
from manyworlds.managers.metrics_manager import (
    MetricsManager,
    MetricsTermCfg,
    NullMetricsManager,
)
from manyworlds.managers.observation_manager import (
    ObservationGroupCfg,
    ObservationManager,
    ObservationTermCfg,
)
from manyworlds.managers.recorder_manager import (
    NullRecorderManager,
    RecorderManager,
    RecorderTerm,
    RecorderTermCfg,
)
from manyworlds.managers.reward_manager import RewardManager, RewardTermCfg
from manyworlds.managers.scene_entity_config import SceneEntityCfg
from manyworlds.managers.termination_manager import TerminationManager, TerminationTermCfg
from manyworlds.validation.worlds import EnvIds, Worlds, takes_worlds

__all__ = [
    "ActionManager",
    "ActionTerm",
    "ActionTermCfg",
    "CommandManager",
    "CommandTerm",
    "CommandTermCfg",
    "CurriculumManager",
    "CurriculumTermCfg",
    "EnvIds",
    "EventManager",
    "EventMode",
    "EventTermCfg",
    "ManagerBase",
    "ManagerTermBase",
    "ManagerTermBaseCfg",
    "MetricsManager",
    "MetricsTermCfg",
    "NullCommandManager",
    "NullCurriculumManager",
    "NullMetricsManager",
    "NullRecorderManager",
    "ObservationGroupCfg",
    "ObservationManager",
    "ObservationTermCfg",
    "RecorderManager",
    "RecorderTerm",
    "RecorderTermCfg",
    "RewardManager",
    "RewardTermCfg",
    "SceneEntityCfg",
    "TerminationManager",
    "TerminationTermCfg",
    "Worlds",
    "requires_model_fields",
    "takes_worlds",
]
