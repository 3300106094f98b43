"""Worlds: what is merged, how it is named, what does not compile."""

from __future__ import annotations

import importlib.util
import struct
import threading
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
import pytest

from manyworlds.entity import EntityCfg, VariantEntityCfg
from manyworlds.lab import (
    CompileError,
    LiveLab,
    add_entities,
    world_from_file,
    world_from_scene,
    world_from_spec,
)
from manyworlds.lab.robots.control import controls_of
from manyworlds.lab.world.views import make_view
from manyworlds.scene import SceneCfg
from tests.lab.conftest import ARM
from tests.robots import robot_file

ROBOTS = (
    "unitree_g1/g1.xml",
    "unitree_go1/go1.xml",
    "i2rt_yam/yam.xml",
)
FULL = """
<mujoco model="full">
  <compiler angle="degree"/>
  {option}
  <default>
    <geom rgba=".1 .2 .3 1"/>
    <default class="thin"><geom type="capsule" size=".02"/></default>
  </default>
  <worldbody>
    <body name="base" pos="0 0 1">
      <freejoint name="root"/>
      <geom name="box" type="box" size=".1 .1 .1"/>
      <body name="link" pos=".1 0 0">
        <joint name="hip" axis="0 1 0" range="-90 90"/>
        <geom name="rod" class="thin" fromto="0 0 0 .2 0 0"/>
        <site name="end" pos=".2 0 0"/>
        <body name="tip" pos=".2 0 0">
          <joint name="knee" axis="0 1 0" range="-45 45"/>
          <geom name="ball" size=".03"/>
        </body>
      </body>
    </body>
    <frame pos="0 2 0" euler="0 0 90">
      <body name="stand" pos="1 0 0"><geom size=".1"/></body>
    </frame>
  </worldbody>
  <contact>
    <pair name="touch" geom1="box" geom2="ball"/>
    <exclude name="apart" body1="base" body2="link"/>
  </contact>
  <equality><joint name="same" joint1="hip" joint2="knee"/></equality>
  <tendon>
    <fixed name="sum"><joint joint="hip" coef="1"/><joint joint="knee" coef="1"/></fixed>
  </tendon>
  <actuator>
    <motor name="hip" joint="hip"/>
    <motor name="pull" tendon="sum"/>
  </actuator>
  <sensor>
    <tendonpos name="length" tendon="sum"/>
    <actuatorfrc name="effort" actuator="hip"/>
  </sensor>
  <keyframe><key name="bent" qpos="0 0 1 1 0 0 0 .5 .2"/></keyframe>
</mujoco>
"""


def entity(option: str = "", xml: str = FULL, **init) -> EntityCfg:
    """An entity with one of everything."""
    return EntityCfg(
        spec_fn=lambda: mujoco.MjSpec.from_string(xml.replace("{option}", option)),
        init_state=EntityCfg.InitialStateCfg(**init),
    )


def scene(**entities: EntityCfg) -> SceneCfg:
    """A scene of some entities."""
    return SceneCfg(entities=entities)


ROD = FULL[: FULL.index("    <frame")] + "  </worldbody></mujoco>"


def rod(option: str = "", **init) -> EntityCfg:
    """An entity of one free body with two joints."""
    return entity(option, ROD, **init)


def add(what: Callable[..., object], **kwargs) -> None:
    """Add an element, for specs' edits, which return nothing."""
    what(**kwargs)


def test_two_robots_of_one_file_are_two(tmp_path):
    """Attach a file twice: each has its own elements, in the order of the scene."""
    world = world_from_scene(scene(left=rod(), right=rod(pos=(0.0, 3.0, 0.0))))
    model = world.model
    names = [model.joint(i).name for i in range(model.njnt)]
    assert names == [f"{robot}/{j}" for robot in ("left", "right") for j in ("root", "hip", "knee")]
    assert list(world.robots) == ["left", "right"]
    assert np.allclose(model.joint("left/hip").range, [-np.pi / 2, np.pi / 2])  # were degrees
    with pytest.raises(ValueError, match="already attached"):
        child, parent = mujoco.MjSpec.from_string(ROD.replace("{option}", "")), mujoco.MjSpec()
        for prefix in "ab":
            parent.attach(child, prefix=f"{prefix}/", frame=parent.worldbody.add_frame())


