"""The flight recorder and the replay of what it wrote."""

from __future__ import annotations

import re
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.cli.main import main
from manyworlds.sim import NanGuardCfg, RecomputeLevel, Simulation, SimulationCfg, WorldStatus
from manyworlds.sim.diagnostics.flight_replay import FlightRecord, replay
from tests.scenes import CLUTTER, HINGE
from tests.sim.plain_loop import assert_replays

pytestmark = pytest.mark.filterwarnings("ignore:.*worlds failed:RuntimeWarning")


def _make(folder: Path, num_envs: int = 8, engine: str = "native", xml: str = CLUTTER, **guard):
    cfg = SimulationCfg(engine=engine, mujoco=None)  # type: ignore[arg-type]
    cfg.nan_guard = NanGuardCfg(enabled=True, output_dir=str(folder), **guard)
    return Simulation(num_envs, cfg, mujoco.MjModel.from_xml_string(xml), "cpu")


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*"))


def test_a_record_replays_bit_for_bit(tmp_path):
    """Write one file, from which plain MuJoCo steps to the very states that were recorded."""
    sim = _make(tmp_path, buffer_size=10)
    sim.model.body_mass[3] *= 1.5
    sim.forward()
    sim.recompute_constants(RecomputeLevel.set_const)
    _ = sim.data.ctrl
    for step in range(25):
        sim.data.ctrl[:] = 0.01 * step
        sim.data.xfrc_applied[3, 2, 0] = 0.1
        sim.step(2)
    assert _files(tmp_path) == []
    sim.data.qpos[3, 7], sim.data.qvel[3, 6] = 9.93e9, 9e9  # soon beyond what MuJoCo accepts
    with pytest.warns(RuntimeWarning, match="1 worlds failed .*nan.*replay-dump"):
        for _ in range(4):
            sim.step(2)
    (path,) = _files(tmp_path)
    assert sim.nan_guard is not None and sim.nan_guard.files == [path]
    record = FlightRecord.load(path)
    arrays = record.arrays
    assert arrays["worlds"].tolist() == [3]
    assert arrays["states"].shape[:2] == (10, 1)
    assert record.metadata["num_envs"] == 8 and record.metadata["engine"] == "native"
    model = record.model_of(0)
    assert model.body_mass[2] == np.float32(1.5) * np.float32(sim.mj_model.body_mass[2])
    assert model.body_invweight0[2, 0] != sim.mj_model.body_invweight0[2, 0]
    assert assert_replays(record) >= 5


def test_inputs_of_every_kind_are_those_of_their_call(tmp_path):
    """Keep forces, equalities and mocap poses of each call, written often, seldom or never."""
    sim = _make(tmp_path, 3, buffer_size=6)
    _ = sim.data.ctrl
    for step in range(11):
        if step % 3 == 0:
            sim.data.xfrc_applied[1, 2, 2] = 0.3 * step
            sim.data.mocap_pos[1, 0, 2] += 0.05
        if step == 7:
            sim.data.xfrc_applied[0, 2, 2] = 1.0
        if step == 8:
            sim.data.eq_active[1] = True
            sim.data.qfrc_applied[1, 3] = 0.5
        if step == 10:
            sim.reset([0])
        sim.step()
    sim.data.ctrl[:2] = torch.nan
    sim.step()
    record = FlightRecord.load(_files(tmp_path)[0])
    assert assert_replays(record, 1) == 4  # of the calls 6 to 11, the last starts with NaN
    assert assert_replays(record, 0) == 0  # begins after its reset
    data = mujoco.MjData(record.model)
    seen = []
    for state in record.arrays["states"][:, 1]:
        whole = int(mujoco.mjtState.mjSTATE_INTEGRATION)
        mujoco.mj_setState(record.model, data, state, whole)
        seen.append((data.xfrc_applied[2, 2], data.eq_active[0], data.qfrc_applied[3]))
    wrench = [np.float32(0.3 * step) for step in (6, 6, 6, 9, 9, 9)]
    assert [row[0] for row in seen] == wrench
    mujoco.mj_setState(record.model, data, record.arrays["states"][4, 0], whole)
    assert not data.xfrc_applied.any()
    assert [row[1:] for row in seen] == [(0, 0)] * 2 + [(1, 0.5)] * 4


def test_calls_between_steps_do_not_disturb_a_record(tmp_path):
    """Replay exactly when `forward` was called, and model fields and states read, in between."""
    sim = _make(tmp_path, 2)
    _ = sim.data.ctrl, sim.data.sensordata
    for step in range(8):
        sim.data.ctrl[:] = 0.1 * step
        sim.forward([1] if step % 2 else None)
        sim.get_state()
        sim.step(1 + step % 3, refresh=step % 2 == 0)
        sim.forward()
    sim.data.ctrl[1] = torch.nan
    sim.step()
    assert assert_replays(FlightRecord.load(_files(tmp_path)[0])) == 7


