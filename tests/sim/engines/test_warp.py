"""The warp engine against the native one, on the CPU."""

from __future__ import annotations

import math
import sys

import mujoco
import pytest
import torch

from manyworlds.sim import MujocoCfg, RecomputeLevel, Simulation, SimulationCfg, TorchArray
from manyworlds.utils.math import quat_from_euler_xyz
from tests.scenes import CLUTTER, HINGE

pytest.importorskip("mujoco_warp")

import mujoco_warp as mjw
import warp as wp

from manyworlds.sim.randomization import expand_model_fields

NUM_ENVS = 3

# How far a field of one step may be from native's, in units of the field's largest value or of 1,
# whichever is more. Warp computes in float32 and solves constraints to 1e-6 instead of 1e-8.
TOLERANCE = {
    "qfrc_constraint": 3e-4,
    "cfrc_ext": 2e-4,
    "qacc": 1e-4,
    "qacc_warmstart": 1e-4,
    "cacc": 1e-4,
    "cfrc_int": 1e-4,
    "sensordata": 1e-4,
    "qvel": 1e-5,
    "qacc_smooth": 3e-6,
}
DEFAULT_TOLERANCE = 1e-6

# Fields that both engines have but lay out in their own way.
OWN_LAYOUT = {"flexedge_hessian", "qLD", "solver_niter", "key_mpos", "key_mquat", "plugin_attr"}

STATE = ("qpos", "qvel", "qacc_warmstart", "ctrl", "xfrc_applied", "eq_active", "mocap_pos", "time")


def _make(engine: str = "warp", num_envs: int = NUM_ENVS, xml: str = CLUTTER, **options):
    cfg = SimulationCfg(engine=engine, mujoco=None, **options)  # type: ignore[arg-type]
    return Simulation(num_envs, cfg, mujoco.MjModel.from_xml_string(xml), "cpu")


def _disturb(sim: Simulation) -> None:
    """Give each world its own motion and inputs."""
    sim.data.qvel[1, :3] = 1.0
    sim.data.qvel[2, 6] = 2.0
    sim.data.eq_active[2] = True
    sim.data.mocap_pos[2, 0, 2] = 0.9
    sim.data.ctrl[1] = 0.5
    sim.data.xfrc_applied[1, 2, 2] = 3.0


def _shared_fields(a, b) -> list[str]:
    """Names of the fields that both structs have and compute."""
    names = []
    for name in sorted(set(dir(a.struct)) & set(dir(b.struct)) - OWN_LAYOUT):
        try:
            values = getattr(a, name), getattr(b, name)
        except AttributeError as error:
            assert "is not available" in str(error)
        else:
            names += [name] * isinstance(values[0], torch.Tensor)
    return names


def _assert_agrees(name: str, actual: torch.Tensor, expected: torch.Tensor, step: int = 0) -> None:
    assert actual.shape == expected.shape, name
    if not expected.numel():
        return
    if not expected.is_floating_point():
        assert torch.equal(actual.int(), expected.int()), f"{name} in step {step}"
        return
    scale = max(1.0, expected.abs().max().item())
    error = (actual - expected).abs().max().item() / scale
    assert error <= TOLERANCE.get(name, DEFAULT_TOLERANCE), f"{name} in step {step}: {error:.1e}"


def test_each_step_agrees_with_native():
    """Compute every shared field as native does, over 50 steps from the same states."""
    warp, native = _make(), _make("native")
    _disturb(native)
    fields = _shared_fields(native.data, warp.data)
    assert len(fields) > 75
    assert {"qpos", "xmat", "cvel", "sensordata", "cfrc_ext", "qfrc_constraint"} <= set(fields)
    contacts = torch.zeros(NUM_ENVS)
    for step in range(50):
        for name in STATE:
            getattr(warp.data, name).copy_(getattr(native.data, name))
        warp.step()
        native.step()
        for name in fields:
            _assert_agrees(name, getattr(warp.data, name), getattr(native.data, name), step)
        contacts += native.data.ncon
    assert (contacts > 20).all(), "every world must have been in contact"


