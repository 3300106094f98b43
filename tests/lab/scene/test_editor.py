"""Edits of the scene of a live world."""

from __future__ import annotations

import copy
import threading

import mujoco
import numpy as np
import pytest

from manyworlds.entity import EntityCfg, PropCfg
from manyworlds.lab import CompileError, LiveLab, world_from_file, world_from_spec
from manyworlds.lab.scene import ItemRequest, SceneEditor, editor
from manyworlds.lab.scene.sources import load_source
from tests.lab.conftest import ARM
from tests.robots import robot_file


def fields_that_differ(one: mujoco.MjModel, other: mujoco.MjModel) -> list[str]:
    """Names of the arrays of two models that are not equal, the text of names left out."""
    arrays = [name for name in dir(one) if isinstance(getattr(one, name), np.ndarray)]
    wanted = [n for n in arrays if not n.startswith(("_", "name", "path")) and n != "names"]
    return [n for n in wanted if not np.array_equal(getattr(one, n), getattr(other, n))]


def joint(scene: SceneEditor, name: str) -> np.ndarray:
    """Present position of a joint."""
    model, snapshot = scene._lab.model, scene._lab.snapshot
    found = model.joint(name)
    start = found.qposadr[0]
    return snapshot.qpos[start : start + len(found.qpos0)].copy()


def test_items_are_what_stands_in_the_world(scene):
    """List the items of a plain file: floor, arm, ball and post; search their bodies."""
    assert list(scene.items) == ["upper", "ball", "post", "floor"]
    assert scene["ball"].pos == (0.5, 0.0, 0.3) and scene["floor"].kind == "geom"
    assert scene["upper"].bodies == ("upper", "lower")
    (node,) = scene.tree("LOW")
    assert node.name == "upper" and [child.name for child in node.children] == ["lower"]
    assert [item.name for item in scene.find("o", kind="body")] == ["post"]
    with pytest.raises(KeyError, match="did you mean 'ball'"):
        scene["bal"]


def test_a_cup_is_added_and_the_world_goes_on(scene, cup):
    """Add a file: the arm goes on, the cup is a robot with its own names, keys and actuators."""
    lab = scene._lab
    lab["arm"].write("panel", {"elbow": 3.0})
    before = lab.step(50)
    item = scene.add(cup, pos=(1.0, 0.0, 0.0))
    assert (item.name, item.id, item.kind, item.prefix) == ("cup", "cup", "robot", "cup/")
    assert item.source == str(cup) and item.pos == (1.0, 0.0, 0.0)
    after = lab.snapshot
    assert after.time == before.time and np.array_equal(after.qpos[: len(before.qpos)], before.qpos)
    assert joint(scene, "cup/base").tolist() == [1.0, 0.0, 0.05, 1.0, 0.0, 0.0, 0.0]
    assert lab["arm"].command.targets[1] == 3.0 and len(lab["arm"].actuators.ids) == 2
    assert lab["cup"].actuators.names == ("hinge", "pull")
    assert lab.keyframes.names("cup") == ["ajar"]
    assert lab.step(10).ctrl.tolist()[:2] == [0.0, 3.0]


def test_undo_and_redo_return_to_the_same_world(scene, cup):
    """Add, undo, redo: the same hashes, and the state of what was removed comes back."""
    lab = scene._lab
    hashes = [lab.world.model_hash]
    scene.add(cup)
    hashes.append(lab.world.model_hash)
    lab.step(100)
    fallen = joint(scene, "cup/base")
    scene.remove("cup")
    assert lab.world.model_hash == hashes[0] and "cup" not in lab.robots
    lab.step(20)
    ball = joint(scene, "ball:0") if False else lab.snapshot.qpos[2:9].copy()
    assert scene.undo() == "remove cup" and lab.world.model_hash == hashes[1]
    assert np.array_equal(joint(scene, "cup/base"), fallen), "as it was when it was removed"
    assert np.array_equal(lab.snapshot.qpos[2:9], ball), "and the others go on"
    assert scene.redo() == "remove cup" and lab.world.model_hash == hashes[0]
    scene.undo()
    assert scene.undo() == "add cup" and lab.world.model_hash == hashes[0]
    with pytest.raises(RuntimeError, match="nothing to undo"):
        scene.undo()
    assert scene.redo() == "add cup" and lab.world.model_hash == hashes[1]


