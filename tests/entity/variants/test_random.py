"""Variants drawn at random, compared with independent compiles."""

from __future__ import annotations

from typing import Any

import mujoco
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.entity.variants.props import MESH, add_rock, build, variants
from tests.entity.variants.truth import alone, assert_same_fields, assert_same_path

KINDS = {
    MESH: [],
    mujoco.mjtGeom.mjGEOM_BOX: [0.02, 0.03, 0.01],
    mujoco.mjtGeom.mjGEOM_SPHERE: [0.02, 0, 0],
    mujoco.mjtGeom.mjGEOM_CAPSULE: [0.01, 0.03, 0],
    mujoco.mjtGeom.mjGEOM_ELLIPSOID: [0.01, 0.02, 0.03],
}
GEOMS = st.fixed_dictionaries(
    {
        "type": st.sampled_from([*3 * [MESH], *KINDS]),
        "visual": st.booleans(),
        "seed": st.integers(0, 99),
        "place": st.integers(0, 1),
    },
    optional={
        "condim": st.sampled_from([1, 3, 4, 6]),
        "priority": st.integers(0, 2),
        "group": st.integers(0, 5),
        "friction": st.sampled_from([[0.3, 0.01, 0.001], [1.0, 0.02, 0.002]]),
        "density": st.sampled_from([200.0, 3000.0]),
        "solref": st.sampled_from([[0.02, 1.0], [0.04, 0.8]]),
        "margin": st.sampled_from([0.0, 0.005]),
        "gap": st.sampled_from([0.0, 0.002]),
        "rgba": st.sampled_from([[1, 0, 0, 1], [0, 0, 1, 0.5]]),
        "mass": st.sampled_from([0.05, 0.3]),
    },
)
VARIANTS = st.lists(st.lists(GEOMS, max_size=4), min_size=2, max_size=4)


def spec_of(geoms: list[dict[str, Any]]) -> mujoco.MjSpec:
    """Build a prop with a lid; both have a small sphere, so that they weigh something."""
    spec = mujoco.MjSpec()
    body = spec.worldbody.add_body(name="prop")
    body.add_freejoint()
    lid = body.add_body(name="lid", pos=[0, 0, 0.05])
    lid.add_joint(name="hinge", axis=[0, 1, 0])
    for each in (body, lid):
        each.add_geom(name=f"{each.name}_core", size=[0.02, 0, 0])
    for i, geom in enumerate(geoms):
        kwargs = {k: v for k, v in geom.items() if k not in ("visual", "seed", "place")}
        if geom["type"] == MESH:
            kwargs["meshname"] = add_rock(spec, f"rock_{i}", geom["seed"], 0.03)
        else:
            kwargs["size"] = KINDS[geom["type"]]
        if geom["visual"]:
            kwargs |= {"contype": 0, "conaffinity": 0}
        (body, lid)[geom["place"]].add_geom(pos=[0.01 * i, 0.02, 0], **kwargs)
    return spec


@pytest.mark.slow
@settings(max_examples=15)
@given(VARIANTS)
def test_random_variants_are_exact(drawn):
    """Compare fields and paths of every variant with its compile alone, bit for bit."""
    specs = {f"v{i}": (lambda geoms=geoms: spec_of(geoms)) for i, geoms in enumerate(drawn)}
    cfgs = {"object": variants(variants=specs)}
    _, sim = build(cfgs, len(drawn))
    for world in range(len(drawn)):
        single = build(alone(cfgs, sim, world))[1].mj_model
        assert_same_fields(sim, world, single)
        assert_same_path(sim, world, single, 60, least=0)
