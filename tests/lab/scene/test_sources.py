"""Sources of items: robots that others wrote, our own, MuJoCo Menagerie, meshes, uploads."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest

from manyworlds.lab import CompileError, LiveLab, world_from_spec
from manyworlds.lab.scene import menagerie_names, registered_names
from manyworlds.lab.world.scene_files import scene_mjcf
from tests.compat.names import shared_file
from tests.lab.conftest import ARM

TETRAHEDRON = """
v 0 0 0
v .2 0 0
v 0 .2 0
v 0 0 .2
f 1 3 2
f 1 2 4
f 1 4 3
f 2 3 4
"""

QUICK = ("dog", "humanoid_CMU_V2020", "ant")
"""Models whose textures compile fast, or that have elements that no other has."""


def foreign_models() -> list[Path]:
    """Models that this project did not write, as far as they are installed."""
    found = []
    for package, files in {
        "dm_control": (
            *("suite/humanoid.xml", "suite/dog.xml", "suite/cheetah.xml"),
            *("locomotion/walkers/assets/humanoid_CMU_V2020.xml", "suite/fish.xml"),
        ),
        "gymnasium": ("envs/mujoco/assets/ant.xml", "envs/mujoco/assets/humanoid.xml"),
    }.items():
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            found += [Path(spec.origin).parent / file for file in files]
    return [path for path in found if path.is_file()]


@pytest.fixture
def lab():
    """A lab of the arm that was not started."""
    lab = LiveLab(world_from_spec(mujoco.MjSpec.from_string(ARM)))
    yield lab
    lab.stop()


def check_edits(lab: LiveLab, source) -> None:
    """Add, copy, rename, move, remove; the physics is that of the source at each place."""
    before = lab.model
    item = lab.scene.add(source, "one", pos=(2.0, 0.0, 0.1))
    alone = item.prefix
    copy = lab.scene.duplicate("one", "two", pos=(-3.0, 0.0, 0.1))
    model = lab.model
    assert copy.kind == item.kind and alone == "one/"
    sizes = ("nbody", "njnt", "ngeom", "nsite", "nactuator", "ntendon", "nsensor")
    for size in sizes:
        added = getattr(model, size) - getattr(before, size)
        assert added % 2 == 0, size
    for field in ("body_mass", "body_inertia", "body_gravcomp"):
        one, two = (
            [getattr(model, field)[b] for b in range(model.nbody) if own(model, b, root)]
            for root in ("one/", "two/")
        )
        assert len(one) == len(two) > 0 and np.allclose(one, two, 1e-12, 0.0), field
    lab.scene.rename("two", "three")
    lab.scene.move("three", pos=(-4.0, 1.0, 0.1))
    assert np.isfinite(lab.step(3).qpos).all()
    lab.scene.remove("three")
    lab.scene.remove("one")
    assert lab.model.nbody == before.nbody and lab.model.nmesh == before.nmesh
    assert lab.model.nmat == before.nmat and lab.model.ntex == before.ntex
    keys = {lab.model.key(i).name for i in range(lab.model.nkey)}
    assert keys <= {"init_state"}, "keyframe of initial states of configs"
    names = lab.model.names.decode().split("\0")
    assert not [name for name in names if name.startswith(("one/", "two/", "three/"))]


def own(model: mujoco.MjModel, body: int, prefix: str) -> bool:
    """Return True if a body's tree begins with a prefix."""
    return model.body(model.body_rootid[body]).name.startswith(prefix)


@pytest.mark.parametrize(
    "path",
    [
        path if path.stem in QUICK else pytest.param(path, marks=pytest.mark.slow)
        for path in foreign_models()
    ],
    ids=lambda path: f"{path.parts[-2]}-{path.stem}",
)
def test_models_of_other_packages_can_be_edited(lab, path):
    """Add, copy, rename, move and remove models of dm_control and gymnasium."""
    if path.stem != "dog":
        check_edits(lab, path)
        return
    lab.scene.add(path, "dog")
    world = lab.world
    for edit in (lab.scene.duplicate, lambda name: lab.scene.rename(name, "cat")):
        with pytest.raises(ValueError, match="skin 'dog/skin' is read from a file"):
            edit("dog")
    assert lab.world is world
    lab.scene.remove("dog")
    assert lab.model.nskin == 0


@pytest.mark.parametrize(
    "file",
    [
        pytest.param("unitree_g1/g1.xml", marks=pytest.mark.slow),
        pytest.param("unitree_go1/go1.xml", marks=pytest.mark.slow),
        "i2rt_yam/yam.xml",
    ],
)
def test_robots_with_meshes_can_be_edited(lab, file):
    """Add, copy, rename, move and remove robots whose meshes lie in a folder of their own."""
    check_edits(lab, shared_file(f"robots/{file}"))


