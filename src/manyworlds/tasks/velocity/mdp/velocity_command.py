"""Velocity commands for a floating base."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from manyworlds.managers import CommandTerm, CommandTermCfg
from manyworlds.managers.symmetry import Reflection
from manyworlds.utils.math import dot, wrap_to_pi
from manyworlds.utils.overrides import overrides
from manyworlds.validation.host_reads import reads_are_free
from manyworlds.validation.worlds import EnvIds, takes_worlds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.managers.symmetry import EnvSymmetry
    from manyworlds.utils.debug_visualizer import DebugVisualizer

_COMMANDED = (0.2, 0.6, 0.2, 0.7)
_ACTUAL = (0.2, 0.4, 0.9, 0.7)


@dataclass(kw_only=True)
class UniformVelocityCommandCfg(CommandTermCfg):
    """Configuration of uniformly sampled velocities, with some worlds of special kinds."""

    @dataclass
    class Ranges:
        """Bounds of sampled commands."""

        lin_vel_x: tuple[float, float]
        """Forward velocity [m/s]."""
        lin_vel_y: tuple[float, float]
        """Velocity to the left [m/s]."""
        ang_vel_z: tuple[float, float]
        """Angular velocity, positive to the left [rad/s]."""
        heading: tuple[float, float] | None = None
        """Heading in the world frame [rad]."""

    @dataclass
    class VizCfg:
        """Visualization settings of the arrows."""

        z_offset: float = 0.2
        """Height above the root [m]."""
        scale: float = 0.5
        """Length of an arrow for 1 m/s or 1 rad/s [m]."""

    entity_name: str
    """Name of the commanded entity."""
    heading_command: bool = False
    """Command a heading in some worlds, from which the angular velocity is computed."""
    heading_control_stiffness: float = 1.0
    """Angular velocity per heading error [1/s]."""
    rel_standing_envs: float = 0.0
    """Probability of a zero command."""
    rel_heading_envs: float = 1.0
    """Probability of a heading command, with `heading_command`."""
    rel_world_envs: float = 0.0
    """Probability of a linear velocity in the world frame."""
    rel_forward_envs: float = 0.0
    """Probability of a command straight ahead, without lateral and angular velocity."""
    init_velocity_prob: float = 0.0
    """Probability that the root starts an episode with the commanded velocity."""
    ranges: Ranges
    viz: VizCfg = field(default_factory=VizCfg)

    def __post_init__(self) -> None:
        self.validate()

    def validate(self) -> None:
        """Check heading ranges and probabilities.

        Raises:
            ValueError: headings are enabled without a range, or a probability is not within [0, 1].
        """
        if self.heading_command and self.ranges.heading is None:
            raise ValueError(
                "UniformVelocityCommandCfg has heading_command=True, but ranges.heading is None: "
                "give its bounds in radians, or set heading_command=False."
            )
        probabilities = {
            "rel_standing_envs": self.rel_standing_envs,
            "rel_heading_envs": self.rel_heading_envs,
            "rel_world_envs": self.rel_world_envs,
            "rel_forward_envs": self.rel_forward_envs,
            "init_velocity_prob": self.init_velocity_prob,
        }
        for name, share in probabilities.items():
            if not 0.0 <= share <= 1.0:
                raise ValueError(
                    f"UniformVelocityCommandCfg.{name} is {share}: give a probability in [0, 1]."
                )

    def build(self, env: ManagerBasedRlEnv) -> UniformVelocityCommand:
        """Build the term."""
        return UniformVelocityCommand(self, env)


class UniformVelocityCommand(CommandTerm):
    """Velocity command in the root's frame: x and y [m/s], and angular velocity about z [rad/s].

    If several kinds are sampled for a world, standing has priority, then walking ahead. A subclass
    may override `_resample_command` and write `vel_command_b` and the other attributes of the
    sample; `_update_command` computes the rows of worlds that stand, head somewhere, or move in the
    world frame. The metrics `error_vel_xy` [m/s] and `error_vel_yaw` [rad/s] are mean errors over
    the time of an episode.

    Raises:
        ValueError: the entity's base is fixed, or there is no range of headings.
    """

    cfg: UniformVelocityCommandCfg
    state_attributes = (
        *CommandTerm.state_attributes,
        "vel_command_b",
        "vel_command_w",
        "heading_target",
        "is_standing_env",
        "is_heading_env",
        "is_world_env",
        "is_forward_env",
        "ranges",
        "shares",
        "commanded_way",
        "progress",
        "_way_from",
        "_measured",
    )
    # Commands set in a viewer are not part of the state.
    derived_attributes = (
        "_low",
        "_span",
        "_limits",
        "_sampled_from",
        "_speed",
        "_speed_of",
        "_steered",
        "_elapsed",
    )

    def __init__(self, cfg: UniformVelocityCommandCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(cfg, env)
        cfg.validate()  # fields may have been set since
        self.robot = env.scene.entity(cfg.entity_name)
        if self.robot.is_fixed_base:
            raise ValueError(
                f"UniformVelocityCommand moves '{cfg.entity_name}', whose base is fixed: name an "
                "entity with a free joint."
            )
        with torch.inference_mode(False):
            zeros = torch.zeros(self.num_envs, 3, device=self.device)
            self.vel_command_b = zeros.clone()
            """Command in the root's frame [m/s, m/s, rad/s], shape [num_envs, 3]."""
            self.vel_command_w = zeros.clone()
            """Sampled command in the world frame, of use in worlds of `is_world_env`
            [m/s, m/s, rad/s], shape [num_envs, 3]."""
            self.heading_target = zeros[:, 0].clone()
            """Sampled heading in the world frame [rad], shape [num_envs]."""
            self.is_standing_env = zeros[:, 0].bool()
            """Mask of worlds with a zero command, shape [num_envs]."""
            self.is_heading_env = self.is_standing_env.clone()
            """Mask of worlds that turn to `heading_target`, shape [num_envs]."""
            self.is_world_env = self.is_standing_env.clone()
            """Mask of worlds with a linear velocity in the world frame, shape [num_envs]."""
            self.is_forward_env = self.is_standing_env.clone()
            """Mask of worlds with a command straight ahead, shape [num_envs]."""
            self.metrics = {
                "error_vel_xy": zeros[:, 0].clone(),
                "error_vel_yaw": zeros[:, 0].clone(),
            }
            self.commanded_way = zeros[:, 0].clone()
            """Length of the way that the commands of this episode describe [m], shape [num_envs];
            measured on generated terrain only."""
            self.progress = zeros[:, 0].clone()
            """Length of the way that the root moved along the commands [m], likewise."""
            self._way_from = zeros[:, :2].clone()
            self._measured = zeros[:, 0].clone()
        terrain = env.scene.terrain
        self._measures_way = terrain is not None and terrain.cfg.terrain_generator is not None
        self._elapsed: float | torch.Tensor = env.step_dt
        self._takes_ids = overrides(self, UniformVelocityCommand, "_resample_command")
        self._sampled_from: tuple[object, object] | None = None
        self._steered: dict[int, torch.Tensor] = {}
        self._speed = torch.zeros_like(self.heading_target)
        self._speed_of = self.vel_command_b, -1

    @property
    def command(self) -> torch.Tensor:
        """Velocity in the root's frame [m/s, m/s, rad/s], shape [num_envs, 3]."""
        if not self._steered:
            return self.vel_command_b
        command = self.vel_command_b.clone()
        for env_idx, steered in self._steered.items():
            command[env_idx] = steered
        return command

    def mirror(self, mirror: EnvSymmetry) -> Reflection:
        """Return the mirror image of a command: the opposite y and angular velocity."""
        return Reflection.of(range(3), (1.0, -1.0, -1.0))

    @property
    def speed(self) -> torch.Tensor:
        """Sum of linear and angular speed, shape [num_envs]; many rewards depend on it."""
        command = self.command
        if command.is_inference():  # without a version
            return total_speed(command)
        measured, version = self._speed_of
        if command is not measured or command._version != version:
            self._speed = total_speed(command)
            self._speed_of = (command, command._version)
        return self._speed

    @property
    def ranges(self) -> dict[str, tuple[float, float] | None]:
        """Bounds of sampled commands by name, which curricula change."""
        ranges = self.cfg.ranges
        return {
            "lin_vel_x": ranges.lin_vel_x,
            "lin_vel_y": ranges.lin_vel_y,
            "ang_vel_z": ranges.ang_vel_z,
            "heading": ranges.heading,
        }

    @ranges.setter
    def ranges(self, ranges: dict[str, tuple[float, float] | None]) -> None:
        for name, bounds in ranges.items():
            setattr(self.cfg.ranges, name, bounds)

    @property
    def shares(self) -> dict[str, float]:
        """Probabilities of the kinds of commands by name; curricula change some of them."""
        return {
            "rel_standing_envs": self.cfg.rel_standing_envs,
            "rel_heading_envs": self.cfg.rel_heading_envs,
            "rel_world_envs": self.cfg.rel_world_envs,
            "rel_forward_envs": self.cfg.rel_forward_envs,
        }

    @shares.setter
    def shares(self, shares: dict[str, float]) -> None:
        for name, share in shares.items():
            setattr(self.cfg, name, share)

    @property
    def steering(self) -> dict[str, tuple[float, float]]:
        """Bounds of the commands that a viewer may set, by name, in order."""
        ranges = self.cfg.ranges
        return {
            "lin_vel_x": ranges.lin_vel_x,
            "lin_vel_y": ranges.lin_vel_y,
            "ang_vel_z": ranges.ang_vel_z,
        }

    def steer(self, env_idx: int, command: Sequence[float] | None) -> None:
        """Hold a world's command at a value set by a viewer; None returns to the sampled one.

        Args:
            env_idx: the world.
            command: velocity in the root's frame [m/s, m/s, rad/s].
        """
        self._steered.pop(env_idx, None)
        if command is not None:
            self._steered[env_idx] = torch.tensor(command, device=self.device)

    @takes_worlds
    def compute(self, dt: float | torch.Tensor, env_ids: EnvIds = None) -> None:
        """Measure the way of the last `dt`, and advance the term; see `CommandTerm.compute`."""
        if self._measures_way and env_ids is None:
            self._measure_way(dt)
        elif self._measures_way:
            here = self.robot.data.root_link_pos_w[:, :2]
            worlds = self._worlds(env_ids)
            worlds.put(self._way_from, worlds.take(here))
        if env_ids is None:
            self._elapsed = dt
        super().compute(dt, env_ids)

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Restore a state that `state_dict` returned, also of a version without turning and mode.

        Raises:
            ValueError: the saved state does not fit this term.
        """
        command = state.get("vel_command_w")
        if isinstance(command, torch.Tensor) and command.shape[1] == 2:
            still = torch.zeros_like(command)
            older = {
                "vel_command_w": torch.cat([command, still[:, :1]], dim=1),
                "is_forward_env": still[:, 0] > 0,
            }
            state = state | older
        super().load_state_dict(state)

    @takes_worlds
    def reset(self, env_ids: EnvIds) -> dict[str, torch.Tensor]:
        """Resample the commands of given worlds; return the means of their metrics, shape []."""
        worlds = self._worlds(env_ids)
        log = super().reset(worlds)
        worlds.put(self.commanded_way, 0.0)
        worlds.put(self.progress, 0.0)
        worlds.put(self._measured, 0.0)
        if self.cfg.init_velocity_prob > 0.0:
            # Some of the worlds begin at the velocity of their command.
            chosen = self.random.uniform(env_ids=worlds) < self.cfg.init_velocity_prob
            given: Any = worlds.for_call(self._update_command)
            if given is not None:
                self._update_command(given)
            moving = worlds.where(chosen)
            x, y, turning = moving.take(self.command).unbind(1)
            zero = torch.zeros_like(x)
            velocity = torch.stack([x, y, zero, zero, zero, turning], dim=1)
            self.robot.write_root_link_velocity_b_to_sim(velocity, moving)
        return log

    @takes_worlds
    def _resample_command(self, env_ids: EnvIds) -> None:
        self._sample(self._worlds(env_ids).mask)

    def _resample_where(self, mask: torch.Tensor) -> None:
        """Resample commands and their times in the worlds of a mask, shape [num_envs]."""
        if self._takes_ids:
            super()._resample_where(mask)  # for the ids that a subclass expects
        elif not reads_are_free(mask.device) or mask.any():  # a check on a GPU would synchronize
            drawn = self._sample(mask)
            torch.where(mask, drawn, self.time_left, out=self.time_left)
            self.command_counter += mask

    def _sample(self, mask: torch.Tensor) -> torch.Tensor:
        """Sample commands for the worlds of a mask; return times [s] for all, both [num_envs]."""
        low, span, limits = self._sampling()
        uniform = self.random.uniform(shape=(9,), env_ids=mask)
        drawn = torch.addcmul(low, uniform[:, :5], span)
        standing, heading, world, forward = (uniform[:, 5:] < limits).unbind(1)
        # Standing has priority over walking ahead, and both over the other kinds.
        plain = ~(standing | forward)
        x = drawn[:, 0]
        y_and_turning = drawn[:, 1:3]
        x.copy_(torch.where(forward, x.abs(), x))
        y_and_turning.mul_(plain.unsqueeze(1))
        rows = mask.unsqueeze(1)
        torch.where(rows, drawn[:, :3], self.vel_command_b, out=self.vel_command_b)
        torch.where(rows, drawn[:, :3], self.vel_command_w, out=self.vel_command_w)
        torch.where(mask, drawn[:, 3], self.heading_target, out=self.heading_target)
        torch.where(mask, standing, self.is_standing_env, out=self.is_standing_env)
        torch.where(mask, heading & plain, self.is_heading_env, out=self.is_heading_env)
        torch.where(mask, world & plain, self.is_world_env, out=self.is_world_env)
        torch.where(mask, forward & ~standing, self.is_forward_env, out=self.is_forward_env)
        return drawn[:, 4]

    def _sampling(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return lower bounds and widths of samples, and probabilities; updated after changes."""
        ranges = self.ranges
        shares = self.shares
        if (ranges, shares) != self._sampled_from:
            rows = [bounds or (0.0, 0.0) for bounds in ranges.values()]
            rows.append(self.cfg.resampling_time_range)
            low, high = torch.tensor(rows, device=self.device).unbind(1)
            self._low = low
            self._span = high - low
            self._limits = torch.tensor([*shares.values()], device=self.device)
            self._sampled_from = ranges, shares
        return self._low, self._span, self._limits

    @takes_worlds
    def _update_command(self, env_ids: EnvIds = None) -> None:
        cfg = self.cfg
        worlds = self._worlds(env_ids)
        command = worlds.take(self.vel_command_b)
        if worlds.is_masked:
            command = command.clone()
        if cfg.heading_command or cfg.rel_world_envs > 0.0:
            now = worlds.take(self.robot.data.heading_w)
            if cfg.heading_command:
                error = wrap_to_pi(worlds.take(self.heading_target) - now)
                rate = cfg.heading_control_stiffness * error
                rate.clamp_(*cfg.ranges.ang_vel_z)
                turning = command[:, 2]
                turning.copy_(torch.where(worlds.take(self.is_heading_env), rate, turning))
            if cfg.rel_world_envs > 0.0:
                x, y = worlds.take(self.vel_command_w)[:, :2].unbind(1)
                cos = now.cos()
                sin = now.sin()
                turned = torch.stack([cos * x + sin * y, cos * y - sin * x], dim=1)
                linear = command[:, :2]
                linear.copy_(
                    torch.where(worlds.take(self.is_world_env).unsqueeze(1), turned, linear)
                )
        command.masked_fill_(worlds.take(self.is_standing_env).unsqueeze(1), 0.0)
        if not worlds.is_all:
            worlds.put(self.vel_command_b, command)

    def _measure_way(self, dt: float | torch.Tensor) -> None:
        """Add the last `dt`, in which the present commands held, to the ways of this episode.

        Args:
            dt: time [s], a scalar or shape [num_envs]; zero where an episode begins.
        """
        here = self.robot.data.root_link_pos_w[:, :2]
        x, y = self.command[:, :2].unbind(1)
        speed = torch.hypot(x, y)
        heading = self.robot.data.heading_w
        cos = heading.cos()
        sin = heading.sin()
        moved_x, moved_y = (here - self._way_from).unbind(1)
        along = moved_x * (cos * x - sin * y) + moved_y * (sin * x + cos * y)
        gained = along / speed.clamp(min=1e-6)
        if isinstance(dt, torch.Tensor):
            gained = torch.where(dt > 0.0, gained, 0.0)
        self.progress += gained
        self.commanded_way += speed * dt
        self._way_from.copy_(here)

    def _update_metrics(self) -> None:
        # Running means over the time of the episode.
        self._measured += self._elapsed
        share = self._elapsed / self._measured.clamp(min=1e-6)
        data = self.robot.data
        command = self.command
        linear = command[:, :2] - data.root_link_lin_vel_b[:, :2]
        turning = command[:, 2] - data.root_link_ang_vel_b[:, 2]
        self.metrics["error_vel_xy"].lerp_(dot(linear, linear).sqrt(), share)
        self.metrics["error_vel_yaw"].lerp_(turning.abs(), share)

    def _debug_vis_impl(self, visualizer: DebugVisualizer) -> None:
        """Draw commanded and actual velocities; angular velocity is a vertical arrow."""
        data = self.robot.data
        viz = self.cfg.viz
        command = self.command
        actual = torch.cat([data.root_link_lin_vel_b[:, :2], data.root_link_ang_vel_b[:, 2:]], 1)
        for env in visualizer.get_env_indices(self.num_envs):
            start = data.root_link_pos_w[env].cpu().numpy().copy()
            start[2] += viz.z_offset
            heading = data.heading_w[env].item()
            cos = math.cos(heading)
            sin = math.sin(heading)
            for velocity, color in ((command, _COMMANDED), (actual, _ACTUAL)):
                x, y, turning = (viz.scale * velocity[env]).tolist()
                along = (cos * x - sin * y, sin * x + cos * y, 0.0)
                for arrow in (along, (0.0, 0.0, turning)):
                    visualizer.add_arrow(start, start + arrow, color, width=0.015)


def total_speed(command: torch.Tensor) -> torch.Tensor:
    """Sum of linear and angular speed of commands [num_envs, 3], shape [num_envs]."""
    linear = command[:, :2]
    return dot(linear, linear).sqrt() + command[:, 2].abs()