def test_what_is_removed_leaves_nothing(scene, cup):
    """Add and remove: the model is the one before, field by field, with no leftover names."""
    lab = scene._lab
    before = lab.model
    scene.add(cup)
    scene.remove("cup")
    assert not fields_that_differ(before, lab.model)
    assert bytes(before.names) == bytes(lab.model.names)
    assert "cup" not in lab.world.spec.to_xml()
    scene.add(cup)
    assert scene["cup"].kind == "robot", "the name is free again"


def test_renamed_items_keep_state_id_and_relations(scene, cup):
    """Rename the cup: names change in every reference, nothing else does; then undo."""
    lab = scene._lab
    scene.add(cup)
    lab["cup"].write("panel", {"hinge": 0.3})
    lab.step(60)
    model, state, robot = lab.model, joint(scene, "cup/base"), lab["cup"]
    item = scene.rename("cup", "mug")
    assert item.id == "cup" and "cup" not in lab.robots and lab["mug"] is robot
    assert not fields_that_differ(model, lab.model)
    assert np.array_equal(joint(scene, "mug/base"), state)
    assert lab["mug"].command.targets[0] == 0.3 and lab["mug"].name == "mug"
    assert lab.model.body("mug/cup").id and lab.model.material("mug/clay").id == 0
    with pytest.raises(ValueError, match="default classes of a renamed item"):
        scene.add(cup, "cup")
    assert scene.add(cup).name == "cup_1"
    scene.undo()
    scene.select("mug")
    scene.undo()
    assert np.array_equal(joint(scene, "cup/base"), state) and lab["cup"] is robot
    assert scene.selected == "cup", "the selected item has its former name"
    scene.redo()
    assert scene.selected == "mug"
    scene.undo()
    ball = lab.snapshot.qpos[2:9].copy()
    scene.rename("ball", "marble")
    assert np.array_equal(lab.snapshot.qpos[2:9], ball), "a body of a plain file, too"


def test_moves_are_in_the_state_and_the_initial_state(scene, cup):
    """Move a free cup, a mocap post and the fixed floor: now, and after a reset."""
    lab = scene._lab
    scene.add(cup)
    lab.step(100)
    scene.move("cup", pos=(0.0, 1.0, 0.5), quat=(0.0, 0.0, 0.0, 2.0))
    assert np.allclose(joint(scene, "cup/base"), [0.0, 1.0, 0.55, 0.0, 0.0, 0.0, 1.0])
    assert not lab.snapshot.qvel[8:14].any()
    scene.move("post", pos=(-2.0, 0.0, 0.2))
    assert lab.snapshot.mocap_pos[0].tolist() == [-2.0, 0.0, 0.2]
    scene.move("floor", pos=(0.0, 0.0, -0.5))
    assert lab.model.geom("floor").pos.tolist() == [0.0, 0.0, -0.5]
    lab.step(10)
    lab.reset()
    assert np.allclose(joint(scene, "cup/base")[:3], [0.0, 1.0, 0.55])
    assert lab.snapshot.mocap_pos[0].tolist() == [-2.0, 0.0, 0.2]
    scene.move("upper", quat=(1.0, 0.0, 0.0, 1.0))
    assert scene["upper"].pos == pytest.approx((0.0, 0.0, 0.6)), "what is left out stays"
    for _ in range(4):
        scene.undo()
    assert joint(scene, "cup/base")[2] < 0.1, "where it was before it was moved"


