"""Description of a policy's interface to the simulation, as plain data."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict, cast

import torch

from manyworlds.actuator.builtin_actuator import DirectActuator
from manyworlds.entity import ELEMENT_KINDS
from manyworlds.envs.mdp.actions.actions import BaseAction, clip_bounds
from manyworlds.managers import ActionTerm, SceneEntityCfg
from manyworlds.sensor.raycast_sensor import RayCastSensor
from manyworlds.spec.transmissions import TransmissionType
from manyworlds.utils.config import Plain, finite_or_none, to_plain

if TYPE_CHECKING:
    from manyworlds.actuator.actuator import Actuator, ActuatorCfg
    from manyworlds.entity import Entity
    from manyworlds.envs import ManagerBasedRlEnv

VERSION = 1
"""Version of the layout of `describe_policy`."""


Params = dict[str, Any]
"""Fields or parameters of a term, as plain data by name."""


class NeedsEnvironmentError(ValueError):
    """Error of a policy that runs in its environment only, not in plain MuJoCo."""


class ObservationGroupDescription(TypedDict):
    """Description of an observation group."""

    concatenate: bool
    concatenate_dim: NotRequired[int]
    terms: dict[str, Params]
    """By name: function, shape, parameters, and the other fields of the term's configuration."""


class ActionDescription(TypedDict):
    """Description of an action term."""

    type: str
    entity: str
    dim: int
    """Number of columns of the policy's output."""
    columns: NotRequired[int]
    """How many of them, the first ones, are read; absent if all are. The others count as zero."""
    config: Plain


class TargetActionDescription(ActionDescription):
    """Description of an action term that scales actions to targets."""

    targets: list[str]
    transmission: str
    command: str
    scale: list[float]
    offset: list[float]
    clip: list[list[float | None]] | None
    function: NotRequired[str]
    """Class of the term, if a function in `PLAIN_ACTION_FNS` of its module, by the name of the
    class, changes actions before they are scaled."""


class EntityDescription(TypedDict):
    """Description of an entity."""

    root_body: str
    joint_names: list[str]
    default_joint_pos: list[float]
    default_joint_vel: list[float]


class DelayDescription(TypedDict):
    """Description of an actuator's delay [physics steps]."""

    min_lag: int
    max_lag: int
    commands: list[str]


class ActuatorDescription(TypedDict):
    """Description of an actuator."""

    type: str
    entity: str
    transmission: str
    targets: list[str]
    controls: list[str]
    commands: list[str] | None
    """Targets that are the input of `ctrl`; None for a control law."""
    delay: DelayDescription
    params: dict[str, list[float | None]]
    ctrl_per_target: NotRequired[float | list[float]]
    """Factors from targets to controls, such as gears of position servos; absent if all are 1."""
    start_positions: NotRequired[list[float]]
    """Position targets at the beginning of an episode; absent in descriptions from when they were
    zero."""


class NetworkDescription(TypedDict):
    """Description of a policy's network."""

    inputs: dict[str, list[str]]
    """Observation groups of each input."""
    recurrent: bool


class TrackingNetworkDescription(NetworkDescription):
    """Description of a network that tracks a motion, which is among its outputs."""

    anchor_body_name: str
    body_names: list[str]
    motion_command: str
    motion_entity: str
    motion_fps: float
    motion_frames: int


class PolicyDescription(TypedDict):
    """Description of a policy's interface; names are those of the scene's model."""

    version: int
    task: str | None
    control_period_s: float
    physics_timestep_s: float
    decimation: int
    clip_actions: float | None
    observations: dict[str, ObservationGroupDescription]
    actions: dict[str, ActionDescription]
    entities: dict[str, EntityDescription]
    actuators: list[ActuatorDescription]
    command_sizes: NotRequired[dict[str, int]]
    """Number of values of each command term; absent in descriptions of earlier releases."""


class ExportedDescription(PolicyDescription):
    """Description in the file of a policy."""

    policy: NetworkDescription


def describe_policy(
    env: ManagerBasedRlEnv, clip_actions: float | None = None, task: str | None = None
) -> PolicyDescription:
    """Describe timing, observations, actions and actuators, with names as in the scene's model.

    Values are those of world 0; None stands for no limit.

    Args:
        env: the environment.
        clip_actions: bound on the magnitude of the policy's output.
        task: name of the task.
    """
    observations = {}
    for group, names in env.observation_manager.active_terms.items():
        shapes = env.observation_manager.group_obs_term_dim[group]
        terms = {}
        for name, shape in zip(names, shapes, strict=True):
            terms[name] = _describe_observation(env, group, name, shape)
        observations[group] = {
            "concatenate": env.observation_manager.group_obs_concatenate[group],
            "concatenate_dim": env.observation_manager.group_obs_concatenate_dim[group],
            "terms": terms,
        }
    actions = {}
    for name in env.action_manager.active_terms:
        actions[name] = _describe_action(env.action_manager.get_term(name))
    entities = {}
    actuators = []
    for name, entity in env.scene.entities.items():
        entities[name] = {
            "root_body": f"{name}/{entity.body_names[entity.indexing.root_index]}",
            "joint_names": [f"{name}/{joint}" for joint in entity.joint_names],
            "default_joint_pos": entity.data.default_joint_pos[0].tolist(),
            "default_joint_vel": entity.data.default_joint_vel[0].tolist(),
        }
        actuators += [_describe_actuator(name, entity, each, env) for each in entity.actuators]
    description = {
        "version": VERSION,
        "task": task,
        "control_period_s": env.step_dt,
        "physics_timestep_s": env.physics_dt,
        "decimation": env.cfg.decimation,
        "clip_actions": clip_actions,
        "observations": observations,
        "actions": actions,
        "entities": entities,
        "actuators": actuators,
        "command_sizes": _command_sizes(env),
    }
    return cast("PolicyDescription", finite_or_none(description))