def test_free_run_stays_with_native():
    """Stay close over 50 steps in which errors may add up, substeps in one call."""
    warp, native = _make(), _make("native")
    for sim in (warp, native):
        _disturb(sim)
        for _ in range(10):
            sim.step(5)
    assert (warp.data.qpos - native.data.qpos).abs().max() < 2e-4
    torch.testing.assert_close(warp.data.time, native.data.time, rtol=0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_only_pyramids_under_steep_capsules_are_turned(cone):
    """Differ where `docs/engines.md` says: another tangent means another pyramid of friction."""
    spec = mujoco.MjSpec()
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[1, 1, 0.1])
    body = spec.worldbody.add_body(pos=[0, 0, 0.1])
    body.add_freejoint()
    body.add_geom(
        type=mujoco.mjtGeom.mjGEOM_CAPSULE, size=[0.05, 0.1, 0], friction=[0.3, 0, 0], condim=3
    )
    found = []
    for engine in ("native", "warp"):
        cfg = SimulationCfg(engine=engine, mujoco=MujocoCfg(cone=cone))
        sim = Simulation(2, cfg, spec=spec.copy(), device="cpu")
        for world, steepness in enumerate((50.0, 70.0)):
            turn = torch.tensor([0.0, math.radians(90.0 - steepness), 0.4])
            sim.data.qpos[world, 3:] = quat_from_euler_xyz(*turn)
        sim.data.qvel[:, :2] = torch.tensor([3.0, 1.0])
        sim.forward()
        found.append(sim.data.qacc.clone())
    scale = found[0].abs().amax(dim=1)
    error = (found[1] - found[0]).abs().amax(dim=1) / scale
    assert error[0] < 1e-5
    assert error[1] < 1e-5 if cone == "elliptic" else error[1] > 1e-3


def test_model_fields_agree_with_native():
    """Show the compiled model as native does."""
    warp, native = _make(), _make("native")
    fields = _shared_fields(native.model, warp.model)
    assert len(fields) > 250
    for name in [*fields, "site_rgba", "jnt_group"]:
        _assert_agrees(name, getattr(warp.model, name), getattr(native.model, name))
    assert warp.model.nbody == native.model.nbody
    assert warp.model.geom_friction.device == warp.data.qpos.device == warp.device


def test_rows_of_a_written_field_agree_with_native():
    """Expand a field at its first write and step each world with its own row."""
    warp, native = _make(), _make("native")
    for sim in (warp, native):
        before = sim.model.geom_friction
        assert isinstance(before, TorchArray)
        sim.step(2)
        sim.model.geom_friction[1, :, 0] *= 0.05
        sim.model.dof_damping[2, -1] = 5.0
        assert sim.expanded_fields == {"geom_friction", "dof_damping"}
        assert before[:, 2, 0].tolist() == pytest.approx([1.0, 0.05, 1.0])
        sim.data.qvel[:, 0] = 1.0
        sim.step(48)
    across = warp.data.qpos - warp.data.qpos[:1]
    assert across[1, :3].abs().max() > 1e-2, "the slippery box must slide on"
    assert across[2, -1].abs() > 1e-2, "the damped arm must fall more slowly"
    assert (warp.data.qpos - native.data.qpos).abs().max() < 1e-3
    assert warp.mj_model.geom_friction[2, 0] == 1.0


def test_tensors_share_memory_with_warp():
    """Show the engine's own arrays, so that writes need no copy and views stay good."""
    sim = _make()
    qpos = sim.data.qpos
    assert qpos.data_ptr() == sim._engine.wp_data.qpos.ptr  # type: ignore[attr-defined]
    sim.step(3)
    sim.reset([1])
    assert sim.data.qpos is qpos
    assert qpos.shape == (NUM_ENVS, sim.mj_model.nq)
    assert sim.data.eq_active.dtype is torch.bool
    assert sim.data.xmat.shape == (NUM_ENVS, sim.mj_model.nbody, 3, 3)