@pytest.mark.parametrize("name", ["quadruped", "humanoid", "arm", "cartpole"])
def test_our_own_robots_begin_as_their_config_says(lab, name):
    """Add a registered robot: its joints are those of its initial state, now and after a reset."""
    assert name in registered_names()
    check_edits(lab, name)
    lab.scene.add(name, "one")
    from manyworlds.lab.scene.sources import load_source

    part, _ = load_source(name)
    lab.reset()
    for joint, qpos in part.qpos.items():
        found = lab.model.joint(f"one/{joint}")
        if found.type[0] != mujoco.mjtJoint.mjJNT_FREE:
            start = found.qposadr[0]
            assert lab.snapshot.qpos[start : start + len(qpos)].tolist() == qpos, joint


def test_a_mesh_is_a_prop(lab, tmp_path):
    """Add a mesh file: a free body; broken and missing files are told in a sentence."""
    path = tmp_path / "stone.obj"
    path.write_text(TETRAHEDRON)
    item = lab.scene.add(path, pos=(0.0, 1.0, 1.0))
    assert item.name == "stone" and lab.model.joint("stone/floating_base_joint").type[0] == 0
    box = lab.scene.bounds("stone")
    assert np.allclose(box.low, (0.0, 1.0, 1.0), atol=1e-6) and box.high[2] < 1.21
    lab.scene.move("stone", pos=(0.0, 0.0, 2.0))
    assert np.allclose(lab.scene.bounds("stone").low, (0.0, 0.0, 2.0), atol=1e-6)
    broken = tmp_path / "flat.obj"
    broken.write_text("v 0 0 0\nf 1 1 1\n")
    with pytest.raises(CompileError, match="flat"):
        lab.scene.add(broken)


def test_menagerie_gives_robots_by_name(lab, tmp_path, monkeypatch):
    """Add a robot through a stand-in of the package: no download, its robot, its errors."""
    robot = tmp_path / "bot.xml"
    robot.write_text(
        "<mujoco><worldbody><body name='b'><geom size='.1'/></body></worldbody></mujoco>"
    )

    class Bot:
        default_model = "bot"

        def xml(self, entry: str) -> Path:
            if not robot.is_file():
                raise LookupError("download failed: no\nnetwork")
            return robot

    package = SimpleNamespace(names=lambda: ["tiny_bot", "other_bot"], get=lambda name: Bot())
    monkeypatch.setitem(sys.modules, "mujoco_menagerie", package)
    assert menagerie_names() == ("tiny_bot", "other_bot")
    assert lab.scene.add("tiny_bot").name == "tiny_bot"
    assert lab.call("add_item", source="tiny_bot")["item"]["source"] == "menagerie:tiny_bot"
    with pytest.raises(ValueError, match="did you mean 'tiny_bot'"):
        lab.scene.add("tiny_bots")
    robot.unlink()
    with pytest.raises(OSError, match="cannot give 'other_bot': download failed: no network"):
        lab.scene.add("menagerie:other_bot")
    monkeypatch.setitem(sys.modules, "mujoco_menagerie", None)
    assert menagerie_names() == ()
    with pytest.raises(ValueError, match=r"manyworlds-rl\[robots\]"):
        lab.scene.add("tiny_bot")


TARGETED = """<mujoco><custom><numeric name="init" data="1 2"/></custom>
<worldbody>
  <body name="arm"><freejoint/><geom size=".1"/></body>
  <light name="spot" mode="targetbody" target="arm" pos="0 0 2"/>
  <camera name="eye" mode="targetbody" target="arm" pos="1 0 1"/>
</worldbody></mujoco>"""


def test_what_others_look_at_is_removed_and_copied():
    """Copy a light twice over, remove its target, undo: each is done, and told in a sentence."""
    lab = LiveLab(world_from_spec(mujoco.MjSpec.from_string(TARGETED)))
    for item in ("spot", "spot_1", "arm", "arm_1"):
        lab.scene.duplicate(item)
    assert [n.name for n in lab.world.spec.numerics] == ["init"], "a copy has no copy of it"
    assert lab.model.light("spot").targetbodyid[0] == lab.model.body("arm").id
    assert lab.model.light("spot_1/spot").targetbodyid[0] == -1
    lab.scene.remove("arm")
    assert "the light 'spot' looked at 'arm', which is gone" in " ".join(lab.scene.notes)
    assert lab.model.camera("eye").mode[0] == mujoco.mjtCamLight.mjCAMLIGHT_FIXED
    lab.history.undo()
    assert lab.model.light("spot").targetbodyid[0] == lab.model.body("arm").id
    lab.stop()


