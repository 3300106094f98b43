"""Contacts as data, against plain MuJoCo C."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.sim import Contacts, Simulation, SimulationCfg, WorldStatus
from tests.scenes import CLUTTER
from tests.sim.rich_scene import INTEGRATION, plain_model, state_rows

NUM_ENVS = 4

# A thing of each contact dimension on a floor, one that sticks, and one that floats in its gap.
SCENE = """
<mujoco>
  <option timestep="0.004" cone="{cone}"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1" condim="1" friction=".7 .02 .001"/>
    <body name="box" pos="0 0 .06" euler="0 0 30">
      <freejoint/><geom name="box" type="box" size=".1 .08 .06" condim="3"/>
    </body>
    <body name="ball" pos=".5 0 .06">
      <freejoint/><geom name="ball" size=".06" condim="1"/>
    </body>
    <body name="pill" pos="0 .5 .05" euler="90 0 20">
      <freejoint/><geom name="pill" type="capsule" size=".05 .1" condim="4" adhesion=".3"/>
    </body>
    <body name="egg" pos=".5 .5 .05">
      <freejoint/><geom name="egg" type="ellipsoid" size=".06 .07 .05" condim="6"/>
    </body>
    <body name="pea" pos=".01 0 .16">
      <freejoint/><geom name="pea" size=".04" condim="6"/>
    </body>
    <body name="moth" pos="-.5 0 .05" gravcomp="1">
      <freejoint/><geom name="moth" size=".04" margin=".03" gap=".03"/>
    </body>
  </worldbody>
  <sensor><distance geom1="ball" geom2="pea" cutoff="1"/></sensor>
</mujoco>
"""
CONES = ["pyramidal", "elliptic"]
FIELDS = ("geom", "flex", "elem", "vert", "dim", "pos", "frame", "dist", "friction")

# How far values on the warp engine may be from native's: positions [m], forces [N], which are
# some 10 N. Upright cylinders and boxes on boxes are left out: either library's choice of points
# and tangents there hangs on the last digit.
TOLERANCE = {"pos": 1e-7, "frame": 2e-7, "dist": 1e-7, "friction": 0.0, "force": 2e-4}


def _make(engine: str = "native", cone: str = "pyramidal", xml: str = SCENE, **options):
    cfg = SimulationCfg(engine=engine, mujoco=None, **options)  # type: ignore[arg-type]
    model = mujoco.MjModel.from_xml_string(xml.replace("{cone}", cone))
    return Simulation(NUM_ENVS, cfg, model, "cpu")


def _settle(sim: Simulation) -> None:
    """Slide things along the floor, each world in its own way; keep all off it in world 2."""
    sim.data.qvel[1, 0] = 0.5
    sim.data.qvel[3, 6:] = torch.linspace(-0.3, 0.3, sim.data.qvel.shape[1] - 6)
    for thing in range(6):
        sim.data.qpos[2, 7 * thing + 2] += 1.0
    sim.model.geom_friction[3, 1, 0] = 0.2
    sim.step(20)


def _expected(sim: Simulation, world: int, rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Compute the contacts of a world from its state row with MuJoCo C alone."""
    model = plain_model(sim, {field: row[world] for field, row in rows.items()}, set_const=False)
    data = mujoco.MjData(model)
    mujoco.mj_setState(model, data, state_rows(sim)[world], INTEGRATION)
    mujoco.mj_forward(model, data)
    force = np.zeros((data.ncon, 6))
    for i in range(data.ncon):
        mujoco.mj_contactForce(model, data, i, force[i])
    values = {name: getattr(data.contact, name) for name in FIELDS} | {"force": force}
    values["frame"] = values["frame"].reshape(-1, 3, 3)
    return values


