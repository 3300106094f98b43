"""Task `Push-Variants`: move an object of any shape to a goal with a round pusher."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import mujoco

from manyworlds.actuator import BuiltinVelocityActuatorCfg
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg, VariantEntityCfg
from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.envs.mdp import action_rate_l2, bad_world, time_out
from manyworlds.managers import (
    EventTermCfg,
    MetricsTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from manyworlds.rl.config import (
    RslRlModelCfg,
    RslRlOnPolicyRunnerCfg,
    RslRlPpoAlgorithmCfg,
    gaussian_distribution,
)
from manyworlds.scene import SceneCfg
from manyworlds.sim import MujocoCfg, SimulationCfg
from manyworlds.spec.edits import add_checker_material, add_ground_plane, add_sky
from manyworlds.tasks.push import mdp
from manyworlds.tasks.push.shapes import HEIGHT, SHAPES, TRAINED, object_spec
from manyworlds.utils.viewer_config import ViewerConfig

HOLD_S = 0.5
"""Time for which the object must stay at its goal [s]."""
MAX_SPEED = 0.5
"""Maximum speed of the pusher [m/s]."""


def pusher_spec() -> mujoco.MjSpec:
    """Create a sphere with a handle that slides along x and y at half the objects' height."""
    spec = mujoco.MjSpec()
    body = spec.worldbody.add_body(name="pusher", pos=(0.0, 0.0, HEIGHT / 2.0))
    slide = mujoco.mjtJoint.mjJNT_SLIDE
    body.add_joint(name="x", type=slide, axis=(1, 0, 0))
    body.add_joint(name="y", type=slide, axis=(0, 1, 0))
    body.add_geom(
        name="tip",
        type=mujoco.mjtGeom.mjGEOM_SPHERE,
        size=(mdp.PUSHER_RADIUS, 0.0, 0.0),
        mass=0.5,
        rgba=(0.2, 0.23, 0.28, 1.0),
    )
    body.add_geom(
        name="handle",
        type=mujoco.mjtGeom.mjGEOM_CAPSULE,
        fromto=(0.0, 0.0, 0.0, 0.0, 0.0, 0.1),
        size=(0.012, 0.0, 0.0),
        mass=0.0,
        contype=0,
        conaffinity=0,
        rgba=(0.2, 0.23, 0.28, 1.0),
    )
    return spec


def pusher_cfg() -> EntityCfg:
    """Configure the pusher with velocity actuators."""
    actuator = BuiltinVelocityActuatorCfg(
        target_names_expr=(".*",), damping=100.0, effort_limit=20.0
    )
    return EntityCfg(
        spec_fn=pusher_spec, articulation=EntityArticulationInfoCfg(actuators=(actuator,))
    )


def object_cfg(shapes: Sequence[str] = TRAINED) -> VariantEntityCfg:
    """Configure an object with a variant per shape, by names in `shapes.SHAPES`.

    Variants are assigned to worlds in turn, so that consecutive worlds show different shapes.
    """
    return VariantEntityCfg(
        variants={name: functools.partial(object_spec, name) for name in shapes},
        assignment=lambda count: [world % len(shapes) for world in range(count)],
    )


def _floor(spec: mujoco.MjSpec) -> None:
    """Add sky, light and a floor without collisions."""
    add_sky(spec)
    spec.worldbody.add_light(
        pos=(0, -1, 3), dir=(0.2, 0.4, -1), type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL
    )
    floor = add_ground_plane(spec, name="floor")
    floor.contype = floor.conaffinity = 0
    floor.material = add_checker_material(spec, name="floor", square=0.1)


def push_variants_env_cfg(
    play: bool = False, shapes: Sequence[str] | None = None
) -> ManagerBasedRlEnvCfg:
    """Return the push task.

    Args:
        play: configure for playback: few worlds, with all shapes, including the held-out ones.
        shapes: names of the shapes to use instead.
    """
    if shapes is None:
        shapes = tuple(SHAPES) if play else TRAINED
    return ManagerBasedRlEnvCfg(
        decimation=4,
        episode_length_s=1e9 if play else 10.0,
        scene=SceneCfg(
            num_envs=len(shapes) if play else 1024,
            env_spacing=1.5,
            entities={mdp.OBJECT: object_cfg(shapes), mdp.PUSHER: pusher_cfg()},
            spec_fn=_floor,
        ),
        sim=SimulationCfg(mujoco=MujocoCfg(timestep=0.01, iterations=10, ls_iterations=10)),
        viewer=ViewerConfig(
            distance=1.0,
            elevation=-60.0,
            world_size=0.9,  # goals are up to 0.45 m away
            lookat=(0.0, -0.03, 0.0),
            enable_shadows=False,
            enable_reflections=False,
            max_extra_envs=0,
        ),
        commands={mdp.GOAL: mdp.PushGoalCommandCfg(debug_vis=True)},
        actions={
            "velocity": mdp.GoalFrameVelocityActionCfg(
                entity_name=mdp.PUSHER, actuator_names=(".*",), scale=MAX_SPEED
            )
        },
        observations={
            # In the goal frame, and scaled to magnitudes of about 1.
            "actor": ObservationGroupCfg(
                terms={
                    "distance": ObservationTermCfg(func=mdp.distance_left, scale=5.0),
                    "pusher": ObservationTermCfg(func=mdp.pusher_place, scale=8.0),
                    "pusher_velocity": ObservationTermCfg(func=mdp.pusher_velocity, scale=2.0),
                    "object_velocity": ObservationTermCfg(
                        func=mdp.object_velocity, scale=(4.0, 4.0, 0.5)
                    ),
                    "outline": ObservationTermCfg(
                        func=mdp.outline, scale=10.0, params={"num_directions": 24}
                    ),
                }
            )
        },
        rewards={
            "success": RewardTermCfg(func=mdp.succeeded, weight=50.0),
            "progress": RewardTermCfg(func=mdp.progress, weight=10.0),
            "at_goal": RewardTermCfg(func=mdp.at_goal, weight=1.0),
            "away": RewardTermCfg(func=mdp.away, weight=-2.0),
            "going_behind": RewardTermCfg(
                func=mdp.going_behind, weight=5.0, params={"radius": 0.12}
            ),
            "smooth": RewardTermCfg(func=action_rate_l2, weight=-0.02),
        },
        terminations={
            "time_out": TerminationTermCfg(func=time_out, time_out=True),
            "success": TerminationTermCfg(func=mdp.held_at_goal, params={"hold_s": HOLD_S}),
            "diverged": TerminationTermCfg(func=bad_world),
        },
        events={
            "places": EventTermCfg(
                func=mdp.reset_places,
                mode="reset",
                params={"offset": 0.05, "pusher_distance": (0.16, 0.25)},
            )
        },
        metrics={"goal_distance": MetricsTermCfg(func=mdp.goal_distance)},
    )


def push_ppo_runner_cfg() -> RslRlOnPolicyRunnerCfg:
    """Return PPO settings that learn all shapes in a few minutes on two CPU cores."""
    return RslRlOnPolicyRunnerCfg(
        experiment_name="push",
        num_steps_per_env=24,
        max_iterations=120,
        save_interval=20,
        obs_groups={"actor": ("actor",), "critic": ("actor",)},
        actor=RslRlModelCfg(
            hidden_dims=(128, 128),
            distribution_cfg={**gaussian_distribution(), "init_std": 0.8},
        ),
        critic=RslRlModelCfg(hidden_dims=(128, 128)),
        algorithm=RslRlPpoAlgorithmCfg(
            num_learning_epochs=4, num_mini_batches=4, gamma=0.985, entropy_coef=0.003
        ),
    )