@pytest.mark.parametrize(
    ("name", "file"),
    [("unitree_go1", "go1.xml"), pytest.param("unitree_g1", "g1.xml", marks=pytest.mark.slow)],
)
def test_the_package_of_menagerie_gives_robots(lab, tmp_path, monkeypatch, name, file):
    """Add a robot from the package's own filled cache; without it, tell that a download fails."""
    package = pytest.importorskip("mujoco_menagerie", reason="needs the extra 'robots'")
    monkeypatch.setenv("MENAGERIE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("MENAGERIE_BASE_URL", (tmp_path / "nowhere").as_uri())
    monkeypatch.delenv("MENAGERIE_ROOT", raising=False)
    with pytest.raises(OSError, match=f"cannot give '{name}': .*: not found") as error:
        lab.scene.add(name)
    assert "\n" not in str(error.value)
    folder = package.Cache().model_path(package.get(name))
    shutil.copytree(shared_file(f"robots/{name}/{file}").parent, folder)
    (folder / ".complete").write_text("{}")
    assert lab.scene.add(name, "robot").source == f"menagerie:{name}"
    assert lab.model.body("robot/trunk" if name == "unitree_go1" else "robot/pelvis").mass > 0


KIT = """<mujoco model="kit"><asset><mesh name="left/part" file="part.obj"/></asset><worldbody>
  <body name="left/arm"><joint name="left/j"/><geom type="mesh" mesh="left/part"/></body>
</worldbody><actuator><position name="left/m" joint="left/j"/></actuator></mujoco>"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*(settotalmass|compiler settings)")
def test_a_room_of_foreign_robots_is_saved_and_opened(lab, tmp_path):
    """Add robots with slashes in names and files of equal names, edit, undo all, redo, save, open.

    Plain MuJoCo loads the same model from the file, and clients get the same shapes.
    """
    for kit, size in (("a", "0.1"), ("b", "0.3")):
        (tmp_path / kit).mkdir()
        (tmp_path / kit / "kit.xml").write_text(KIT)
        (tmp_path / kit / "part.obj").write_text(TETRAHEDRON.replace(".2", size))
    scene, start = lab.scene, bytes(lab.model.names)
    foreign = [path for path in foreign_models() if path.stem in ("cheetah", "ant")]
    sources = (tmp_path / "a/kit.xml", tmp_path / "b/kit.xml", "quadruped", *foreign)
    for source in (shared_file("robots/i2rt_yam/yam.xml"), *sources):
        scene.add(source)
    sizes = [
        lab.model.geom_rbound[lab.model.body(f"{kit}/left/arm").geomadr[0]]
        for kit in ("kit", "kit_1")
    ]
    assert sizes[1] == pytest.approx(3.0 * sizes[0])
    scene.duplicate("kit")
    scene.rename("kit_1", "set")
    scene.grid("yam", 1, 2)
    scene.move("set", pos=(0.0, 4.0, 0.2), quat=(0.0, 0.0, 0.0, 1.0))
    scene.remove("quadruped")
    items, names, count = scene.items, bytes(lab.model.names), len(lab.history.done)
    for _ in range(count):
        scene.undo()
    assert bytes(lab.model.names) == start
    for _ in range(count):
        scene.redo()
    assert bytes(lab.model.names) == names and scene.items == items
    saved = scene.save(tmp_path / "room")
    plain = mujoco.MjModel.from_xml_path(str(saved / "scene.xml"))
    assert bytes(plain.names) == names
    for field in ("body_pos", "body_quat", "body_mass", "geom_pos", "geom_rbound", "mesh_vert"):
        ours, theirs = getattr(lab.model, field), getattr(plain, field)
        np.testing.assert_allclose(theirs, ours, rtol=2e-5, atol=1e-6, err_msg=field)
    xml, files = scene_mjcf(lab.world)
    sent = mujoco.MjSpec.from_string(xml, assets=files).compile()
    np.testing.assert_array_equal(sent.mesh_vert, lab.model.mesh_vert)
    scene.open(saved)
    assert bytes(lab.model.names) == names
    for name, item in scene.items.items():
        np.testing.assert_allclose(item.pos, items[name].pos, atol=1e-5)
        assert (item.id, item.kind, item.bodies) == (
            items[name].id,
            items[name].kind,
            items[name].bodies,
        )
    assert np.isfinite(lab.step(10).qpos).all() and not lab.loop.fault
