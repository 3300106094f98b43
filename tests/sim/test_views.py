"""Views that both engines share: defaults, nested structs, and Warp's own objects."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from types import SimpleNamespace

import mujoco
import pytest
import torch

from manyworlds.sim import RecomputeLevel, Simulation, SimulationCfg, TorchArray, WarpBridge
from manyworlds.sim.write_mark import WriteMark
from tests.scenes import HINGE
from tests.sim.rich_scene import plain_model, rich_model, state_rows, step_plain
from tests.test_typing import ROOT
from tools.write_views import HEAD, STUB, render

NUM_ENVS = 3


@pytest.fixture(params=["native", "warp"])
def sim(request, monkeypatch) -> Simulation:
    """Return three worlds on each engine."""
    if request.param == "warp":
        pytest.importorskip("mujoco_warp")
        import warp as wp

        # Spend less time on compiling kernels that run a few steps.
        monkeypatch.setattr(wp.config, "optimization_level", 0)
    cfg = SimulationCfg(engine=request.param, mujoco=None)
    return Simulation(NUM_ENVS, cfg, rich_model(), "cpu")


def test_the_stub_is_current():
    """Find in the package what the generator writes with this release of MuJoCo."""
    text = (ROOT / STUB).read_text()
    if not text.startswith(HEAD):
        pytest.skip("the stub has the fields of another release of MuJoCo")
    assert text == render(), "run `python tools/write_views.py`"


@pytest.mark.parametrize("name", ["DataView", "ModelView", "OptionView"])
def test_fields_are_as_the_stub_describes_them(name):
    """Have all tensors of the native engine in the stub, with their types and dimensions."""
    sim = Simulation(NUM_ENVS, SimulationCfg(engine="native", mujoco=None), rich_model(), "cpu")
    view = {"DataView": sim.data, "ModelView": sim.model, "OptionView": sim.model.opt}[name]
    text = (ROOT / STUB).read_text()
    classes = (node for node in ast.parse(text).body if isinstance(node, ast.ClassDef))
    (listed,) = (node for node in classes if node.name == name)
    names = {ast.unparse(node.target) for node in listed.body if isinstance(node, ast.AnnAssign)}
    pointers = {"plugin_data", "plugin_attr"}
    assert set(dir(view)) - names - pointers == set()
    text = ast.get_source_segment(text, listed)
    described = re.findall(r"(\w+): torch.Tensor\s+\"\"\"[^\"]*, (\w+),\s+shape\s+\((.*?)\)", text)
    assert len(described) > 10
    for field, dtype, shape in described:
        if field not in dir(view):
            continue
        tensor = getattr(view, field)
        assert str(tensor.dtype) == f"torch.{dtype}", field
        sizes = [size.strip() for size in shape.split(",") if size.strip()]
        assert len(sizes) == tensor.dim(), field
        for size, actual in zip(sizes, tensor.shape, strict=True):
            known = {"num_envs": NUM_ENVS}.get(size, getattr(sim.mj_model, size, size))
            assert str(known) == str(actual) or "*" in size, field


def test_fields_that_worlds_share_have_no_dimension_of_worlds(sim):
    """Index ids and types by element; a field that may differ has a row for each world."""
    model = sim.mj_model
    assert torch.equal(sim.model.body_rootid, torch.from_numpy(model.body_rootid))
    assert torch.equal(sim.model.geom_bodyid[[2, 1]], torch.from_numpy(model.geom_bodyid[[2, 1]]))
    assert sim.model.jnt_type.shape == (model.njnt,)
    assert sim.model.geom_contype.shape == sim.model.geom_priority.shape == (model.ngeom,)
    assert sim.model.geom_friction.shape == (NUM_ENVS, model.ngeom, 3)
    assert sim.model.opt.gravity.shape == (NUM_ENVS, 3)
    with pytest.raises(ValueError, match=r"'geom_contype'.*(warp engine|expand_model_fields)"):
        sim.model.geom_contype[0] = 0
    with pytest.raises(ValueError, match="'geom_contype'"):
        sim.model.geom_contype[:2].fill_(0)
    assert "geom_contype" not in sim.expanded_fields


def test_a_field_has_a_dimension_of_worlds_once_it_is_expanded():
    """Show rows where the engine can give them, also to those who read the field before."""
    sim = Simulation(NUM_ENVS, SimulationCfg(engine="native", mujoco=None), rich_model(), "cpu")
    before = sim.model.geom_contype
    compiled = before.clone()
    sim.expand_model_fields(("geom_contype",))
    sim.model.geom_contype[1] = 0
    assert torch.equal(sim.model.geom_contype[0], compiled) and not sim.model.geom_contype[1].any()
    assert torch.equal(before, compiled)


def test_default_survives_writes_to_worlds_and_to_the_model(sim):
    """Return what was compiled, whatever was written to rows, to mj_model or to a result."""
    compiled = torch.from_numpy(rich_model().body_mass).float()
    sim.mj_model.body_mass[:] = 7.0  # as a viewer does that shows another world
    sim.model.body_mass[1] = 3.0
    assert torch.equal(sim.get_default_field("body_mass"), compiled)
    sim.get_default_field("body_mass").zero_()
    assert torch.equal(sim.get_default_field("body_mass"), compiled)
    assert torch.equal(sim.model.body_mass[0], compiled)
    assert sim.default_model_fields.keys() == {"body_mass"}
    assert torch.equal(sim.default_model_fields["body_mass"], compiled)
    assert sim.per_world_default_fields == set()


def test_shared_field_shows_what_the_engine_steps_with(sim):
    """Keep showing the compiled values of a shared field after an edit of mj_model."""
    expected = torch.from_numpy(rich_model().geom_friction).float()
    sim.mj_model.geom_friction[:] = 9.0
    assert torch.equal(sim.model.geom_friction[2], expected)


def test_default_has_the_shape_of_one_world(sim):
    """Shape a default as a row of the field."""
    for field in ("geom_aabb", "cam_mat0", "qpos0", "geom_dataid", "light_active"):
        default, row = sim.get_default_field(field), getattr(sim.model, field)[0]
        assert default.shape == row.shape, field
        assert torch.equal(default.float(), row.float()), field
    assert sim.get_default_field("opt.gravity").tolist() == pytest.approx([0, 0, -9.81])


def test_unknown_default_names_near_matches(sim):
    """Say what fields there are with similar names."""
    with pytest.raises(ValueError, match="'geom_frictoin' is not .* Did you mean 'geom_friction'"):
        sim.get_default_field("geom_frictoin")


def test_options_are_reachable_and_differ_between_worlds(sim):
    """Show options as a nested struct, whose first write reaches one world only."""
    assert isinstance(sim.model.opt, WarpBridge)
    assert sim.model.opt.timestep.tolist() == pytest.approx([0.004] * NUM_ENVS)
    assert sim.model.opt.iterations == 100
    gravity = sim.model.opt.gravity
    assert isinstance(gravity, TorchArray)
    sim.model.opt.gravity[1, 2] = 0.0
    assert sim.expanded_fields == {"opt.gravity"}
    assert gravity[:, 2].tolist() == pytest.approx([-9.81, 0.0, -9.81])
    saved = sim.state_dict()
    sim.model.opt.gravity[:] = 1.0
    sim.load_state_dict(saved)
    assert sim.model.opt.gravity[:, 2].tolist() == pytest.approx([-9.81, 0.0, -9.81])
    sim.step(20)
    falling = sim.data.qvel[:, 2]  # of the wedge, which lies on the shelf or hovers above it
    assert not torch.allclose(falling[1], falling[0], atol=1e-6)
    assert torch.allclose(falling[2], falling[0], atol=1e-6)


def test_option_rows_are_exact_on_native():
    """Step a world with its own options as a model with these options does."""
    sim = Simulation(2, SimulationCfg(engine="native", mujoco=None), rich_model(), "cpu")
    sim.model.opt.timestep[1] = 0.002
    sim.model.opt.wind[1, 0] = 3.0
    sim.expand_model_fields(("opt.iterations",))
    sim.model.opt.iterations[1] = 2
    plain = plain_model(sim, {"opt.wind": [3.0, 0.0, 0.0], "opt.iterations": 2}, set_const=False)
    plain.opt.timestep = float(torch.tensor(0.002))
    before = state_rows(sim).copy()
    sim.step(20)
    assert (state_rows(sim)[1] == step_plain(plain, before[1], 20)).all()
    assert (state_rows(sim)[0] == step_plain(sim.mj_model, before[0], 20)).all()


def test_assigning_an_option_raises(sim):
    """Refuse to rebind an option, and list those that there are."""
    with pytest.raises(AttributeError, match=r"Cannot set attribute 'gravity'.*\.gravity\[:\] ="):
        sim.model.opt.gravity = 1.0
    with pytest.raises(AttributeError, match="Did you mean .*gravity"):
        _ = sim.model.opt.gravitty
    assert {"gravity", "timestep"} <= set(dir(sim.model.opt))
    assert "opt" in dir(sim.model)


def test_warp_objects(sim):
    """Hand out Warp's own objects on the warp engine, and say why native has none."""
    sim.create_graph()
    assert not sim.use_cuda_graph
    if sim.engine == "native":
        for name in ("wp_model", "wp_data", "wp_device"):
            with pytest.raises(AttributeError, match=f"'{name}' is not .*native engine"):
                getattr(sim, name)
        with pytest.raises(AttributeError, match="'wp_array' is not available"):
            _ = sim.model.geom_size.wp_array
        return
    assert sim.wp_model.nv == sim.mj_model.nv
    assert sim.wp_data.nworld == NUM_ENVS
    assert sim.wp_device == sim.wp_data.qpos.device
    assert sim.model.geom_size.wp_array is sim.wp_model.geom_size
    assert sim.model.geom_bodyid.wp_array is sim.wp_model.geom_bodyid
    array = TorchArray(sim.wp_data.qpos)
    assert array.wp_array is sim.wp_data.qpos
    array[1, 0] = 5.0
    assert sim.data.qpos[1, 0] == 5.0
    assert TorchArray(sim.wp_model.body_mass, NUM_ENVS).shape == (NUM_ENVS, sim.mj_model.nbody)


