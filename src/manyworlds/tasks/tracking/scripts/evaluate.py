"""Evaluation of a tracking policy: one pass through the motion in many worlds."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import torch
import tyro

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.managers import ManagerTermBase, MetricsTermCfg
from manyworlds.managers.not_finite import mean_of_finite
from manyworlds.tasks.registry import load_env_cfg, load_rl_cfg
from manyworlds.tasks.tracking.mdp import metrics
from manyworlds.tasks.tracking.mdp.commands import MotionCommandCfg
from manyworlds.tasks.tracking.mdp.observations import motion_command
from manyworlds.utils.config import update_from_plain
from manyworlds.utils.extras import require_extra
from manyworlds.utils.files import write_atomic

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnvCfg

Policy = Callable[[Any], torch.Tensor]
_MODULE = "manyworlds.tasks.tracking.scripts.evaluate"


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """Evaluate the tracking errors of a policy."""

    checkpoint: Path | None = None
    """Checkpoint or run folder; None takes the newest run of the task."""
    num_envs: int = 1024
    """Number of worlds, each with one pass through the motion."""
    device: str | None = None
    """Torch device, such as cpu or cuda:0; None takes CUDA if available, else the CPU."""
    output_file: Path | None = None
    """JSON file for the results; None writes no file."""
    log_root: Path = Path("runs")
    """Folder of all runs."""
    seed: int = 0
    """Seed of the perturbations."""


class tracking_errors(ManagerTermBase):  # noqa: N801
    """Metric that stores all errors of the current step in `values`; its own value is `mpkpe`."""

    def __init__(self, cfg: MetricsTermCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        self.values: dict[str, torch.Tensor] = {}
        """Errors by name, each of shape [num_envs]; see `evaluate_policy`."""

    def __call__(
        self, env: ManagerBasedRlEnv, command_name: str, ee_body_names: tuple[str, ...]
    ) -> torch.Tensor:
        """Compute the errors; return `mpkpe` [m], shape [num_envs]."""
        command = motion_command(env, command_name)
        self.values = {
            "mpkpe": metrics.compute_mpkpe(command),
            "root_relative_mpkpe": metrics.compute_root_relative_mpkpe(command),
            "joint_vel_error": metrics.compute_joint_velocity_error(command),
            "ee_pos_error": metrics.compute_ee_position_error(command, ee_body_names),
            "ee_ori_error": metrics.compute_ee_orientation_error(command, ee_body_names),
        }
        return self.values["mpkpe"]


def evaluation_env_cfg(task_id: str) -> ManagerBasedRlEnvCfg:
    """Return the playback configuration of a task with the initial noise of training.

    It includes the metric that `evaluate_policy` reads.

    Raises:
        ValueError: the task has no motion command.
    """
    cfg = load_env_cfg(task_id, play=True)
    name, command = _motion_of(cfg)
    _, trained = _motion_of(load_env_cfg(task_id))
    command.pose_range = trained.pose_range
    command.velocity_range = trained.velocity_range
    command.joint_position_range = trained.joint_position_range
    ends = cfg.terminations.get("ee_body_pos")
    bodies = command.body_names
    if ends is not None:
        bodies = ends.params["body_names"]
    cfg.metrics["tracking_errors"] = MetricsTermCfg(
        func=tracking_errors, params={"command_name": name, "ee_body_names": bodies}
    )
    return cfg


def evaluate_policy(env: ManagerBasedRlEnv, policy: Policy) -> dict[str, float]:
    """Track the motion once in every world, from the task's initial states.

    Args:
        env: the environment of `evaluation_env_cfg`.
        policy: function from observations of `env.step` to actions, [num_envs, total_action_dim].

    Returns:
        `success_rate`, the fraction of worlds that did not fail; `seconds`, the mean time until the
        end of the motion or the failure; and means over worlds and their steps in that time, except
        for worlds in which they are not finite:
        `mpkpe`, `root_relative_mpkpe` and `ee_pos_error` [m], `ee_ori_error` [rad] and
        `joint_vel_error` [rad/s].

    Raises:
        ValueError: the environment has no metric "tracking_errors".
    """
    term = env.metrics_manager.get_term_cfg("tracking_errors")
    errors: Any = term.func
    command = motion_command(env, term.params["command_name"])
    obs, _ = env.reset()
    left = command.motion.time_step_total - command.time_steps
    alive = torch.ones(env.num_envs, dtype=torch.bool, device=env.device)
    failed = torch.zeros_like(alive)
    steps = torch.zeros(env.num_envs, device=env.device)
    sums: dict[str, torch.Tensor] = {}
    for step in range(int(left.max())):
        with torch.inference_mode():
            obs, _, terminated, truncated, _ = env.step(policy(obs))
        for name, values in errors.values.items():
            sums[name] = sums.get(name, 0.0) + torch.where(alive, values, 0.0)
        steps += alive
        failed |= alive & terminated
        alive &= ~(terminated | truncated) & (step + 1 < left)
        if not alive.any():
            break
    return {
        "success_rate": 1.0 - failed.float().mean().item(),
        "seconds": steps.mean().item() * env.step_dt,
        **{name: mean_of_finite(values / steps).item() for name, values in sums.items()},
    }


def run_evaluate(task_id: str, cfg: EvaluateOptions) -> dict[str, float]:
    """Load the policy of a run and evaluate it; see `evaluate_policy`.

    Raises:
        FileNotFoundError: the run does not exist.
        ValueError: the task has no motion command, or the checkpoint does not fit.
    """
    require_extra("rsl_rl", "train")
    from manyworlds.rl.run_folder import RunFolder
    from manyworlds.rl.runner import OnPolicyRunner
    from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper

    env_cfg = evaluation_env_cfg(task_id)
    rl_cfg = load_rl_cfg(task_id)
    path = cfg.checkpoint
    run = None
    if path is None:
        run = RunFolder.latest(cfg.log_root, task_id)
        path = run.last_checkpoint()
    elif path.is_dir():
        run = RunFolder(path)
        path = run.last_checkpoint()
    run = run or RunFolder.of_checkpoint(path)
    if run is not None:
        update_from_plain(rl_cfg, run.agent_params())
        trained = run.env_params().get("commands", {})
        name, command = _motion_of(env_cfg)
        command.motion_file = trained.get(name, {}).get("motion_file", command.motion_file)
    env_cfg.scene.num_envs = cfg.num_envs
    env_cfg.seed = cfg.seed
    env = ManagerBasedRlEnv(env_cfg, device=cfg.device)
    wrapped = RslRlVecEnvWrapper(env, clip_actions=rl_cfg.clip_actions)
    runner = OnPolicyRunner(wrapped, rl_cfg, None, str(env.device))
    runner.load(str(path), load_cfg={"actor": True})
    act = runner.get_inference_policy()
    clip = rl_cfg.clip_actions

    def policy(obs: Any) -> torch.Tensor:
        actions = act(obs)
        if clip is not None:
            actions = actions.clamp(-clip, clip)
        return actions

    result = evaluate_policy(env, policy)
    if cfg.output_file is not None:
        write_atomic(cfg.output_file, json.dumps(result, indent=2) + "\n")
    return result


def _motion_of(cfg: ManagerBasedRlEnvCfg) -> tuple[str, MotionCommandCfg]:
    for name, command in cfg.commands.items():
        if isinstance(command, MotionCommandCfg):
            return name, command
    raise ValueError("The task has no motion command: evaluate a tracking task.")


@dataclass(frozen=True, kw_only=True)
class _CommandOptions(EvaluateOptions):
    """Evaluate the tracking errors of a policy, and print them as JSON."""

    task: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK")] = (
        "Tracking-Flat-Humanoid"
    )
    """Name of a tracking task."""


def main(argv: list[str] | None = None) -> None:
    """Evaluate the policy given by command-line arguments; None uses those of the process."""
    try:
        options = tyro.cli(_CommandOptions, args=argv, prog=f"python -m {_MODULE}")
        result = run_evaluate(options.task, options)
    except (FileNotFoundError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
