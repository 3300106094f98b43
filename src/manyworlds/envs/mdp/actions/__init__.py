"""Action terms."""

from manyworlds.envs.mdp.actions.actions import (
    BaseAction,
    BaseActionCfg,
    JointEffortAction,
    JointEffortActionCfg,
)

__all__ = ["BaseAction", "BaseActionCfg", "JointEffortAction", "JointEffortActionCfg"]
