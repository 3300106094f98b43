"""Train a policy from Python, resume the training, and evaluate the result.

    python examples/08_train.py [RUNS]          # a minute on two cores

You learn to change the configs of a task and of its learner, to follow a training as it runs, to
go on from a checkpoint as if it had never stopped, and to measure a policy.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.rl import OnPolicyRunner, RslRlVecEnvWrapper
from manyworlds.rl.evaluation import Evaluation, evaluate
from manyworlds.rl.progress import IterationRecord
from manyworlds.rl.training import TrainingResult, train
from manyworlds.tasks import load_env_cfg, load_rl_cfg

TASK = "Cartpole-Balance"


def show(record: IterationRecord) -> None:
    """Print a line about every tenth iteration."""
    if record.iteration % 10 == 0 and record.mean_return is not None:
        print(
            f"iteration {record.iteration}: return {record.mean_return:.1f}, "
            f"{record.steps_per_s:.0f} steps/s"
        )


def learn(folder: Path, num_envs: int, iterations: int) -> TrainingResult:
    """Train for half of the iterations, resume, and train for the other half."""
    env_cfg, rl_cfg = load_env_cfg(TASK), load_rl_cfg(TASK)
    env_cfg.scene.num_envs = num_envs
    env_cfg.rewards["smooth_reward"].weight = 1.0  # every field of a config may be changed
    rl_cfg.seed, rl_cfg.max_iterations = 1, iterations // 2
    first = train(TASK, env_cfg, rl_cfg, folder, on_iteration=show)
    rl_cfg.max_iterations = iterations
    # The state of all worlds is in the checkpoint: the run ends with the same weights, bit for
    # bit, as one without a pause.
    return train(TASK, env_cfg, rl_cfg, folder, resume=first.checkpoint, on_iteration=show)


def measure(result: TrainingResult, num_envs: int) -> Evaluation:
    """Return rewards and ends of one episode in each world, with the most probable actions."""
    env_cfg, rl_cfg = load_env_cfg(TASK), load_rl_cfg(TASK)
    env_cfg.scene.num_envs, env_cfg.seed = num_envs, 2
    env = ManagerBasedRlEnv(env_cfg, device="cpu")
    runner = OnPolicyRunner(RslRlVecEnvWrapper(env), asdict(rl_cfg), log_dir=None, device="cpu")
    runner.load(str(result.checkpoint), load_cfg={"actor": True})
    return evaluate(env, runner.get_inference_policy())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", default="runs")
    result = learn(parser.parse_args().folder, num_envs=1024, iterations=60)
    print(measure(result, num_envs=64))
    print("files:", *result.files, sep="\n  ")
    print(f"watch it with: manyworlds play {TASK} --checkpoint {result.checkpoint}")