def test_assets_stay_readable():
    """Show vertices of meshes, which are kept once."""
    sim = Simulation(2, SimulationCfg(engine="native"), rich_model(), "cpu")
    assert sim.model.mesh_vert.shape == (sim.mj_model.nmeshvert, 3)


def test_contacts_and_constraints_of_warp_are_shown(sim):
    """Show Warp's own structs of contacts and constraints, and say what native has instead."""
    if sim.engine == "native":
        for name in ("contact", "efc"):
            with pytest.raises(AttributeError, match=f"'{name}' is not .* use sim.contacts"):
                getattr(sim.data, name)
        return
    contact, efc = sim.data.contact, sim.data.efc
    assert sim.data.contact is contact
    assert isinstance(contact, WarpBridge)
    assert isinstance(contact.dist, TorchArray)
    assert contact.dist is contact.dist
    assert contact.dist.wp_array is sim.wp_data.contact.dist
    assert contact.dist.data_ptr() == sim.wp_data.contact.dist.ptr
    assert contact.frame.shape == (sim.wp_data.naconmax, 3, 3)
    assert efc.force.shape == (NUM_ENVS, sim.wp_data.njmax)
    assert {"dist", "geom"} <= set(dir(contact))
    distances = contact.dist
    sim.step(5)
    count = int(sim.data.nacon)
    assert sorted(distances[:count].tolist()) == sorted(sim.wp_data.contact.dist.numpy()[:count])
    with pytest.raises(AttributeError, match=r"Cannot set attribute 'dist'.*\.dist\[:\] ="):
        contact.dist = 1.0


