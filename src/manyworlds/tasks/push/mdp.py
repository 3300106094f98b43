"""Terms of the push task: goal, observations, action, rewards and termination.

All positions are in the plane, relative to the bases of object and pusher, which coincide.
Observations and actions are in the goal frame, whose x axis points from the object to its goal, so
that a policy is independent of the direction of the goal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.envs.mdp import JointVelocityActionCfg
from manyworlds.envs.mdp.actions.actions import JointVelocityAction
from manyworlds.managers import (
    CommandTerm,
    CommandTermCfg,
    ManagerTermBase,
    ObservationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from manyworlds.tasks.push.shapes import OUTLINE_DIRECTIONS, SHAPES
from manyworlds.utils.clocks import steps_in
from manyworlds.utils.devices import constants
from manyworlds.utils.math.vectors import atan2
from manyworlds.validation.worlds import EnvIds, Worlds, takes_worlds

if TYPE_CHECKING:
    from manyworlds.rl import OnnxPolicy
    from manyworlds.share import ControlGraph, Value
    from manyworlds.utils.debug_visualizer import DebugVisualizer
from manyworlds.utils.world_random import RandomStream

OBJECT = "object"
"""Name of the entity that is pushed."""
PUSHER = "pusher"
"""Name of the entity that pushes."""
GOAL = "goal"
"""Name of the command."""
SUCCESS_DISTANCE = 0.05
"""Distance to the goal below which an object has arrived [m]."""
PUSHER_RADIUS = 0.02
"""Radius of the pusher [m]."""
_OBJECT_JOINTS = [f"{OBJECT}/{name}" for name in ("x", "y", "yaw")]
_PUSHER_JOINTS = [f"{PUSHER}/{name}" for name in ("x", "y")]

_Params = dict[str, Any]


def to_goal(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Vector from the object's center to its goal [m], shape [num_envs, 2]."""
    return env.command_manager.get_command(GOAL) - env.scene.entity(OBJECT).data.joint_pos[:, :2]


