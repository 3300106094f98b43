"""Managers: terms, shapes, logs, and configs that stay as they were."""

import copy
from dataclasses import replace

import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv, mdp
from manyworlds.managers import (
    EventManager,
    EventTermCfg,
    ManagerTermBase,
    ObservationGroupCfg,
    ObservationManager,
    ObservationTermCfg,
    RewardManager,
    RewardTermCfg,
    SceneEntityCfg,
    TerminationManager,
    TerminationTermCfg,
)
from manyworlds.utils.config import to_plain


def world_number(env) -> torch.Tensor:
    """Return 0, 1, 2, ... so that a mixed-up index shows."""
    return torch.arange(env.num_envs, dtype=torch.float32)


def world_rows(env, width: int = 2) -> torch.Tensor:
    """Return rows of 10 * world + column."""
    return 10.0 * world_number(env)[:, None] + torch.arange(float(width))


class Counter(ManagerTermBase):
    """Counts its calls per world."""

    state_attributes = ("count",)

    def __init__(self, cfg, env) -> None:
        super().__init__(env)
        self.count = torch.zeros(env.num_envs)

    def reset(self, env_ids=None) -> None:
        self.count[slice(None) if env_ids is None else env_ids] = 0.0

    def __call__(self, env, step: float = 1.0) -> torch.Tensor:
        self.count += step
        return self.count.clone()


# Observations.


def test_observations_are_clipped_scaled_and_concatenated(env):
    """Apply clip before scale, and put terms side by side in order."""
    terms = {
        "a": ObservationTermCfg(func=world_rows, clip=(0.0, 11.0), scale=(1.0, 100.0)),
        "b": ObservationTermCfg(func=world_rows, params={"width": 1}, scale=-1.0),
    }
    manager = ObservationManager({"actor": ObservationGroupCfg(terms=terms)}, env)
    obs = manager.compute()["actor"]
    assert obs.tolist()[1:3] == [[10.0, 1100.0, -10.0], [11.0, 1100.0, -20.0]]
    assert manager.group_obs_dim == {"actor": (3,)}
    assert manager.group_obs_term_dim == {"actor": [(2,), (1,)]}
    assert manager.active_terms == {"actor": ["a", "b"]}


def test_a_group_can_be_a_dict_whose_tensors_do_not_change_later(env):
    """Return terms by name, as copies of the simulation's arrays."""
    term = ObservationTermCfg(func=lambda e: e.sim.data.qpos)
    group = ObservationGroupCfg(terms={"qpos": term}, concatenate_terms=False)
    manager = ObservationManager({"g": group}, env)
    before = manager.compute()["g"]["qpos"]
    kept = before.clone()
    env.sim.data.qpos += 1.0
    assert torch.equal(before, kept)
    assert manager.group_obs_dim == {"g": [(2,)]}


def test_observation_mistakes_are_named(env):
    """Name the term that has the wrong shape or the wrong number of scales."""
    flat = ObservationTermCfg(func=world_number)
    with pytest.raises(
        ValueError, match=r"term 'actor/flat' returned \(4,\), expected \(4, \.\.\.\)"
    ):
        ObservationManager({"actor": ObservationGroupCfg(terms={"flat": flat})}, env)
    scaled = ObservationTermCfg(func=world_rows, scale=(1.0, 2.0, 3.0))
    with pytest.raises(ValueError, match="has 2 columns but 3 scales"):
        ObservationManager({"actor": ObservationGroupCfg(terms={"x": scaled})}, env)
    with pytest.raises(ValueError, match="has no term 'speed'. Available: "):
        env.observation_manager.get_term_cfg("actor", "speed")


# Rewards.


def test_rewards_are_weighted_by_dt_and_never_nan(env):
    """Sum weight * term * dt; count values that are not finite as zero."""
    cfg = {
        "number": RewardTermCfg(func=world_number, weight=2.0),
        "bad": RewardTermCfg(func=lambda e: world_number(e) / 0.0, weight=1.0),
        "off": RewardTermCfg(func=world_number, weight=0.0),
        "none": None,
    }
    manager = RewardManager(cfg, env)
    assert manager.active_terms == ["number", "bad", "off"]
    reward = manager.compute(dt=0.5)
    assert reward.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert manager.step_reward.tolist()[3] == [6.0, 0.0, 0.0]
    log = manager.reset(torch.tensor([1, 3]))
    assert log["Episode_Reward/number"].item() == pytest.approx(2.0 / env.max_episode_length_s)
    assert RewardManager(cfg, env, scale_by_dt=False).compute(dt=0.5).tolist() == [0, 2, 4, 6]
    assert manager.compute(0.5)[3] == 3.0  # episode sums of worlds 0 and 2 went on
    assert manager.reset(torch.tensor([3]))["Episode_Reward/number"] == 3.0 / 10.0


def test_a_term_of_wrong_shape_is_named(env):
    """Say which manager, which term, and what was expected."""
    bad = RewardTermCfg(func=world_rows, weight=1.0)
    with pytest.raises(
        ValueError, match=r"RewardManager term 'bad' returned \(4, 2\), expected \(4,\)"
    ):
        RewardManager({"bad": bad}, env)


def test_a_term_that_raises_says_which_it_is(env):
    """Add the manager, the term and its parameters to the error."""

    def broken(env, gain: float) -> torch.Tensor:
        raise RuntimeError("sensor on fire")

    cfg = {"broken": RewardTermCfg(func=broken, weight=1.0, params={"gain": 3.0})}
    message = r"^RewardManager term 'broken' with params {'gain': 3.0}: sensor on fire$"
    with pytest.raises(RuntimeError, match=message):
        RewardManager(cfg, env)


# Terminations.


