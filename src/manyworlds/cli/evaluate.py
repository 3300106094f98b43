"""`manyworlds evaluate TASK`: tell how well a policy does what its task rewards."""

from __future__ import annotations

from manyworlds.cli.common import find_run, parse, take_task

UNSEEN_SEED = 1_000_003
"""A seed that training is not likely to have."""


def main(argv: list[str]) -> int:
    """Parse the command line, run an episode in each world, and print a table."""
    task, argv = take_task(argv, "evaluate")
    from manyworlds.cli.options import EvaluateConfig
    from manyworlds.cli.policy import load_policy
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.rl.evaluation import evaluate
    from manyworlds.tasks import load_env_cfg, load_rl_cfg, load_runner_cls
    from manyworlds.utils.config import update_from_plain
    from manyworlds.utils.extras import require_extra

    env_cfg, rl_cfg = load_env_cfg(task), load_rl_cfg(task)
    env_cfg.scene.num_envs, env_cfg.seed = 256, UNSEEN_SEED
    cfg = parse(EvaluateConfig, EvaluateConfig(env=env_cfg), argv, f"evaluate {task}")
    require_extra("rsl_rl", "train")
    checkpoint, run = find_run(cfg.checkpoint, cfg.log_root, task)
    if run is not None:
        update_from_plain(rl_cfg, run.agent_params())
    env = ManagerBasedRlEnv(cfg.env, device=cfg.device)
    policy = load_policy(env, rl_cfg, checkpoint, load_runner_cls(task))
    print(f"policy: {checkpoint}")
    print(evaluate(env, policy))
    return 0
