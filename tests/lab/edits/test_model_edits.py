"""Tests of edits of fields of the model while the world runs."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import gymnasium
import mujoco
import numpy as np
import pytest

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.lab import LabCfg, LiveLab, world_from_file, world_from_spec
from manyworlds.lab.edits.editable_fields import (
    EDITABLE,
    EditableField,
    applies,
    field_table,
    number_of,
)
from manyworlds.lab.verbs import VerbError
from manyworlds.tasks import load_env_cfg
from tests.robots import robot_file

DOCS = Path(__file__).resolve().parents[3] / "docs" / "lab.md"
STATISTICS = ("meaninertia", "meanmass", "meansize", "extent", "center")
MODEL = """
<mujoco model="bench">
  <compiler angle="degree" {compiler}/>
  <asset>
    <material name="red" rgba="1 0 0 1"/>
    <material name="blue" rgba="0 0 1 1"/>
    <mesh name="wedge" vertex="0 0 0  .3 0 0  0 .2 0  0 0 .1  .3 .2 .1"/>
  </asset>
  <worldbody>
    <light name="lamp" pos="0 0 3" dir="0 1 -1"/>
    <frame pos="0 0 .5" euler="0 0 40">
      <body name="upper" pos=".1 0 0" euler="0 30 0">
        <joint name="shoulder" axis="0 1 0" range="-60 80" damping=".2" springdamper=".1 .7"/>
        <geom name="arm" type="capsule" fromto="0 0 0 .3 0 .1" size=".03" material="red"/>
        <frame pos=".1 0 0" axisangle="1 0 0 30">
          <geom name="blade" type="mesh" mesh="wedge" pos="0 .2 0" euler="10 20 30"/>
          <site name="tip" pos=".05 0 0" size=".02"/>
          <camera name="eye" pos="0 0 .2" euler="5 0 0"/>
        </frame>
        <body name="cup" pos=".3 0 .1">
          <joint name="lift" type="slide" axis="0 0 1" range="0 .2" armature=".01"/>
          <geom name="rim" type="box" size=".1 .1 .02" density="500"/>
        </body>
      </body>
    </frame>
    <body name="ball" pos="1 0 1"><freejoint/><geom name="ball" size=".1"/></body>
  </worldbody>
  <tendon><spatial name="rope"><site site="tip"/><geom geom="ball"/></spatial></tendon>
  <actuator>
    <position name="servo" joint="shoulder" kp="20" dampratio="1" inheritrange="1"/>
    <velocity name="wheel" joint="lift" kv="3"/>
    <motor name="push" joint="lift" gear="2"/>
  </actuator>
  <sensor><jointpos name="angle" joint="shoulder"/></sensor>
