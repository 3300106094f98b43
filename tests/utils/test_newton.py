"""The rule that keeps MuJoCo 4.0.0 from its sparse Newton factorization."""

from __future__ import annotations

import logging
from pathlib import Path

import mujoco
import numpy as np
import pytest

from manyworlds.utils import newton
from manyworlds.utils.newton import avoid_sparse_newton, avoid_sparse_rows, newton_defect
from tests.robots import robot_file
from tests.sparse_newton import branching_trees, dense, joined_bodies

AUTO, DENSE, SPARSE = (mujoco.mjtJacobian(i) for i in (2, 0, 1))
NEWTON, CG = mujoco.mjtSolver.mjSOL_NEWTON, mujoco.mjtSolver.mjSOL_CG


@pytest.fixture
def defective(monkeypatch):
    """Take this MuJoCo for the defective release."""
    monkeypatch.setattr(mujoco, "mj_versionString", lambda: "4.0.0")
    newton._log_once.cache_clear()


@pytest.mark.skipif(mujoco.mj_versionString() != "4.0.0", reason="of MuJoCo 4.0.0")
def test_the_defect_is_real():
    """Get accelerations wrong by far with sparse Jacobians, and right by the rule."""
    model = branching_trees(9).compile()
    assert model.nv == 63 and mujoco.mj_isSparse(model)
    expected, data = dense(model), mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert np.abs(data.qacc - expected).max() > 0.5 * np.abs(expected).max()
    assert data.solver_niter.max() == model.opt.iterations
    avoid_sparse_newton(model)
    mujoco.mj_resetData(model, data)
    mujoco.mj_forward(model, data)
    np.testing.assert_array_equal(data.qacc, expected)


def _robots(name: str, count: int) -> mujoco.MjSpec:
    scene = mujoco.MjSpec()
    for i in range(count):
        robot = mujoco.MjSpec.from_file(str(robot_file(name)))
        scene.attach(robot, prefix=f"{i}/", frame=scene.worldbody.add_frame(pos=[0, i, 0]))
    return scene


def _dm_control(name: str) -> mujoco.MjSpec:
    folder = Path(pytest.importorskip("dm_control").__file__).parent
    return mujoco.MjSpec.from_file(str(folder / name))


@pytest.mark.parametrize(
    ("make", "changed"),
    [
        (lambda: _dm_control("suite/dog.xml"), True),
        (lambda: _dm_control("suite/humanoid_CMU.xml"), True),
        (lambda: _dm_control("locomotion/walkers/assets/rodent.xml"), True),
        (lambda: _robots("unitree_g1/g1.xml", 2), True),
        (lambda: branching_trees(9), True),
        (lambda: branching_trees(8), False),
        (lambda: _robots("unitree_g1/g1.xml", 1), False),
        (lambda: _dm_control("locomotion/walkers/assets/humanoid_CMU_V2020.xml"), False),
        (mujoco.MjSpec, False),
    ],
)
def test_only_what_mujoco_would_step_sparsely_changes(defective, make, changed):
    """Give models of 60 degrees of freedom or more dense Jacobians, and leave all others alone."""
    model = make().compile()
    assert model.opt.solver == NEWTON and (model.nv >= 60) is changed
    avoid_sparse_newton(model)
    assert model.opt.jacobian == (DENSE if changed else AUTO)


FLEX = """<mujoco><worldbody><geom type="plane" size="0 0 .1"/><flexcomp name="cloth" type="grid"
  dim="2" count="6 6 1" spacing=".1 .1 .1" radius=".02" mass="1" pos="0 0 .3">
  <edge equality="true"/></flexcomp></worldbody></mujoco>"""