def test_inference_mode_views_take_writes_outside():
    """Keep tensors writable that were first asked for in inference mode."""
    sim = _make()
    with torch.inference_mode():
        sim.data.ctrl[:] = 0.5
        sim.model.body_mass[1] *= 2.0
        sim.step()
    sim.data.ctrl.mul_(-1.0)
    sim.model.body_mass[1] *= 2.0
    assert sim.data.ctrl[:, 0].tolist() == [-0.5] * NUM_ENVS
    assert torch.allclose(sim.model.body_mass[1], 4.0 * sim.model.body_mass[0])


def test_derived_fields_are_there_from_the_start():
    """Compute derived fields before anyone steps."""
    sim = _make()
    ball = sim.mj_model.body("ball").id
    assert sim.data.xpos[:, ball, 2].tolist() == pytest.approx([0.7] * NUM_ENVS)


def test_forward_computes_only_worlds_named():
    """Put back derived fields of the worlds that a partial forward does not name."""
    sim = _make()
    sim.step(5)
    names = ("xpos", "sensordata", "qacc", "nefc")
    before = {name: getattr(sim.data, name).clone() for name in names}
    sim.data.qpos[:, 2] += 1.0
    sim.forward([1])
    for name, values in before.items():
        assert torch.equal(getattr(sim.data, name)[[0, 2]], values[[0, 2]]), name
    assert (sim.data.xpos[1, 2, 2] - before["xpos"][1, 2, 2]).item() == pytest.approx(1.0, abs=0.05)
    assert (sim.data.qpos[:, 2] > 1.1).all()


def test_reset_touches_only_worlds_named():
    """Put only the named worlds back to their defaults."""
    sim, native = _make(), _make("native")
    sim.data.ctrl[:] = 0.5
    sim.step(20)
    before = {name: getattr(sim.data, name).clone() for name in STATE}
    sim.reset([1])
    for name, values in before.items():
        view = getattr(sim.data, name)
        assert torch.equal(view[[0, 2]], values[[0, 2]]), name
        assert torch.equal(view[1], getattr(native.data, name)[1]), name
    sim.reset()
    assert torch.equal(sim.data.qpos, native.data.qpos)


def test_refresh_agrees_with_native():
    """Compute positions, velocities and their sensors; let accelerometers lag as native's do."""
    warp, native = _make(), _make("native")
    for sim in (warp, native):
        _ = sim.data.xpos, sim.data.cvel, sim.data.sensordata
        _disturb(sim)
        sim.step(5)
    lagging = native.data.sensordata[:, 6:9].clone()
    for sim in (warp, native):
        sim.step(5, refresh=True)
    for name in ("xpos", "cvel", "sensordata"):
        error = (getattr(warp.data, name) - getattr(native.data, name)).abs().max()
        assert error < 1e-3, name
    assert (native.data.sensordata[:, 6:9] - lagging).abs().max() > 1e-2
    fresh = warp.data.xpos.clone()
    warp.forward()
    assert torch.equal(warp.data.xpos, fresh)


def test_state_dict_resumes():
    """Go on from a saved state as the run that it was saved from did."""
    sim = _make()
    _disturb(sim)
    sim.model.body_mass[1] *= 1.7
    sim.step(10)
    saved, seen = sim.state_dict(), sim.data.sensordata.clone()
    sim.step(10)

    other = _make()
    other.model.geom_friction[:] *= 0.5
    other.step(3)
    other.load_state_dict({**saved, "derived.sensordata": seen})
    assert torch.equal(other.data.sensordata, seen)
    other.step(10)
    for name in (*STATE, "xpos"):
        assert torch.equal(getattr(other.data, name), getattr(sim.data, name)), name