def goal_axis(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Unit vector from the object to its goal, shape [num_envs, 2]."""
    return torch.nn.functional.normalize(to_goal(env), dim=1, eps=1e-6)


def in_goal_frame(axis: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
    """Rotate vectors from the world frame to the frame with x axis `axis`, shape [num_envs, 2]."""
    along = (axis * vector).sum(dim=1)
    across = axis[:, 0] * vector[:, 1] - axis[:, 1] * vector[:, 0]
    return torch.stack([along, across], dim=1)


def from_goal_frame(axis: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
    """Rotate vectors from the frame with x axis `axis` to the world frame, shape [num_envs, 2]."""
    return in_goal_frame(torch.stack([axis[:, 0], -axis[:, 1]], dim=1), vector)


def goal_distance(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Distance from the object's center to its goal [m], shape [num_envs]."""
    return to_goal(env).norm(dim=1)


@dataclass(kw_only=True)
class PushGoalCommandCfg(CommandTermCfg):
    """Configuration of a goal position, sampled around the object when an episode begins."""

    resampling_time_range: tuple[float, float] = (1e9, 1e9)
    """Time between resamplings [s]; longer than an episode by default."""
    distance: tuple[float, float] = (0.15, 0.4)
    """Bounds of the distance from the object [m]."""

    def build(self, env: ManagerBasedRlEnv) -> PushGoalCommand:
        """Build the term."""
        return PushGoalCommand(self, env)


class PushGoalCommand(CommandTerm):
    """Command with a goal position for each world."""

    cfg: PushGoalCommandCfg
    state_attributes = (*CommandTerm.state_attributes, "goal")

    def __init__(self, cfg: PushGoalCommandCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(cfg, env)
        with torch.inference_mode(False):
            self.goal = torch.zeros(self.num_envs, 2, device=self.device)

    @property
    def command(self) -> torch.Tensor:
        """Goal positions relative to the object's base [m], shape [num_envs, 2]."""
        return self.goal

    @property
    def steering(self) -> dict[str, tuple[float, float]]:
        """Bounds of goals that a page may set, by name, in order [m]."""
        reach = self.cfg.distance[1]
        return {"x [m]": (-reach, reach), "y [m]": (-reach, reach)}

    @takes_worlds
    def _resample_command(self, env_ids: EnvIds) -> None:
        worlds = self._worlds(env_ids)
        around = worlds.take(self._env.scene.entity(OBJECT).data.joint_pos)[:, :2]
        worlds.put(self.goal, around + on_ring(self.random, worlds, *self.cfg.distance))

    @takes_worlds
    def _update_command(self, env_ids: EnvIds = None) -> None:
        """Do nothing: goals do not depend on the state."""

    def _update_metrics(self) -> None:
        """Do nothing: the task's metrics are separate terms."""

    def _debug_vis_impl(self, visualizer: DebugVisualizer) -> None:
        for env in visualizer.get_env_indices(self.num_envs):
            center = self._env.scene.entity(OBJECT).data.root_link_pos_w[env].cpu().numpy().copy()
            center[:2] += self.goal[env].cpu().numpy()
            start = center.copy()
            end = center.copy()
            end[2] += 0.002
            visualizer.add_cylinder(start, end, SUCCESS_DISTANCE, (0.2, 0.7, 0.3, 0.6))


def on_ring(random: RandomStream, worlds: Worlds, low: float, high: float) -> torch.Tensor:
    """Sample vectors with uniform direction and a length between bounds [m], shape [n, 2]."""
    length = random.uniform(low, high, (1,), worlds)
    turn = random.uniform(0.0, 2.0 * math.pi, (1,), worlds)
    return torch.cat([turn.cos(), turn.sin()], dim=1) * length


@takes_worlds
def reset_places(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    offset: float,
    pusher_distance: tuple[float, float],
) -> None:
    """Reset the object near its world's origin with random yaw, and the pusher near it, at rest.

    Args:
        env: the environment.
        env_ids: ids of the worlds; None for all.
        offset: maximum distance of the object from the origin along x and y [m].
        pusher_distance: bounds of the pusher's distance from the object's center [m].
    """
    worlds = Worlds.of(env_ids, env.num_envs, env.device)
    scale = constants((offset, offset, math.pi), env.device)
    pose = env.random.uniform(-scale, scale, (3,), worlds)
    pusher = pose[:, :2] + on_ring(env.random, worlds, *pusher_distance)
    for name, position in ((OBJECT, pose), (PUSHER, pusher)):
        zero = torch.zeros_like(position)
        env.scene.entity(name).write_joint_state_to_sim(position, zero, env_ids=worlds)


def distance_left(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Distance from the object's center to its goal [m], shape [num_envs, 1]."""
    return goal_distance(env)[:, None]


def pusher_place(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Vector from the object's center to the pusher, in the goal frame [m], shape [num_envs, 2]."""
    return in_goal_frame(goal_axis(env), _to_pusher(env))


def pusher_velocity(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Velocity of the pusher in the goal frame [m/s], shape [num_envs, 2]."""
    return in_goal_frame(goal_axis(env), env.scene.entity(PUSHER).data.joint_vel)


def object_velocity(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Planar velocity of the object in the goal frame [m/s, m/s, rad/s], shape [num_envs, 3]."""
    velocity = env.scene.entity(OBJECT).data.joint_vel
    return torch.cat([in_goal_frame(goal_axis(env), velocity[:, :2]), velocity[:, 2:]], dim=1)


def _to_pusher(env: ManagerBasedRlEnv) -> torch.Tensor:
    return env.scene.entity(PUSHER).data.joint_pos - env.scene.entity(OBJECT).data.joint_pos[:, :2]


class outline(ManagerTermBase):  # noqa: N801
    """Radii of the object's outline in some directions, and its gap to the pusher [m].

    The directions are evenly spaced, beginning with that of the goal. The last column is the gap
    between the pusher and the outline on the line from the object's center to the pusher; it may be
    negative for a concave shape.

    Returns shape [num_envs, num_directions + 1].
    """

    def __init__(self, cfg: ObservationTermCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        names = env.scene.entity(OBJECT).variant_metadata.variant_names
        radii = [torch.from_numpy(SHAPES[name].radii) for name in names]
        self._radii = torch.stack(radii).to(env.device, torch.float32)
        count = cfg.params["num_directions"]
        turns = torch.arange(count, device=env.device) * (2.0 * math.pi / count)
        self._turns = turns[None, :]

    def __call__(self, env: ManagerBasedRlEnv, num_directions: int) -> torch.Tensor:
        """Look up the outline of each world's variant, shape [num_envs, num_directions + 1]."""
        axis = goal_axis(env)
        pusher = _to_pusher(env)
        yaw = env.scene.entity(OBJECT).data.joint_pos[:, 2:]
        ahead = atan2(axis[:, 1:], axis[:, :1])
        turns = torch.cat([ahead + self._turns, atan2(pusher[:, 1:], pusher[:, :1])], dim=1)
        steps = (turns - yaw) * (OUTLINE_DIRECTIONS / (2.0 * math.pi))
        columns = steps.round().long().remainder(OUTLINE_DIRECTIONS)
        reach = self._radii[env.sim.world_to_variant[OBJECT][:, None], columns]
        gap = pusher.norm(dim=1, keepdim=True) - PUSHER_RADIUS - reach[:, -1:]
        return torch.cat([reach[:, :-1], gap], dim=1)


class GoalFrameVelocityAction(JointVelocityAction):
    """Target velocity of the pusher in the goal frame; actions of norm 1 are the maximum speed."""

    def process_actions(self, actions: torch.Tensor) -> None:
        """Clip the norm of actions, shape [num_envs, 2], rotate to the world frame, and scale."""
        bounded = actions / actions.norm(dim=1, keepdim=True).clamp(min=1.0)
        super().process_actions(from_goal_frame(goal_axis(self._env), bounded))
        self._raw_actions.copy_(actions)


@dataclass(kw_only=True)
class GoalFrameVelocityActionCfg(JointVelocityActionCfg):
    """Configuration of pusher velocities along and across the direction of the goal."""

    use_default_offset: bool = False
    term = GoalFrameVelocityAction


def progress(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Speed of the object toward its goal [m/s], shape [num_envs]."""
    return (env.scene.entity(OBJECT).data.joint_vel[:, :2] * goal_axis(env)).sum(dim=1)


def away(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Distance of the object from the success region [m], shape [num_envs]."""
    return (goal_distance(env) - SUCCESS_DISTANCE).clamp(min=0.0)


def way_behind(env: ManagerBasedRlEnv, radius: float) -> torch.Tensor:
    """Length of the pusher's path around the object to the side away from the goal [m].

    The path is a straight line to a circle around the object, then the circle's shorter arc. Inside
    the circle, the length is reduced the farther behind the object the pusher is, so that pushing
    has no cost. Shape [num_envs].

    Args:
        env: the environment.
        radius: radius of the circle [m].
    """
    place = in_goal_frame(goal_axis(env), _to_pusher(env))
    turn = atan2(place[:, 1].abs(), -place[:, 0])
    outside = place.norm(dim=1) - radius
    return radius * turn + torch.where(outside > 0.0, outside, -outside * turn / math.pi)


class going_behind(ManagerTermBase):  # noqa: N801
    """Rate of decrease of the pusher's path around the object [m/s], shape [num_envs].

    The sum over an episode depends only on the first and last length of the path, so that moving in
    circles earns nothing (potential-based shaping: Ng, Harada and Russell, 1999).
    """

    state_attributes = ("_last", "_begun")

    def __init__(self, cfg: RewardTermCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        with torch.inference_mode(False):
            self._last = torch.zeros(env.num_envs, device=env.device)
            self._begun = torch.zeros(env.num_envs, dtype=torch.bool, device=env.device)

    def __call__(self, env: ManagerBasedRlEnv, radius: float) -> torch.Tensor:
        """Return the rate since the last step, shape [num_envs]; 0 in an episode's first step."""
        way = way_behind(env, radius)
        gained = (self._last - way) * self._begun
        self._last.copy_(way)
        self._begun.fill_(True)
        return gained / env.step_dt

    @takes_worlds
    def reset(self, env_ids: EnvIds = None) -> None:
        """Clear the stored lengths of the given worlds."""
        self._worlds(env_ids).put(self._begun, False)


def at_goal(env: ManagerBasedRlEnv) -> torch.Tensor:
    """One where the object is at its goal, shape [num_envs]."""
    return (goal_distance(env) < SUCCESS_DISTANCE).float()


def succeeded(env: ManagerBasedRlEnv, term_name: str = "success") -> torch.Tensor:
    """One in the step in which the episode ends with success, shape [num_envs]."""
    return env.termination_manager.get_term(term_name).float()


class held_at_goal(ManagerTermBase):  # noqa: N801
    """Mask of worlds whose object has stayed at its goal for `hold_s` [s]."""

    state_attributes = ("_steps",)

    def __init__(self, cfg: TerminationTermCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        with torch.inference_mode(False):
            self._steps = torch.zeros(env.num_envs, dtype=torch.long, device=env.device)
        self._needed = steps_in(cfg.params["hold_s"], env.step_dt)

    def __call__(self, env: ManagerBasedRlEnv, hold_s: float) -> torch.Tensor:
        """Count consecutive control steps at the goal; return the mask, shape [num_envs]."""
        arrived = goal_distance(env) < SUCCESS_DISTANCE
        self._steps.add_(1).mul_(arrived)
        return self._steps > self._needed

    @takes_worlds
    def reset(self, env_ids: EnvIds = None) -> None:
        """Reset the counters of the given worlds."""
        self._worlds(env_ids).put(self._steps, 0)


def _plain_place(policy: OnnxPolicy, data: mujoco.MjData, *names: str) -> np.ndarray:
    return data.qpos[[policy.addresses[name][0] for name in names]]


def _plain_velocity(policy: OnnxPolicy, data: mujoco.MjData, *names: str) -> np.ndarray:
    return data.qvel[[policy.addresses[name][1] for name in names]]


def _plain_to_goal(policy: OnnxPolicy, data: mujoco.MjData) -> np.ndarray:
    return policy.commands[GOAL] - _plain_place(policy, data, *_OBJECT_JOINTS[:2])


def _plain_to_pusher(policy: OnnxPolicy, data: mujoco.MjData) -> np.ndarray:
    pusher = _plain_place(policy, data, *_PUSHER_JOINTS)
    return pusher - _plain_place(policy, data, *_OBJECT_JOINTS[:2])


def _plain_axis(policy: OnnxPolicy, data: mujoco.MjData) -> np.ndarray:
    way = _plain_to_goal(policy, data)
    return way / max(float(np.linalg.norm(way)), 1e-6)


def _plain_in_frame(axis: np.ndarray, vector: np.ndarray) -> np.ndarray:
    return np.array([axis @ vector, axis[0] * vector[1] - axis[1] * vector[0]])


def _plain_distance_left(policy: OnnxPolicy, data: mujoco.MjData, params: _Params) -> np.ndarray:
    return np.array([np.linalg.norm(_plain_to_goal(policy, data))])


def _plain_pusher_place(policy: OnnxPolicy, data: mujoco.MjData, params: _Params) -> np.ndarray:
    return _plain_in_frame(_plain_axis(policy, data), _plain_to_pusher(policy, data))


def _plain_pusher_velocity(policy: OnnxPolicy, data: mujoco.MjData, params: _Params) -> np.ndarray:
    velocity = _plain_velocity(policy, data, *_PUSHER_JOINTS)
    return _plain_in_frame(_plain_axis(policy, data), velocity)


def _plain_object_velocity(policy: OnnxPolicy, data: mujoco.MjData, params: _Params) -> np.ndarray:
    velocity = _plain_velocity(policy, data, *_OBJECT_JOINTS)
    return np.append(_plain_in_frame(_plain_axis(policy, data), velocity[:2]), velocity[2])


def _plain_outline(policy: OnnxPolicy, data: mujoco.MjData, params: _Params) -> np.ndarray:
    axis = _plain_axis(policy, data)
    pusher = _plain_to_pusher(policy, data)
    yaw = _plain_place(policy, data, _OBJECT_JOINTS[2])
    count = params["num_directions"]
    turns = np.arctan2(axis[1], axis[0]) + np.arange(count) * (2.0 * math.pi / count)
    turns = np.append(turns, np.arctan2(pusher[1], pusher[0]))
    steps = (turns - yaw) * (OUTLINE_DIRECTIONS / (2.0 * math.pi))
    reach = _radii(policy.model)[steps.round().astype(int) % OUTLINE_DIRECTIONS]
    return np.append(reach[:-1], np.linalg.norm(pusher) - PUSHER_RADIUS - reach[-1])


def _radii(model: mujoco.MjModel) -> np.ndarray:
    """Return the radii of the object in a model, whose meshes are named for their shape."""
    mesh = model.mesh(model.geom(f"{OBJECT}/piece_0").dataid[0]).name
    return SHAPES[mesh.split("/")[1]].radii


def _plain_action(policy: OnnxPolicy, data: mujoco.MjData, action: np.ndarray) -> np.ndarray:
    """Change an action as `GoalFrameVelocityAction`, shape [2]."""
    wide = action.astype(float)
    bounded = wide / max(float(np.linalg.norm(wide)), 1.0)
    axis = _plain_axis(policy, data)
    return _plain_in_frame(np.array([axis[0], -axis[1]]), bounded)


PLAIN_OBSERVATION_FNS = {
    "distance_left": _plain_distance_left,
    "pusher_place": _plain_pusher_place,
    "pusher_velocity": _plain_pusher_velocity,
    "object_velocity": _plain_object_velocity,
    "outline": _plain_outline,
}
"""Observation functions of this task for policies in plain MuJoCo."""
PLAIN_ACTION_FNS = {"GoalFrameVelocityAction": _plain_action}
"""Functions of this task that change actions in plain MuJoCo."""


def _onnx_to_goal(graph: ControlGraph) -> Value:
    return graph.command(GOAL) - graph.positions(_OBJECT_JOINTS[:2])


def _onnx_to_pusher(graph: ControlGraph) -> Value:
    return graph.positions(_PUSHER_JOINTS) - graph.positions(_OBJECT_JOINTS[:2])


def _onnx_norm(vector: Value) -> Value:
    return (vector * vector).sum().sqrt()


def _onnx_axis(graph: ControlGraph) -> Value:
    way = _onnx_to_goal(graph)
    return way / _onnx_norm(way).maximum(1e-6)


def _onnx_in_frame(graph: ControlGraph, axis: Value, vector: Value) -> Value:
    along = (axis * vector).sum()
    across = axis[0] * vector[1] - axis[1] * vector[0]
    return graph.concat([along.reshape(1), across.reshape(1)])


def _onnx_distance_left(graph: ControlGraph, params: _Params) -> Value:
    return _onnx_norm(_onnx_to_goal(graph)).reshape(1)


def _onnx_pusher_place(graph: ControlGraph, params: _Params) -> Value:
    return _onnx_in_frame(graph, _onnx_axis(graph), _onnx_to_pusher(graph))


def _onnx_pusher_velocity(graph: ControlGraph, params: _Params) -> Value:
    return _onnx_in_frame(graph, _onnx_axis(graph), graph.velocities(_PUSHER_JOINTS))


def _onnx_object_velocity(graph: ControlGraph, params: _Params) -> Value:
    velocity = graph.velocities(_OBJECT_JOINTS)
    planar = _onnx_in_frame(graph, _onnx_axis(graph), velocity[:2])
    return graph.concat([planar, velocity[2:]])


def _onnx_outline(graph: ControlGraph, params: _Params) -> Value:
    """Return `outline` in a graph; the nearest direction has the largest cosine."""
    count = params["num_directions"]
    turns = np.arange(count) * (2.0 * math.pi / count)
    pusher = _onnx_to_pusher(graph)
    axis_x, axis_y = _onnx_axis(graph)
    nowhere = (axis_x * axis_x + axis_y * axis_y) <= 0.0  # atan2 is 0 there
    axis_x = graph.where(nowhere, graph.constant(1.0, float), axis_x)
    x = graph.concat([axis_x * np.cos(turns) - axis_y * np.sin(turns), pusher[:1]])
    y = graph.concat([axis_x * np.sin(turns) + axis_y * np.cos(turns), pusher[1:]])
    yaw = graph.positions(_OBJECT_JOINTS[2:])
    along = x * yaw.cos() + y * yaw.sin()
    across = y * yaw.cos() - x * yaw.sin()
    grid = np.arange(OUTLINE_DIRECTIONS) * (2.0 * math.pi / OUTLINE_DIRECTIONS)
    rows = along.reshape(count + 1, 1) * np.cos(grid) + across.reshape(count + 1, 1) * np.sin(grid)
    reach = graph.constant(_radii(graph.model), float)[rows.argmax()]
    gap = _onnx_norm(pusher).reshape(1) - PUSHER_RADIUS - reach[count:]
    return graph.concat([reach[:count], gap])


def _onnx_action(graph: ControlGraph, action: Value) -> Value:
    wide = action.astype(float)
    bounded = wide / _onnx_norm(wide).maximum(1.0)
    axis = _onnx_axis(graph) * np.array([1.0, -1.0])
    return _onnx_in_frame(graph, axis, bounded)


ONNX_OBSERVATION_FNS = {
    "distance_left": _onnx_distance_left,
    "pusher_place": _onnx_pusher_place,
    "pusher_velocity": _onnx_pusher_velocity,
    "object_velocity": _onnx_object_velocity,
    "outline": _onnx_outline,
}
"""Observation functions of this task for policies in shared pages."""
ONNX_ACTION_FNS = {"GoalFrameVelocityAction": _onnx_action}
"""Functions of this task that change actions in shared pages."""