@pytest.mark.parametrize("restart", ["reset", "set_state"])
def test_a_record_begins_after_the_world_started_over(restart, tmp_path, capsys):
    """Tell of the second event, not once more of the one before the reset."""
    sim = _make(tmp_path, 3)
    saved = sim.get_state([1])
    sim.step(2)
    _nan_position_of(sim, 1)
    sim.step()
    sim.step()
    if restart == "reset":
        sim.reset([1])
    else:
        sim.set_state(saved, [1])
    sim.data.ctrl[:] = 0.25
    sim.step()
    sim.step()
    sim.data.ctrl[:2] = torch.nan
    sim.step()
    first, second = sorted(_files(tmp_path), key=lambda path: path.stat().st_mtime_ns)
    record = FlightRecord.load(second)
    assert record.arrays["worlds"].tolist() == [0, 1]
    assert record.arrays["begins"].tolist() == [0, 3]
    assert assert_replays(record, 0) == 4 and assert_replays(record, 1) == 1
    assert main(["replay-dump", str(second)]) == 0
    out = capsys.readouterr().out
    assert len(re.findall("ctrl of actuator 'shoulder' became nan before step call 5", out)) == 2
    assert "qpos" in replay(FlightRecord.load(first), 0)


def _nan_position_of(sim: Simulation, world: int) -> None:
    sim.data.qpos[world, 8] = torch.nan


def _nan_ctrl(sim: Simulation) -> None:
    sim.data.ctrl[2] = torch.nan


def _nan_wrench(sim: Simulation) -> None:
    sim.data.xfrc_applied[2, sim.mj_model.body("pill").id, 1] = torch.nan


def _infinite_velocity(sim: Simulation) -> None:
    sim.data.qvel[2, sim.mj_model.joint("shoulder").dofadr[0]] = torch.inf


def _nan_position(sim: Simulation) -> None:
    sim.data.qpos[2, 8] = torch.nan


def _negative_damping(sim: Simulation) -> None:
    sim.model.dof_damping[2, sim.mj_model.joint("shoulder").dofadr[0]] = -1e6


CASES = {
    _nan_ctrl: r"ctrl of actuator 'shoulder' became nan before step call 5, written",
    _nan_wrench: r"xfrc_applied of body 'pill' became nan before step call 5, written",
    _infinite_velocity: r"qvel of joint 'shoulder' became inf before step call 5, written",
    _nan_position: r"qpos of joint 1 of body 'pill' became nan before step call 5, written",
    _negative_damping: r"(qacc|qfrc_passive) of joint 'shoulder' became \S+ in step call \d+, sub",
}


