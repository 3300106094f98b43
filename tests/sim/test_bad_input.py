"""Wrong arguments of the simulation layer: one sentence that says what would be right."""

from __future__ import annotations

import mujoco
import pytest
import torch

from manyworlds.sensor import SensorContext
from manyworlds.sim import MujocoCfg, NanGuardCfg, RecomputeLevel, Simulation, SimulationCfg
from tests.scenes import CLUTTER, HINGE


def _model() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(HINGE)


def _spec() -> mujoco.MjSpec:
    return mujoco.MjSpec.from_string(HINGE)


def _make(num_envs=3, **options) -> Simulation:
    return Simulation(num_envs, SimulationCfg(mujoco=None, **options), _model(), "cpu")


def _with(**options) -> Simulation:
    return Simulation(1, SimulationCfg(mujoco=MujocoCfg(**options)), spec=_spec(), device="cpu")


CONSTRUCTION = [
    (lambda: _make(0), ValueError, "num_envs must be at least 1, got 0: ask for one world or more"),
    (lambda: _make(1.5), ValueError, "num_envs must be a whole number, got 1.5"),
    (lambda: _make("4"), ValueError, "num_envs must be a whole number, got '4'"),
    (lambda: _make(True), ValueError, "num_envs must be a whole number, got True"),
    (lambda: Simulation(1), ValueError, "needs either model= or spec=: give exactly one"),
    (
        lambda: Simulation(1, model=_model(), spec=_spec()),
        ValueError,
        "needs either model= or spec=: give exactly one",
    ),
    (
        lambda: Simulation(1, model="robot.xml"),  # type: ignore[arg-type]
        TypeError,
        "model must be of type MjModel, got str: compile it, or give an MjSpec as spec=",
    ),
    (
        lambda: Simulation(1, model=_spec()),  # type: ignore[arg-type]
        TypeError,
        "model must be of type MjModel, got MjSpec",
    ),
    (
        lambda: Simulation(1, spec=_model()),  # type: ignore[arg-type]
        TypeError,
        "spec must be of type MjSpec, got MjModel: give a compiled model as model=",
    ),
    (
        lambda: Simulation(1, _model()),  # type: ignore[arg-type]
        TypeError,
        "cfg must be of type SimulationCfg, got MjModel: name the arguments",
    ),
    (lambda: Simulation(1, None, _model(), "cpuu"), ValueError, "There is no device 'cpuu'"),
    (lambda: _with(timestep="0.01"), ValueError, "timestep must be a number, got '0.01'"),
    (lambda: _with(timestep=0), ValueError, "timestep must be positive and finite, got 0"),
    (lambda: _with(timestep=float("inf")), ValueError, "positive and finite, got inf"),
    (lambda: _with(iterations=1.5), ValueError, "iterations must be a whole number, got 1.5"),
    (lambda: _with(gravity=-9.81), ValueError, "gravity must be three finite numbers, got -9.81"),
    (
        lambda: _with(disableflags="contact"),
        ValueError,
        r"disableflags must be a tuple of names, got 'contact': write \('contact',\)",
    ),
    (lambda: _make(nconmax=-1), ValueError, "SimulationCfg.nconmax must be at least 0, got -1"),
    (lambda: _make(njmax="3"), ValueError, "SimulationCfg.njmax must be a whole number, got '3'"),
    (lambda: _make(num_threads=1.5), ValueError, "num_threads must be a whole number, got 1.5"),
    (lambda: _make(num_threads=None), ValueError, "num_threads must be a whole number, got None"),
    (lambda: _with(timestep=True), ValueError, "timestep must be a number, got True"),
    (
        lambda: Simulation(1, SimulationCfg(mujoco={}), _model()),  # type: ignore[arg-type]
        TypeError,
        "SimulationCfg.mujoco must be a MujocoCfg, got dict",
    ),
    (
        lambda: _make(nan_guard=None),
        TypeError,
        "SimulationCfg.nan_guard must be a NanGuardCfg, got NoneType",
    ),
    (
        lambda: _make(nan_guard=NanGuardCfg(enabled=True, buffer_size=1.5)),  # type: ignore[arg-type]
        ValueError,
        "NanGuardCfg.buffer_size must be a whole number of at least 1, got 1.5",
    ),
    (
        lambda: _make(engine="warp", broadphase=3),
        ValueError,
        "broadphase must be one of nxn, .*, got '3'",
    ),
    (lambda: Simulation(1, None, _model(), "mps"), ValueError, "on the CPU or on CUDA, got .*mps"),
    (
        lambda: MujocoCfg(timestep=-0.002).apply(_model()),
        ValueError,
        "MujocoCfg.timestep must be positive and finite, got -0.002",
    ),
    (
        lambda: MujocoCfg().apply(_spec()),  # type: ignore[arg-type]
        TypeError,
        "model must be of type MjModel, got MjSpec: compile it",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), CONSTRUCTION)
