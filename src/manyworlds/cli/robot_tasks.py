"""Programs that `manyworlds new-task --robot` writes: tasks of robots, for people to edit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from manyworlds.cli.source_text import (
    drive_constants,
    drives_source,
    names_source,
    numbers,
    path_source,
    pattern,
)

if TYPE_CHECKING:
    from manyworlds.asset_zoo.legged import LeggedModel
    from manyworlds.asset_zoo.planar import PlanarModel
    from manyworlds.asset_zoo.wheeled import WheeledModel
    from manyworlds.managers import RewardTermCfg
    from manyworlds.tasks.velocity.velocity_env_cfg import LeggedRobot

_CONTROL_S = 0.02
"""Control period of a new task, unless the model's timestep is longer [s]."""
_IMPORT_DRIVES = "from manyworlds.asset_zoo.legged import JointDrive\n"
_SERVOS = """\
                *(
                    BuiltinPositionActuatorCfg(
                        target_names_expr=(name,),
                        stiffness=drive.stiffness,
                        damping=drive.damping,
                        effort_limit=drive.effort_limit,
                        armature=drive.armature,
                    )
                    for name, drive in DRIVES.items()
                ),"""
_SERVO_ACTION = """
            "joints": mdp.JointPositionActionCfg(
                entity_name="robot", actuator_names=tuple(SCALES), scale=SCALES
            ),"""
_SERVO_CFG = """
    joints = {"asset_cfg": SceneEntityCfg("robot", joint_names=tuple(DRIVES))}"""
_SERVO_TERMS = """
        "joint_pos": ObservationTermCfg(func=mdp.joint_pos_rel, params=joints),
        "joint_vel": ObservationTermCfg(func=mdp.joint_vel_rel, params=joints, scale=0.1),"""
_REPLACE = """
            file_actuators="replace",  # instead of those of the file, if it has some"""
_LEGGED = Template('''"""The task $name: a robot with $count legs follows velocity commands.

The values of MODEL were derived from the robot's model. Check them against its data sheet.
"""

from pathlib import Path

from manyworlds.asset_zoo.legged import JointDrive, LeggedModel
from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.managers import RewardTermCfg, SceneEntityCfg
from manyworlds.tasks import register_task
from manyworlds.tasks.velocity import mdp
from manyworlds.tasks.velocity.config.derived import (
    cpu_preset,
    legged_robot,
    velocity_env_cfg,
    velocity_rl_cfg,
)

MODEL = LeggedModel(
    root=$root,
    feet=$feet,
    height=$height,  # [m]
    drives={  # default [rad], effort limit [N m], stiffness, damping, armature
$drives
    },
    knees=$knees,
    pitch=$pitch,
    legs=$legs,
)
FILE = $file  # noqa: E501
ROBOT = legged_robot(FILE, MODEL)


def rewards() -> dict[str, RewardTermCfg]:
    """Return the rewards, to be edited: change weights and parameters, remove terms, add yours.

    Terms of weight 0 are computed only once they have another weight. `use_few_cores` changes
    weights.
    """
    return {
$rewards
    }


def env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Return the environment; `play` is for playback."""
    cfg = velocity_env_cfg(ROBOT, "flat", play=play)  # or "rough"
    cfg.rewards = rewards()
    return cfg


def use_few_cores(env_cfg, rl_cfg):
    """Change both configurations for a few CPU cores, unless `train` has `--preset gpu`.

    This replaces the number of worlds, the timestep, the learner's settings and weights of rewards,
    which then change during the training: set yours below.
    """
    cpu_preset(ROBOT)(env_cfg, rl_cfg)
    # rl_cfg.max_iterations = 1000
    # del env_cfg.curriculum["air_time_weight"]
    # env_cfg.rewards["air_time"].weight = 0.5


register_task(
    "$name",
    env_cfg(),
    env_cfg(play=True),
    velocity_rl_cfg("$stem", ROBOT),
    cpu_preset=use_few_cores,
)
''')

