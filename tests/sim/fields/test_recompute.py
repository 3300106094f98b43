"""Constants recomputed in the worlds named, against mj_setConst on copies of the model."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.sim import RecomputeLevel, Simulation, SimulationCfg
from tests.scenes import CLUTTER
from tests.sim.rich_scene import (
    RICH,
    assert_same_model,
    plain_model,
    rich_model,
    state_rows,
    step_plain,
)

NUM_ENVS = 4

# field -> index of what is changed and by how much; angles stay small so that contacts stay.
CHANGES = {
    "body_mass": (slice(2, None), 0.3),
    "body_ipos": (slice(4, None), 0.01),
    "body_inertia": (slice(2, None), 0.002),
    "dof_armature": (slice(None), 0.02),
    "qpos0": (slice(21, 23), 0.2),
    "body_pos": (slice(1, None), 0.02),
    "body_quat": (slice(1, None), 0.05),
    "tendon_armature": (slice(0, 2), 0.03),
}


def _make(engine: str = "native", model: mujoco.MjModel | None = None, num_envs: int = NUM_ENVS):
    cfg = SimulationCfg(engine=engine, mujoco=None, num_threads=2)  # type: ignore[arg-type]
    return Simulation(num_envs, cfg, model or rich_model(), "cpu")


def _change(sim: Simulation, field: str, world: int) -> np.ndarray:
    """Change a field of one world; return the whole new row, as MuJoCo has it."""
    index, amount = CHANGES[field]
    row = getattr(sim.mj_model, field).copy()
    target = getattr(sim.model, field)
    target[world, index] += amount
    if field == "body_quat":
        target[world] /= target[world].norm(dim=-1, keepdim=True)
    written = target[world].numpy().astype(np.float64).reshape(row.shape)
    return np.where(row.astype(np.float32) == written, row, written)


@pytest.mark.parametrize("field", [*CHANGES, "all"])
def test_native_equals_set_const_of_a_copy(field: str):
    """Give the worlds named the constants of a model copy, exactly, and leave the others alone."""
    sim = _make()
    fields = list(CHANGES) if field == "all" else [field]
    rows = {world: {f: _change(sim, f, world) for f in fields} for world in (1, 2)}
    sim.recompute_constants(RecomputeLevel.set_const, [1])
    batch = sim._engine.batch  # type: ignore[attr-defined]
    plain = plain_model(sim, rows[1])
    assert_same_model(batch.get_model(1), plain)
    assert_same_model(batch.get_model(2), plain_model(sim, rows[2], set_const=False))
    for world in (0, 3):
        assert_same_model(batch.get_model(world), sim.mj_model)
    assert sim.expanded_fields > set(fields), "some derived field must have come to differ"
    for name in sim.expanded_fields:
        shown = getattr(sim.model, name)
        assert shown.shape[0] == NUM_ENVS
        row = shown[1].numpy().ravel()
        expected = getattr(plain, name).ravel()[: row.size]  # of bvh_aabb only bodies' boxes
        np.testing.assert_array_equal(row, expected.astype(row.dtype), err_msg=name)
    before = state_rows(sim).copy()
    sim.step(20)
    np.testing.assert_array_equal(state_rows(sim)[1], step_plain(plain, before[1], 20))
    np.testing.assert_array_equal(state_rows(sim)[0], step_plain(sim.mj_model, before[0], 20))


def test_saved_state_brings_recomputed_rows_along():
    """Go on bit for bit from a state that was saved after recomputing, and back without it."""
    sim, other, untouched = _make(), _make(), _make()
    start = untouched.state_dict()
    for field in ("body_pos", "body_mass"):
        _change(sim, field, 1)
    sim.recompute_constants(RecomputeLevel.set_const)
    sim.step(5)
    other.load_state_dict(sim.state_dict())
    sim.step(20)
    other.step(20)
    np.testing.assert_array_equal(state_rows(other), state_rows(sim))
    other.load_state_dict(start)
    other.step(20)
    untouched.step(20)
    np.testing.assert_array_equal(state_rows(other), state_rows(untouched))


def test_every_level_above_none_is_exact_on_native():
    """Take any level but `none` as mj_setConst, and `none` as nothing to do."""
    for level in RecomputeLevel:
        sim = _make(num_envs=1)
        row = _change(sim, "body_mass", 0)
        sim.recompute_constants(level)
        batch = sim._engine.batch  # type: ignore[attr-defined]
        sim.step()  # pushes what is pending
        expected = plain_model(sim, {"body_mass": row}, set_const=level > 0)
        assert_same_model(batch.get_model(0), expected)


def test_levels_are_ordered_as_the_event_manager_compares_them():
    """Order the levels by cost."""
    assert [level.name for level in sorted(RecomputeLevel)] == [
        "none",
        "set_const_fixed",
        "set_const_0",
        "set_const",
    ]


def test_shared_array_taken_before_follows_derived_rows():
    """Show derived rows through an array that was taken while the field was shared."""
    sim = _make()
    before = sim.model.body_subtreemass
    total = before[0, 0].item()
    sim.model.body_mass[1, 2] += 1.0
    sim.recompute_constants(RecomputeLevel.set_const, torch.tensor([1]))
    assert before[:, 0].tolist() == pytest.approx([total, total + 1.0, total, total])
    assert type(sim.model.body_subtreemass) is torch.Tensor


@pytest.mark.parametrize("inference", [False, True])
def test_recomputed_rows_have_a_new_version(inference: bool):
    """Let caches that key on a tensor's version see that its rows have changed."""
    sim = _make()
    sim.expand_model_fields(("body_invweight0", "body_mass"))
    view = sim.model.body_invweight0
    version, value = view._version, view[1, 5].clone()
    with torch.inference_mode(inference):
        sim.model.body_mass[1] *= 2.0
        sim.recompute_constants(RecomputeLevel.set_const, [1])
    assert view._version > version
    assert not torch.equal(view[1, 5], value)


