"""Observations: groups, noise, delays, histories, and partial resets."""

import copy
from dataclasses import replace

import pytest
import torch

from manyworlds.managers import ObservationGroupCfg, ObservationManager, ObservationTermCfg
from manyworlds.signals import (
    ConstantNoiseCfg,
    GaussianNoiseCfg,
    NoiseModelWithAdditiveBiasCfg,
    UniformNoiseCfg,
)
from manyworlds.utils.config import to_plain
from tests.managers.terms import world_number, world_rows


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


class Signal:
    """A term whose value of each step is known: 100 * step + 10 * world + column."""

    def __init__(self, width: int = 2) -> None:
        self.step = 0
        self.width = width

    def __call__(self, env) -> torch.Tensor:
        return 100.0 * self.step + world_rows(env, self.width)

    def __deepcopy__(self, memo) -> "Signal":
        return self


def manager_of(env, term: ObservationTermCfg, **group) -> ObservationManager:
    """Make a manager of one term of one group."""
    return ObservationManager({"g": ObservationGroupCfg(terms={"t": term}, **group)}, env)


class Worlds:
    """Expected observations of each world, kept in lists."""

    def __init__(self, num_envs: int, length: int) -> None:
        self.values: list[list[torch.Tensor]] = [[] for _ in range(num_envs)]
        self.delayed: list[list[torch.Tensor]] = [[] for _ in range(num_envs)]
        self.length = length

    def begin(self, world: int) -> None:
        self.values[world], self.delayed[world] = [], []

    def append(self, world: int, row: torch.Tensor, lag: int) -> None:
        values = self.values[world]
        values.append(row)
        self.delayed[world].append(values[max(0, len(values) - 1 - lag)])

    def observe(self) -> torch.Tensor:
        """Histories, the oldest first and the first value repeated before it."""
        rows = []
        for seen in self.delayed:
            padded = [seen[0]] * (self.length - len(seen)) + seen
            rows.append(torch.stack(padded[-self.length :]))
        return torch.stack(rows)


@pytest.mark.parametrize("options", [{}, {"delay_per_env": False}, {"delay_update_period": 3}])
def test_delays_and_histories_are_those_of_lists(env, options):
    """Delay by the lag drawn, then remember, through resets of some and of all worlds."""
    signal, length = Signal(), 3
    term = ObservationTermCfg(
        func=signal, delay_min_lag=1, delay_max_lag=3, history_length=length, **options
    )
    manager = manager_of(env, replace(term, flatten_history_dim=False))
    delay, model = manager._pipelines["g"]["t"]._delay, Worlds(4, length)
    manager.reset()
    for step in range(30):
        signal.step += 1
        ids = {5: [1], 6: [1, 3], 17: [0, 1, 2, 3], 25: [2]}.get(step)
        if ids is not None and step != 6:  # as env.step: reset, then one step for all
            manager.reset(torch.tensor(ids))
            for world in ids:
                model.begin(world)
        obs = manager.compute(update_history=True)["g"]
        for world in range(4):
            model.append(world, signal(env)[world], int(delay.current_lags[world]))
        if step == 6:  # as env.reset(env_ids): only these worlds restart
            lags, before = delay.current_lags, obs.clone()
            signal.step += 1
            manager.reset(torch.tensor(ids))
            obs = manager.compute(update_history=True, env_ids=torch.tensor(ids))["g"]
            assert torch.equal(before[[0, 2]], obs[[0, 2]])
            assert torch.equal(lags[[0, 2]], delay.current_lags[[0, 2]])
            for world in ids:
                model.begin(world)
                model.append(world, signal(env)[world], 0)
        assert torch.equal(obs, model.observe()), step
    assert manager.group_obs_dim == {"g": (length, 2)}