_PLANAR = Template('''"""The task $name: a robot in a vertical plane runs forward.

The constants were derived from the robot's model. Check them against its data sheet.
"""

from pathlib import Path

import torch

from manyworlds.actuator import $actuator
${imports}from manyworlds.asset_zoo.robot_file import robot_spec
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg, mdp
from manyworlds.managers import (
    EventTermCfg,
    MetricsTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
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
from manyworlds.tasks import register_task
from manyworlds.terrains import TerrainEntityCfg
from manyworlds.utils.viewer_config import ViewerConfig

FILE = $file  # noqa: E501
FORWARD = $forward
HEIGHT = $height
"""Height of the root in the default pose [m]."""
POSE = {
$pose
}
"""Default pose [rad or m]."""
$constants
ROOT = SceneEntityCfg("robot", body_names=$root_pattern)
PITCH = SceneEntityCfg("robot", joint_names=$pitch)
ROOT_JOINTS = SceneEntityCfg("robot", joint_names=$root_joints)
LIMBS = SceneEntityCfg("robot", joint_names=$limbs)
SEEN = SceneEntityCfg("robot", joint_names=$seen)
"""Joints whose positions are observed: all but that along which the robot runs."""


def forward_velocity(env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg = ROOT) -> torch.Tensor:
    """Forward velocity of the root [m/s], shape [num_envs]."""
    data = env.scene.entity(asset_cfg.name).data
    velocity = data.body_link_lin_vel_w[:, asset_cfg.index("body")].squeeze(1)
    return velocity @ velocity.new_tensor(FORWARD)


def control_cost(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Sum of squared actions, shape [num_envs]."""
    return env.action_manager.action.square().sum(dim=1)


def too_low(
    env: ManagerBasedRlEnv, limit: float, asset_cfg: SceneEntityCfg = ROOT
) -> torch.Tensor:
    """Return True where the root is below a height [m], shape [num_envs]."""
    data = env.scene.entity(asset_cfg.name).data
    return data.body_link_pos_w[:, asset_cfg.index("body"), 2].squeeze(1) < limit


def too_steep(
    env: ManagerBasedRlEnv, limit: float, asset_cfg: SceneEntityCfg = PITCH
) -> torch.Tensor:
    """Return True where the root has turned by more than an angle [rad], shape [num_envs]."""
    return mdp.joint_pos_rel(env, asset_cfg=asset_cfg).squeeze(1).abs() > limit


def env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Return the environment; `play` is for playback."""
    robot = EntityCfg(
        spec_fn=lambda: robot_spec(FILE),
        init_state=EntityCfg.InitialStateCfg(joint_pos={**POSE, ".*": 0.0}),
        articulation=EntityArticulationInfoCfg(
            actuators=(
$actuators
            ),$file_actuators
        ),
    )
    return ManagerBasedRlEnvCfg(
        scene=SceneCfg(
            num_envs=16 if play else 512,
            entities={"robot": robot},
            terrain=TerrainEntityCfg(),  # floor, light and sky
            extent=1.0,  # reference length of shadows [m]
        ),
        sim=SimulationCfg(mujoco=MujocoCfg(timestep=$timestep)),
        decimation=$decimation,
        episode_length_s=1e9 if play else 10.0,
        actions={
            "joints": mdp.$action(
                entity_name="robot",
                actuator_names=tuple($scales),
                scale=$scales,
            )
        },
        observations={
            "actor": ObservationGroupCfg(terms=observation_terms()),
            "critic": ObservationGroupCfg(terms=observation_terms()),
        },
        rewards={
            "forward": RewardTermCfg(func=forward_velocity, weight=1.0),
            "alive": RewardTermCfg(func=mdp.is_alive, weight=1.0),
            "control": RewardTermCfg(func=control_cost, weight=-0.01),
        },
        terminations={
            "time_out": TerminationTermCfg(func=mdp.time_out, time_out=True),
            "low": TerminationTermCfg(func=too_low, params={"limit": 0.6 * HEIGHT}),
            "steep": TerminationTermCfg(func=too_steep, params={"limit": 1.0}),
            "diverged": TerminationTermCfg(func=mdp.bad_world),
        },
        events={
            "root": EventTermCfg(
                func=mdp.reset_joints_by_offset,
                mode="reset",
                params={
                    "position_range": (0.0, 0.0),
                    "velocity_range": (-0.05, 0.05),
                    "asset_cfg": ROOT_JOINTS,
                },
            ),
            "limbs": EventTermCfg(
                func=mdp.reset_joints_by_offset,
                mode="reset",
                params={
                    "position_range": (-0.05, 0.05),
                    "velocity_range": (-0.05, 0.05),
                    "asset_cfg": LIMBS,
                },
            ),
        },
        metrics={"forward_velocity": MetricsTermCfg(func=forward_velocity)},
        viewer=ViewerConfig(
            origin_type=ViewerConfig.OriginType.ASSET_BODY,
            entity_name="robot",
            body_name=$root,
            distance=4.0 * HEIGHT,
            elevation=-10.0,
        ),
    )


def observation_terms() -> dict[str, ObservationTermCfg]:
    """Return the observations of a network."""
    return {
        "joint_pos": ObservationTermCfg(func=mdp.joint_pos_rel, params={"asset_cfg": SEEN}),
        "joint_vel": ObservationTermCfg(func=mdp.joint_vel_rel, scale=0.1),
    }


def rl_cfg() -> RslRlOnPolicyRunnerCfg:
    """Return the learner's settings."""
    return RslRlOnPolicyRunnerCfg(
        experiment_name="$stem",
        max_iterations=500,
        actor=RslRlModelCfg(obs_normalization=True, distribution_cfg=gaussian_distribution()),
        critic=RslRlModelCfg(obs_normalization=True),
        algorithm=RslRlPpoAlgorithmCfg(entropy_coef=0.002),
    )


register_task("$name", env_cfg(), env_cfg(play=True), rl_cfg())
''')

