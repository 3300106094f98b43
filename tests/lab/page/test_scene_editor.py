"""The editor of the scene on the page."""

from __future__ import annotations

from types import SimpleNamespace

import mujoco
import numpy as np
import pytest

from tests.lab.page.conftest import give, press
from tests.lab.scene.conftest import CUP


@pytest.fixture
def scene(page):
    """The page, its editor, and its lab, whose world follows each action."""
    page.lab.loop.iterate_once()
    return SimpleNamespace(page=page, lab=page.lab, part=page.parts["ScenePart"])


def choose(group, label: str) -> None:
    """Click one of a row of buttons."""
    give(group, label)


def test_the_pose_of_an_item_can_be_typed(scene):
    """Type a height and then a yaw: the item is moved by each, and keeps the rest exactly."""
    part, lab, page = scene.part, scene.lab, scene.page
    lab.verbs.add_prop(shape="box", size=[0.1, 0.1, 0.1], name="box", pos=[1 / 3, 0.0, 0.5])
    page.update()
    give(part.choice, "box")
    page.update()
    assert part.pose.visible and part.pose.pos.value == (0.3333, 0.0, 0.5)
    give(part.pose.pos, (0.3333, 0.0, 0.75))
    page.update()
    assert np.allclose(lab.scene["box"].pos, (1 / 3, 0.0, 0.75), atol=1e-12)
    give(part.pose.angles, (0.0, 0.0, 90.0))
    page.update()
    assert np.allclose(lab.scene["box"].quat, (np.sqrt(0.5), 0, 0, np.sqrt(0.5)))
    assert part.pose.angles.value == (0.0, 0.0, 90.0)
    assert np.allclose(lab.scene["box"].pos, (1 / 3, 0.0, 0.75), atol=1e-12)


def test_angles_are_those_of_mujoco():
    """Turn random and upright poses to angles and back: the orientation is the same."""
    from manyworlds.lab.page.gizmos import angles_of

    random = np.random.default_rng(3).normal(size=(50, 4))
    for quat in (*random, np.array([1.0, 0.0, 1.0, 0.0]), np.array([0.3, 1.0, -0.3, 1.0])):
        quat = quat / np.linalg.norm(quat)
        again = np.empty(4)
        mujoco.mju_euler2Quat(again, np.radians(angles_of(quat)), "XYZ")
        assert abs(again @ quat) == pytest.approx(1.0, abs=1e-9)


def test_a_prop_is_added_moved_and_undone(scene):
    """Add a prop, drag its gizmo, duplicate and remove it, undo all: the tab tells each."""
    part, lab, page = scene.part, scene.lab, scene.page
    props = page.parts["PropPart"]
    give(props.placing.where, "position")
    give(props.placing.position, (1.0, 0.0, 0.5))
    press(props.add_shape)
    page.update()
    give(part.choice, "box")
    assert lab.scene.selected == "box" and lab.snapshot.qpos[-7:-4].tolist() == [1.0, 0.0, 0.5]
    give(part.gizmo, True)
    page.update()
    assert part.handle.visible and part.handle.position.tolist() == [1.0, 0.0, 0.5]
    turn = np.array([0.0, 0.0, 0.0, 1.0])
    part.drag("update", np.array([1.5, 0.0, 0.5]), turn)
    page.update()
    assert lab.scene["box"].pos[0] == 1.0, "moved when the drag ends"
    tint = page.parts["SelectionPart"]
    (box,) = tint.layer.handles.values()
    assert np.allclose(box.batched_positions, (1.5, 0.0, 0.5)), "a tint shows it there"
    assert tint.label.text == "box" and tint.label.visible
    view = page.context.view
    part.drag("end", np.array([2.0, 0.0, 0.5]), turn)
    page.update()
    assert page.context.view is view, "the page is not built again"
    assert np.allclose(lab.scene["box"].pos, (2.0, 0.0, 0.5)) and part.choice.value == "box"
    assert "&#x27;box&#x27; was moved." in part.outcome.content
    assert part.remove.label == "Remove 'box'"
    press(part.duplicate)
    part.name.value = "crate"
    press(part.rename)
    page.update()
    assert "crate" in lab.scene.items and "crate" in part.tree.content
    for label, name in {"Undo": "box_1", "Redo": "crate"}.items():
        choose(part.turns, label)
        page.update()
        assert part.choice.value == lab.scene.selected == name, "it stays the selected item"
    press(part.remove)
    for label in ("Undo", "Undo", "Undo", "Undo", "Undo"):
        choose(part.turns, label)
        page.update()
    assert list(lab.scene.items) == ["upper", "ball", "post", "floor"]
    assert "Undone: add box" in part.outcome.content
    choose(part.turns, "Undo")
    assert "nothing to undo" in part.outcome.content
    page.keys.actions["ctrl+shift+Z"]()
    assert "box" in lab.scene.items and page.context.note == "redone: add box"
    page.keys.actions["ctrl+Z"]()
    assert not page.errors


