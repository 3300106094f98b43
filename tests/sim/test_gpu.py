"""The warp engine through captured graphs: on a GPU where there is one, and on the CPU.

What is marked `gpu` has never been run: no GPU was at hand so far. The same tests on Warp's capture
for the CPU have.
"""

from __future__ import annotations

import gc
from typing import Any

import mujoco
import pytest
import torch

from manyworlds.sim import NanGuardCfg, RecomputeLevel, Simulation, SimulationCfg, WorldStatus
from manyworlds.sim.flight_replay import FlightRecord, replay
from tests.scenes import CLUTTER

pytest.importorskip("mujoco_warp")

import warp as wp

NUM_ENVS = 3
STATE = ("qpos", "qvel", "qacc_warmstart", "ctrl", "xfrc_applied", "eq_active", "mocap_pos", "time")
SEEN = ("qpos", "qvel", "xpos", "cvel", "sensordata")

# Threads of a GPU add in any order, so even the same call differs there in its last digits.
TOLERANCE = {"cpu": 0.0, "cuda": 1e-4}

needs_gpu = (
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no NVIDIA GPU here"),
)
on_each_device = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_gpu)])

pytestmark = [
    pytest.mark.usefixtures("quick_compilation"),
    pytest.mark.filterwarnings("ignore:.*worlds went bad:RuntimeWarning"),
]


def _make(device: str, captured: bool = True, guard: NanGuardCfg | None = None, **options: Any):
    cfg = SimulationCfg(engine="warp", mujoco=None, **options)
    cfg.nan_guard = guard or cfg.nan_guard
    sim = Simulation(NUM_ENVS, cfg, mujoco.MjModel.from_xml_string(CLUTTER), device)
    if device == "cuda" and captured:
        assert sim.use_cuda_graph, "graphs need memory pools and conditional nodes"
    sim._engine.use_cuda_graph = captured
    return sim


def _disturb(sim: Simulation) -> None:
    sim.data.qvel[1, :3] = 1.0
    sim.data.qvel[2, 6] = 2.0
    sim.data.eq_active[2] = True
    sim.data.ctrl[1] = 0.5
    sim.data.xfrc_applied[1, 2, 2] = 3.0


def _assert_close(actual: Simulation, expected: Simulation, names: tuple[str, ...]) -> None:
    for name in names:
        a, b = (getattr(sim.data, name).cpu() for sim in (actual, expected))
        scale = max(1.0, float(b.abs().max())) if b.is_floating_point() else 1.0
        tolerance = TOLERANCE[actual.device.type] * scale
        torch.testing.assert_close(a, b, rtol=0, atol=tolerance, msg=lambda m, n=name: f"{n}: {m}")


@on_each_device
@pytest.mark.parametrize("other", ["uncaptured", "cpu"])
def test_captured_graphs_do_what_the_calls_do(other, device):
    """Step, refresh, compute and reset as without graphs, and as on the CPU."""
    sim = _make(device)
    plain = _make("cpu" if other == "cpu" else device, captured=False)
    for each in (sim, plain):
        _disturb(each)
        _ = [getattr(each.data, name) for name in SEEN]
    for step in range(20):
        for name in STATE:
            getattr(sim.data, name).copy_(getattr(plain.data, name))
        for each in (sim, plain):
            each.step(1 + step % 2, refresh=step % 3 == 0)
            if step % 5 == 4:
                each.reset([step % NUM_ENVS])
                each.forward([step % NUM_ENVS])
        _assert_close(sim, plain, SEEN)
    assert set(sim._engine.graphs) == {"step", "refresh", "forward", "reset"}


@on_each_device
def test_graphs_are_captured_anew_when_arrays_are_replaced(device):
    """Step with the rows of a field that was expanded after the first capture."""
    sim, plain = _make(device), _make(device, captured=False)
    ball = sim.mj_model.body("ball").id
    for each in (sim, plain):
        each.step()
        each.expand_model_fields(("body_mass", "geom_friction"))
    assert not sim._engine.graphs
    for each in (sim, plain):
        each.model.body_mass[1, ball] *= 5.0
        each.recompute_constants(RecomputeLevel.set_const)
        each.data.xfrc_applied[:, ball, 0] = 1.0
        each.step(3)
    _assert_close(sim, plain, SEEN)
    pushed = sim.data.xpos[:, ball, 0].cpu()
    assert pushed[1] < pushed[0], "the heavier ball must move less"