def test_robots_stand_where_they_are_placed():
    """Place a robot and look where its root is, and what stood beside it in its file."""
    lab = LiveLab(world_from_scene(scene(bot=rod(pos=(1.0, 2.0, 3.0), rot=(0.0, 0.0, 0.0, 1.0)))))
    base = lab.view("body", "base")
    assert np.allclose(base.xpos, [1.0, 2.0, 3.0]) and np.allclose(base.xquat, [0, 0, 0, 1])
    assert np.allclose(lab.view("body", "bot/link").xpos, [0.9, 2.0, 3.0])
    lab.stop()


def test_everything_of_a_model_survives(tmp_path):
    """Put one of each kind into a scene as MuJoCo attaches it, and find it by its name."""
    child, parent = mujoco.MjSpec.from_string(FULL.replace("{option}", "")), mujoco.MjSpec()
    parent.attach(child, prefix="bot/", frame=parent.worldbody.add_frame(pos=[5, 0, 0]))
    world = world_from_spec(parent, "all")
    model, data = world.model, world.new_data()
    mujoco.mj_forward(model, data)
    kinds = {
        "equality": "same",
        "tendon": "sum",
        "actuator": "pull",
        "sensor": "length",
        "key": "bent",
        "pair": "touch",
        "exclude": "apart",
        "site": "end",
    }
    for kind, name in kinds.items():
        assert getattr(model, kind)(f"bot/{name}").id >= 0
    assert model.sensor("bot/effort").objid == model.actuator("bot/hip").id
    assert np.allclose(data.xpos[model.body("bot/stand").id], [5, 3, 0])  # of a frame at the root
    assert np.allclose(model.geom("bot/rod").rgba, [0.1, 0.2, 0.3, 1.0])  # of the class above
    assert model.ngeom == 4 and model.geom("bot/rod").size[0] == 0.02
    assert np.allclose(model.key("bot/bent").qpos[-2:], [0.5, 0.2])


def test_the_tree_is_that_of_the_file():
    """Compare bodies, their parents, joints and geoms of a robot in a scene with its file's."""
    alone = mujoco.MjModel.from_xml_path(robot_file("unitree_go1/go1.xml").as_posix())
    spec, parent = mujoco.MjSpec.from_file(str(robot_file("unitree_go1/go1.xml"))), mujoco.MjSpec()
    parent.attach(spec, prefix="go/", frame=parent.worldbody.add_frame())
    model = world_from_spec(parent).model
    for kind, count in (("body", alone.nbody), ("jnt", alone.njnt), ("actuator", alone.nu)):
        named = "joint" if kind == "jnt" else kind
        for i in range(kind == "body", count):
            name = getattr(alone, named)(i).name
            assert getattr(model, named)(i).name == (f"go/{name}" if name else "")
    assert np.array_equal(model.body_parentid, alone.body_parentid)
    assert np.array_equal(model.geom_bodyid, alone.geom_bodyid)


def test_the_same_scene_is_the_same_model():
    """Build a scene twice: to the byte, and its hash tells when it is another."""
    first, second = (world_from_scene(scene(a=rod(), b=rod())) for _ in range(2))
    blocks = [np.empty(mujoco.mj_sizeModel(world.model), np.uint8) for world in (first, second)]
    for world, block in zip((first, second), blocks, strict=True):
        mujoco.mj_saveModel(world.model, None, block)
    assert blocks[0].tobytes() == blocks[1].tobytes()
    assert first.model_hash == second.model_hash
    heavier = world_from_scene(
        scene(a=rod(), b=entity("", ROD.replace('size=".03"', 'size=".04"')))
    )
    assert heavier.model_hash != first.model_hash


