"""Terms of pushing: the goal, what is observed, the action, rewards and the end.

All places are in the plane, from the bases of object and pusher, which coincide. Policies see and
act in the frame of the goal: x points from the object to its goal, so that what is learned in one
direction serves in all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.envs.mdp import JointVelocityActionCfg
from manyworlds.envs.mdp.actions.actions import JointVelocityAction
from manyworlds.envs.mdp.events import resolve_env_ids
from manyworlds.managers import (
    CommandTerm,
    CommandTermCfg,
    ManagerTermBase,
    ObservationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from manyworlds.tasks.push.shapes import OUTLINE_DIRECTIONS, SHAPES
from manyworlds.validation.worlds import EnvIds, as_index

if TYPE_CHECKING:
    from manyworlds.utils.debug_visualizer import DebugVisualizer

OBJECT, PUSHER, GOAL = "object", "pusher", "goal"
"""Names of the entities and of the command that these terms look for."""
SUCCESS_DISTANCE = 0.05
"""Distance from the goal within which an object has arrived [m]."""
PUSHER_RADIUS = 0.02
"""[m]."""


def to_goal(env: ManagerBasedRlEnv) -> torch.Tensor:
    """From the object's centre to its goal [m], shape [num_envs, 2]."""
    return env.command_manager.get_command(GOAL) - env.scene[OBJECT].data.joint_pos[:, :2]


