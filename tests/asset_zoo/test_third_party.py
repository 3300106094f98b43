"""Robots that others made: where they are looked for, and that tasks find their way in them."""

from __future__ import annotations

import shutil
import sys
import types

import mujoco
import pytest

from manyworlds.asset_zoo import third_party
from manyworlds.asset_zoo.third_party import (
    YAM_ACTION_SCALE,
    get_yam_robot_cfg,
    robots_folder,
    third_party_file,
    third_party_spec,
)
from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.tasks import load_env_cfg
from tests.asset_zoo.models import initial, simulate
from tests.robots import robot_file


@pytest.fixture
def go1_file():
    """Find Go1 before another fixture hides it."""
    return robot_file("unitree_go1/go1.xml")


@pytest.fixture
def no_menagerie(monkeypatch, tmp_path_factory):
    """Let MuJoCo Menagerie have an empty cache."""
    monkeypatch.delenv("MENAGERIE_ROOT", raising=False)
    monkeypatch.setenv("MENAGERIE_CACHE_DIR", str(tmp_path_factory.mktemp("menagerie")))


@pytest.fixture
def nowhere(monkeypatch, tmp_path, no_menagerie):
    """Make an empty folder the folder of robots."""
    monkeypatch.setenv(third_party.ROBOTS_VARIABLE, str(tmp_path))
    monkeypatch.setitem(sys.modules, "robot_descriptions", None)
    return tmp_path


def described(monkeypatch, module: str, path) -> None:
    """Have robot_descriptions say where a model is."""
    stub = types.ModuleType(f"robot_descriptions.{module}")
    stub.MJCF_PATH = str(path)
    monkeypatch.setitem(sys.modules, "robot_descriptions", types.ModuleType("robot_descriptions"))
    monkeypatch.setitem(sys.modules, stub.__name__, stub)


def test_the_folder_comes_first(monkeypatch, tmp_path, no_menagerie):
    """Look in $MANYWORLDS_ROBOTS, then ask robot_descriptions."""
    described(monkeypatch, "go1_mj_description", "downloaded.xml")
    monkeypatch.setenv(third_party.ROBOTS_VARIABLE, str(tmp_path))
    assert str(third_party_file("unitree_go1")) == "downloaded.xml"
    (tmp_path / "unitree_go1").mkdir()
    (tmp_path / "unitree_go1" / "go1.xml").write_text("<mujoco/>")
    assert third_party_file("unitree_go1") == tmp_path / "unitree_go1" / "go1.xml"
    monkeypatch.delenv(third_party.ROBOTS_VARIABLE)
    assert robots_folder() is None
    assert str(third_party_file("unitree_go1")) == "downloaded.xml"


@pytest.fixture(params=["unitree_go1/go1.xml", "unitree_g1/g1.xml", "i2rt_yam/yam.xml"])
def model(request):
    """Find each robot before another fixture hides it."""
    return robot_file(request.param)


def test_menagerie_is_asked_before_a_download(monkeypatch, model, nowhere):
    """Find a robot in Menagerie's cache, if it is whole, and in a copy of its repository."""
    menagerie = pytest.importorskip("mujoco_menagerie")
    name = model.parent.name
    cached = menagerie.Cache().model_path(menagerie.get(name))
    cached.mkdir(parents=True)
    shutil.copy(model, cached)
    with pytest.raises(FileNotFoundError, match="Menagerie has no copy"):
        third_party_file(name)
    (cached / ".complete").touch()
    assert third_party_file(name) == cached / model.name
    monkeypatch.setenv("MENAGERIE_ROOT", str(nowhere))
    with pytest.raises(FileNotFoundError, match="Menagerie has no copy"):
        third_party_file(name)
    monkeypatch.setenv("MENAGERIE_ROOT", str(model.parents[1]))
    assert third_party_file(name) == model
    assert third_party_spec(name).compile().nu == 0 or name == "i2rt_yam"


def test_absent_robots_are_reported_with_a_remedy(nowhere, monkeypatch):
    """Say where a model was looked for and how to have it found; load the task's config anyway."""
    cfg = load_env_cfg("Velocity-Flat-Go1")
    cfg.scene.num_envs = 1
    with pytest.raises(FileNotFoundError) as error:
        ManagerBasedRlEnv(cfg)
    text = str(error.value)
    assert f"not found at {nowhere / 'unitree_go1' / 'go1.xml'}" in text
    assert "robot_descriptions, which downloads it, is not installed" in text
    assert "set MANYWORLDS_ROBOTS or MENAGERIE_ROOT" in text
    assert "pip install 'manyworlds-rl[robots]'" in text
    monkeypatch.delenv(third_party.ROBOTS_VARIABLE)
    with pytest.raises(FileNotFoundError, match="MANYWORLDS_ROBOTS is not set, MuJoCo Menagerie"):
        third_party_file("unitree_go1")
    with pytest.raises(ValueError, match="no third-party robot 'spot'"):
        third_party_spec("spot")


def test_failed_downloads_are_reported(monkeypatch, nowhere):
    """Tell a package that could not download from one that is not there."""
    monkeypatch.setitem(sys.modules, "robot_descriptions", types.ModuleType("robot_descriptions"))

    def offline(name):
        raise OSError(f"cannot reach the host of {name}")

    monkeypatch.setattr(third_party.importlib, "import_module", offline)
    with pytest.raises(FileNotFoundError, match="go1_mj_description could not download it"):
        third_party_file("unitree_go1")


def test_a_model_with_other_names_does_the_task(monkeypatch, go1_file, nowhere):
    """Walk with a Go1 whose feet are called as its hips, without sites, sensors and other names."""
    spec = mujoco.MjSpec.from_file(str(go1_file))
    for sensor in spec.sensors:
        spec.delete(sensor)
    for site in [s for s in spec.sites if s.name != "imu"]:
        spec.delete(site)
    for geom in spec.geoms:
        geom.name = geom.name[:2] if "foot" in geom.name else ""
    spec.add_actuator(name="FR_hip", target="FR_hip_joint", trntype=mujoco.mjtTrn.mjTRN_JOINT)
    spec.add_key(name="home")
    spec.meshdir = str(go1_file.parent / "assets")
    (nowhere / "other.xml").write_text(spec.to_xml())
    described(monkeypatch, "go1_mj_description", nowhere / "other.xml")
    cfg = load_env_cfg("Velocity-Flat-Go1", play=True)
    cfg.scene.num_envs = 1
    env = ManagerBasedRlEnv(cfg)
    for _ in range(50):
        env.step(env.action_manager.action * 0.0)
    assert env.episode_length_buf[0] == 50
    assert (env.scene["feet_ground_contact"].data.found > 0).all()
    assert env.action_manager.total_action_dim == 12


def test_yam_holds_its_pose():
    """Stay at the arm's initial pose for a second, touching nothing."""
    robot_file("i2rt_yam/yam.xml")
    sim = simulate(get_yam_robot_cfg())
    start = sim.data.qpos.clone()
    assert not initial(sim).ncon
    sim.step(nsubsteps=200)
    assert (sim.data.qpos - start).abs().max() < 1e-4
    assert sim.mj_model.nu == len(YAM_ACTION_SCALE) == 7