def test_errors_are_where_the_user_looks(scene, tmp_path, monkeypatch):
    """Upload what does not compile, name what is taken, act on nothing: the tab says why."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    part, lab = scene.part, scene.lab

    def upload(name: str, content: bytes) -> None:
        part.upload._impl.value = SimpleNamespace(name=name, content=content)
        for call in list(part.upload._impl.update_cb):
            call(SimpleNamespace(client=object(), client_id=1, target=part.upload))

    world = lab.world
    upload("bad.xml", b"<mujoco><worldbody><body name='x'><freejoint/></body></worldbody></mujoco>")
    assert "mass and inertia" in part.outcome.content and "bad" in part.outcome.content
    upload("virus.exe", b"")
    assert "is no model" in part.outcome.content
    press(part.remove)
    assert "Select an item first" in part.outcome.content
    press(part.add_file)
    assert "path of a file" in part.outcome.content
    props = scene.page.parts["PropPart"]
    props.name.value = part.added_name.value = "ball"
    press(props.add_shape)
    assert "ball_1" in lab.scene.items, "a prop takes a free name"
    choose(part.turns, "Undo")
    upload("../../cup.xml", CUP.encode())
    assert "has an item &#x27;ball&#x27;" in part.outcome.content and lab.world.model_hash
    part.added_name.value = ""
    upload("../../cup.xml", CUP.encode())
    assert "cup" in lab.scene.items and lab.world is not world
    assert str(tmp_path) in lab.scene["cup"].source
    part.file.value = str(tmp_path / "room")
    choose(part.files, "Save")
    assert "saved" in part.outcome.content and (tmp_path / "room" / "scene.xml").is_file()
    choose(part.turns, "Undo")
    choose(part.files, "Open")
    assert "cup" in lab.scene.items and not scene.page.errors


def test_a_click_in_the_view_places_what_is_added(scene):
    """Choose a box and click on the ground, then on that box: both stand in free places there."""
    part, lab, page = scene.part, scene.lab, scene.page
    pull = page.parts["PullPart"]
    give(part.placing.where, "click in the view")
    down = [0.0, 0.0, -1.0]
    press(part.add)
    assert "Click in the view" in part.outcome.content and "box" not in lab.scene.items
    assert "data-lab-aim" in part.placing.mark.content
    pull.click([2.0, 1.0, 3.0], down)
    page.update()
    assert lab.scene["box"].pos == pytest.approx((2.0, 1.0, 0.1), abs=1e-6), "on the ground"
    assert part.choice.value == "box" and "Added &#x27;box&#x27;" in part.outcome.content
    assert not part.placing.mark.content and page.context.aimed is None
    press(part.add)
    pull.click([2.0, 1.0, 3.0], down)
    page.update()
    x, y, z = lab.scene["box_1"].pos
    assert x > 2.2 and (y, z) == pytest.approx((1.0, 0.1), abs=1e-6), "beside the first one"
    press(part.add)
    give(part.placing.where, "free place")
    pull.click([2.0, 1.0, 3.0], down)
    assert "box_2" not in lab.scene.items, "another choice ends the wait"


def test_a_click_in_the_view_selects_the_item(scene):
    """Select a body in the view: its item is selected, and the other way round."""
    part, page = scene.part, scene.page
    page.context.body = page.context.view.id_of("lower")
    page.update()
    assert part.choice.value == "upper"
    give(part.choice, "ball")
    assert page.context.view.name_of(page.context.body) == "ball"
    give(part.search, "low")
    assert "lower" in part.tree.content and "ball" not in part.tree.content


def test_a_line_of_a_tree_selects_what_it_names(scene):
    """Click lines of both trees: body and item are selected; an old line does no harm."""
    part, page, tree = scene.part, scene.page, scene.page.parts["TreePart"]
    page.context.select("geom", page.lab.model.geom("forearm").id)
    page.update()
    lower = page.lab.model.body("lower").id
    assert f'data-lab-ask="select_body" data-lab-name="{lower}"' in tree.tree.content
    assert f'data-lab-ask="select_body" data-lab-name="{lower}"' in part.tree.content
    assert 'data-lab-ask="select_item" data-lab-name="floor"' in part.tree.content
    answers = page.context.answers
    answers["select_item"]("a browser", {"name": "ball"})
    page.update()
    assert part.choice.value == page.lab.scene.selected == "ball"
    assert page.context.element == tree.choice.value.replace("ball", "body:ball")
    answers["select_body"]("a browser", {"name": str(lower)})
    page.update()
    assert page.context.element == "body:lower" and part.choice.value == "upper"
    for name in ("0", "99"):
        with pytest.raises(ValueError, match="There is no body"):
            answers["select_body"]("a browser", {"name": name})
    answers["select_item"]("a browser", {"name": "gone"})
    assert part.choice.value == "upper" and not page.errors


def test_a_light_that_is_added_shines_in_the_view(scene):
    """Add a lamp, move and copy it, add a sun, remove and undo: the view has each (BE10)."""
    page, lab = scene.page, scene.lab
    part = page.parts["SceneLightsPart"]
    assert not part.handles, "lights of model files are made for MuJoCo's own pictures"
    lab.scene.add_light("lamp", pos=(0.0, 0.0, 2.0), dir=(0.0, 1.0, -1.0), diffuse=(1.0, 0.5, 0.0))
    page.update()
    assert part.handles["lamp"].color == (255, 127, 0)
    assert tuple(part.handles["lamp"].position) == (0.0, 0.0, 2.0)
    lab.scene.move("lamp", pos=(1.0, 0.0, 2.0))
    lab.scene.duplicate("lamp", "other", pos=(-1.0, 0.0, 2.0))
    lab.scene.add_light("sun", dir=(0.0, 0.0, -1.0), directional=True)
    page.update()
    assert set(part.handles) == {"lamp", "other/lamp", "sun"}
    assert tuple(part.handles["lamp"].position) == (1.0, 0.0, 2.0)
    lab.set_model(("light", "lamp"), "diffuse", (0.0, 1.0, 0.0))
    page.lab.loop.iterate_once()
    page.update()
    assert part.handles["lamp"].color == (0, 255, 0)
    lab.scene.remove("sun")
    page.update()
    assert "sun" not in part.handles
    lab.scene.undo()
    page.update()
    assert "sun" in part.handles and not page.errors
