"""One spec for all variants: slots, names, assets."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from manyworlds.entity import EntityCfg, VariantEntityCfg
from manyworlds.entity.variants import SlotKey, build_merged_variant_spec
from manyworlds.spec.config import CollisionCfg
from tests.entity.variants.props import MESH, add_rock, build, prop, variants
from tests.entity.variants.truth import assert_exact

BOX = mujoco.mjtGeom.mjGEOM_BOX


def hulls(name: str, count: int):
    """Return a function that makes a prop of one visual mesh and some that collide."""

    def make():
        spec = mujoco.MjSpec()
        body = spec.worldbody.add_body(name="prop")
        body.add_freejoint()
        for i, part in enumerate(["vis", *(f"col_{i}" for i in range(count))]):
            mesh = add_rock(spec, f"{name}_{part}", i)
            role = {"contype": 0, "conaffinity": 0, "mass": 0.0} if part == "vis" else {}
            body.add_geom(name=mesh, type=MESH, meshname=mesh, **role)
        return spec

    return make


def test_slots_cover_the_most_geoms_of_any_variant():
    """Lay out the example of a sphere with two and a cone with four geoms that collide."""
    cfg = variants(variants={"sphere": hulls("sphere", 2), "cone": hulls("cone", 4)})
    spec, metadata = build_merged_variant_spec(cfg)
    assert [slot.key for slot in metadata.slots] == [
        SlotKey("/prop", "visual", 0),
        *(SlotKey("/prop", "collision", i) for i in range(4)),
    ]
    assert [slot.source_geom_names for slot in metadata.slots][1:4:2] == [
        ("sphere_col_0", "cone_col_0"),
        (None, "cone_col_2"),
    ]
    assert metadata.slots[3].template_geom_name == "manyworlds/pad/prop/collision/2"
    assert metadata.num_mesh_geoms == 5
    assert metadata.variant_mesh_names[0][:2] == ("sphere_vis", "sphere_col_0")
    assert metadata.variant_mesh_names[0][3:] == (None, None)
    visual = metadata.variant_slot_specs[1][0]
    assert visual is not None and visual.contype == 0
    names = {mesh.name for mesh in spec.meshes}
    assert {"sphere/sphere_vis", "cone/cone_col_3"} <= names and len(names) == 8


def test_padding_weighs_nothing():
    """Compile the merged spec by itself: it weighs what its first variant weighs."""
    cfg = variants(variants={"sphere": hulls("sphere", 2), "cone": hulls("cone", 4)})
    merged, single = cfg.build().compile(), cfg.of_variant("sphere").build().compile()
    assert merged.ngeom == 5 and single.ngeom == 3
    np.testing.assert_array_equal(merged.body_mass, single.body_mass)
    np.testing.assert_array_equal(merged.body_inertia, single.body_inertia)


def test_worlds_look_up_their_meshes():
    """Read geom_dataid: meshes by name, and -1 where a variant has no such geom."""
    cfg = variants(variants={"sphere": hulls("sphere", 2), "cone": hulls("cone", 4)})
    scene, sim = build({"object": cfg}, 2)
    rows = sim.model.geom_dataid[:, scene["object"].indexing.geom_ids].tolist()
    names = [[sim.mj_model.mesh(i).name if i >= 0 else None for i in row] for row in rows]
    cone = [f"object/cone/cone_{part}" for part in ("vis", "col_0", "col_1", "col_2", "col_3")]
    assert names[1] == cone
    assert names[0][2] == "object/sphere/sphere_col_1" and names[0][3:] == [None, None]


def knobs(name, before=0, *, wrapped=False):
    """Return an edit that adds a ball, and what refers to it: a pair, a sensor and a tendon."""

    def edit(spec):
        body, world = spec.body("prop"), mujoco.mjtObj.mjOBJ_GEOM
        for i in range(before):
            body.add_geom(type=MESH, meshname=add_rock(spec, f"more_{i}", i, 0.02))
        body.add_geom(name=name, size=[0.02, 0, 0], pos=[0.05, 0, 0])
        lid = body.add_body(name="lid", pos=[0, 0, 0.1])
        lid.add_joint(name="slide", type=mujoco.mjtJoint.mjJNT_SLIDE, axis=[0, 0, 1])
        lid.add_geom(name="cap", size=[0.03, 0, 0], mass=0.1)
        spec.add_pair(name="touch", geomname1=name, geomname2="cap")
        sensor = spec.add_sensor(name="where", type=mujoco.mjtSensor.mjSENS_FRAMEPOS)
        sensor.objtype, sensor.objname = world, name
        body.add_site(name="near", pos=[0.05, -0.1, 0])
        lid.add_site(name="far", pos=[0.05, 0.1, -0.08])
        if wrapped:
            cord = spec.add_tendon(name="cord", stiffness=20.0)
            cord.wrap_site("near")
            cord.wrap_geom(name, "")
            cord.wrap_site("far")

    return edit


def test_a_name_that_all_variants_use_is_kept():
    """Keep a common name of geoms; name others by their place."""
    ball = {"size": [0.01, 0, 0], "pos": [0.05, 0, 0]}

    def edit(name):
        return lambda spec: spec.body("prop").add_geom(name=name, **ball)

    cfg = variants(variants={"a": prop(1, edit("knob")), "b": prop(2, edit("button"))})
    assert cfg.build().geom_names == ("shell", "manyworlds/pad/prop/collision/1")


@pytest.mark.parametrize("wrapped", [False, True])
def test_what_refers_to_a_geom_finds_it_in_every_variant(wrapped):
    """Let pairs, sensors and tendons refer to geoms of other names and other numbers."""
    found = {"a": prop(1, knobs("knob", wrapped=wrapped))}
    found |= {"b": prop(2, knobs("button", 2, wrapped=wrapped))}
    cfgs = {"object": variants(variants=found)}
    _, sim = assert_exact(cfgs, 2)
    assert sim.mj_model.geom("object/knob").id == sim.mj_model.sensor("object/where").objid[0]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda s: setattr(s.pairs[0], "geomname1", "shell"), "contact pair 'touch'"),
        (lambda s: setattr(s.sensors[0], "objname", "cap"), "sensor 'where'"),
    ],
)
def test_what_refers_to_another_geom_is_refused(other, message):
    """Name the reference that one variant has to another geom, which no row could change."""

    def edit(spec):
        knobs("knob")(spec)
        other(spec)

    cfg = variants(variants={"a": prop(1, knobs("knob")), "b": prop(2, edit)})
    with pytest.raises(ValueError, match=f"'b': its {message} refers to geom .*Hint: let it"):
        cfg.build()


def test_edits_of_the_configuration_reach_every_variant():
    """Set collisions by pattern: each variant's own geoms are meant."""
    cfg = variants(
        variants={"sphere": hulls("sphere", 1), "cone": hulls("cone", 2)},
        collisions=(CollisionCfg(geom_names_expr=(".*_col_.*",), condim=6, friction=(0.7,)),),
    )
    scene, sim = build({"object": cfg}, 2)
    geoms = scene["object"].indexing.geom_ids[1:]
    assert (sim.model.geom_condim[..., geoms] == 6).all()
    assert (sim.model.geom_friction[:, geoms, 0] - 0.7).abs().max() < 1e-6


