"""What both engines show alike: defaults, nested structs, and Warp's own objects."""

from __future__ import annotations

import pytest
import torch

from manyworlds.sim import Simulation, SimulationCfg, TorchArray, WarpBridge
from tests.sim.rich_scene import plain_model, rich_model, state_rows, step_plain

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
    array = TorchArray(sim.wp_data.qpos)
    assert array.wp_array is sim.wp_data.qpos
    array[1, 0] = 5.0
    assert sim.data.qpos[1, 0] == 5.0
    assert TorchArray(sim.wp_model.body_mass, NUM_ENVS).shape == (NUM_ENVS, sim.mj_model.nbody)


def test_assets_stay_readable():
    """Show vertices of meshes, which are kept once."""
    sim = Simulation(2, SimulationCfg(engine="native"), rich_model(), "cpu")
    assert sim.model.mesh_vert.shape == (2, sim.mj_model.nmeshvert, 3)
