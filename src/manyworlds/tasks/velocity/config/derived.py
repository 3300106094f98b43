"""Velocity tasks of any legged robot, from what `manyworlds.asset_zoo.legged` derives."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import torch

from manyworlds.asset_zoo.legged import (
    LeggedModel,
    derive_legged_model,
    foot_geoms,
    legged_entity,
    sole_site,
    trunk_geoms,
)
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.envs.mdp import reset_scene_to_default
from manyworlds.managers import EventTermCfg, SceneEntityCfg, TerminationTermCfg
from manyworlds.managers.symmetry import EnvSymmetry
from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.sensor import ContactMatch, RingPatternCfg
from manyworlds.sim import MujocoCfg
from manyworlds.spec.load import compile_spec, load_spec
from manyworlds.tasks.velocity import mdp
from manyworlds.tasks.velocity.velocity_cpu import use_biped_cpu_preset, use_cpu_preset
from manyworlds.tasks.velocity.velocity_env_cfg import LeggedRobot, with_robot
from manyworlds.tasks.velocity.velocity_rl_cfg import velocity_ppo_runner_cfg
from manyworlds.terrains import TerrainEntityCfg
from manyworlds.utils.viewer_config import ViewerConfig

if TYPE_CHECKING:
    import mujoco

    from manyworlds.tasks.registry import CpuPreset

Ground = Literal["flat", "rough"]
_ACTION_SHARE = 0.25  # of the largest effort, for an action of 1
_BIPED = 2
_SETTLING_S = 0.5
# Deviations from the default pose when standing, walking and running [rad]: of knees, of other
# joints that bend forward and back, of other joints of legs, of all others.
_STANDING = (0.1, 0.05, 0.05, 0.05)
_WALKING = {2: (0.35, 0.3, 0.15, 0.2), 4: (0.6, 0.3, 0.3, 0.2)}
_RUNNING = {2: (0.6, 0.5, 0.2, 0.3), 4: (0.6, 0.3, 0.3, 0.3)}


def legged_robot(file: str | Path, model: LeggedModel) -> LeggedRobot:
    """Describe a robot for the velocity task.

    Args:
        file: its model: MJCF or URDF.
        model: facts about it; `derive_legged_model` derives them.

    Raises:
        ModelFileError: the file cannot be read.
    """
    spec, _ = load_spec(Path(file))
    return describe_robot(spec, model)


def describe_robot(spec: mujoco.MjSpec, model: LeggedModel) -> LeggedRobot:
    """Describe a robot for the velocity task, as `legged_robot` does for a file."""
    trunk = trunk_geoms(spec, model)
    count = len(model.feet)
    soles = tuple(f"^{re.escape(name)}$" for name in foot_geoms(spec, model))
    bodies = "|".join(map(re.escape, model.feet))
    if count == _BIPED:
        contact = ContactMatch(mode="subtree", pattern=f"^({bodies})$", entity="robot")
    else:
        contact = ContactMatch(mode="geom", pattern=soles, entity="robot")
    touches = {}
    if trunk:
        touches["trunk_ground_touch"] = tuple(f"^{re.escape(name)}$" for name in trunk)
    return LeggedRobot(
        entity=partial(legged_entity, spec, model),
        action_scale={
            f"^{re.escape(name)}$": _ACTION_SHARE * drive.effort_limit / drive.stiffness
            for name, drive in model.drives.items()
        },
        root=model.root,
        trunk=model.root,
        feet=tuple(map(sole_site, model.feet)),
        feet_contact=contact,
        foot_geoms=soles,
        foot_friction={"foot_friction": {"ranges": (0.3, 1.2)}},
        foot_ring=RingPatternCfg.Ring(radius=0.03, num_samples=4),
        posture=(
            _posture(model, _STANDING),
            _posture(model, _WALKING[count]),
            _posture(model, _RUNNING[count]),
        ),
        touches=touches,
        viewer=ViewerConfig(
            origin_type=ViewerConfig.OriginType.ASSET_BODY,
            entity_name="robot",
            body_name=model.root,
            distance=max(1.5, 4.0 * model.height),
            elevation=-10.0,
        ),
        mujoco=MujocoCfg(timestep=0.005, iterations=10, ls_iterations=20, ccd_iterations=500),
    )


def velocity_env_cfg(
    robot: LeggedRobot, ground: Ground = "flat", play: bool = False
) -> ManagerBasedRlEnvCfg:
    """Return the velocity task of a robot; contacts of its trunk with the ground end episodes."""
    cfg = with_robot(robot, rough=ground == "rough", play=play)
    controlled = SceneEntityCfg("robot", joint_names=tuple(robot.posture[0]))
    cfg.rewards["pose"].params["asset_cfg"] = controlled  # other joints have no posture
    if robot.touches:
        cfg.terminations["illegal_contact"] = TerminationTermCfg(
            func=mdp.illegal_contact, params={"sensor_name": "trunk_ground_touch"}
        )
    if len(robot.feet) > _BIPED:
        for name in ("body_ang_vel", "angular_momentum"):  # as for the built-in quadruped
            cfg.rewards[name].weight = 0.0
    return cfg


def velocity_rl_cfg(name: str, robot: LeggedRobot) -> RslRlOnPolicyRunnerCfg:
    """Return the PPO settings for a robot, whose runs are in a folder of this name."""
    iterations = 10000
    if len(robot.feet) == _BIPED:
        iterations = 30000
    return velocity_ppo_runner_cfg(name, max_iterations=iterations)


def cpu_preset(robot: LeggedRobot) -> CpuPreset:
    """Return the change of both configurations for a few CPU cores.

    It takes a symmetric network only for a robot that is symmetric, and else warns.
    """
    use_symmetric = use_cpu_preset
    if len(robot.feet) == _BIPED:
        use_symmetric = use_biped_cpu_preset

    def use(env_cfg: ManagerBasedRlEnvCfg, rl_cfg: RslRlOnPolicyRunnerCfg) -> None:
        usual = rl_cfg.actor.class_name
        use_symmetric(env_cfg, rl_cfg)
        why = _asymmetry(env_cfg, rl_cfg.obs_groups["actor"])
        if why:
            rl_cfg.actor.class_name = usual
            warnings.warn(
                f"The policy is trained without mirror symmetry, with which it would learn faster: "
                f"{why}",
                stacklevel=2,
            )

    return use


def _asymmetry(cfg: ManagerBasedRlEnvCfg, groups: Sequence[str]) -> str:
    """Return why observations and actions have no mirror image; empty if they have one."""
    scene = replace(cfg.scene, num_envs=1, terrain=TerrainEntityCfg(terrain_type="plane"))
    needed = ManagerBasedRlEnvCfg(
        scene=scene,
        decimation=cfg.decimation,
        observations={name: cfg.observations[name] for name in groups},
        actions=cfg.actions,
        commands=cfg.commands,
        sim=cfg.sim,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the training's environment repeats them
        env = ManagerBasedRlEnv(needed, device="cpu")
        try:
            EnvSymmetry(env, groups)
        except ValueError as error:
            return str(error)
        finally:
            env.close()
    return ""


def derive_robot(
    file: str | Path,
    feet: Sequence[str] = (),
    effort_limit: float | Mapping[str, float] | None = None,
) -> LeggedModel:
    """Derive the facts about the robot of a file; see `derive_legged_model`.

    Raises:
        ModelFileError: the file cannot be read, or does not compile.
        ValueError: its model does not say all that the task needs.
    """
    spec, _ = load_spec(Path(file))
    compile_spec(spec.copy(), Path(file))  # whose errors have remedies
    try:
        return derive_legged_model(spec, feet, effort_limit)
    except ValueError as error:
        raise ValueError(f"Cannot derive a task from '{file}'. {error}") from error


def settled_height(robot: LeggedRobot) -> float:
    """Return the height of the root after half a second in the default pose [m].

    The robot starts on its feet, and its joints hold the pose with their gains.
    """
    cfg = velocity_env_cfg(robot, play=True)
    cfg.scene.num_envs = 1
    cfg.terminations = {}
    cfg.events = {"reset": EventTermCfg(func=reset_scene_to_default, mode="reset")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the training's environment repeats them
        env = ManagerBasedRlEnv(cfg, device="cpu")
    try:
        env.reset()
        hold = torch.zeros(1, env.action_manager.total_action_dim)
        for _ in range(round(_SETTLING_S / env.step_dt)):
            env.step(hold)
        return float(env.scene.entity("robot").data.root_link_pos_w[0, 2])
    finally:
        env.close()


def _posture(model: LeggedModel, sizes: tuple[float, float, float, float]) -> dict[str, float]:
    """Return the deviation of each controlled joint."""
    knee, pitch, leg, other = sizes
    groups = ((model.knees, knee), (model.pitch, pitch), (model.legs, leg), (model.drives, other))
    found: dict[str, float] = {}
    for names, size in groups:
        for name in names:
            found.setdefault(f"^{re.escape(name)}$", size)
    return found