_WHEELED = Template('''"""The task $name: a robot on wheels follows velocity commands.

The constants were derived from the robot's model. Check them against its data sheet.
"""

import math
from pathlib import Path

from manyworlds.actuator import $actuators_used
${imports}from manyworlds.asset_zoo.robot_file import robot_spec
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from manyworlds.envs import ManagerBasedRlEnvCfg, mdp
from manyworlds.managers import (
    EventTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
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
from manyworlds.tasks import register_task
from manyworlds.tasks.velocity import mdp as velocity_mdp
from manyworlds.terrains import TerrainEntityCfg
from manyworlds.utils.viewer_config import ViewerConfig

FILE = $file  # noqa: E501
HEIGHT = $height
"""Height of the root on its wheels [m]."""
POSE = $pose
"""Default pose [rad or m]."""
WHEELS = {  # largest torque [N m], torque per velocity error [N m s/rad]
$wheels
}
RADIUS = $radius
"""Radius of the wheels [m]."""
SPEED = $speed
"""Largest commanded forward velocity [m/s]."""
YAW_RATE = $yaw_rate
"""Largest commanded yaw rate [rad/s]."""
$constants

def env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Return the environment; `play` is for playback."""
    robot = EntityCfg(
        spec_fn=lambda: robot_spec(FILE),
        init_state=EntityCfg.InitialStateCfg(pos=(0.0, 0.0, HEIGHT), joint_pos={**POSE, ".*": 0.0}),
        articulation=EntityArticulationInfoCfg(
            actuators=(
                *(
                    BuiltinVelocityActuatorCfg(
                        target_names_expr=(name,), damping=damping, effort_limit=effort
                    )
                    for name, (effort, damping) in WHEELS.items()
                ),$servos
            ),$replace
        ),
    )
    return ManagerBasedRlEnvCfg(
        scene=SceneCfg(
            num_envs=16 if play else 512,
            entities={"robot": robot},
            terrain=TerrainEntityCfg(),  # floor, light and sky
            extent=1.0,  # reference length of shadows [m]
        ),
        sim=SimulationCfg(mujoco=MujocoCfg(timestep=$timestep)),
        decimation=$decimation,
        episode_length_s=1e9 if play else 20.0,
        commands={
            "twist": velocity_mdp.UniformVelocityCommandCfg(
                entity_name="robot",
                resampling_time_range=(3.0, 8.0),
                rel_standing_envs=0.1,
                ranges=velocity_mdp.UniformVelocityCommandCfg.Ranges(
                    lin_vel_x=(-SPEED, SPEED),
                    lin_vel_y=(0.0, 0.0),
                    ang_vel_z=(-YAW_RATE, YAW_RATE),
                ),
                debug_vis=True,
            )
        },
        actions={
            "wheels": mdp.JointVelocityActionCfg(
                entity_name="robot", actuator_names=tuple(WHEELS), scale=SPEED / RADIUS
            ),$servo_action
        },
        observations={
            "actor": ObservationGroupCfg(terms=observation_terms()),
            "critic": ObservationGroupCfg(terms=observation_terms()),
        },
        rewards={
            "track_linear_velocity": RewardTermCfg(
                func=velocity_mdp.track_linear_velocity,
                weight=2.0,
                params={"command_name": "twist", "std": 0.5 * SPEED},
            ),
            "track_angular_velocity": RewardTermCfg(
                func=velocity_mdp.track_angular_velocity,
                weight=1.0,
                params={"command_name": "twist", "std": 0.5},
            ),
            "alive": RewardTermCfg(func=mdp.is_alive, weight=0.5),
            "flat": RewardTermCfg(func=mdp.flat_orientation_l2, weight=-1.0),
            "action_rate_l2": RewardTermCfg(func=mdp.action_rate_l2, weight=-0.01),
        },
        terminations={
            "time_out": TerminationTermCfg(func=mdp.time_out, time_out=True),
            "fell_over": TerminationTermCfg(
                func=mdp.bad_orientation, params={"limit_angle": math.radians(50.0)}
            ),
            "diverged": TerminationTermCfg(func=mdp.bad_world),
        },
        events={
            "root": EventTermCfg(
                func=mdp.reset_root_state_uniform,
                mode="reset",
                params={
                    "pose_range": {"pitch": (-0.05, 0.05), "yaw": (-math.pi, math.pi)},
                    "velocity_range": {},
                },
            ),
            "joints": EventTermCfg(
                func=mdp.reset_joints_by_offset,
                mode="reset",
                params={"position_range": (0.0, 0.0), "velocity_range": (0.0, 0.0)},
            ),
        },
        viewer=ViewerConfig(
            origin_type=ViewerConfig.OriginType.ASSET_BODY,
            entity_name="robot",
            body_name=$root,
            distance=max(1.0, 8.0 * HEIGHT),
            elevation=-25.0,
        ),
    )


def observation_terms() -> dict[str, ObservationTermCfg]:
    """Return the observations of a network."""
    wheels = SceneEntityCfg("robot", joint_names=tuple(WHEELS))$servo_cfg
    return {
        "base_lin_vel": ObservationTermCfg(func=mdp.base_lin_vel),
        "base_ang_vel": ObservationTermCfg(func=mdp.base_ang_vel),
        "projected_gravity": ObservationTermCfg(func=mdp.projected_gravity),
        "wheel_vel": ObservationTermCfg(
            func=mdp.joint_vel_rel, params={"asset_cfg": wheels}, scale=RADIUS
        ),$servo_terms
        "actions": ObservationTermCfg(func=mdp.last_action),
        "command": ObservationTermCfg(
            func=mdp.generated_commands, params={"command_name": "twist"}
        ),
    }


def rl_cfg() -> RslRlOnPolicyRunnerCfg:
    """Return the learner's settings."""
    return RslRlOnPolicyRunnerCfg(
        experiment_name="$stem",
        max_iterations=300,
        actor=RslRlModelCfg(obs_normalization=True, distribution_cfg=gaussian_distribution()),
        critic=RslRlModelCfg(obs_normalization=True),
        algorithm=RslRlPpoAlgorithmCfg(entropy_coef=0.002),
    )


register_task("$name", env_cfg(), env_cfg(play=True), rl_cfg())
''')


