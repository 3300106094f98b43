"""`manyworlds export` and `lab.export()`."""

from __future__ import annotations

import zipfile

import mujoco
import pytest

from manyworlds.cli.main import main
from manyworlds.lab import LabCfg, LiveLab, world_from_scene, world_from_spec
from manyworlds.lab.world.gallery import GALLERY
from manyworlds.tasks import load_env_cfg
from tests.lab.conftest import ARM
from tests.spec.parity import assert_same, find_model


@pytest.mark.parametrize(
    "name",
    ["dm_control:suite/cheetah.xml", "mujoco:testdata/model.urdf", "robots:i2rt_yam/yam.xml"],
)
def test_files(name, tmp_path, capsys):
    """Write model files as one file with assets, which compiles to the same model."""
    path = find_model(name)
    assert main(["export", str(path), "--output", str(tmp_path / "out")]) == 0
    written = tmp_path / "out" / "scene.xml"
    assert capsys.readouterr().out.endswith(f"wrote {written}\n")
    loaded = mujoco.MjModel.from_xml_path(str(written))
    assert_same(loaded, mujoco.MjModel.from_xml_path(str(path)))
    assert main(["export", str(path), "--output", str(tmp_path)]) == 1
    assert "is not an earlier export" in capsys.readouterr().err


def test_tasks(tmp_path):
    """Write the scene of a task, with the options of its training, to an archive."""
    output = tmp_path / "lift.zip"
    assert main(["export", "Lift-Cube-Arm", "--output", str(output)]) == 0
    with zipfile.ZipFile(output) as archive:
        archive.extractall(tmp_path / "out")
    loaded = mujoco.MjModel.from_xml_path(str(tmp_path / "out" / "scene.xml"))
    cfg = load_env_cfg("Lift-Cube-Arm", play=True)
    assert_same(loaded, world_from_scene(cfg.scene, cfg.sim.mujoco).model)


@pytest.mark.parametrize("name", ["cloth-on-a-pole", "humanoid-and-launcher"])
def test_worlds_of_the_gallery(name, tmp_path):
    """Write a world that `manyworlds lab NAME` opens."""
    assert main(["export", name, "--output", str(tmp_path / "out")]) == 0
    loaded = mujoco.MjModel.from_xml_path(str(tmp_path / "out" / "scene.xml"))
    assert_same(loaded, GALLERY[name].world().model)


def test_what_is_no_model(tmp_path, capsys):
    """Refuse a target that is nothing."""
    assert main(["export", "nothing", "--output", str(tmp_path / "out")]) == 1
    assert "no model file, world, task or run" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_live_world(tmp_path):
    """Write the world of a lab with its present options."""
    with LiveLab(world_from_spec(mujoco.MjSpec.from_string(ARM)), LabCfg(mode="direct")) as lab:
        lab.set_option("timestep", 0.00123456789)
        lab.step()
        assert lab.export(tmp_path / "out") == tmp_path / "out"
        loaded = mujoco.MjModel.from_xml_path(str(tmp_path / "out" / "scene.xml"))
        assert loaded.opt.timestep == 0.00123456789
        assert_same(loaded, lab.world.model)