def test_copies_are_items_of_their_own(scene, cup):
    """Duplicate a cup and a body of the file; make a grid; each is an item of its own."""
    lab = scene._lab
    scene.add(cup, id="mine")
    copy = scene.duplicate("cup")
    assert copy.name == "cup_1" and copy.id == "cup_1" and copy.kind == "robot"
    box, other = scene.bounds("cup"), scene.bounds("cup_1")
    assert other.low[0] > box.high[0], "beside it"
    assert lab.model.ntendon == 2 and lab.model.nkey == 1 and lab.model.nsensor == 5
    assert lab["cup_1"].actuators.names == ("hinge", "pull")
    scene.duplicate("ball", "balloon", pos=(0.5, 1.0, 0.3))
    assert lab.model.body("balloon/ball").pos.tolist() == [0.5, 1.0, 0.3]
    assert lab.model.neq == 0 and scene["balloon"].kind == "body"
    copies = scene.grid("cup", 2, 3, spacing=(0.5, 0.25))
    places = [item.pos[:2] for item in copies]
    assert places == [(0.5, 0.0), (1.0, 0.0), (0.0, 0.25), (0.5, 0.25), (1.0, 0.25)]
    assert np.isfinite(lab.step(20).qpos).all() and len(lab.robots) == 8
    assert scene.undo() == "copy cup" and len(lab.robots) == 3
    for rows, columns in ((1, 1), (33, 32), (0, 5)):
        with pytest.raises(ValueError, match="2 to 1024"):
            scene.grid("cup", rows, columns)


def test_the_same_items_twice_are_the_same_world(scene, cup):
    """Apply items twice: the second time nothing happens; then change one and move one (BE3)."""
    lab = scene._lab
    box = PropCfg.primitive("box", (0.1, 0.1, 0.1))
    items = [
        ItemRequest(id="a", source=cup, pos=(1.0, 0.0, 0.0)),
        ItemRequest(id="b", source=box, name="crate", pos=(0.0, 1.0, 0.1)),
    ]
    assert scene.apply(items) == ["added 'a'", "added 'crate'"]
    first = lab.world
    lab.step(30)
    state = lab.snapshot.qpos.copy()
    assert scene.apply(items) == [] and lab.world is first
    items[0] = ItemRequest(id="a", source=cup, name="tall", pos=(2.0, 0.0, 0.0))
    items[1] = ItemRequest(id="b", source=PropCfg.primitive("sphere", (0.1,)), name="crate")
    assert scene.apply(items) == ["renamed 'a' to 'tall', moved 'tall'", "replaced 'crate'"]
    assert np.allclose(joint(scene, "tall/base")[:3], (2.0, 0.0, 0.05))
    assert scene["tall"].pos == (2.0, 0.0, 0.0) and scene["crate"].pos == (0.0, 1.0, 0.1)
    assert scene.apply(items) == []
    scene.undo()
    assert lab.world.model_hash == first.model_hash and np.array_equal(lab.snapshot.qpos, state)
    with pytest.raises(ValueError, match="Several items have the id 'a'"):
        scene.apply([items[0], items[0]])


def test_equal_sources_are_read_once(scene, cup, monkeypatch):
    """Apply many items of two sources: each source is read once, and each item is its own."""
    read = []

    def load(source):
        read.append(source)
        return load_source(source)

    monkeypatch.setattr(editor, "load_source", load)
    box = PropCfg.primitive("box", (0.1, 0.1, 0.1))
    items = [
        ItemRequest(id=f"{kind}{i}", source=source, pos=(float(i), 2.0, 0.5))
        for i in range(3)
        for kind, source in (("box", box), ("cup", cup))
    ]
    assert len(scene.apply(items)) == 6 and read == [box, cup]
    model = scene._lab.model
    assert [model.body(f"box{i}/prop").pos[0] for i in range(3)] == [0.0, 1.0, 2.0]
    scene.apply([ItemRequest(id="box1", source=box, pos=(9.0, 0.0, 0.5)), items[0]])
    model = scene._lab.model
    assert [model.body(f"box{i}/prop").pos[0] for i in range(3)] == [0.0, 9.0, 2.0]