@pytest.mark.parametrize("cone", CONES)
def test_contacts_are_those_of_mujoco(cone: str):
    """Return each world's contacts as MuJoCo C computes them, bit for bit."""
    sim = _make(cone=cone)
    _settle(sim)
    contacts = sim.contacts()
    rows = sim._engine.model_rows()
    assert len(contacts) == len(contacts.world) == 30
    assert contacts.world.tolist() == sorted(contacts.world.tolist())
    assert set(contacts.dim.tolist()) == {1, 3, 4, 6}
    assert (contacts.force == 0).all(dim=1).sum() == 3, "the moth is in its gap in three worlds"
    for world in range(NUM_ENVS):
        mine = contacts.world == world
        for name, value in _expected(sim, world, rows).items():
            actual = getattr(contacts, name)[mine]
            expected = torch.from_numpy(value.copy())
            expected = expected.float() if value.dtype.kind == "f" else expected
            assert actual.dtype == expected.dtype, name
            assert actual.shape == expected.shape, name
            assert torch.equal(actual, expected), f"{name} in world {world}"
    assert not (contacts.world == 2).any()


@pytest.mark.parametrize("engine", ["native", "warp"])
def test_no_contacts_have_the_same_shapes(engine: str):
    """Return empty tensors for worlds without contacts and for no worlds."""
    sim = _make(engine, xml=CLUTTER)
    sim.data.qpos[:, 2] = 3.0
    full, shapes = _make(xml=SCENE).contacts(), {}
    for name in (*FIELDS, "world", "force"):
        shapes[name] = (getattr(full, name).dtype, getattr(full, name).shape[1:])
    sim.mj_model.opt.gravity[:] = 0.0  # of no effect
    for contacts in (sim.contacts([]), _lifted(sim).contacts()):
        assert len(contacts) == 0
        for name, (dtype, shape) in shapes.items():
            assert getattr(contacts, name).dtype == dtype, name
            assert getattr(contacts, name).shape == (0, *shape), name


def _lifted(sim: Simulation) -> Simulation:
    """Put every free body of CLUTTER where it touches nothing."""
    for thing in range(3):
        sim.data.qpos[:, 7 * thing + 2] = 2.0 + thing
    return sim


@pytest.mark.slow_on_warp
@pytest.mark.parametrize("engine", ["native", "warp"])
def test_worlds_are_chosen(engine: str):
    """Return the contacts of the worlds named, ascending, and their own ids."""
    sim = _make(engine)
    _settle(sim)
    full, some = sim.contacts(), sim.contacts([3, 0])
    mine = (full.world == 0) | (full.world == 3)
    for name in ("world", *FIELDS, "force"):
        assert torch.equal(getattr(some, name), getattr(full, name)[mine]), name


def _play(sim: Simulation, look: bool) -> list[torch.Tensor]:
    """Step with writes of every kind; with `look`, ask for contacts at every chance."""

    def peek(env_ids=None) -> None:
        if look:
            sim.contacts(env_ids)

    seen = []
    for name in ("xpos", "ncon", "sensordata"):
        getattr(sim.data, name)  # bind it now
    peek()
    for step in range(30):
        peek([1])
        sim.data.qpos[0, 2] += 0.001
        peek()
        sim.data.ctrl[:] = 0.1 * step
        sim.model.geom_friction[1, 0, 0] = 0.5 + 0.01 * step
        peek([0, 2])
        if step == 10:
            sim.data.qvel[3, 0] = float("nan")
        peek()
        seen += [sim.data.xpos.clone(), sim.data.ncon.clone(), sim.status]
        sim.step(2)
        peek()
        seen += [sim.data.xpos.clone(), sim.data.sensordata.clone(), sim.status]
    seen += [torch.from_numpy(state_rows(sim).copy()), sim.data.qacc_warmstart.clone()]
    return seen


def test_contacts_change_nothing():
    """Leave state, warmstart, derived fields and status as they are, also in a world gone bad."""
    looked = _play(_make(xml=CLUTTER), look=True)
    alone = _play(_make(xml=CLUTTER), look=False)
    for step, (a, b) in enumerate(zip(looked, alone, strict=True)):
        assert torch.equal(a.nan_to_num(7.0), b.nan_to_num(7.0)), step
    assert alone[-1][3].isnan().any()


def test_contacts_see_what_was_written():
    """Describe the present state: writes count at once, whatever the last step left."""
    sim = _make()
    _settle(sim)
    before = sim.contacts([0])
    assert (sim.data.ncon == torch.tensor([len(sim.contacts([i])) for i in range(4)])).all()
    sim.data.qpos[0, 7 + 2] = 3.0  # the ball
    after = sim.contacts([0])
    ball = sim.mj_model.geom("ball").id
    assert (before.geom == ball).any()
    assert not (after.geom == ball).any()
    assert len(after) == len(before) - 1


