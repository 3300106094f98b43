"""Metrics: reductions over time, substeps, logs."""

import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.managers import MetricsManager, MetricsTermCfg, NullMetricsManager

VALUES = [[1.0, 2.0, -3.0, 4.0], [5.0, 0.0, -1.0, 2.0]]


def metric(step: list[int], **options) -> MetricsTermCfg:
    """Make a term that returns a row of VALUES."""
    return MetricsTermCfg(func=lambda env: torch.tensor(VALUES[step[0]]), **options)


def test_each_reduction_of_an_episode(env):
    """Log mean, last, maximum and sum over time, as means over the worlds reset."""
    step = [0]
    terms = {name: metric(step, reduce=name) for name in ("mean", "last", "max", "sum")}
    manager = MetricsManager(terms, env)
    manager.compute()
    step[0] = 1
    manager.compute()
    log = manager.reset(torch.tensor([0, 2]))
    assert {name: value.item() for name, value in log.items()} == {
        "Episode_Metrics/mean": (3.0 - 2.0) / 2,
        "Episode_Metrics/last": (5.0 - 1.0) / 2,
        "Episode_Metrics/max": (5.0 - 1.0) / 2,
        "Episode_Metrics/sum": (6.0 - 4.0) / 2,
    }
    assert manager._step_count.tolist() == [0, 2, 0, 2]
    assert manager._episode_max[2].tolist() == [-torch.inf, 2.0, -torch.inf, 4.0]
    assert all(value == 0.0 for value in manager.reset(torch.tensor([0])).values())


def test_substeps_are_averaged_into_a_step(env_cfg):
    """Evaluate after every physics step, which the fast path would skip, and forget in between."""
    count = []

    def rising(env) -> torch.Tensor:
        count.append(1)
        return torch.full((4,), float(len(count)))

    env_cfg.metrics = {"m": MetricsTermCfg(func=rising, per_substep=True, reduce="sum")}
    env = ManagerBasedRlEnv(env_cfg)
    count.clear()
    env.step(torch.zeros(4, 1))
    assert len(count) == env.cfg.decimation == 5
    env.step(torch.zeros(4, 1))
    env.reset()
    assert env.extras["log"]["Episode_Metrics/m"] == (1 + 2 + 3 + 4 + 5) / 5 + (6 + 10) / 2


def test_mistakes_are_named(env):
    """Name a term of wrong shape and an unknown reduction."""
    bad = MetricsManager({"bad": MetricsTermCfg(func=lambda env: torch.zeros(4, 1))}, env)
    with pytest.raises(ValueError, match=r"MetricsManager term 'bad' returned .* expected \(4,\)"):
        bad.compute()
    with pytest.raises(ValueError, match="reduce='median': choose one of last, max, mean, sum"):
        MetricsManager({"m": metric([0], reduce="median")}, env)


def test_metrics_go_on_from_a_saved_state(env):
    """Restore sums, maxima and counts."""
    manager = MetricsManager({"m": metric([0], reduce="max")}, env)
    manager.compute()
    saved = manager.state_dict()
    expected = repr(saved)
    manager.reset()
    manager.load_state_dict(saved)
    assert repr(manager.state_dict()) == expected
    assert "per_substep" in str(manager)
    assert manager.get_active_iterable_terms(3) == [("m", [4.0])]


def test_the_empty_manager_does_nothing():
    """Run without terms and without an environment."""
    null = NullMetricsManager()
    null.compute_substep()
    null.compute()
    assert null.reset() == {} and not null.needs_substeps
    assert null.get_active_iterable_terms(0) == [] and null.state_dict() is not None
