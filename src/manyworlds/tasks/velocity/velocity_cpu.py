"""What of the velocity task learns fast on a few CPU cores."""

from __future__ import annotations

from typing import Any

from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.sensor import TerrainHeightSensorCfg


def use_cpu_preset(env_cfg: ManagerBasedRlEnvCfg, rl_cfg: RslRlOnPolicyRunnerCfg) -> None:
    """Change a velocity task to cheaper contacts, fewer worlds and smaller networks.

    Observations, actions, commands, rewards, episodes and the control period stay the same, so that
    what is learned here can be evaluated in the task itself.
    """
    _simplify_contacts(env_cfg)
    _simplify_foot_heights(env_cfg)
    env_cfg.scene.num_envs = 1024
    rl_cfg.max_iterations = 300
    for network in (rl_cfg.actor, rl_cfg.critic):
        network.hidden_dims = (128, 128, 128)
    assert rl_cfg.actor.distribution_cfg is not None
    rl_cfg.actor.distribution_cfg["init_std"] = 0.8
    rl_cfg.algorithm.entropy_coef = 0.005


def _simplify_contacts(cfg: ManagerBasedRlEnvCfg) -> None:
    """Let robots touch the ground only, with friction pyramids that do not resist turning.

    A physics step of Go1 takes 33 us so, and 81 us with elliptic cones, six dimensions a foot and
    legs that touch each other.
    """
    cfg.sim.mujoco.cone, cfg.sim.mujoco.impratio = "pyramidal", 1.0
    for collision in cfg.scene.entities["robot"].collisions:
        collision.contype, collision.conaffinity = 0, 1
        collision.condim = _at_most_three(collision.condim)


def _at_most_three(condim: Any) -> Any:
    if isinstance(condim, dict):
        return {name: min(value, 3) for name, value in condim.items()}
    return None if condim is None else min(condim, 3)


def _simplify_foot_heights(cfg: ManagerBasedRlEnvCfg) -> None:
    """Look for the ground with one ray a foot where it is a plane."""
    if cfg.scene.terrain is None or cfg.scene.terrain.terrain_type != "plane":
        return
    for sensor in cfg.scene.sensors:
        if isinstance(sensor, TerrainHeightSensorCfg):
            pattern: Any = sensor.pattern
            pattern.include_center = False
            pattern.rings[0].num_samples = 1