def test_construction_refuses(call, error, message: str):
    """Name the argument, its value and what would be right, before anything is built."""
    with pytest.raises(error, match=message) as raised:
        call()
    assert "\n" not in str(raised.value)


BAD_IDS = {
    "float": ([0.5], "World ids must be integers, got float64"),
    "float tensor": (torch.tensor([0.0]), "World ids must be integers, got float32"),
    "text": (["a"], "World ids must be integers"),
    "beyond": ([3], r"World id 3 is out of range: there are 3 worlds"),
    "negative": (torch.tensor([-1]), "World id -1 is out of range"),
    "scalar": (1, r"must be one-dimensional, got shape \(\): give a list"),
    "table": ([[0, 1]], r"must be one-dimensional, got shape \(1, 2\)"),
    "short mask": ([True, False], r"mask over worlds must have shape \(3,\), got \(2,\)"),
    "tall mask": (torch.ones(3, 1, dtype=torch.bool), r"must have shape \(3,\), got \(3, 1\)"),
}


@pytest.mark.parametrize("ids", BAD_IDS)
def test_every_call_refuses_bad_ids(ids: str):
    """Take the same world ids in every call, and say the same about wrong ones."""
    sim = _make()
    value, message = BAD_IDS[ids]
    for call in (
        sim.reset,
        sim.forward,
        sim.get_state,
        lambda env_ids: sim.set_state(sim.get_state([0]), env_ids),
        lambda env_ids: sim.recompute_constants(RecomputeLevel.set_const, env_ids),
    ):
        with pytest.raises(ValueError, match=message):
            call(value)


def test_repeated_ids_are_one_world_except_where_states_are_written():
    """Reset a world once though it is named twice; refuse to write two states into one world."""
    sim, once = _make(), _make()
    for each, ids in ((sim, [2, 1, 1]), (once, [1, 2])):
        each.data.ctrl[:] = 1.0
        each.step(5)
        each.reset(ids)
        each.forward(ids)
    assert torch.equal(sim.data.qpos, once.data.qpos)
    with pytest.raises(ValueError, match=r"must be unique where states are written, got \[1, 1\]"):
        sim.set_state(sim.get_state([0, 1]), [1, 1])


def _clutter() -> Simulation:
    cfg = SimulationCfg(mujoco=None)
    return Simulation(3, cfg, mujoco.MjModel.from_xml_string(CLUTTER), "cpu")


def _assign(view: torch.Tensor, value) -> None:
    view[:] = value


