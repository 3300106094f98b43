"""Play a checkpoint: python scripts/play_policy.py TASK CHECKPOINT [STEPS] [MOTION_FILE]."""

import sys
from dataclasses import asdict

import torch
from mjlab.envs import ManagerBasedRlEnv
from mjlab.rl import MjlabOnPolicyRunner, RslRlVecEnvWrapper
from mjlab.tasks.registry import load_env_cfg, load_rl_cfg, load_runner_cls
from mjlab.tasks.tracking.mdp import MotionCommandCfg
from mjlab.utils.torch import configure_torch_backends
from mjlab.viewer import ViserPlayViewer


def main(task: str, checkpoint: str, steps: str = "5", motion_file: str | None = None) -> None:
    """Load the policy and watch it in the browser."""
    configure_torch_backends()
    device = "cuda:0" if torch.cuda.is_available() else "cpu"

    env_cfg = load_env_cfg(task, play=True)
    agent_cfg = load_rl_cfg(task)
    env_cfg.scene.num_envs = 2
    if "motion" in env_cfg.commands:
        motion_cmd = env_cfg.commands["motion"]
        assert isinstance(motion_cmd, MotionCommandCfg) and motion_file is not None
        motion_cmd.motion_file = motion_file

    env = ManagerBasedRlEnv(cfg=env_cfg, device=device, render_mode=None)
    env = RslRlVecEnvWrapper(env, clip_actions=agent_cfg.clip_actions)
    runner_cls = load_runner_cls(task) or MjlabOnPolicyRunner
    runner = runner_cls(env, asdict(agent_cfg), device=device)
    runner.load(checkpoint, load_cfg={"actor": True}, strict=True, map_location=device)
    policy = runner.get_inference_policy(device=device)

    ViserPlayViewer(env, policy).run(num_steps=int(steps))
    print(f"played {task}: {env.unwrapped.common_step_counter} steps")
    env.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