def test_divergence_stays_visible_until_reset():
    """Leave a world that diverged at NaN, and its neighbours at what they compute."""
    sim, healthy = _make(), _make()
    sim.data.qvel[1, 0] = float("nan")
    for each in (sim, healthy):
        each.step(3)
    assert sim.data.qpos[1].isnan().any()
    assert torch.equal(sim.data.qpos[[0, 2]], healthy.data.qpos[[0, 2]])
    sim.reset([1])
    sim.step(3)
    assert sim.data.qpos.isfinite().all()


def test_lost_constraints_are_told():
    """Mark worlds whose constraints do not fit; forget them after a reset."""
    sim = _make(njmax=9)
    sim.data.eq_active[1] = True
    sim.step(100)
    assert sim.status_counts()["constraint_overflow"] > 0
    sim.reset()
    assert (sim.status == 0).all()
    assert (sim.data.overflow == 0).all()


def test_captured_graphs_replay_the_calls():
    """Give the same results through captured graphs, also after expanding replaced an array."""
    plain, captured = _make(), _make()
    plain._engine.use_graphs = False  # type: ignore[attr-defined]
    for sim in (plain, captured):
        _disturb(sim)
        sim.step(3, refresh=True)
        sim.model.geom_friction[1] *= 0.1
        sim.step(20)
        sim.forward([1])
        for world in (2, 0):
            sim.reset([world])
            sim.step()
    for name in (*STATE, "xpos", "sensordata"):
        assert torch.equal(getattr(captured.data, name), getattr(plain.data, name)), name
    assert {"step", "forward some", "reset"} == set(captured._engine.graphs)
    assert captured.step_graph is captured._engine.graphs["step"]
    assert captured.forward_graph is not None
    assert captured.reset_graph is not None
    assert captured.sense_graph is None


def test_fields_of_warps_own_model_are_expanded():
    """Give rows to arrays of a model that no simulation owns, or to none if one is unknown."""
    mj_model = mujoco.MjModel.from_xml_string(CLUTTER)
    model, data = mjw.put_model(mj_model), mjw.make_data(mj_model, NUM_ENVS)
    shared = model.geom_friction
    with pytest.raises(ValueError, match="Fields not found in model: 'body_mas', 'opt.gravty'."):
        expand_model_fields(model, NUM_ENVS, ["geom_friction", "body_mas", "opt.gravty"])
    assert model.geom_friction is shared
    expand_model_fields(model, NUM_ENVS, ("geom_friction", "opt.gravity"))
    rows = model.geom_friction
    assert wp.to_torch(rows).shape == (NUM_ENVS, mj_model.ngeom, 3)
    assert (wp.to_torch(rows) == wp.to_torch(shared)).all()
    expand_model_fields(model, NUM_ENVS, ("geom_friction",))
    assert model.geom_friction is rows
    wp.to_torch(model.opt.gravity)[1] = 0.0
    mjw.step(model, data)
    falling = wp.to_torch(data.qvel)[:, 2]
    assert falling[0] == falling[2] < falling[1] - 0.03


def test_copies_of_worlds_have_all_rows():
    """Copy a world that hovers, with options of its own, into structs of MuJoCo C."""
    sim = _make()
    sim.model.body_gravcomp[1, 2] = 1.0
    sim.model.opt.impratio_invsqrt[1] = 0.5
    compiled = sim.mj_model.opt.impratio
    sim.recompute_constants(RecomputeLevel.set_const)
    found = [(m.ngravcomp, m.opt.impratio) for m, _ in sim.world_copies()]
    assert found == [(0, compiled), (1, 4.0), (0, compiled)]


