"""World W is its variant compiled alone in the same scene, bit for bit."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from manyworlds.entity import EntityCfg
from tests.entity.variants.props import MESH, add_rock, prop, variants
from tests.entity.variants.truth import assert_exact

BOX, SPHERE = mujoco.mjtGeom.mjGEOM_BOX, mujoco.mjtGeom.mjGEOM_SPHERE
CAPSULE = mujoco.mjtGeom.mjGEOM_CAPSULE


def rocks(count, seed, **geom):
    """Return an edit that adds meshes around the prop's own."""

    def edit(spec):
        for i in range(count):
            name = add_rock(spec, f"rock_{i}", seed + i, 0.03)
            pos = [0.03 * i, 0.02, -0.02]
            spec.body("prop").add_geom(type=MESH, meshname=name, pos=pos, **geom)

    return edit


def primitive(kind, size, pos=(0, 0, 0), **geom):
    """Return an edit that adds a primitive."""
    size = [*size, *[0] * (3 - len(size))]
    return lambda spec: spec.body("prop").add_geom(type=kind, size=size, pos=pos, **geom)


def lid(x, limit=1.0, **geom):
    """Return an edit that hinges a lid to the prop."""

    def edit(spec):
        body = spec.body("prop").add_body(name="lid", pos=[x, 0, 0.05])
        body.add_joint(
            name="hinge", axis=[0, 1, 0], range=[-limit, limit], limited=1, damping=x / 100
        )
        body.add_geom(type=MESH, meshname=add_rock(spec, "lid", 5, 0.04), **geom)
        body.add_geom(type=SPHERE, size=[x / 2, 0, 0])
        body.add_site(name="handle", pos=[0, 0, x])
        spec.add_actuator(name="motor", target="hinge", trntype=mujoco.mjtTrn.mjTRN_JOINT)

    return edit


def all_of(*edits):
    """Return an edit that makes several."""
    return lambda spec: [edit(spec) for edit in edits]


CASES = {
    "one mesh each": {"a": prop(1), "b": prop(2)},
    "more or fewer geoms": {
        "a": prop(1, rocks(1, 10)),
        "b": prop(2, rocks(3, 20)),
        "c": prop(3, rocks(2, 30, contype=0, conaffinity=0)),
    },
    "meshes on both sides of a box": {
        "a": prop(1, all_of(primitive(BOX, [0.02] * 3, [0.05, 0, 0]), rocks(2, 3))),
        "b": prop(2, all_of(rocks(1, 7), primitive(BOX, [0.02, 0.01, 0.04], [-0.05, 0, 0]))),
    },
    "a lid": {
        "a": prop(1, lid(0.03)),
        "b": prop(2, lid(0.05, 0.3, mass=0.2)),
    },
    "primitives instead of meshes": {
        "rock": prop(1),
        "box": prop(2, lambda s: _replace(s, primitive(BOX, [0.03, 0.02, 0.05]))),
        "capsule": prop(2, lambda s: _replace(s, primitive(CAPSULE, [0.03, 0.04], density=500))),
        "both": prop(2, primitive(SPHERE, [0.04], [0.05, 0, 0])),
    },
}


def _replace(spec, edit):
    for geom in list(spec.geoms):
        spec.delete(geom)
    edit(spec)


@pytest.mark.parametrize("name", CASES)
def test_worlds_are_their_variants(name):
    """Compare fields and 300 steps of each world with its variant compiled alone."""
    assert_exact({"prop": variants(variants=CASES[name])}, 2 * len(CASES[name]))


def test_meshes_that_are_made_of_points():
    """Take meshes without faces, which are those of their hull, and one whose inertia is."""

    def shape(make):
        return prop(1, lambda spec: make(spec.meshes[0]))

    def cone(mesh):
        mesh.userface = []
        mesh.make_cone(nedge=16, radius=0.02)
        mesh.scale[2] = 0.05

    def convex(mesh):
        mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX

    found = {"cone": shape(cone), "rock": prop(1), "convex": shape(convex)}
    assert_exact({"prop": variants(variants=found)}, 3)


