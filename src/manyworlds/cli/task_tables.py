"""Tables of an environment's terms, as `train` and `list TASK` print them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


def task_tables(env: ManagerBasedRlEnv) -> str:
    """Return a table for each manager that has terms, and a line about steps and episodes."""
    managers = (
        env.action_manager,
        env.observation_manager,
        env.reward_manager,
        env.termination_manager,
        env.command_manager,
        env.event_manager,
        env.curriculum_manager,
        env.metrics_manager,
    )
    tables = [str(manager) for manager in managers if any(manager.active_terms)]
    steps = f"control step {env.step_dt:g} s = {env.cfg.decimation} x {env.physics_dt:g} s"
    worlds = f"number of worlds: {env.num_envs} on {env.device}"
    episode = f"episodes of at most {env.max_episode_length_s:g} s"
    return "\n".join([*tables, f"{worlds}, {steps}, {episode}"])
