"""Take steps with random actions and check what comes back."""

import sys

import sway  # noqa: F401
import torch
from mjlab.envs import ManagerBasedRlEnv
from mjlab.rl import RslRlVecEnvWrapper
from mjlab.tasks.registry import list_tasks, load_env_cfg, load_rl_cfg
from mjlab.utils.spaces import Box
from mjlab.utils.torch import configure_torch_backends


def main(task: str) -> None:
    """Run the environment, bare and wrapped."""
    assert task in list_tasks()
    configure_torch_backends()
    cfg = load_env_cfg(task, play=True)
    cfg.scene.num_envs = 4
    env = ManagerBasedRlEnv(cfg, device="cpu")
    obs, _ = env.reset(seed=0)
    for _ in range(20):
        obs, reward, terminated, truncated, extras = env.step(torch.rand(4, 1) * 2 - 1)
    assert obs["actor"].shape == (4, 7) and reward.shape == terminated.shape == (4,)
    assert not truncated.any() and "log" in extras
    assert isinstance(env.single_action_space, Box)
    robot = env.scene["robot"]
    ids, names = robot.find_joints(("swing",))
    assert names == ["swing"] and robot.data.joint_pos[:, ids].abs().max() > 0.0
    assert len(env.sim.model.geom_friction[:, robot.indexing.geom_ids[1], 0].unique()) == 4
    assert env.scene["pole_touch"].data.found is not None
    wrapped = RslRlVecEnvWrapper(env, clip_actions=load_rl_cfg(task).clip_actions)
    obs, reward, dones, extras = wrapped.step(torch.zeros(4, 1))
    assert obs["critic"].shape == (4, 7) and dones.dtype == torch.long
    print("rolled out", task)


if __name__ == "__main__":
    main(*sys.argv[1:])
