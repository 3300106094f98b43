"""Functions, constants and packages whose form differs from ours."""

import importlib

import pytest
import torch
import yaml

import manyworlds.tasks.velocity.mdp
from manyworlds.asset_zoo.quadruped import QUADRUPED_ACTUATORS
from manyworlds.rl import OnPolicyRunner
from manyworlds.signals import DelayBuffer
from tests.robots import robot_file

pytestmark = pytest.mark.usefixtures("alias")


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("velocity.rl", "VelocityOnPolicyRunner"),
        ("velocity.config.go1", "VelocityOnPolicyRunner"),
        ("manipulation.rl.runner", "ManipulationOnPolicyRunner"),
        ("manipulation.config.yam", "ManipulationOnPolicyRunner"),
        ("tracking.rl", "MotionTrackingOnPolicyRunner"),
        ("tracking.config.g1", "MotionTrackingOnPolicyRunner"),
    ],
)
def test_runners_of_tasks(place, name):
    """Import a runner from the packages that have it in mjlab; it is one of ours."""
    runner = getattr(importlib.import_module(f"mjlab.tasks.{place}"), name)
    assert issubclass(runner, OnPolicyRunner)


@pytest.mark.parametrize("task", ["velocity", "tracking", "manipulation"])
def test_packages_of_terms_show_the_general_terms(task):
    """Show all general terms, the package's own, and the classes that terms take."""
    own, general = {}, {}
    exec(f"from mjlab.tasks.{task}.mdp import *", own)
    exec("from mjlab.envs.mdp import *", general)
    assert {*general} - {*own} == set()
    ours = importlib.import_module(f"manyworlds.tasks.{task}.mdp")
    assert all(own[name] is getattr(ours, name) for name in ours.__all__ if name != "dr")
    for name in ("SceneEntityCfg", "RewardTermCfg", "Entity", "ContactSensor", "NanGuard"):
        assert isinstance(own[name], type)
    assert own["dr"].body_mass is general["dr"].body_mass


def test_a_package_of_terms_can_be_extended(tmp_path, monkeypatch):
    """Star-import the terms into a package of one's own, as templates do."""
    (tmp_path / "terms_of_a_project.py").write_text(
        "from mjlab.envs.mdp import *\n"
        "from mjlab.tasks.velocity.mdp import *\n"
        "def own(env): return is_alive(env)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    terms = importlib.import_module("terms_of_a_project")
    assert terms.feet_slip is manyworlds.tasks.velocity.mdp.feet_slip
    assert terms.dr.pseudo_inertia and terms.SceneEntityCfg and terms.own


def test_modules_of_domain_randomization():
    """Find functions in the modules of their elements, and operations by their names."""
    from mjlab.envs.mdp import dr
    from mjlab.envs.mdp.dr.body import pseudo_inertia
    from mjlab.envs.mdp.dr.pair import pair_friction

    assert (dr.pseudo_inertia, dr.pair_friction) == (pseudo_inertia, pair_friction)
    assert dr.resolve_operation("scale") is dr.scale and dr.abs.name == "abs"
    assert dr.resolve_distribution("log_uniform") is dr.log_uniform


@pytest.mark.parametrize(
    ("module", "file", "joints"),
    [
        ("unitree_go1.go1_constants", "unitree_go1/go1.xml", 12),
        ("unitree_g1.g1_constants", "unitree_g1/g1.xml", 29),
        ("i2rt_yam.yam_constants", "i2rt_yam/yam.xml", 8),
    ],
)
def test_constants_of_robots(module, file, joints):
    """Load the robots, and find scales of actions that fit them."""
    robot_file(file)
    constants = importlib.import_module(f"mjlab.asset_zoo.robots.{module}")
    robot = module.partition(".")[2].partition("_")[0]
    model = constants.get_spec().compile()
    assert sum(t >= 2 for t in model.jnt_type) == joints
    cfg = getattr(constants, f"get_{robot}_robot_cfg")()
    names = [n for a in cfg.articulation.actuators for n in a.target_names_expr]
    assert set(getattr(constants, f"{robot.upper()}_ACTION_SCALE")) <= set(names)


def test_actuators_of_go1():
    """Name the two kinds of actuators."""
    from mjlab.asset_zoo.robots.unitree_go1 import go1_constants

    hip, knee = go1_constants.GO1_HIP_ACTUATOR_CFG, go1_constants.GO1_KNEE_ACTUATOR_CFG
    assert (hip, knee) == QUADRUPED_ACTUATORS and knee.target_names_expr == (".*_calf_joint",)


def test_three_targets_are_delayed_together():
    """Return each target as it was given one step ago, by position and by name."""
    from mjlab.actuator.actuator import delay_command

    buffer = DelayBuffer(min_lag=1, max_lag=1, batch_size=2)
    steps = [[torch.full((2, 3), 10.0 * step + kind) for kind in range(3)] for step in range(3)]
    for step, targets in enumerate(steps):
        kinds = ("position_target", "velocity_target", "effort_target")
        late = delay_command(buffer, **dict(zip(kinds, targets, strict=True)))
        expected = steps[max(step - 1, 0)]
        assert all(map(torch.equal, late, expected))


def test_yaml_is_written_in_the_order_that_is_asked_for(tmp_path):
    """Write a config with its entries in their order, or sorted."""
    from mjlab.utils.os import dump_yaml

    data = {"b": 1, "a": (2, 3)}
    for sort_keys, order in ((False, ["b", "a"]), (True, ["a", "b"])):
        dump_yaml(filename=tmp_path / "new" / "cfg.yaml", data=data, sort_keys=sort_keys)
        written = yaml.safe_load((tmp_path / "new" / "cfg.yaml").read_text())
        assert list(written) == order and written["a"] == [2, 3]


def test_messages(capsys):
    """Print a message as it is; where the output is no terminal, without color."""
    from mjlab.utils.logging import print_info

    print_info("[0, 1] worlds: 3.5", color="red")
    print_info("done")
    assert capsys.readouterr().out == "[0, 1] worlds: 3.5\ndone\n"


def test_terms_of_cartpole_need_no_selection():
    """Give the cartpole's terms their joints by default."""
    from mjlab.envs import ManagerBasedRlEnv
    from mjlab.tasks.cartpole import cartpole_balance_env_cfg

    cfg = cartpole_balance_env_cfg()
    cfg.scene.num_envs = 2
    given = [cfg.rewards["smooth_reward"], cfg.observations["actor"].terms["pole_angle"]]
    kept = [term.params for term in given]
    results = []
    for params in (kept, [{}, {}]):
        for term, own in zip(given, params, strict=True):
            term.params = dict(own)
        env = ManagerBasedRlEnv(cfg, device="cpu")
        env.reset(seed=1)
        obs, reward, *_ = env.step(torch.ones(2, 1))
        results.append((obs["actor"], reward))
    assert torch.equal(results[0][0], results[1][0]) and torch.equal(results[0][1], results[1][1])
