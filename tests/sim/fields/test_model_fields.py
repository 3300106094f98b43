"""The table of model fields: each row's claim, tested on both engines."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch
from mujoco.batch import MODEL_FIELDS

from manyworlds.sim import RecomputeLevel, Simulation, SimulationCfg
from manyworlds.sim.fields.model_fields import MODEL_FIELD_TABLE, recompute_level
from manyworlds.sim.fields.shared import field_shape
from tests.sim.rich_scene import (
    LAYOUT_FIELDS,
    assert_same_model,
    plain_model,
    rich_model,
    state_rows,
    step_plain,
    view_field,
    write_changed,
)
from tools.write_field_table import PAGE, render

NATIVE = [field for field in MODEL_FIELD_TABLE.values() if field.native is not None]
WARP = [field for field in MODEL_FIELD_TABLE.values() if field.warp is not None]

# Of these the table says that tendons and actuators which pass there need a stronger level.
AT_TENDONS = ("site_pos", "site_quat", "geom_pos", "geom_quat", "geom_size")
FIXED_OUTPUTS = ("body_subtreemass", "geom_aabb", "geom_rbound")


@pytest.fixture(scope="module")
def native() -> tuple[Simulation, list[np.ndarray], list[mujoco.MjModel]]:
    """Return a simulation with one world a field, changed and recomputed as its row says."""
    cfg = SimulationCfg(engine="native", mujoco=None)
    sim = Simulation(len(NATIVE), cfg, rich_model(), "cpu")
    sim.data.ctrl[:] = torch.tensor([0.3, 0.2, 0.1, 0.5, 0.2])
    sim.data.eq_active[:] = True
    rows = [write_changed(sim, field.name, world) for world, field in enumerate(NATIVE)]
    named = [world for world, field in enumerate(NATIVE) if field.native]
    sim.recompute_constants(RecomputeLevel.set_const_fixed, named)
    models = [
        plain_model(sim, {field.name: row}, set_const=not field.derived or bool(field.native))
        for field, row in zip(NATIVE, rows, strict=True)
    ]
    return sim, rows, models


@pytest.mark.slow
def test_rows_on_native_equal_set_const_of_a_copy(native):
    """Follow the row of each field and have every field of the model as mj_setConst has it."""
    sim, rows, models = native
    unchanged = set()
    for world, field in enumerate(NATIVE):
        if np.array_equal(rows[world], sim._engine.defaults[field.name]):
            unchanged.add(field.name)
        assert_same_model(sim._engine.batch.get_model(world), models[world])
    assert unchanged <= {*LAYOUT_FIELDS, "opt.sleep_tolerance"}


def test_rows_on_native_step_bit_for_bit(native):
    """Follow the row of each field and step as the changed copy does."""
    sim, _, models = native
    before = state_rows(sim).copy()
    sim.step(20)
    moved = 0
    for world, field in enumerate(NATIVE):
        expected = step_plain(models[world], before[world], 20)
        np.testing.assert_array_equal(state_rows(sim)[world], expected, err_msg=field.name)
        moved += not np.array_equal(expected, step_plain(sim.mj_model, before[world], 20))
    assert moved > 50, "the scene must be one in which most fields matter"


def test_native_levels_are_those_that_mujoco_names():
    """Recompute on native for exactly the fields that MuJoCo says mj_setConst reads."""
    inputs = set(mujoco.MjModel._setconst_inputs)
    for field in NATIVE:
        assert (field.native == RecomputeLevel.set_const) == (field.name in inputs), field.name


@pytest.fixture
def warp(monkeypatch) -> Simulation:
    """Return a simulation on Warp with one world a field."""
    pytest.importorskip("mujoco_warp")
    import warp as wp

    monkeypatch.setattr(wp.config, "optimization_level", 0)
    cfg = SimulationCfg(engine="warp", mujoco=None)
    return Simulation(len(WARP), cfg, rich_model(), "cpu")


@pytest.mark.slow
def test_rows_on_warp_match_set_const_of_a_copy(warp):
    """Follow the row of each field and have what MuJoCo Warp derives as mj_setConst has it."""
    rows = [write_changed(warp, field.name, world) for world, field in enumerate(WARP)]
    for level in list(RecomputeLevel)[1:]:
        worlds = [world for world, field in enumerate(WARP) if field.warp == level]
        warp.recompute_constants(level, worlds)
    derived = [field.name for field in WARP if field.derived]
    for world, field in enumerate(WARP):
        if field.derived or field.name == "opt.impratio_invsqrt":
            continue
        plain = plain_model(warp, {field.name: rows[world]})
        for name in FIXED_OUTPUTS if field.name in AT_TENDONS else derived:
            expected = getattr(plain, name).ravel()
            error = np.abs(view_field(warp, name)[world].numpy().ravel() - expected)
            bound = 2e-5 * np.abs(expected).clip(1e-3)
            assert (error <= bound).all(), f"{name} after a change of {field.name}"


def test_table_lists_what_warp_holds_per_world():
    """List exactly the fields that MuJoCo Warp annotates with a dimension for worlds."""
    pytest.importorskip("mujoco_warp")
    from mujoco_warp import Model, Option

    expected = {}
    for struct, prefix in ((Model, ""), (Option, "opt.")):
        for field in dataclasses.fields(struct):
            shape = getattr(field.type, "shape", ())
            if shape and shape[0] == "*":
                values = tuple(getattr(field.type.dtype, "_shape_", ()))
                expected[prefix + field.name] = (*shape[2:], *values)
    assert {field.name: field.shape for field in WARP} == expected


def test_shapes_and_engines_are_those_of_mujoco():
    """Give each field the shape of one element, and to native what MuJoCo's batch can hold."""
    model = rich_model()
    for field in MODEL_FIELD_TABLE.values():
        assert (field.native is not None) == (field.name in MODEL_FIELDS), field.name
        if field.native is None:
            continue
        owner = model.opt if field.element == "option" else model
        value = np.asarray(getattr(owner, field.name.removeprefix("opt.")))
        elements = 0 if field.element == "option" else 1
        assert field_shape(field.name, value.shape)[elements:] == field.shape, field.name


