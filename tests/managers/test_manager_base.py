"""Common behavior of managers: copies of configs, class terms, saved state, errors and tables."""

import copy
import re
from dataclasses import replace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from manyworlds.envs import ManagerBasedRlEnv, mdp
from manyworlds.envs.mdp import events as event_terms
from manyworlds.managers import (
    EventManager,
    EventTermCfg,
    ObservationGroupCfg,
    ObservationManager,
    ObservationTermCfg,
    RewardManager,
    RewardTermCfg,
    SceneEntityCfg,
    TerminationManager,
    TerminationTermCfg,
    manager_base,
)
from manyworlds.signals import (
    GaussianNoiseCfg,
    NoiseModelWithAdditiveBiasCfg,
    UniformNoiseCfg,
)
from manyworlds.utils.config import to_plain
from manyworlds.validation.rules import Rules
from tests.managers.terms import Counter, world_number, world_rows


def test_a_term_that_raises_says_which_it_is(env):
    """Add the manager, the term and its parameters to the error."""

    def broken(env, gain: float) -> torch.Tensor:
        raise RuntimeError("sensor on fire")

    cfg = {"broken": RewardTermCfg(func=broken, weight=1.0, params={"gain": 3.0})}
    message = r"^RewardManager term 'broken' with params {'gain': 3.0}: sensor on fire"
    with pytest.raises(RuntimeError, match=message) as raised:
        RewardManager(cfg, env).compute(1.0)
    line = broken.__code__.co_firstlineno + 1
    assert raised.value.__notes__ == [f"({__file__}, line {line})"]


def test_a_wrong_signature_is_told_when_the_term_is_prepared(env):
    """Misspell a parameter, and take no environment: name the function, its place and the name."""

    def scaled(env, scale: float = 1.0) -> torch.Tensor:
        return torch.full((env.num_envs,), scale)

    def alone() -> None:
        pass

    place = rf"{__file__}, line \d+"
    cfg = {"odd": RewardTermCfg(func=scaled, weight=1.0, params={"scael": 2.0})}
    message = rf"'odd': scaled\(env, .*\({place}\) has no parameter 'scael'. Did"
    with pytest.raises(ValueError, match=message):
        RewardManager(cfg, env)
    cfg = {"odd": RewardTermCfg(func=alone, weight=1.0)}
    with pytest.raises(ValueError, match=rf"alone\(\) .*\({place}\) must take the environment"):
        RewardManager(cfg, env)
    cfg = {"odd": RewardTermCfg(func=scaled, weight="1.0")}
    with pytest.raises(ValueError, match="'odd' has weight '1.0', a str: give a number"):
        RewardManager(cfg, env)


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


class Bare:
    """A class term without base class or reset, as users write them."""

    def __init__(self, cfg, env) -> None:
        self.gain = cfg.params["gain"]

    def __call__(self, env, gain: float) -> torch.Tensor:
        return self.gain * world_number(env)


def test_a_class_term_needs_no_base_class(env):
    """Instantiate, call and reset around a class that has only what it needs."""
    manager = RewardManager(
        {"bare": RewardTermCfg(func=Bare, weight=1.0, params={"gain": 2.0})}, env, False
    )
    manager.reset(torch.tensor([1]))
    assert manager.compute(1.0).tolist() == [0.0, 2.0, 4.0, 6.0]
    assert "terms" in manager.state_dict() and manager.state_dict()["terms"] == {}


def test_a_class_in_two_groups_is_two_instances(env):
    """Keep the state of one term config apart where two groups use it."""

    class Column(Counter):
        def __call__(self, env, step: float = 1.0) -> torch.Tensor:
            return super().__call__(env, step)[:, None]

    term = ObservationTermCfg(func=Column)
    groups = {name: ObservationGroupCfg(terms={"count": term}) for name in ("a", "b")}
    manager = ObservationManager(groups, env)
    first = manager.get_term_cfg("a", "count").func
    assert first is not manager.get_term_cfg("b", "count").func and term.func is Column
    manager.reset()
    manager.compute_group("a", update_history=True)
    manager.compute_group("a", update_history=True)
    assert manager.compute(update_history=True)["b"].flatten().tolist() == [1.0] * 4


def test_errors_of_any_shape_name_their_term(env):
    """Name the term in a note where an error's message is not one string."""

    def broken(env) -> torch.Tensor:
        raise OSError(2, "gone")

    with pytest.raises(OSError, match="gone") as caught:
        RewardManager({"broken": RewardTermCfg(func=broken, weight=1.0)}, env).compute(1.0)
    assert "RewardManager term 'broken'" in caught.value.__notes__[0]

    class Unfit:
        def __init__(self, cfg, env) -> None:
            raise ValueError("no motor")

    with pytest.raises(ValueError, match="^RewardManager term 'unfit' with params {}: no motor"):
        RewardManager({"unfit": RewardTermCfg(func=Unfit, weight=1.0)}, env)


