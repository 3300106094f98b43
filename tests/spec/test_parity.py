"""Load, export, load: compiled models are equal field by field, but for `parity.ALLOWED`."""

from __future__ import annotations

from pathlib import Path

import mujoco
import pytest

from manyworlds.spec.export import export_spec
from manyworlds.spec.load import load_spec
from tests.robots import robot_file
from tests.spec.parity import differences, find_model, model_files

SAMPLE = (
    "here:all_kinds.xml",
    "dm_control:suite/humanoid_CMU.xml",
    "dm_control:suite/stacker.xml",
    "dm_control:suite/swimmer.xml",
    "dm_control:locomotion/walkers/assets/jumping_ball/jumping_ball_with_head.xml",
    "dm_control:locomotion/walkers/assets/rodent.xml",
    "gymnasium:envs/mujoco/assets/ant.xml",
    "gymnasium:envs/mujoco/assets/pusher.xml",
    "mujoco:testdata/model.urdf",
    "mujoco:testdata/msh.xml",
    "mujoco_warp:test_data/flex/floppy.xml",
    "mujoco_warp:test_data/actuation/muscle.xml",
    "mujoco_warp:test_data/hfield/hfield.xml",
    "mujoco_warp:test_data/tendon/pulley_wrap.xml",
    "mujoco_warp:test_data/humanoid/n_humanoid.xml",
    pytest.param("mujoco_warp:test_data/collision_sdf/mesh.xml", marks=pytest.mark.slow),
)
# MuJoCo loads all models of these packages but the named ones, of which no other has anything.
PACKAGES = {
    "dm_control": {
        "drosophila.xml",  # its meshes are not in the package
        "floor.xml",
        "fruitfly.xml",
        "dog_v2/scene.xml",  # two textures have one name
        "schema.xml",  # no models but tables
        "attribute_test_schema.xml",
        "included_with_invalid_filenames.xml",  # tests of errors
        "model_with_invalid_filenames.xml",
        "test_model.xml",  # moving bodies without a mass
        "model_with_assets.xml",
    },
    "gymnasium": set(),
    "mujoco": set(),
    "mujoco_warp": {"collision_sdf/torus.xml"},  # its mesh is not in the package
}


def round_trip(path: Path, folder: Path) -> list[str]:
    """Export a model file; return the fields in which the result differs from plain MuJoCo's."""
    written = export_spec(load_spec(path)[0], folder)
    loaded = mujoco.MjModel.from_xml_path(str(written / "scene.xml"))
    return differences(loaded, mujoco.MjModel.from_xml_path(str(path)))


@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample(name, tmp_path):
    """Export models that together have all kinds of elements, bit for bit."""
    assert round_trip(find_model(name), tmp_path / "out") == []


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_a_collection(package, tmp_path):
    """Export all models of a package, bit for bit."""
    files = model_files(package)
    if not files:
        pytest.skip(f"needs {package}")
    wrong, compared = {}, 0
    for i, path in enumerate(files):
        if any(str(path).endswith(f"/{name}") for name in PACKAGES[package]):
            continue
        if found := round_trip(path, tmp_path / str(i)):
            wrong[str(path)] = found
        compared += 1
    assert not wrong and compared >= 2


@pytest.mark.slow
@pytest.mark.parametrize("robot", ["unitree_g1/g1.xml", "unitree_go1/go1.xml", "i2rt_yam/yam.xml"])
def test_robots(robot, tmp_path):
    """Export robots with many meshes, bit for bit."""
    assert round_trip(robot_file(robot), tmp_path / "out") == []