</mujoco>
""".replace(
    '<site site="tip"/><geom geom="ball"/>', '<site site="tip"/><site site="tip2"/>'
).replace('<geom name="ball" size=".1"/>', '<geom name="ball" size=".1"/><site name="tip2"/>')


def bench(compiler: str = "") -> LiveLab:
    """Return a paused lab of `MODEL`."""
    spec = mujoco.MjSpec.from_string(MODEL.format(compiler=compiler))
    return LiveLab(world_from_spec(spec), LabCfg(start_paused=True))


@pytest.fixture
def lab():
    """A lab of a model with frames, degrees, a mesh, inferred inertias, and derived gains."""
    lab = bench()
    lab.step(5)
    yield lab
    lab.stop()


def arrays(model: mujoco.MjModel) -> dict[str, np.ndarray]:
    """Return copies of all arrays of a model, by name."""
    names = [name for name in dir(model) if not name.startswith("_")]
    found = {name: getattr(model, name) for name in names}
    return {name: value.copy() for name, value in found.items() if isinstance(value, np.ndarray)}


def differences(model: mujoco.MjModel, other: mujoco.MjModel) -> list[str]:
    """Return the names of what two models differ in, to the last bit."""
    ours, theirs = arrays(model), arrays(other)
    found = [name for name in ours if ours[name].tobytes() != theirs[name].tobytes()]
    stats = ((getattr(m.stat, name) for m in (model, other)) for name in STATISTICS)
    return found + [n for n, pair in zip(STATISTICS, stats, strict=True) if not same(*pair)]


def same(one: object, other: object) -> bool:
    """Return True if two values are equal."""
    return np.array_equal(np.asarray(one), np.asarray(other))


def changed(what: EditableField, model: mujoco.MjModel, id: int) -> object:
    """Return a valid value that differs from the present one."""
    if what.reference:
        return next(n for n in what.names_of(model) if n != what.present(model, id))
    present = what.read(model, id)
    factors = 1.0 + 0.1 * np.arange(1, len(present) + 1)
    if what.rule == "order":
        return [present[0] - 0.01, present[1] + 0.02]
    if what.rule in ("quat", "direction"):
        return present + 0.1 * factors
    if what.rule == "triangle":
        return present * 1.3
    if what.rule == "solref":
        return [0.03, 0.9]
    if what.name.startswith("solimp"):
        return [0.8, 0.9, 0.002, 0.4, 3.0]
    if what.whole:
        return 1 if present[0] != 1 else 3
    if what.high == 1.0:
        return 0.9 - 0.1 * factors
    return present * factors + 0.01 if what.name != "fovy" else 33.0


def each_field(lab: LiveLab) -> list[tuple[str, EditableField, int]]:
    """Return each field with the last element that has it."""
    found = []
    for kind, fields in EDITABLE.items():
        for what in fields.values():
            ids = [i for i in range(number_of(lab.model, kind)) if applies(what, lab.model, i)]
            found += [(lab.edits.label_of((kind, i)), what, i) for i in ids[-1:]]
    return found


def foreign(name: str) -> Path:
    """Return the file of a model that others have written."""
    if "/" in name:
        return robot_file(name)
    if name.startswith("dm_"):
        found = importlib.util.find_spec("dm_control")
        assert found is not None and found.origin is not None
        return Path(found.origin).parent / "suite" / name.removeprefix("dm_")
    return Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / name


@pytest.mark.parametrize(
    ("name", "share"),  # models with textures and meshes take long to compile
    [("", 1), ("humanoid.xml", 2), ("dm_cheetah.xml", 29), ("unitree_go1/go1.xml", 31)],
)
@pytest.mark.filterwarnings("ignore:.*settotalmass")
def test_each_field_equals_what_mujoco_compiles(name, share):
    """After each edit, the live model is the one that the spec compiles to, to the last bit."""
    lab = LiveLab(world_from_file(foreign(name)), LabCfg(start_paused=True)) if name else bench()
    lab.step(3)
    state, tested = lab.snapshot.qpos, 0
    for element, what, id in each_field(lab)[::share]:
        value, before = changed(what, lab.model, id), what.present(lab.model, id)
        first = lab.world.spec.copy().compile()
        assert lab.set_model(element, what.name, value) == what.present(lab.model, id)
        assert what.present(lab.model, id) != before, (element, what.name)
        assert not differences(lab.model, lab.world.spec.copy().compile()), (element, what.name)
        lab.history.undo()
        assert not differences(lab.model, first), ("undo", element, what.name)
        tested += 1
    assert tested > 35 / share
    assert np.array_equal(lab.snapshot.qpos, state)
    lab.step(3)
    assert not lab.loop.fault
    lab.stop()


@pytest.mark.parametrize(
    ("element", "field", "value", "old", "new"),
    [
        ("geom:rim", "size", [0.2, 0.1, 0.03], 'size=".1 .1 .02"', 'size=".2 .1 .03"'),
        ("joint:lift", "range", [-0.1, 0.3], 'range="0 .2"', 'range="-.1 .3"'),
        ("joint:lift", "armature", 0.5, 'armature=".01"', 'armature=".5"'),
        ("body:ball", "pos", [2, 0, 1], 'pos="1 0 1"', 'pos="2 0 1"'),
        ("actuator:push", "gear", 3.0, 'gear="2"', 'gear="3"'),
        ("actuator:servo", "kp", 45.0, 'kp="20"', 'kp="45"'),
        ("actuator:wheel", "kv", 4.0, 'kv="3"', 'kv="4"'),
        ("geom:arm", "material", "blue", 'material="red"', 'material="blue"'),
        (
            "material:red",
            "rgba",
            [0, 1, 0, 1],
            'name="red" rgba="1 0 0 1"',
            'name="red" rgba="0 1 0 1"',
        ),
    ],
)
def test_an_edit_is_that_of_the_file(lab, element, field, value, old, new):
    """An edit gives what MuJoCo makes of a file with that value: masses and gains follow."""
    text = MODEL.format(compiler="")
    assert text.count(old) == 1
    lab.set_model(element, field, value)
    reference = mujoco.MjModel.from_xml_string(text.replace(old, new))
    found = [n for n in differences(lab.model, reference) if n not in STATISTICS]
    ours, theirs = arrays(lab.model), arrays(reference)
    assert all(np.allclose(ours[n], theirs[n], rtol=1e-12, atol=1e-14) for n in found), found


def test_edits_are_saved(lab, tmp_path):
    """A saved world has the edits in plain MuJoCo, and so has one that is built again."""
    lab.set_model("joint:shoulder", "range", [-0.5, 0.7])
    lab.set_model("body:cup", "mass", 2.5)
    lab.set_model("geom:blade", "pos", [0.3, 0.1, 0.2])
    lab.set_model("geom:arm", "rgba", [0.1, 0.2, 0.3, 1.0])
    lab.dump(tmp_path / "saved")
    loaded = mujoco.MjModel.from_xml_path(str(tmp_path / "saved" / "scene.xml"))
    rebuilt = world_from_spec(lab.world.spec.copy())
    lab.rebuild(rebuilt)
    for model, error in ((loaded, 1e-5), (lab.model, 1e-7)):  # MuJoCo writes few digits
        assert model.body("cup").mass[0] == 2.5
        np.testing.assert_allclose(model.joint("shoulder").range, [-0.5, 0.7], rtol=error)
        np.testing.assert_allclose(model.geom("blade").pos, [0.3, 0.1, 0.2], rtol=error)
        np.testing.assert_allclose(model.geom("arm").rgba, [0.1, 0.2, 0.3, 1.0], rtol=error)


@pytest.mark.parametrize(
    "compiler",
    ['inertiafromgeom="true"', 'settotalmass="7"', 'boundmass=".5"', 'balanceinertia="true"'],
)
@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_masses_where_the_compiler_changes_them(compiler):
    """A mass stays as it is set, and those of other bodies stay, whatever the compiler does."""
    lab = bench(compiler)
    before = lab.model.body_mass.copy()
    lab.set_model("body:cup", "mass", 0.3)
    cup = lab.model.body("cup").id
    before[cup] = 0.3
    np.testing.assert_allclose(lab.model.body_mass, before, rtol=1e-12)
    assert not differences(lab.model, lab.world.spec.copy().compile())
    lab.history.undo()
    assert not differences(
        lab.model, mujoco.MjModel.from_xml_string(MODEL.format(compiler=compiler))
    )
    lab.stop()


def test_drags_are_undone_together(lab):
    """Edits of one field that follow each other are one step of the history."""
    before = lab.model.geom("arm").rgba.copy()
    for red in (0.1, 0.2, 0.3):
        lab.set_model("geom:arm", "rgba", [red, 0, 0, 1])
    assert lab.history.done == ("set rgba of geom:arm",)
    assert lab.call("undo")["label"] == "set rgba of geom:arm"
    np.testing.assert_array_equal(lab.model.geom("arm").rgba, before)
    lab.call("redo")
    assert lab.model.geom("arm").rgba[0] == np.float32(0.3)


def test_the_model_gets_a_new_version(lab):
    """Readers in other processes are told that the model changed."""
    version = lab.snapshot.model_version
    lab.call("set_model", element="geom:arm", field="rgba", value=[0, 0, 1, 1])
    assert lab.snapshot.model_version == version + 1


def test_back_to_the_models_values(lab):
    """Fields know the compiled value, and go back to it, one or all."""
    lab.set_model("joint:lift", "armature", 0.4)
    lab.set_model("joint:lift", "frictionloss", 0.2)
    fields = {f["name"]: f for f in lab.edits.read("joint:lift")}
    assert (fields["armature"]["value"], fields["armature"]["model_value"]) == (0.4, 0.01)
    assert lab.call("reset_model", element="joint:lift")["fields"] == ["armature", "frictionloss"]
    assert lab.model.joint("lift").armature[0] == 0.01
    fields = lab.edits.read("joint:lift")
    assert all(field["value"] == field["model_value"] for field in fields)


@pytest.mark.parametrize(
    ("element", "field", "value", "text"),
    [
        ("body:cop", "mass", 1.0, "There is no body 'cop'; did you mean 'cup'?"),
        ("bodi:cup", "mass", 1.0, "did you mean 'body'"),
        ("cup", "mass", 1.0, "'KIND:NAME'"),
        ("body:cup", "mas", 1.0, "did you mean 'mass'"),
        ("body:cup", "mass", 0.0, "must be above 0 kg, got 0"),
        ("body:cup", "mass", float("nan"), "must be finite"),
        ("body:cup", "mass", [1.0, 2.0], r"must be one number, got 1 2 \(2\)"),
        ("body:cup", "mass", "heavy", "must be numbers, got 'heavy'"),
        ("body:cup", "inertia", [1.0, 1.0, 3.0], "triangle inequality"),
        ("body:cup", "quat", [0, 0, 0, 0], "must not be zero"),
        ("body:world", "mass", 1.0, "it is the world"),
        ("joint:lift", "range", [0.3, 0.1], "low end below its high end"),
        ("joint:lift", "solreflimit", [0.02, -1.0], "both above 0"),
        ("geom:arm", "rgba", [2, 0, 0, 1], "from 0 to 1"),
        ("geom:arm", "material", "blu", "did you mean 'blue'"),
        ("geom:arm", "size", [0.0, 0.1], "above 0 m"),
        ("geom:arm", "condim", 2, "1, 3, 4 or 6"),
        ("geom:blade", "size", [1, 1, 1], "comes from its mesh"),
        ("geom:arm", "type", 2, "cannot change while the world runs: .*rebuild"),
        ("geom:arm", "mass", 2, "set 'mass' of its body"),
        ("actuator:push", "kp", 2, "no position or velocity actuator"),
    ],
)
def test_wrong_edits(lab, element, field, value, text):
    """A wrong edit changes nothing, and one sentence says why."""
    before = arrays(lab.model)
    with pytest.raises((ValueError, KeyError), match=text):
        lab.set_model(element, field, value)
    with pytest.raises(VerbError, match=text) as refusal:
        lab.call("set_model", element=element, field=field, value=value)
    unknown = element == "body:cop"
    assert refusal.value.code == ("unknown_element" if unknown else "bad_value")
    assert str(refusal.value)[-1] in ".?"
    assert all(
        same(value, before[name])
        for name, value in arrays(lab.model).items()
        if value.dtype != float or np.isfinite(value).all()
    )
    assert not lab.history.done


def test_names_and_types_of_the_file(lab):
    """The lab knows what each actuator was written as, and the names in the robots' files."""
    assert lab.world.actuator_types == ["position", "velocity", "motor"]
    lab.set_model("actuator:servo", "gainprm", [7.0])
    assert lab.call("read_element", element="actuator:servo")["type"] == "position"
    assert lab.call("read_element", element="joint:lift")["type"] == "slide"
    robot = next(iter(lab.controls)).name
    assert lab.call("read_robot", robot=robot)["types"] == ["position", "velocity", "motor"]


