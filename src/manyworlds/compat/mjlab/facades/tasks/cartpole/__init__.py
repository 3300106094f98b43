"""mjlab's cartpole tasks."""

from manyworlds.compat.mjlab.facades.tasks.cartpole.cartpole_env_cfg import (
    cartpole_balance_env_cfg,
    cartpole_ppo_runner_cfg,
    cartpole_swingup_env_cfg,
)

__all__ = ["cartpole_balance_env_cfg", "cartpole_ppo_runner_cfg", "cartpole_swingup_env_cfg"]