@pytest.mark.parametrize(
    "make",
    [
        lambda: joined_bodies(12, 6),
        lambda: joined_bodies(24, 3),
        lambda: mujoco.MjSpec.from_string(FLEX),
    ],
)
def test_rows_in_threes_stay_sparse(defective, make, caplog):
    """Leave free bodies and cloths as they are: their sparse accelerations are those of dense."""
    model = make().compile()
    model.eq_data[:, :3] += 0.02
    assert mujoco.mj_isSparse(model)
    avoid_sparse_newton(model)
    assert model.opt.jacobian == AUTO and model.opt.solver == NEWTON and not caplog.records
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    expected = dense(model)
    error = np.abs(data.qacc - expected).max() / np.abs(expected).max()
    assert error < 1e-9 and data.nefc > 0


@pytest.mark.parametrize("joint", ["tendon", "equality"])
def test_constraints_of_single_rows_are_not_in_threes(defective, joint):
    """Take dense Jacobians where a constraint involves single degrees of freedom of bodies."""
    spec = joined_bodies(24, 3)
    first, second = spec.joints[0].name, spec.joints[4].name
    if joint == "tendon":
        tendon = spec.add_tendon(name="both")
        tendon.wrap_joint(first, 1.0)
        tendon.wrap_joint(second, 1.0)
    else:
        couple = spec.add_equality(type=mujoco.mjtEq.mjEQ_JOINT, name1=first, name2=second)
        couple.objtype = mujoco.mjtObj.mjOBJ_JOINT
    model = spec.compile()
    avoid_sparse_newton(model)
    assert model.opt.jacobian == DENSE


def test_large_models_take_another_solver(defective):
    """Step models that dense Jacobians would not fit with CG, whose accelerations are right."""
    small, large = (branching_trees(count).compile() for count in (9, 86))
    assert large.nv > 600
    avoid_sparse_newton(large)
    assert large.opt.solver == CG and large.opt.jacobian == AUTO
    data = mujoco.MjData(large)
    mujoco.mj_forward(large, data)
    expected = dense(small)
    error = np.abs(data.qacc[:63] - expected).max()
    assert error < 1e-3 * np.abs(expected).max()


def test_it_is_logged_once_and_plainly(defective, caplog):
    """Say in one line, once per process, what is done and since which release it is not needed."""
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            avoid_sparse_newton(branching_trees(9).compile())
    assert [record.getMessage() for record in caplog.records] == [newton_defect()]
    assert "dense Jacobians" in newton_defect() and "4.0.1" in newton_defect()


def test_what_is_asked_for_stays(defective):
    """Keep sparse Jacobians that are asked for, with a warning; say nothing of other solvers."""
    model = branching_trees(1).compile()
    model.opt.jacobian = SPARSE
    with pytest.warns(UserWarning, match="sets jacobian='sparse'.*set 'auto' or 'dense'"):
        avoid_sparse_newton(model)
    assert model.opt.jacobian == SPARSE
    model = branching_trees(9).compile()
    model.opt.solver = CG
    avoid_sparse_newton(model)
    assert model.opt.jacobian == AUTO


@pytest.mark.parametrize("version", ["4.0.1", "4.1.0", "5.0.0"])
def test_other_releases_decide_themselves(monkeypatch, version):
    """Leave Jacobians alone on any release but 4.0.0."""
    monkeypatch.setattr(mujoco, "mj_versionString", lambda: version)
    model = branching_trees(9).compile()
    avoid_sparse_newton(model)
    assert model.opt.jacobian == AUTO and newton_defect() == ""


def test_worlds_with_options_of_their_own(defective):
    """Decide for each world by its own solver and Jacobian; leave the shared model alone."""
    model = branching_trees(9).compile()
    solver = np.array([NEWTON, CG, NEWTON, NEWTON, CG], np.int32)
    jacobian = np.array([AUTO, AUTO, SPARSE, DENSE, SPARSE], np.int32)
    with pytest.warns(UserWarning, match="sets jacobian='sparse'"):
        avoid_sparse_rows(model, solver, jacobian)
    assert jacobian.tolist() == [DENSE, AUTO, SPARSE, DENSE, SPARSE]
    assert model.opt.jacobian == AUTO and model.opt.solver == NEWTON
