"""Actions: slices, memory, mistakes."""

import copy
from dataclasses import replace

import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.managers import ActionManager
from manyworlds.utils.config import to_plain


def test_actions_are_remembered_scaled_and_clipped(env_cfg):
    """Keep the last three raw actions; apply scale, offset and clip in this order."""
    env_cfg.actions["effort"] = replace(
        env_cfg.actions["effort"], scale=10.0, offset=1.0, clip={"slider": (-4.0, 6.0)}
    )
    env = ManagerBasedRlEnv(env_cfg)
    manager = env.action_manager
    first, second = torch.tensor([[0.1], [0.3], [-0.3], [-1.0]]), torch.full((4, 1), 9.0)
    manager.process_action(first)
    manager.apply_action()
    target = env.scene["cartpole"].data.joint_effort_target
    assert torch.allclose(target[:, 0], torch.tensor([2.0, 4.0, -2.0, -4.0]))
    manager.process_action(second)
    assert torch.equal(manager.action, second) and torch.equal(manager.prev_action, first)
    assert torch.equal(manager.get_term("effort").raw_action, second)
    manager.reset(torch.tensor([0]))
    assert manager.action[0] == 0.0 and manager.action[1] == 9.0


def test_bad_actions_are_named(env):
    """Refuse wrong shapes and values that are not finite, naming world and column."""
    with pytest.raises(
        ValueError, match=r"shape \(4, 2\), expected \(4, 1\) for terms \['effort'\]"
    ):
        env.step(torch.zeros(4, 2))
    action = torch.zeros(4, 1)
    action[2, 0] = torch.nan
    with pytest.raises(ValueError, match="The action of world 2 is nan in column 0"):
        env.step(action)


def test_terms_share_the_action_vector_in_order(env, env_cfg):
    """Give each term its slice, leave out None, and keep the configs as they were."""
    effort = env_cfg.actions["effort"]
    cfg = {"a": effort, "none": None, "b": replace(effort, scale=2.0)}
    before = to_plain(copy.deepcopy(cfg))
    manager = ActionManager(cfg, env)
    assert manager.active_terms == ["a", "b"]
    assert (manager.action_term_dim, manager.total_action_dim) == ([1, 1], 2)
    actions = torch.arange(8.0).reshape(4, 2)
    for _ in range(2):
        manager.process_action(actions)
    assert manager.get_term("b").raw_action.flatten().tolist() == [1.0, 3.0, 5.0, 7.0]
    assert torch.equal(manager.prev_action, actions) and not manager.prev_prev_action.any()
    assert manager.get_active_iterable_terms(3) == [("a", [6.0]), ("b", [7.0])]
    assert to_plain(cfg) == before
    with pytest.raises(ValueError, match="ActionManager has no term 'c'. Available: a, b"):
        manager.get_term("c")
    assert manager.get_term_cfg("b").scale == 2.0 and manager.get_term_cfg("b") is not cfg["b"]
    saved = manager.state_dict()
    manager.reset()
    assert not manager.action.any()
    manager.load_state_dict(saved)
    assert torch.equal(manager.action, actions)


def test_a_bad_action_config_is_named(env, env_cfg):
    """Say which term could not be built."""
    bad = replace(env_cfg.actions["effort"], actuator_names=("wheel",))
    with pytest.raises(ValueError, match="^ActionManager term 'drive' with params .*wheel"):
        ActionManager({"drive": bad}, env)
