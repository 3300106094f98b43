"""One rule for derived fields on both engines: they are what MuJoCo's last call left in MjData."""

from __future__ import annotations

import copy
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.sim import RecomputeLevel, Simulation, SimulationCfg
from tests.robots import robot_on_floor
from tests.sim.rich_scene import RICH

NUM_ENVS = 3
STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)


def _packaged_path(file: str) -> Path:
    package, _, inside = file.partition("/")
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    return Path(spec.submodule_search_locations[0]) / inside


def _packaged(file: str) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_path(str(_packaged_path(file)))


def _with_samples(file: str) -> mujoco.MjModel:
    """Compile a model with buffers of samples at all sensors, and no delays."""
    spec = mujoco.MjSpec.from_file(str(_packaged_path(file)))
    for sensor in spec.sensors:
        sensor.nsample = 3
    model = spec.compile()
    assert model.nhistory > 100
    return model


MODELS: dict[str, Callable[[], mujoco.MjModel]] = {
    "rich": lambda: mujoco.MjModel.from_xml_string(RICH),
    "go1": lambda: robot_on_floor("unitree_go1/go1.xml"),
    "g1": lambda: robot_on_floor("unitree_g1/g1.xml"),
    "yam": lambda: robot_on_floor("i2rt_yam/yam.xml"),
    "ant": lambda: _packaged("gymnasium/envs/mujoco/assets/ant.xml"),
    "samples": lambda: _with_samples("dm_control/suite/quadruped.xml"),
    "dog": lambda: _packaged("dm_control/suite/quadruped.xml"),
}


class Plain:
    """Worlds in an MjModel and an MjData each, driven like a `Simulation`."""

    def __init__(self, model: mujoco.MjModel) -> None:
        self.models = [copy.copy(model) for _ in range(NUM_ENVS)]
        self.datas = [mujoco.MjData(model) for _ in range(NUM_ENVS)]
        self.forward()

    def step(self, nsubsteps: int = 1, *, refresh: bool = False) -> None:
        for model, data in zip(self.models, self.datas, strict=True):
            mujoco.mj_step(model, data, nsubsteps)
            if refresh:
                mujoco.mj_step1(model, data)

    def forward(self, env_ids: Any = None) -> None:
        for world in range(NUM_ENVS) if env_ids is None else env_ids:
            mujoco.mj_forward(self.models[world], self.datas[world])

    def reset(self, env_ids: Any = None) -> None:
        for world in range(NUM_ENVS) if env_ids is None else env_ids:
            fresh = mujoco.MjData(self.models[world])
            state = np.empty(mujoco.mj_stateSize(self.models[world], STATE))
            mujoco.mj_getState(self.models[world], fresh, state, STATE)
            mujoco.mj_setState(self.models[world], self.datas[world], state, STATE)

    def write(self, field: str, values: torch.Tensor, worlds: Any = slice(None)) -> None:
        for data, value in zip(self.datas[worlds], values[worlds].numpy(), strict=True):
            getattr(data, field)[:] = value

    def scale(self, field: str, factors: torch.Tensor) -> None:
        for model, factor in zip(self.models, factors.tolist(), strict=True):
            value = getattr(model, field)
            before = value.astype(np.float32)
            after = before * np.float32(factor)
            value[after != before] = after[after != before]

    def recompute(self, worlds: Any = None) -> None:
        for world in range(NUM_ENVS) if worlds is None else worlds:
            mujoco.mj_setConst(self.models[world], mujoco.MjData(self.models[world]))

    def look(self) -> None:
        """Do what takes note of pending writes and computes no derived field."""

    def save(self) -> list[mujoco.MjData]:
        return [copy.copy(data) for data in self.datas]

    def load(self, saved: list[mujoco.MjData], worlds: list[int]) -> None:
        for world in worlds:
            self.datas[world] = copy.copy(saved[world])


