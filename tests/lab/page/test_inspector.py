"""The inspector, the gizmo, joint poses and the card of a world, without a browser."""

from __future__ import annotations

import numpy as np
import pytest

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.lab import LabCfg, LiveLab
from manyworlds.tasks import load_env_cfg
from tests.browser import free_port
from tests.lab.page.conftest import give, press
from tests.lab.page.test_page import iterate_once


@pytest.fixture
def page(open_page):
    """A page of the arm, paused."""
    page = open_page(start_paused=True)
    page.context.select("body", 2)
    iterate_once(page)
    return page


def looks(page) -> float:
    """Return the red that the page draws the forearm with."""
    model = page.context.view.grid._model
    return float(model.geom("forearm").rgba[0])


def test_fields_are_shown_and_edited(page):
    """Edit a mass: the model has it, the field is marked; go back: the mark is gone."""
    part, model = page.parts["InspectorPart"], page.lab.model
    before = float(model.body_mass[2])
    mass = part.fields["mass"].handles[0]
    assert part.folder.visible and mass.value == pytest.approx(before)
    give(mass, 2.5)
    iterate_once(page)
    assert model.body_mass[2] == 2.5
    assert mass.label == "mass [kg] *" and "mass" in part.note.content
    press(part.back)
    iterate_once(page)
    assert model.body_mass[2] == before
    assert mass.label == "mass [kg]" and not part.back.visible


def test_wrong_values_are_told(page):
    """Enter a negative mass: one sentence tells why, and the model keeps its own."""
    part, before = page.parts["InspectorPart"], page.lab.model.body_mass.copy()
    give(part.fields["mass"].handles[0], -1.0)
    assert "must be above 0 kg, got -1" in page.context.message
    np.testing.assert_array_equal(page.lab.model.body_mass, before)


def test_edits_are_drawn(page):
    """Find a geom, change its color: it is drawn so; Ctrl-Z takes it back."""
    tree, part = page.parts["TreePart"], page.parts["InspectorPart"]
    give(tree.filter, "forearm")
    page.context.select("geom", page.lab.model.geom("forearm").id)
    iterate_once(page)
    assert page.context.body == 2 and "Geom forearm (capsule)" in part.folder.label
    give(part.fields["rgba"].handles[0], (204, 0, 0, 255))
    page.context.view._next_look = 0.0
    iterate_once(page)
    assert page.lab.model.geom("forearm").rgba[0] == looks(page) == np.float32(0.8)
    page.keys.actions["ctrl+Z"]()
    page.context.view._next_look = 0.0
    iterate_once(page)
    assert looks(page) == 0.5 and page.context.note == "undone: set rgba of geom:forearm"


PAINTED = """<mujoco><asset><material name="paint" rgba="1 0 0 1"/></asset><worldbody>
  <body name="a"><geom size=".1" material="paint"/></body>
  <body name="b" pos="1 0 0"><freejoint/><geom type="box" size=".1 .1 .1" material="paint"/></body>
</worldbody></mujoco>"""


def test_an_edit_of_a_material_colors_all_its_geoms(open_page):
    """Color a material that two geoms share: both are drawn so, and again after Ctrl-Z."""
    from manyworlds.viewer.browser.geom_meshes import merge_geoms

    page = open_page(PAINTED, start_paused=True)
    page.context.select("material", 0)
    iterate_once(page)

    def colors() -> set[tuple[bool, ...]]:
        """Return which of red, green and blue the geoms have."""
        page.context.view._next_look = 0.0
        iterate_once(page)
        model = page.context.view.grid._model
        meshes = [merge_geoms(model, [geom]) for geom in range(2)]
        return {tuple((mesh.visual.vertex_colors[0][:3] > 0).tolist()) for mesh in meshes}

    assert colors() == {(True, False, False)}
    give(page.parts["InspectorPart"].fields["rgba"].handles[0], (0, 255, 0, 255))
    assert colors() == {(False, True, False)}
    page.keys.actions["ctrl+Z"]()
    assert colors() == {(True, False, False)} and not page.errors


def test_edits_before_the_first_frame_are_drawn(page):
    """Edit a color between the creation of the drawing and its first frame: it is drawn."""
    from manyworlds.lab.page.world_view import WorldView

    view = WorldView(page.server, page.lab.model, page.lab.snapshot, page.context.view)
    page.lab.set_model(("geom", "forearm"), "rgba", (0.8, 0.0, 0.0, 1.0))
    view.update(page.lab.snapshot)
    assert view.grid._model.geom("forearm").rgba[0] == np.float32(0.8)