def test_listed_data_fields_can_be_read(sim):
    """List those data fields that there are, and no others."""
    names = dir(sim.data.struct)
    for name in names:
        assert isinstance(getattr(sim.data, name), torch.Tensor | WarpBridge), name
    native = sim.engine == "native"
    assert ("ncon" in names, "nacon" in names) == (native, not native)
    assert ("contact" in names, "efc" in names) == (not native, not native)
    assert "energy" not in names


def test_bridge_over_warps_own_objects():
    """Wrap any object with Warp arrays: arrays, what is nested, and scalars as they are."""
    pytest.importorskip("mujoco_warp")
    import warp as wp

    cfg = SimulationCfg(engine="warp", mujoco=None)
    sim = Simulation(NUM_ENVS, cfg, mujoco.MjModel.from_xml_string(HINGE), "cpu")
    model = WarpBridge(sim.wp_model, NUM_ENVS)
    mass, world = model.body_mass, model.body_mass[1]
    assert isinstance(mass, TorchArray)
    assert model.body_mass is mass
    assert mass.wp_array is sim.wp_model.body_mass
    assert mass.shape == (NUM_ENVS, 2)
    assert model.geom_type.shape == (1,), "one geom, not one row for all worlds"
    assert model.nbody == 2
    assert isinstance(model.opt, WarpBridge)
    assert model.opt.timestep.shape == (NUM_ENVS,)
    for write in (lambda: mass.fill_(3.0), lambda: world.fill_(3.0)):
        with pytest.raises(ValueError, match="All worlds share this .*expand_model_fields"):
            write()
    sim.model.body_mass[1] = 7.0
    assert mass.wp_array is sim.wp_model.body_mass
    for view in (mass, model.body_mass):
        assert view[:, 1].tolist() == pytest.approx([mass[0, 1].item(), 7.0, mass[0, 1].item()])
    assert world.tolist() == [7.0, 7.0]
    world[0] = 2.0
    assert sim.model.body_mass[1].tolist() == [2.0, 7.0]

    data = WarpBridge(sim.wp_data, NUM_ENVS)
    data.qpos[2] = 0.25
    assert sim.data.qpos[:, 0].tolist() == [0.0, 0.0, 0.25]
    assert isinstance(data.efc.force, TorchArray)
    assert data.njmax == sim.wp_data.njmax
    mine = SimpleNamespace(rows=wp.zeros((1, 2), dtype=float, device="cpu"), name="mine")
    assert WarpBridge(mine, NUM_ENVS).rows.shape == (NUM_ENVS, 2)
    assert WarpBridge(mine).rows.shape == (1, 2)
    assert WarpBridge(mine).name == "mine"


