"""In what two models differ, and what a dump of a world is."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import mujoco
import numpy as np
import pytest

from manyworlds.cli.main import main
from manyworlds.entity import EntityCfg
from manyworlds.lab import LiveLab, world_from_file, world_from_scene
from manyworlds.lab.world.diff import diff_models, load_model
from manyworlds.scene import SceneCfg
from tests.lab.conftest import ARM
from tests.robots import robot_file

DEFECTS = {
    ("geom forearm", "geom_size"): ('size=".025"', 'size=".03"'),
    ("joint elbow", "jnt_range"): ("-150 150", "-150 140"),
    ("joint elbow", "dof_damping"): (
        'range="-150 150" damping=".2"',
        'range="-150 150" damping=".21"',
    ),
    ("actuator elbow", "actuator_trnid"): (
        'name="elbow" joint="elbow"',
        'name="elbow" joint="shoulder"',
    ),
    ("actuator elbow", "actuator_ctrlrange"): (
        'joint="elbow" ctrlrange="-20',
        'joint="elbow" ctrlrange="-19',
    ),
    ("sensor angle", "sensor_objid"): (
        'name="angle" joint="elbow"',
        'name="angle" joint="shoulder"',
    ),
    ("site tip", "site_pos"): ('pos=".25 0 0"/>', 'pos=".25 0 .1"/>'),
    ("body post", ""): ('name="post"', 'name="pole"'),
    ("option", "timestep"): ("0.002", "0.003"),
}


@pytest.mark.parametrize("where", DEFECTS)
def test_a_defect_is_found(where, tmp_path, capsys):
    """Break one thing of a model: it is named, with what was there and what is there now."""
    before, after = DEFECTS[where]
    assert ARM.count(before) == 1
    old, new = tmp_path / "old.xml", tmp_path / "new.xml"
    old.write_text(ARM)
    new.write_text(ARM.replace(before, after))
    found = diff_models(load_model(old), load_model(new))
    assert where in {(f"{d.kind} {d.name}".strip(), d.field) for d in found}
    assert len(found) <= 5 and all(d.first != d.second for d in found)
    assert main(["diff", str(old), str(new)]) == 1
    assert where[0] in capsys.readouterr().out
    assert main(["diff", str(old), str(old)]) == 0
    assert capsys.readouterr().out == "the same\n"


def test_a_line_says_it_all(tmp_path):
    """Read a difference of a number, of a name, of an option, and what is missing."""
    old, new = tmp_path / "old.xml", tmp_path / "new.xml"
    old.write_text(ARM)
    changes = ('geom name="forearm"', "geom"), ("0.002", "0.004"), ('.25 0 0"/>', '.3 0 0"/>')
    text = ARM
    for change in changes:
        text = text.replace(*change)
    new.write_text(text)
    lines = [str(d) for d in diff_models(load_model(old), load_model(new))]
    assert lines == [
        "option: timestep 0.002 -> 0.004",
        "geom forearm: here -> missing",
        "geom lower:0: missing -> here",
        "site tip: site_pos [0.25 0.   0.  ] -> [0.3 0.  0. ]",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["unitree_g1/g1.xml", "unitree_go1/go1.xml", "i2rt_yam/yam.xml"])
def test_a_dump_is_the_original(name, tmp_path):
    """Dump a robot with meshes, move the folder: no path leads out of it, it is all the same."""
    path = robot_file(name)
    lab = LiveLab(world_from_file(path))
    folder = Path(shutil.move(lab.dump(tmp_path / "here"), tmp_path / "there"))
    lab.stop()
    text = (folder / "scene.xml").read_text()
    assert str(path.parent) not in text and str(tmp_path) not in text and ".." not in text
    assert json.loads((folder / "build.json").read_text())["mujoco"] == mujoco.mj_versionString()
    original = load_model(path)
    models = [load_model(folder / f"scene.{suffix}") for suffix in ("xml", "mjb")]
    for model in models:
        assert diff_models(original, model) == []
    rows = []
    for model in (original, models[1]):
        data = mujoco.MjData(model)
        for _ in range(1000):
            mujoco.mj_step(model, data)
        rows.append(np.concatenate([data.qpos, data.qvel]).tobytes())
    assert rows[0] == rows[1], "a thousand steps, bit for bit"


def test_a_robot_in_a_scene_is_compared_alone():
    """Compare a robot among others with its file: only its place in the world is another."""
    path = robot_file("i2rt_yam/yam.xml")
    entity = EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_file(str(path)))
    lab = LiveLab(world_from_scene(SceneCfg(entities={"left": entity, "right": entity})))
    found = lab.diff(path, "right")
    assert {(d.kind, d.name) for d in found} <= {
        ("body", "arm"),
        ("body", "mocap_base"),
        ("camera", "front_cam"),
        ("light", "spotlight"),
    }
    lab.world.model.jnt_range[lab.view("joint", "right/joint2").id, 1] += 0.1
    assert [d.name for d in lab.diff(path, "right") if d.kind == "joint"] == ["joint2"]
    assert len(lab.diff(path)) > 50
    with pytest.raises(KeyError, match="no robot 'middle'; available: left, right"):
        lab.diff(path, "middle")
    lab.stop()


def test_files_that_are_none(tmp_path):
    """Compare what is not there and what does not compile."""
    with pytest.raises(FileNotFoundError, match="There is no model file"):
        load_model(tmp_path / "none.xml")
    (tmp_path / "bad.xml").write_text(
        "<mujoco><worldbody><body><joint/></body></worldbody></mujoco>"
    )
    with pytest.raises(ValueError, match=r"bad\.xml: .*mass and inertia"):
        load_model(tmp_path / "bad.xml")
