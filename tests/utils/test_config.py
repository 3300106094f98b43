"""Configs survive the way to YAML and back."""

import functools

import pytest

from manyworlds.envs import mdp
from manyworlds.tasks import load_env_cfg, load_rl_cfg
from manyworlds.utils.config import dump_yaml, load_yaml, to_plain, update_from_plain


def test_values_come_back_and_functions_stay(tmp_path):
    """Restore every number, tuple and enum of a whole task; keep functions as code has them."""
    saved = load_env_cfg("Cartpole-Swingup")
    saved.rewards["smooth_reward"].weight = 2.5
    saved.sim.mujoco.timestep = 0.004
    saved.scene.entities["cartpole"].init_state.pos = (1.0, 2.0, 3.0)
    saved.events["reset_hinge"].params["position_range"] = (-0.5, 0.5)
    dump_yaml(tmp_path / "env.yaml", saved)
    restored = update_from_plain(load_env_cfg("Cartpole-Swingup"), load_yaml(tmp_path / "env.yaml"))
    assert to_plain(restored) == to_plain(saved)
    assert restored.events["reset_hinge"].func is mdp.reset_joints_by_offset
    assert restored.scene.entities["cartpole"].init_state.pos == (1.0, 2.0, 3.0)


def test_learner_settings_come_back(tmp_path):
    """Restore the learner's settings."""
    saved = load_rl_cfg("Cartpole-Balance")
    saved.actor.hidden_dims = (32, 32, 32)
    dump_yaml(tmp_path / "agent.yaml", saved)
    restored = load_rl_cfg("Cartpole-Balance")
    update_from_plain(restored, load_yaml(tmp_path / "agent.yaml"))
    assert restored == saved


def test_yaml_that_is_not_yaml_is_named(tmp_path):
    """Name the file that cannot be read."""
    (tmp_path / "env.yaml").write_text("a: [")
    with pytest.raises(ValueError, match=r"env.yaml' is not valid YAML"):
        load_yaml(tmp_path / "env.yaml")


def test_yaml_cannot_bring_in_objects(tmp_path):
    """Refuse tags that would construct Python objects."""
    (tmp_path / "env.yaml").write_text("a: !!python/object/apply:os.getcwd []")
    with pytest.raises(ValueError, match="not valid YAML"):
        load_yaml(tmp_path / "env.yaml")


def test_values_of_another_type_than_the_default_come_back(tmp_path):
    """Restore what a user set where the code has None, a number, or another table."""
    saved = load_env_cfg("Cartpole-Balance")
    saved.actions["effort"].clip = {"slider": (-1.0, 1.0)}
    saved.actions["effort"].scale = {"slider": 3.0}
    saved.observations["actor"].terms["cart_pos"].clip = (-1.0, 1.0)
    saved.scene.entities["cartpole"].init_state.joint_pos = {".*": 0.5}
    saved.rewards["smooth_reward"] = None
    saved.sim.mujoco.disableflags = ()
    dump_yaml(tmp_path / "env.yaml", saved)
    restored = update_from_plain(load_env_cfg("Cartpole-Balance"), load_yaml(tmp_path / "env.yaml"))
    assert to_plain(restored) == to_plain(saved)
    assert restored.actions["effort"].clip == {"slider": (-1.0, 1.0)}
    assert restored.observations["actor"].terms["cart_pos"].clip == (-1.0, 1.0)


def test_what_cannot_be_restored_is_named():
    """Name another function, and refuse an entry that the code no longer has."""
    plain = to_plain(load_env_cfg("Cartpole-Balance"))
    plain["rewards"]["smooth_reward"]["func"] = "elsewhere:other"
    with pytest.warns(UserWarning, match=r"'elsewhere:other' as rewards\.smooth_reward\.func"):
        update_from_plain(load_env_cfg("Cartpole-Balance"), plain)
    plain = to_plain(load_env_cfg("Cartpole-Balance"))
    plain["terminations"]["gone"] = {"func": "elsewhere:other", "params": {}}
    with pytest.raises(ValueError, match=r"'terminations\.gone'"):
        update_from_plain(load_env_cfg("Cartpole-Balance"), plain)


def test_functions_with_arguments_read_the_same_in_each_process():
    """Name partial functions and objects without their addresses, which differ between runs."""
    plain = to_plain({"a": functools.partial(sorted, [1], reverse=True), "b": object()})
    assert plain == {"a": "builtins:sorted([1], reverse=True)", "b": "<object object>"}
