import copy
import pickle
import subprocess
import sys

import mujoco
import numpy as np
import pytest

from manyworlds.entity import PropCfg, VariantEntityCfg
from manyworlds.scene import Scene, SceneCfg
from manyworlds.sim import Simulation
from manyworlds.spec.convex import CoacdCfg
from manyworlds.spec.meshes import read_solid, weld

pytest.importorskip("coacd", reason="decomposition needs the extra 'meshes'")
trimesh = pytest.importorskip("trimesh")

_HULL = mujoco.mjtGeom.mjGEOM_MESH
PROFILE = np.array([[0, 0], [0.1, 0], [0.12, 0.08], [0.11, 0.08], [0.09, 0.01], [0, 0.01]])


@pytest.fixture(scope="module")
def meshes(tmp_path_factory):
    """Write a box away from the origin, a bowl, a ring and an open hemisphere."""
    folder = tmp_path_factory.mktemp("meshes")
    box = trimesh.creation.box((0.2, 0.3, 0.1))
    box.apply_translation((0.5, 0.2, 0.3))
    box.export(folder / "box.obj")
    trimesh.creation.revolve(PROFILE, sections=8).export(folder / "bowl.stl")
    trimesh.creation.annulus(0.1, 0.2, 0.05, sections=6).export(folder / "ring.ply")
    sphere = trimesh.creation.icosphere(subdivisions=2, radius=0.1)
    sphere.update_faces(sphere.triangles_center[:, 2] > 0)
    sphere.export(folder / "open.glb")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        yield folder


def drawn(model, geom):
    """Return the vertices of a mesh geom in its body's frame."""
    mesh = model.geom_dataid[geom]
    start, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
    turn = np.empty(9)
    mujoco.mju_quat2Mat(turn, model.geom_quat[geom])
    return model.mesh_vert[start : start + count] @ turn.reshape(3, 3).T + model.geom_pos[geom]


@pytest.mark.parametrize(("mode", "free"), [("dynamic", 1), ("static", 0), ("mocap", 0)])
def test_a_prop_moves_as_its_mode_says(meshes, mode, free):
    """Count the degrees of freedom and mocap bodies of a mesh and of a primitive in each mode."""
    for prop in (
        PropCfg.primitive("box", size=(0.1, 0.2, 0.3), mode=mode),
        PropCfg.from_mesh(meshes / "box.obj", mode=mode, decompose=None),
    ):
        model = prop.build().compile()
        assert (model.nq, model.nmocap) == (7 * free, 1 - free)


@pytest.mark.parametrize("file", ["box.obj", "bowl.stl", "ring.ply", "open.glb"])
@pytest.mark.parametrize("scale", [1.0, (2.0, -1.0, 0.5)])
def test_a_mesh_is_drawn_where_it_is(meshes, file, scale):
    """Compare the vertices of the model, and those that the browser draws, with the file's."""
    prop = PropCfg.from_mesh(meshes / file, decompose=None, scale=scale)
    model, wanted = prop.spec_fn().compile(), weld(read_solid(meshes / file))[0] * scale
    from manyworlds.viewer.browser.geom_meshes import merge_geoms

    for shown in (drawn(model, 0), np.asarray(merge_geoms(model, [0]).vertices)):
        distance = np.linalg.norm(shown[:, None] - wanted[None], axis=2)
        assert distance.min(axis=1).max() < 1e-6 and distance.min(axis=0).max() < 1e-6