class Worlds:
    """The same calls on a `Simulation`."""

    def __init__(self, model: mujoco.MjModel, engine: str) -> None:
        cfg = SimulationCfg(engine=engine, mujoco=None)  # type: ignore[arg-type]
        self.sim = Simulation(NUM_ENVS, cfg, model, "cpu")
        self.step, self.forward, self.reset = self.sim.step, self.sim.forward, self.sim.reset

    def write(self, field: str, values: torch.Tensor, worlds: Any = slice(None)) -> None:
        getattr(self.sim.data, field)[worlds] = values[worlds]

    def scale(self, field: str, factors: torch.Tensor) -> None:
        value = getattr(self.sim.model, field)
        value *= factors.view(-1, *[1] * (value.ndim - 1))

    def recompute(self, worlds: Any = None) -> None:
        self.sim.recompute_constants(RecomputeLevel.set_const, worlds)

    def look(self) -> None:
        self.sim.get_state()
        self.sim.contacts()

    def save(self) -> Any:
        return self.sim.get_state()

    def load(self, saved: Any, worlds: list[int]) -> None:
        self.sim.set_state({name: rows[worlds] for name, rows in saved.items()}, worlds)


def _start(model: mujoco.MjModel, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    noise = torch.randn(NUM_ENVS, model.nq, generator=generator) * 0.02
    qpos = torch.from_numpy(data.qpos.astype(np.float32)) + noise
    return qpos, torch.randn(NUM_ENVS, model.nv, generator=generator) * 0.3


def _steps(w: Any, qpos: torch.Tensor, qvel: torch.Tensor) -> None:
    w.write("qpos", qpos)
    w.write("qvel", qvel)
    w.step()
    w.step(3)


def _after_refresh(w: Any, qpos: torch.Tensor, qvel: torch.Tensor) -> None:
    _steps(w, qpos, qvel)
    w.step(2, refresh=True)


def _after_forward(w: Any, qpos: torch.Tensor, qvel: torch.Tensor) -> None:
    _steps(w, qpos, qvel)
    w.write("qpos", qpos)
    w.forward()


def _after_some_forward(w: Any, qpos: torch.Tensor, qvel: torch.Tensor) -> None:
    _after_refresh(w, qpos, qvel)
    w.write("qvel", qvel, slice(1, 2))
    w.forward([1])


def _after_reset(w: Any, qpos: torch.Tensor, qvel: torch.Tensor) -> None:
    _steps(w, qpos, qvel)
    w.reset([0, 2])


def _after_reset_and_forward(w: Any, qpos: torch.Tensor, qvel: torch.Tensor) -> None:
    _after_refresh(w, qpos, qvel)
    w.reset([0, 2])
    w.forward([0])


def _after_a_write(w: Any, qpos: torch.Tensor, qvel: torch.Tensor) -> None:
    _steps(w, qpos, qvel)
    w.write("qpos", qpos)
    w.write("qvel", 2 * qvel)
    w.look()


def _with_rows(w: Any, qpos: torch.Tensor, qvel: torch.Tensor) -> None:
    w.scale("body_mass", torch.tensor([1.0, 1.5, 0.75]))
    w.scale("geom_friction", torch.tensor([0.5, 1.5, 1.0]))
    w.recompute()
    _steps(w, qpos, qvel)


def _after_rows(w: Any, qpos: torch.Tensor, qvel: torch.Tensor) -> None:
    """Write rows after the step, of which some worlds see nothing before the read."""
    _with_rows(w, qpos, qvel)
    w.scale("body_mass", torch.tensor([2.0, 1.0, 1.25]))
    w.scale("dof_damping", torch.tensor([2.0, 3.0, 1.5]))
    w.recompute([0, 1])
    w.scale("geom_friction", torch.tensor([1.5, 0.5, 1.0]))
    w.look()
    w.forward([0])


def _after_loading(w: Any, qpos: torch.Tensor, qvel: torch.Tensor) -> None:
    _after_refresh(w, qpos, qvel)
    saved = w.save()
    w.step(2)
    w.reset([0])
    w.forward()
    w.load(saved, [0, 2])


SCENARIOS = [
    *(_steps, _after_refresh, _after_forward, _after_some_forward, _after_reset),
    *(_after_reset_and_forward, _after_a_write, _with_rows, _after_rows, _after_loading),
]
# Computed by the integrator alone, or beyond what MuJoCo fills.
_UNDEFINED = {"qH", "qHDiagInv", "solver_nnz"}
# Fields of a step's stages of position, velocity and acceleration, on both engines.
SHARED = (
    *("xpos", "xquat", "xmat", "xipos", "geom_xpos", "site_xpos", "subtree_com", "cdof", "cinert"),
    *("ten_length", "actuator_length", "cvel", "qfrc_bias", "qfrc_passive", "actuator_velocity"),
    *("actuator_force", "qfrc_actuator", "qacc", "qacc_smooth", "qfrc_smooth", "sensordata"),
)


def _derived(sim: Simulation) -> list[str]:
    """Fields that calls compute, out of those that the engine shows for each world."""
    state = {"time", "qpos", "qvel", "act", "history", "plastic", "qacc_warmstart", "ctrl"}
    state |= {"qfrc_applied", "xfrc_applied", "eq_active", "mocap_pos", "mocap_quat", "userdata"}
    found = set(dir(sim.data.struct)) - state - {"plugin_state", "contact", "efc"} - _UNDEFINED
    found = {field for field in found if hasattr(mujoco.MjData, field)}
    return sorted(f for f in found if getattr(sim.data, f).shape[:1] == (sim.num_envs,))


def _expected(plain: Plain, field: str) -> np.ndarray:
    values = np.array([getattr(data, field) for data in plain.datas])
    return values.astype(np.float32) if values.dtype.kind == "f" else values


def _unused(plain: Plain, field: str) -> np.ndarray | bool:
    """Mask of the entries that MuJoCo leaves as they are, since the matrix has fewer."""
    if field not in ("actuator_moment", "moment_colind"):
        return False
    masks = np.ones((NUM_ENVS, plain.models[0].nJmom), bool)
    for mask, data in zip(masks, plain.datas, strict=True):
        for start, count in zip(data.moment_rowadr, data.moment_rownnz, strict=True):
            mask[start : start + count] = False
    return masks


def _same(found: torch.Tensor, expected: np.ndarray, unused: np.ndarray | bool = False) -> bool:
    values = found.numpy().reshape(expected.shape)
    return bool(np.all((values == expected) | (np.isnan(expected) & np.isnan(values)) | unused))


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__.strip("_"))
@pytest.mark.parametrize("name", MODELS)
def test_derived_fields_are_what_mujoco_left(name, scenario):
    """Read each field for the first time after some calls, and throughout: both equal MuJoCo's."""
    model = MODELS[name]()
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
    start = _start(model, torch.Generator().manual_seed(1))
    plain, first, later = Plain(model), Worlds(model, "native"), Worlds(model, "native")
    fields = _derived(later.sim)
    assert len(fields) > 60
    for worlds in (plain, first, later):
        scenario(worlds, *start)
    wrong = [
        (field, what)
        for field in fields
        for what, worlds in (("first", first), ("later", later))
        if not _same(
            getattr(worlds.sim.data, field), _expected(plain, field), _unused(plain, field)
        )
    ]
    assert not wrong


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*overflow")
@pytest.mark.parametrize(
    "scenario", SCENARIOS[:-1], ids=lambda scenario: scenario.__name__.strip("_")
)
@pytest.mark.parametrize("name", ["go1", "yam", "ant"])
def test_the_rule_holds_on_warp(name, scenario):
    """Read each field for the first time after some calls, and throughout: both are the same."""
    model = MODELS[name]()
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
    start = _start(model, torch.Generator().manual_seed(1))
    plain, first, later = Plain(model), Worlds(model, "warp"), Worlds(model, "warp")
    fields = _derived(later.sim)
    assert set(SHARED) <= {*fields}
    for worlds in (plain, first, later):
        scenario(worlds, *start)
    wrong = [
        f
        for f in fields
        if not _same(getattr(first.sim.data, f), getattr(later.sim.data, f).numpy())
    ]
    assert not wrong
    for field in SHARED:
        expected = _expected(plain, field)
        found = getattr(first.sim.data, field).numpy().reshape(expected.shape)
        scale = max(1.0, np.abs(expected).max(initial=0))
        np.testing.assert_allclose(found / scale, expected / scale, atol=2e-3, err_msg=field)


def test_fields_that_warp_did_not_save_follow_a_loaded_state():
    """Compute what nobody had read before the state was saved, in the worlds loaded alone."""
    model = MODELS["ant"]()
    start = _start(model, torch.Generator().manual_seed(1))
    worlds = Worlds(model, "warp")
    _after_loading(worlds, *start)
    sim = worlds.sim
    before = sim.data.xpos.clone()
    sim.forward([0, 2])
    assert torch.equal(sim.data.xpos, before)
    assert not torch.equal(before[1], before[2])
