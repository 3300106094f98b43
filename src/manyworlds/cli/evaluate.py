"""`manyworlds evaluate TASK`: evaluate a policy by the rewards of its task."""

from __future__ import annotations

from manyworlds.cli.parsing import parse_over, parse_task
from manyworlds.cli.runs import find_run

UNSEEN_SEED = 1_000_003
"""Seed that training is unlikely to use."""


def main(argv: list[str]) -> int:
    """Run `manyworlds evaluate`: one episode in each world, and a table."""
    task, argv = parse_task(argv, "evaluate", "Evaluate a policy by the rewards of its task.")
    from manyworlds.cli.task_options import EvaluateTaskOptions
    from manyworlds.tasks import load_env_cfg, load_rl_cfg, load_runner_cls
    from manyworlds.utils.config import update_from_plain
    from manyworlds.utils.extras import require_extra

    env_cfg, rl_cfg = load_env_cfg(task), load_rl_cfg(task)
    env_cfg.scene.num_envs, env_cfg.seed = 256, UNSEEN_SEED
    options = parse_over(EvaluateTaskOptions(env=env_cfg), argv, f"evaluate {task}")
    require_extra("rsl_rl", "train")
    checkpoint, run = find_run(options.checkpoint, options.log_root, task)
    if run is not None:
        update_from_plain(rl_cfg, run.agent_params())
    from manyworlds.cli.policies import load_policy
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.rl.evaluation import evaluate

    env = ManagerBasedRlEnv(options.env, device=options.device)
    policy = load_policy(env, rl_cfg, checkpoint, load_runner_cls(task))
    print(f"policy: {checkpoint}")
    print(evaluate(env, policy))
    return 0
