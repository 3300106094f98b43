"""Views of users: model fields that worlds share until one of them is written to."""

from __future__ import annotations

import copy
from collections.abc import Callable

import mujoco
import pytest
import torch

from manyworlds.sim import Simulation, SimulationCfg, TorchArray, WarpBridge
from tests.scenes import CLUTTER

NUM_ENVS = 3


def _make(num_envs: int = NUM_ENVS) -> Simulation:
    cfg = SimulationCfg(engine="native", num_threads=1, mujoco=None)
    return Simulation(num_envs, cfg, mujoco.MjModel.from_xml_string(CLUTTER), "cpu")


@pytest.fixture
def sim() -> Simulation:
    """Return three worlds in which nobody has written yet."""
    return _make()


def _compiled(sim: Simulation, field: str) -> torch.Tensor:
    """Return a model field's compiled values once per world."""
    value = torch.from_numpy(getattr(sim.mj_model, field)).float()
    return value.expand(sim.num_envs, *value.shape).clone()


def test_reading_shared_field_expands_nothing(sim):
    """Show a shared field once per world without giving it rows."""
    friction = sim.model.geom_friction
    assert isinstance(friction, TorchArray)
    assert friction.shape == (NUM_ENVS, sim.mj_model.ngeom, 3)
    assert friction.dtype is torch.float32
    assert torch.equal(friction, _compiled(sim, "geom_friction"))
    assert friction[1, 2, 0].item() == 1.0
    assert len(list(friction)) == NUM_ENVS
    assert "1." in repr(friction)
    assert sim.model.geom_aabb.shape == (NUM_ENVS, sim.mj_model.ngeom, 2, 3)
    assert sim.model.ngeom == sim.mj_model.ngeom
    assert sim.expanded_fields == set()


@pytest.mark.parametrize(
    "compute",
    [
        lambda f: f * 2,
        lambda f: 2 + f,
        lambda f: f.clone(),
        lambda f: f.sum(),
        lambda f: f[torch.tensor([0, 1])],
        lambda f: f > 0,
        lambda f: torch.cat([f, f]),
        lambda f: torch.where(f > 0, f, f),
        lambda f: torch.zeros_like(f).copy_(f),
        lambda f: copy.deepcopy(f),
    ],
)
def test_results_are_plain_tensors(sim, compute: Callable):
    """Return ordinary tensors from arithmetic, which later writes do not reach."""
    result = compute(sim.model.geom_friction)
    assert type(result) is torch.Tensor
    kept = result.clone()
    result.zero_()
    assert sim.expanded_fields == set()
    assert torch.equal(sim.model.geom_friction, _compiled(sim, "geom_friction"))
    assert not torch.equal(kept, result)


def _by_setitem(f: torch.Tensor) -> None:
    f[1, 2, 0] = 9.0


def _by_mask(f: torch.Tensor) -> None:
    mask = torch.zeros(f.shape, dtype=torch.bool)
    mask[1, 2, 0] = True
    f[mask] = 9.0


def _by_slice_and_augmented(f: torch.Tensor) -> None:
    world = f[1]
    world[2, 0] *= 9.0


def _by_slice_of_slice(f: torch.Tensor) -> None:
    f[:, 2][1][:1].fill_(9.0)


def _by_add(f: torch.Tensor) -> None:
    step = torch.zeros(f.shape)
    step[1, 2, 0] = 8.0
    f.add_(step)


def _by_copy(f: torch.Tensor) -> None:
    values = f.clone()
    values[1, 2, 0] = 9.0
    f.copy_(values)


def _by_augmented(f: torch.Tensor) -> None:
    factor = torch.ones(f.shape)
    factor[1, 2, 0] = 9.0
    f *= factor


def _by_out(f: torch.Tensor) -> None:
    factor = torch.ones(f.shape)
    factor[1, 2, 0] = 9.0
    torch.mul(f, factor, out=f)


def _by_iteration(f: torch.Tensor) -> None:
    for world, row in enumerate(f):
        if world == 1:
            row[2, 0] = 9.0


def _by_unbind(f: torch.Tensor) -> None:
    f.unbind(0)[1][2, 0] = 9.0


def _by_view(f: torch.Tensor) -> None:
    f.transpose(0, 1).detach()[2, 1, 0] = 9.0


def _by_keyword(f: torch.Tensor) -> None:
    torch.nn.init.constant_(tensor=f[1, 2, :1], val=9.0)