def test_assets_come_from_memory():
    """Compile a texture and a mesh that no disk has."""
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)),)
    chunks += ((b"IDAT", zlib.compress(b"\0\xff\0\0")), (b"IEND", b""))
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    obj = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    xml = """<mujoco>
      <asset><texture name="t" type="2d" file="red.png"/><mesh name="m" file="m.obj"/></asset>
      <worldbody><body name="b"><geom type="mesh" mesh="m"/></body></worldbody></mujoco>"""
    spec = mujoco.MjSpec.from_string(xml, assets={"red.png": png, "m.obj": obj})
    world = world_from_spec(spec)
    assert world.model.nmeshvert == 4 and world.model.tex_data[:3].tolist() == [255, 0, 0]


def test_one_robots_options_count():
    """Let one robot of two set options: they count, and nobody complains."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        world = world_from_scene(
            scene(a=rod(), b=rod('<option timestep=".004" integrator="RK4" gravity="0 0 -1"/>'))
        )
    assert world.model.opt.timestep == 0.004 and world.model.opt.gravity[2] == -1.0
    assert world.model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
    assert world.option_sources == dict.fromkeys(("gravity", "integrator", "timestep"), "b")
    assert world.spec.compile().opt.timestep == 0.004


def test_robots_may_disagree_about_options():
    """Let two robots set different timesteps: one counts, and one warning says which and how."""
    cfg = scene(a=rod('<option timestep=".004"/>'), b=rod('<option timestep=".001" impratio="9"/>'))
    for priority, timestep in (((), 0.004), (("b",), 0.001)):
        with pytest.warns(UserWarning, match="timestep .* instead of") as caught:
            world = world_from_scene(cfg, priority=priority)
        assert len(caught) == 1 and world.model.opt.timestep == timestep
        assert world.model.opt.impratio == 9.0
    with pytest.raises(ValueError, match="priority names 'c', which is not in the scene: it has a"):
        world_from_scene(cfg, priority=("c",))


def test_classes_must_be_there():
    """Name a class before there is one: an error, also for specs that are built in Python."""
    spec = mujoco.MjSpec()
    assert spec.find_default("thin") is None
    spec.add_default("thin", spec.default)
    spec.find_default("thin").geom.size[0] = 0.3
    body = spec.worldbody.add_body(name="b")
    body.add_geom(spec.find_default("thin"), name="g")
    assert world_from_spec(spec).model.geom("g").size[0] == 0.3
    with pytest.raises(ValueError, match="unknown default class"):
        mujoco.MjSpec.from_string(ARM.replace('<geom size=".05"/>', '<geom class="thin"/>'))


def test_empty_robots_are_refused():
    """Put a model without bodies into a scene."""
    with pytest.raises(CompileError, match="Entity 'ghost'"):
        world_from_scene(scene(ghost=entity(xml="<mujoco><worldbody/></mujoco>")))


def test_a_broken_robot_can_be_left_out():
    """Put two robots that cannot be built beside a good one: refuse, or say why and go on."""
    bad = entity(
        xml=ROD.replace('range="-90 90"', 'range="9 9" limited="true"').replace("{option}", "")
    )
    cfg = scene(good=rod(), ghost=entity(xml="<mujoco/>"), bad=bad)
    with pytest.raises(CompileError):
        world_from_scene(cfg)
    lab = LiveLab(world_from_scene(cfg, on_error="skip"))
    assert list(lab.errors) == ["ghost", "bad"] and "range" in lab.errors["bad"]
    assert list(lab.world.robots) == ["good"] and lab.step().time > 0.0
    lab.stop()
    with pytest.raises(CompileError):  # what is wrong with the whole is nobody's fault
        cfg.spec_fn = lambda spec: add(spec.worldbody.add_body().add_joint)
        world_from_scene(cfg, on_error="skip")


def test_errors_name_the_element_and_the_robot():
    """Give a joint of one robot a bad range: the error names both, and no thread was begun."""
    threads = threading.active_count()
    bad = entity(
        xml=ROD.replace('range="-90 90"', 'range="9 9" limited="true"').replace("{option}", "")
    )
    with pytest.raises(CompileError, match="range") as caught:
        LiveLab(world_from_scene(scene(good=rod(), bad=bad)))
    assert caught.value.element == "bad/hip" and caught.value.entity == "bad"
    assert threading.active_count() == threads


def test_names_are_unique(tmp_path):
    """Give two bodies one name; add two props of one name, with and without leave to rename."""
    twice = ARM.replace('name="lower"', 'name="upper"')
    path = tmp_path / "twice.xml"
    path.write_text(twice)
    with pytest.raises(CompileError, match="repeated name 'upper'") as caught:
        world_from_file(path)
    assert caught.value.element == "upper"
    path.write_text(ARM.replace('type="capsule"', 'type="mesh" mesh="none"', 1))
    with pytest.raises(CompileError, match="mesh 'none' not found") as caught:
        world_from_file(path)
    assert str(caught.value).startswith(f"{path}: "), "the file is named"
    cfg = scene(box=rod())
    with pytest.raises(ValueError, match="has an entity 'box'"):
        add_entities(cfg, {"box": rod()})
    larger, names = add_entities(cfg, {"box": rod(), "ball": rod()}, rename=True)
    assert names == {"box": "box_1", "ball": "ball"} and list(cfg.entities) == ["box"]
    assert list(world_from_scene(larger).robots) == ["box", "box_1", "ball"]


def test_a_paused_world_has_contacts_and_sensors():
    """Open a world that stands still: what touches and what sensors say is known at once."""
    xml = ARM.replace('pos=".5 0 .3"', 'pos=".5 0 .049"')
    lab = LiveLab(world_from_spec(mujoco.MjSpec.from_string(xml)))
    assert lab.loop.data.ncon == 1 and np.isfinite(lab.snapshot.sensordata).all()
    assert lab.snapshot.time == 0.0 and np.allclose(lab.snapshot.site_xpos[0], [0.55, 0.0, 0.6])
    lab.stop()


@pytest.mark.parametrize("file", ROBOTS)
def test_views_have_mujocos_ids(file):
    """Look for all named elements of a robot, by their full names and without the prefix."""
    spec, parent = mujoco.MjSpec.from_file(str(robot_file(file))), mujoco.MjSpec()
    parent.attach(spec, prefix="bot/", frame=parent.worldbody.add_frame())
    world = world_from_spec(parent)
    world.robots = {"bot": "bot/"}
    model, data = world.model, world.new_data()
    counts = {"body": model.nbody, "geom": model.ngeom, "joint": model.njnt, "site": model.nsite}
    counts |= {"actuator": model.nu, "sensor": model.nsensor, "tendon": model.ntendon}
    looked = 0
    for kind, count in counts.items():
        for i in range(count):
            name = getattr(model, kind)(i).name
            if not name or name == "world":
                continue
            looked += 1
            for spelling in (name, name.removeprefix("bot/")):
                view = make_view(model, data, kind, spelling, world.robots)
                assert (view.id, view.name) == (i, name)
                kind_id = getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
                assert view.id == mujoco.mj_name2id(model, kind_id, name)
    assert looked > 20


def test_bodies_have_owners():
    """Ask whose each body is; the world and what belongs to no robot are nobody's."""
    cfg = scene(go=rod(), go2=rod())
    cfg.spec_fn = lambda spec: add(
        spec.worldbody.add_body(name="stone").add_geom, size=[0.1, 0.0, 0.0]
    )
    lab = LiveLab(world_from_scene(cfg))
    owners = [lab.owner_of(body) for body in range(lab.world.model.nbody)]
    names = [lab.world.model.body(body).name for body in range(lab.world.model.nbody)]
    expected = {"world": None, "stone": None}
    assert owners == [expected.get(name, name.partition("/")[0]) for name in names]
    assert owners.count("go") == owners.count("go2") == 3
    lab.stop()