def test_two_props_of_a_mesh_are_cut_once(meshes, tmp_path, monkeypatch):
    """Build a prop, and another one of a copy of its file: CoACD's process starts once."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    started, popen = [], subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **k: started.append(a) or popen(*a, **k))
    (tmp_path / "other.ply").write_bytes((meshes / "ring.ply").read_bytes())
    props = {
        "a": PropCfg.from_mesh(meshes / "ring.ply"),
        "b": PropCfg.from_mesh(tmp_path / "other.ply"),
    }
    model = Scene(SceneCfg(entities=props)).compile()
    assert len(started) == 1 and model.geom("a/hull_0").size == pytest.approx(
        model.geom("b/hull_0").size
    )


def test_mesh_and_hulls_have_their_roles(meshes):
    """Draw the mesh without contacts, let the pieces collide, and count the mass once."""
    prop = PropCfg.from_mesh(meshes / "ring.ply", density=500.0, friction=0.3, solref=(0.01, 0.9))
    model = Scene(SceneCfg(entities={"ring": prop})).compile()
    names = [model.geom(i).name for i in range(model.ngeom)]
    assert names == ["ring/mesh", *[f"ring/hull_{i}" for i in range(len(names) - 1)]]
    assert len(names) > 3
    assert model.geom_group.tolist() == [2] + [3] * (len(names) - 1)
    assert (
        model.geom_contype.tolist()
        == model.geom_conaffinity.tolist()
        == [0] + [1] * (len(names) - 1)
    )
    np.testing.assert_allclose(model.geom_friction[1:], [[0.3, 0.005, 0.0001]] * (len(names) - 1))
    np.testing.assert_allclose(model.geom_solref[1:], [[0.01, 0.9]] * (len(names) - 1))
    solid = trimesh.load(meshes / "ring.ply")
    body = model.body("ring/prop")
    assert body.mass == pytest.approx(500.0 * solid.volume, rel=1e-6)
    np.testing.assert_allclose(body.ipos, solid.center_mass, atol=1e-7)
    np.testing.assert_allclose(
        np.sort(body.inertia), np.sort(500.0 * solid.principal_inertia_components), rtol=1e-5
    )


@pytest.mark.parametrize("decompose", [CoacdCfg(), None])
def test_contacts_are_mujocos_unless_they_are_given(meshes, decompose):
    """Leave friction, solref and solimp out, and give them: MuJoCo's defaults, and the values."""
    given = {"friction": (0.7, 0.01, 0.002), "solref": (0.01, 0.9), "solimp": (0.8, 0.9, 0.01)}
    default = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><geom size='.1'/></worldbody></mujoco>"
    )
    for values in ({}, given):
        model = PropCfg.from_mesh(meshes / "ring.ply", decompose=decompose, **values).build()
        model = model.compile()
        colliding = np.flatnonzero(model.geom_contype)
        assert len(colliding) > 3 if decompose else model.ngeom == len(colliding) == 1
        for name in given:
            field = f"geom_{name}"
            wanted = values.get(name, getattr(default, field)[0])
            found = getattr(model, field)[colliding][:, : len(wanted)]
            np.testing.assert_array_equal(found, np.tile(wanted, (len(colliding), 1)))


def test_a_mass_replaces_the_density(meshes):
    """Give a mass to a mesh and to a primitive."""
    for prop in (
        PropCfg.from_mesh(meshes / "box.obj", mass=3.0),
        PropCfg.primitive("capsule", size=(0.1, 0.2), mass=3.0),
    ):
        assert prop.build().compile().body_mass[-1] == pytest.approx(3.0)


def test_an_open_mesh_has_the_mass_of_its_hull(meshes):
    """Warn in one sentence about a hemisphere without a floor, and take its hull's mass."""
    with pytest.warns(UserWarning, match="not the closed surface of a solid"):
        model = PropCfg.from_mesh(meshes / "open.glb", decompose=None).spec_fn().compile()
    sphere = trimesh.creation.icosphere(subdivisions=2, radius=0.1)
    assert model.body_mass[1] == pytest.approx(500.0 * sphere.volume, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("decompose", "inside"), [(CoacdCfg(), True), (None, False)])
def test_a_bowl_holds_a_ball_if_it_is_decomposed(meshes, decompose, inside):
    """Drop a ball into a bowl: it stays in it, or on top of its convex hull."""
    bowl = PropCfg.from_mesh(meshes / "bowl.stl", mode="static", decompose=decompose)
    ball = PropCfg.primitive("sphere", size=0.02, friction=(1.0, 0.1, 0.1))
    ball.init_state.pos = (0.01, 0.0, 0.12)
    scene = Scene(SceneCfg(entities={"bowl": bowl, "ball": ball}))
    model = scene.compile()
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    while data.time < 1.0:
        mujoco.mj_step(model, data)
    x, y, z = data.body("ball/prop").xpos
    assert (0.02 < z < 0.06 and np.hypot(x, y) < 0.1) if inside else z > 0.09


