"""Errors of one world: reported by its status, without effect on the others."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.sim import FATAL, Simulation, SimulationCfg, WorldStatus
from tests.scenes import CLUTTER

NUM_ENVS = 64
BAD = 5


def _make(num_envs: int = NUM_ENVS, memory: int = -1) -> Simulation:
    spec = mujoco.MjSpec.from_string(CLUTTER)
    spec.memory = memory
    cfg = SimulationCfg(engine="native", mujoco=None)
    sim = Simulation(num_envs, cfg, spec=spec, device="cpu")
    generator = torch.Generator().manual_seed(1)
    sim.data.qvel[:] = torch.rand(sim.data.qvel.shape, generator=generator) - 0.5
    return sim


def _rows(sim: Simulation) -> np.ndarray:
    return sim._engine.batch.state  # type: ignore[attr-defined]


def _nan_qpos(sim: Simulation) -> None:
    sim.data.qpos[BAD, 2] = torch.nan


def _infinite_qvel(sim: Simulation) -> None:
    sim.data.qvel[BAD, 7] = torch.inf


def _nan_ctrl(sim: Simulation) -> None:
    sim.data.ctrl[BAD] = torch.nan


def _huge_mass(sim: Simulation) -> None:
    sim.model.body_mass[BAD, 2] = 3e38


POISONS = {
    _nan_qpos: WorldStatus.NAN | WorldStatus.BAD_QPOS,
    _infinite_qvel: WorldStatus.NAN | WorldStatus.BAD_QVEL,
    _nan_ctrl: WorldStatus.BAD_CTRL,
    _huge_mass: WorldStatus.NAN | WorldStatus.BAD_QACC,
}


@pytest.mark.parametrize("poison", POISONS, ids=lambda poison: poison.__name__)
def test_one_bad_world_is_marked_and_the_others_do_not_notice(poison, tmp_path, monkeypatch, capfd):
    """Keep 63 worlds bit-identical over 100 steps with contacts, and write nothing anywhere."""
    monkeypatch.chdir(tmp_path)
    sim, healthy = _make(), _make()
    poison(sim)
    ncon = sim.data.ncon
    contacts = 0
    others = np.arange(NUM_ENVS) != BAD
    for _ in range(100):
        for each in (sim, healthy):
            each.step(refresh=True)
        contacts += int(ncon[0])
    assert contacts > 100
    np.testing.assert_array_equal(_rows(sim)[others], _rows(healthy)[others])
    assert sim.status.dtype is torch.int32
    assert int(sim.status[BAD]) & POISONS[poison] == POISONS[poison]
    assert int(sim.status[BAD]) & FATAL
    assert (sim.status[others] == 0).all() and (healthy.status == 0).all()
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr().err == ""


def test_bits_stay_until_the_world_is_reset():
    """Keep bits while nothing is wrong any more, and clear those of the worlds reset only."""
    sim = _make(4)
    _ = sim.data.ctrl
    sim.data.ctrl[1:3] = torch.nan
    sim.step()
    sim.data.ctrl[:] = 0.0
    sim.step()
    assert sim.status_counts() == {"bad_ctrl": 2}
    sim.reset([1])
    assert sim.status.tolist() == [0, 0, int(WorldStatus.BAD_CTRL), 0]
    sim.step(5)
    assert sim.status_counts() == {"bad_ctrl": 1}
    sim.reset()
    assert sim.status_counts() == {}


def test_a_refreshed_step_tells_of_a_bad_state_at_once():
    """See within the call that the state it left is bad."""
    sim = _make(2)
    sim.data.qvel[1, 2] = 9e9  # not bad yet; the step takes qpos beyond what MuJoCo accepts
    sim.data.qpos[1, 2] = 9.99e9
    sim.step(refresh=True)
    assert int(sim.status[1]) & WorldStatus.NAN and int(sim.status[0]) == 0


def test_an_engine_error_ends_in_the_status_of_its_world():
    """Let other worlds go on when MuJoCo runs out of memory in one; warn once; end with a reset."""
    sim, roomy = _make(3, memory=12_000), _make(3)
    for each in (sim, roomy):
        each.data.qpos[1:, 9] += 50.0  # only in world 0 do things come to rest on each other
        each.data.qpos[1:, 16] += 100.0
        each.data.qpos[1:, 2] += 150.0
    with pytest.warns(RuntimeWarning, match=r"MuJoCo failed in 1 worlds \(0\).*out of memory"):
        sim.step(200)
    sim.step(200)
    sim.forward()
    roomy.step(200)
    roomy.step(200)
    assert sim.status_counts() == {"engine_error": 1, "memory": 1}
    assert sim.data.time[0] == 0.0
    np.testing.assert_array_equal(_rows(sim)[1:], _rows(roomy)[1:])
    sim.reset([0])
    assert (sim.status == 0).all()


def test_a_users_warning_handler_stays(tmp_path, monkeypatch):
    """Give a handler that the user installed its lines, and leave it installed."""
    monkeypatch.chdir(tmp_path)
    lines: list[str] = []
    sim = _make(2)
    mujoco.set_mju_user_warning(lines.append)
    try:
        sim.data.qpos[1, 0] = torch.nan
        sim.step()
        assert mujoco.get_mju_user_warning() == lines.append
    finally:
        mujoco.set_mju_user_warning(None)
    assert any("QPOS" in line for line in lines)


def test_without_a_handler_others_hear_mujoco_again(capfd):
    """Silence MuJoCo inside the engine's calls only."""
    sim = _make(1)
    sim.data.qpos[0, 0] = torch.nan
    sim.step()
    assert "QPOS" not in capfd.readouterr().err
    assert mujoco.get_mju_user_warning() is None
    data = mujoco.MjData(mujoco.MjModel.from_xml_string(CLUTTER))
    data.qpos[0] = np.nan
    mujoco.mj_step(mujoco.MjModel.from_xml_string(CLUTTER), data)
    assert "WARNING: Nan, Inf or huge value in QPOS" in capfd.readouterr().err
