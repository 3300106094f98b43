"""Policies to watch: trained, random, or none."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from manyworlds.utils.terminal import new_console, new_progress
from manyworlds.utils.torch_compiler import without_torch_compiler

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.envs.types import VecEnvObs
    from manyworlds.rl import RslRlBaseRunnerCfg
    from manyworlds.rl.run_folder import RunFolder
    from manyworlds.viewer.base import PolicyProtocol


def load_policy(
    env: ManagerBasedRlEnv,
    rl_cfg: RslRlBaseRunnerCfg,
    checkpoint: Path,
    runner_cls: type | None = None,
) -> PolicyProtocol:
    """Load the policy of a checkpoint, as a function from observations to mean actions.

    Raises:
        ValueError: the checkpoint does not fit the environment and the networks.
    """
    from manyworlds.rl.inference import InferencePolicy

    with without_torch_compiler():
        from manyworlds.rl.runner import OnPolicyRunner
        from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper

        make = runner_cls or OnPolicyRunner
        runner = make(RslRlVecEnvWrapper(env), asdict(rl_cfg), log_dir=None, device=str(env.device))
    runner.load(str(checkpoint), load_cfg={"actor": True})
    policy: PolicyProtocol = runner.get_inference_policy()
    clip = rl_cfg.clip_actions
    if isinstance(policy, InferencePolicy):
        policy.clip_actions = clip
        return policy
    if clip is None:
        return policy
    return lambda obs: policy(obs).clamp(-clip, clip)


def load_run_policy(
    env: ManagerBasedRlEnv, task: str, run: RunFolder | None, checkpoint: Path
) -> PolicyProtocol:
    """Load the policy of a checkpoint with the runner of its task and the networks of its run.

    Args:
        env: the environment.
        task: name of the task.
        run: run folder with the settings of the networks; None for those of the task.
        checkpoint: the checkpoint.

    Raises:
        ValueError: the policy does not fit the task.
    """
    from manyworlds.tasks import load_rl_cfg, load_runner_cls
    from manyworlds.utils.config import update_from_plain

    rl_cfg = load_rl_cfg(task)
    if run is not None:
        update_from_plain(rl_cfg, run.agent_params())
    try:
        return load_policy(env, rl_cfg, checkpoint, load_runner_cls(task))
    except ValueError as error:
        if run is not None and run.task not in (task, None):
            error.add_note(f"The run was trained for '{run.task}', and this is '{task}'.")
        raise


@contextlib.contextmanager
def with_progress(policy: PolicyProtocol, steps: int, what: str) -> Iterator[PolicyProtocol]:
    """Show a progress bar; yield the policy, which advances the bar at each call.

    A terminal gets a bar; other outputs, such as files, get a line at the beginning.

    Args:
        policy: the policy.
        steps: calls from beginning to end.
        what: description of the work.
    """
    console = new_console(stderr=True)
    if not console.is_terminal:
        print(f"{what}: {steps} control steps", file=sys.stderr, flush=True)
    with new_progress(console) as bar:
        task = bar.add_task(what, total=steps)

        def act(obs: VecEnvObs) -> torch.Tensor:
            bar.advance(task)
            return policy(obs)

        yield act


class UntrainedPolicy:
    """Policy that needs no training.

    Args:
        env: the environment.
        kind: 'zero', or 'random' for actions uniform in [-1, 1].
    """

    def __init__(self, env: ManagerBasedRlEnv, kind: str) -> None:
        self._env = env
        self._kind = kind

    def __call__(self, obs: VecEnvObs) -> torch.Tensor:
        """Return the actions, shape [num_envs, num_actions]."""
        env = self._env
        shape = (env.num_envs, env.action_manager.total_action_dim)
        if self._kind == "zero":
            return torch.zeros(shape, device=env.device)
        return 2.0 * torch.rand(shape, device=env.device) - 1.0

    def of_world(self, env_id: int, env: ManagerBasedRlEnv) -> UntrainedPolicy:
        """Return the policy for an environment of one world."""
        return UntrainedPolicy(env, self._kind)
