"""Randomize masses, friction and delays, and find the worlds that a behavior cannot handle.

    python examples/04_domain_randomization.py

You learn to add random draws to a task: once at the start (differences between the real robot and
its model), at each reset (what changes from day to day), and during episodes (pushes); and to
relate the results of worlds to what was drawn for them.
"""

from __future__ import annotations

import torch

from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg, mdp
from manyworlds.envs.mdp import dr
from manyworlds.managers import EventTermCfg, SceneEntityCfg
from manyworlds.tasks import load_env_cfg

POLE = SceneEntityCfg("cartpole", body_names=("pole",))
HINGE = SceneEntityCfg("cartpole", joint_names=("hinge_1",))
# Joint positions and velocities -> force of the cart: a controller made for the compiled model.
GAINS = torch.tensor([1.0, 16.0, 1.6, 4.0])


def task(num_envs: int) -> ManagerBasedRlEnvCfg:
    """Return the task Cartpole-Balance with randomized physics."""
    cfg = load_env_cfg("Cartpole-Balance")
    cfg.scene.num_envs, cfg.seed = num_envs, 1
    # Mass, center of mass and inertia together, so that the body remains possible.
    cfg.events["pole"] = EventTermCfg(
        func=dr.pseudo_inertia,
        mode="startup",
        params={"asset_cfg": POLE, "alpha_range": (-0.5, 0.5), "t3_range": (-0.1, 0.1)},
    )
    # Friction of the hinge spans orders of magnitude.
    cfg.events["friction"] = EventTermCfg(
        func=dr.joint_damping,
        mode="reset",
        params={"asset_cfg": HINGE, "ranges": (1e-6, 1e-2), "distribution": "log_uniform"},
    )
    cfg.events["strength"] = EventTermCfg(
        func=dr.effort_limits,
        mode="reset",
        params={
            "effort_limit_range": (0.2, 1.0),
            "operation": "scale",
            "asset_cfg": SceneEntityCfg("cartpole"),
        },
    )
    cfg.events["wind"] = EventTermCfg(
        func=mdp.apply_external_force_torque,
        mode="interval",
        interval_range_s=(0.2, 0.5),
        params={"asset_cfg": POLE, "force_range": (-0.3, 0.3), "torque_range": (0.0, 0.0)},
    )
    return cfg


def survivors(env: ManagerBasedRlEnv, seconds: float) -> torch.Tensor:
    """Balance with fixed gains; return where the pole is upright at the end, shape [num_envs]."""
    env.reset()
    robot = env.scene.entity("cartpole").data
    upright = torch.ones(env.num_envs, dtype=torch.bool)
    for _ in range(round(seconds / env.step_dt)):
        state = torch.cat([robot.joint_pos, robot.joint_vel], dim=1)
        env.step((state @ GAINS[[0, 1, 2, 3]])[:, None])
        upright &= robot.joint_pos[:, 1].abs() < 0.5
    return upright


if __name__ == "__main__":
    env = ManagerBasedRlEnv(task(num_envs=256), device="cpu")
    print(env.event_manager)
    upright = survivors(env, seconds=4.0)
    pole = env.sim.mj_model.body("cartpole/pole").id
    mass = env.sim.model.body_mass[:, pole]
    limit = env.scene.entity("cartpole").actuators[0].force_limit.flatten()
    print(f"{int(upright.sum())} of {env.num_envs} worlds balance.")
    for name, values in (("mass of the pole [kg]", mass), ("strength of the cart [N]", limit)):
        for kind, mask in (("balance", upright), ("fall", ~upright)):
            if mask.any():
                low, high = values[mask].min(), values[mask].max()
                print(f"{name}, worlds that {kind}: {low:.3f} to {high:.3f}")