CALLS = [
    (lambda s: s.step(0), ValueError, "nsubsteps must be at least 1, got 0"),
    (lambda s: s.step(1.5), ValueError, "nsubsteps must be a whole number, got 1.5"),
    (
        lambda s: s.recompute_constants("set_const"),
        ValueError,
        r"level must be one of RecomputeLevel \(none, .*\), got 'set_const'",
    ),
    (
        lambda s: s.expand_model_fields("body_mass"),
        ValueError,
        "fields must be a tuple of names, got 'body_mass'",
    ),
    (lambda s: s.get_default_field("body_mas"), ValueError, "Did you mean 'body_mass'"),
    (lambda s: s.data.qpoz, AttributeError, "'qpoz' is not a data field .* Did you mean 'qpos'"),
    (lambda s: s.model.bodymass, AttributeError, "'bodymass' is not a model field"),
    (lambda s: setattr(s.data, "qpos", 1.0), AttributeError, "write in place instead"),
    (lambda s: _assign(s.data.qpos, torch.zeros(3, 2)), RuntimeError, r"\[3, 1\].*\[3, 2\]"),
    (lambda s: _assign(s.model.body_mass, torch.zeros(3, 9)), RuntimeError, r"\[3, 2\].*\[3, 9\]"),
    (
        lambda s: _assign(s.data.qpos, torch.zeros(3, 1, device="meta")),
        NotImplementedError,
        "Cannot copy out of meta tensor",
    ),
    (
        lambda s: s.set_state(_clutter().get_state()),
        ValueError,
        r"shape \(3, \d+\) but this simulation needs \(3, \d+\): use the same engine, model",
    ),
    (lambda s: s.set_state(None), TypeError, "must hold tensors by name, got NoneType"),
    (lambda s: s.set_state(_make()), TypeError, "must hold tensors by name, got Simulation"),
    (
        lambda s: s.set_state({**s.get_state(), "status": torch.zeros(2)}),
        ValueError,
        r"'status' of shape \(2,\) but this simulation needs \(3,\)",
    ),
    (
        lambda s: s.set_state({"state": s.get_state()["state"].numpy()}),
        TypeError,
        "must hold tensors by name, got ndarray",
    ),
    (
        lambda s: s.set_state({**s.get_state(), "sate": torch.zeros(3)}),
        ValueError,
        "saved state has 'sate', which this simulation lacks: use the same engine, model",
    ),
    (
        lambda s: s.set_state({**s.get_state(), "variant.cup": torch.zeros(3)}),
        ValueError,
        "saved state has variants of 'cup', which has none here",
    ),
    (lambda s: s.expand_model_fields(None), TypeError, "fields must be a tuple of str, got None"),
    (lambda s: s.expand_model_fields((3,)), TypeError, r"fields\[0\] must be of type str, got int"),
    (lambda s: s.get_default_field(3), TypeError, "field must be of type str, got int"),
    (lambda s: s.set_sensor_context("rays"), TypeError, "must be a sensor context, got str"),
    (
        lambda s: s.set_sensor_context(SensorContext(s.mj_model, s.model, _make().data)),
        ValueError,
        "sensor context was made for another simulation",
    ),
    (
        lambda s: s.ray(torch.zeros(1, 3, device="meta"), torch.ones(1, 3)),
        ValueError,
        r"pnt is on device 'meta', but the worlds are on 'cpu': move it there with \.to",
    ),
    (lambda s: s.ray([[0, 0, 0]], torch.ones(1, 3)), TypeError, "pnt must be of type Tensor"),
    (
        lambda s: s.ray(torch.zeros(2, 3), torch.ones(2, 3), bodyexclude=torch.ones(3)),
        ValueError,
        r"bodyexclude must be one body or one for each of 2 rays, got shape \(3,\)",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), CALLS)
def test_call_refuses(call, error, message: str):
    """Say what is wrong; leave the state of all worlds as it was."""
    sim = _make()
    sim.step(3)
    before = sim.get_state()["state"]
    with pytest.raises(error, match=message):
        call(sim)
    assert torch.equal(sim.get_state()["state"], before)


@pytest.mark.parametrize("value", [-0.01, 0.0, float("nan"), float("inf")])
def test_timesteps_of_worlds_are_checked(value: float):
    """Refuse to step until the timestep of every world is positive again."""
    sim = _make()
    sim.step()
    sim.model.opt.timestep[1] = value
    for _ in range(2):
        with pytest.raises(ValueError, match="opt.timestep must be positive and finite, got"):
            sim.step()
    sim.model.opt.timestep[1] = 0.001
    sim.step()
    assert sim.data.time.tolist() == pytest.approx([0.004, 0.003, 0.004])


def test_warp_refuses_a_status_of_another_size():
    """Compare every part of a saved state with what the warp engine needs."""
    pytest.importorskip("mujoco_warp")
    sim = _make(engine="warp")
    with pytest.raises(ValueError, match=r"'status' of shape \(2,\) .* needs \(3,\)"):
        sim.set_state({**sim.get_state(), "status": torch.zeros(2)})


def test_more_worlds_than_memory_are_refused():
    """Ask for 10^11 worlds: the error names the memory, and a number that fits, at once."""
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>"
    )
    with pytest.raises(ValueError, match=r"worlds of this model need more than \d+.*at most \d+"):
        Simulation(10**11, model=model, device="cpu")
