"""Workaround for a defective factorization in the Newton solver of one MuJoCo release.

MuJoCo 4.0.0 merges rows of a sparse factor that have different descendants: the factor of the
Hessian is then wrong, and the solver converges slowly, returns wrong accelerations, or diverges.
4.0.1 fixes this. It merges up to three rows, so that models whose rows come in threes, such as
those of free bodies, are not affected. Remove this module when 4.0.0 is no longer supported.
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
_CG = mujoco.mjtSolver.mjSOL_CG
# With more degrees of freedom, dense Jacobians take more than four times the time of sparse ones,
# and soon more memory than models ask for.
_MOST_DENSE = 600
_LEAST_SPARSE = 60
"""Degrees of freedom from which on `jacobian="auto"` selects sparse Jacobians."""
_DEFECTIVE = "4.0.0"
SPARSITY_FIELDS = frozenset({"opt.jacobian", "opt.solver"})
"""Model fields that determine whether a sparse factorization is used."""


def newton_defect() -> str:
    """Return a sentence on the defect of this MuJoCo and its effect; empty if there is none."""
    if mujoco.mj_versionString() != _DEFECTIVE:
        return ""
    return (
        f"MuJoCo {_DEFECTIVE} can factorize sparse Hessians wrongly (4.0.1 does not), so that "
        f"robots and other models with hinges or slides, of {_LEAST_SPARSE} or more degrees of "
        "freedom and with jacobian 'auto', are stepped with dense Jacobians, and those of more "
        f"than {_MOST_DENSE} with the CG solver: correctly, but more slowly."
    )


def solver_note(model: mujoco.MjModel) -> str:
    """Return a sentence if a model is stepped in the place of sparse Newton; empty otherwise."""
    option = model.opt
    instead = option.solver == _NEWTON and option.jacobian == _DENSE
    if model.nv > _MOST_DENSE:
        instead = option.solver == _CG and option.jacobian == _AUTO
    if not instead or model.nv < _LEAST_SPARSE or _rows_in_threes(model):
        return ""
    return newton_defect()


def avoid_sparse_newton(model: mujoco.MjModel) -> None:
    """Select dense Jacobians, or CG, for a model if MuJoCo C could factorize sparse ones wrongly.

    This applies to MuJoCo 4.0.0 with the Newton solver and `jacobian="auto"`, if MuJoCo would
    select sparse Jacobians and not all rows come in threes. It is logged once per process. A model
    with explicitly sparse Jacobians keeps them, with a warning. MuJoCo Warp is not affected.

    Args:
        model: the model, whose `opt.jacobian` or `opt.solver` is written.
    """
    option = model.opt
    if not mujoco.mj_isSparse(model) or option.solver != _NEWTON or not newton_defect():
        return
    if _rows_in_threes(model):
        return
    if option.jacobian == _AUTO:
        if model.nv <= _MOST_DENSE:
            option.jacobian = _DENSE
        else:
            option.solver = _CG
        _log_once(newton_defect())
    else:
        warnings.warn(
            "The model sets jacobian='sparse' with the Newton solver, whose accelerations "
            f"MuJoCo {_DEFECTIVE} may then compute wrongly: set 'auto' or 'dense', choose another "
            "solver, or install MuJoCo 4.0.1 or newer.",
            stacklevel=2,
        )


def _rows_in_threes(model: mujoco.MjModel) -> bool:
    """Return True if constraints involve degrees of freedom in threes only, or single ones.

    Contacts, and most equalities and tendons, involve all degrees of freedom of a body.
    """
    whole = not (model.body_dofnum % 3).any()
    by_joint = (model.eq_type == mujoco.mjtEq.mjEQ_JOINT).any() or (
        model.wrap_type == mujoco.mjtWrap.mjWRAP_JOINT
    ).any()
    return whole and not by_joint


def avoid_sparse_rows(model: mujoco.MjModel, solver: np.ndarray, jacobian: np.ndarray) -> None:
    """Apply `avoid_sparse_newton` to worlds with their own solvers or Jacobians.

    Args:
        model: the model that all worlds share; unchanged on return.
        solver: the solver of each world, shape (num_envs,), written in place.
        jacobian: the Jacobian of each world, shape (num_envs,), written in place.
    """
    option = model.opt
    shared = option.solver, option.jacobian
    for pair in set(zip(solver.tolist(), jacobian.tolist(), strict=True)):
        option.solver, option.jacobian = pair
        avoid_sparse_newton(model)
        worlds = (solver == pair[0]) & (jacobian == pair[1])
        solver[worlds] = option.solver
        jacobian[worlds] = option.jacobian
    option.solver, option.jacobian = shared


@functools.cache
def _log_once(message: str) -> None:
    logging.getLogger(__name__).warning(message)
