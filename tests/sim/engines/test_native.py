"""The native engine against plain MuJoCo, bit for bit."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.sim import MujocoCfg, Simulation, SimulationCfg
from tests.robots import robot_on_floor
from tests.scenes import CLUTTER, HINGE
from tests.sim.rich_scene import rich_model

NUM_ENVS = 3
INTEGRATION = int(mujoco.mjtState.mjSTATE_INTEGRATION)


def _clutter() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(CLUTTER)


def _make(model: mujoco.MjModel | None = None, num_envs: int = NUM_ENVS, **options) -> Simulation:
    cfg = SimulationCfg(engine="native", mujoco=None, **options)
    return Simulation(num_envs, cfg, model or _clutter(), "cpu")


def _rows(sim: Simulation) -> np.ndarray:
    """Return the float64 state rows that the engine steps, shape (num_envs, nstate)."""
    return sim._engine.batch.state  # type: ignore[attr-defined]


def _state_of(sim: Simulation, data: mujoco.MjData) -> np.ndarray:
    """Return the state of plain MuJoCo data as the engine lays it out, shape (nstate,)."""
    state = np.empty(mujoco.mj_stateSize(sim.mj_model, INTEGRATION))
    mujoco.mj_getState(sim.mj_model, data, state, INTEGRATION)
    return state


def _data_of(sim: Simulation, world: int) -> mujoco.MjData:
    """Return plain MuJoCo data in the state of one world."""
    data = mujoco.MjData(sim.mj_model)
    mujoco.mj_setState(sim.mj_model, data, _rows(sim)[world], INTEGRATION)
    return data


@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("scene", ["clutter", "go1"])
def test_untouched_world_follows_mj_step(scene: str, num_threads: int):
    """Step a world that nobody writes to as a loop of mj_step does, to the last bit."""
    model = _clutter() if scene == "clutter" else robot_on_floor("unitree_go1/go1.xml")
    sim = _make(model, num_threads=num_threads)
    assert sim.num_threads == num_threads
    assert sim.mj_model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_AUTORESET
    data = mujoco.MjData(sim.mj_model)
    xpos, sensordata = sim.data.xpos, sim.data.sensordata
    contacts = 0
    for _ in range(500):
        sim.data.qvel[1:] += 1e-3  # a neighbour's writes are nobody else's business
        sim.step()
        mujoco.mj_step(sim.mj_model, data)
        contacts += data.ncon
        np.testing.assert_array_equal(_rows(sim)[0], _state_of(sim, data))
        np.testing.assert_array_equal(xpos[0].numpy(), data.xpos.astype(np.float32))
        np.testing.assert_array_equal(sensordata[0].numpy(), data.sensordata.astype(np.float32))
    assert contacts > 500
    assert not np.array_equal(_rows(sim)[1], _rows(sim)[0])


def test_nsubsteps_equals_single_steps():
    """Take substeps in one call exactly as in several."""
    one, many = _make(), _make()
    for _ in range(50):
        one.step(4)
        for _ in range(4):
            many.step()
    np.testing.assert_array_equal(_rows(one), _rows(many))


@pytest.mark.parametrize("field", ["ctrl", "qpos", "qvel", "xfrc_applied", "qfrc_applied"])
def test_written_field_is_input_of_next_step(field: str):
    """Use what was written in place, in the worlds that it was written to."""
    sim = _make()
    sim.step(20)
    expected = [_data_of(sim, world) for world in range(NUM_ENVS)]
    view = getattr(sim.data, field)
    view[1:, ..., -1] += 0.25
    for world, data in enumerate(expected):
        target = getattr(data, field)
        if world:
            target[..., -1] = np.float32(target[..., -1]) + np.float32(0.25)
        for _ in range(10):
            mujoco.mj_step(sim.mj_model, data)
    sim.step(10)
    for world, data in enumerate(expected):
        np.testing.assert_array_equal(_rows(sim)[world], _state_of(sim, data))
    assert not np.array_equal(_rows(sim)[0], _rows(sim)[1])


def test_written_mocap_and_equality_are_inputs():
    """Move a mocap body and switch on the constraint that ties another body to it."""
    sim = _make()
    assert sim.data.eq_active.dtype is torch.bool
    assert sim.data.eq_active.shape == (NUM_ENVS, 1)
    sim.data.eq_active[1] = True
    sim.data.mocap_pos[1, 0] = torch.tensor([0.0, 0.0, 1.5])
    data = mujoco.MjData(sim.mj_model)
    data.eq_active[0] = True
    data.mocap_pos[0] = 0.0, 0.0, 1.5
    for _ in range(100):
        mujoco.mj_step(sim.mj_model, data)
    sim.step(100)
    np.testing.assert_array_equal(_rows(sim)[1], _state_of(sim, data))
    ball = sim.mj_model.body("ball").id
    assert sim.data.xpos[1, ball, 2] > sim.data.xpos[0, ball, 2] + 0.5


def test_write_equal_to_rounded_record_keeps_exact_value():
    """Keep the float64 value of an element that is written as it reads."""
    sim, untouched = _make(), _make()
    sim.step(50)
    untouched.step(50)
    assert not np.array_equal(_rows(sim), _rows(sim).astype(np.float32))
    for field in ("qpos", "qvel", "qacc_warmstart", "ctrl", "mocap_pos", "mocap_quat"):
        view = getattr(sim.data, field)
        view[:] = view.clone()
    sim.step(100)
    untouched.step(100)
    np.testing.assert_array_equal(_rows(sim), _rows(untouched))


def test_scaling_model_rows_by_one_keeps_compiled_values():
    """Leave physics as compiled where a randomised field was multiplied by 1."""
    sim, untouched = _make(), _make()
    for field in ("body_mass", "body_inertia", "geom_friction", "dof_damping"):
        view = getattr(sim.model, field)
        view[:] = view * 1.0
    assert sim.expanded_fields == {"body_mass", "body_inertia", "geom_friction", "dof_damping"}
    sim.step(200)
    untouched.step(200)
    np.testing.assert_array_equal(_rows(sim), _rows(untouched))


def test_model_rows_differ_per_world():
    """Step each world with its own row, as MuJoCo does a model with these values."""
    sim = _make()
    sim.model.geom_friction[1, :, 0] = 0.05
    model = _clutter()
    model.opt.disableflags = sim.mj_model.opt.disableflags
    model.geom_friction[:, 0] = np.float32(0.05)
    slippery, rough = mujoco.MjData(model), mujoco.MjData(sim.mj_model)
    sim.step(300)
    for _ in range(300):
        mujoco.mj_step(model, slippery)
        mujoco.mj_step(sim.mj_model, rough)
    np.testing.assert_array_equal(_rows(sim)[0], _state_of(sim, rough))
    np.testing.assert_array_equal(_rows(sim)[1], _state_of(sim, slippery))


def test_forward_computes_only_worlds_named():
    """Leave derived fields of other worlds alone in a partial forward."""
    sim = _make()
    sim.step(10)
    xpos = sim.data.xpos
    sim.step(10)
    before = xpos.clone()
    _ = sim.data.cvel  # binding computes it for all worlds, but must not show in other fields
    assert torch.equal(xpos, before)
    sim.data.qpos[:, 2] += 1.0
    assert torch.equal(xpos, before)
    sim.forward([1])
    assert torch.equal(xpos[[0, 2]], before[[0, 2]])
    data = _data_of(sim, 1)
    mujoco.mj_forward(sim.mj_model, data)
    np.testing.assert_array_equal(xpos[1].numpy(), data.xpos.astype(np.float32))
    assert torch.allclose(xpos[1, 2, 2], before[1, 2, 2] + 1.0, atol=0.1)
    assert torch.all(sim.data.qpos[0, 2] > before[0, 2, 2] + 0.9), "the write itself must stay"


def test_reset_touches_only_worlds_named():
    """Put only the named worlds back to their defaults."""
    sim = _make()
    sim.data.ctrl[:] = 0.5
    sim.step(20)
    before = _rows(sim).copy()
    sim.reset(torch.tensor([False, True, False]))
    np.testing.assert_array_equal(_rows(sim)[[0, 2]], before[[0, 2]])
    fresh = mujoco.MjData(sim.mj_model)
    np.testing.assert_array_equal(_rows(sim)[1], _state_of(sim, fresh))
    np.testing.assert_array_equal(sim.data.qpos[1].numpy(), fresh.qpos.astype(np.float32))
    assert sim.data.ctrl[:, 0].tolist() == [0.5, 0.0, 0.5]
    sim.reset()
    assert (_rows(sim) == _rows(sim)[1]).all()


def test_writes_that_are_pending_at_a_reset_count():
    """Discard what was written to the state of a world before its reset, and nothing else."""
    sim = _make()
    sim.step(5)
    sim.data.qvel[:, 0] = 0.5
    sim.model.qpos0[:, 0] = 0.25
    sim.reset([1])
    assert sim.data.qvel[:, 0].tolist() == [0.5, 0.0, 0.5]
    assert sim.data.qpos[:, 0].tolist() == [sim.data.qpos[0, 0], 0.25, sim.data.qpos[0, 0]]
    sim.step()
    assert (sim.data.qvel[:, 0] > 0.4).tolist() == [True, False, True]


@pytest.mark.filterwarnings("error")
def test_views_are_plain_arrays():
    """Show state and derived fields as contiguous tensors that anyone may write to."""
    sim = _make()
    for field in ("qpos", "ctrl", "xpos", "sensordata"):
        view = getattr(sim.data, field)
        assert view.is_contiguous()
        view[:] = 0.0


def test_reset_leaves_what_was_written_to_other_worlds():
    """Step the other worlds with inputs written before the reset, the named one with its rows."""
    sim, plain = _make(), _make()
    for each in (sim, plain):
        each.step(3)
        each.data.qvel[:, 0] = 0.5
        each.data.xfrc_applied[:, 2, 2] = 3.0
    sim.model.qpos0[1, 2] = 0.6
    sim.reset([1])
    assert sim.data.qpos[1, 2] == np.float32(0.6)
    assert sim.data.qvel[:, 0].tolist() == [0.5, 0.0, 0.5]
    assert not sim.data.xfrc_applied[1].any()
    for each in (sim, plain):
        each.step(3)
    np.testing.assert_array_equal(_rows(sim)[[0, 2]], _rows(plain)[[0, 2]])


def test_reset_of_no_world_does_nothing():
    """Take an empty choice of worlds as no world, not as all."""
    sim = _make()
    sim.step(5)
    before = _rows(sim).copy()
    sim.reset([])
    sim.forward(torch.zeros(NUM_ENVS, dtype=torch.bool))
    np.testing.assert_array_equal(_rows(sim), before)


def test_binding_a_field_does_not_change_the_trajectory():
    """Step on unaffected when a field is bound after a write that is still pending."""
    watched, alone = _make(), _make()
    for sim in (watched, alone):
        sim.step(20)
        sim.data.ctrl[:] = 0.5
    _ = watched.data.subtree_com
    watched.step(50)
    alone.step(50)
    np.testing.assert_array_equal(_rows(watched), _rows(alone))


def test_views_taken_before_calls_stay_valid():
    """Refresh tensors in place, so that a reference kept once stays good."""
    sim = _make()
    qpos, xmat = sim.data.qpos, sim.data.xmat
    sim.step(10)
    sim.reset([0])
    sim.forward([0])
    assert sim.data.qpos is qpos
    assert xmat.shape == (NUM_ENVS, sim.mj_model.nbody, 3, 3)
    np.testing.assert_array_equal(qpos.numpy(), _rows(sim)[:, 1 : 1 + sim.mj_model.nq].astype("f4"))
    data = _data_of(sim, 0)
    mujoco.mj_forward(sim.mj_model, data)
    np.testing.assert_array_equal(xmat[0].flatten(1).numpy(), data.xmat.astype(np.float32))


def test_tensors_bound_in_inference_mode_take_writes():
    """Notice writes to fields first bound inside inference mode, made inside and outside of it."""
    sim, expected = _make(), _make()
    expected.data.ctrl[:] = 0.5
    expected.model.body_mass[1] *= 2.0
    with torch.inference_mode():
        sim.data.ctrl[:, 0] = 0.5
        sim.model.body_mass[1] *= 2.0
        sim.step(10)
    expected.step(10)
    np.testing.assert_array_equal(_rows(sim), _rows(expected))
    for each in (sim, expected):
        each.data.ctrl.mul_(-1.0)
        each.step(10)
    np.testing.assert_array_equal(_rows(sim), _rows(expected))
    assert sim.data.ctrl[0, 0] == -0.5


def test_refresh_brings_kinematics_to_the_new_state():
    """Compute positions, velocities and their sensors after the step, and nothing later."""
    sim, plain = _make(), _make()
    view = sim.data.sensordata
    _ = sim.data.xpos, sim.data.cvel
    sim.step(25, refresh=True)
    plain.step(25)
    np.testing.assert_array_equal(_rows(sim), _rows(plain))
    data = _data_of(sim, 0)
    mujoco.mj_forward(sim.mj_model, data)
    lagging = slice(6, 9)  # the accelerometer
    expected = data.sensordata.astype(np.float32)
    np.testing.assert_array_equal(view[0, :6].numpy(), expected[:6])
    np.testing.assert_array_equal(view[0, 9:].numpy(), expected[9:])
    assert not np.array_equal(view[0, lagging].numpy(), expected[lagging])
    assert torch.equal(view[0, lagging], _plain_step_sensors(25)[lagging])
    np.testing.assert_array_equal(sim.data.xpos[0].numpy(), data.xpos.astype(np.float32))
    np.testing.assert_array_equal(sim.data.cvel[0].numpy(), data.cvel.astype(np.float32))


def test_every_field_belongs_to_its_own_world():
    """Show no field of another world, which shared a thread, after a step that refreshes."""
    sim = Simulation(6, SimulationCfg(engine="native", mujoco=None, num_threads=2), rich_model())
    model, names = sim.mj_model, dir(sim.data.struct)
    shown = {name: getattr(sim.data, name) for name in names}
    sim.data.qvel[:] = torch.linspace(-0.5, 0.5, 6)[:, None]
    plain = [mujoco.MjData(model) for _ in range(6)]
    for data, qvel in zip(plain, sim.data.qvel.double(), strict=True):
        data.qvel[:] = qvel
    for _ in range(5):
        sim.step(2, refresh=True)
        for data in plain:
            mujoco.mj_step(model, data, 2)
    for data in plain:
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_sensorPos(model, data)
        mujoco.mj_fwdVelocity(model, data)
        mujoco.mj_sensorVel(model, data)
    compared = [name for name in names if isinstance(getattr(plain[0], name, None), np.ndarray)]
    assert len(compared) > 90
    for name in compared:
        for world, data in enumerate(plain):
            mine, expected = shown[name][world].numpy(), getattr(data, name)
            expected = expected.reshape(mine.shape).astype(mine.dtype)
            np.testing.assert_array_equal(mine, expected, err_msg=f"{name} of world {world}")


def _plain_step_sensors(count: int) -> torch.Tensor:
    """Return sensordata right after `count` calls of mj_step, shape (nsensordata,)."""
    model = _clutter()
    data = mujoco.MjData(model)
    for _ in range(count):
        mujoco.mj_step(model, data)
    return torch.from_numpy(data.sensordata.astype(np.float32))


def test_state_dict_resumes_bit_for_bit():
    """Go on from a saved state as the run that it was saved from did."""
    sim = _make()
    sim.model.body_mass[1] *= 1.7
    _ = sim.data.sensordata
    sim.step(40)
    sim.data.ctrl[:] = 0.5  # still pending when the state is saved
    saved = sim.state_dict()
    assert saved["state"].dtype is torch.float64
    seen = sim.data.sensordata.clone()
    sim.step(60)

    other = _make(num_threads=1)
    other.model.geom_friction[:] *= 0.5
    other.step(7)
    other.load_state_dict(saved)
    assert torch.equal(other.data.sensordata, seen)
    assert other.data.ctrl[0, 0] == 0.5
    other.step(60)
    np.testing.assert_array_equal(_rows(other), _rows(sim))
    assert torch.equal(other.data.sensordata, sim.data.sensordata)


def test_saved_state_is_a_copy():
    """Keep a saved state as it was while the simulation goes on."""
    sim = _make()
    saved = sim.state_dict()
    before = saved["state"].clone()
    sim.step(5)
    assert torch.equal(saved["state"], before)


def test_divergence_stays_visible_until_reset(tmp_path, monkeypatch):
    """Leave a world that diverged at NaN, and its neighbours at what they compute."""
    monkeypatch.chdir(tmp_path)  # MuJoCo logs its warnings to the current folder
    sim, healthy = _make(), _make()
    sim.data.qvel[1, 0] = float("nan")
    sim.step(3)
    healthy.step(3)
    assert sim.data.qpos[1].isnan().any()
    assert sim.data.time[1] == pytest.approx(3 * sim.timestep)
    np.testing.assert_array_equal(_rows(sim)[[0, 2]], _rows(healthy)[[0, 2]])
    sim.reset([1])
    sim.step(3)
    assert sim.data.qpos.isfinite().all()


@pytest.mark.filterwarnings("error")
def test_values_beyond_float32_read_as_infinite(tmp_path, monkeypatch):
    """Show a diverging float64 value as infinite instead of failing to convert it."""
    monkeypatch.chdir(tmp_path)
    sim = _make()
    _ = sim.data.qfrc_bias
    sim.data.qvel[1, 3:6] = 1e30
    sim.step()
    assert not sim.data.qfrc_bias[1].isfinite().all()
    assert sim.data.qfrc_bias[0].isfinite().all()


def test_field_without_its_sensor_raises():
    """Refuse a field that no step computes, and serve it when a sensor asks for it."""
    bare = _make(mujoco.MjModel.from_xml_string(HINGE))
    with pytest.raises(AttributeError, match=r"'cfrc_ext' is not available.*accelerometer"):
        _ = bare.data.cfrc_ext
    with pytest.raises(AttributeError, match="'energy' is not available"):
        _ = bare.data.energy
    assert _make().data.cfrc_ext.shape == (NUM_ENVS, _clutter().nbody, 6)


def test_options_of_a_bare_model_are_kept():
    """Apply physics options only where the caller gives them."""
    model = _clutter()
    assert Simulation(1, model=model, device="cpu").timestep == 0.004
    cfg = SimulationCfg(mujoco=MujocoCfg(timestep=0.001, disableflags=("contact",)))
    sim = Simulation(1, cfg, model, "cpu")
    assert sim.timestep == 0.001
    assert sim.mj_model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_CONTACT
    assert model.opt.timestep == 0.004, "the caller's model must stay as it was"
    sim.step(5)
    assert sim.data.ncon.sum() == 0


def _build(**options) -> Simulation:
    return Simulation(
        1, SimulationCfg(mujoco=MujocoCfg(**options)), spec=mujoco.MjSpec.from_string(HINGE)
    )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: _make(num_envs=0), ValueError, "num_envs must be at least 1, got 0"),
        (lambda: Simulation(1), ValueError, "needs either model= or spec="),
        (lambda: _make().reset([0, 3]), ValueError, "World id 3 is out of range: there are 3"),
        (lambda: _make().forward([-1]), ValueError, "World id -1 is out of range"),
        (lambda: _make().reset([0.5]), ValueError, "must be integers, got float64"),
        (lambda: _make().reset(torch.ones(2, dtype=torch.bool)), ValueError, r"shape \(3,\)"),
        (lambda: _make().step(0), ValueError, "nsubsteps must be at least 1, got 0"),
        (lambda: _make().data.qpoz, AttributeError, "Did you mean .*'qpos'"),
        (lambda: _make().model.geom_frictoin, AttributeError, "Did you mean 'geom_friction'"),
        (
            lambda: _make().expand_model_fields(("geom_frictoin",)),
            ValueError,
            "Fields not found in model: 'geom_frictoin'. Did you mean 'geom_friction'",
        ),
        (
            lambda: _make().expand_model_fields(("opt.gravty",)),
            ValueError,
            "Fields not found in model: 'opt.gravty'. Did you mean 'opt.gravity'",
        ),
        (
            lambda: Simulation(1, SimulationCfg(engine="native"), _clutter(), "cuda"),
            ValueError,
            "native engine runs on the CPU, got device 'cuda'",
        ),
        (
            lambda: Simulation(1, SimulationCfg(engine="natvie"), _clutter()),  # type: ignore[arg-type]
            ValueError,
            "engine must be one of auto, native, warp, got 'natvie'",
        ),
        (lambda: _build(integrator="rk4"), ValueError, "integrator must be one of .*, got 'rk4'"),
        (lambda: _build(cone="round"), ValueError, "cone must be one of .*, got 'round'"),
        (lambda: _build(disableflags=("contcat",)), ValueError, "disableflags must .*'contcat'"),
        (lambda: _build(enableflags=("mjnenable",)), ValueError, "enableflags .*'mjnenable'"),
        (lambda: _make().load_state_dict({}), ValueError, "saved state has shape"),
        (
            lambda: _make(num_envs=2).load_state_dict(_make().state_dict()),
            ValueError,
            r"saved state has shape \(3, \d+\) but this simulation needs \(2, \d+\)",
        ),
    ],
)
def test_wrong_argument_raises_one_clear_error(call, error, message):
    """Say what is wrong and what would be right."""
    with pytest.raises(error, match=message):
        call()


def test_writes_through_numpy_count():
    """Take over what was written through an array that shares the tensor's memory."""
    sim = Simulation(2, model=mujoco.MjModel.from_xml_string(CLUTTER))
    sim.data.ctrl.numpy()[1] = 0.25
    sim.data.qvel.data[0, 0] = 0.5
    sim.step()
    assert (sim.data.ctrl[1] == 0.25).all() and (sim.data.ctrl[0] == 0.0).all()
    assert sim._engine.batch.bind("ctrl")[1, 0] == 0.25


def test_derived_fields_that_were_not_saved_follow_a_loaded_state():
    """Compute fields that were bound only after the state was saved."""
    sim = Simulation(2, model=mujoco.MjModel.from_xml_string(CLUTTER))
    saved = sim.state_dict()
    sim.step(50)
    xpos = sim.data.xpos
    moved = xpos.clone()
    sim.load_state_dict(saved)
    fresh = Simulation(2, model=mujoco.MjModel.from_xml_string(CLUTTER)).data.xpos
    assert torch.equal(xpos, fresh) and not torch.equal(xpos, moved)