def test_scene_files_give_the_same_world(scene, cup, tmp_path):
    """Save, load in plain MuJoCo and in the lab: the same model; names and ids survive."""
    lab = scene._lab
    scene.add(cup, "mug", pos=(0.25, 0.5, 0.0), id="mine")
    saved = scene.save(tmp_path / "room")
    plain = mujoco.MjModel.from_xml_path(str(saved / "scene.xml"))
    for field in fields_that_differ(plain, lab.model):  # XML has six digits
        assert np.allclose(getattr(plain, field), getattr(lab.model, field), 2e-5, 1e-6), field
    assert bytes(plain.names) == bytes(lab.model.names)
    items, robots = scene.items, dict(lab.robots)
    scene.remove("mug")
    scene.save(tmp_path / "room2")
    scene.open(saved)
    assert dict(lab.robots) == robots and bytes(lab.model.names) == bytes(plain.names)
    assert scene.items == items and scene["mug"].id == "mine"
    scene.move("mug", pos=(0.0, 0.0, 0.0))
    assert np.allclose(lab.model.body("mug/cup").pos, [0.0, 0.0, 0.05])
    assert scene.undo() == "move mug" and scene.undo() == "open room"
    assert "mug" not in scene.items
    with pytest.raises(FileExistsError, match="not an earlier export"):
        scene.save(tmp_path)
    (saved / "build.json").write_text("{}")
    with pytest.raises(ValueError, match=r"build.json' is damaged"):
        scene.open(saved)


FRAMES = """<mujoco><compiler angle="degree"/><worldbody>
  <frame pos="0 0 1" euler="0 0 90">
    <body name="a" euler="0 30 0"><freejoint/><geom size=".1"/></body>
    <geom name="rail" type="capsule" size=".1" fromto="0 0 0 1 0 0"/>
    <body name="c" pos="2 0 0"><freejoint/><geom size=".1"/></body>
  </frame>
  <light name="lamp" pos="0 0 3" dir="0 1 -1"/>
  <body name="b" pos="1 0 0" axisangle="0 0 1 45"><freejoint/><geom size=".1"/></body>
  <frame pos="0 0 2"><body name="d"><freejoint/><geom size=".1"/></body></frame>
  <camera name="eye" pos="0 0 4" euler="10 0 0"/>
  <geom name="plate" type="box" size="1 1 .1"/>
</worldbody></mujoco>"""


def test_what_is_moved_keeps_its_place_among_others(tmp_path):
    """Move what is in frames, one with others in it: all else stays, and files have the order."""
    lab = LiveLab(world_from_spec(mujoco.MjSpec.from_string(FRAMES)))
    scene, names = lab.scene, bytes(lab.model.names)
    before = {name: (item.pos, item.quat) for name, item in scene.items.items()}
    half = np.sqrt(0.5)
    pos, quat = (0.25, -0.5, 0.75), (half, 0.0, half, 0.0)
    for name in ("b", "a", "rail", "lamp", "eye", "plate"):
        scene.move(name, pos=pos, quat=quat)
        for other, item in scene.items.items():
            wanted = (pos, quat) if other == name else before[other]
            np.testing.assert_allclose(item.pos, wanted[0], atol=1e-12, err_msg=f"{name} {other}")
            if other != "lamp":
                np.testing.assert_allclose(
                    np.abs(np.dot(item.quat, wanted[1])), 1.0, atol=1e-12, err_msg=other
                )
        assert bytes(lab.model.names) == names
        saved = scene.save(tmp_path / name)
        plain = mujoco.MjModel.from_xml_path(str(saved / "scene.xml"))
        assert bytes(plain.names) == names, name
        np.testing.assert_allclose(plain.body_pos, lab.model.body_pos, atol=1e-5)
        np.testing.assert_allclose(plain.geom_pos, lab.model.geom_pos, atol=1e-5)
        scene.undo()
    assert scene["a"].pos == before["a"][0]
    scene.move("lamp", quat=(0.0, 1.0, 0.0, 0.0))
    np.testing.assert_allclose(lab.model.light("lamp").dir, (0.0, 0.0, 1.0), atol=1e-12)
    lab.stop()