def test_names_of_the_robots_files():
    """Tell the name that each element has in its robot's file, and the file."""
    world = world_from_file(robot_file("unitree_go1/go1.xml"))
    world.robots, world.sources = {"go1": "FR_"}, {"go1": "go1.xml"}
    lab = LiveLab(world)
    names = {name["name"]: name for name in lab.call("read_names", kind="joint")["names"]}
    hip = names["FR_hip_joint"]
    assert (hip["robot"], hip["original"], hip["source"]) == ("go1", "hip_joint", "go1.xml")
    assert names["FL_hip_joint"]["robot"] == "" and len(names) == lab.model.njnt
    unnamed = [g for g in lab.call("read_names", kind="geom")["names"] if not g["name"]]
    of_body = lab.world.elements.owners["body"]
    assert unnamed
    for geom in unnamed:
        assert geom["robot"] == (of_body[lab.model.geom_bodyid[geom["id"]]] or "")
    lab.stop()


def test_an_edit_that_changes_the_structure(lab):
    """An edit after which the mass matrix has other zeros goes through a rebuild."""
    time = lab.snapshot.time
    lab.set_model("body:ball", "gravcomp", 1.0)
    assert (lab.snapshot.time, lab.model.body_gravcomp[-1]) == (time, 1.0)
    assert not differences(lab.model, lab.world.spec.copy().compile())
    lab.history.undo()
    assert lab.model.body_gravcomp[-1] == 0.0


