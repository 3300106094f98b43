"""Verbs of the scene, as clients call them."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from manyworlds.lab.errors import VerbError


def test_clients_build_a_scene(scene, cup, tmp_path):
    """Add, copy, move, rename, remove, apply, save, open, undo and redo by verbs alone."""
    lab = scene._lab
    call = lab.call
    assert call("add_prop", shape="box", size=[0.1, 0.1, 0.1], name="box")["name"] == "box"
    assert call("duplicate_item", item="box")["item"]["name"] == "box_1"
    assert len(call("add_item_grid", item="box", rows=2, columns=2)["items"]) == 3
    call("move_item", item="box", pos=[0.0, 2.0, 0.1])
    assert call("read_item_pose", item="box")["pos"] == [0.0, 2.0, 0.1]
    assert call("read_item_bounds", item="box")["low"] == pytest.approx([-0.1, 1.9, 0.0])
    assert call("rename_item", item="box_1", name="crate")["item"]["id"] == "box_1"
    call("select_item", item="crate")
    assert call("list_items", search="crate")["selected"] == "crate"
    call("remove_item", item="crate")
    assert call("list_items")["selected"] == "" and call("undo")["label"] == "remove crate"
    assert call("redo")["label"] == "remove crate"
    assert call("add_light", name="lamp")["item"]["kind"] == "light"
    assert call("add_item_file", path=str(cup))["item"]["kind"] == "robot"
    assert "humanoid" in call("list_sources")["names"]
    items = [{"id": "pole", "source": "cartpole", "pos": [0.0, -3.0, 0.0]}]
    assert call("apply_scene", items=items)["done"] == ["added 'pole'"]
    assert call("apply_scene", items=items)["done"] == []
    names = [node["name"] for node in call("read_item_tree", search="hinge")["tree"]]
    assert "pole" not in names
    folder = call("save_scene", folder=str(tmp_path / "room"))["folder"]
    call("remove_item", item="pole")
    call("open_scene", path=folder)
    assert "pole" in scene.items


@pytest.mark.parametrize(
    ("verb", "fields", "code", "words"),
    [
        ("add_item", {"source": "../x.xml"}, "bad_value", "see add_item_file"),
        ("add_item", {"source": "nobody"}, "bad_value", "no registered entity"),
        ("add_item_file", {"path": "none.xml"}, "path_not_readable", "no file 'none.xml'"),
        ("remove_item", {"item": "nobody"}, "bad_value", "no item 'nobody'"),
        ("rename_item", {"item": "ball", "name": "post"}, "bad_value", "has an item 'post'"),
        ("undo", {}, "not_ready", "nothing to undo"),
        ("redo", {}, "not_ready", "nothing to redo"),
        ("apply_scene", {"items": [{"id": "a"}]}, "missing_field", "needs 'source'"),
        ("apply_scene", {"items": [{"id": "a", "color": 1}]}, "bad_request", "no field 'color'"),
        ("upload_item", {"file": "a.exe", "content": b""}, "bad_value", "is no model"),
    ],
)
def test_clients_learn_what_is_wrong(scene, verb, fields, code, words):
    """Call verbs of the scene with wrong fields: a code and a sentence; nothing changes."""
    world = scene._lab.world
    with pytest.raises(VerbError, match=words) as caught:
        scene._lab.call(verb, **fields)
    assert caught.value.code == code and scene._lab.world is world


def test_the_ground_is_sampled(scene, cup):
    """Sample a floor with a block on it, under a robot, a ball and a post: floor and block."""
    call = scene._lab.call
    scene.add(cup, pos=(0.0, 0.0, 0.0))
    scene._lab.world.spec.worldbody.add_geom(
        name="block", type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.22, 0.22, 0.1], pos=[-0.5, 0.5, 0.1]
    )
    scene.add_light("lamp", pos=(0.0, 0.0, 2.0), dir=(0.0, 0.0, -1.0))  # compiles it
    region = {"size": [2.0, 2.0], "resolution": [21, 21]}
    heights = np.reshape(call("read_region_heights", **region)["heights"], (21, 21))
    assert set(np.round(heights.ravel(), 9)) == {0.0, 0.2}
    assert np.argwhere(heights > 0.1).mean(axis=0).tolist() == [15.0, 5.0]
    named = call("read_region_heights", include=["ball"], fill=-1.0, **region)["heights"]
    assert max(named) == pytest.approx(0.35) and min(named) == -1.0
    with pytest.raises(VerbError, match="has no ground to sample"):
        call("read_region_heights", exclude=["floor", "block"], **region)
