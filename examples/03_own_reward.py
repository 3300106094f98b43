"""Give a task rewards of your own: a function, and a class that keeps state.

    python examples/03_own_reward.py

You learn to change the config of a task, to write reward terms for all worlds at once, to select
elements of an entity by name, to check the task, and to read what each term contributes.
"""

from __future__ import annotations

import torch

from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg, check_env
from manyworlds.managers import ManagerTermBase, RewardTermCfg, SceneEntityCfg
from manyworlds.tasks import load_env_cfg

CART = SceneEntityCfg("cartpole", joint_names="slider")


def near_middle(env: ManagerBasedRlEnv, width: float, asset_cfg: SceneEntityCfg) -> torch.Tensor:
    """Return 1 for a cart in the middle of the rail, about 0 far from it, shape [num_envs]."""
    cart = env.scene.entity(asset_cfg.name)
    position = cart.data.joint_pos[:, asset_cfg.index("joint")].squeeze(1)
    return torch.exp(-(position / width).square())


class DistanceDriven(ManagerTermBase):
    """Distance that the cart has driven in the episode [m]."""

    state_attributes = ("distance",)  # saved in checkpoints

    def __init__(self, cfg: RewardTermCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        self.distance = torch.zeros(self.num_envs, device=self.device)

    def reset(self, env_ids: torch.Tensor | None = None) -> None:
        """Begin new episodes in the selected worlds; None selects all."""
        self.distance[slice(None) if env_ids is None else env_ids] = 0.0

    def __call__(self, env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg) -> torch.Tensor:
        """Return the distance so far [m], shape [num_envs]."""
        cart = env.scene.entity(asset_cfg.name)
        speed = cart.data.joint_vel[:, asset_cfg.index("joint")].squeeze(1)
        self.distance += speed.abs() * env.step_dt
        return self.distance.clone()


def task(num_envs: int) -> ManagerBasedRlEnvCfg:
    """Return the task Cartpole-Balance with two more rewards."""
    cfg = load_env_cfg("Cartpole-Balance")
    cfg.scene.num_envs = num_envs
    cfg.rewards["near_middle"] = RewardTermCfg(
        func=near_middle, weight=0.5, params={"width": 0.3, "asset_cfg": CART}
    )
    cfg.rewards["distance"] = RewardTermCfg(
        func=DistanceDriven, weight=-0.1, params={"asset_cfg": CART}
    )
    return cfg


def rewards_by_term(env: ManagerBasedRlEnv, num_steps: int) -> dict[str, float]:
    """Return the mean weighted reward per second of each term, under random actions."""
    sums = torch.zeros(len(env.reward_manager.active_terms))
    env.reset(seed=1)
    for _ in range(num_steps):
        env.step(torch.randn(env.num_envs, env.action_manager.total_action_dim))
        for i, (_, values) in enumerate(env.reward_manager.get_active_iterable_terms(0)):
            sums[i] += values[0]
    return dict(zip(env.reward_manager.active_terms, (sums / num_steps).tolist(), strict=True))


if __name__ == "__main__":
    cfg = task(num_envs=64)
    print(check_env(cfg))  # finds common mistakes, such as worlds that influence each other
    env = ManagerBasedRlEnv(cfg, device="cpu")
    print(env.reward_manager)
    for name, value in rewards_by_term(env, num_steps=50).items():
        print(f"{name:15} {value:+.3f} per second in world 0")