@pytest.fixture(scope="module")
def batch():
    """A batch of three worlds with randomization."""
    cfg = load_env_cfg("Velocity-Flat-Quadruped")
    cfg.scene.num_envs = 3
    env = ManagerBasedRlEnv(cfg, device="cpu")
    env.reset()
    yield env
    env.close()


def test_edits_of_a_world_that_a_task_drives(batch):
    """Edits survive steps and resets of the task, and leave the batch and other rows alone."""
    friction = batch.sim.model.geom_friction.clone()
    spec = batch.scene.spec
    with LiveLab.walk_into(batch, 1, cfg=LabCfg(start_paused=True)) as lab:
        foot = lab.edits.find("geom:FR_foot_collision")[1]
        others = lab.model.geom_friction.copy()
        lab.set_model("body:trunk", "mass", 9.0)
        lab.set_model("geom:FR_foot_collision", "friction", [2.0])
        lab.set_model("joint:FR_hip_joint", "range", [-0.2, 0.2])
        for _ in range(2):
            lab.step(6)
            assert lab.model.body("robot/trunk").mass[0] == 9.0
            assert lab.model.geom_friction[foot, 0] == 2.0
            np.testing.assert_array_equal(
                np.delete(lab.model.geom_friction, foot, 0), np.delete(others, foot, 0)
            )
            env = lab.environment.env
            assert float(env.sim.model.body_mass[0, lab.edits.find("body:trunk")[1]]) == 9.0
            lab.reset()
        assert not lab.loop.fault
        lab.history.undo()
        lab.step(4)
        assert lab.world.spec is not spec
        assert lab.call("describe_world")["batch"]["env_id"] == 1
    assert (batch.sim.model.geom_friction == friction).all()


def test_the_table_is_in_the_documentation():
    """The table of `docs/lab.md` is that of the fields."""
    lines = [" | ".join(["", *row, ""]).strip() for row in field_table()]
    text = DOCS.read_text()
    missing = [line for line in lines if line not in text]
    assert not missing, missing[0]