WRITES = [
    _by_setitem,
    _by_mask,
    _by_slice_and_augmented,
    _by_slice_of_slice,
    _by_add,
    _by_copy,
    _by_augmented,
    _by_out,
    _by_iteration,
    _by_unbind,
    _by_view,
    _by_keyword,
]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("inference", [False, True])
def test_first_write_reaches_its_world_only(sim, write: Callable, inference: bool):
    """Give the field its rows at the first write in place, and write to the world meant."""
    with torch.inference_mode(inference):
        write(sim.model.geom_friction)
    assert sim.expanded_fields == {"geom_friction"}
    expected = _compiled(sim, "geom_friction")
    expected[1, 2, 0] = 9.0
    assert torch.equal(sim.model.geom_friction, expected)
    sim.step()  # what was written is what the engine steps with
    rows = torch.from_numpy(sim._engine.batch.expand("geom_friction")).float()
    assert torch.equal(rows.reshape(expected.shape), expected)


@pytest.mark.parametrize("inference", [False, True])
def test_slice_scales_in_place(sim, inference: bool):
    """Scale a slice of all worlds, as randomisation terms are written."""
    with torch.inference_mode(inference):
        sim.model.geom_friction[:, 3] *= 2
    expected = _compiled(sim, "geom_friction")
    expected[:, 3] *= 2
    assert torch.equal(sim.model.geom_friction, expected)


def test_write_with_one_world():
    """Expand and write a field although there is one world only."""
    sim = _make(num_envs=1)
    sim.model.body_mass[0, 2] = 5.0
    assert sim.expanded_fields == {"body_mass"}
    assert sim.model.body_mass[0, 2] == 5.0
    sim.data.qpos[0, 0] = 1.0
    sim.step()
    assert sim.mj_model.body_mass[2] != 5.0


def test_arrays_taken_before_expansion_read_new_rows(sim):
    """Let references from before the first write read and write what worlds have now."""
    whole, part = sim.model.geom_friction, sim.model.geom_friction[:, 2]
    rows = list(sim.model.geom_friction)
    sim.model.geom_friction[1, 2, 0] = 9.0
    assert whole[1, 2, 0] == part[1, 0] == rows[1][2, 0] == 9.0
    assert torch.equal(torch.stack([whole, whole])[1], sim.model.geom_friction)
    assert torch.equal(torch.zeros(3).add(part[1]), sim.model.geom_friction[1, 2])
    part[0, 0] = 4.0
    rows[2][2, 0] = 3.0
    assert whole[:, 2, 0].tolist() == [4.0, 9.0, 3.0]
    assert sim.model.geom_friction[:, 2, 0].tolist() == [4.0, 9.0, 3.0]


def test_expanding_by_name_reaches_arrays_taken_before(sim):
    """Follow `expand_model_fields` too, and stay quiet when a field already has rows."""
    before = sim.model.body_mass
    sim.expand_model_fields(("body_mass", "body_mass"))
    assert type(sim.model.body_mass) is torch.Tensor
    sim.model.body_mass[2, 2] = 5.0
    assert before[:, 2].tolist() == pytest.approx([before[0, 2].item()] * 2 + [5.0])


def test_numpy_view_of_shared_field_is_read_only(sim):
    """Refuse writes that would bypass the field's rows."""
    with pytest.raises(ValueError, match="read-only"):
        sim.model.geom_friction.numpy()[0, 0, 0] = 9.0


@pytest.mark.parametrize("bridge", ["data", "model"])
def test_assignment_names_the_in_place_form(sim, bridge: str):
    """Refuse to rebind a field, and say what to write instead."""
    field = {"data": "qpos", "model": "qpos0"}[bridge]
    before = getattr(getattr(sim, bridge), field).clone()
    with pytest.raises(AttributeError, match=rf"Cannot set attribute '{field}'.*\.{field}\[:\] ="):
        setattr(getattr(sim, bridge), field, torch.zeros(1))
    assert torch.equal(getattr(getattr(sim, bridge), field), before)


def test_bridge_shows_its_struct_and_caches(sim):
    """Return the same tensor each time, and list the fields that there are."""
    assert sim.data.qpos is sim.data.qpos
    assert sim.model.qpos0 is sim.model.qpos0
    assert {"qpos", "xmat", "ctrl"} <= set(dir(sim.data))
    assert "geom_friction" in dir(sim.model)
    assert isinstance(sim.data, WarpBridge)
    assert sim.data.struct.qpos is sim.data.qpos
    first = sim.model.qpos0
    sim.model.clear_cache()
    assert sim.model.qpos0 is not first