@on_each_device
def test_no_garbage_is_collected_during_a_capture(device):
    """Suspend collection while capturing, and have it on again afterwards, errors included."""
    engine = _make(device)._engine
    seen = []
    engine.run("probe", lambda model, data: seen.append(gc.isenabled()))
    assert seen == [False] and gc.isenabled()

    def fail(model: Any, data: Any) -> None:
        raise KeyError("no such thing")

    with pytest.raises(KeyError, match="no such thing"):
        engine.run("failing", fail)
    assert gc.isenabled()


@on_each_device
def test_status_stays_on_the_device(device):
    """Tell of NaN and lost constraints per world, and forget both after a reset."""
    sim = _make(device, njmax=9)
    sim.data.eq_active[1] = True
    sim.data.qvel[2, 0] = torch.nan
    sim.step(100)
    status = sim.status
    assert status.device == sim.device and status.dtype is torch.int32
    assert int(status[2]) & WorldStatus.NAN and not int(status[0]) & WorldStatus.NAN
    assert int(status[1]) & WorldStatus.CONSTRAINT_OVERFLOW
    sim.reset([1, 2])
    assert sim.status[1:].tolist() == [0, 0]


@on_each_device
def test_a_restored_state_goes_on(device):
    """Take over the worlds of another simulation and step on as it does."""
    sim, other = _make(device), _make(device)
    _disturb(sim)
    sim.model.body_mass[1] *= 1.7
    sim.step(10)
    saved = sim.get_state()
    assert {tensor.device for tensor in saved.values()} == {sim.device}
    other.step(3)
    other.set_state({name: tensor.cpu() for name, tensor in saved.items()})
    for name in STATE:
        assert torch.equal(getattr(other.data, name), getattr(sim.data, name)), name
    for each in (sim, other):
        each.step(2)
    _assert_close(other, sim, SEEN)


@on_each_device
def test_a_step_waits_for_nothing(device, monkeypatch):
    """Write inputs, step, refresh, read the status and reset all without waiting for the GPU."""
    sim = _make(device)
    ctrl = torch.full_like(sim.data.ctrl, 0.3)

    def steps() -> None:
        sim.data.ctrl[:] = ctrl
        sim.step(4, refresh=True)
        _ = sim.status
        sim.forward()
        sim.reset()

    steps()  # captures

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("waited for the GPU")

    for owner, name in (
        *((wp, f"synchronize{what}") for what in ("", "_device", "_stream", "_event")),
        (wp.array, "numpy"),
    ):
        monkeypatch.setattr(owner, name, refuse)
    if device == "cuda":
        torch.cuda.set_sync_debug_mode("error")
    try:
        steps()
    finally:
        if device == "cuda":
            torch.cuda.set_sync_debug_mode("default")


@on_each_device
def test_a_world_is_recorded_before_it_is_reset(device, tmp_path):
    """Write the file although nobody looks at the worlds after each step."""
    guard = NanGuardCfg(enabled=True, buffer_size=20, output_dir=str(tmp_path))
    sim = _make(device, guard=guard)
    assert sim.nan_guard is not None
    if device == "cpu":
        sim.nan_guard._interval = 10
    sim.step()
    sim.data.qvel[1, -1] = torch.nan
    sim.step()
    sim.step()
    assert not list(tmp_path.iterdir())
    sim.reset([1])
    (path,) = tmp_path.iterdir()
    record = FlightRecord.load(path)
    assert record.arrays["worlds"].tolist() == [1] and len(record.arrays["nsubsteps"]) == 3
    assert replay(record, 0).startswith("qvel of joint 'shoulder' became nan before step call 1")
    for _ in range(10):
        sim.step()
    assert len(list(tmp_path.iterdir())) == 1
