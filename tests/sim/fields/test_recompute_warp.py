"""Constants that MuJoCo Warp recomputes, in the worlds named, against mj_setConst."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from manyworlds.sim import RecomputeLevel, Simulation, SimulationCfg
from tests.sim.fields.test_recompute import CHANGES, _change
from tests.sim.rich_scene import plain_model, rich_model

pytest.importorskip("mujoco_warp")


NUM_ENVS = 4
# Relative to the element, or to 1e-3 where it is smaller: Warp factorises in float32.
TOLERANCE = 2e-5


def _make(engine: str = "warp") -> Simulation:
    cfg = SimulationCfg(engine=engine, mujoco=None)  # type: ignore[arg-type]
    return Simulation(NUM_ENVS, cfg, rich_model(), "cpu")


@pytest.mark.parametrize("field", [*CHANGES, "all"])
def test_equals_set_const_of_a_copy(field: str):
    """Give the worlds named the constants of a model copy, and change no bit of the others."""
    sim = _make()
    fields = list(CHANGES) if field == "all" else [field]
    rows = {world: {f: _change(sim, f, world) for f in fields} for world in (1, 2)}
    seen = {
        f: getattr(sim.data, f) for f in ("qpos", "xpos", "geom_xpos", "mocap_pos", "ten_length")
    }
    before = {f: tensor.clone() for f, tensor in seen.items()}
    sim.recompute_constants(RecomputeLevel.set_const, [1])
    plain = plain_model(sim, rows[1])
    assert {"body_subtreemass", "body_invweight0", "tendon_length0"} < sim.expanded_fields
    changed = set()
    for name in sorted(sim.expanded_fields - set(fields)):
        shown, expected = getattr(sim.model, name), getattr(plain, name)
        error = np.abs(shown[1].numpy().ravel() - expected.ravel())
        assert (error <= TOLERANCE * np.abs(expected.ravel()).clip(1e-3)).all(), name
        compiled = torch.from_numpy(getattr(sim.mj_model, name)).float()
        for world in (0, 2, 3):
            assert torch.equal(shown[world].reshape(compiled.shape), compiled), name
        if not np.array_equal(expected, getattr(sim.mj_model, name)):
            changed.add(name)
    assert changed, "the change must matter to some derived field"
    for f, tensor in seen.items():
        static = slice(0, 2) if f == "geom_xpos" else slice(0, 0)
        tensor[1, static] = before[f][1, static]
        assert torch.equal(tensor, before[f]), f


def test_levels_write_their_own_fields_only():
    """Leave what depends on qpos0 alone at the fixed level, and subtree masses at level 0."""
    fixed = {"body_subtreemass", "geom_aabb", "geom_rbound"}
    for level, absent, present in (
        (RecomputeLevel.none, fixed | {"body_invweight0"}, set()),
        (RecomputeLevel.set_const_fixed, {"body_invweight0"}, fixed),
        (RecomputeLevel.set_const_0, fixed, {"body_invweight0", "light_dir0"}),
    ):
        sim = _make()
        sim.recompute_constants(level)
        assert present <= sim.expanded_fields
        assert not absent & sim.expanded_fields


def test_moved_static_geom_shows_on_both_engines():
    """Move a geom of the world and a static body in one world, on both engines alike."""
    poses = {}
    for engine in ("native", "warp"):
        sim = _make(engine)
        floor, shelf = sim.mj_model.geom("floor").id, sim.mj_model.geom("shelf").id
        body = sim.mj_model.body("shelf").id
        sim.step(2)
        before = sim.data.geom_xpos.clone()
        sim.model.geom_pos[1:3, floor, 2] -= 0.5
        sim.model.body_pos[1:3, body, 0] += 0.25
        half = 2**-0.5
        sim.model.body_quat[1:3, body] = torch.tensor([half, 0.0, 0.0, half])
        sim.recompute_constants(RecomputeLevel.set_const_fixed, [1])
        sim.forward()
        after, turned = sim.data.geom_xpos, sim.data.geom_xmat
        assert after[1, floor, 2] == before[1, floor, 2] - 0.5
        assert after[1, shelf, 0] > before[1, shelf, 0] + 0.2
        for _ in range(2):
            sim.step()
            assert torch.equal(after[1, floor], before[1, floor] - torch.tensor([0, 0, 0.5]))
            assert torch.equal(after[[0, 3]][:, :2], before[[0, 3]][:, :2])
        poses[engine] = after[1, :2].clone(), turned[1, :2].clone()
    for native, warp in zip(poses["native"], poses["warp"], strict=True):
        assert torch.allclose(native, warp, atol=1e-6)


def test_mesh_bounds_and_static_bodies_stay():
    """Keep bounds of meshes, and zero weights of bodies that cannot move or turn."""
    sim = _make()
    wedge, cart = sim.mj_model.geom("wedge").id, sim.mj_model.body("cart").id
    sim.model.geom_rbound[2, wedge] = 0.75
    sim.recompute_constants(RecomputeLevel.set_const)
    assert sim.model.geom_rbound[2, wedge] == 0.75
    assert sim.mj_model.body_invweight0[cart].tolist() == [pytest.approx(0.494, abs=1e-3), 0.0]
    assert (sim.model.body_invweight0[:, cart, 1] == 0.0).all()


def test_step_follows_native_after_recompute():
    """Step on with the new constants as native does from the same change."""
    sims = [_make("native"), _make("warp")]
    for sim in sims:
        sim.model.body_mass[1, 2:] *= 1.5
        sim.recompute_constants(RecomputeLevel.set_const, [1])
        sim.step(20)
    native, warp = (sim.data.qpos for sim in sims)
    assert torch.allclose(native, warp, atol=1e-4)
    assert not torch.allclose(native[1], native[0], atol=1e-4)
