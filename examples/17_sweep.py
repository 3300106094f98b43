"""Search for settings of a learner with Optuna, in one process or in many.

    pip install optuna
    python examples/17_sweep.py sweep.db 8        # eight trials; repeat it to add more

You learn to let Optuna choose settings of a training, to stop bad trials early, and to share a
study between processes: start the same command several times, also on several machines that can
reach the database.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import optuna

from manyworlds.rl.progress import IterationRecord
from manyworlds.rl.training import train
from manyworlds.tasks import load_env_cfg, load_rl_cfg

TASK = "Cartpole-Balance"
NUM_ENVS, ITERATIONS = 256, 30


def objective(
    trial: optuna.Trial, folder: Path, num_envs: int = NUM_ENVS, iterations: int = ITERATIONS
) -> float:
    """Train with the settings of a trial; return the mean return of the last iterations."""
    env_cfg, rl_cfg = load_env_cfg(TASK), load_rl_cfg(TASK)
    env_cfg.scene.num_envs = num_envs
    rl_cfg.max_iterations, rl_cfg.seed = iterations, trial.number
    rl_cfg.run_name = f"trial{trial.number}"
    rl_cfg.algorithm.learning_rate = trial.suggest_float("learning_rate", 1e-4, 1e-2, log=True)
    rl_cfg.algorithm.entropy_coef = trial.suggest_float("entropy_coef", 1e-4, 1e-1, log=True)
    rl_cfg.num_steps_per_env = trial.suggest_categorical("num_steps_per_env", [8, 16, 32])

    def report(record: IterationRecord) -> None:
        """Tell Optuna the return so far; it ends a trial that is below the others' median."""
        if record.mean_return is not None:
            trial.report(record.mean_return, record.iteration)
            if trial.should_prune():
                raise optuna.TrialPruned

    result = train(TASK, env_cfg, rl_cfg, folder, on_iteration=report)
    returns = [r.mean_return for r in result.records[-5:] if r.mean_return is not None]
    if not returns:
        raise optuna.TrialPruned  # no episode ended
    return sum(returns) / len(returns)


def study(database: Path) -> optuna.Study:
    """Open a study in a file, or begin it."""
    return optuna.create_study(
        study_name=TASK,
        storage=f"sqlite:///{database}",
        direction="maximize",
        pruner=optuna.pruners.MedianPruner(n_startup_trials=4),
        load_if_exists=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("database", type=Path, nargs="?", default="sweep.db", help="SQLite file")
    parser.add_argument("trials", type=int, nargs="?", default=8, help="number of trials to add")
    args = parser.parse_args()
    found = study(args.database)
    folder = args.database.parent / "runs"
    found.optimize(lambda trial: objective(trial, folder), n_trials=args.trials)
    print(f"best return {found.best_value:.2f} of {len(found.trials)} trials with")
    for name, value in found.best_params.items():
        print(f"  {name} {value:.4g}")