@pytest.mark.parametrize("break_it", CASES, ids=lambda case: case.__name__)
def test_replay_names_what_went_bad_first(break_it, tmp_path, capsys):
    """Name field, element and step, and say whether it came from outside."""
    sim = _make(tmp_path)
    sim.data.qvel[2, -1] = 0.5
    for _ in range(5):
        sim.step()
    break_it(sim)
    for _ in range(60):
        sim.step()
    (path,) = _files(tmp_path)
    assert main(["replay-dump", str(path)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"world 2 \(.*\): " + CASES[break_it], out), out


def test_replay_names_an_engine_error(tmp_path, capsys):
    """Repeat the error that MuJoCo raised."""
    cfg = SimulationCfg(engine="native", mujoco=None)
    cfg.nan_guard = NanGuardCfg(enabled=True, output_dir=str(tmp_path))
    spec = mujoco.MjSpec.from_string(CLUTTER)
    spec.memory = 12_000
    sim = Simulation(1, cfg, spec=spec, device="cpu")
    with pytest.warns(RuntimeWarning, match="MuJoCo failed"):
        for _ in range(300):
            sim.step()
    (path,) = _files(tmp_path)
    assert main(["replay-dump", str(path)]) == 0
    assert "MuJoCo raised in step call" in capsys.readouterr().out


def test_model_values_are_noted(tmp_path, capsys):
    """Name the model value of that world that no physics can bear."""
    sim = _make(tmp_path)
    sim.step(3)
    sim.model.body_mass[1, sim.mj_model.body("ball").id] = 3e38
    sim.step(3)
    (path,) = _files(tmp_path)
    assert main(["replay-dump", str(path)]) == 0
    out = capsys.readouterr().out
    assert "note: model field body_mass of body 'ball' is 3e+38" in out
    assert "is 3e+38 since step call 1" in out and "in step call 1, substep 0" in out


def test_each_world_is_written_once_until_reset(tmp_path):
    """Write a file per event, bounded in worlds and in number; overwrite none."""
    sim = _make(tmp_path, max_envs_to_dump=2, max_dumps=3)
    _ = sim.data.ctrl
    sim.data.ctrl[:4] = torch.nan
    sim.step(2)
    sim.step(2)
    (first,) = _files(tmp_path)
    record = FlightRecord.load(first)
    assert record.arrays["worlds"].tolist() == [0, 1]
    assert record.metadata["bad_worlds"] == [0, 1, 2, 3]
    assert int(record.arrays["status"][0]) & WorldStatus.BAD_CTRL
    content = first.read_bytes()
    for _ in range(4):
        sim.reset([1])
        sim.data.ctrl[:] = 0.0
        sim.step()
        sim.data.ctrl[1] = torch.nan
        sim.step()
    assert len(_files(tmp_path)) == 3
    assert first.read_bytes() == content


def test_each_call_is_replayed_with_the_model_that_it_had(tmp_path):
    """Keep model rows that were replaced on the way, whoever wrote them."""
    sim = _make(tmp_path, num_envs=3, buffer_size=9)
    _ = sim.data.ctrl
    saved = sim.get_state([0])
    ball, gravity = sim.mj_model.body("ball").id, sim.mj_model.opt.gravity[2]
    for step in range(12):
        if step == 1:
            sim.model.body_mass[:, ball] *= 1.5  # before the first call that is kept
        elif step == 4:
            sim.model.body_mass[1, ball] *= 1.5
        elif step == 6:
            sim.recompute_constants(RecomputeLevel.set_const, [1])
        elif step == 8:
            sim.model.opt.gravity[:2, 2] = -3.0
            sim.model.opt.timestep[1] = 0.003
        elif step == 9:
            sim.model.body_mass[2, ball] = 9.0  # a world that is not written
        elif step == 10:
            sim.set_state(saved, [0])
            sim.model.opt.gravity[0, 2] = -4.0
        sim.step()
    sim.data.ctrl[:2] = torch.nan
    sim.step()
    record = FlightRecord.load(_files(tmp_path)[0])
    assert record.metadata["first_call"] == 4
    assert record.arrays["worlds"].tolist() == [0, 1]
    assert record.arrays["begins"].tolist() == [6, 0]
    compiled = sim.mj_model.body_mass[ball]
    mass = [[record.model_of(i, c).body_mass[ball] / compiled for c in range(9)] for i in (0, 1)]
    np.testing.assert_allclose(mass[0], [1.5] * 6 + [1.0] * 3, rtol=1e-6)
    np.testing.assert_allclose(mass[1], [2.25] * 9, rtol=1e-6)
    fall = [[record.model_of(i, c).opt.gravity[2] for c in range(9)] for i in (0, 1)]
    assert fall == [[gravity] * 4 + [-3.0] * 2 + [-4.0] * 3, [gravity] * 4 + [-3.0] * 5]
    weights = [record.model_of(1, c).body_invweight0[ball, 0] for c in range(9)]
    assert weights[1] == sim.mj_model.body_invweight0[ball, 0] > weights[2] == weights[-1]
    assert assert_replays(record, 0) == 1 and assert_replays(record, 1) == 7


@pytest.mark.parametrize(
    ("field", "flag"),
    [
        ("body_gravcomp", "ngravcomp"),
        ("geom_surfacevel", "flg_surfacevel"),
        ("geom_adhesion", "flg_adhesion"),
    ],
)
def test_forces_that_began_are_replayed(field, flag, tmp_path):
    """Compensate gravity in the replay though no body of the compiled model does, and the like."""
    sim = _make(tmp_path, num_envs=3, buffer_size=9)
    assert not getattr(sim.mj_model, flag)
    for step in range(9):
        if step in (2, 5):
            getattr(sim.model, field)[1, 2] = float(step == 2)
            sim.recompute_constants(RecomputeLevel.set_const, [1])
        sim.step()
    sim.data.qvel[:2, 0] = torch.nan
    sim.step()
    record = FlightRecord.load(_files(tmp_path)[0])
    flags = [getattr(record.model_of(1, call), flag) for call in range(9)]
    assert flags == [0, 1, 1, 1] + [0] * 5
    assert assert_replays(record, 0) == assert_replays(record, 1) == 7


@pytest.mark.parametrize("engine", ["native", "warp"])
def test_a_sensor_that_goes_bad_is_told(engine, tmp_path, capsys):
    """Mark and write the world whose sensors are NaN although its state is finite."""
    xml = """<mujoco><worldbody>
    <body name="hand" mocap="true"><geom size=".1" contype="0" conaffinity="0"/></body>
    <body><joint name="hinge"/><geom size=".1" pos="1 0 0"/></body></worldbody>
    <sensor><framepos name="hand" objtype="body" objname="hand"/></sensor></mujoco>"""
    if engine == "warp":
        pytest.importorskip("mujoco_warp")
    sim = _make(tmp_path, 3, engine, xml)
    _ = sim.data.sensordata
    sim.step()
    sim.data.mocap_pos[1] = torch.nan
    sim.step()
    assert sim.data.qpos.isfinite().all() and sim.data.qacc.isfinite().all()
    assert sim.status.tolist() == [0, WorldStatus.NAN, 0]
    assert main(["replay-dump", str(_files(tmp_path)[0])]) == 0
    assert "mocap_pos of body 'hand' became nan before step call 1" in capsys.readouterr().out
    sim.reset([1])
    sim.forward([0])
    assert sim.status_counts() == {}


def test_changes_that_left_the_ring_are_forgotten(tmp_path):
    """Hold no more changes of the model than the calls that are kept."""
    sim = _make(tmp_path, num_envs=2, buffer_size=3)
    for step in range(20):
        sim.model.body_mass[step % 2, 2] *= 1.01
        sim.step()
    assert sim.nan_guard is not None
    assert len(sim.nan_guard._model_rows._changes) == 3


def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path):
    """Warn and step on when the file cannot be written."""
    (tmp_path / "taken").write_text("")
    sim = _make(tmp_path / "taken")
    _ = sim.data.ctrl
    sim.data.ctrl[0] = torch.nan
    with pytest.warns(RuntimeWarning, match="cannot be written"):
        sim.step()
    sim.step()