def test_options_and_values_that_were_set_stay(scene, cup):
    """Change gravity and a gain while the world runs: they stay over an edit, and its undo."""
    lab = scene._lab
    lab.set_option("gravity", (0.0, 0.0, -1.0))
    lab.loop.do(lambda model, data: model.actuator_gear.__setitem__((1, 0), 7.0))
    scene.add(cup)
    assert lab.model.opt.gravity[2] == -1.0 and lab.model.actuator_gear[1, 0] == 7.0
    assert lab.model_options["gravity"][2] == -9.81
    lab.loop.do(lambda model, data: model.actuator_gear.__setitem__((0, 0), 5.0))
    scene.undo()
    assert lab.model.opt.gravity[2] == -1.0 and lab.model.actuator_gear[:, 0].tolist() == [5.0, 7.0]


def test_values_that_cannot_be_kept_are_told(scene):
    """Change a gain, break the spec, remove what is broken: a note says what is lost, and why."""
    lab = scene._lab
    lab.loop.do(lambda model, data: model.actuator_gear.__setitem__((0, 0), 5.0))
    lab.world.spec.body("ball").geoms[0].size[0] = 0.0
    scene.remove("ball")
    (note,) = (note for note in scene.notes if "changed while it ran" in note)
    assert "does not compile" in note and "size" in note
    assert lab.model.actuator_gear[0, 0] == 1.0


def test_files_specs_and_configs_are_the_same_item(scene, cup):
    """Add a cup by its file, as a spec, and by a config: the same bodies and physics."""
    lab, models = scene._lab, []
    sources = (cup, mujoco.MjSpec.from_file(str(cup)))
    cfg = EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_file(str(cup)))
    for source in (*sources, cfg):
        scene.add(source, "cup")
        models.append(lab.model)
        scene.undo()
    assert not fields_that_differ(models[0], models[1])
    for field in ("body_mass", "geom_size", "jnt_type", "actuator_gainprm", "tendon_num"):
        assert np.array_equal(getattr(models[0], field), getattr(models[2], field)), field


@pytest.mark.parametrize(
    ("source", "kwargs", "error", "words"),
    [
        ("nothing.xml", {}, FileNotFoundError, "no file 'nothing.xml'"),
        ("quadrupet", {}, ValueError, "quadruped"),
        ("cup", {"name": "ball"}, ValueError, "has an item 'ball'"),
        ("cup", {"name": "a/b"}, ValueError, "'a/b' is no valid name"),
        ("cup", {"name": ""}, None, ""),
        ("cup", {"id": "ball"}, ValueError, "id 'ball'"),
        ("cup", {"pos": (0, 0, float("nan"))}, ValueError, "3 finite numbers"),
        ("cup", {"quat": (0, 0, 0, 0)}, ValueError, "not all 0"),
        ("broken", {}, CompileError, "mass and inertia"),
        ("text", {}, CompileError, "XML"),
    ],
)
def test_what_cannot_be_added_changes_nothing(scene, cup, tmp_path, source, kwargs, error, words):
    """Give wrong sources, names and places: one sentence each, and the world is the same."""
    broken = tmp_path / "broken.xml"
    broken.write_text("<mujoco><worldbody><body><freejoint/></body></worldbody></mujoco>")
    (tmp_path / "text.xml").write_text("no model")
    paths = {"cup": cup, "broken": broken, "text": tmp_path / "text.xml"}
    lab = scene._lab
    world, history = lab.world, lab.history.done
    if error is None:
        assert scene.add(paths.get(source, source), **kwargs).name == "cup"
        return
    with pytest.raises(error, match=words):
        scene.add(paths.get(source, source), **kwargs)
    assert lab.world is world and lab.history.done == history