def test_histories_are_flattened_term_by_term(env):
    """Lay out each term's history whole, the oldest first, before the next term's."""
    a, b = Signal(2), Signal(1)
    terms = {
        "a": ObservationTermCfg(func=a, history_length=2),
        "b": ObservationTermCfg(func=b, scale=-1.0),
    }
    manager = ObservationManager({"g": ObservationGroupCfg(terms=terms)}, env)
    for step in range(2):
        a.step = b.step = step
        obs = manager.compute(update_history=True)["g"]
    assert obs[1].tolist() == [10.0, 11.0, 110.0, 111.0, -110.0]
    assert manager.group_obs_term_dim == {"g": [(4,), (1,)]}
    group = ObservationGroupCfg(terms=terms, history_length=3, flatten_history_dim=False)
    forced = ObservationManager({"g": replace(group, concatenate_terms=False)}, env)
    assert forced.group_obs_dim == {"g": [(3, 2), (3, 1)]}
    assert forced.compute()["g"]["b"].shape == (4, 3, 1)
    # The user's terms are as they were, and joined they have (length, columns).
    assert terms["a"].history_length == 2 and terms["b"].history_length == 0
    assert ObservationManager({"g": group}, env).group_obs_dim == {"g": (3, 3)}
    along_time = replace(group, terms={"a": terms["a"], "c": terms["a"]}, concatenate_dim=0)
    assert ObservationManager({"g": along_time}, env).group_obs_dim == {"g": (6, 2)}


def test_observations_are_cached_until_they_are_updated(env):
    """Return the last tensors, except for worlds that were reset since."""
    signal = Signal(1)
    manager = manager_of(env, ObservationTermCfg(func=signal, history_length=2))
    first = manager.compute()["g"]
    signal.step = 1
    assert manager.compute()["g"] is first
    second = manager.compute(update_history=True)["g"]
    signal.step = 2
    manager.reset(torch.tensor([2]))
    third = manager.compute()["g"]
    assert third.tolist() == [[0.0, 100.0], [10.0, 110.0], [220.0, 220.0], [30.0, 130.0]]
    assert manager.compute()["g"] is third
    manager.reset()
    assert manager.compute()["g"].tolist() == [[200 + 10 * w] * 2 for w in range(4)]
    # What was handed out stays as it was.
    assert first.tolist() == [[10.0 * w] * 2 for w in range(4)]
    assert second.tolist() == [[10.0 * w, 100 + 10.0 * w] for w in range(4)]


def test_noise_needs_a_corrupted_group_and_comes_first(env):
    """Add noise before clip and scale, and only where the group asks for corruption."""
    term = ObservationTermCfg(
        func=world_rows, noise=ConstantNoiseCfg(bias=5.0), clip=(0.0, 12.0), scale=2.0
    )
    before = to_plain(term)
    clean = manager_of(env, term).compute()["g"]
    noisy = manager_of(env, term, enable_corruption=True).compute()["g"]
    assert clean[1].tolist() == [20.0, 22.0] and noisy[0].tolist() == [10.0, 12.0]
    assert noisy[1].tolist() == [24.0, 24.0]
    assert to_plain(term) == before


def test_a_bias_lasts_an_episode_and_belongs_to_one_group(env):
    """Draw biases again for worlds that are reset; keep groups with one term apart."""
    noise = NoiseModelWithAdditiveBiasCfg(
        noise_cfg=ConstantNoiseCfg(), bias_noise_cfg=GaussianNoiseCfg()
    )
    term = ObservationTermCfg(func=Signal(), noise=noise)
    group = ObservationGroupCfg(terms={"t": term}, enable_corruption=True)
    manager = ObservationManager({"a": group, "b": group}, env)
    first = manager.compute(update_history=True)
    assert not torch.equal(first["a"], first["b"])
    again = manager.compute(update_history=True)
    assert torch.equal(first["a"], again["a"]) and torch.equal(first["b"], again["b"])
    manager.reset(torch.tensor([1]))
    after = manager.compute(update_history=True)["a"]
    assert torch.equal(after[[0, 2, 3]], first["a"][[0, 2, 3]])
    assert (after[1] != first["a"][1]).all()


def test_partial_computing_leaves_noisy_rows_of_others_alone(env):
    """Keep the very values of the worlds that were not reset."""
    term = ObservationTermCfg(func=world_rows, noise=UniformNoiseCfg())
    manager = manager_of(env, term, enable_corruption=True)
    before = manager.compute(update_history=True)["g"]
    kept = before.clone()
    after = manager.compute(update_history=True, env_ids=torch.tensor([3]))["g"]
    assert torch.equal(before, kept) and torch.equal(after[:3], kept[:3])
    assert not torch.equal(after[3], kept[3])


def broken_rows(env) -> torch.Tensor:
    """Return rows of which two hold values that are not finite."""
    rows = world_rows(env)
    rows[1, 0], rows[3, 1] = torch.nan, -torch.inf
    return rows


