"""`manyworlds evaluate TASK`: evaluate a policy by the rewards of its task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from manyworlds.cli.parsing import TaskOptions, find_task, parse_known, parse_over, parse_task
from manyworlds.cli.runs import find_run, names_run, naming_load, trained_run

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnvCfg
    from manyworlds.rl.evaluation import Evaluation
    from manyworlds.rl.run_folder import RunFolder

UNSEEN_SEED = 1_000_003
"""Seed that training is unlikely to use."""


def main(argv: list[str]) -> int:
    """Run `manyworlds evaluate`: one episode in each world, and a table."""
    task, argv = _task_and_rest(argv)
    from manyworlds.cli.task_options import EvaluateTaskOptions, take_num_envs
    from manyworlds.tasks import load_env_cfg
    from manyworlds.tasks.velocity.velocity_env_cfg import hold_terrain_level
    from manyworlds.utils.extras import require_extra

    env_cfg = load_env_cfg(task)
    env_cfg.scene.num_envs, env_cfg.seed = 256, UNSEEN_SEED
    options = parse_over(EvaluateTaskOptions(env=env_cfg), argv, f"evaluate {task}")
    take_num_envs(options)
    require_extra("rsl_rl", "train")
    if options.terrain_level is not None:
        hold_terrain_level(options.env, options.terrain_level)
    checkpoint, run = find_run(options.checkpoint, options.log_root, task)
    if options.cases:
        alone = options.checkpoint is not None and options.checkpoint.suffix == ".pt"
        print(evaluate_cases(task, run, options.env, options.device, checkpoint if alone else None))
        return 0
    print(f"policy: {checkpoint}")
    print(evaluate_checkpoint(task, checkpoint, run, options.env, options.device))
    return 0


def _task_and_rest(argv: list[str]) -> tuple[str, list[str]]:
    """Return the task, and the other arguments, of which a run in the task's place is one."""
    start, rest = parse_known(TaskOptions, argv, "evaluate")
    has_other = any(word.partition("=")[0] == "--checkpoint" for word in rest)
    if has_other or len(start.task) != 1 or not names_run(start.task[0]):
        return parse_task(
            argv,
            "evaluate",
            "Evaluate a policy by the rewards of its task. Instead of TASK, a run folder or a "
            "checkpoint may be named.",
        )
    path = start.task[0]
    run, name = trained_run(Path(path), Path(), "evaluate")
    start.task = (name,)
    with naming_load(run):
        return find_task(start), [*rest, "--checkpoint", path]


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
    from manyworlds.rl.cases import case_env, case_table, cases_of, evaluate_case
    from manyworlds.rl.run_edits import read_edits
    from manyworlds.tasks.run_configs import configs_of_run

    cases = [] if run is None else cases_of(read_edits(run.path))
    if run is None or not cases:
        raise ValueError(
            "This run has no cases: send one from a lab (`manyworlds lab --attach`), or name "
            "another run with --checkpoint."
        )
    own, _ = configs_of_run(run)
    own.scene.num_envs, own.seed = env_cfg.scene.num_envs, env_cfg.seed
    results = []
    for after, case in cases:
        env = case_env(case, own, device)
        chosen = [checkpoint] if checkpoint is not None else _checkpoints_from(run, after)
        for path in chosen:
            policy = load_run_policy(env, task, run, path)
            with with_progress(policy, env.max_episode_length, f"{case.name}, {path.stem}") as act:
                results.append(evaluate_case(env, case, act, path.stem))
        env.close()
    return case_table(results)


def _checkpoints_from(run: RunFolder, after: int) -> list[Path]:
    """Return the checkpoints after some iterations, and the last one before."""
    paths = run.checkpoints()
    done = [int(path.stem.removeprefix("model_")) + 1 for path in paths]
    before = [path for path, n in zip(paths, done, strict=True) if n <= after]
    return [*before[-1:], *(path for path, n in zip(paths, done, strict=True) if n > after)]


def evaluate_checkpoint(
    task: str,
    checkpoint: Path,
    run: RunFolder | None,
    env_cfg: ManagerBasedRlEnvCfg,
    device: str | None = None,
) -> Evaluation:
    """Evaluate the policy of a checkpoint over one episode in each world, with a progress bar.

    Args:
        task: name of the task.
        checkpoint: the checkpoint.
        run: run folder with the settings of the networks; None for those of the task.
        env_cfg: the environment.
        device: torch device; None for the default.
    """
    from manyworlds.cli.policies import load_run_policy, with_progress
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.rl.evaluation import evaluate

    env = ManagerBasedRlEnv(env_cfg, device=device)
    policy = load_run_policy(env, task, run, checkpoint)
    with with_progress(policy, env.max_episode_length, "evaluating") as shown:
        return evaluate(env, shown)