def test_page_is_up_to_date():
    """Keep the page in step with the table."""
    page = Path(__file__).parents[3] / PAGE
    assert page.read_text() == render(), "run `python tools/write_field_table.py`"


def test_strongest_level_counts():
    """Take the strongest of several fields' levels, per engine."""
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    fields = {"geom_friction", "dof_armature", "geom_size", "nobody_knows"}
    assert recompute_level(fields, "warp", model) == RecomputeLevel.set_const_0
    assert recompute_level(fields, "native", model) == RecomputeLevel.set_const
    assert recompute_level({"geom_friction"}, "native", model) == RecomputeLevel.none
    assert recompute_level(set(), "warp", model) == RecomputeLevel.none


@pytest.mark.parametrize("field", AT_TENDONS)
def test_what_passes_at_geoms_and_sites_counts(field):
    """Ask for what depends on tendons and on actuators at sites where there are any."""
    plain = mujoco.MjModel.from_xml_string("<mujoco/>")
    assert recompute_level({field}, "warp", plain) < RecomputeLevel.set_const_0
    body = "<body><joint name='j'/><geom size='1'/><site name='s'/></body><site name='t'/>"
    for rest in (
        "<tendon><spatial><site site='s'/><site site='t'/></spatial></tendon>",
        "<actuator><general site='s'/></actuator>",
    ):
        model = mujoco.MjModel.from_xml_string(
            f"<mujoco><worldbody>{body}</worldbody>{rest}</mujoco>"
        )
        assert recompute_level({field}, "warp", model) == RecomputeLevel.set_const_0
    fixed = "<tendon><fixed><joint joint='j' coef='1'/></fixed></tendon>"
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{body}</worldbody>{fixed}</mujoco>")
    assert recompute_level({field}, "warp", model) < RecomputeLevel.set_const_0