def test_materials_follow_the_variant():
    """Give each variant a material of its own, or none."""

    def paint(rgba):
        def edit(spec):
            spec.add_material(name="paint", rgba=rgba)
            spec.geoms[0].material = "paint"

        return edit

    red, blue = [1, 0, 0, 1], [0, 0, 1, 1]
    cfg = variants(
        variants={"red": prop(1, paint(red)), "no": prop(2), "blue": prop(3, paint(blue))}
    )
    scene, sim = build({"object": cfg}, 3)
    ids = sim.model.geom_matid[:, scene["object"].indexing.geom_ids[0]].tolist()
    assert ids[1] == -1
    assert [sim.mj_model.mat_rgba[ids[i]].tolist() for i in (0, 2)] == [red, blue]
    assert sim.mj_model.mat(ids[2]).name == "object/blue/paint"


def test_actuators_and_initial_states_work_as_ever():
    """Build an entity whose every variant is fixed, actuated and named the same."""

    def arm(seed):
        def make():
            spec = mujoco.MjSpec()
            link = spec.worldbody.add_body(name="base").add_body(name="link", pos=[0, 0, 0.1])
            link.add_joint(name="elbow", axis=[0, 1, 0], range=[-1, 1])
            link.add_geom(type=MESH, meshname=add_rock(spec, "rock", seed))
            spec.add_actuator(name="motor", target="elbow", trntype=mujoco.mjtTrn.mjTRN_JOINT)
            return spec

        return make

    init = EntityCfg.InitialStateCfg(pos=(1.0, 2.0, 3.0), joint_pos={"elbow": 0.5})
    cfg = variants(variants={"a": arm(1), "b": arm(2)}, init_state=init)
    scene, sim = build({"arm": cfg}, 2)
    arm_ = scene["arm"]
    assert arm_.is_mocap and arm_.num_actuators == 1 and arm_.data.default_joint_pos[1, 0] == 0.5
    acc0 = sim._engine.model_rows()["actuator_acc0"][:, 0]
    for i, name in enumerate("ab"):
        single = build({"arm": cfg.of_variant(name)})[1].mj_model
        assert acc0[i] == single.actuator_acc0[0]
    assert acc0[0] != acc0[1]