VIEWS: dict[str, Callable[[Simulation], torch.Tensor]] = {
    "state": lambda sim: sim.data.qpos,
    "slice of state": lambda sim: sim.data.qpos[1, 3:9],
    "derived": lambda sim: sim.data.xpos,
    "slice of derived": lambda sim: sim.data.xpos[:, 2],
    "shared": lambda sim: sim.model.body_mass,
    "slice of shared": lambda sim: sim.model.body_mass[1],
    "slice of slice of shared": lambda sim: sim.model.body_mass[1:][:, 2:5],
    "transposed": lambda sim: sim.model.body_mass.T,
    "shared, recomputed": lambda sim: sim.model.dof_invweight0[:, 3:],
    "shared option": lambda sim: sim.model.opt.gravity,
    "slice of shared option": lambda sim: sim.model.opt.gravity[:, 2],
    "expanded": lambda sim: sim.model.geom_friction,
    "slice of expanded": lambda sim: sim.model.geom_friction[1, :, 0],
}


def _set_state(sim: Simulation) -> None:
    """Take over a state with rows of fields that had none here."""
    other = Simulation(NUM_ENVS, sim.cfg, rich_model(), "cpu")
    other.model.body_mass[1] *= 2.0
    other.model.opt.gravity[2] = 0.5
    other.step(2)
    sim.set_state(other.get_state())


