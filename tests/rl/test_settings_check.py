"""Numbers of the learner that are out of range."""

import math
from dataclasses import asdict

import pytest

from manyworlds.rl.config import RslRlDistillationRunnerCfg
from manyworlds.rl.settings_check import check_settings
from manyworlds.rl.training import train
from manyworlds.tasks import list_tasks, load_rl_cfg

NUM_ENVS = 16
WRONG = {
    "num_mini_batches": [
        (0, "num_mini_batches must be at least 1, got 0"),
        (1000, "must be at most 128, the 8 steps of 16 worlds in an iteration, got 1000"),
        (2.5, "num_mini_batches must be a whole number, got 2.5"),
    ],
    "num_learning_epochs": [(0, "num_learning_epochs must be at least 1, got 0")],
    "learning_rate": [
        (math.nan, "learning_rate must be positive and finite, got nan: 0.001"),
        (-1e-3, "got -0.001"),
        (math.inf, "got inf"),
    ],
    "gamma": [(1.7, "algorithm.gamma must be from 0 to 1, got 1.7"), (math.nan, "got nan")],
    "lam": [(-0.1, "algorithm.lam must be from 0 to 1, got -0.1")],
    "clip_param": [(0.0, "clip_param must be positive and finite, got 0.0")],
    "entropy_coef": [(-1.0, "entropy_coef must be finite, and at least 0, got -1.0")],
}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [(name, *case) for name, cases in WRONG.items() for case in cases],
)
def test_a_wrong_number_of_the_algorithm_is_named(rl_cfg, name, value, message):
    """Name the setting, the value and the bound."""
    setattr(rl_cfg.algorithm, name, value)
    with pytest.raises(ValueError, match=message):
        check_settings(asdict(rl_cfg), NUM_ENVS)


def test_wrong_numbers_of_networks_and_runs_are_named(rl_cfg):
    """Check widths and noise of networks, and the numbers of the run itself."""
    rl_cfg.actor.hidden_dims = (64, 0)
    with pytest.raises(ValueError, match=r"actor.hidden_dims\[1\] must be at least 1, got 0"):
        check_settings(asdict(rl_cfg), NUM_ENVS)
    rl_cfg.actor.hidden_dims = (64,)
    rl_cfg.actor.distribution_cfg["init_std"] = 0.0
    with pytest.raises(ValueError, match="init_std must be positive and finite, got 0.0"):
        check_settings(asdict(rl_cfg), NUM_ENVS)
    rl_cfg.actor.distribution_cfg["init_std"] = 1.0
    rl_cfg.clip_actions = -1.0
    with pytest.raises(ValueError, match="clip_actions must be .* got -1.0: leave it out for no"):
        check_settings(asdict(rl_cfg), NUM_ENVS)


def test_numbers_are_checked_before_the_worlds_are_built(env_cfg, rl_cfg, log_root, monkeypatch):
    """Refuse a number at once, and make no run folder."""
    monkeypatch.setattr("manyworlds.rl.training.make_env", None)
    rl_cfg.algorithm.gamma = 1.7
    with pytest.raises(ValueError, match="got 1.7"):
        train("Cartpole-Swingup", env_cfg, rl_cfg, log_root)
    assert not log_root.exists()


def test_settings_of_all_tasks_pass():
    """Accept the settings of each task, and those of a distillation."""
    for task in list_tasks():
        check_settings(asdict(load_rl_cfg(task)), NUM_ENVS)
    check_settings(asdict(RslRlDistillationRunnerCfg()), NUM_ENVS)
