"""`manyworlds evaluate [TASK]`: evaluate a policy by the rewards of its task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import arg

from manyworlds.cli.buckets import one_bucket
from manyworlds.cli.options import PolicyOptions, parse_task_command
from manyworlds.cli.runs import find_run, find_task, tell_differences

if TYPE_CHECKING:
    from manyworlds.cli.task_fields import EnvConfig
    from manyworlds.envs import ManagerBasedRlEnvCfg
    from manyworlds.rl.evaluation import Evaluation
    from manyworlds.rl.run_folder import RunFolder

UNSEEN_SEED = 1_000_003
"""Seed that training is unlikely to use."""


@dataclass(kw_only=True)
class EvaluateOptions(PolicyOptions):
    """Evaluate a policy by the rewards of its task, over one episode in each world.

    Without TASK, the task is that of the run; instead of TASK, a run folder or a checkpoint may be
    named. The environment is that of the run's training.
    Options `--env...` change it: see `manyworlds evaluate TASK --help`.
    """

    cases: Annotated[
        bool,
        arg(
            help="Evaluate the cases that were sent to the run, with the last checkpoint before "
            "each case and all later ones, in the run's environment; of `--env...`, only the "
            "number of worlds and the seed apply."
        ),
    ] = False
    terrain_level: int | None = None
    """Keep all worlds on this terrain level; None follows the task's curriculum."""


def main(argv: list[str]) -> int:
    """Run `manyworlds evaluate`: one episode in each world, and a table."""
    options, words = parse_task_command(EvaluateOptions, argv, "evaluate")
    task = find_task(options, "evaluate")
    from manyworlds.tasks import load_env_cfg
    from manyworlds.tasks.run_configs import evaluation_env_cfg
    from manyworlds.tasks.velocity.velocity_env_cfg import hold_terrain_level
    from manyworlds.utils.extras import require_extra

    config = _parsed(load_env_cfg(task), task, options, words)  # tells mistakes before all else
    require_extra("rsl_rl", "train")
    found = find_run(options.checkpoint, options.log_root, task)
    tell_differences(found.folder, task, from_file=options.from_file)
    if found.folder is not None:
        env_cfg = evaluation_env_cfg(task, found.folder, from_file=options.from_file)
        config = _parsed(env_cfg, task, options, words)
    if options.terrain_level is not None:
        hold_terrain_level(config.env, options.terrain_level)
    checkpoint = found.need_checkpoint()
    if options.cases:
        only = None
        if options.checkpoint is not None and options.checkpoint.suffix == ".pt":
            only = checkpoint
        print(evaluate_cases(task, found.folder, config.env, options.device, only))
        return 0
    print(f"policy: {checkpoint}")
    if config.env.scene.buckets and options.bucket is None:
        print(evaluate_buckets(task, checkpoint, found.folder, config.env, options.device))
        return 0
    env_cfg = one_bucket(config.env, options.bucket)
    print(evaluate_checkpoint(task, checkpoint, found.folder, env_cfg, options.device))
    return 0


def _parsed(
    env_cfg: ManagerBasedRlEnvCfg, task: str, options: EvaluateOptions, words: Sequence[str]
) -> EnvConfig:
    """Return an environment for new worlds, with the values that the command line gives."""
    from manyworlds.cli.task_fields import EnvConfig, parse_fields, take_num_envs

    config = EnvConfig(env=env_cfg)
    config.env.scene.num_envs = 256
    config.env.seed = UNSEEN_SEED
    config = parse_fields(config, words, f"evaluate {task}", options)
    take_num_envs(config.env, options.num_envs)
    return config


