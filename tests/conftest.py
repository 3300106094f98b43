"""Fixtures that many tests share."""

from __future__ import annotations

import os

# As the command line does, before torch is imported: see `manyworlds.cli.main`.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

import pytest

from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.tasks import load_env_cfg
from tests.browser import browser as browser


@pytest.fixture
def env_cfg() -> ManagerBasedRlEnvCfg:
    """Configure four worlds of cartpole swing-up."""
    cfg = load_env_cfg("Cartpole-Swingup")
    cfg.scene.num_envs = 4
    cfg.seed = 7
    return cfg


@pytest.fixture
def env(env_cfg: ManagerBasedRlEnvCfg) -> ManagerBasedRlEnv:
    """Build four worlds of cartpole swing-up."""
    return ManagerBasedRlEnv(env_cfg)
