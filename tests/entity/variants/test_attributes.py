"""Attributes of a variant's geoms: in its worlds, or named in an error if one cannot hold."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from tests.entity.variants.props import MESH, add_rock, build, prop, variants
from tests.entity.variants.truth import row_of

# An attribute, two values of it, and the field that holds it.
ATTRIBUTES = {
    "contype": (1, 3, "geom_contype"),
    "conaffinity": (1, 5, "geom_conaffinity"),
    "condim": (3, 6, "geom_condim"),
    "group": (0, 4, "geom_group"),
    "priority": (0, 2, "geom_priority"),
    "friction": ([1, 0.01, 0.001], [0.3, 0.02, 0.002], "geom_friction"),
    "mass": (0.1, 2.0, "body_mass"),
    "density": (300.0, 4000.0, "body_mass"),
    "rgba": ([1, 0, 0, 1], [0, 1, 0, 0.5], "geom_rgba"),
    "solref": ([0.02, 1], [0.05, 0.7], "geom_solref"),
    "solimp": ([0.9, 0.95, 0.001, 0.5, 2], [0.8, 0.9, 0.01, 0.4, 1], "geom_solimp"),
    "margin": (0.0, 0.01, "geom_margin"),
    "gap": (0.0, 0.005, "geom_gap"),
    "solmix": (1.0, 3.0, "geom_solmix"),
    "surfacevel": ([0.1, 0, 0, 0, 0, 0], [0, 0.2, 0.3, 0, 0, 1], "geom_surfacevel"),
    "adhesion": (0.0, 1.5, "geom_adhesion"),
}
ONCE_ON_WARP = {"contype", "conaffinity", "condim", "group", "priority"}
ABSENT_ON_WARP = {"adhesion"}


COMPUTED = ("body_inertia", "dof_invweight0", "body_invweight0", "geom_rbound")


def pair(attribute):
    """Return a prop with two variants that differ in an attribute and in their meshes."""
    one, other, field = ATTRIBUTES[attribute]
    found = {"one": prop(1, **{attribute: one}), "other": prop(2, **{attribute: other})}
    return variants(variants=found), field


@pytest.mark.parametrize("attribute", ATTRIBUTES)
def test_native_worlds_have_what_their_variant_says(attribute):
    """Compare the field, and what follows from it, with independent compiles, bit for bit."""
    cfg, field = pair(attribute)
    scene, sim = build({"object": cfg}, 2)
    element = scene["object"].indexing.geom_ids[0]
    if field.startswith("body"):
        element = scene["object"].indexing.body_ids[0]
    values = []
    for world, name in enumerate(cfg.variants):
        single = build({"object": cfg.of_variant(name)})[1].mj_model
        for check in (field, *COMPUTED):
            np.testing.assert_array_equal(row_of(sim, check, world), getattr(single, check))
        values.append(row_of(sim, field, world)[element])
    assert not np.array_equal(values[0], values[1])
    assert field in sim.per_world_default_fields


@pytest.mark.parametrize("attribute", [a for a in ATTRIBUTES if a not in ONCE_ON_WARP])
def test_warp_worlds_have_what_their_variant_says(attribute):
    """Compare the same with independent compiles, in the single precision of MuJoCo Warp."""
    cfg, field = pair(attribute)
    if attribute in ABSENT_ON_WARP:
        with pytest.raises(ValueError, match=f"differ in {field}, which the warp engine"):
            build({"object": cfg}, 2, "warp")
        return
    _, sim = build({"object": cfg}, 2, "warp")
    for world, name in enumerate(cfg.variants):
        single = build({"object": cfg.of_variant(name)})[1].mj_model
        for check in (field, *COMPUTED):
            value = getattr(sim.model, check)[world].numpy()
            truth = getattr(single, check).astype(np.float32)
            # What MuJoCo computes of the floor and the world is its own.
            own = slice(3, None) if check.startswith("geom") else slice(1, None)
            own = slice(None) if check.startswith("dof") else own
            np.testing.assert_array_equal(value[own], truth[own], err_msg=check)


def painted(seed, rgba):
    """Return a prop with a material of one colour, or with none."""

    def paint(spec):
        if rgba is not None:
            spec.add_material(name="paint", rgba=rgba, shininess=rgba[0])
            spec.geoms[0].material = "paint"

    return prop(seed, paint)


@pytest.mark.parametrize("engine", ["native", "warp"])
def test_materials_are_those_of_the_variant(engine):
    """Compare all that a world's material says with an independent compile."""
    colors = {"no": None, "red": [1, 0, 0, 1], "blue": [0, 0, 1, 0.5]}
    made = {name: painted(i, rgba) for i, (name, rgba) in enumerate(colors.items())}
    cfg = variants(variants=made)
    scene, sim = build({"object": cfg}, 3, engine)
    geom = scene["object"].indexing.geom_ids[0]
    for world, name in enumerate(colors):
        alone = build({"object": cfg.of_variant(name)})[1].mj_model
        ours, theirs = int(sim.model.geom_matid[world, geom]), alone.geom_matid[-1]
        assert (ours < 0) == (theirs < 0) == (colors[name] is None)
        for field in ("mat_rgba", "mat_shininess", "mat_emission") if ours >= 0 else ():
            np.testing.assert_array_equal(
                getattr(sim.mj_model, field)[ours], getattr(alone, field)[theirs]
            )


