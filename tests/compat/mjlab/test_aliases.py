"""The alias `mjlab`."""

import importlib
import importlib.metadata
import subprocess
import sys
from types import ModuleType

import pytest

import manyworlds.rl
import manyworlds.sim
import manyworlds.utils.math
from manyworlds.compat import mjlab
from manyworlds.compat.mjlab.names import TASKS
from manyworlds.tasks import registry


@pytest.fixture(autouse=True)
def _alias():
    mjlab.install()
    yield
    mjlab.uninstall()


def test_modules_show_the_same_classes():
    """Show the classes of ours from modules of their own."""
    import mjlab as package
    import mjlab.sim.sim as module
    from mjlab import sim
    from mjlab.sim import Simulation

    assert package is not manyworlds and package.sim is sim and sim.sim is module
    assert Simulation is manyworlds.sim.Simulation is module.Simulation
    assert module.__name__ == "mjlab.sim.sim" and sim.Simulation.__module__ == "manyworlds.sim.sim"
    assert module.mujoco is importlib.import_module("mujoco")


def test_a_star_import_brings_the_same_names():
    """Bring all public names, those of the table and those imported on demand included."""
    namespace = {}
    exec("from mjlab.rl import *\nfrom mjlab.utils.lab_api.math import *", namespace)
    assert namespace["MjlabOnPolicyRunner"] is namespace["OnPolicyRunner"]
    assert namespace["OnPolicyRunner"] is manyworlds.rl.OnPolicyRunner
    assert namespace["quat_apply"] is manyworlds.utils.math.quat_apply


def test_what_is_written_to_an_alias_stays_there():
    """Leave our modules as they are when a program replaces a name of an alias."""
    import mjlab.sim

    mjlab.sim.Simulation = None
    assert manyworlds.sim.Simulation is not None


def test_a_renamed_name_is_found():
    """Find what is called otherwise here, also in modules that there are not."""
    from mjlab import scripts
    from mjlab.rl import MjlabOnPolicyRunner
    from mjlab.utils.string import resolve_expr

    assert MjlabOnPolicyRunner is manyworlds.rl.OnPolicyRunner
    assert resolve_expr.__module__ == "manyworlds.validation.names"
    assert callable(scripts.train.main)


def test_names_of_another_package_are_that_packages():
    """Find the conversions that mjlab's viewer has from mjviser."""
    conversions = pytest.importorskip("mjviser.conversions")
    from mjlab.viewer.viser import create_site_mesh, merge_geoms

    assert (create_site_mesh, merge_geoms) == (
        conversions.create_site_mesh,
        conversions.merge_geoms,
    )


def test_a_name_of_a_package_that_is_not_installed(monkeypatch):
    """Hide mjviser: the error says what to install."""
    monkeypatch.setitem(sys.modules, "mjviser", None)
    monkeypatch.delitem(sys.modules, "mjviser.conversions", raising=False)
    with pytest.raises(ImportError, match="run `pip install mjviser`"):
        from mjlab.viewer.viser import create_site_mesh  # noqa: F401


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        (
            "from mjlab.rl import MjlabOnPolicyRuner",
            r"no mjlab\.rl\.MjlabOnPolicyRuner\. Did you mean 'MjlabOnPolicyRunner'",
        ),
        ("from mjlab.rl import RslRlVecWrapper", "Did you mean 'RslRlVecEnvWrapper'"),
        (
            "from mjlab.managers.reward_manager import RewardTerm",
            r"no mjlab\.managers\.reward_manager\.RewardTerm\. Did you mean 'RewardTermCfg'",
        ),
        ("import mjlab.senser", r"no mjlab\.senser\. Did you mean 'sensor'"),
        ("import mjlab.scripts.trian", r"no mjlab\.scripts\.trian\. Did you mean 'train'"),
        (
            "from mjlab.sim.randomization import repeat_array_kernel",
            r"nearest is manyworlds\.sim\.randomization\.expand_model_fields",
        ),
        (
            "from mjlab.scripts.train import run_train",
            r"call launch_training",
        ),
    ],
)
def test_a_missing_name_says_what_is_nearest(statement, text):
    """Raise an ImportError that helps, from packages, modules and for modules."""
    with pytest.raises(ImportError, match=text):
        exec(statement)