CALLS: dict[str, Callable[[Simulation], object]] = {
    "step": lambda sim: sim.step(2, refresh=True),
    "forward": lambda sim: sim.forward([1]),
    "contacts": lambda sim: sim.contacts(),
    "expand": lambda sim: sim.expand_model_fields(
        ("body_mass", "opt.gravity", "geom_friction", "dof_invweight0")
    ),
    "write": lambda sim: sim.model.body_mass.mul_(2.0),
    "recompute": lambda sim: sim.recompute_constants(RecomputeLevel.set_const),
    "reset": lambda sim: sim.reset([1]),
    "set_state": _set_state,
    "load_state_dict": lambda sim: sim.load_state_dict(sim.state_dict()),
}


@pytest.mark.parametrize("call", CALLS)
def test_views_outlive_calls(sim, call: str):
    """Read and write the same memory through a view taken before a call as through a new one."""
    sim.model.geom_friction[2] *= 0.5
    sim.step()
    old = {name: view(sim) for name, view in VIEWS.items()}
    CALLS[call](sim)
    for name, view in VIEWS.items():
        assert torch.equal(old[name] + 0, view(sim) + 0), name
    for name, view in VIEWS.items():
        view(sim)[:] = 0.25
        assert (old[name] == 0.25).all(), f"{name}: the old view must see what is written"
        old[name][:] = 0.5
        assert (view(sim) == 0.5).all(), f"{name}: the old view must write where the new one reads"


def test_outdated_fields_are_computed_at_any_access(sim):
    """Compute derived fields of written worlds when one is read, known or not, and only then."""
    sim.forward()
    known = sim.data.xpos.clone()
    sim.data.qpos[1, 0] += 0.5
    sim.outdate([1])
    assert torch.equal(sim.data.qpos[2], sim.data.qpos[0])  # state is read as it is
    assert sim._outdated is not None
    sim.create_graph()
    assert not torch.equal(sim.data.xpos[1], known[1])
    assert sim._outdated is None
    assert torch.equal(sim.data.xpos[2], known[2])
    sim.data.qpos[1, 0] -= 0.5
    sim.outdate([1])
    assert torch.allclose(sim.data.xipos[1], sim.data.xipos[0], atol=1e-6)
    assert torch.allclose(sim.data.xpos, known, atol=1e-6)


def test_names_of_graphs_and_the_default_data(sim):
    """Have graphs on the warp engine alone, and an MjData that is none of the worlds."""
    sim.step()
    names = ("step_graph", "forward_graph", "reset_graph", "sense_graph")
    captured = [name for name in names if getattr(sim, name) is not None]
    assert captured == ([] if sim.engine == "native" else ["step_graph", "forward_graph"])
    data = sim.mj_data
    assert sim.mj_data is data
    assert (data.qpos == sim.mj_model.qpos0).all()
    assert data.time == 0
    assert data.xpos[3:].any()


def test_unknown_fields_are_all_named(sim):
    """Name all unknown fields of a call, with near matches, and expand none of it."""
    with pytest.raises(
        ValueError, match="Fields not found in model: 'body_mas', 'opt.gravty'"
    ) as e:
        sim.expand_model_fields(("geom_size", "body_mas", "opt.gravty", "opt.gravity"))
    assert "'body_mass'" in str(e.value)
    assert "'opt.gravity'" in str(e.value)
    assert sim.expanded_fields == set()


def test_fields_that_cannot_differ_are_all_named(sim):
    """Say that the engine keeps known fields once for all worlds, and expand none of the call."""
    names = ("mesh_vert", "tex_data") if sim.engine == "native" else ("geom_contype", "mesh_vert")
    with pytest.raises(ValueError, match=f"'{names[0]}' cannot differ .* {sim.engine} .*") as error:
        sim.expand_model_fields(("geom_size", *names))
    assert f"'{names[1]}' cannot differ" in str(error.value)
    assert sim.expanded_fields == set()