def _command_sizes(env: ManagerBasedRlEnv) -> dict[str, int]:
    sizes = {}
    for name in env.command_manager.active_terms:
        command = env.command_manager.get_command(name)
        if command.ndim == 2:
            sizes[name] = command.shape[1]
    return sizes


def action_entity(env: ManagerBasedRlEnv) -> Entity:
    """Return the entity of the first action."""
    name = env.action_manager.active_terms[0]
    return env.scene.entity(env.action_manager.get_term(name).cfg.entity_name)


def gains(entity: Entity) -> tuple[list[float], list[float]]:
    """Return stiffness and damping of each joint's actuators, 0 for joints without actuators."""
    found = {name: torch.zeros(entity.num_joints) for name in ("stiffness", "damping")}
    for actuator in entity.actuators:
        if actuator.transmission_type != TransmissionType.JOINT:
            continue
        for name in set(found) & set(actuator.param_names):
            # Two actuators may act on one joint, such as one of position and one of velocity.
            row = actuator.default_param(name)[0].cpu()
            found[name].index_add_(0, actuator.target_ids.cpu(), row)
    return found["stiffness"].tolist(), found["damping"].tolist()


def _describe_observation(
    env: ManagerBasedRlEnv, group: str, name: str, shape: tuple[int, ...]
) -> Params:
    cfg = env.observation_manager.get_term_cfg(group, name)
    func = cfg.func
    if not hasattr(func, "__qualname__"):  # an instance of a class of terms
        func = type(func)
    fields = {key: _plain(value) for key, value in vars(cfg).items()}
    del fields["func"], fields["params"]
    params = {key: _describe_param(env, value) for key, value in cfg.params.items()}
    sensor = params.get("sensor_name")
    if isinstance(sensor, str) and sensor:
        found = env.scene[sensor]
        params["sensor"] = getattr(found, "name", sensor)
        if type(found) is RayCastSensor and not found.cfg.samples_eagerly:
            params["rays"] = found.describe()
    return {"function": to_plain(func), "shape": list(shape), **fields, "params": params}


def _plain(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return value.tolist()
    return to_plain(value)


def _describe_param(env: ManagerBasedRlEnv, value: object) -> object:
    if not isinstance(value, SceneEntityCfg):
        return _plain(value)
    entity = env.scene.entity(value.name)
    chosen: dict[str, object] = {"entity": value.name}
    for kind in ELEMENT_KINDS:
        ids = getattr(value, f"{kind}_ids")
        if not isinstance(ids, slice):
            names = entity.names(kind)
            chosen[f"{kind}_names"] = [f"{value.name}/{names[i]}" for i in ids]
    return chosen


def _describe_action(term: ActionTerm) -> Params:
    described = {
        "type": type(term).__name__,
        "entity": term.cfg.entity_name,
        "dim": term.padded_dim,
        "config": _plain(term.cfg),
    }
    if term.action_dim != term.padded_dim:
        described["columns"] = term.action_dim
    own = type(term).process_actions is not BaseAction.process_actions
    module = sys.modules[type(term).__module__]
    has_plain_form = type(term).__name__ in getattr(module, "PLAIN_ACTION_FNS", {})
    # Other processing of actions by a term is only available in its environment.
    if isinstance(term, BaseAction) and (has_plain_form or not own):
        if own:
            described["function"] = to_plain(type(term))
        bounds = clip_bounds(term.cfg.clip, term.driven_targets, term.device)
        clip = None
        if bounds is not None:
            clip = torch.stack(bounds).tolist()
        described |= {
            "targets": [f"{term.cfg.entity_name}/{name}" for name in term.target_names],
            "transmission": term.transmission_type.value,
            "command": term.command_field,
            "scale": term.scale[0].tolist(),
            "offset": term.offset[0].tolist(),
            "clip": clip,
        }
    return described


def _describe_actuator(
    name: str, entity: Entity, actuator: Actuator[ActuatorCfg], env: ManagerBasedRlEnv
) -> ActuatorDescription:
    cfg = actuator.cfg
    params = {name: actuator.default_param(name)[0].tolist() for name in actuator.param_names}
    description: ActuatorDescription = {
        "type": type(actuator).__name__,
        "entity": name,
        "transmission": actuator.transmission_type.value,
        "targets": [f"{name}/{target}" for target in actuator.target_names],
        "controls": [env.sim.mj_model.actuator(int(i)).name for i in actuator.global_actuator_ids],
        "commands": None,
        "delay": {"min_lag": cfg.delay_min_lag, "max_lag": cfg.delay_max_lag, "commands": []},
        "params": params,
    }
    if actuator.has_delay:
        description["delay"]["commands"] = list(cfg.delay_fields)
    if actuator.transmission_type != TransmissionType.SITE:
        start = entity.data.default_joint_pos
        if actuator.transmission_type == TransmissionType.TENDON:
            start = entity.data.default_tendon_len
        description["start_positions"] = start[0, actuator.target_ids].tolist()
    if isinstance(actuator, DirectActuator):
        description["commands"] = list(actuator.command_fields)
        factors = actuator.gears.read()
        if factors is not None:
            description["ctrl_per_target"] = factors[0].tolist()
    return description