def legged_source(name: str, path: Path, file: Path, model: LeggedModel) -> str:
    """Return the program of a legged robot's velocity task.

    Args:
        name: name of the task.
        path: path of the program.
        file: the robot's model.
        model: facts about the robot.
    """
    from manyworlds.tasks.velocity.config.derived import legged_robot, velocity_env_cfg

    robot = legged_robot(file, model)
    return _LEGGED.substitute(
        name=name,
        stem=path.stem,
        count=len(model.feet),
        root=json.dumps(model.root),
        feet=names_source(model.feet),
        height=repr(model.height),
        drives=drives_source(model.drives, 8),
        knees=names_source(model.knees),
        pitch=names_source(model.pitch),
        legs=names_source(model.legs),
        file=path_source(file, path.parent),
        rewards=_rewards(velocity_env_cfg(robot).rewards, robot),
    )


def planar_source(name: str, path: Path, file: Path, model: PlanarModel) -> str:
    """Return the program of a planar robot's task; see `legged_source`."""
    from manyworlds.asset_zoo.robot_file import robot_spec

    joints = tuple(joint.name for joint in robot_spec(file).joints)
    root_joints = (model.slide, model.lift, model.pitch)
    values = dict(
        name=name,
        stem=path.stem,
        file=path_source(file, path.parent),
        forward=repr(model.forward),
        height=repr(model.height),
        pose=numbers(model.pose),
        root=json.dumps(model.root),
        root_pattern=json.dumps(pattern(model.root)),
        pitch=json.dumps(pattern(model.pitch)),
        root_joints=names_source(list(map(pattern, root_joints)), 0),
        limbs=names_source([pattern(name) for name in joints if name not in root_joints], 0),
        seen=names_source([pattern(name) for name in joints if name != model.slide], 0),
        timestep=repr(model.timestep),
        decimation=max(1, round(_CONTROL_S / model.timestep)),
    )
    if model.motors:
        scales = numbers(model.motors)
        return _PLANAR.substitute(
            values,
            actuator="XmlMotorActuatorCfg",
            imports="",
            action="JointEffortActionCfg",
            scales="MOTORS",
            constants=f'MOTORS = {{\n{scales}\n}}\n"""Largest control of each motor, by joint."""',
            actuators="                XmlMotorActuatorCfg(target_names_expr=tuple(MOTORS)),",
            file_actuators="",
        )
    return _PLANAR.substitute(
        values,
        actuator="BuiltinPositionActuatorCfg",
        imports=_IMPORT_DRIVES,
        action="JointPositionActionCfg",
        scales="SCALES",
        constants=drive_constants(model.drives),
        actuators=_SERVOS,
        file_actuators=_REPLACE,
    )


