"""A task small enough to train in a second."""

from __future__ import annotations

from pathlib import Path

import pytest

from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.tasks import load_rl_cfg

pytest.importorskip("rsl_rl", reason="learning needs the extra 'train'")


@pytest.fixture
def rl_cfg() -> RslRlOnPolicyRunnerCfg:
    """Configure four short iterations."""
    cfg = load_rl_cfg("Cartpole-Swingup")
    cfg.max_iterations = 4
    cfg.num_steps_per_env = 8
    cfg.save_interval = 1
    return cfg


@pytest.fixture
def log_root(tmp_path: Path) -> Path:
    """A fresh place for run folders."""
    return tmp_path / "runs"
