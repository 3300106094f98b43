"""The warp engine through captured graphs: on a GPU where there is one, and on the CPU."""

from __future__ import annotations

import gc
from types import SimpleNamespace
from typing import Any

import mujoco
import pytest
import torch

from manyworlds.sim import NanGuardCfg, RecomputeLevel, Simulation, SimulationCfg, WorldStatus
from manyworlds.sim.diagnostics.flight_replay import FlightRecord, replay
from manyworlds.sim.rays import CameraRequest
from tests.scenes import CLUTTER

pytest.importorskip("mujoco_warp")

import warp as wp

from manyworlds.sim.engines.warp import can_capture

NUM_ENVS = 3
CAMERA = '<camera pos="0 -3 1" xyaxes="1 0 0 0 .3 1"/>'
STATE = ("qpos", "qvel", "qacc_warmstart", "ctrl", "xfrc_applied", "eq_active", "mocap_pos", "time")
SEEN = ("qpos", "qvel", "xpos", "cvel", "sensordata")

# Threads of a GPU add in any order, so even the same call differs there in its last digits.
TOLERANCE = {"cpu": 0.0, "cuda": 1e-4}

needs_gpu = (
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no NVIDIA GPU here"),
)
on_each_device = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_gpu)])

pytestmark = pytest.mark.filterwarnings("ignore:.*worlds failed:RuntimeWarning")


def _make(device: str, captured: bool = True, guard: NanGuardCfg | None = None, **options: Any):
    cfg = SimulationCfg(engine="warp", mujoco=None, **options)
    cfg.nan_guard = guard or cfg.nan_guard
    xml = CLUTTER.replace("<worldbody>", f"<worldbody>{CAMERA}")
    sim = Simulation(NUM_ENVS, cfg, mujoco.MjModel.from_xml_string(xml), device)
    assert sim._engine.use_graphs, "graphs need memory pools and conditional nodes"
    assert sim.use_cuda_graph == (device == "cuda")
    sim._engine.use_graphs = captured
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
    names = {"forward", "step", "refresh", "forward some", "reset"}
    assert set(sim._engine.graphs) == names


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
def test_arrays_that_users_replace_count_after_create_graph(device):
    """Step with, and show, arrays of model and data that were put in place of the engine's own."""
    sim, plain = _make(device), _make(device, captured=False)
    for each in (sim, plain):
        _ = each.model.body_mass
        each.data.ctrl[:] = 0.25
        each.step(2)
        each.wp_data.ctrl = wp.from_torch(torch.full_like(each.data.ctrl, 2.0))
        each.wp_model.body_mass = wp.clone(each.wp_model.body_mass)
        wp.to_torch(each.wp_model.body_mass).mul_(3.0)
    sim.create_graph()
    assert not sim._engine.graphs
    for each in (sim, plain):
        each.data.clear_cache()
        each.step(10)
        assert (each.data.ctrl == 2.0).all()
    ball = sim.mj_model.body("ball").id
    compiled = float(sim.mj_model.body_mass[ball])
    assert sim.model.body_mass[:, ball].tolist() == pytest.approx([3 * compiled] * NUM_ENVS)
    _assert_close(sim, plain, SEEN)
    sim.model.body_mass[1] *= 2.0
    assert sim.model.body_mass[:, ball].tolist() == pytest.approx(
        [3 * compiled, 6 * compiled, 3 * compiled]
    )


@pytest.mark.slow
@on_each_device
def test_pictures_come_from_a_graph(device):
    """Draw through the graph what is drawn without it, also after bodies have moved."""
    view = CameraRequest(camera=0, width=24, height=16, kinds=("rgb", "depth", "segmentation"))
    other = CameraRequest(camera=0, width=8, height=8, kinds=("depth",))
    sim, plain = _make(device), _make(device, captured=False)
    for _ in range(3):
        for each in (sim, plain):
            each.data.qvel[0, 2] += 1.0
            each.step(30, refresh=True)
        for name, state in ((n, getattr(plain.data, n)) for n in STATE):
            getattr(sim.data, name).copy_(state)
        for each in (sim, plain):
            each.forward()
        for one in (view, other):
            expected, drawn = plain.render_cameras(one), sim.render_cameras(one)
            assert drawn is not None and expected is not None
            for kind in one.kinds:
                differs = (drawn[kind] != expected[kind]).float().mean()
                assert differs <= (0.0 if device == "cpu" else 0.01), kind
    assert {"sense 0", "sense 1"} < set(sim._engine.graphs)
    assert sim.sense_graph is sim._engine.graphs["sense 0"]
    assert plain.sense_graph is None
    sim.expand_model_fields(("cam_fovy",))
    assert sim.sense_graph is None


@pytest.mark.parametrize("missing", ["is_mempool_enabled", "is_conditional_graph"])
def test_graphs_on_a_gpu_need_memory_pools_and_conditions(missing, monkeypatch):
    """Capture graphs on a GPU only where both are there, and always on the CPU."""
    have = {"is_mempool_enabled", "is_conditional_graph"}

    def answers(*names: str) -> bool:
        monkeypatch.setattr(wp, "is_mempool_enabled", lambda device: "is_mempool_enabled" in names)
        conditional = "is_conditional_graph" in names
        monkeypatch.setattr(wp, "is_conditional_graph_supported", lambda: conditional)
        assert can_capture(SimpleNamespace(is_cpu=True))
        return can_capture(SimpleNamespace(is_cpu=False))

    assert answers(*have)
    assert not answers(*(have - {missing}))


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