@pytest.mark.slow
def test_meshes_are_variants_of_one_prop(meshes):
    """Step a batch of three meshes, each as the mesh compiled alone."""
    props = {file: PropCfg.from_mesh(meshes / file) for file in ("box.obj", "ring.ply", "bowl.stl")}
    variants = {name.partition(".")[0]: prop.spec_fn for name, prop in props.items()}
    floor = PropCfg.primitive("plane", size=(5, 5, 0.1), mode="static")

    def scene_of(thing, num_envs):
        return Scene(SceneCfg(num_envs=num_envs, entities={"thing": thing, "floor": floor}))

    scene = scene_of(VariantEntityCfg(variants=variants, assignment=[0, 1, 2]), 3)
    sim = Simulation(3, spec=scene.spec, variant_info=scene.collect_variant_info())
    scene.initialize(sim.mj_model, sim.model, sim.data)
    scene.reset()
    sim.data.qpos[:, 2] = 0.2
    for _ in range(100):
        sim.step()
    for world, prop in enumerate(props.values()):
        model = scene_of(prop, 1).compile()
        model.opt.jacobian = sim.mj_model.opt.jacobian
        data = mujoco.MjData(model)
        mujoco.mj_resetDataKeyframe(model, data, 0)
        data.qpos[2] = np.float32(0.2)
        mujoco.mj_step(model, data, nstep=100)
        np.testing.assert_allclose(sim.data.qpos[world, :7], data.qpos, atol=2e-6)


def test_a_prop_can_be_edited_copied_and_pickled(meshes):
    """Change the mass of a configuration before it is built, and send it to another process."""
    prop = PropCfg.from_mesh(meshes / "box.obj", decompose=None)
    prop.spec_fn.mass = 2.0
    for same in (pickle.loads(pickle.dumps(prop)), copy.deepcopy(prop)):
        assert same == prop and same.build().compile().body_mass[1] == pytest.approx(2.0)


def test_without_coacd_the_convex_hull_collides(meshes, monkeypatch):
    """Hide CoACD: a warning names what to install, and the mesh geom collides."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(meshes / "empty"))
    monkeypatch.setitem(sys.modules, "coacd", None)
    with pytest.warns(UserWarning, match=r"convex hull of .*manyworlds-rl\[meshes\]"):
        model = PropCfg.from_mesh(meshes / "ring.ply").spec_fn().compile()
    assert model.ngeom == 1 and model.geom_contype[0] == 1


BAD = {
    "empty.obj": ("# nothing\n", "has no triangles"),
    "nan.obj": (
        "v 0 0 0\nv nan 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\nf 1 3 4\nf 2 3 4\n",
        "a vertex that is not finite: number 1",
    ),
    "gone.ply": (
        "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\n"
        "property float z\nelement face 1\nproperty list uchar int vertex_indices\nend_header\n"
        "0 0 0\n1 0 0\n0 1 0\n3 0 1 9\n",
        "vertices that are not there",
    ),
    "flat.obj": ("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 1 1 0\nf 1 2 3\nf 2 4 3\n", "is flat"),
    "broken.glb": ("not a mesh", "cannot be read"),
    "short.msh": ("abc", "cannot be read as a mesh: its size"),
    "mesh.zip": ("", "unknown format"),
}


@pytest.mark.parametrize("file", BAD)
def test_a_bad_mesh_is_one_sentence(tmp_path, file):
    """Read files that are no solids."""
    text, message = BAD[file]
    (tmp_path / file).write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        PropCfg.from_mesh(tmp_path / file).spec_fn()
    assert "\n" not in str(error.value)


def test_large_meshes_are_refused(tmp_path):
    """Refuse a file of 10 million triangles without reading it."""
    with open(tmp_path / "huge.stl", "wb") as file:
        file.truncate(84 + 50 * 10_000_000)
    with pytest.raises(ValueError, match="has 10000000 triangles, and a mesh may have 2000000"):
        PropCfg.from_mesh(tmp_path / "huge.stl")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shape": "cube", "size": 1.0}, "There is no primitive 'cube'"),
        ({"shape": "box", "size": 1.0}, "must be 3 positive numbers"),
        ({"shape": "sphere", "size": -1.0}, "must be 1 positive number"),
        ({"shape": "plane", "size": (1, 1, 1)}, "cannot move freely"),
        ({"shape": "sphere", "size": 1.0, "mass": 1.0, "density": 1.0}, "give one of them"),
        ({"shape": "sphere", "size": 1.0, "mass": 0.0}, "mass must be a positive number"),
        ({"shape": "sphere", "size": 1.0, "mode": "free"}, "mode must be one of dynamic"),
        ({"shape": "sphere", "size": 1.0, "friction": (1, 1, 1, 1)}, "friction must be 3"),
    ],
)
def test_wrong_settings_are_refused(arguments, message):
    """Refuse settings that make no sense when the configuration is made."""
    with pytest.raises(ValueError, match=message):
        PropCfg.primitive(**arguments)