def wheeled_source(name: str, path: Path, file: Path, model: WheeledModel) -> str:
    """Return the program of the velocity task of a robot on wheels; see `legged_source`."""
    pose = "{}"
    if model.pose:
        pose = f"{{\n{numbers(model.pose)}\n}}"
    wheels = (
        f"    {json.dumps(pattern(joint))}: ({wheel.effort_limit!r}, {wheel.damping!r}),"
        for joint, wheel in model.wheels.items()
    )
    parts = ("imports", "constants", "servos", "servo_action", "servo_cfg", "servo_terms")
    servos: dict[str, str] = dict.fromkeys(parts, "")
    used = "BuiltinVelocityActuatorCfg"
    if model.drives:
        used = "BuiltinPositionActuatorCfg, BuiltinVelocityActuatorCfg"
        servos = dict[str, str](
            imports=_IMPORT_DRIVES,
            constants=f"{drive_constants(model.drives)}\n",
            servos=f"\n{_SERVOS}",
            servo_action=_SERVO_ACTION,
            servo_cfg=_SERVO_CFG,
            servo_terms=_SERVO_TERMS,
        )
    return _WHEELED.substitute(
        servos,
        name=name,
        stem=path.stem,
        file=path_source(file, path.parent),
        actuators_used=used,
        height=repr(model.height),
        pose=pose,
        wheels="\n".join(wheels),
        radius=repr(model.radius),
        speed=repr(model.speed),
        yaw_rate=repr(model.yaw_rate),
        replace=_REPLACE,
        timestep=repr(model.timestep),
        decimation=max(1, round(_CONTROL_S / model.timestep)),
        root=json.dumps(model.root),
    )


def _rewards(terms: Mapping[str, RewardTermCfg], robot: LeggedRobot) -> str:
    """Return reward terms as source; what names elements of the robot refers to `ROBOT`."""
    standing, walking, running = robot.posture
    known = {
        repr(running): "ROBOT.posture[2]",
        repr(walking): "ROBOT.posture[1]",  # where it is that of running, too
        repr(standing): "ROBOT.posture[0]",
        repr(tuple(standing)): "tuple(ROBOT.posture[0])",
        repr(robot.feet): "ROBOT.feet",
        repr((robot.trunk,)): "(ROBOT.trunk,)",
    }
    lines = []
    for name, term in terms.items():
        lines.append(f"        {json.dumps(name)}: RewardTermCfg(")
        lines.append(f"            func=mdp.{getattr(term.func, '__name__', '')},")
        lines.append(f"            weight={term.weight!r},")
        if term.params:
            lines.append("            params={")
            for parameter, value in term.params.items():
                text = repr(value)
                for values, source in known.items():
                    text = text.replace(values, source)
                lines.append(f"                {json.dumps(parameter)}: {_double_quotes(text)},")
            lines.append("            },")
        lines.append("        ),")
    return "\n".join(lines)


def _double_quotes(text: str) -> str:
    """Return source with the quotes of this project, unless a text in it has quotes itself."""
    if '"' in text or "\\" in text:
        return text
    return text.replace("'", '"')