@pytest.mark.parametrize("source", ["numbers", "obj", "msh"])
def test_clouds_of_points(source, tmp_path):
    """Give meshes as points alone, in a spec or in files: their hull is what they are."""

    def cloud(seed):
        points = 0.05 * np.random.default_rng(seed).normal(size=(20, 3)).astype(np.float32)
        file = tmp_path / f"{seed}.{source}"
        if source == "obj":
            file.write_text("".join(f"v {x} {y} {z}\n" for x, y, z in points.tolist()))
        elif source == "msh":
            file.write_bytes(np.array([20, 0, 0, 0], np.int32).tobytes() + points.tobytes())
        given = {"uservert": points.ravel()} if source == "numbers" else {"file": str(file)}

        def make():
            spec = mujoco.MjSpec()
            body = spec.worldbody.add_body(name="prop")
            body.add_freejoint()
            spec.add_mesh(name="cloud", **given)
            body.add_geom(name="shell", type=MESH, meshname="cloud")
            return spec

        return make

    found = {"rock": prop(1), **{f"cloud {i}": cloud(i) for i in range(3)}}
    assert_exact({"prop": variants(variants=found)}, 4)


def test_what_is_not_there_reaches_no_further():
    """Forget the margin and gap of a geom that a variant lacks, which its body would inherit."""
    ball = primitive(SPHERE, [0.02], [0.05, 0, 0], gap=0.002, margin=0.003)
    _, sim = assert_exact({"prop": variants(variants={"a": prop(1), "b": prop(1, ball)})}, 2)
    assert "body_margin" in sim.expanded_fields


def test_objects_without_geoms():
    """Tell objects apart that have nothing but a mass."""

    def point(mass):
        def make():
            spec = mujoco.MjSpec()
            body = spec.worldbody.add_body(name="prop", explicitinertial=1)
            body.mass, body.inertia = mass, [1e-4] * 3
            body.add_freejoint()
            return spec

        return make

    found = variants(variants={"light": point(0.1), "heavy": point(2.0)})
    above = EntityCfg.InitialStateCfg(pos=(0.0, 0.02, 0.3))
    cfgs = {"prop": found, "rock": variants(variants={"a": prop(1)}, init_state=above)}
    _, sim = assert_exact(cfgs, 2)
    assert sim.model.body_mass[:, 1].tolist() == np.float32([0.1, 2.0]).tolist()


def test_two_entities_with_variants():
    """Combine variants of two props that bump into each other."""
    above = EntityCfg.InitialStateCfg(pos=(0.0, 0.02, 0.3))
    cfgs = {
        "lower": variants(variants=CASES["a lid"]),
        "upper": variants(variants=CASES["more or fewer geoms"], init_state=above),
    }
    assert_exact(cfgs, 6)


def test_absent_objects_are_as_if_they_were_not_there():
    """Leave one of two props out of some worlds: the other moves as in a scene without it."""
    above = EntityCfg.InitialStateCfg(pos=(0.0, 0.02, 0.3))
    absent = {**CASES["a lid"], "none": None}
    cfgs = {"upper": variants(variants={"a": prop(1), "b": prop(2)}, init_state=above)}
    cfgs["lower"] = variants(variants=absent)
    _, sim = assert_exact(cfgs, 6)
    sim.reset()
    sim.step(100)
    assert sim.data.qvel[[2, 5], 6:].abs().max() < 1e-12


def test_fixed_bases():
    """Give worlds different fixed obstacles, which a prop falls on."""

    def table(seed, size):
        def make():
            spec = mujoco.MjSpec()
            body = spec.worldbody.add_body(name="table", pos=[0, 0, 0.02])
            body.add_geom(type=MESH, meshname=add_rock(spec, "top", seed, size))
            leg = body.add_body(name="leg", pos=[0, 0, -size])
            leg.add_geom(type=BOX, size=[0.01, 0.01, size])
            return spec

        return make

    tables = variants(
        variants={"low": table(1, 0.04), "high": table(2, 0.08)}, init_state=EntityCfg().init_state
    )
    above = EntityCfg.InitialStateCfg(pos=(0.0, 0.02, 0.3))
    _, sim = assert_exact(
        {"prop": variants(variants={"a": prop(1)}, init_state=above), "table": tables}, 4
    )
    assert sim.mj_model.nmocap == 1
