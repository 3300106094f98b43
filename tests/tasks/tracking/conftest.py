"""The humanoid's clip, and small environments that track it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.tasks import load_env_cfg
from manyworlds.tasks.tracking.config.humanoid import humanoid_clip
from manyworlds.tasks.tracking.motion import Motion


@pytest.fixture(scope="session")
def clip() -> Motion:
    """Make the clip once."""
    return humanoid_clip()


@pytest.fixture
def make_cfg(clip: Motion) -> Callable[..., ManagerBasedRlEnvCfg]:
    """Configure the humanoid's task with the clip that is made already."""

    def make(num_envs: int = 3, play: bool = False, **command: Any) -> ManagerBasedRlEnvCfg:
        cfg = load_env_cfg("Tracking-Flat-Humanoid", play=play)
        cfg.scene.num_envs, cfg.seed = num_envs, 5
        motion: Any = cfg.commands["motion"]
        motion.motion_fn = lambda: clip
        for name, value in command.items():
            assert hasattr(motion, name)
            setattr(motion, name, value)
        return cfg

    return make


@pytest.fixture
def make_env(make_cfg: Callable[..., ManagerBasedRlEnvCfg]) -> Callable[..., ManagerBasedRlEnv]:
    """Build the humanoid's task."""
    return lambda **kwargs: ManagerBasedRlEnv(make_cfg(**kwargs), device="cpu")