def test_bounds_of_mesh_geoms_survive():
    """Keep per-world bounds of mesh geoms, which the batch would put back to the template's."""
    sim = _make()
    geom = sim.mj_model.geom("wedge").id
    crate = sim.mj_model.geom("crate").id
    sim.model.geom_rbound[2, geom] = 0.75
    sim.model.geom_size[2, crate, 0] = 0.2
    sim.recompute_constants(RecomputeLevel.set_const)
    compiled = sim.mj_model.geom_rbound
    assert sim.model.geom_rbound[:, geom].tolist() == pytest.approx(
        [compiled[geom], compiled[geom], 0.75, compiled[geom]]
    )
    size = np.float64([np.float32(0.2), *sim.mj_model.geom_size[crate, 1:]])
    assert sim.model.geom_rbound[2, crate].item() == pytest.approx(np.linalg.norm(size))
    batch = sim._engine.batch  # type: ignore[attr-defined]
    assert batch.expanded("geom_rbound")[2, geom] == 0.75


def test_mesh_of_another_variant_flies_as_compiled_with_it():
    """Swap a mesh by rows and land as the model does that has this mesh, bit for bit."""
    spec = mujoco.MjSpec.from_string(RICH)
    spec.geom("wedge").meshname = "spike"
    other = spec.compile()
    sim = _make()
    geom, body = sim.mj_model.geom("wedge").id, sim.mj_model.body("wedge").id
    rows = ("geom_dataid", "geom_size", "geom_rbound", "geom_aabb", "geom_pos", "geom_quat")
    rows += ("geom_surfacevel",)  # the compiler turns it into the frame of the mesh
    for field in (*rows, "body_mass", "body_inertia", "body_ipos", "body_iquat"):
        at = body if field.startswith("body") else geom
        value = getattr(other, field)[at]
        sim.expand_model_fields((field,))
        mirror = sim._engine._rows[field]  # type: ignore[attr-defined]  # exact, not float32
        mirror.array[1, at] = value.reshape(mirror.array[1, at].shape)
    sim.recompute_constants(RecomputeLevel.set_const, [1])
    other.opt.disableflags = sim.mj_model.opt.disableflags
    before = state_rows(sim).copy()
    sim.step(150)
    np.testing.assert_array_equal(state_rows(sim)[1], step_plain(other, before[1], 150))
    assert not np.array_equal(state_rows(sim)[1], state_rows(sim)[0])