SHINY = """<mujoco><asset>
  <texture name="t" type="2d" builtin="checker" rgb1="0 0 0" rgb2="1 1 1" width="8" height="8"/>
  <material name="checks" texture="t"/><material name="blue" rgba="0 0 1 0.5"/>
</asset><worldbody>
  <geom name="floor" type="plane" size="5 5 .1" {material}/><body><geom size=".1"/></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize("material", ["", 'material="blue"', 'material="checks"'])
def test_edits_of_the_ground_are_drawn(open_page, material):
    """Color and lower the floor, plain, of a material and with a texture: it is drawn so."""
    page = open_page(SHINY.format(material=material), start_paused=True)
    page.update()
    view = page.context.view
    if "blue" in material:
        node = view.grid.ground._node
        assert tuple(node.plane_color) == (0, 0, 255) and node.plane_opacity == 0.5
    before = view.grid.ground._node
    page.lab.set_model(("geom", "floor"), "rgba", (1.0, 0.0, 0.0, 1.0))
    page.lab.set_model(("geom", "floor"), "pos", (0.0, 0.0, -1.0))
    view._next_look = 0.0
    page.update()
    node = view.grid.ground._node
    assert view.grid.ground.height == node.position[2] < -1.0
    if "checks" in material:
        assert node.glb_data != before.glb_data
    else:
        assert tuple(node.plane_color) == (255, 0, 0) and node.plane_opacity == 1.0
    assert not page.errors


def test_parts_of_a_body_and_the_filter():
    """List what is on a body, and what a text names, by kind."""
    import mujoco

    from manyworlds.lab.page.body_tree import matches, parts_of
    from tests.lab.conftest import ARM

    model = mujoco.MjModel.from_xml_string(ARM)
    assert parts_of(model, 2) == {
        "body": [1],
        "joint": [1],
        "geom": [2],
        "site": [0],
        "actuator": [1],
        "sensor": [0],
    }
    assert matches(model, "ELB") == {"joint": [1], "actuator": [1]}
    assert matches(model, "sensor") == {"sensor": [0]}


def test_references_are_chosen(open_page):
    """Choose the material of a geom from those of the model, or none."""
    from tests.lab.edits.test_model_edits import MODEL

    page = open_page(MODEL.format(compiler=""), start_paused=True)
    page.context.select("geom", page.lab.model.geom("arm").id)
    iterate_once(page)
    choice = page.parts["InspectorPart"].fields["material"].handles[0]
    assert choice.options == ("none", "red", "blue") and choice.value == "red"
    give(choice, "blue")
    iterate_once(page)
    assert page.lab.model.geom("arm").matid[0] == page.lab.model.material("blue").id
    give(choice, "none")
    iterate_once(page)
    assert page.lab.model.geom("arm").matid[0] == -1


def test_the_gizmo_moves_what_is_selected(page):
    """Move a body of the model, one with a free joint, and a mocap body: each where it belongs."""
    gizmo, lab, model = page.parts["GizmoPart"], page.lab, page.lab.model
    give(gizmo.box, True)
    iterate_once(page)
    assert gizmo.handle.visible
    still = np.array([1.0, 0.0, 0.0, 0.0])
    target = lab.snapshot.xpos[2] + (0.0, 0.1, 0.05)
    gizmo.hold("end", target, np.array(lab.snapshot.xquat[2]))
    iterate_once(page)
    np.testing.assert_allclose(lab.snapshot.xpos[2], target, atol=1e-9)
    assert lab.history.done == ("set pos of body:lower",)
    for body in (3, 4):
        page.context.select("body", body)
        gizmo.hold("update", np.array([0.2, 0.3, 0.9]), still)
        iterate_once(page)
        np.testing.assert_allclose(lab.snapshot.xpos[body], [0.2, 0.3, 0.9], atol=1e-9)
    assert model.body_pos[3].tolist() == [0.5, 0.0, 0.3]
    gizmo._show_next = 0.0
    iterate_once(page, 0)
    give(gizmo.pose.pos, (0.2, 0.4, 0.9))
    iterate_once(page)
    np.testing.assert_allclose(lab.snapshot.xpos[4], [0.2, 0.4, 0.9], atol=1e-9)


def test_joints_are_posed(page):
    """Turn a joint, lift and turn the ball; turn the joint again while time runs."""
    part, lab = page.parts["JointPosePart"], page.lab
    assert part.folder.visible
    give(part.sliders["elbow"], 0.7)
    give(part.sliders["2 height"], 1.2)
    iterate_once(page)
    give(part.sliders["2 yaw"], 90.0)
    iterate_once(page)
    assert lab.snapshot.qpos[1] == 0.7 and lab.snapshot.qpos[4] == 1.2
    np.testing.assert_allclose(lab.snapshot.qpos[5:9], [np.sqrt(0.5), 0, 0, np.sqrt(0.5)])
    lab.play()
    give(part.sliders["elbow"], -0.4)
    iterate_once(page)
    assert part.folder.visible
    assert lab.snapshot.qpos[1] == pytest.approx(-0.4, abs=0.05)  # and then it falls


def test_vertices_of_cloths_are_not_posed():
    """Open the cloth, which has hundreds of joints: only the ball has inputs."""
    from manyworlds.lab.page import PageServer
    from manyworlds.lab.world.gallery import open_gallery

    lab = open_gallery("cloth-on-a-pole", lambda world: LiveLab(world, LabCfg(start_paused=True)))
    page = PageServer(lab, port=free_port())
    try:
        page.update()
        assert lab.model.njnt > 200
        assert set(page.parts["JointPosePart"].sliders) == {"ball height", "ball yaw"}
    finally:
        page.close()
        lab.stop()


def test_the_floor_of_a_task_clears_the_selection_and_its_world_has_a_card():
    """Click the floor of a task: nothing is selected; the tab World tells what was drawn."""
    from manyworlds.lab.page import PageServer

    cfg = load_env_cfg("Velocity-Flat-Quadruped")
    cfg.scene.num_envs = 2
    env = ManagerBasedRlEnv(cfg, device="cpu")
    env.reset()
    with LiveLab.walk_into(env, 1) as lab:
        lab.pause()
        page = PageServer(lab, port=free_port())
        trunk = lab.edits.find("body:trunk")[1]
        above = lab.snapshot.xpos[trunk] + (0.0, 0.0, 2.0)
        page.parts["PullPart"].click(above, (0.0, 0.0, -1.0))
        assert page.context.body
        page.parts["PullPart"].click(lab.snapshot.xpos[trunk] + (3.0, 3.0, 2.0), (0, 0, -1.0))
        assert page.context.body == 0
        card = page.parts["WorldCardPart"]
        assert card.folder.visible and "1 of 2" in card.facts.content
        assert "geom_friction[0] of robot/FR_foot_collision" in card.table.content
        assert "0.3 to 1.5" in card.table.content
        page.close()
    env.close()
