"""Train without the command: a runner from a dictionary of settings."""

import sys
from dataclasses import asdict

import sway  # noqa: F401
from mjlab.envs import ManagerBasedRlEnv
from mjlab.rl import MjlabOnPolicyRunner, RslRlVecEnvWrapper
from mjlab.tasks.registry import load_env_cfg, load_rl_cfg, load_runner_cls


def main(task: str, log_dir: str) -> None:
    """Train one iteration and save."""
    agent = load_rl_cfg(task)
    agent.logger = "tensorboard"
    env = RslRlVecEnvWrapper(ManagerBasedRlEnv(load_env_cfg(task), device="cpu"))
    runner_cls = load_runner_cls(task) or MjlabOnPolicyRunner
    runner = runner_cls(env, asdict(agent), log_dir, "cpu")
    runner.learn(num_learning_iterations=1, init_at_random_ep_len=True)
    runner.save(f"{log_dir}/model_1.pt")
    print("learned", task)


if __name__ == "__main__":
    main(*sys.argv[1:])