def evaluate_cases(
    task: str,
    run: RunFolder | None,
    env_cfg: ManagerBasedRlEnvCfg,
    device: str | None = None,
    checkpoint: Path | None = None,
) -> str:
    """Evaluate the cases of a run, and return a table.

    Args:
        task: name of the task.
        run: the run folder.
        env_cfg: environment whose number of worlds and seed apply; the rest is the run's, since
            states belong to its model.
        device: torch device; None for the default.
        checkpoint: the only checkpoint; None for those from each case on, and the one before.

    Raises:
        ValueError: the run has no cases.
    """
    from manyworlds.cli.policies import load_run_policy, with_progress
    from manyworlds.live.cases import case_env, case_table, cases_of, evaluate_case
    from manyworlds.rl.progress import read_edits
    from manyworlds.tasks.run_configs import configs_of_run

    cases = []
    if run is not None:
        cases = cases_of(read_edits(run.path))
    if run is None or not cases:
        raise ValueError(
            "This run has no cases: send one from a lab (`manyworlds lab --attach`), or name "
            "another run with --checkpoint."
        )
    own, _ = configs_of_run(run)
    own.scene.num_envs = env_cfg.scene.num_envs
    own.seed = env_cfg.seed
    results = []
    for after, case in cases:
        env = case_env(case, own, device)
        chosen = _checkpoints_from(run, after)
        if checkpoint is not None:
            chosen = [checkpoint]
        for path in chosen:
            policy = load_run_policy(env, task, run, path)
            with with_progress(policy, env.max_episode_length, f"{case.name}, {path.stem}") as act:
                results.append(evaluate_case(env, case, act, path.stem))
        env.close()
    return case_table(results)


def _checkpoints_from(run: RunFolder, after: int) -> list[Path]:
    """Return the checkpoints after some iterations, and the last one before."""
    before: list[Path] = []
    later: list[Path] = []
    for path in run.checkpoints():
        iterations = int(path.stem.removeprefix("model_")) + 1
        if iterations <= after:
            before.append(path)
        else:
            later.append(path)
    return before[-1:] + later


def evaluate_run(
    task: str,
    run: RunFolder,
    checkpoint: Path,
    worlds: int,
    *,
    bucket: str | None = None,
    device: str | None = None,
    from_file: bool = False,
) -> Evaluation:
    """Evaluate a checkpoint of a run in new worlds of its training.

    Args:
        task: name of the task.
        run: the run.
        checkpoint: the checkpoint.
        worlds: number of worlds.
        bucket: bucket of a task that has some; None for the first.
        device: torch device; None for the default.
        from_file: take the task as it is now; see `evaluation_env_cfg`.
    """
    from manyworlds.tasks.run_configs import evaluation_env_cfg

    cfg = evaluation_env_cfg(task, run, from_file=from_file)
    cfg.scene.num_envs = worlds
    cfg = one_bucket(cfg, bucket)
    cfg.seed = UNSEEN_SEED
    return evaluate_checkpoint(task, checkpoint, run, cfg, device)


def evaluate_buckets(
    task: str,
    checkpoint: Path,
    run: RunFolder | None,
    env_cfg: ManagerBasedRlEnvCfg,
    device: str | None = None,
) -> str:
    """Evaluate the policy of a checkpoint in each bucket of a task, and return a table.

    Args:
        task: name of the task.
        checkpoint: the checkpoint.
        run: run folder with the settings of the networks; None for those of the task.
        env_cfg: the task, whose worlds are divided equally among the buckets.
        device: torch device; None for the default.
    """
    from manyworlds.envs.buckets import separate_cfgs
    from manyworlds.rl.evaluation import bucket_table

    worlds = max(1, env_cfg.scene.num_envs // len(env_cfg.scene.buckets))
    results = {}
    for name, part in separate_cfgs(env_cfg, worlds).items():
        results[name] = evaluate_checkpoint(task, checkpoint, run, part, device, name)
    return bucket_table(results)


def evaluate_checkpoint(
    task: str,
    checkpoint: Path,
    run: RunFolder | None,
    env_cfg: ManagerBasedRlEnvCfg,
    device: str | None = None,
    what: str = "evaluating",
) -> Evaluation:
    """Evaluate the policy of a checkpoint over one episode in each world, with a progress bar.

    Args:
        task: name of the task.
        checkpoint: the checkpoint.
        run: run folder with the settings of the networks; None for those of the task.
        env_cfg: the environment.
        device: torch device; None for the default.
        what: description of the progress bar.
    """
    from manyworlds.cli.policies import load_run_policy, with_progress
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.rl.evaluation import evaluate

    env = ManagerBasedRlEnv(env_cfg, device=device)
    policy = load_run_policy(env, task, run, checkpoint)
    with with_progress(policy, env.max_episode_length, what) as shown:
        return evaluate(env, shown)
