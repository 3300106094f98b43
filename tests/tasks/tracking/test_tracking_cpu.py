"""The settings for a few CPU cores."""

from __future__ import annotations

from typing import Any

import pytest

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.tasks import load_env_cfg, load_rl_cfg, use_cpu_preset
from manyworlds.tasks.tracking.tracking_env_cfg import VELOCITY_RANGE

TASK = "Tracking-Flat-Humanoid"


def test_initial_velocities_grow_to_those_of_the_task(clip):
    """Begin with a fifth of the initial noise, add to it by stages, and end with all of it."""
    cfg = load_env_cfg(TASK)
    assert use_cpu_preset(TASK, cfg, load_rl_cfg(TASK))
    cfg.scene.num_envs = 2
    motion: Any = cfg.commands["motion"]
    motion.motion_fn = lambda: clip
    assert motion.velocity_range["x"] == pytest.approx((-0.1, 0.1))
    env = ManagerBasedRlEnv(cfg, device="cpu")
    env.reset()
    found = []
    for step in (0, 8000, 18000, 28000, 100_000):
        env.common_step_counter = step
        env.reset()
        command: Any = env.command_manager.get_term("motion")
        found.append(command.cfg.velocity_range["x"][1])
    assert found == pytest.approx([0.1, 0.1, 0.3, 0.5, 0.5])
    assert command.cfg.velocity_range == VELOCITY_RANGE
    env.close()