def test_recording_changes_no_result(tmp_path):
    """Step as without the recorder, pending writes included."""
    sim = _make(tmp_path, num_envs=2, buffer_size=3)
    plain = Simulation(2, SimulationCfg(engine="native", mujoco=None), sim.mj_model, "cpu")
    for each in (sim, plain):
        _ = each.data.ctrl
        for step in range(50):
            each.data.ctrl[1] = 0.02 * step
            each.step(refresh=True)
    assert torch.equal(sim.get_state()["state"], plain.get_state()["state"])


def test_warp_records_are_replayed_in_mujoco_c(tmp_path):
    """Record the warp engine's state in the layout of plain MuJoCo."""
    pytest.importorskip("mujoco_warp")
    sim = _make(tmp_path, 2, "warp", HINGE)
    for _ in range(3):
        sim.data.ctrl[:] = 0.5
        sim.step()
    sim.data.ctrl[1] = torch.nan
    sim.step()
    record = FlightRecord.load(_files(tmp_path)[0])
    assert replay(record, 0).startswith("ctrl of actuator 'hinge' became nan before step call 3")


def test_warp_records_hold_options_of_each_world(tmp_path):
    """Write options under the names that MuJoCo C has for them."""
    pytest.importorskip("mujoco_warp")
    sim = _make(tmp_path, 2, "warp", HINGE)
    sim.model.opt.gravity[1, 2] = -3.0
    sim.model.opt.impratio_invsqrt[1] = 0.5
    sim.data.ctrl[1] = torch.nan
    sim.step()
    model = FlightRecord.load(_files(tmp_path)[0]).model_of(0)
    assert (model.opt.gravity[2], model.opt.impratio) == (-3.0, 4.0)


@pytest.mark.parametrize("damage", ["garbage", "truncated", "other", "missing", "format", "short"])
def test_a_bad_file_gives_one_line(damage, tmp_path, capsys):
    """Refuse what is no whole flight record, in one line and without a traceback."""
    sim = _make(tmp_path)
    _ = sim.data.ctrl
    sim.data.ctrl[0] = torch.nan
    sim.step()
    path = _files(tmp_path)[0]
    content = path.read_bytes()
    with np.load(path) as found:
        arrays = dict(found)
    if damage == "garbage":
        path.write_bytes(b"no file of ours")
    elif damage == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "other":
        np.savez(path, x=np.arange(3))
    elif damage == "missing":
        path.unlink()
    elif damage == "format":
        np.savez(path, **{**arrays, "metadata": np.array('{"format": "other"}')})
    else:
        np.savez(path, **{**arrays, "states": arrays["states"][..., :-1]})
    assert main(["replay-dump", str(path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1
    assert ("There is no file" if damage == "missing" else "not a complete flight record") in error
    assert damage != "garbage" or "it is not an NPZ file. Give a nan_dump_*.npz file" in error


@pytest.mark.parametrize("name", ["buffer_size", "max_envs_to_dump", "max_dumps"])
def test_sizes_below_one_raise(name, tmp_path):
    """Name the field, its value and the bound."""
    with pytest.raises(ValueError, match=f"NanGuardCfg.{name} must be .* at least 1, got 0"):
        _make(tmp_path, **{name: 0})
