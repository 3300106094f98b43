"""Saving and restoring worlds, whole simulations and single ones."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.sim import RecomputeLevel, Simulation, SimulationCfg
from manyworlds.sim.fields.model_fields import MODEL_FIELD_TABLE
from tests.scenes import CLUTTER, HINGE
from tests.sim.rich_scene import (
    assert_same_model,
    plain_model,
    rich_model,
    step_plain,
    write_changed,
)


def _make(num_envs: int = 6, xml: str = CLUTTER, engine: str = "native") -> Simulation:
    cfg = SimulationCfg(engine=engine, mujoco=None)  # type: ignore[arg-type]
    sim = Simulation(num_envs, cfg, mujoco.MjModel.from_xml_string(xml), "cpu")
    generator = torch.Generator().manual_seed(1)
    sim.data.qvel[:] = torch.rand(sim.data.qvel.shape, generator=generator) - 0.5
    return sim


def _rows(sim: Simulation) -> np.ndarray:
    return sim._engine.batch.state  # type: ignore[attr-defined]


def test_a_world_continues_in_another_one():
    """Copy world 3 into world 5: both move alike bit for bit from then on, the others as before."""
    sim, plain = _make(), _make()
    for each in (sim, plain):
        each.model.body_mass[3] *= 1.5
        _ = each.data.xpos, each.data.ctrl
        each.data.ctrl[3] = 0.5
        each.step(30)
    sim.data.ctrl[1] = 0.25  # pending writes to other worlds stay
    plain.data.ctrl[1] = 0.25
    sim.set_state(sim.get_state([3]), [5])
    assert torch.equal(sim.data.xpos[5], plain.data.xpos[3])
    assert torch.equal(sim.model.body_mass[5], plain.model.body_mass[3])
    assert torch.equal(sim.data.ctrl[:, 0], torch.tensor([0.0, 0.25, 0, 0.5, 0, 0.5]))
    for each in (sim, plain):
        each.step(100)
    np.testing.assert_array_equal(_rows(sim)[:5], _rows(plain)[:5])
    np.testing.assert_array_equal(_rows(sim)[5], _rows(plain)[3])
    assert not np.array_equal(_rows(plain)[5], _rows(plain)[3])


def test_rows_keep_the_order_of_the_ids():
    """Swap two worlds by naming them in two orders; copy one world twice."""
    sim = _make()
    sim.step(10)
    before = _rows(sim).copy()
    sim.set_state(sim.get_state([4, 2]), torch.tensor([2, 4]))
    np.testing.assert_array_equal(_rows(sim)[[2, 4]], before[[4, 2]])
    sim.set_state(sim.get_state([0, 0]), [1, 3])
    np.testing.assert_array_equal(_rows(sim)[[1, 3]], before[[0, 0]])
    np.testing.assert_array_equal(_rows(sim)[5], before[5])
    sim.set_state(sim.get_state(slice(0, 2)), np.array([0, 0, 1, 1, 0, 0], bool))
    np.testing.assert_array_equal(_rows(sim)[2], before[0])


def test_rows_that_were_not_saved_return_to_compiled_values():
    """Undo what was expanded after saving, in the worlds restored only."""
    sim, plain = _make(), _make()
    saved = sim.get_state([0, 1])
    sim.model.geom_friction[:] *= 0.1
    sim.set_state(saved, [0, 1])
    sim.step(100)
    plain.step(100)
    np.testing.assert_array_equal(_rows(sim)[:2], _rows(plain)[:2])
    assert sim.model.geom_friction[2, 0, 0] == pytest.approx(0.1)


@pytest.mark.parametrize("engine", ["native", "warp"])
def test_fields_without_elements_are_saved_like_any(engine):
    """Save and restore although a field that has rows for worlds has none for elements."""
    sim = _make(xml=HINGE, engine=engine)
    sim.expand_model_fields(("pair_friction", "tendon_damping", "geom_friction"))
    sim.model.geom_friction[2] *= 0.5
    friction = sim.model.geom_friction.clone()
    saved = sim.get_state()
    sim.model.geom_friction[:] *= 0.1
    sim.set_state(saved)
    assert torch.equal(sim.model.geom_friction, friction)
    assert sim.model.pair_friction.shape == (6, 0, 5)


def test_constants_of_a_world_are_saved():
    """Carry over what mj_setConst computed, though nobody expanded these fields."""
    sim, fresh = _make(), _make()
    sim.model.body_mass[1] *= 3.0
    sim.forward()
    sim.recompute_constants(RecomputeLevel.set_const)
    fresh.set_state(sim.get_state())
    for each in (sim, fresh):
        each.step(100)
    np.testing.assert_array_equal(_rows(fresh), _rows(sim))
    assert torch.equal(fresh.model.body_invweight0[1], sim.model.body_invweight0[1])
    assert not torch.equal(sim.model.body_invweight0[1], sim.model.body_invweight0[0])


def test_status_travels_with_the_state():
    """Restore what went wrong, and forget what went wrong since."""
    sim = _make()
    _ = sim.data.ctrl
    well = sim.get_state()
    sim.data.ctrl[2] = torch.nan
    sim.step()
    ill = sim.get_state()
    assert sim.status_counts() == {"bad_ctrl": 1}
    sim.set_state(well)
    assert sim.status_counts() == {}
    sim.set_state({k: v[2:3] for k, v in ill.items()}, [4])
    assert sim.status.nonzero().flatten().tolist() == [4]


def test_warp_restores_single_worlds():
    """Copy a world on the warp engine, model rows included."""
    pytest.importorskip("mujoco_warp")
    sim = _make(3, HINGE, "warp")
    sim.model.body_mass[1] *= 2.0
    _ = sim.data.xpos
    sim.step(5)
    sim.set_state(sim.get_state([1]), [2])
    for name in ("qpos", "qvel", "xpos", "time"):
        assert torch.equal(getattr(sim.data, name)[2], getattr(sim.data, name)[1])
    assert torch.equal(sim.model.body_mass[2], sim.model.body_mass[1])
    assert not torch.equal(sim.data.qpos[2], sim.data.qpos[0])
    with pytest.raises(ValueError, match=r"'time' of shape \(3,\) .* needs \(1,\)"):
        sim.set_state(sim.get_state(), [1])
    native = _make(3, HINGE)
    with pytest.raises(ValueError, match=r"state has 'time' of shape None .* same engine"):
        sim.set_state(native.get_state())
    with pytest.raises(ValueError, match=r"saved state has shape None .* same engine"):
        native.set_state(sim.get_state())


def _with_mass(state: dict[str, torch.Tensor], shape: tuple[int, ...]) -> dict[str, torch.Tensor]:
    return {**state, "model.body_mass": torch.ones(shape, dtype=torch.float64)}


def test_rows_that_are_as_long_by_chance_are_refused():
    """Tell a model with other sizes by these, though its state rows have the same length."""
    joint = "<mujoco><worldbody><body><geom size='.1'/>{}</body></worldbody>{}</mujoco>"
    ball = joint.format("<joint type='ball'/>", "")  # 4 + 3 + 3 + 3 and nothing else that differs
    rest = "<joint name='a'/><joint axis='0 1 0'/><joint axis='0 0 1'/>"
    motor = "<actuator><motor joint='a'/></actuator>"
    first, second = (
        Simulation(2, model=mujoco.MjModel.from_xml_string(xml), device="cpu").get_state()
        for xml in (ball, joint.format(rest, motor))
    )
    assert first["state"].shape == second["state"].shape
    sim = Simulation(2, model=mujoco.MjModel.from_xml_string(ball), device="cpu")
    sim.set_state(first)
    with pytest.raises(ValueError, match="is of a model with nq = 3, but this one has 4"):
        sim.set_state(second)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda s: s.set_state(_make(6, HINGE).get_state()),
            ValueError,
            r"shape \(6, \d+\) but this simulation needs \(6, \d+\): use the same engine, model",
        ),
        (
            lambda s: s.set_state(s.get_state([1, 2]), [3]),
            ValueError,
            r"shape \(2, \d+\) but this simulation needs \(1, \d+\)",
        ),
        (
            lambda s: s.set_state(_with_mass(s.get_state(), (6, 3))),
            ValueError,
            r"'model.body_mass' of shape \(6, 3\) but this simulation needs \(6, 6\)",
        ),
        (
            lambda s: s.set_state({**s.get_state(), "sizes": s.get_state()["sizes"] - 1}),
            ValueError,
            r"saved state is of a model with nq = \d+, but this one has \d+: use the same model",
        ),
        (lambda s: s.set_state(s.get_state([1, 2]), [3, 3]), ValueError, r"unique .* \[3, 3\]"),
        (lambda s: s.get_state([6]), ValueError, "World id 6 is out of range: there are 6"),
        (lambda s: s.set_state(s.get_state([0]), [-1]), ValueError, "World id -1 is out of range"),
        (
            lambda s: s.data.qpos.copy_(_make(5).data.qpos),
            RuntimeError,
            r"size of tensor a \(6\) must match the size of tensor b \(5\)",
        ),
        (
            lambda s: Simulation(1, model=s.mj_model, device="meta"),
            ValueError,
            "Engines run on the CPU or on CUDA, got device 'meta'",
        ),
    ],
)
def test_what_does_not_fit_raises_and_changes_nothing(call, error, message):
    """Name both sizes; leave the simulation as it was."""
    sim = _make()
    sim.step(3)
    before = _rows(sim).copy()
    with pytest.raises(error, match=message):
        call(sim)
    np.testing.assert_array_equal(_rows(sim), before)


# In a model in which these are zero, mj_setConst leaves out a part of the step.
_ZERO = (
    *("body_gravcomp", "geom_surfacevel", "geom_adhesion", "pair_adhesion", "geom_margin"),
    *("geom_gap", "jnt_stiffness", "dof_damping", "dof_frictionloss", "tendon_stiffness"),
    *("tendon_damping", "actuator_damping"),
)


def _rich(num_envs: int, zero: bool) -> Simulation:
    model = rich_model()
    if zero:
        for field in _ZERO:
            getattr(model, field)[:] = 0
        mujoco.mj_setConst(model, mujoco.MjData(model))
    sim = Simulation(num_envs, SimulationCfg(engine="native", mujoco=None), model, "cpu")
    sim.data.ctrl[:] = torch.tensor([0.3, 0.2, 0.1, 0.5, 0.2])
    sim.data.eq_active[:] = True
    return sim


@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("field", [name for name, f in MODEL_FIELD_TABLE.items() if f.native])
def test_a_fresh_simulation_continues_with_what_follows_from_a_field(field, zero):
    """Move a world with its own value of a field, and step there like plain MuJoCo with it."""
    sim = _rich(2, zero)
    row = write_changed(sim, field, 1)
    sim.recompute_constants(RecomputeLevel.set_const, [1])
    sim.step(3)
    fresh = _rich(2, zero)
    fresh.set_state(sim.get_state([1]), [0])
    before = _rows(fresh).copy()
    fresh.step(20)
    for world, changes in enumerate([{field: row}, {}]):
        expected = step_plain(plain_model(sim, changes), before[world], 20)
        np.testing.assert_array_equal(_rows(fresh)[world], expected)
    assert_same_model(
        fresh._engine.batch.get_model(0),  # type: ignore[attr-defined]
        plain_model(sim, {field: row}),
    )


@pytest.mark.parametrize("field", [name for name, f in MODEL_FIELD_TABLE.items() if f.native == 0])
def test_a_fresh_simulation_continues_with_a_field(field):
    """Move a world with its own value of a field of which nothing follows."""
    sim = _rich(1, zero=True)
    row = write_changed(sim, field, 0)
    sim.step(3)
    fresh = _rich(1, zero=True)
    fresh.set_state(sim.get_state())
    before = _rows(fresh).copy()
    fresh.step(20)
    expected = step_plain(plain_model(sim, {field: row}, set_const=False), before[0], 20)
    np.testing.assert_array_equal(_rows(fresh)[0], expected)


BALL = """<mujoco><worldbody><body pos="0 0 1"><freejoint/><geom size=".1"/></body></worldbody>
</mujoco>"""


def test_gravity_compensation_lasts_in_a_fresh_simulation():
    """Keep a body in place whose weight was not compensated when compiled, and let it fall again.

    Values that were written without recomputing constants have no more effect than before.
    """
    sim, fresh = _make(3, BALL), _make(3, BALL)
    for each in (sim, fresh):
        each.data.qvel[:] = 0
    falling = sim.get_state()
    sim.model.body_gravcomp[:2] = 1.0
    sim.recompute_constants(RecomputeLevel.set_const, [0])
    fresh.set_state(sim.get_state())
    fresh.step(100)
    sim.step(100)
    assert fresh.data.qpos[:, 2].tolist() == pytest.approx([1.0, 0.801838, 0.801838], abs=1e-5)
    np.testing.assert_array_equal(_rows(fresh), _rows(sim))
    fresh.set_state(falling)
    fresh.step(100)
    assert fresh.data.qpos[:, 2].tolist() == pytest.approx([0.801838] * 3, abs=1e-5)
    assert fresh._engine.batch.get_model(0).ngravcomp == 0  # type: ignore[attr-defined]


def test_derived_fields_are_of_the_flags_at_the_last_call():
    """Read a field first after a change of constants: it is of the call before the change."""
    sim = _make(2, BALL)
    sim.model.body_gravcomp[:] = 1.0
    sim.recompute_constants(RecomputeLevel.set_const)
    sim.step()
    sim.model.body_gravcomp[1] = 0.0
    sim.recompute_constants(RecomputeLevel.set_const)
    fresh = _make(2, BALL)
    fresh.set_state(sim.get_state())
    for each in (sim, fresh):
        force = each.data.qfrc_gravcomp[:, 2]
        assert force.tolist() == pytest.approx([41.0913] * 2, abs=1e-3)
        each.step()
        assert each.data.qfrc_gravcomp[:, 2].tolist() == pytest.approx([41.0913, 0.0], abs=1e-3)
