"""Entities and scenes as files that MuJoCo loads again."""

import zipfile

import mujoco
import numpy as np
import pytest

from manyworlds.entity import Entity, EntityCfg
from manyworlds.scene import Scene, SceneCfg
from manyworlds.terrains import TerrainEntityCfg
from manyworlds.utils.files import update_assets
from tests.robots import robot_file

ROBOTS = ("unitree_go1/go1.xml", "unitree_g1/g1.xml", "i2rt_yam/yam.xml")


def robot(name: str) -> EntityCfg:
    """Configure one of the third-party robots."""
    path = str(robot_file(name))
    return EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_file(path))


def assert_same(ours: mujoco.MjModel, theirs: mujoco.MjModel) -> None:
    """Compare sizes, names and masses; MJCF keeps six digits."""
    for size in ("nq", "nv", "nu", "nbody", "ngeom", "nmesh", "nmocap", "nsensor", "nkey"):
        assert getattr(ours, size) == getattr(theirs, size), size
    assert ours.names == theirs.names
    for field in ("body_mass", "body_inertia", "geom_pos", "jnt_range", "key_qpos"):
        np.testing.assert_allclose(
            getattr(ours, field), getattr(theirs, field), rtol=2e-5, atol=1e-6, err_msg=field
        )


@pytest.mark.parametrize("name", [pytest.param(ROBOTS[1], marks=pytest.mark.slow), *ROBOTS[::2]])
def test_robots_are_written_alone(tmp_path, name):
    """Write a robot as MJCF beside its assets' folder, and as one archive."""
    entity = Entity(robot(name))
    model = entity.compile()
    path = tmp_path / "robot.xml"
    entity.write_xml(path)
    assets: dict[str, bytes] = {}
    update_assets(assets, robot_file(name).parent / "assets", "assets")
    assert_same(mujoco.MjModel.from_xml_string(path.read_text(), assets), model)
    archive = entity.to_zip(tmp_path / "robot.zip")
    assert archive == tmp_path / "robot.zip"
    folder = tmp_path / "unpacked"
    zipfile.ZipFile(archive).extractall(folder)
    [scene] = folder.rglob("scene.xml")
    assert_same(mujoco.MjModel.from_xml_path(str(scene)), model)


@pytest.mark.slow
def test_scenes_are_written_whole(tmp_path):
    """Write terrain, two robots and the initial keyframe into a folder."""
    entities = {"arm": robot(ROBOTS[2]), "dog": robot(ROBOTS[0])}
    scene = Scene(SceneCfg(num_envs=2, entities=entities, terrain=TerrainEntityCfg()), "cpu")
    folder = scene.write(tmp_path / "export")
    assert_same(mujoco.MjModel.from_xml_path(str(folder / "scene.xml")), scene.compile())
    listing = str(scene)
    for word in ("Scene of 2 worlds", "arm", "mocap", "dog", "free", "terrain", "fixed"):
        assert word in listing