@pytest.mark.parametrize("per_term", [True, False])
@pytest.mark.parametrize("concatenate", [True, False])
def test_values_that_are_not_finite_are_treated_as_asked(env, per_term, concatenate):
    """Let them pass, put zero, warn, or raise, with the worlds named."""

    def observe(policy: str) -> torch.Tensor:
        group = {"nan_check_per_term": per_term, "concatenate_terms": concatenate}
        manager = manager_of(env, ObservationTermCfg(func=broken_rows), nan_policy=policy, **group)
        obs = manager.compute()["g"]
        return obs if concatenate else obs["t"]

    zeroed = [[0.0, 1.0], [0.0, 11.0], [20.0, 21.0], [30.0, 0.0]]
    where = "term 'g/t'" if per_term else "group 'g'"
    assert torch.equal(observe("disabled").isfinite(), broken_rows(env).isfinite())
    assert observe("sanitize").tolist() == zeroed
    with pytest.warns(UserWarning, match=rf"{where} is not finite in worlds \[1, 3\]"):
        assert observe("warn").tolist() == zeroed
    with pytest.raises(ValueError, match=rf"{where} is not finite in worlds \[1, 3\]"):
        observe("error")
    with pytest.raises(ValueError, match="'zero': choose one of disabled, warn, sanitize, error"):
        observe("zero")


def test_nan_never_enters_a_history(env):
    """Check a term before it is remembered."""
    term = ObservationTermCfg(func=broken_rows, history_length=2)
    manager = manager_of(env, term, nan_policy="sanitize")
    manager.compute(update_history=True)
    assert manager._pipelines["g"]["t"]._history.buffer.isfinite().all()


def test_scales_may_be_tensors(env):
    """Broadcast a tensor to a term's values, and refuse one that does not fit."""
    term = ObservationTermCfg(func=world_rows, scale=torch.tensor([[1.0], [2.0], [3.0], [0.0]]))
    assert manager_of(env, term).compute()["g"][1].tolist() == [20.0, 22.0]
    wide = replace(term, scale=torch.ones(5))
    with pytest.raises(ValueError, match=r"term 'g/t'.* scale of shape \(5,\) does not broadcast"):
        manager_of(env, wide)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delay_min_lag": 2, "delay_max_lag": 1}, r"max_lag \(1\) must be >= min_lag \(2\)"),
        ({"delay_max_lag": 1, "delay_hold_prob": 2.0}, "hold_prob must be in"),
        ({"history_length": -1}, "max_len must be >= 1, got -1"),
        ({"noise": ConstantNoiseCfg(bias=(1.0, 2.0, 3.0))}, "has 3 values, but the data has 2"),
    ],
)
def test_mistakes_in_a_term_are_found_when_it_is_built(env, options, message):
    """Name group and term."""
    with pytest.raises(ValueError, match=rf"term 'g/t': .*{message}"):
        manager_of(env, ObservationTermCfg(func=world_rows, **options), enable_corruption=True)


def test_terms_that_do_not_fit_together_are_refused(env):
    """Compare all dimensions but the one along which terms are put together."""
    terms = {
        "a": ObservationTermCfg(func=lambda e: torch.zeros(4, 2, 3)),
        "b": ObservationTermCfg(func=lambda e: torch.zeros(4, 2, 1)),
    }
    group = ObservationGroupCfg(terms=terms)
    assert ObservationManager({"g": group}, env).group_obs_dim == {"g": (2, 4)}
    group.terms["c"] = replace(terms["a"])
    for dim in (0, -2):
        message = (
            r"group 'g' cannot concatenate term 'b' of shape \(2, 1\) with 'a' of shape \(2, 3\) "
            f"along concatenate_dim={dim}"
        )
        with pytest.raises(ValueError, match=message):
            ObservationManager({"g": replace(group, concatenate_dim=dim)}, env)
    for dim in (2, -3, 0.5):
        message = f"group 'g' has concatenate_dim={dim}, but it must be from -2 to 1: .* term 'a'"
        with pytest.raises(ValueError, match=message):
            ObservationManager({"g": replace(group, concatenate_dim=dim)}, env)
    flat = {**terms, "d": ObservationTermCfg(func=lambda e: torch.zeros(4, 6))}
    with pytest.raises(ValueError, match=r"cannot concatenate term 'd' of shape \(6,\) with 'a'"):
        ObservationManager({"g": ObservationGroupCfg(terms=flat)}, env)
    empty = {"g": group, "none": None, "without": ObservationGroupCfg(terms={"a": None})}
    assert list(ObservationManager(empty, env).active_terms) == ["g"]


