"""Events and changes of variants in one environment: their order, custom terms, saved states."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv, mdp
from manyworlds.envs.mdp import dr
from manyworlds.managers import EventTermCfg, SceneEntityCfg, requires_model_fields
from tests.envs.mdp.dr.robot import make_env as make_plain_env
from tests.envs.mdp.dr.test_swaps import DRIFT, make_env, rows, term

TIP = SceneEntityCfg("robot", geom_names=("tip",))
SWAP = EventTermCfg(func=mdp.randomize_variant, mode="reset")
FACTORS = torch.tensor([1.0, 1.1, 1.25])


def friction(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Sliding friction of the tip, shape [num_envs]."""
    return env.sim.model.geom_friction[:, env.sim.mj_model.geom("robot/tip").id, 0]


def nominal(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Value of the element by variant."""
    return FACTORS[env.sim.world_to_variant["robot"]]


def scale(mode: str = "startup", **kwargs: Any) -> EventTermCfg:
    """Scale it by a drawn factor."""
    params = {"asset_cfg": TIP, "ranges": (0.5, 0.9), "operation": "scale", **kwargs}
    return term(dr.geom_friction, mode, **params)


@pytest.mark.slow_on_warp
@pytest.mark.parametrize("engine", ["native", "warp"])
def test_resets_swap_variants_under_startup_draws(engine):
    """Draw variants at resets, before or after which a world keeps the factor that it was given."""
    env = make_env([0, 1, 2] * 8, engine, swap=SWAP, rub=scale(), mass=term(dr.pseudo_inertia))
    factor = friction(env) / nominal(env)
    assert len(factor.unique()) == 24 and factor.max() < 0.91
    seen = set()
    for ids in (None, torch.arange(12), torch.arange(6, 24)):
        env.reset(env_ids=ids)
        torch.testing.assert_close(friction(env) / nominal(env), factor)
        seen |= set(enumerate(env.sim.world_to_variant["robot"].tolist()))
    assert len(seen) > 30


@pytest.mark.parametrize("first", [True, False])
def test_startup_swaps_may_stand_anywhere(first):
    """Draw variants at startup, before or after other events."""
    swap = term(mdp.randomize_variant)
    events = {"swap": swap, "rub": scale()} if first else {"rub": scale(), "swap": swap}
    env = make_env([0] * 20, **events)
    assert len(env.sim.world_to_variant["robot"].unique()) == 3
    factor = friction(env) / nominal(env)
    assert len(factor.unique()) == 20 and factor.min() > 0.49 and factor.max() < 0.91


def test_what_a_reset_draws_after_the_swap_is_drawn_once():
    """Call terms that follow the swap once for each world; those before it draw no more."""
    calls: list[tuple[str, list[int]]] = []

    def note(name: str) -> EventTermCfg:
        @requires_model_fields("geom_friction")
        def func(env, env_ids) -> None:
            calls.append((name, env_ids.tolist()))

        return EventTermCfg(func=func, mode="reset")

    throttled = note("late")
    throttled.min_step_count_between_reset = 5
    swap = EventTermCfg(
        func=lambda env, ids: env.sim.assign_variants("robot", ids, 1), mode="reset"
    )
    terms = {"before": note("before"), "swap": swap, "after": note("after"), "late": throttled}
    env = make_env([0, 1, 2], **terms)
    everywhere = [0, 1, 2]
    first = [("before", everywhere), ("before", [0, 2]), ("after", everywhere)]
    assert calls == [*first, ("late", everywhere)]
    env.sim.assign_variants("robot", [0], [2])
    del calls[:]
    env.reset()
    assert calls == [("before", everywhere), ("late", [0]), ("before", [0]), ("after", everywhere)]


@requires_model_fields("geom_friction")
class Rub:
    """Sets friction to a number drawn at random, and counts the worlds it is called for."""

    def __init__(self, cfg: EventTermCfg, env: ManagerBasedRlEnv) -> None:
        self.worlds: list[list[int]] = []

    def __call__(
        self, env: ManagerBasedRlEnv, env_ids: torch.Tensor | None, asset_cfg: SceneEntityCfg
    ) -> None:
        """Draw."""
        ids = torch.arange(env.num_envs) if env_ids is None else env_ids
        self.worlds.append(ids.tolist())
        rows = env.scene[asset_cfg.name].indexing.geom_ids[asset_cfg.geom_ids]
        env.sim.model.geom_friction[ids[:, None], rows, 0] = torch.rand(len(ids), 1) + 2.0


@pytest.mark.slow_on_warp
@pytest.mark.parametrize("engine", ["native", "warp"])
def test_terms_of_ones_own_are_called_again(engine):
    """Call a class that declares a field of the variants for the swapped worlds only."""

    def others(env: ManagerBasedRlEnv) -> torch.Tensor:
        return env.sim.model.geom_friction[:, env.scene["other"].indexing.geom_ids].clone()

    other = SceneEntityCfg("other", geom_names=("tip",))
    terms = {
        "rub": term(Rub, asset_cfg=copy.deepcopy(TIP)),
        "far": term(Rub, asset_cfg=other),
        "top": scale(operation="add"),
    }
    env = make_env([0, 0, 1], engine, bystander=True, **terms)
    rub, far = (env.event_manager.get_term_cfg(name).func for name in ("rub", "far"))
    assert rub.worlds == far.worlds == [[0, 1, 2]]
    before, far_before, added = rows(env), others(env), friction(env) - nominal(env)
    env.sim.assign_variants("robot", [0, 1, 2], [0, 2, 1])
    assert rub.worlds == [[0, 1, 2], [1]] and far.worlds == [[0, 1, 2]]
    for field, values in rows(env).items():
        np.testing.assert_array_equal(values[[0, 2]], before[field][[0, 2]], err_msg=field)
    np.testing.assert_array_equal(others(env), far_before)
    # The last term adds to what the variant has, so what was set before it counts no more.
    torch.testing.assert_close(friction(env)[1] - 1.25, added[1])


def test_a_drift_starts_over():
    """Let friction wander: a world that becomes another variant begins at its last step."""
    drift = scale("interval", ranges=(0.01, 0.02), operation=DRIFT)
    drift.interval_range_s = (0.004, 0.004)
    env = make_env([0, 0], drift=drift)
    action = torch.zeros(2, env.action_manager.total_action_dim)
    while (friction(env) - 1.0).min() < 0.1:
        before = friction(env).clone()
        env.step(action)
    last = friction(env) - before
    assert (last > 0.009).all()
    worn = friction(env)[1].clone()
    env.sim.assign_variants("robot", [0, 1], [1, 0])
    torch.testing.assert_close(friction(env), torch.stack([1.1 + last[0], worn]))


def test_terms_apply_in_the_order_in_which_they_happened():
    """Set friction at an interval and scale at resets: whichever was last counts after a swap."""
    terms = {
        "reset": scale("reset"),
        "now_and_then": scale("interval", ranges=(5.0, 6.0), operation="abs"),
    }
    terms["now_and_then"].interval_range_s = (0.002, 0.002)
    env = make_env([0, 0], **terms)
    action = torch.zeros(2, env.action_manager.total_action_dim)
    env.step(action)
    env.reset(env_ids=torch.tensor([1]))
    before = friction(env).clone()
    assert before[0] > 4.9 and before[1] < 1.0
    env.sim.assign_variants("robot", None, 2)
    torch.testing.assert_close(friction(env), torch.stack([before[0], 1.25 * before[1]]))


@pytest.mark.parametrize("engine", ["native", "warp"])
def test_a_resumed_environment_swaps_in_the_same_way(engine):
    """Load a state into another environment, and swap there: rows are the same, to the bit."""
    # Warp's rows of one environment and of another that was built alike are compared: no sums.
    events = {
        "swap": SWAP,
        "rub": scale(),
        "spin": scale("reset", ranges={1: (0.1, 0.2)}, operation="abs"),
        "gains": term(dr.pd_gains, kp_range=(0.5, 1.5), kd_range=(0.5, 1.5)),
        "limits": term(dr.effort_limits, effort_limit_range=(0.5, 1.5)),
        "turn": term(dr.geom_quat, yaw_range=(-0.5, 0.5)),
        "home": term(dr.joint_default_pos, ranges=(-0.1, 0.1)),
        "paint": term(dr.geom_matid),
        "rub_again": term(Rub, "reset", asset_cfg=copy.deepcopy(TIP)),
    }
    env = make_env([0, 1, 2, 0], engine, **events)
    env.reset(env_ids=torch.tensor([0, 2]))
    state = copy.deepcopy(env.state_dict())
    other = make_env([2, 2, 2, 2], engine, **events)
    other.reset(seed=99)
    results = []
    for each in (env, other):
        each.load_state_dict(state)
        each.sim.assign_variants("robot", None, [1, 2, 0, 1])
        each.reset(env_ids=torch.tensor([1, 3]))
        each.step(torch.zeros(4, each.action_manager.total_action_dim))
        results.append((rows(each), each.scene["robot"].data.default_joint_pos.clone()))
    for field, values in results[0][0].items():
        np.testing.assert_array_equal(values, results[1][0][field], err_msg=field)
    assert torch.equal(results[0][1], results[1][1])
    if engine == "native":
        assert torch.equal(env.sim.data.qpos, other.sim.data.qpos)


def test_changed_parameters_count_at_the_next_draw():
    """Repeat a world's numbers with the parameters of now, when its variant changes."""
    env = make_env([0] * 6, rub=scale())
    params = env.event_manager.get_term_cfg("rub").params
    before = friction(env).clone()
    share = (before / nominal(env) - 0.5) / (0.9 - 0.5)
    params["ranges"] = (5.0, 6.0)
    env.sim.assign_variants("robot", [0], [1])
    torch.testing.assert_close(friction(env)[0], nominal(env)[0] * (5.0 + share[0]))
    assert torch.equal(friction(env)[1:], before[1:])
    params["operation"] = "abs"
    env.sim.assign_variants("robot", [1, 2], 2)
    torch.testing.assert_close(friction(env)[1:3], 5.0 + share[1:3])
    now = friction(env)[1].clone()
    env.sim.assign_variants("robot", [1, 3], [0, 1])
    assert friction(env)[1] == now
    torch.testing.assert_close(friction(env)[3], 5.0 + share[3])


def test_direct_calls_are_not_kept():
    """Call a function by hand: the swap puts the field back, in the worlds swapped."""
    env = make_env([0, 0])
    dr.geom_friction(env, None, (0.3, 0.4), TIP)
    env.sim.assign_variants("robot", [0], [1])
    assert friction(env)[0] == torch.tensor(1.1) and friction(env)[1] < 0.5


def test_nothing_is_kept_without_variants():
    """Keep no draws where no entity has variants, or none that an event randomizes."""
    plain = make_plain_env(rub=scale())
    elsewhere = make_env(
        [0, 1], bystander=True, rub=scale(asset_cfg=SceneEntityCfg("other", geom_names=("tip",)))
    )
    for env in (plain, elsewhere):
        assert "memory" not in env.event_manager.state_dict()
        assert env.sim.after_assignment is None
        assert env.event_manager.state_dict()["terms"] == {}
    with pytest.raises(ValueError, match="whether the draws of events are kept"):
        plain.event_manager.load_state_dict(make_env([0], rub=scale()).event_manager.state_dict())