def test_a_missing_attribute_is_an_attribute_error():
    """Leave `hasattr` and `getattr` with a default as they are."""
    import mjlab.sim as sim

    assert not hasattr(sim, "Simulatio")
    with pytest.raises(AttributeError, match="Did you mean 'Simulation'"):
        _ = sim.Simulatio


def test_install_and_uninstall_can_be_repeated():
    """Install twice, and leave nothing behind."""
    import mjlab.sim as sim

    importlib.import_module("mjlab.scripts.train")
    finders = list(sys.meta_path)
    mjlab.install()
    assert sys.meta_path == finders
    mjlab.uninstall()
    mjlab.uninstall()
    assert sim.Simulation is manyworlds.sim.Simulation and not hasattr(manyworlds, "scripts")
    assert not any(name.split(".")[0] == "mjlab" for name in sys.modules)
    with pytest.raises(ModuleNotFoundError, match="No module named 'mjlab'"):
        importlib.import_module("mjlab")


def test_the_real_package_is_not_hidden(monkeypatch):
    """Refuse to alias a package of which parts are in use already."""
    mjlab.uninstall()
    monkeypatch.setitem(sys.modules, "mjlab", ModuleType("mjlab"))
    with pytest.raises(ImportError, match="mjlab is already imported from None: call"):
        mjlab.install()


def test_plugins_of_both_groups_are_loaded(monkeypatch):
    """Load the entry points of the group `mjlab.tasks` while the alias is installed."""
    asked = []

    def entry_points(group):
        asked.append(group)
        return ()

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    monkeypatch.setattr(registry, "PLUGIN_GROUPS", dict.fromkeys(registry.PLUGIN_GROUPS, False))
    registry.list_tasks()
    registry.list_tasks()
    assert asked == ["manyworlds.tasks", "mjlab.tasks"]


def test_installing_is_light():
    """Import no torch for the alias's sake."""
    code = "import sys, manyworlds.compat.mjlab as m; m.install(); print('torch' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout == "False\n"


def test_tasks_are_found_by_the_ids_that_they_have_there():
    """Load tasks by the reference's ids, but only while the alias is installed."""
    from manyworlds.tasks import list_tasks, load_env_cfg, load_rl_cfg, load_runner_cls

    assert "Mjlab-Cartpole-Balance" in list_tasks()
    for task_id, task in TASKS.items():
        assert load_env_cfg(task_id).episode_length_s < 100.0
        assert load_env_cfg(task_id, play=True).episode_length_s > 1e6
        assert load_rl_cfg(task_id).max_iterations > 0
        assert (load_runner_cls(task_id) is None) == (task.runner is None)
    mjlab.uninstall()
    assert not set(TASKS) & set(list_tasks())
    with pytest.raises(KeyError, match="There is no task 'Mjlab-Cartpole-Balance'"):
        load_env_cfg("Mjlab-Cartpole-Balance")


def test_deprecated_methods_are_there_while_the_alias_is_installed(tmp_path):
    """Warn of methods that are older than the interface, and remove them with the alias."""
    from mjlab.entity import Entity
    from mjlab.scene import Scene, SceneCfg

    with pytest.warns(DeprecationWarning, match=r"call write\(path, zip=True\)"):
        assert Scene(SceneCfg(), "cpu").to_zip(tmp_path / "scene").suffix == ".zip"
    assert Entity.clear_state
    mjlab.uninstall()
    assert not hasattr(Scene, "to_zip") and not hasattr(Entity, "clear_state")
