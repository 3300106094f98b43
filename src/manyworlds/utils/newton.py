"""Workaround for a defective factorization in the Newton solver of one MuJoCo release.

MuJoCo 4.0.0 merges rows of a sparse factor that have different descendants: the factor of the
Hessian is then wrong, and the solver converges slowly, returns wrong accelerations, or diverges.
4.0.1 fixes this. Remove this module when 4.0.0 is no longer supported.
"""

from __future__ import annotations

import functools
import logging
import warnings

import mujoco
import numpy as np

_AUTO = mujoco.mjtJacobian.mjJAC_AUTO
_DENSE = mujoco.mjtJacobian.mjJAC_DENSE
_NEWTON = mujoco.mjtSolver.mjSOL_NEWTON
_DEFECTIVE = "4.0.0"
SPARSITY_FIELDS = frozenset({"opt.jacobian", "opt.solver"})
"""Model fields that determine whether a sparse factorization is used."""


def newton_defect() -> str:
    """Return a sentence on the defect of this MuJoCo and its effect; empty if there is none."""
    if mujoco.mj_versionString() != _DEFECTIVE:
        return ""
    return (
        f"MuJoCo {_DEFECTIVE} can factorize sparse Hessians wrongly (4.0.1 does not), so that "
        "models of 60 or more degrees of freedom whose jacobian is 'auto' are stepped with dense "
        "Jacobians: correctly, but more slowly."
    )


def avoid_sparse_newton(model: mujoco.MjModel) -> None:
    """Select dense Jacobians for a model if MuJoCo C would factorize sparse ones wrongly.

    This applies to MuJoCo 4.0.0 with the Newton solver and `jacobian="auto"`, if MuJoCo would
    select sparse Jacobians. It is logged once per process. A model with explicitly sparse Jacobians
    keeps them, with a warning. MuJoCo Warp is not affected.

    Args:
        model: the model, whose `opt.jacobian` is written.
    """
    option = model.opt
    if not mujoco.mj_isSparse(model) or option.solver != _NEWTON or not newton_defect():
        return
    if option.jacobian == _AUTO:
        option.jacobian = _DENSE
        _log_once(newton_defect())
    else:
        warnings.warn(
            "The model sets jacobian='sparse' with the Newton solver, whose accelerations "
            f"MuJoCo {_DEFECTIVE} may then compute wrongly: set 'auto' or 'dense', choose another "
            "solver, or install MuJoCo 4.0.1 or newer.",
            stacklevel=2,
        )


def avoid_sparse_rows(model: mujoco.MjModel, solver: np.ndarray, jacobian: np.ndarray) -> None:
    """Apply `avoid_sparse_newton` to worlds with their own solvers or Jacobians.

    Args:
        model: the model that all worlds share; unchanged on return.
        solver: the solver of each world, shape (num_envs,).
        jacobian: the Jacobian of each world, shape (num_envs,), written in place.
    """
    option = model.opt
    shared = option.solver, option.jacobian
    for pair in set(zip(solver.tolist(), jacobian.tolist(), strict=True)):
        option.solver, option.jacobian = pair
        avoid_sparse_newton(model)
        jacobian[(solver == pair[0]) & (jacobian == pair[1])] = option.jacobian
    option.solver, option.jacobian = shared


@functools.cache
def _log_once(message: str) -> None:
    logging.getLogger(__name__).warning(message)