@pytest.mark.parametrize("how", ["contype", "conaffinity", "pair"])
def test_colliding_geom_without_mesh_is_refused(how: str):
    """Raise for a mesh geom without a mesh that still collides, which would crash the process."""
    spec = mujoco.MjSpec.from_string(RICH)
    if how == "pair":
        spec.add_pair(geomname1="wedge", geomname2="floor")
    sim = _make(model=spec.compile())
    sim.expand_model_fields(("geom_contype", "geom_conaffinity"))
    geom = sim.mj_model.geom("wedge").id
    sim.model.geom_dataid[2, geom] = -1
    message = "Geom 'wedge' has geom_dataid -1 in world 2 but collides"
    for call in (sim.step, sim.forward, lambda: sim.recompute_constants(RecomputeLevel.set_const)):
        with pytest.raises(ValueError, match=message):
            call()
    for field in {"contype", "conaffinity"} - {how}:
        getattr(sim.model, f"geom_{field}")[2, geom] = 0
    with pytest.raises(ValueError, match=message):
        sim.step()
    if how == "pair":
        return
    getattr(sim.model, f"geom_{how}")[2, geom] = 0
    sim.recompute_constants(RecomputeLevel.set_const, [2])
    sim.step(20)
    assert sim.data.qpos.isfinite().all()


def test_body_compiled_simple_names_the_remedy():
    """Say how to compile a body whose centre of mass is to move."""
    sim = _make(model=mujoco.MjModel.from_xml_string(CLUTTER))
    sim.model.body_ipos[1, sim.mj_model.body("box").id, 0] = 0.01
    with pytest.raises(RuntimeError, match=r"body 2 is compiled as simple.*body.simple = False"):
        sim.recompute_constants(RecomputeLevel.set_const, [1])
    spec = mujoco.MjSpec.from_string(CLUTTER)
    for body in spec.bodies[1:]:
        body.simple = False
    sim = _make(model=spec.compile())
    sim.model.body_ipos[1, sim.mj_model.body("box").id, 0] = 0.01
    sim.recompute_constants(RecomputeLevel.set_const, [1])


def test_frame_of_same_frame_object_moves_after_recompute():
    """Move a geom that shares its body's frame, which native ignores until recomputed."""
    sim = _make()
    geom = sim.mj_model.geom("crate").id
    sim.model.geom_pos[1, geom, 2] += 0.3
    sim.forward()
    assert sim.data.geom_xpos[1, geom, 2] == sim.data.geom_xpos[0, geom, 2]
    sim.recompute_constants(RecomputeLevel.set_const_fixed, [1])
    sim.forward()
    assert sim.data.geom_xpos[1, geom, 2] > sim.data.geom_xpos[0, geom, 2] + 0.25


@pytest.mark.parametrize(
    ("level", "env_ids", "message"),
    [
        (7, None, "level must be one of RecomputeLevel .* got 7"),
        (3, [9], "World id 9 is out of range"),
    ],
)
def test_wrong_argument_raises(level, env_ids, message: str):
    """Refuse levels and worlds that do not exist."""
    with pytest.raises(ValueError, match=message):
        _make().recompute_constants(level, env_ids)


def test_no_world_means_no_world():
    """Recompute nothing for an empty choice of worlds."""
    sim = _make()
    sim.model.body_mass[1] *= 2.0
    sim.recompute_constants(RecomputeLevel.set_const, [])
    assert sim.expanded_fields == {"body_mass"}
