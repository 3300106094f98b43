"""Worlds that are kept from the sparse Newton factorization of MuJoCo 4.0.0."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from manyworlds.sim import MujocoCfg, Simulation, SimulationCfg
from manyworlds.sim.diagnostics.flight_recorder import FlightRecorder
from manyworlds.sim.diagnostics.flight_replay import FlightRecord, replay
from manyworlds.sim.engines.capacity import estimate_capacity
from tests.sim.plain_loop import assert_steps_like_plain_mujoco, native
from tests.sparse_newton import branching_trees, dense

AUTO, DENSE, SPARSE = (mujoco.mjtJacobian(i) for i in (2, 0, 1))


@pytest.fixture(autouse=True)
def defective(monkeypatch):
    """Take this MuJoCo for the defective release."""
    monkeypatch.setattr(mujoco, "mj_versionString", lambda: "4.0.0")


@pytest.mark.parametrize("of_spec", [True, False])
def test_worlds_have_the_accelerations_of_dense_jacobians(of_spec):
    """Step a model that MuJoCo would step sparsely as `mj_model` says, bit for bit and rightly."""
    spec = branching_trees(9)
    model = spec.compile()
    given = {"spec": spec} if of_spec else {"model": model}
    sim = Simulation(2, SimulationCfg(engine="native"), device="cpu", **given)
    assert sim.mj_model.opt.jacobian == DENSE
    assert model.opt.jacobian == AUTO  # the user's own stays
    sim.forward()
    np.testing.assert_array_equal(sim.data.qacc[1], dense(model).astype(np.float32))
    assert_steps_like_plain_mujoco(sim, sim.data.ctrl.new_zeros(20, 2, 0))


def test_sparse_jacobians_that_are_asked_for_stay():
    """Warn of them at construction."""
    cfg = SimulationCfg(engine="native", mujoco=MujocoCfg(jacobian="sparse"))
    with pytest.warns(UserWarning, match="sets jacobian='sparse'"):
        sim = Simulation(1, cfg, spec=branching_trees(9), device="cpu")
    assert sim.mj_model.opt.jacobian == SPARSE


def test_options_of_single_worlds_follow_the_rule():
    """Make Jacobians dense in the worlds that are given the Newton solver, and only there."""
    model = branching_trees(9).compile()
    model.opt.solver = mujoco.mjtSolver.mjSOL_CG
    sim = native(model, 3)
    assert sim.mj_model.opt.jacobian == AUTO
    sim.expand_model_fields(("opt.solver",))
    sim.model.opt.solver[1] = int(mujoco.mjtSolver.mjSOL_NEWTON)
    sim.forward()
    assert sim.model.opt.jacobian.ravel().tolist() == [AUTO, DENSE, AUTO]
    model.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    np.testing.assert_array_equal(sim.data.qacc[1], dense(model).astype(np.float32))
    sim.model.opt.jacobian[1] = int(AUTO)
    sim.step()
    assert int(sim.model.opt.jacobian[1]) == DENSE
    assert sim.mj_model.opt.jacobian == AUTO


def test_large_models_step_in_the_memory_they_ask_for():
    """Step 2702 degrees of freedom in 100 MB, where dense Jacobians did not fit."""
    spec = branching_trees(386)
    spec.memory = 100 * 2**20
    sim = Simulation(1, SimulationCfg(engine="native"), spec=spec, device="cpu")
    sim.step(4)
    assert sim.status_counts() == {} and sim.data.qpos.isfinite().all()
    assert sim.mj_model.opt.solver == mujoco.mjtSolver.mjSOL_CG


def test_options_of_single_worlds_of_large_models():
    """Let CG step the worlds that are given the Newton solver."""
    model = branching_trees(86).compile()
    model.opt.solver = mujoco.mjtSolver.mjSOL_CG
    sim = native(model, 2)
    sim.expand_model_fields(("opt.solver",))
    sim.model.opt.solver[1] = int(mujoco.mjtSolver.mjSOL_NEWTON)
    sim.forward()
    assert sim.model.opt.solver.ravel().tolist() == [int(mujoco.mjtSolver.mjSOL_CG)] * 2
    assert sim.model.opt.jacobian.ravel().tolist() == [AUTO] * 2


def test_trials_for_mujoco_warp_leave_its_model_alone():
    """Count contacts with dense Jacobians in a copy: MuJoCo Warp decides by itself."""
    model = branching_trees(9).compile()
    estimate_capacity(model)
    assert model.opt.jacobian == AUTO


def test_a_record_is_replayed_with_dense_jacobians(tmp_path, monkeypatch):
    """Replay in MuJoCo C what MuJoCo Warp, or a later release, stepped with sparse Jacobians."""
    monkeypatch.setattr(mujoco, "mj_versionString", lambda: "4.0.1")
    cfg = SimulationCfg(engine="native", mujoco=None)
    cfg.nan_guard.enabled, cfg.nan_guard.output_dir = True, str(tmp_path)
    sim = Simulation(1, cfg, branching_trees(9).compile(), "cpu")
    sim.step()
    sim.data.qpos[0, 3] = np.nan
    sim.step()
    assert isinstance(sim.nan_guard, FlightRecorder)
    (path,) = tmp_path.glob("*.npz")
    record = FlightRecord.load(path)
    assert record.model.opt.jacobian == AUTO
    monkeypatch.setattr(mujoco, "mj_versionString", lambda: "4.0.0")
    used: list[int] = []
    step = mujoco.mj_step
    monkeypatch.setattr(
        mujoco, "mj_step", lambda m, d: (used.append(m.opt.jacobian), step(m, d))[1]
    )
    assert "qpos" in replay(record, 0)
    assert used and set(used) == {DENSE}