@pytest.mark.slow_on_warp
@pytest.mark.parametrize("engine", ["native", "warp"])
def test_computed_constants_are_those_of_the_variant(engine):
    """Compare inverse weights of bodies, joints and tendons, and of a motor, with compiles."""

    def corded(seed, density):
        def edit(spec):
            lid = spec.body("prop").add_body(name="lid", pos=[0, 0, 0.1])
            lid.add_joint(name="hinge", axis=[0, 1, 0])
            lid.add_geom(type=MESH, meshname=add_rock(spec, "lid", seed + 5), density=density)
            cord = spec.add_tendon(name="cord")
            cord.wrap_joint("hinge", 2.0)
            spec.add_actuator(name="motor", target="hinge", trntype=mujoco.mjtTrn.mjTRN_JOINT)

        return prop(seed, edit)

    cfg = variants(variants={"one": corded(1, 300.0), "other": corded(2, 4000.0)})
    _, sim = build({"object": cfg}, 2, engine)
    fields = ("dof_invweight0", "body_invweight0", "tendon_invweight0", "actuator_acc0")
    for world, name in enumerate(cfg.variants):
        single = build({"object": cfg.of_variant(name)})[1].mj_model
        for field in fields:
            value, truth = row_of(sim, field, world), getattr(single, field)
            np.testing.assert_array_equal(value, truth.astype(value.dtype), err_msg=field)
    for field in fields:
        assert not np.array_equal(row_of(sim, field, 0), row_of(sim, field, 1)), field


@pytest.mark.parametrize("attribute", sorted(ONCE_ON_WARP))
def test_warp_names_what_it_holds_once(attribute):
    """Refuse variants that differ in what MuJoCo Warp holds once for all worlds."""
    cfg, field = pair(attribute)
    one, other, _ = ATTRIBUTES[attribute]
    with pytest.raises(
        ValueError, match=f"'object' differ in {field}.* {one} for 'one' and {other}"
    ):
        build({"object": cfg}, 2, "warp")


@pytest.mark.slow
def test_warp_needs_meshes_to_leave_geoms_out():
    """Refuse to leave out a primitive, which MuJoCo Warp could only do in all worlds."""
    box = {"type": mujoco.mjtGeom.mjGEOM_BOX, "size": [0.02, 0.02, 0.02]}
    boxed = prop(1, lambda spec: spec.body("prop").add_geom(**box))
    with pytest.raises(ValueError, match=r"differ in geom_(contype|type|conaffinity)"):
        build({"object": variants(variants={"here": boxed, "none": None})}, 2, "warp")
    assert build({"object": variants(variants={"here": boxed, "none": None})}, 2)


def hinged(**joint):
    """Return a prop with a lid on a hinge."""

    def edit(spec):
        body = spec.body("prop").add_body(name="lid", pos=joint.pop("at", [0, 0, 0.1]))
        body.add_joint(**{"name": "hinge", "axis": [0, 1, 0], **joint})
        body.add_geom(type=MESH, meshname=add_rock(spec, "lid", 3))
        body.add_site(name="knob", pos=[0, 0, 0.02])

    return prop(1, edit)


@pytest.mark.parametrize(
    ("one", "other", "field"),
    [
        ({"at": [0, 0, 0.1]}, {"at": [0, 0, 0.2]}, "body_pos"),
        ({"axis": [1, 0, 0]}, {"axis": [0, 1, 0]}, "jnt_axis"),
        ({"range": [-1, 1]}, {"range": [-2, 1]}, "jnt_range"),
        ({"damping": 0.1}, {"damping": 0.3}, "dof_damping"),
        ({"armature": 0.1}, {"armature": 0.3}, "dof_armature"),
        ({"frictionloss": 0.1}, {"frictionloss": 0.2}, "dof_frictionloss"),
        ({"stiffness": 1}, {"stiffness": 3}, "jnt_stiffness"),
        ({"stiffness": 1, "springref": 0.1}, {"stiffness": 1, "springref": 0.3}, "qpos_spring"),
    ],
)
def test_poses_and_joints_follow_the_variant(one, other, field):
    """Let what is no mesh differ, too: it is compiled, compared and kept for each world."""
    cfg = variants(variants={"one": hinged(**one), "other": hinged(**other)})
    again = {"one": hinged(**one), "other": hinged(**other)}
    _, sim = build({"object": cfg}, 2)
    rows = [row_of(sim, field, world) for world in range(2)]
    assert not np.array_equal(rows[0], rows[1])
    for row, make in zip(rows, again.values(), strict=True):
        single = build({"object": variants(variants={"x": make}).of_variant("x")})[1]
        np.testing.assert_array_equal(row, getattr(single.mj_model, field))


def test_limits_that_only_one_variant_has():
    """Keep flags, too: a hinge may be limited in some worlds only."""
    cfg = variants(variants={"one": hinged(range=[-1, 1]), "other": hinged()})
    scene, sim = build({"object": cfg}, 2)
    assert [bool(row_of(sim, "jnt_limited", world)[1]) for world in range(2)] == [True, False]
    limits = scene["object"].data.joint_pos_limits
    np.testing.assert_allclose(limits[0].rad2deg(), [[-1, 1]], rtol=1e-6)
    assert limits[1].isinf().all()
    with pytest.raises(ValueError, match="differ in jnt_limited"):
        other = variants(variants={"one": hinged(range=[-1, 1]), "other": hinged()})
        build({"object": other}, 2, "warp")


def test_a_mesh_kept_by_its_hull_only_in_some_worlds_has_one():
    """Compute hulls for meshes that only rows of worlds refer to."""
    _, sim = build({"object": variants(variants={"a": prop(1), "b": prop(2)})}, 2)
    assert (sim.mj_model.mesh_graphadr >= 0).all()
    assert mujoco.mj_id2name(sim.mj_model, mujoco.mjtObj.mjOBJ_MESH, 1) == "object/b/rock"
