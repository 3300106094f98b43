"""Tasks whose worlds have different topology, for tests."""

from __future__ import annotations

import functools

import mujoco
import torch

from manyworlds.actuator import BuiltinPositionActuatorCfg
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg, mdp
from manyworlds.managers import (
    EventTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
    TerminationTermCfg,
)
from manyworlds.scene import SceneCfg
from manyworlds.sensor import BuiltinSensorCfg, ObjRef
from manyworlds.signals import UniformNoiseCfg as Unoise
from manyworlds.sim import MujocoCfg, SimulationCfg


def chain(links: int, length: float = 0.2) -> mujoco.MjSpec:
    """Return a chain of links that hang from each other, each of this length [m]."""
    spec = mujoco.MjSpec()
    body = spec.worldbody.add_body(name="base", pos=(0.0, 0.0, 2.0))
    for i in range(links):
        body = body.add_body(name=f"link{i}", pos=(0.0, 0.0, -length * (i > 0)))
        body.add_joint(name=f"hinge{i}", axis=(0, 1, 0) if i % 2 else (1, 0, 0), damping=0.05)
        body.add_geom(
            name=f"geom{i}",
            type=mujoco.mjtGeom.mjGEOM_CAPSULE,
            fromto=(0, 0, 0, 0, 0, -length),
            size=(0.02, 0, 0),
            contype=0,
            conaffinity=0,
        )
    body.add_site(name="tip", pos=(0.0, 0.0, -length))
    return spec


def ball() -> mujoco.MjSpec:
    """Return a ball that falls."""
    spec = mujoco.MjSpec()
    body = spec.worldbody.add_body(name="ball", pos=(1.0, 0.0, 1.0))
    body.add_freejoint(name="free")
    body.add_geom(name="ball", size=(0.05, 0, 0))
    return spec


def chain_scene(
    links: int, with_ball: bool = False, delay: int = 0, length: float = 0.2
) -> SceneCfg:
    """Return a scene with a chain, whose stiffness follows its length, and perhaps a ball."""
    actuators = (
        BuiltinPositionActuatorCfg(
            target_names_expr=(".*",), stiffness=20.0 * length, damping=0.1, delay_max_lag=delay
        ),
    )
    entities = {
        "robot": EntityCfg(
            spec_fn=functools.partial(chain, links, length),
            articulation=EntityArticulationInfoCfg(actuators=actuators),
        )
    }
    if with_ball:
        start = EntityCfg.InitialStateCfg(pos=(1.0, 0.0, 5.0 * length))
        entities["ball"] = EntityCfg(spec_fn=ball, init_state=start)
    tip = BuiltinSensorCfg(
        name="tip", sensor_type="framepos", obj=ObjRef(type="site", name="tip", entity="robot")
    )
    return SceneCfg(entities=entities, sensors=(tip,))


def lazy_ball(env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg) -> torch.Tensor:
    """Penalize the speed of the ball, shape [num_envs]."""
    return -env.scene.entity(asset_cfg.name).data.root_link_lin_vel_w.norm(dim=1)


def chains_cfg(num_envs: int = 12, delay: int = 0) -> ManagerBasedRlEnvCfg:
    """Return a task of three buckets of chains, one of which has a ball, too."""
    actor = {
        "pos": ObservationTermCfg(func=mdp.joint_pos_rel, noise=Unoise(n_min=-0.1, n_max=0.1)),
        "vel": ObservationTermCfg(func=mdp.joint_vel_rel, history_length=2),
        "tip": ObservationTermCfg(func=mdp.builtin_sensor, params={"sensor_name": "robot/tip"}),
        "ball": ObservationTermCfg(
            func=mdp.base_lin_vel,
            params={"asset_cfg": SceneEntityCfg("ball")},
            optional=True,
        ),
        "action": ObservationTermCfg(func=mdp.last_action),
    }
    return ManagerBasedRlEnvCfg(
        decimation=4,
        scene=SceneCfg(
            num_envs=num_envs,
            buckets={
                "two": chain_scene(2, delay=delay),
                "three": chain_scene(3, with_ball=True),
                "four": chain_scene(4),
            },
        ),
        observations={
            "actor": ObservationGroupCfg(terms=actor, enable_corruption=True),
            "whole": ObservationGroupCfg(
                terms={"vel": ObservationTermCfg(func=mdp.joint_vel_rel)},
                concatenate_terms=False,
            ),
        },
        actions={
            "joints": mdp.JointPositionActionCfg(
                entity_name="robot", actuator_names=(".*",), scale=0.5
            )
        },
        events={
            "reset": EventTermCfg(
                func=mdp.reset_joints_by_offset,
                mode="reset",
                params={"position_range": (-0.3, 0.3), "velocity_range": (-0.5, 0.5)},
            ),
            "mass": EventTermCfg(
                func=mdp.dr.body_mass,
                mode="startup",
                params={
                    "asset_cfg": SceneEntityCfg("robot", body_names=("link.*",)),
                    "operation": "scale",
                    "ranges": (0.7, 1.3),
                },
            ),
        },
        rewards={
            "slow": RewardTermCfg(func=mdp.joint_vel_l2, weight=-0.1),
            "ball": RewardTermCfg(
                func=lazy_ball,
                weight=1.0,
                params={"asset_cfg": SceneEntityCfg("ball")},
                optional=True,
            ),
        },
        terminations={"time_out": TerminationTermCfg(func=mdp.time_out, time_out=True)},
        sim=SimulationCfg(mujoco=MujocoCfg(timestep=0.005)),
        episode_length_s=0.3,
        seed=5,
    )


def alike_cfg(num_envs: int = 12) -> ManagerBasedRlEnvCfg:
    """Return a task of five buckets: two with two links, two with three and a ball, and another."""
    cfg = chains_cfg(num_envs)
    cfg.scene.merge_buckets = True
    cfg.scene.buckets = {
        "two": chain_scene(2),
        "three": chain_scene(3, with_ball=True),
        "four": chain_scene(4),
        "long two": chain_scene(2, length=0.3),
        "short three": chain_scene(3, with_ball=True, length=0.1),
    }
    cfg.events["ball"] = EventTermCfg(
        func=mdp.reset_root_state_uniform,
        mode="reset",
        params={"pose_range": {"z": (0.0, 0.1)}, "asset_cfg": SceneEntityCfg("ball")},
        optional=True,
    )
    return cfg
