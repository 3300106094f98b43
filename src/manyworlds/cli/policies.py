"""Policies to watch: trained, random, or none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.rl import RslRlOnPolicyRunnerCfg

Policy = Callable[[Any], torch.Tensor]


def load_policy(
    env: ManagerBasedRlEnv,
    rl_cfg: RslRlOnPolicyRunnerCfg,
    checkpoint: Path,
    runner_cls: type | None = None,
) -> Policy:
    """Load the policy of a checkpoint, as a function from observations to mean actions.

    Raises:
        ValueError: the checkpoint does not fit the environment and the networks.
    """
    from manyworlds.rl.runner import OnPolicyRunner
    from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper

    make = runner_cls or OnPolicyRunner
    runner = make(RslRlVecEnvWrapper(env), asdict(rl_cfg), log_dir=None, device=str(env.device))
    runner.load(str(checkpoint), load_cfg={"actor": True})
    policy = runner.get_inference_policy()
    clip = rl_cfg.clip_actions
    return policy if clip is None else lambda obs: policy(obs).clamp(-clip, clip)


def untrained_policy(env: ManagerBasedRlEnv, kind: str) -> Policy:
    """Make a policy that needs no training: 'zero' or 'random' (uniform in [-1, 1])."""
    shape = (env.num_envs, env.action_manager.total_action_dim)
    if kind == "zero":
        return lambda obs: torch.zeros(shape, device=env.device)
    return lambda obs: 2.0 * torch.rand(shape, device=env.device) - 1.0
