"""Task with buckets, which commands load with `--load`."""

from __future__ import annotations

from manyworlds.rl import RslRlOnPolicyRunnerCfg
from manyworlds.tasks import register_task
from tests.envs.bucket_tasks import chains_cfg

register_task(
    task_id="Chains",
    env_cfg=chains_cfg(24),
    play_env_cfg=chains_cfg(6),
    rl_cfg=RslRlOnPolicyRunnerCfg(
        max_iterations=2,
        num_steps_per_env=8,
        obs_groups={"actor": ("actor",), "critic": ("actor",)},
    ),
)
