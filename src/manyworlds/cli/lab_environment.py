"""Lab that the environment of a task drives, as the command line names it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from manyworlds.cli.buckets import one_bucket
from manyworlds.tasks.run_configs import (
    differences_from_training,
    evaluation_env_cfg,
    play_env_cfg,
)

if TYPE_CHECKING:
    from manyworlds.cli.lab import LabOptions, Target
    from manyworlds.lab import LiveLab
    from manyworlds.rl.run_folder import RunFolder


def open_environment(cfg: LabOptions, target: Target, play: bool) -> LiveLab:
    """Build one world of the target's task, which its environment drives with the policy.

    Args:
        cfg: options of the lab.
        target: what it opens.
        play: whether the environment is that for watching; else it is that of training.

    Raises:
        ValueError: the target is a model file or one world of a batch; or the policy is not a
            checkpoint.
    """
    import torch

    from manyworlds.cli.policies import load_run_policy
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.lab import LiveLab

    if not target.task:
        raise ValueError(
            f"--stepper environment needs a task or a run, but '{cfg.target}' is a model file: "
            "leave it out."
        )
    if cfg.world is not None:
        raise ValueError(
            "--world opens a world of a batch in plain MuJoCo, and an environment in the lab has "
            "one world: leave --world or --stepper environment out."
        )
    policy = None
    checkpoint, run = _checkpoint(target)
    trained = target.run or run
    if play:
        env_cfg = play_env_cfg(target.task, trained)
    else:
        env_cfg = evaluation_env_cfg(target.task, trained)
    env_cfg.scene.num_envs = 1
    differences: list[str] = []
    if trained is not None:
        differences = differences_from_training(env_cfg, trained)
    env_cfg = one_bucket(env_cfg, cfg.bucket)
    env_cfg.sim.engine = "native"
    torch.set_num_threads(1)  # one world has too little work for several
    env = ManagerBasedRlEnv(env_cfg, device="cpu")
    if checkpoint is not None:
        policy = load_run_policy(env, target.task, run, checkpoint)
    lab = LiveLab.driven_by(env, policy, cfg.lab_cfg())
    lab.source = lambda: open_environment(cfg, target, play)
    assert lab.environment is not None
    lab.environment.differences = differences
    for name, values in cfg.command.items():
        lab.environment.steer(name, values)
    return lab


def _checkpoint(target: Target) -> tuple[Path | None, RunFolder | None]:
    """Return the checkpoint of a target's policy, and the run folder that it is in."""
    from manyworlds.rl.run_folder import RunFolder

    policy = target.policy
    if policy is None:
        return None, None
    if not policy.is_file():
        raise FileNotFoundError(f"There is no policy '{policy}': name a checkpoint (.pt).")
    run = RunFolder.of_checkpoint(policy)
    if policy.suffix == ".onnx":
        # The policy that training exports is that of the last checkpoint.
        if run is None or policy.name != "policy.onnx" or not run.checkpoints():
            raise ValueError(
                f"An environment runs checkpoints, and '{policy}' is none: name the .pt file that "
                "it was exported from."
            )
        policy = run.last_checkpoint()
        print(f"policy: {policy}", flush=True)
    return policy, run
