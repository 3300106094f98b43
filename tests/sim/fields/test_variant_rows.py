"""Rows of variants: at build time, after assignments, in saved states, and on both engines."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from mujoco.batch import MODEL_FIELDS

from manyworlds.cli.main import main
from manyworlds.sim import NanGuardCfg, RecomputeLevel
from manyworlds.sim.diagnostics.flight_replay import FlightRecord
from manyworlds.sim.fields.element_rows import VARIANT_DEPENDENT_FIELDS, fields_of, kind_of, kinds
from tests.entity.variants.props import MESH, add_rock, build, floor, prop, variants
from tests.entity.variants.truth import alone, assert_same_fields, assert_same_path
from tests.sim.plain_loop import assert_replays

CAPSULE = mujoco.mjtGeom.mjGEOM_CAPSULE
ROCKS = {f"rock_{i}": prop(i, friction=[0.3 + 0.1 * i, 0.01, 0.001]) for i in range(3)}


def second(count):
    """Return an edit that adds smaller rocks."""

    def edit(spec):
        for i in range(count):
            name = add_rock(spec, f"more_{i}", 10 + i, 0.02)
            spec.body("prop").add_geom(type=MESH, meshname=name, pos=[0.05, 0, 0.02 * i])

    return edit


SIZES = {f"{n} more": prop(n, second(n)) for n in range(3)} | {"none": None}


def test_every_field_that_a_writer_chooses_is_compared():
    """Count the per-world fields of the model that are neither compared, computed nor addresses."""
    compared = {field for kind in kinds() for field in fields_of(kind)}
    computed = set(VARIANT_DEPENDENT_FIELDS) | {"geom_dataid", "geom_matid", "site_matid"}
    computed |= {"tendon_matid"}
    known = {f for f in MODEL_FIELDS if f.split("_")[0] in kinds() or f == "qpos0"}
    rest = known - compared - computed
    ends = ("id", "adr", "num", "plugin", "signature", "sameframe", "history", "user", "0")
    others = {f for f in rest if not f.endswith(ends)}
    assert others == {
        *("body_simple", "body_contype", "body_conaffinity", "body_margin", "dof_length"),
        *("pair_geom1", "pair_geom2"),
    }
    assert {"geom_fluid", "eq_active0", "qpos0", "wrap_prm"} <= compared


def test_assigned_worlds_are_the_new_variant():
    """Swap variants between steps: each world then equals its new variant compiled alone."""
    cfgs = {"object": variants(variants=SIZES)}
    _, sim = build(cfgs, 4)
    sim.step(20)
    sim.assign_variants("object", [3, 0], [1, 2])
    assert sim.world_to_variant["object"].tolist() == [2, 1, 2, 1]
    for world in range(4):
        single = build(alone(cfgs, sim, world))[1].mj_model
        assert_same_fields(sim, world, single)
        assert_same_path(sim, world, single, 200)


def test_assignment_leaves_state_and_other_worlds_alone():
    """Swap the variant of one world in flight: nothing else changes."""
    _, sim = build({"object": variants(variants=ROCKS), "other": variants(variants=ROCKS)}, 6)
    sim.data.qvel[:] = torch.randn(sim.data.qvel.shape)
    sim.step(5)
    before, rows = sim.data.qpos.clone(), sim._engine.model_rows()
    rows = {name: array.copy() for name, array in rows.items()}
    sim.assign_variants("object", torch.tensor([1]), 2)
    assert torch.equal(sim.data.qpos, before)
    others = [0, 2, 3, 4, 5]
    for name, array in sim._engine.model_rows().items():
        np.testing.assert_array_equal(array[others], rows[name][others], err_msg=name)
    assert sim.world_to_variant["other"].tolist() == [0, 1, 2, 0, 1, 2]


def test_what_cannot_be_assigned_is_named():
    """Refuse entities, variants and worlds that there are not."""
    _, sim = build({"object": variants(variants=ROCKS)}, 3)
    for args, message in (
        (("thing", [0], [0]), "'thing' has no variants; those that have: 'object'"),
        (("object", [0], [3]), r"no variant 3: indices must be in \[0, 3\)"),
        (("object", [0, 0], [1, 2]), "unique"),
        (("object", [7], [0]), "out of range"),
        (("object", [0, 1], [1, 2, 0]), r"one for each of 2 worlds, got shape \(3,\)"),
        (("object", [0], [0.5]), "must be one integer .* of float32"),
    ):
        with pytest.raises(ValueError, match=message):
            sim.assign_variants(*args)


def test_defaults_are_those_of_the_variant():
    """Read the default of every field per world; scale a mass, and assign again."""
    _, sim = build({"object": variants(variants=ROCKS)}, 6)
    assert {"body_mass", "body_inertia", "geom_aabb"} < sim.per_world_default_fields
    for field in sim.per_world_default_fields:
        default, rows = sim.get_default_field(field), getattr(sim.model, field)
        assert torch.equal(default, rows), field
    assert sim.get_default_field("geom_margin").shape == (sim.mj_model.ngeom,)
    masses = sim.get_default_field("body_mass").clone()
    sim.model.body_mass[:, 1] *= 1.1
    sim.recompute_constants(RecomputeLevel.set_const)
    assert torch.equal(sim.get_default_field("body_mass"), masses)
    assert torch.allclose(sim.model.body_subtreemass[:, 1], 1.1 * masses[:, 1])
    sim.assign_variants("object", [0, 3], 1)
    assert torch.equal(sim.model.body_mass[[0, 3], 1], masses[[1, 1], 1])
    assert torch.equal(sim.get_default_field("body_mass")[0], masses[1])
    assert sim.default_model_fields["body_mass"].shape == (6, 2)


def _arm(length: float):
    """Return a function that makes an arm of one joint, whose tip has a site and a spring."""

    def make() -> mujoco.MjSpec:
        spec = mujoco.MjSpec()
        body = spec.worldbody.add_body(name="prop", pos=[0, 0, 1])
        body.add_joint(axis=[0, 1, 0], damping=[0.1, 0, 0])
        body.add_geom(name="rod", size=[0.02, length / 2, 0], type=CAPSULE, pos=[length, 0, 0])
        body.add_site(name="tip", pos=[length, 0, 0])
        return spec

    return make


@pytest.mark.parametrize("engine", ["native", "warp"])
def test_derived_fields_are_of_the_variant_from_the_start(engine):
    """Read them right after construction, and compare with mj_forward of each variant alone."""
    arms = {f"{i}": _arm(0.1 * i) for i in (1, 2, 3)}
    cfgs = {"object": variants(variants=arms)}
    _, sim = build(cfgs, 3, engine)
    fields = ("site_xpos", "geom_xpos", "xipos", "cinert", "qfrc_bias", "qacc", "subtree_com")
    for world in range(3):
        data = build(alone(cfgs, sim, world))[1].mj_data
        for field in fields:
            shown, truth = getattr(sim.data, field)[world].numpy(), getattr(data, field)
            error = 0.0 if engine == "native" else 1e-5
            np.testing.assert_allclose(
                shown, truth.astype(np.float32), rtol=error, atol=error, err_msg=field
            )


@pytest.mark.slow_on_warp
@pytest.mark.parametrize("engine", ["native", "warp"])
def test_the_default_mass_of_a_world_is_that_of_all_in_it(engine):
    """Add up the variants of two entities, also after one world holds another."""
    cfgs = {"object": variants(variants=ROCKS), "other": variants(variants=SIZES)}
    _, sim = build(cfgs, 4, engine)
    sim.assign_variants("object", [1], [0])
    default = sim.get_default_field("body_subtreemass")
    torch.testing.assert_close(default[:, 0], sim.model.body_subtreemass[:, 0], rtol=1e-6, atol=0)
    assert len(default[:, 0].unique()) == 3  # an absent object keeps its mass, and hovers
    if engine == "native":
        assert torch.equal(default, sim.model.body_subtreemass)


def test_saved_states_know_the_variant():
    """Put the state of one world into another, and go on with its variant."""
    cfg = variants(variants=ROCKS)
    _, sim = build({"object": cfg}, 3)
    sim.step(50)
    state = sim.get_state([2])
    sim.set_state(state, [0])
    assert sim.world_to_variant["object"].tolist() == [2, 1, 2]
    sim.step(100)
    assert torch.equal(sim.data.qpos[0], sim.data.qpos[2])
    whole = sim.state_dict()
    _, again = build({"object": cfg}, 3)
    again.load_state_dict(whole)
    assert again.world_to_variant["object"].tolist() == [2, 1, 2]
    assert torch.equal(again.get_default_field("body_mass"), sim.get_default_field("body_mass"))


def test_states_after_assignments_are_whole():
    """Continue bit for bit, elsewhere, from worlds that were assigned again and randomized."""
    cfg = {"object": variants(variants=SIZES)}
    sim, other = build(cfg, 6)[1], build(cfg, 6)[1]
    for each in (sim, other):
        each.data.qpos[:] = torch.from_numpy(each.mj_model.key("init_state").qpos).float()
    sim.step(40)
    sim.assign_variants("object", [0, 5], [2, 0])
    sim.model.geom_friction[:] *= 0.7
    sim.model.body_mass[2:, 1] *= 1.3
    sim.recompute_constants(RecomputeLevel.set_const, [2, 3, 4, 5])
    sim.step(40)
    saved = sim.get_state()
    other.step(7)
    other.assign_variants("object", [1, 2], [0, 0])
    other.set_state(saved)
    assert other.world_to_variant["object"].tolist() == [2, 1, 2, 3, 0, 0]
    for name, rows in sim._engine.model_rows().items():
        np.testing.assert_array_equal(other._engine.model_rows()[name], rows, err_msg=name)
    for each in (sim, other):
        each.assign_variants("object", [4], [1])
        each.step(100)
    assert torch.equal(other.get_state()["state"], sim.get_state()["state"])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"variant.object": torch.tensor([0, 1, 4])}, r"no variant 4: indices must be in \[0, 4\)"),
        (
            {"variant.object": torch.tensor([0, 1])},
            r"'variant.object' of shape \(2,\) .* needs \(3,",
        ),
        ({"state": torch.zeros(3, 2)}, r"state has shape \(3, 2\)"),
    ],
)
def test_a_state_that_does_not_fit_leaves_the_variants(bad, message):
    """Refuse it before any world takes a variant from it."""
    sim = build({"object": variants(variants=SIZES)}, 3)[1]
    saved = sim.get_state()
    sim.assign_variants("object", None, 1)
    with pytest.raises(ValueError, match=message):
        sim.set_state({**saved, **bad})
    assert sim.world_to_variant["object"].tolist() == [1, 1, 1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*worlds failed:RuntimeWarning")
def test_worlds_of_variants_are_replayed(tmp_path, capsys):
    """Replay worlds, some of another variant on the way, bit for bit; say which was when."""
    guard = NanGuardCfg(enabled=True, buffer_size=130, output_dir=str(tmp_path))
    sim = build({"object": variants(variants=SIZES)}, 4, nan_guard=guard)[1]
    sim.data.qpos[:] = torch.from_numpy(sim.mj_model.key("init_state").qpos).float()
    ncon, touched = sim.data.ncon, torch.zeros(4)
    for step in range(140):
        if step == 60:
            sim.assign_variants("object", [0, 3], [2, 1])
        if step == 100:
            sim.model.body_mass[2, 1] *= 1.5
            sim.recompute_constants(RecomputeLevel.set_const, [2])
        sim.step()
        touched += ncon > 0
    assert (touched[:3] > 20).all() and touched[3] > 0
    sim.data.qvel[:, 0] = torch.nan
    sim.step()
    assert sim.nan_guard is not None
    (path,) = sim.nan_guard.files
    record = FlightRecord.load(path)
    for world in range(4):
        assert assert_replays(record, world) == 128
    assert main(["replay-dump", str(path)]) == 0
    notes = [line for line in capsys.readouterr().out.splitlines() if "object" in line]
    assert notes[1::2] == [
        "  note: object was '0 more', from step call 60 on '2 more'",
        "  note: object was '1 more'",
        "  note: object was '2 more'",
        "  note: object was 'none', from step call 60 on '1 more'",
    ]


def test_absent_geoms_are_not_seen():
    """Cast rays and draw where a variant has no geom."""
    _, sim = build({"object": variants(variants={"here": prop(1), "none": None})}, 2)
    key = torch.from_numpy(sim.mj_model.key("init_state").qpos).float()
    sim.data.qpos[:] = key
    sim.forward()
    down = torch.tensor([[0.0, 0.0, -1.0]])
    rays = sim.ray(torch.tensor([[0.0, 0.0, 1.0]]), down)
    assert rays.dist[0, 0] < 0.95 and abs(rays.dist[1, 0] - 1.0) < 1e-5
    contacts = sim.contacts()
    assert (contacts.world != 1).all()
    seen, everything = [], mujoco.mjtCatBit.mjCAT_ALL
    for model, data in sim.world_copies():
        mujoco.mj_forward(model, data)
        drawn = mujoco.MjvScene(model, 100)
        options, camera = mujoco.MjvOption(), mujoco.MjvCamera()
        mujoco.mjv_updateScene(model, data, options, None, camera, everything, drawn)
        seen.append({geom.objid for geom in drawn.geoms[: drawn.ngeom] if geom.rgba[3] > 0})
    shell = sim.mj_model.geom("object/shell").id
    assert shell in seen[0] and shell not in seen[1]


@pytest.mark.parametrize("engine", ["native", "warp"])
def test_writes_do_not_touch_what_a_world_lacks(engine):
    """Write every field of all elements: absent ones keep their values, the others the written."""
    cfgs = {"object": variants(variants=SIZES), "other": variants(variants=ROCKS)}
    _, sim = build(cfgs, 8, engine)
    key = torch.from_numpy(sim.mj_model.key("init_state").qpos).float()
    sim.data.qpos[:] = key
    sim.forward()
    fields = sorted(_possible(sim))
    before: dict[str, torch.Tensor] = {}
    sim.expand_model_fields(tuple(fields))
    for field in fields:
        rows = getattr(sim.model, field)
        before[field] = rows.clone()
        rows += 0.1
    sim.restore_absent()
    shells = [i for i in range(sim.mj_model.ngeom) if "object/" in sim.mj_model.geom(i).name]
    bodies = [sim.mj_model.body("object/prop").id]
    assert len(shells) == 3
    for field in fields:
        rows, old = getattr(sim.model, field), before[field]
        for world in range(8):
            variant = world % 4
            lacking = shells[variant + 1 :] if variant < 3 else shells
            gone = {"geom": lacking, "body": bodies if variant == 3 else []}.get(kind_of(field))
            if gone is None:
                continue
            there = [i for i in range(rows.shape[1]) if i not in gone]
            assert torch.equal(rows[world, gone], old[world, gone]), field
            assert torch.equal(rows[world, there], old[world, there] + 0.1), field


def _possible(sim):
    """Return the fields with real numbers that the engine can hold for each world."""
    return {
        field
        for kind in kinds()
        for field in fields_of(kind)
        if sim._engine.expansion_problem(field) is None
        and sim._engine.defaults[field].dtype.kind == "f"
    } - {"geom_aabb", "geom_rbound"}


@pytest.mark.parametrize("engine", ["native", "warp"])
def test_colors_do_not_show_absent_geoms(engine):
    """Color and texture all geoms, and scale gravity compensation, where an object is absent."""
    _, sim = build({"object": variants(variants={"here": prop(1), "none": None})}, 2, engine)
    sim.data.qpos[:] = torch.from_numpy(sim.mj_model.key("init_state").qpos).float()
    sim.model.geom_rgba[:] = 0.7
    sim.model.body_gravcomp[:] = 0.0
    sim.recompute_constants(RecomputeLevel.set_const)
    down = torch.tensor([[0.0, 0.0, -1.0]])
    sim.forward()
    rays = sim.ray(torch.tensor([[0.0, 0.0, 1.0]]), down)
    assert rays.dist[0, 0] < 0.95 and abs(rays.dist[1, 0] - 1.0) < 1e-5
    height = sim.data.qpos[1, 2].item()
    sim.step(20)
    assert sim.data.qpos[1, 2].item() == pytest.approx(height, abs=1e-6)
    assert sim.data.qpos[0, 2].item() < height - 1e-3
    sim.assign_variants("object", [0, 1], [1, 0])
    sim.model.geom_rgba[:] = 0.4
    saved = sim.get_state()
    shell = sim.mj_model.geom("object/shell").id
    assert torch.equal(sim.model.geom_rgba[:, shell, 3], torch.tensor([0.0, 0.4]))
    saved["model.geom_rgba"][:] = 0.9
    sim.set_state(saved)
    sim.forward()
    assert torch.equal(sim.model.geom_rgba[:, shell, 3], torch.tensor([0.0, 0.9]))


@pytest.mark.parametrize("shape", ["ball", "rock"])
def test_pairs_cannot_touch_what_is_not_there(shape):
    """Refuse a contact pair, which ignores contype, of a geom that one variant lacks."""

    def ball():
        spec = mujoco.MjSpec()
        body = spec.worldbody.add_body(name="prop")
        body.add_freejoint()
        body.add_geom(name="shell", size=[0.05, 0, 0])
        return spec

    def paired(spec):
        floor(spec)
        spec.add_pair(name="rub", geomname1="floor", geomname2="object/shell")

    made = {"here": ball if shape == "ball" else prop(1), "none": None}
    message = "'rub' lets geom 'object/shell' collide in all worlds, but variant 'none' of entity"
    with pytest.raises(ValueError, match=message):
        build({"object": variants(variants=made)}, 2, spec_fn=paired)
    there = variants(variants={"here": made["here"], "other": prop(2)})
    build({"object": there}, 2, spec_fn=paired)


def test_both_engines_hold_the_same_rows():
    """Compare defaults, rows and a fall on MuJoCo Warp with those of the native engine."""
    cfgs = {"object": variants(variants=SIZES)}
    _, native = build(cfgs, 8)
    _, warp = build(cfgs, 8, "warp")
    assert native.per_world_default_fields - warp.per_world_default_fields == {
        *("geom_contype", "geom_conaffinity")
    }
    for worlds, chosen in (([], []), ([0, 3, 7], [2, 1, 0])):
        for sim in (native, warp):
            sim.assign_variants("object", worlds, chosen)
        for field in warp.per_world_default_fields:
            ours, theirs = (getattr(sim.model, field) for sim in (native, warp))
            own = slice(3, None) if field.startswith("geom") else slice(1, None)
            assert torch.equal(ours[:, own], theirs[:, own]), field
            defaults = [sim.get_default_field(field)[:, own] for sim in (native, warp)]
            assert torch.equal(*defaults), field
    start = torch.from_numpy(native.mj_model.key("init_state").qpos).float()
    for sim in (native, warp):
        sim.data.qpos[:] = start
        sim.step(100)
    assert torch.allclose(native.data.qpos, warp.data.qpos, atol=2e-4)
