"""Action terms."""

from manyworlds.envs.mdp.actions.actions import (
    BaseAction,
    BaseActionCfg,
    JointEffortAction,
    JointEffortActionCfg,
    JointPositionAction,
    JointPositionActionCfg,
    JointVelocityAction,
    JointVelocityActionCfg,
    RelativeJointPositionAction,
    RelativeJointPositionActionCfg,
    SiteEffortAction,
    SiteEffortActionCfg,
    TendonEffortAction,
    TendonEffortActionCfg,
    TendonLengthAction,
    TendonLengthActionCfg,
    TendonVelocityAction,
    TendonVelocityActionCfg,
)
from manyworlds.envs.mdp.actions.differential_ik import (
    DifferentialIKAction,
    DifferentialIKActionCfg,
)

__all__ = [
    "BaseAction",
    "BaseActionCfg",
    "DifferentialIKAction",
    "DifferentialIKActionCfg",
    "JointEffortAction",
    "JointEffortActionCfg",
    "JointPositionAction",
    "JointPositionActionCfg",
    "JointVelocityAction",
    "JointVelocityActionCfg",
    "RelativeJointPositionAction",
    "RelativeJointPositionActionCfg",
    "SiteEffortAction",
    "SiteEffortActionCfg",
    "TendonEffortAction",
    "TendonEffortActionCfg",
    "TendonLengthAction",
    "TendonLengthActionCfg",
    "TendonVelocityAction",
    "TendonVelocityActionCfg",
]