def test_one_world_works():
    """Run a single world, with rows of its own."""
    sim = _make(num_envs=1)
    sim.model.body_mass[0, 2] = 5.0
    sim.step()
    assert sim.expanded_fields == {"body_mass"}
    assert sim.data.qpos.shape == (1, sim.mj_model.nq)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda sim: sim.data.qpoz, AttributeError, "Did you mean .*'qpos'"),
        (lambda sim: sim.data.nisland, AttributeError, "'nisland' is not available"),
        (lambda sim: sim.data.energy, AttributeError, "'energy' is not available"),
        (lambda sim: sim.data.ncon, AttributeError, "'ncon' is not .* warp .*mean .*'nacon'"),
        (lambda sim: sim.model.geom_frictoin, AttributeError, "Did you mean 'geom_friction'"),
        (
            lambda sim: sim.expand_model_fields(("geom_frictoin",)),
            ValueError,
            "Fields not found in model: 'geom_frictoin'. Did you mean 'geom_friction'",
        ),
        (
            lambda sim: sim.model.geom_contype.fill_(0),
            ValueError,
            "'geom_contype' cannot differ between worlds on the warp engine",
        ),
        (
            lambda sim: sim.model.site_rgba.fill_(0),
            ValueError,
            "'site_rgba' cannot differ between worlds on the warp engine",
        ),
        (
            lambda sim: sim.model.geom_adhesion.fill_(1),
            ValueError,
            "'geom_adhesion' is zero in the compiled model",
        ),
        (lambda sim: sim.load_state_dict({}), ValueError, "'time' of shape None"),
        (
            lambda sim: sim.load_state_dict(_make(num_envs=2).state_dict()),
            ValueError,
            r"'time' of shape \(2,\) but this simulation needs \(3,\)",
        ),
    ],
)
def test_wrong_argument_raises_one_clear_error(call, error, message):
    """Say what is wrong and what would be right."""
    with pytest.raises(error, match=message):
        call(_make())


def test_states_of_the_engines_do_not_mix():
    """Refuse a state that the other engine saved."""
    warp, native = _make(), _make("native")
    with pytest.raises(ValueError, match="use the same engine"):
        warp.load_state_dict(native.state_dict())
    with pytest.raises(ValueError, match="use the same engine"):
        native.load_state_dict(warp.state_dict())


def test_missing_package_names_the_extra(monkeypatch):
    """Say what to install when MuJoCo Warp is absent."""
    monkeypatch.setitem(sys.modules, "mujoco_warp", None)
    monkeypatch.delitem(sys.modules, "manyworlds.sim.engines.warp")
    with pytest.raises(ImportError, match=r"pip install 'manyworlds-rl\[gpu\]'"):
        _make(xml=HINGE)


def test_unsupported_model_names_the_other_engine():
    """Say what MuJoCo Warp lacks, and that the native engine has it."""
    cfg = SimulationCfg(engine="warp", mujoco=MujocoCfg(enableflags=("fwdinv",)))
    with pytest.raises(ValueError, match=r"cannot run this model: mjENBL_FWDINV .*engine='native'"):
        Simulation(1, cfg, mujoco.MjModel.from_xml_string(HINGE), "cpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("engine", ["auto", "warp"])
def test_cuda_without_gpu_raises(engine: str):
    """Say that there is no GPU instead of failing inside a library."""
    cfg = SimulationCfg(engine=engine)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="finds no GPU for device 'cuda'"):
        Simulation(1, cfg, mujoco.MjModel.from_xml_string(HINGE), "cuda")


@pytest.mark.parametrize("chosen", ["LOG_INFO", "LOG_DEBUG", "LOG_ERROR"])
def test_warp_is_quiet_unless_asked(monkeypatch, chosen: str):
    """Hold back Warp's messages at its default level only, and leave that level alone."""
    sim, seen = _make(), []
    monkeypatch.setattr(wp.config, "log_level", getattr(wp, chosen))
    sim._engine.run("probe", lambda model, data: seen.append(wp.config.log_level))  # type: ignore[attr-defined]
    assert seen == [wp.LOG_WARNING if chosen == "LOG_INFO" else getattr(wp, chosen)]
    assert wp.config.log_level == getattr(wp, chosen)