@pytest.mark.parametrize("call", ["mj_forward", "mj_setState"])  # before the step, and in it
def test_a_world_in_which_mujoco_fails_is_not_shown(scene, cup, monkeypatch, call):
    """Let MuJoCo fail in the new world as it does without memory: one sentence, nothing lost."""
    lab, working = scene._lab, getattr(mujoco, call)

    def fail(model: mujoco.MjModel, *args: object) -> None:
        if mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, "cup/cup") >= 0:
            raise mujoco.FatalError("mj_stackAlloc: out of memory\n  max = 1")
        working(model, *args)

    before, world = lab.step(10), lab.world
    monkeypatch.setattr(mujoco, call, fail)
    with pytest.raises(CompileError, match="fails in the new world: .*memory max = 1.") as error:
        scene.add(cup)
    assert "\n" not in str(error.value) and lab.world is world and not lab.history.done
    assert lab.last_compile_error == str(error.value)
    assert lab.step(10).step == before.step + 10 and not lab.loop.fault


def test_two_edits_at_once_are_both_made(scene, cup):
    """Add from two threads: both items are there, and both can be undone."""
    lab = scene._lab
    threads = [threading.Thread(target=scene.add, args=(cup, f"cup{i}")) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {"cup0", "cup1", "cup2"} <= set(scene.items) and len(lab.history.done) == 3
    for _ in range(3):
        scene.undo()
    assert list(scene.items) == ["upper", "ball", "post", "floor"]


def test_fields_and_items_are_edited_at_once(scene, cup):
    """Set a mass, add cups and move the ball from three threads: all is there, and is undone."""
    lab = scene._lab
    before, names = copy.copy(lab.model), bytes(lab.model.names)
    masses = np.linspace(1.0, 2.0, 8).tolist()
    failed: list[BaseException] = []

    def run(action, values) -> None:
        try:
            for value in values:
                action(value)
        except BaseException as error:
            failed.append(error)

    jobs = [
        (lambda mass: lab.set_model("body:lower", "mass", mass), masses),
        (lambda name: scene.add(cup, name), ["a", "b", "c"]),
        (lambda x: scene.move("ball", pos=(x, 0.0, 1.0)), masses),
    ]
    threads = [threading.Thread(target=run, args=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and {"a", "b", "c"} <= set(scene.items)
    assert lab.model.body("lower").mass[0] == 2.0 and scene["ball"].pos == (2.0, 0.0, 1.0)
    assert np.isfinite(lab.step(5).qpos).all()
    while lab.history.done:
        scene.undo()
    assert bytes(lab.model.names) == names and not fields_that_differ(before, lab.model)


def test_a_driven_robot_is_removed_with_a_word(scene, cup):
    """Remove a robot that something controls: a note says so; undo brings it back."""
    scene.add(cup)
    scene._lab["cup"].take("policy")
    scene.remove("cup")
    assert scene.notes[0] == "the robot 'cup' is gone, and what controlled it ended"
    assert np.isfinite(scene._lab.step(5).qpos).all()
    scene.undo()
    assert "cup" in scene._lab.robots


@pytest.mark.slow
@pytest.mark.parametrize("file", ["unitree_g1/g1.xml", "unitree_go1/go1.xml", "i2rt_yam/yam.xml"])
def test_a_robot_goes_with_its_bodies(cup, file):
    """Remove all bodies of a robot's own file: its name goes, too; undo brings it back."""
    lab = LiveLab(world_from_file(robot_file(file)))
    robots, sources = dict(lab.robots), dict(lab.world.sources)
    (robot,) = robots
    try:
        lab.scene.add(cup, pos=(3.0, 0.0, 0.0))
        bodies = [i.name for i in lab.scene.items.values() if i.kind == "body"]
        lab.scene.add_prop(PropCfg.primitive("box", (0.1, 0.1, 0.1)), "crate", pos=(5.0, 0.0, 0.1))
        for name in bodies:
            assert robot in lab.robots
            lab.scene.remove(name)
        assert dict(lab.robots) == {"cup": "cup/"} and robot not in lab.world.sources
        assert np.isfinite(lab.step(5).qpos).all()
        lab.scene.remove("cup")
        assert not lab.robots and not list(lab.controls) and lab.step(5).time > 0.0
        for _ in range(len(bodies) + 1):
            lab.scene.undo()
        assert dict(lab.robots) == robots | {"cup": "cup/"} and "crate" in lab.scene.items
        assert lab.world.sources.items() >= sources.items() and lab.owner_of(1) == robot
    finally:
        lab.stop()


def test_a_robot_of_several_items_goes_with_its_actuators(tmp_path):
    """Remove the arm of a world with props: the rest is no robot, nor is a table without balls."""
    path = tmp_path / "cell.xml"
    path.write_text(ARM)
    lab = LiveLab(world_from_file(path))
    try:
        (robot,) = lab.robots
        lab.scene.remove("post")
        assert robot in lab.robots
        lab.scene.remove("upper")
        assert not lab.model.nactuator and not lab.robots
        lab.scene.undo()
        assert lab[robot].actuators.names
    finally:
        lab.stop()
    lab = LiveLab(world_from_spec(mujoco.MjSpec.from_string(SNOOKER), "balls"))
    try:
        lab.scene.remove("red")
        assert "balls" in lab.robots
        lab.scene.remove("white")
        assert not lab.robots
    finally:
        lab.stop()


@pytest.mark.parametrize(
    ("item", "count"),
    [("gymnasium/envs/mujoco/assets/ant.xml", 8), ("dm_control/suite/quadruped.xml", 12)],
)
def test_what_has_no_name_belongs_to_its_item(item, count):
    """Add a robot whose actuators or bodies have no names: they are its own, not the world's."""
    package, _, file = item.partition("/")
    root = pytest.importorskip(package).__path__[0]
    lab = LiveLab(world_from_file(robot_file("unitree_g1/g1.xml")))
    try:
        (robot,) = lab.robots
        own = lab.model.nbody
        added = lab.scene.add(f"{root}/{file}", pos=(3.0, 0.0, 0.0)).name
        assert [r.name for r in lab.controls] == [added]
        assert len(lab[added].actuators.ids) == count == lab.model.nactuator
        owners = [lab.owner_of(body) for body in range(1, lab.model.nbody)]
        assert owners == [robot] * (own - 1) + [added] * (lab.model.nbody - own)
        lab[added].write("panel", {lab[added].actuators.names[1]: 0.5})
        assert lab.step(3).ctrl[1] == 0.5
        assert lab.scene.rename(added, "spider").name == "spider"
        assert len(lab["spider"].actuators.ids) == count
        lab.scene.remove("spider")
        assert dict(lab.robots) == {robot: ""} and lab.model.nbody == own
    finally:
        lab.stop()


SNOOKER = """<mujoco><worldbody><geom name="cloth" type="plane" size="1 1 1"/>
  <body name="red" pos="0 0 1"><freejoint/><geom size=".1"/></body>
  <body name="white" pos="1 0 1"><freejoint/><geom size=".1"/></body>
</worldbody></mujoco>"""


def test_a_light_is_an_item(scene):
    """Add a light, move it, remove it (BE10)."""
    scene.add_light("lamp", pos=(0.0, 0.0, 2.0), dir=(0.0, 0.0, -1.0))
    assert scene["lamp"].kind == "light" and scene["lamp"].pos == (0.0, 0.0, 2.0)
    scene.move("lamp", pos=(1.0, 0.0, 2.0))
    light = scene._lab.model.light("lamp")
    assert light.pos.tolist() == [1.0, 0.0, 2.0] and np.allclose(light.dir, [0, 0, -1])
    scene.remove("lamp")
    assert scene._lab.model.nlight == 0
