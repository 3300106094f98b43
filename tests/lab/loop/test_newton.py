"""Labs that are kept from the sparse Newton factorization of MuJoCo 4.0.0."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from manyworlds.lab import LabCfg, LiveLab, world_from_spec
from manyworlds.lab.loop.physics_loop import PhysicsLoop
from manyworlds.utils.newton import solver_note
from tests.sparse_newton import branching_trees, dense

AUTO, DENSE, SPARSE = (int(mujoco.mjtJacobian(i)) for i in (2, 0, 1))
NEWTON, CG = int(mujoco.mjtSolver.mjSOL_NEWTON), int(mujoco.mjtSolver.mjSOL_CG)


@pytest.fixture(autouse=True)
def defective(monkeypatch):
    """Take this MuJoCo for the defective release."""
    monkeypatch.setattr(mujoco, "mj_versionString", lambda: "4.0.0")


@pytest.fixture
def lab():
    """A lab of a world that MuJoCo would step sparsely; `step` moves it on."""
    lab = LiveLab(world_from_spec(branching_trees(9)), LabCfg(mode="direct"))
    yield lab
    lab.stop()


def jacobian(lab: LiveLab) -> int:
    """Present options of the solver."""
    return lab.loop.model.opt.jacobian


def test_a_lab_begins_and_steps_with_dense_jacobians(lab):
    """Have the right accelerations before the first step, and the steps of plain MuJoCo."""
    model = branching_trees(9).compile()
    assert jacobian(lab) == lab.world.model.opt.jacobian == DENSE
    assert "dense Jacobians" in solver_note(lab.loop.model)
    np.testing.assert_array_equal(lab.loop.data.qacc, dense(model))
    model.opt.jacobian = DENSE
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 5)
    np.testing.assert_array_equal(lab.step(5).qpos, data.qpos)
    loop = PhysicsLoop(branching_trees(9).compile())
    assert loop.model.opt.jacobian == DENSE
    loop.stop()


def test_options_that_change_meanwhile_follow_the_rule(lab):
    """Set Jacobian and solver through the lab, in a command and in a callback."""
    lab.set_option("jacobian", AUTO)
    lab.step()
    assert jacobian(lab) == DENSE
    lab.set_option("solver", CG)
    lab.set_option("jacobian", AUTO)
    lab.step()
    assert jacobian(lab) == AUTO and not solver_note(lab.loop.model)
    lab.loop.on_pre_step(lambda model, data, moved: setattr(model.opt, "solver", NEWTON))
    lab.step()
    assert jacobian(lab) == DENSE
    lab.set_option("jacobian", SPARSE)
    with pytest.warns(UserWarning, match="sets jacobian='sparse'"):
        lab.step()
    assert jacobian(lab) == SPARSE


def test_a_rebuilt_lab_follows_the_rule(lab):
    """Go on in a larger world, in a small one, and in one that `LabCfg` gives its options."""
    assert lab.rebuild(world_from_spec(branching_trees(10))) and jacobian(lab) == DENSE
    assert lab.rebuild(world_from_spec(branching_trees(1))) and jacobian(lab) == AUTO
    spec = branching_trees(9)
    spec.option.solver = CG
    other = LiveLab(world_from_spec(spec), LabCfg(options={"solver": NEWTON}))
    assert jacobian(other) == DENSE
    other.stop()


def test_states_are_those_of_other_releases_too(lab, monkeypatch):
    """Give a world one hash whatever release steps it, so that its saved states keep."""
    before = lab.world.model_hash
    monkeypatch.setattr(mujoco, "mj_versionString", lambda: "4.0.1")
    other = LiveLab(world_from_spec(branching_trees(9)))
    assert jacobian(other) == AUTO and other.world.model_hash == before
    other.stop()
