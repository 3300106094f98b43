"""Terminations: failures and time limits."""

import pytest
import torch

from manyworlds.managers import TerminationManager, TerminationTermCfg
from tests.managers.terms import world_number, world_rows


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


def test_a_condition_of_wrong_shape_is_named(env):
    """Say which manager, which term, and what was expected."""
    term = TerminationTermCfg(func=lambda e: world_rows(e) > 0)
    with pytest.raises(
        ValueError, match=r"TerminationManager term 't' returned \(4, 2\), expected \(4,\)"
    ):
        TerminationManager({"t": term}, env).compute()