SUITE = ("walker", "quadruped", "humanoid", "dog", "cheetah", "manipulator", "fish")


@pytest.mark.parametrize(
    ("file", "name"),
    [(ROBOTS[0], "g1_29dof_rev_1_0"), (ROBOTS[1], "go1"), (ROBOTS[2], "yam_v0")],
)
def test_a_robot_has_the_name_of_its_model(file, name):
    """Open third-party robots, from the file and as a spec: the name is that of the model."""
    assert world_from_file(robot_file(file)).robots == {name: ""}
    spec = mujoco.MjSpec.from_file(str(robot_file(file)))
    assert world_from_spec(spec).robots == {name: ""}
    assert world_from_file(robot_file(file), name="bob").robots == {"bob": ""}


@pytest.mark.parametrize("file", SUITE)
def test_robots_of_the_suite_have_their_names(file):
    """Open robots of dm_control: no robot has the name of its root body."""
    package = importlib.util.find_spec("dm_control")
    if package is None or not package.submodule_search_locations:
        pytest.skip("needs dm_control")
    path = Path(package.submodule_search_locations[0]) / "suite" / f"{file}.xml"
    (name,) = world_from_file(path).robots
    assert name == {"walker": "planar_walker", "manipulator": "planar_manipulator"}.get(file, file)