def test_a_scene_with_variants_can_be_written(tmp_path):
    """Write a scene and read it again: all meshes are there."""
    scene, sim = build({"object": variants(variants={"a": prop(1), "b": prop(2)})}, 2)
    scene.write(tmp_path / "scene")
    again = mujoco.MjModel.from_xml_path(str(tmp_path / "scene" / "scene.xml"))
    assert again.nmesh == sim.mj_model.nmesh == 2
    np.testing.assert_allclose(again.mesh_vert, sim.mj_model.mesh_vert, atol=1e-6)


def test_files_of_the_same_name_are_told_apart(tmp_path):
    """Load two variants from folders whose files have the same names."""
    import trimesh

    found = {}
    for name, size in (("cup", 0.05), ("jug", 0.07)):
        folder = tmp_path / name
        (folder / "assets").mkdir(parents=True)
        trimesh.creation.icosphere(1, size).export(folder / "assets" / "shape.obj")
        (folder / "prop.xml").write_text(
            "<mujoco><compiler meshdir='assets'/><asset><mesh file='shape.obj'/></asset>"
            "<worldbody><body><freejoint/><geom type='mesh' mesh='shape'/></body></worldbody>"
            "</mujoco>"
        )
        found[name] = lambda path=folder / "prop.xml": mujoco.MjSpec.from_file(str(path))
    scene, sim = assert_exact({"object": variants(variants=found)}, 2)
    assert sim.model.geom_rbound[1, -1] > 1.3 * sim.model.geom_rbound[0, -1]
    scene.write(tmp_path / "scene")
    again = mujoco.MjModel.from_xml_path(str(tmp_path / "scene" / "scene.xml"))
    np.testing.assert_allclose(again.mesh_vert, sim.mj_model.mesh_vert, atol=1e-6)


def test_a_simulation_must_know_of_variants():
    """Refuse a scene whose simulation would give all worlds the first variant."""
    from manyworlds.scene import Scene, SceneCfg
    from manyworlds.sim import Simulation

    scene = Scene(SceneCfg(entities={"object": VariantEntityCfg(variants={"a": prop(1)})}))
    sim = Simulation(1, spec=scene.spec, device="cpu")
    with pytest.raises(ValueError, match="variant_info=scene.collect_variant_info"):
        scene.initialize(sim.mj_model, sim.model, sim.data)