def test_default_entities_are_resolved_in_copies(env):
    """Resolve the default of a term's parameter like one in params, and never change it."""
    default = SceneEntityCfg("cartpole", joint_names="hinge.*")
    absent = SceneEntityCfg("robot", joint_names=".*")

    def angle(env, asset_cfg=default, other=absent) -> torch.Tensor:
        assert other is absent
        return env.scene[asset_cfg.name].data.joint_pos[:, asset_cfg.joint_ids].squeeze(1)

    manager = RewardManager({"angle": RewardTermCfg(func=angle, weight=1.0)}, env)
    assert manager.get_term_cfg("angle").params["asset_cfg"].joint_ids == [1]
    assert default == SceneEntityCfg("cartpole", joint_names="hinge.*")
    assert SceneEntityCfg("robot") == event_terms._ROBOT


def test_other_rules_leave_parameters_as_they_are(env, monkeypatch):
    """Add no default to `params` of another package, and resolve none; ours are resolved."""
    monkeypatch.setattr(manager_base, "RULES", [Rules(keeps_params=True)])
    default = SceneEntityCfg("cartpole", joint_names="hinge.*")
    seen = []

    def angle(env, scale: float, asset_cfg=default) -> torch.Tensor:
        seen.append(asset_cfg)
        return scale * world_number(env)

    class Angle:
        def __init__(self, cfg, env) -> None:
            assert cfg.params == {"scale": 2.0}

        def __call__(self, env, scale: float, asset_cfg=default) -> torch.Tensor:
            return angle(env, scale, asset_cfg)

    def ours(env, scale: float, asset_cfg=default) -> torch.Tensor:
        return angle(env, scale, asset_cfg)

    ours.__module__ = "manyworlds.envs.mdp"
    terms = {
        func.__name__: RewardTermCfg(func=func, weight=1.0, params={"scale": 2.0})
        for func in (angle, Angle, ours)
    }
    manager = RewardManager(terms, env)
    manager.compute(0.02)
    assert manager.get_term_cfg("angle").params == {"scale": 2.0}
    assert manager.get_term_cfg("ours").params.keys() == {"scale", "asset_cfg"}
    assert [selection.joint_ids for selection in seen] == [slice(None), slice(None), [1]]


def test_entities_within_parameters_are_resolved(env):
    """Look for entities in lists and dicts, too."""
    nested = {"cfgs": [SceneEntityCfg("cartpole", joint_names="hinge_1")]}

    def term(env, table) -> torch.Tensor:
        return world_number(env)

    cfg = {"t": RewardTermCfg(func=term, weight=1.0, params={"table": nested})}
    manager = RewardManager(cfg, env)
    assert manager.get_term_cfg("t").params["table"]["cfgs"][0].joint_ids == [1]
    assert nested["cfgs"][0].joint_ids == slice(None)


def test_managers_show_themselves_as_tables_only_when_asked(env, capsys):
    """List terms and what is set about them; print nothing."""
    for name, words in {
        "action": ("ActionManager", "effort", "JointEffortAction", "width"),
        "observation": ("group 'actor' (5,)", "pole_angle", "(2,)"),
        "reward": ("RewardManager", "smooth_reward", "cartpole_smooth_reward", "1.0"),
        "termination": ("TerminationManager", "time_out", "True"),
        "event": ("EventManager", "reset_hinge", "reset_joints_by_offset", "mode"),
    }.items():
        shown = re.sub(r"\s+", " ", str(getattr(env, f"{name}_manager")))
        assert all(word in shown for word in words), shown
    assert capsys.readouterr().out == ""


def test_values_of_one_world_are_listed(env):
    """Give viewers the values of each term in one world."""
    action = torch.tensor([[0.1], [0.2], [0.3], [0.4]])
    obs, reward, *_ = env.step(action)
    assert env.action_manager.get_active_iterable_terms(2) == [("effort", [action[2].item()])]
    shown = dict(env.observation_manager.get_active_iterable_terms(2))
    assert shown["actor/cart_pos"] + shown["actor/pole_angle"] == obs["actor"][2, :3].tolist()
    ((name, [value]),) = env.reward_manager.get_active_iterable_terms(2)
    assert name == "smooth_reward" and value * env.step_dt == pytest.approx(reward[2].item())
    dones = dict(env.termination_manager.get_active_iterable_terms(2))
    assert dones == {"time_out": [0.0], "diverged": [0.0]}
    assert env.event_manager.get_active_iterable_terms(2) == []


