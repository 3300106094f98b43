"""The alias `mjlab`."""

import importlib
import importlib.metadata
import subprocess
import sys
from types import ModuleType

import pytest

import manyworlds.rl
import manyworlds.sim
from manyworlds.compat import mjlab
from manyworlds.compat.mjlab_names import our_task_id
from manyworlds.tasks import registry


@pytest.fixture(autouse=True)
def _alias():
    mjlab.install()
    yield
    mjlab.uninstall()


def test_modules_are_the_same_objects():
    """Import each module once, whatever it is called."""
    import mjlab as package
    import mjlab.sim.sim as module
    from mjlab import sim
    from mjlab.sim import Simulation

    assert package is manyworlds and sim is manyworlds.sim
    assert module is importlib.import_module("manyworlds.sim.sim")
    assert Simulation is manyworlds.sim.Simulation
    assert module.__spec__.name == module.__name__ == "manyworlds.sim.sim"


def test_a_renamed_name_is_found():
    """Find what is called otherwise here, also in modules that there are not."""
    from mjlab import scripts
    from mjlab.rl import MjlabOnPolicyRunner
    from mjlab.utils.spaces import Box

    assert MjlabOnPolicyRunner is manyworlds.rl.OnPolicyRunner
    assert Box.__module__.startswith("gymnasium")
    assert callable(scripts.train.main)


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
        (
            "from mjlab.sim.randomization import repeat_array_kernel",
            r"nearest is manyworlds\.sim\.randomization\.expand_model_fields",
        ),
        (
            "from mjlab.scripts.train import run_train",
            r"nearest is manyworlds\.rl\.training\.train",
        ),
    ],
)
def test_a_warning_names_the_nearest_of_a_missing_name(statement, text):
    """Warn before the ImportError, which is Python's own, in packages and modules."""
    with pytest.warns(UserWarning, match=text), pytest.raises(ImportError, match="cannot import"):
        exec(statement)


def test_a_missing_module_names_the_nearest():
    """Name the nearest module in the ImportError."""
    with pytest.raises(ImportError, match=r"no mjlab\.senser\. Did you mean 'sensor'"):
        importlib.import_module("mjlab.senser")
    with pytest.raises(ImportError, match=r"no mjlab\.scripts\.trian\. Did you mean 'train'"):
        importlib.import_module("mjlab.scripts.trian")


def test_a_module_that_is_not_imported_yet_gives_no_warning(recwarn, monkeypatch):
    """Import a submodule by `from`, for which Python first looks for an attribute."""
    for name in ("mjlab.utils.openmp", "manyworlds.utils.openmp"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.delattr(importlib.import_module("mjlab.utils"), "openmp", raising=False)
    from mjlab.utils import openmp

    assert openmp.__name__ == "manyworlds.utils.openmp" and not list(recwarn)


def test_a_missing_attribute_is_an_attribute_error():
    """Leave `hasattr` and `getattr` with a default as they are."""
    import mjlab.sim as sim

    with pytest.warns(UserWarning, match="Did you mean 'Simulation'"):
        assert not hasattr(sim, "Simulatio")
    with (
        pytest.warns(UserWarning),
        pytest.raises(AttributeError, match="Did you mean 'Simulation'"),
    ):
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
    assert type(sim) is ModuleType and not hasattr(manyworlds, "scripts")
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
    """Load our tasks by the reference's ids, but only while the alias is installed."""
    from manyworlds.tasks import list_tasks, load_env_cfg, load_rl_cfg

    theirs = "Mjlab-Cartpole-Balance"
    assert load_env_cfg(theirs, play=True) == load_env_cfg("Cartpole-Balance", play=True)
    assert load_rl_cfg(theirs) == load_rl_cfg("Cartpole-Balance")
    assert theirs not in list_tasks()
    assert our_task_id("Mjlab-Velocity-Flat-Unitree-Go1") in list_tasks()
    mjlab.uninstall()
    with pytest.raises(KeyError, match="There is no task 'Mjlab-Cartpole-Balance'"):
        load_env_cfg(theirs)