@pytest.mark.parametrize(
    ("dim", "shape"),
    [(0, (4, 3, 4)), (1, (2, 6, 4)), (2, (2, 3, 8)), (-1, (2, 3, 8)), (-2, (2, 6, 4))],
)
@pytest.mark.parametrize("history", [0, 5])
def test_terms_are_put_together_along_the_dimension_named(env, dim, shape, history):
    """Count dimensions after that of worlds, as torch does, also from the end and with history."""
    terms = {
        name: ObservationTermCfg(func=lambda e, x=x: x + torch.arange(96.0).reshape(4, 2, 3, 4))
        for name, x in (("a", 0.0), ("b", 100.0))
    }
    group = ObservationGroupCfg(terms=terms, concatenate_dim=dim)
    if history:
        dim += dim >= 0  # history comes first
        group = replace(
            group, concatenate_dim=dim, history_length=history, flatten_history_dim=False
        )
        shape = (history, *shape)
    manager = ObservationManager({"g": group}, env)
    obs = manager.compute(update_history=True)["g"]
    assert manager.group_obs_dim == {"g": shape} and obs.shape == (4, *shape)
    a, b = (cfg.func(env) for cfg in terms.values())
    if history:
        a, b = (x.unsqueeze(1).expand(4, history, 2, 3, 4) for x in (a, b))
    for world in range(4):
        assert torch.equal(obs[world], torch.cat([a[world], b[world]], dim=dim))


@pytest.mark.parametrize("dim", [0, 1, -1, -2])
def test_values_of_one_world_are_found_in_any_layout(env, dim):
    """Cut a group along the dimension where its terms were put together."""

    def rows(offset: float):
        return lambda e: offset + world_rows(e, 6).reshape(4, 2, 3)

    terms = {
        "a": ObservationTermCfg(func=rows(0.0)),
        "b": ObservationTermCfg(func=rows(0.5)),
    }
    expected = [("g/a", [10.0 + i for i in range(6)]), ("g/b", [10.5 + i for i in range(6)])]
    group = ObservationGroupCfg(terms=terms, concatenate_dim=dim)
    assert ObservationManager({"g": group}, env).get_active_iterable_terms(1) == expected
    apart = ObservationManager({"g": replace(group, concatenate_terms=False)}, env)
    assert apart.get_active_iterable_terms(1) == expected
    remembered = replace(group, history_length=2, flatten_history_dim=False)
    doubled = [(name, values * 2) for name, values in expected]
    shifted = replace(remembered, concatenate_dim=dim + (dim >= 0))
    assert ObservationManager({"g": shifted}, env).get_active_iterable_terms(1) == doubled


@pytest.mark.parametrize(
    ("part", "settings"),
    [
        ("noise", {"noise": UniformNoiseCfg(n_min=-1.0, n_max=1.0)}),
        ("delay", {"delay_min_lag": 1, "delay_max_lag": 1}),
        ("history", {"history_length": 2, "flatten_history_dim": False}),
    ],
)
def test_state_of_another_configuration_is_refused(env, part, settings):
    """Name the term and what differs, in both directions."""
    plain = manager_of(env, ObservationTermCfg(func=Signal()), enable_corruption=True)
    term = ObservationTermCfg(func=Signal(), **settings)
    other = manager_of(env, term, enable_corruption=True)
    for manager, saved, words in ((plain, other, "no"), (other, plain, "a")):
        manager.compute(update_history=True), saved.compute(update_history=True)
        with pytest.raises(ValueError, match=f"has {words} {part}, but the saved state has"):
            manager.load_state_dict(saved.state_dict())


def test_state_is_restored_in_new_tensors(env):
    """Go on from a saved step, without changing what was handed out."""
    signal = Signal()
    term = ObservationTermCfg(func=signal, history_length=2, delay_min_lag=1, delay_max_lag=1)
    manager = manager_of(env, term)
    for signal.step in range(3):
        manager.compute(update_history=True)
    saved = copy.deepcopy(manager.state_dict())
    signal.step = 3
    expected = manager.compute(update_history=True)["g"]
    kept = expected.clone()
    for restored in (manager, manager_of(env, term)):
        restored.load_state_dict(saved)
        assert torch.equal(restored.compute()["g"], saved["_obs_buffer"]["g"])
        assert torch.equal(restored.compute(update_history=True)["g"], expected)
    assert torch.equal(expected, kept)
