"""Action terms, with mjlab's inverse kinematics."""

from manyworlds.compat.mjlab.facades.envs.mdp.actions.differential_ik import (
    DifferentialIKAction,
    DifferentialIKActionCfg,
)

__all__ = ["DifferentialIKAction", "DifferentialIKActionCfg"]