def test_contacts_of_a_failing_world():
    """Mark a world that runs out of memory, warn once, and return those of the others."""
    sim = _make(xml=_with_memory("15K"))
    sim.data.qpos[1:, 2::7] += 1.0 + torch.arange(6)
    sim.data.qpos[2, 2] = 0.06  # the box
    with pytest.warns(RuntimeWarning, match=r"(?s)MuJoCo failed in world 0: .*sim\.status"):
        contacts = sim.contacts()
    assert int(sim.status[0]) & int(WorldStatus.ENGINE_ERROR)
    assert (sim.status[1:] == 0).all()
    assert contacts.world.tolist() == [2] * 4
    sim.data.qpos[0, 2::7] += 1.0 + torch.arange(6)
    assert len(sim.contacts()) == 4


def test_lost_constraints_are_told():
    """Mark the world in which constraints did not fit, since forces are zero then."""
    sim = _make(xml=_with_memory("9K"))
    sim.data.qpos[1:, 2::7] += 1.0 + torch.arange(6)
    assert (sim.contacts([0]).force == 0).all()
    assert sim.status.tolist() == [int(WorldStatus.CONSTRAINT_OVERFLOW), 0, 0, 0]


def _with_memory(size: str) -> str:
    return SCENE.replace("<worldbody>", f'<size memory="{size}"/><worldbody>')


def _sorted(contacts: Contacts) -> dict[str, torch.Tensor]:
    """Put contacts into an order that does not depend on the engine."""
    place = (contacts.pos * 200).round().int()
    keys = [place[:, 1], place[:, 0], contacts.geom[:, 1], contacts.geom[:, 0], contacts.world]
    order = torch.from_numpy(np.lexsort([key.numpy() for key in keys]))
    return {name: getattr(contacts, name)[order] for name in (*FIELDS, "force", "world")}


@pytest.mark.slow
@pytest.mark.parametrize("cone", CONES)
def test_warp_agrees_with_native(cone: str):
    """Compute the same contacts and forces from the same states, and change nothing."""
    pytest.importorskip("mujoco_warp")
    native, warp = _make(cone=cone), _make("warp", cone)
    _settle(native)
    warp.model.geom_friction[:] = native.model.geom_friction
    for name in ("qpos", "qvel", "qacc_warmstart"):
        getattr(warp.data, name)[:] = getattr(native.data, name)
    before = {name: getattr(warp.data, name).clone() for name in ("xpos", "qacc", "nacon")}
    actual, expected = _sorted(warp.contacts()), _sorted(native.contacts())
    for name, value in expected.items():
        assert actual[name].dtype == value.dtype, name
        assert actual[name].shape == value.shape, name
        error = (actual[name] - value).abs().max().item()
        assert error <= TOLERANCE.get(name, 0), f"{name}: {error:.1e}"
    assert expected["force"].abs().max() > 5.0
    for name, value in before.items():
        assert torch.equal(getattr(warp.data, name), value), name


@pytest.mark.slow
def test_warp_trajectory_is_not_disturbed():
    """Step on as if nobody had asked."""
    pytest.importorskip("mujoco_warp")
    looked, alone = _make("warp"), _make("warp")
    for sim in (looked, alone):
        _settle(sim)
        for _ in range(5):
            sim.step()
            if sim is looked:
                sim.contacts([1])
    for name in ("qpos", "qvel", "qacc_warmstart", "xpos", "nacon", "status"):
        owner = (looked, alone) if name == "status" else (looked.data, alone.data)
        assert torch.equal(getattr(owner[0], name), getattr(owner[1], name)), name


def test_lost_contacts_are_told_on_warp():
    """Mark the worlds when contacts did not fit, since the list is not whole then."""
    pytest.importorskip("mujoco_warp")
    sim = _make("warp", nconmax=4)
    sim.reset()
    assert (sim.status == 0).all()
    assert len(sim.contacts()) <= 4 * NUM_ENVS
    assert (sim.status & int(WorldStatus.CONTACT_OVERFLOW) != 0).all()