def test_terminations_tell_failures_from_time_outs(env):
    """Keep failures and time limits apart, and log counts of finished worlds."""
    cfg = {
        "late": TerminationTermCfg(func=lambda e: world_number(e) >= 2, time_out=True),
        "fell": TerminationTermCfg(func=lambda e: world_number(e) == 3),
    }
    manager = TerminationManager(cfg, env)
    assert manager.compute().tolist() == [False, False, True, True]
    assert manager.time_outs.tolist() == [False, False, True, True]
    assert manager.terminated.tolist() == [False, False, False, True]
    assert manager.get_term("fell").tolist() == [False, False, False, True]
    log = manager.reset(torch.tensor([0, 2, 3]))
    assert {key: int(value) for key, value in log.items()} == {
        "Episode_Termination/late": 2,
        "Episode_Termination/fell": 1,
    }
    with pytest.raises(ValueError, match="has no term 'x'. Available: late, fell"):
        manager.get_term("x")


# Class terms and configs.


def test_class_terms_are_made_reset_and_saved(env):
    """Instantiate classes once, reset them with their worlds, and save their state."""
    cfg = {"count": RewardTermCfg(func=Counter, weight=1.0, params={"step": 2.0})}
    manager = RewardManager(cfg, env, scale_by_dt=False)
    manager.reset()
    assert manager.compute(1.0).tolist() == [2.0] * 4
    manager.reset(torch.tensor([1]))
    saved = manager.state_dict()
    assert manager.compute(1.0).tolist() == [4.0, 2.0, 4.0, 4.0]
    manager.load_state_dict(saved)
    assert manager.compute(1.0).tolist() == [4.0, 2.0, 4.0, 4.0]
    assert cfg["count"].func is Counter


def test_the_users_config_stays_as_it_was(env_cfg):
    """Resolve and change copies only."""
    before = to_plain(env_cfg)
    env = ManagerBasedRlEnv(env_cfg)
    env.step(torch.zeros(4, 1))
    assert to_plain(env_cfg) == before
    hinge = env.reward_manager.get_term_cfg("smooth_reward").params["hinge_cfg"]
    assert hinge.joint_ids == [1]
    assert env_cfg.rewards["smooth_reward"].params["hinge_cfg"].joint_ids == slice(None)


def test_a_bad_entity_in_a_term_is_named(env):
    """Say which term asks for what does not exist."""
    term = RewardTermCfg(
        func=mdp.joint_vel_l2, weight=1.0, params={"asset_cfg": SceneEntityCfg("robot")}
    )
    with pytest.raises(
        ValueError, match=r"RewardManager term 'v': Scene element 'robot' not found"
    ):
        RewardManager({"v": term}, env)


# Actions.


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


# Events.


def events(env, **kwargs) -> tuple[EventManager, list]:
    """Make a manager of one event that records the worlds it is called for."""
    calls: list = []

    def record(env, env_ids) -> None:
        calls.append(env_ids if env_ids is None else env_ids.tolist())

    return EventManager({"record": EventTermCfg(func=record, **kwargs)}, env), calls


def test_interval_events_happen_per_world(env):
    """Trigger each world when its own time has run out, and again after the next interval."""
    manager, calls = events(env, mode="interval", interval_range_s=(1.0, 1.0))
    manager.apply("interval", dt=0.6)
    manager.reset(torch.tensor([1]))
    manager.apply("interval", dt=0.6)
    manager.apply("interval", dt=0.6)
    manager.apply("interval", dt=0.6)
    assert calls == [[0, 2, 3], [1], [0, 2, 3]]


def test_global_interval_events_happen_to_all_at_once(env):
    """Share one timer on request."""
    manager, calls = events(env, mode="interval", interval_range_s=(1.0, 1.0), is_global_time=True)
    for _ in range(4):
        manager.apply("interval", dt=0.6)
    assert calls == [None, None]


def test_reset_events_can_be_throttled(env):
    """Skip worlds that were treated too recently."""
    manager, calls = events(env, mode="reset", min_step_count_between_reset=10)
    ids = torch.tensor([0, 1])
    manager.apply("reset", ids, global_env_step_count=0)
    manager.apply("reset", ids, global_env_step_count=5)
    manager.apply("reset", torch.tensor([1, 2]), global_env_step_count=6)
    manager.apply("reset", ids, global_env_step_count=10)
    assert calls == [[0, 1], [2], [0, 1]]


def test_event_mistakes_are_named(env):
    """Name arguments that a mode needs or cannot use."""
    with pytest.raises(ValueError, match="'x' of mode 'interval' needs interval_range_s"):
        EventManager({"x": EventTermCfg(func=lambda e, i: None, mode="interval")}, env)
    with pytest.raises(ValueError, match="has mode 'sometimes': choose one of startup"):
        EventManager({"x": EventTermCfg(func=lambda e, i: None, mode="sometimes")}, env)
    manager, _ = events(env, mode="step")
    with pytest.raises(ValueError, match="'step' need dt"):
        manager.apply("step")
    with pytest.raises(ValueError, match="do not pass env_ids"):
        manager.apply("interval", torch.tensor([0]), dt=0.1)
    with pytest.raises(ValueError, match="need global_env_step_count"):
        manager.apply("reset")


def test_managers_save_and_restore_their_state(env):
    """Restore timers, sums and remembered actions exactly."""
    for _ in range(3):
        env.step(torch.rand(4, 1))
    for name in ("action", "observation", "reward", "termination", "event"):
        manager = getattr(env, f"{name}_manager")
        saved = copy.deepcopy(manager.state_dict())
        manager.reset()
        manager.load_state_dict(saved)
        assert repr(manager.state_dict()) == repr(saved)