def test_a_model_without_a_name(tmp_path):
    """Open a model without a name: a file gives it that of the file."""
    (tmp_path / "rig.xml").write_text(ROD.replace("{option}", "").replace(' model="full"', ""))
    assert world_from_file(tmp_path / "rig.xml").robots == {"rig": ""}
    spec = mujoco.MjSpec.from_file(str(tmp_path / "rig.xml"))
    assert world_from_spec(spec).robots == {"robot": ""}


@pytest.mark.slow
@pytest.mark.parametrize("file", ROBOTS)
def test_prefixes_are_names_of_robots(file, tmp_path):
    """Attach a robot twice, in Python and in a file: each prefix names a robot."""
    spec, parent = mujoco.MjSpec.from_file(str(robot_file(file))), mujoco.MjSpec()
    root = spec.worldbody.first_body()
    spec.add_actuator(name="motor", target=spec.joints[-1].name).trntype = mujoco.mjtTrn.mjTRN_JOINT
    for prefix in ("left/", "right/"):
        parent.attach(spec.copy(), prefix=prefix, frame=parent.worldbody.add_frame())
    world = world_from_spec(parent)
    assert world.robots == {"left": "left/", "right": "right/"}
    assert [robot.name for robot in controls_of(world, world.new_data())] == ["left", "right"]
    assert world_from_spec(parent, robots={"L": "left/"}).robots == {"L": "left/"}
    with pytest.raises(ValueError, match="No element has the prefix 'up/' of the robot 'up'"):
        world_from_spec(parent, robots={"up": "up/"})
    two = tmp_path / "two.xml"
    attach = f'<attach model="m" body="{root.name}" prefix="'
    two.write_text(
        f'<mujoco><asset><model name="m" file="{robot_file(file)}"/></asset><worldbody>'
        f'{attach}left_"/><frame pos="0 2 0">{attach}right_"/></frame></worldbody></mujoco>'
    )
    assert world_from_file(two).robots == {"left": "left_", "right": "right_"}


@pytest.mark.parametrize(
    ("assignment", "radius"), [(None, 0.1), ({"small": 0.0}, 0.2), ([1, 0], 0.2), ([2], 0.1)]
)
def test_variants_are_those_of_the_first_world(assignment, radius):
    """Build a scene whose object differs between worlds: the model has one of them, whole."""

    def ball(size: float) -> Callable[[], mujoco.MjSpec]:
        body = f"<body><freejoint/><geom size='{size}'/></body>"
        xml = f"<mujoco><worldbody>{body}</worldbody></mujoco>"
        return lambda: mujoco.MjSpec.from_string(xml)

    variants = {"small": ball(0.1), "large": ball(0.2), "none": None}
    ball_cfg = VariantEntityCfg(variants=variants, assignment=assignment)
    model = world_from_scene(SceneCfg(entities={"ball": ball_cfg})).model
    assert model.geom_size[model.geom_bodyid > 0, 0].tolist() == [radius]
    alone = world_from_scene(SceneCfg(entities={"ball": EntityCfg(spec_fn=ball(radius))})).model
    assert model.body_mass.tolist() == alone.body_mass.tolist()