def test_terms_that_draw_themselves_are_asked_to(env):
    """Pass the visualizer to each term that has `debug_vis`."""

    class Drawn(Bare):
        def debug_vis(self, visualizer) -> None:
            visualizer.append(self.gain)

    terms = {
        name: RewardTermCfg(func=func, weight=1.0, params={"gain": 3.0})
        for name, func in (("drawn", Drawn), ("bare", Bare))
    }
    manager, drawing = RewardManager(terms, env), []
    manager.debug_vis(drawing)
    assert drawing == [3.0]
    assert [name for name, _ in manager.get_visualizable_terms()] == ["drawn"]


def test_state_of_another_configuration_is_refused(env):
    """Say so where saved terms are not those of the manager."""
    term = {"count": RewardTermCfg(func=Counter, weight=1.0)}
    saved = RewardManager(term, env).state_dict()
    other = RewardManager({"c": RewardTermCfg(func=Counter, weight=1.0)}, env)
    with pytest.raises(ValueError, match=r"RewardManager has terms \['count'\], expected \['c'\]"):
        other.load_state_dict(saved)


def test_a_run_goes_on_bit_for_bit_with_everything_on(env_cfg):
    """Restore noise, delays, histories and timers in the middle of episodes."""
    env_cfg.episode_length_s = 0.5
    group = env_cfg.observations["actor"]
    group.enable_corruption, group.history_length = True, 3
    bias = NoiseModelWithAdditiveBiasCfg(
        noise_cfg=GaussianNoiseCfg(std=0.1), bias_noise_cfg=GaussianNoiseCfg(std=1.0)
    )
    for term in group.terms.values():
        term.noise, term.delay_max_lag, term.delay_update_period = bias, 3, 2
    env_cfg.events["push"] = EventTermCfg(
        func=mdp.reset_joints_by_offset,
        mode="interval",
        interval_range_s=(0.1, 0.4),
        params={**env_cfg.events["reset_cart"].params},
    )
    before = to_plain(env_cfg)

    def run(env: ManagerBasedRlEnv, start: int) -> torch.Tensor:
        seen = []
        for step in range(start, start + 9):
            obs = env.step(torch.full((4, 1), 0.1 * step))[0]["actor"]
            obs = env.reset(env_ids=[step % 4])[0]["actor"] if step % 3 == 0 else obs
            seen.append(obs)
        return torch.stack(seen)

    first = ManagerBasedRlEnv(env_cfg)
    run(first, 0)
    saved = copy.deepcopy(first.state_dict())
    expected = run(first, 9)
    for env in (ManagerBasedRlEnv(env_cfg), first):
        env.load_state_dict(saved)
        assert torch.equal(run(env, 9), expected)
    assert to_plain(env_cfg) == before


class Reads(TorchDispatchMode):
    """Notes the operations for which the host must wait for a device."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        masks = any(
            isinstance(index, torch.Tensor) and index.dtype == torch.bool
            for index in (args[1] if name in ("index", "index_put_") else ())
        )
        if masks or name in ("_local_scalar_dense", "nonzero", "masked_select", "equal"):
            self.names.append(name)
        return func(*args, **(kwargs or {}))


def test_a_step_of_the_managers_waits_for_no_device(env):
    """Compute observations, rewards, terminations and timers, and reset worlds, without a read."""
    term = ObservationTermCfg(
        func=world_rows,
        noise=UniformNoiseCfg(n_min=(-1.0, -2.0)),
        clip=(0.0, 50.0),
        scale=(1.0, 2.0),
        delay_max_lag=2,
        delay_update_period=2,
        history_length=3,
    )
    group = ObservationGroupCfg(terms={"t": term}, enable_corruption=True, nan_policy="sanitize")
    managers = (
        ObservationManager({"g": group}, env),
        RewardManager({"r": RewardTermCfg(func=world_number, weight=1.0)}, env),
        TerminationManager({"t": TerminationTermCfg(func=lambda e: world_number(e) > 2)}, env),
    )
    observations, rewards, terminations = managers
    observations.compute(update_history=True)
    ids = torch.tensor([1, 2])
    with Reads() as reads:
        for _ in range(3):
            terminations.compute()
            rewards.compute(0.1)
            for manager in (*managers, env.action_manager):
                manager.reset(ids)
            observations.compute(update_history=True)
            observations.compute(update_history=True, env_ids=ids)
    assert reads.names == []
    timed = EventTermCfg(func=lambda e, i: None, mode="interval", interval_range_s=(0.1, 0.3))
    events = EventManager({"a": timed, "b": replace(timed, is_global_time=True)}, env)
    with Reads() as reads:
        for _ in range(3):
            events.reset(ids)
            events.apply("interval", dt=0.1)
    assert reads.names == []  # but for the copy of all timers' flags to the host
