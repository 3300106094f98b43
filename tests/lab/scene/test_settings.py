"""Parts whose files have compiler settings and options of their own."""

from __future__ import annotations

import mujoco
import pytest

from manyworlds.entity import PropCfg
from manyworlds.lab import LiveLab, world_from_file, world_from_spec
from tests.lab.scene.test_editor import fields_that_differ
from tests.spec.parity import find_model

FLOOR = "<mujoco><worldbody><geom name='floor' type='plane' size='5 5 1'/></worldbody></mujoco>"


@pytest.mark.parametrize(
    ("path", "item"),
    [
        ("gymnasium:envs/mujoco/assets/ant.xml", "torso"),  # inertiafromgeom
        ("gymnasium:envs/mujoco/assets/pusher.xml", "r_shoulder_pan_link"),
        ("dm_control:suite/walker.xml", "torso"),  # a timestep of its own
    ],
)
def test_other_peoples_worlds_are_saved_exactly(path, item, tmp_path, recwarn):
    """Add a prop and a copy to worlds with settings of their own: files give the same model."""
    lab = LiveLab(world_from_file(find_model(path)))
    before = {name: lab.scene.pose(name) for name in lab.scene.items}
    lab.scene.add_prop(PropCfg.primitive("box", (0.1, 0.1, 0.1)), "crate", pos=(0.0, 2.0, 1.0))
    lab.scene.duplicate(item, "twin", pos=(0.0, 4.0, 1.0))
    lab.set_model("body:crate/prop", "mass", 2.5)
    folder = lab.scene.save(tmp_path / "room")
    loaded = mujoco.MjModel.from_xml_path(str(folder / "scene.xml"))
    live = lab.world.spec.copy().compile()
    assert live.body("crate/prop").mass[0] == 2.5 and not fields_that_differ(live, loaded)
    assert not [str(warning.message) for warning in recwarn] and before.keys() < {*lab.scene.items}
    lab.stop()


def test_settings_of_parts_stay_where_they_matter(tmp_path, recwarn):
    """Attach a body whose inertia is not that of its geoms to a world that takes it from them.

    One file cannot have both settings: it has the inertias instead.
    """
    weight = """<mujoco><worldbody><body name="b"><freejoint/><geom size=".1"/>
    <inertial pos="0 0 .1" mass="3" diaginertia=".1 .1 .1"/></body></worldbody></mujoco>"""
    world = mujoco.MjSpec.from_string(FLOOR)
    world.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
    lab = LiveLab(world_from_spec(world))
    lab.scene.add(mujoco.MjSpec.from_string(weight), "weight")
    assert lab.model.body("weight/b").mass[0] == 3.0
    assert lab.call("save_scene", folder=tmp_path / "room")["notes"] == []
    loaded = mujoco.MjModel.from_xml_path(str(tmp_path / "room" / "scene.xml"))
    assert not fields_that_differ(lab.world.spec.copy().compile(), loaded)
    assert not [str(warning.message) for warning in recwarn]
    lab.stop()


def test_saving_says_what_a_file_cannot_express(tmp_path):
    """Attach a free joint with damping that its part aligns: say it where the user looks."""
    ball = """<mujoco><compiler alignfree="true"/><worldbody><body name="b">
    <joint type="free" damping=".1"/><geom size=".1" pos="0 .1 0"/></body></worldbody></mujoco>"""
    lab = LiveLab(world_from_spec(mujoco.MjSpec.from_string(FLOOR)))
    lab.scene.add(mujoco.MjSpec.from_string(ball), "ball")
    with pytest.warns(UserWarning, match="six digits"):
        reply = lab.call("save_scene", folder=tmp_path / "room")
    assert ["six digits" in note for note in reply["notes"]] == [True]
    lab.scene.remove("ball")
    assert lab.call("save_scene", folder=tmp_path / "room")["notes"] == []
    lab.stop()


def test_skins_of_files_belong_to_their_robot():
    """Copy a prop beside a rodent, whose skin is in a file, and remove the rodent with its skin."""
    lab = LiveLab(world_from_file(find_model("dm_control:locomotion/walkers/assets/rodent.xml")))
    (skin,) = (lab.model.skin(i).name for i in range(lab.model.nskin))
    lab.scene.add_prop(PropCfg.primitive("box", (0.1, 0.1, 0.1)), "crate", pos=(0.0, 2.0, 1.0))
    lab.scene.duplicate("torso", "twin", pos=(0.0, 4.0, 0.5))
    lab.scene.grid("crate", 1, 3)
    assert [lab.model.skin(i).name for i in range(lab.model.nskin)] == [skin, f"twin/{skin}"]
    lab.scene.remove("torso")
    assert lab.model.nskin == 1 and {"crate_2", "twin"} <= {*lab.scene.items}
    lab.scene.undo()
    assert lab.model.nskin == 2 and not lab.loop.fault
    lab.stop()
