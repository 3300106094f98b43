"""Tables of an environment's terms, as `train` and `list TASK` print them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyworlds.envs import BucketedRlEnv
from manyworlds.utils.table import render_table

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


def task_tables(env: ManagerBasedRlEnv) -> str:
    """Return a table for each manager that has terms, and a line about steps and episodes.

    With buckets, they are those of the first one, after a table of all buckets.
    """
    if isinstance(env, BucketedRlEnv):
        return f"{_bucket_table(env)}\n{task_tables(next(iter(env.buckets.values())))}"
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


def _bucket_table(env: BucketedRlEnv) -> str:
    """Return a table of the buckets of an environment."""
    rows = []
    worlds = env.world_to_bucket.bincount(minlength=len(env.cfg.scene.buckets))
    counts = dict(zip(env.cfg.scene.buckets, worlds.tolist(), strict=True))
    for name, bucket in env.buckets.items():
        model = bucket.sim.mj_model
        rows.append((name, counts[name], model.nbody - 1, model.njnt, model.nu))
    columns = ("bucket", "worlds", "bodies", "joints", "actuators")
    return render_table(f"{len(rows)} buckets, {env.num_envs} worlds", columns, rows)