def goal_axis(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Direction from the object to its goal, shape [num_envs, 2]."""
    return torch.nn.functional.normalize(to_goal(env), dim=1, eps=1e-6)


def in_goal_frame(axis: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
    """Rotate vectors of the world into the frame whose x axis is `axis`, shape [num_envs, 2]."""
    along = (axis * vector).sum(dim=1)
    across = axis[:, 0] * vector[:, 1] - axis[:, 1] * vector[:, 0]
    return torch.stack([along, across], dim=1)


def from_goal_frame(axis: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
    """Rotate vectors of the frame whose x axis is `axis` into the world, shape [num_envs, 2]."""
    return in_goal_frame(torch.stack([axis[:, 0], -axis[:, 1]], dim=1), vector)


def goal_distance(env: ManagerBasedRlEnv) -> torch.Tensor:
    """From the object's centre to its goal [m], shape [num_envs]."""
    return to_goal(env).norm(dim=1)


@dataclass(kw_only=True)
class PushGoalCommandCfg(CommandTermCfg):
    """A place to push the object to, drawn around it when an episode begins."""

    resampling_time_range: tuple[float, float] = (1e9, 1e9)
    """Goals stay for an episode."""
    distance: tuple[float, float] = (0.15, 0.4)
    """Bounds of the distance from the object [m]."""

    def build(self, env: ManagerBasedRlEnv) -> PushGoalCommand:
        """Make the term."""
        return PushGoalCommand(self, env)


class PushGoalCommand(CommandTerm):
    """Keeps a goal for each world."""

    cfg: PushGoalCommandCfg
    state_attributes = (*CommandTerm.state_attributes, "goal")

    def __init__(self, cfg: PushGoalCommandCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(cfg, env)
        with torch.inference_mode(False):
            self.goal = torch.zeros(self.num_envs, 2, device=self.device)

    @property
    def command(self) -> torch.Tensor:
        """Goals from the object's base [m], shape [num_envs, 2]."""
        return self.goal

    def _resample_command(self, env_ids: torch.Tensor) -> None:
        around = self._env.scene[OBJECT].data.joint_pos[env_ids, :2]
        self.goal[env_ids] = around + on_ring(len(env_ids), *self.cfg.distance, self.device)

    def _update_command(self, env_ids: torch.Tensor | None) -> None:
        """Goals stay where they are."""

    def _update_metrics(self) -> None:
        """What is logged stands among the task's metrics."""

    def _debug_vis_impl(self, visualizer: DebugVisualizer) -> None:
        for env in visualizer.get_env_indices(self.num_envs):
            center = self._env.scene[OBJECT].data.root_link_pos_w[env].cpu().numpy().copy()
            center[:2] += self.goal[env].cpu().numpy()
            start, end = center.copy(), center.copy()
            end[2] += 0.002
            visualizer.add_cylinder(start, end, SUCCESS_DISTANCE, (0.2, 0.7, 0.3, 0.6))


def on_ring(count: int, low: float, high: float, device: torch.device) -> torch.Tensor:
    """Draw vectors of any direction and a length between bounds [m], shape [count, 2]."""
    length, turn = torch.rand(2, count, 1, device=device)
    turn = 2.0 * math.pi * turn
    return torch.cat([turn.cos(), turn.sin()], dim=1) * (low + (high - low) * length)


def reset_places(
    env: ManagerBasedRlEnv,
    env_ids: torch.Tensor | None,
    offset: float,
    pusher_distance: tuple[float, float],
) -> None:
    """Put the object near its world's origin, turned at random, and the pusher beside it; at rest.

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        offset: largest distance of the object from the origin along x and y [m].
        pusher_distance: bounds of the pusher's distance from the object's centre [m].
    """
    ids = resolve_env_ids(env, env_ids)
    scale = torch.tensor([offset, offset, math.pi], device=env.device)
    pose = scale * (2.0 * torch.rand(len(ids), 3, device=env.device) - 1.0)
    pusher = pose[:, :2] + on_ring(len(ids), *pusher_distance, env.device)
    for name, position in ((OBJECT, pose), (PUSHER, pusher)):
        zero = torch.zeros_like(position)
        env.scene[name].write_joint_state_to_sim(position, zero, env_ids=ids)


def distance_left(env: ManagerBasedRlEnv) -> torch.Tensor:
    """From the object's centre to its goal [m], as an observation, shape [num_envs, 1]."""
    return goal_distance(env)[:, None]


def pusher_place(env: ManagerBasedRlEnv) -> torch.Tensor:
    """From the object's centre to the pusher, in the goal's frame [m], shape [num_envs, 2]."""
    return in_goal_frame(goal_axis(env), _to_pusher(env))


def pusher_velocity(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Of the pusher, in the goal's frame [m/s], shape [num_envs, 2]."""
    return in_goal_frame(goal_axis(env), env.scene[PUSHER].data.joint_vel)


def object_velocity(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Of the object, in the goal's frame [m/s, m/s, rad/s], shape [num_envs, 3]."""
    velocity = env.scene[OBJECT].data.joint_vel
    return torch.cat([in_goal_frame(goal_axis(env), velocity[:, :2]), velocity[:, 2:]], dim=1)


def _to_pusher(env: ManagerBasedRlEnv) -> torch.Tensor:
    return env.scene[PUSHER].data.joint_pos - env.scene[OBJECT].data.joint_pos[:, :2]


class outline(ManagerTermBase):  # noqa: N801
    """How far the object reaches from its centre in some directions, and from the pusher [m].

    The directions are spread evenly, the first of them towards the goal. The last column is the gap
    between the pusher and the outline on the line from the centre to the pusher; where a shape has
    bays, it may be negative.

    Returns shape [num_envs, num_directions + 1].
    """

    def __init__(self, cfg: ObservationTermCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        names = env.scene[OBJECT].cfg.variants
        radii = [torch.from_numpy(SHAPES[name].radii) for name in names]
        self._radii = torch.stack(radii).to(env.device, torch.float32)
        count = cfg.params["num_directions"]
        turns = torch.arange(count, device=env.device) * (2.0 * math.pi / count)
        self._turns = turns[None, :]

    def __call__(self, env: ManagerBasedRlEnv, num_directions: int) -> torch.Tensor:
        """Look up the outline of each world's variant."""
        axis, pusher = goal_axis(env), _to_pusher(env)
        yaw = env.scene[OBJECT].data.joint_pos[:, 2:]
        ahead = torch.atan2(axis[:, 1:], axis[:, :1])
        turns = torch.cat([ahead + self._turns, torch.atan2(pusher[:, 1:], pusher[:, :1])], dim=1)
        steps = (turns - yaw) * (OUTLINE_DIRECTIONS / (2.0 * math.pi))
        columns = steps.round().long().remainder(OUTLINE_DIRECTIONS)
        reach = self._radii[env.sim.world_to_variant[OBJECT][:, None], columns]
        gap = pusher.norm(dim=1, keepdim=True) - PUSHER_RADIUS - reach[:, -1:]
        return torch.cat([reach[:, :-1], gap], dim=1)


class GoalFrameVelocityAction(JointVelocityAction):
    """Moves the pusher at a velocity in the goal's frame; 1 is the largest speed."""

    def process_actions(self, actions: torch.Tensor) -> None:
        """Bound the speed, turn to the world's frame, and scale."""
        bounded = actions / actions.norm(dim=1, keepdim=True).clamp(min=1.0)
        super().process_actions(from_goal_frame(goal_axis(self._env), bounded))
        self._raw_action.copy_(actions)


@dataclass(kw_only=True)
class GoalFrameVelocityActionCfg(JointVelocityActionCfg):
    """Velocity of the pusher along and across the way of the object to its goal."""

    use_default_offset: bool = False
    term = GoalFrameVelocityAction


def progress(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Speed of the object towards its goal [m/s], shape [num_envs]."""
    return (env.scene[OBJECT].data.joint_vel[:, :2] * goal_axis(env)).sum(dim=1)


def away(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Distance of the object from the region of success [m], shape [num_envs]."""
    return (goal_distance(env) - SUCCESS_DISTANCE).clamp(min=0.0)


def way_behind(env: ManagerBasedRlEnv, radius: float) -> torch.Tensor:
    """Length of the pusher's way round the object to the side away from the goal [m].

    The way leads straight to a circle round the object and along its nearer arc. Inside the circle
    it counts the less the farther behind the pusher is, so that pushing costs nothing. PushShape
    [num_envs].

    Args:
        env: the environment.
        radius: of the circle [m].
    """
    place = in_goal_frame(goal_axis(env), _to_pusher(env))
    turn = torch.atan2(place[:, 1].abs(), -place[:, 0])
    outside = place.norm(dim=1) - radius
    return radius * turn + torch.where(outside > 0.0, outside, -outside * turn / math.pi)


class going_behind(ManagerTermBase):  # noqa: N801
    """Speed at which the pusher's way round the object gets shorter [m/s], shape [num_envs].

    It adds up to what the way was at first and is at last, so that nothing is gained by going in
    circles (Ng, Harada and Russell, 1999).
    """

    state_attributes = ("_last", "_begun")

    def __init__(self, cfg: RewardTermCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        with torch.inference_mode(False):
            self._last = torch.zeros(env.num_envs, device=env.device)
            self._begun = torch.zeros(env.num_envs, dtype=torch.bool, device=env.device)

    def __call__(self, env: ManagerBasedRlEnv, radius: float) -> torch.Tensor:
        """Compare with the step before; the first step of an episode has none."""
        way = way_behind(env, radius)
        gained = (self._last - way) * self._begun
        self._last.copy_(way)
        self._begun.fill_(True)
        return gained / env.step_dt

    def reset(self, env_ids: EnvIds = None) -> None:
        """Begin anew."""
        self._begun[as_index(env_ids)] = False


def at_goal(env: ManagerBasedRlEnv) -> torch.Tensor:
    """1 where the object has arrived, shape [num_envs]."""
    return (goal_distance(env) < SUCCESS_DISTANCE).float()


def succeeded(env: ManagerBasedRlEnv, term_name: str = "success") -> torch.Tensor:
    """1 in the step in which the episode ends with success, shape [num_envs]."""
    return env.termination_manager.get_term(term_name).float()


class held_at_goal(ManagerTermBase):  # noqa: N801
    """Whether the object has been at its goal for some time without a break."""

    state_attributes = ("_steps",)

    def __init__(self, cfg: TerminationTermCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        with torch.inference_mode(False):
            self._steps = torch.zeros(env.num_envs, dtype=torch.long, device=env.device)
        self._needed = math.ceil(cfg.params["hold_s"] / env.step_dt - 1e-9)

    def __call__(self, env: ManagerBasedRlEnv, hold_s: float) -> torch.Tensor:
        """Count control steps at the goal, shape [num_envs]."""
        arrived = goal_distance(env) < SUCCESS_DISTANCE
        self._steps.add_(1).mul_(arrived)
        return self._steps > self._needed

    def reset(self, env_ids: EnvIds = None) -> None:
        """Begin to count anew."""
        self._steps[as_index(env_ids)] = 0