def test_apply_wp_opt_writes_the_options_of_warp():
    """Write into any Option what a configuration says, and leave what it does not."""
    mjw = pytest.importorskip("mujoco_warp")
    opt = mjw.put_model(mujoco.MjModel.from_xml_string(HINGE)).opt
    before = opt.broadphase
    SimulationCfg(contact_sensor_maxmatch=7, broadphase_filter=("sphere",)).apply_wp_opt(opt)
    assert (opt.contact_sensor_maxmatch, opt.broadphase) == (7, before)
    assert opt.broadphase_filter == mjw.BroadphaseFilter.SPHERE
    SimulationCfg(broadphase="sap_segmented").apply_wp_opt(opt)
    assert opt.broadphase == mjw.BroadphaseType.SAP_SEGMENTED


def test_the_name_of_an_engine_is_only_a_label(monkeypatch, sim):
    """Let an engine of another name do all that it can."""
    level = sim.recompute_level(["geom_friction", "dof_armature"])
    reaches = hasattr(sim, "wp_model")
    monkeypatch.setattr(type(sim._engine), "name", "mine")
    assert sim.engine == "mine"
    assert sim.recompute_level(["geom_friction", "dof_armature"]) == level
    assert level == (RecomputeLevel.set_const_0 if reaches else RecomputeLevel.set_const)
    if not reaches:
        with pytest.raises(AttributeError, match="'wp_model' is not available: the mine engine"):
            _ = sim.wp_model
    assert hasattr(sim, "wp_model") == reaches


@pytest.mark.parametrize(
    "way", ["flatten", "reshape", "contiguous", "ravel", "reshape_as", "torch"]
)
def test_writes_through_reshaped_views_of_shared_fields_count(sim, way):
    """Write one element through views that are copies while worlds share the field."""
    friction = sim.model.geom_friction
    shape = friction.shape
    like = torch.zeros(friction.numel())
    view = {
        "flatten": lambda: friction.flatten(),
        "reshape": lambda: friction.reshape(-1),
        "contiguous": lambda: friction.contiguous().view(-1),
        "ravel": lambda: friction.ravel(),
        "reshape_as": lambda: friction.reshape_as(like),
        "torch": lambda: torch.flatten(friction),
    }[way]()
    assert view.shape == like.shape
    assert torch.equal(view, friction.clone().view(-1))
    assert "geom_friction" not in sim.expanded_fields
    expected = friction.clone()
    expected.view(-1)[-1] = 0.123
    expected.view(-1)[1] += 0.5
    view[-1] = 0.123
    view[1] += 0.5
    assert sim.model.geom_friction.shape == shape
    assert torch.equal(sim.model.geom_friction, expected)
    sim.model.geom_friction[0] = 0.7  # the view follows the field
    assert torch.equal(view, sim.model.geom_friction.flatten())


def test_writes_to_copies_of_shared_fields_raise(sim):
    """Refuse a write to a reshaped part of a field that cannot be a view, rather than lose it."""
    part = sim.model.geom_friction[:, :, :2].flatten()
    compiled = part.clone()
    with pytest.raises(ValueError, match=r"would be lost.* by index, or clone\(\)"):
        part *= 2.0
    assert torch.equal(part, compiled)
    own = sim.model.geom_friction[:, :, :2].flatten().clone()
    own *= 2.0
    assert torch.equal(own, 2.0 * compiled)
    assert torch.equal(sim.model.geom_friction[:, :, :2].flatten(), compiled)


def test_marks_tell_of_writes_and_replacements():
    """Tell that a tensor was written in place or is another one, and nothing else."""
    mark, field = WriteMark(), torch.zeros(3, 2)
    assert mark.moved(field) and not mark.moved(field)
    field[1] += 1.0
    assert mark.moved(field) and not mark.moved(field)
    other = field.clone()
    assert mark.moved(other) and mark.moved(field)
