"""Command to track a motion."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

from manyworlds.managers import CommandTerm, CommandTermCfg
from manyworlds.tasks.tracking.mdp.motion_loader import MotionLoader
from manyworlds.tasks.tracking.motion import Motion
from manyworlds.tasks.tracking.motion_check import check_kinematics
from manyworlds.utils.clocks import count_down
from manyworlds.utils.math import (
    matrix_from_quat,
    pose_bounds,
    quat_apply,
    quat_conjugate,
    quat_error_magnitude,
    quat_from_euler_xyz,
    quat_mul,
    yaw_quat,
)
from manyworlds.validation.rules import refuse
from manyworlds.validation.worlds import EnvIds, Worlds, takes_worlds

if TYPE_CHECKING:
    import mujoco

    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.utils.debug_visualizer import DebugVisualizer

Ranges = dict[str, tuple[float, float]]
_MODES = ("adaptive", "uniform", "start")
_BIN_S = 1.0  # duration of a bin of adaptive sampling [s]


@dataclass(kw_only=True)
class MotionCommandCfg(CommandTermCfg):
    """Configuration of a motion command: the motion, and the start of episodes in it."""

    @dataclass
    class VizCfg:
        """Visualization settings of the motion."""

        mode: Literal["ghost", "frames"] = "ghost"
        """Draw a transparent robot, or the frames of the tracked bodies."""
        ghost_color: tuple[float, float, float, float] = (0.5, 0.7, 0.5, 0.5)

    motion_file: str
    """Path of an NPZ file; see `Motion` and `manyworlds motion convert`."""
    motion_fn: Callable[[], Motion] | None = None
    """Function that returns the motion if `motion_file` is empty."""
    anchor_body_name: str
    """Body at which motion and robot are aligned, one of `body_names`."""
    body_names: tuple[str, ...]
    """Names of the tracked bodies."""
    entity_name: str
    """Name of the robot's entity."""
    pose_range: Ranges = field(default_factory=dict)
    """Initial noise on the root's pose: bounds by x, y, z [m] and roll, pitch, yaw [rad] in the
    world frame."""
    velocity_range: Ranges = field(default_factory=dict)
    """Initial noise on the root's velocity: bounds by the same names [m/s, rad/s]."""
    joint_position_range: tuple[float, float] = (-0.52, 0.52)
    """Bounds of the initial noise on joint positions [rad or m]."""
    adaptive_kernel_size: int = 1
    """Number of bins over which a failure is distributed: its own bin and earlier ones."""
    adaptive_lambda: float = 0.8
    """Ratio of the weights of a bin and the following one in this distribution."""
    adaptive_uniform_ratio: float = 0.1
    """Uniform share: failures added to the bins, as a sum over all bins."""
    adaptive_alpha: float = 0.001
    """Weight of the current step's failures in their exponential moving average."""
    sampling_mode: Literal["adaptive", "uniform", "start"] = "adaptive"
    """Start of episodes: weighted by failures, uniformly sampled, or the first frame."""
    viz: VizCfg = field(default_factory=VizCfg)

    def build(self, env: ManagerBasedRlEnv) -> MotionCommand:
        """Build the term."""
        return MotionCommand(self, env)


class MotionCommand(CommandTerm):
    """Command with the frames of a motion, starting from a sampled frame in each episode.

    At the end of the motion, a new frame is sampled and the robot is set to it, without ending the
    episode. Frames advance by one per control step. On a GPU, the host synchronizes once per step
    to read the worlds whose motion ended.

    Raises:
        ValueError: a body does not exist or the anchor is not tracked; the motion belongs to
            another robot, has another rate, or its bodies are not where its joints put them; a
            sampling setting is out of range.
    """

    cfg: MotionCommandCfg
    state_attributes = (
        *CommandTerm.state_attributes,
        "time_steps",
        "bin_failed_count",
        "_new_failures",
        "velocity_range",
    )
    shared_attributes = ("bin_failed_count", "_new_failures")
    derived_attributes = (
        "_rows",
        "_now",
        "_updates",
        "_relative",
        "_relative_of",
        "_indexes",
        "_scrubber",  # belongs to a viewer and is not part of the state
    )

    def __init__(self, cfg: MotionCommandCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(cfg, env)
        self.robot = env.scene.entity(cfg.entity_name)
        self._check(cfg)
        names = self.robot.body_names
        local = [names.index(name) for name in cfg.body_names]
        self.body_indexes = torch.tensor(local, device=self.device)
        """Indices of the tracked bodies among the robot's, shape [bodies]."""
        self.motion_anchor_body_index = cfg.body_names.index(cfg.anchor_body_name)
        """Index of the anchor among the tracked bodies."""
        self.anchor_index = local[self.motion_anchor_body_index]
        """Index of the anchor among the robot's bodies."""
        self._body_ids = self.robot.indexing.body_ids[self.body_indexes]
        self._anchor_id = int(self.robot.indexing.body_ids[self.anchor_index])
        # The root is first: episodes begin with its state, even if it is not tracked.
        rows = torch.tensor([self.robot.indexing.root_index, *local])
        self.motion = MotionLoader(self._load(), rows, self.device)
        """Motion of the root and the tracked bodies."""
        self.bin_count = int(self.motion.time_step_total / self.motion.fps / _BIN_S) + 1
        """Number of bins of adaptive sampling."""
        ratio = torch.tensor(cfg.adaptive_lambda, device=self.device)
        kernel = ratio ** torch.arange(cfg.adaptive_kernel_size, device=self.device)
        self._kernel = (kernel / kernel.sum()).view(1, 1, -1)
        self._indexes: dict[tuple[str, ...], torch.Tensor] = {}
        self._relative: tuple[torch.Tensor, torch.Tensor] = (torch.empty(0), torch.empty(0))
        self._relative_of = (-1, -1)
        self._updates = 0
        self._ghost: mujoco.MjModel | None = None
        with torch.inference_mode(False):
            self.time_steps = torch.zeros(self.num_envs, dtype=torch.long, device=self.device)
            """Current frame of each world, shape [num_envs]."""
            self.bin_failed_count = torch.zeros(self.bin_count, device=self.device)
            """Exponential moving average of failures per step by bin, shape [bin_count]."""
            self._new_failures = torch.zeros_like(self.bin_failed_count)
            width = self.motion.frames.shape[1]
            self._rows = torch.zeros(self.num_envs, width, device=self.device)
            self._now = self.motion.split(self._rows)
            zeros = torch.zeros(self.num_envs, device=self.device)
            self.metrics = {name: zeros.clone() for name in _METRICS}
            for name in _SAMPLING:
                self.metrics[name] = zeros.clone()
        self._look_up()

    @property
    def joint_pos(self) -> torch.Tensor:
        """Joint positions of the motion [rad or m], shape [num_envs, joints]."""
        return self._now.joint_pos

    @property
    def joint_vel(self) -> torch.Tensor:
        """Joint velocities of the motion [rad/s or m/s], shape [num_envs, joints]."""
        return self._now.joint_vel

    @property
    def body_pos_w(self) -> torch.Tensor:
        """Positions of the motion's bodies [m], shape [num_envs, bodies, 3]."""
        return self._now.body_pos_w[:, 1:]

    @property
    def body_quat_w(self) -> torch.Tensor:
        """Orientations of the motion's bodies (wxyz), shape [num_envs, bodies, 4]."""
        return self._now.body_quat_w[:, 1:]

    @property
    def body_lin_vel_w(self) -> torch.Tensor:
        """Linear velocities of the motion's bodies [m/s], shape [num_envs, bodies, 3]."""
        return self._now.body_lin_vel_w[:, 1:]

    @property
    def body_ang_vel_w(self) -> torch.Tensor:
        """Angular velocities of the motion's bodies [rad/s], shape [num_envs, bodies, 3]."""
        return self._now.body_ang_vel_w[:, 1:]

    @property
    def anchor_pos_w(self) -> torch.Tensor:
        """Position of the motion's anchor [m], shape [num_envs, 3]."""
        return self._now.body_pos_w[:, 1 + self.motion_anchor_body_index]

    @property
    def anchor_quat_w(self) -> torch.Tensor:
        """Orientation of the motion's anchor (wxyz), shape [num_envs, 4]."""
        return self._now.body_quat_w[:, 1 + self.motion_anchor_body_index]

    @property
    def anchor_lin_vel_w(self) -> torch.Tensor:
        """Linear velocity of the motion's anchor [m/s], shape [num_envs, 3]."""
        return self._now.body_lin_vel_w[:, 1 + self.motion_anchor_body_index]

    @property
    def anchor_ang_vel_w(self) -> torch.Tensor:
        """Angular velocity of the motion's anchor [rad/s], shape [num_envs, 3]."""
        return self._now.body_ang_vel_w[:, 1 + self.motion_anchor_body_index]

    @property
    def robot_body_pos_w(self) -> torch.Tensor:
        """Positions of the robot's tracked bodies [m], shape [num_envs, bodies, 3]."""
        return self._env.sim.data.xpos[:, self._body_ids]

    @property
    def robot_body_quat_w(self) -> torch.Tensor:
        """Orientations of the robot's tracked bodies (wxyz), shape [num_envs, bodies, 4]."""
        return self._env.sim.data.xquat[:, self._body_ids]

    @property
    def robot_body_lin_vel_w(self) -> torch.Tensor:
        """Linear velocities of the robot's tracked bodies [m/s], shape [num_envs, bodies, 3]."""
        return self.robot.data.body_link_lin_vel_w[:, self.body_indexes]

    @property
    def robot_body_ang_vel_w(self) -> torch.Tensor:
        """Angular velocities of the robot's tracked bodies [rad/s], shape [num_envs, bodies, 3]."""
        return self._env.sim.data.cvel[:, self._body_ids, :3]

    @property
    def robot_anchor_pos_w(self) -> torch.Tensor:
        """Position of the robot's anchor [m], shape [num_envs, 3]."""
        return self._env.sim.data.xpos[:, self._anchor_id]

    @property
    def robot_anchor_quat_w(self) -> torch.Tensor:
        """Orientation of the robot's anchor (wxyz), shape [num_envs, 4]."""
        return self._env.sim.data.xquat[:, self._anchor_id]

    @property
    def robot_anchor_lin_vel_w(self) -> torch.Tensor:
        """Linear velocity of the robot's anchor [m/s], shape [num_envs, 3]."""
        return self.robot.data.body_link_lin_vel_w[:, self.anchor_index]

    @property
    def robot_anchor_ang_vel_w(self) -> torch.Tensor:
        """Angular velocity of the robot's anchor [rad/s], shape [num_envs, 3]."""
        return self._env.sim.data.cvel[:, self._anchor_id, :3]

    @property
    def velocity_range(self) -> Ranges:
        """Initial noise on the root's velocity, which curricula change."""
        return self.cfg.velocity_range

    @velocity_range.setter
    def velocity_range(self, bounds: Ranges) -> None:
        self.cfg.velocity_range = bounds

    @property
    def command(self) -> torch.Tensor:
        """Joint positions and velocities of the motion, shape [num_envs, 2 * joints]."""
        return self._rows[:, : 2 * self.motion.num_joints]

    @property
    def robot_joint_pos(self) -> torch.Tensor:
        """Joint positions of the robot [rad or m], shape [num_envs, joints]."""
        return self.robot.data.joint_pos

    @property
    def robot_joint_vel(self) -> torch.Tensor:
        """Joint velocities of the robot [rad/s or m/s], shape [num_envs, joints]."""
        return self.robot.data.joint_vel

    @property
    def body_pos_relative_w(self) -> torch.Tensor:
        """Body positions [m] of the motion, shifted and yawed to the robot, [num_envs, n, 3]."""
        return self._relative_poses()[0]

    @property
    def body_quat_relative_w(self) -> torch.Tensor:
        """Body orientations (wxyz) of the motion, yawed to the robot, [num_envs, n, 4]."""
        return self._relative_poses()[1]

    def update_relative_body_poses(self) -> None:
        """Align the motion with the robot's current pose; called once per control step."""
        pos = self.robot_anchor_pos_w
        quat = self.robot_anchor_quat_w
        turn = yaw_quat(quat_mul(quat, quat_conjugate(self.anchor_quat_w))).unsqueeze(1)
        start = torch.cat([pos[:, :2], self.anchor_pos_w[:, 2:]], dim=1).unsqueeze(1)
        arm = self.body_pos_w - self.anchor_pos_w.unsqueeze(1)
        turn = turn.expand(*arm.shape[:2], 4)
        self._relative = start + quat_apply(turn, arm), quat_mul(turn, self.body_quat_w)
        self._relative_of = self._stamp

    def body_index(self, body_names: tuple[str, ...] | None) -> slice | torch.Tensor:
        """Return the index of bodies among the tracked ones, shape [len(names)]; None selects all.

        Raises:
            ValueError: a body is not tracked.
        """
        if body_names is None:
            return slice(None)
        if body_names not in self._indexes:
            missing = [name for name in body_names if name not in self.cfg.body_names]
            if missing:
                raise ValueError(
                    f"Bodies {missing} are not tracked: choose among {list(self.cfg.body_names)}, "
                    "or add them to MotionCommandCfg.body_names."
                )
            ids = [self.cfg.body_names.index(name) for name in body_names]
            self._indexes[body_names] = torch.tensor(ids, device=self.device)
        return self._indexes[body_names]

    @takes_worlds
    def compute(self, dt: float | torch.Tensor, env_ids: EnvIds = None) -> None:
        """Advance by `dt` [s]; see `CommandTerm.compute`. Worlds with `dt` 0 do not advance."""
        if env_ids is not None:
            super().compute(dt, env_ids)
            return
        self._update_metrics()
        expired = count_down(self.time_left, dt)
        self.time_steps += dt > 0.0
        ended = expired | (self.time_steps >= self.motion.time_step_total)
        # The last frame is that of worlds that are reset in this step.
        self.time_steps.clamp_(max=self.motion.time_step_total - 1)
        self._resample_where(ended & ~self._env.resetting)
        alpha = self.cfg.adaptive_alpha
        self.bin_failed_count.lerp_(self._new_failures, alpha)
        self._new_failures.zero_()
        self._update_command(None)

    @property
    def is_coupled(self) -> bool:  # type: ignore[override]
        """True if frames are drawn by the failures of all worlds."""
        return self.cfg.sampling_mode == "adaptive"

    @property
    def num_frames(self) -> int:
        """Number of frames of the motion."""
        return self.motion.time_step_total

    def frame_of(self, env_idx: int) -> int:
        """Return the current frame of a world."""
        return int(self.time_steps[env_idx])

    def seek(self, env_idx: int, frame: int) -> None:
        """Set the robot of a world exactly to a frame, and recompute the derived quantities.

        Raises:
            ValueError: the frame does not exist.
        """
        ids = torch.tensor([env_idx], device=self.device)
        self.reset_to_frame(ids, frame)
        self._env.sim.forward(ids)
        self._look_up()

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Load a state that `state_dict` returned."""
        super().load_state_dict(state)
        self._look_up()

    def reset_to_frame(self, env_ids: torch.Tensor, frame: int) -> None:
        """Set robots exactly to a frame of the motion; the caller runs `sim.forward`.

        Raises:
            ValueError: the frame does not exist.
        """
        total = self.motion.time_step_total
        if not 0 <= frame < total:
            raise ValueError(f"There is no frame {frame}: the motion has frames 0 to {total - 1}.")
        worlds = self._worlds(env_ids)
        worlds.put(self.time_steps, frame)
        self._put_robots(worlds, noisy=False)

    @takes_worlds
    def reset(self, env_ids: EnvIds) -> dict[str, torch.Tensor]:
        """Count failures, and resample the frames of given worlds; see `CommandTerm.reset`."""
        worlds = self._worlds(env_ids)
        if self.cfg.sampling_mode == "adaptive":
            # Failures count for the bin of the frame at which the episode ended.
            failed = worlds.take(self._env.termination_manager.terminated)
            if worlds.is_masked:
                failed = failed & worlds.mask
            bins = worlds.take(self.time_steps) * self.bin_count // self.motion.time_step_total
            bins = bins.clamp(max=self.bin_count - 1)
            self._new_failures.index_add_(0, bins, failed.float())
        return super().reset(worlds)

    @takes_worlds
    def _resample_command(self, env_ids: EnvIds) -> None:
        worlds = self._worlds(env_ids)
        if self.cfg.sampling_mode == "start":
            worlds.put(self.time_steps, 0)
        else:
            probabilities = self.sampling_probabilities()
            bins = self.random.choice(probabilities, worlds)
            share = (bins + self.random.uniform(env_ids=worlds)) / self.bin_count
            worlds.put(self.time_steps, (share * (self.motion.time_step_total - 1)).long())
            log = probabilities.clamp_min(1e-12).log()
            entropy = -(probabilities * log).sum() / np.log(max(self.bin_count, 2))
            top, at = probabilities.max(dim=0)
            for name, value in zip(_SAMPLING, (entropy, top, at / self.bin_count), strict=True):
                self.metrics[name].copy_(value.expand(self.num_envs))
        self._put_robots(worlds, noisy=True)

    @takes_worlds
    def _update_command(self, env_ids: EnvIds = None) -> None:
        self._look_up()

    def _update_metrics(self) -> None:
        for name, compute in _METRICS.items():
            self.metrics[name].copy_(compute(self))

    # Frames.

    def _look_up(self) -> None:
        """Gather the current frames, shifted to the worlds' origins."""
        torch.index_select(self.motion.frames, 0, self.time_steps, out=self._rows)
        self._now.body_pos_w.add_(self._env.scene.env_origins.unsqueeze(1))
        self._updates += 1

    @property
    def _stamp(self) -> tuple[int, int]:
        """Return a value that changes whenever the simulation advances."""
        return self._env.common_step_counter, self._updates

    def _relative_poses(self) -> tuple[torch.Tensor, torch.Tensor]:
        if self._relative_of != self._stamp:
            self.update_relative_body_poses()
        return self._relative

    def sampling_probabilities(self) -> torch.Tensor:
        """Return the probability that an episode begins in each bin, shape [bin_count]."""
        weights = torch.ones_like(self.bin_failed_count)
        if self.cfg.sampling_mode == "adaptive":
            weights = self.bin_failed_count + self.cfg.adaptive_uniform_ratio / self.bin_count
            # The cause of a failure is often in an earlier bin.
            padded = torch.nn.functional.pad(
                weights.view(1, 1, -1), (0, self._kernel.shape[-1] - 1), mode="replicate"
            )
            weights = torch.nn.functional.conv1d(padded, self._kernel).view(-1)
        return weights / weights.sum()

    def _put_robots(self, worlds: Worlds, noisy: bool) -> None:
        """Write the state of the current frames to the given worlds."""
        cfg = self.cfg
        frames = self.motion.split(self.motion.frames[worlds.take(self.time_steps)])
        joint_pos, joint_vel = frames[:2]
        pos, quat, linear, angular = (part[:, 0] for part in frames[2:])
        pos = pos + worlds.take(self._env.scene.env_origins)
        if noisy:
            pose = self.random.uniform(*pose_bounds(cfg.pose_range, self.device), (6,), worlds)
            pos = pos + pose[:, :3]
            quat = quat_mul(quat_from_euler_xyz(*pose[:, 3:].unbind(-1)), quat)
            low, high = pose_bounds(cfg.velocity_range, self.device)
            push = self.random.uniform(low, high, (6,), worlds)
            linear = linear + push[:, :3]
            angular = angular + push[:, 3:]
            shape = joint_pos.shape[1:]
            offset = self.random.uniform(*cfg.joint_position_range, shape, worlds)
            joint_pos = joint_pos + offset
            limits = worlds.take(self.robot.data.soft_joint_pos_limits)
            joint_pos = joint_pos.clamp(limits[..., 0], limits[..., 1])
        root = torch.cat([pos, quat, linear, angular], dim=1)
        self.robot.write_joint_state_to_sim(joint_pos, joint_vel, env_ids=worlds)
        self.robot.write_root_state_to_sim(root, worlds)

    # Building and drawing.

    def _check(self, cfg: MotionCommandCfg) -> None:
        """Check the configuration against the robot."""
        if self.robot.is_fixed_base:
            raise ValueError(
                f"MotionCommand moves '{cfg.entity_name}', whose base is fixed: name an entity "
                "with a free joint."
            )
        names = self.robot.body_names
        missing = [name for name in cfg.body_names if name not in names]
        if missing:
            raise ValueError(
                f"MotionCommandCfg.body_names has {missing}, which '{cfg.entity_name}' does not "
                f"have: choose among {list(names)}."
            )
        if cfg.anchor_body_name not in cfg.body_names:
            raise ValueError(
                f"The anchor '{cfg.anchor_body_name}' is not tracked: add it to "
                "MotionCommandCfg.body_names."
            )
        if cfg.sampling_mode not in _MODES:
            raise ValueError(
                f"MotionCommandCfg.sampling_mode is '{cfg.sampling_mode}': choose one of "
                f"{', '.join(_MODES)}."
            )
        for name, low, high in (
            ("adaptive_kernel_size", 1, np.inf),
            ("adaptive_lambda", 0.0, np.inf),
            ("adaptive_uniform_ratio", 1e-9, np.inf),
            ("adaptive_alpha", 0.0, 1.0),
        ):
            value = getattr(cfg, name)
            if not low <= value <= high:
                raise ValueError(
                    f"MotionCommandCfg.{name} is {value}: it must be at least {low} and at most "
                    f"{high}."
                )

    def _load(self) -> Motion:
        """Load the motion, and check that it is one of this robot at the control rate."""
        cfg = self.cfg
        robot = self.robot
        if cfg.motion_file:
            # Other programs write frames at the control rate without stating it.
            motion = Motion.load(cfg.motion_file, default_fps=1.0 / self._env.step_dt)
        elif cfg.motion_fn is not None:
            motion = cfg.motion_fn()
        else:
            raise ValueError(
                "The motion command has no motion: set MotionCommandCfg.motion_file to an NPZ file "
                "(`--env.commands.motion.motion-file FILE`; `manyworlds motion convert` makes "
                "one), or motion_fn."
            )
        for key, actual, names, expected in (
            ("joint_pos", motion.joint_pos.shape[1], motion.joint_names, robot.joint_names),
            ("body_pos_w", motion.body_pos_w.shape[1], motion.body_names, robot.body_names),
        ):
            if actual != len(expected) or (names and names != tuple(expected)):
                raise ValueError(
                    f"'{key}' of {motion.source} has {actual} elements {list(names)}, but "
                    f"'{cfg.entity_name}' has {len(expected)}, {list(expected)}: convert a "
                    "recording of this robot with `manyworlds motion convert`."
                )
        if abs(motion.fps * self._env.step_dt - 1.0) > 1e-3:
            rate = 1.0 / self._env.step_dt
            refuse(
                f"'fps' of {motion.source} is {motion.fps:g}, but the control rate is {rate:g} "
                f"per second: resample it by `manyworlds motion convert --output-fps {rate:g}`."
            )
        check_kinematics(motion, robot, self._env.sim.mj_model, cfg.entity_name)
        return motion

    def _debug_vis_impl(self, visualizer: DebugVisualizer) -> None:
        """Draw the motion at its pose in the world, as a transparent robot or as frames."""
        pos = self._now.body_pos_w
        quat = self._now.body_quat_w
        for env in visualizer.get_env_indices(self.num_envs):
            if self.cfg.viz.mode == "frames":
                matrices = matrix_from_quat(quat[env, 1:]).cpu().numpy()
                for point, matrix in zip(pos[env, 1:].cpu().numpy(), matrices, strict=True):
                    visualizer.add_frame(point, matrix, scale=0.1, axis_radius=0.005)
                continue
            root = torch.cat([pos[env, 0], quat[env, 0]])
            qpos = self._env.sim.data.qpos[env].cpu().numpy().copy()
            indexing = self.robot.indexing
            qpos[indexing.free_joint_q_adr.cpu().numpy()] = root.cpu().numpy()
            qpos[indexing.joint_q_adr.cpu().numpy()] = self.joint_pos[env].cpu().numpy()
            model = self._ghost_model()
            visualizer.add_ghost_mesh(
                qpos, model, alpha=self.cfg.viz.ghost_color[3], label="motion"
            )

    def _ghost_model(self) -> mujoco.MjModel:
        """Return the scene's model in the ghost's color, with only the robot visible."""
        if self._ghost is None:
            self._ghost = model = copy.copy(self._env.sim.mj_model)
            model.geom_matid[:] = -1
            robot = self.robot.indexing.geom_ids.cpu().numpy()
            others = np.setdiff1d(np.arange(model.ngeom), robot)
            model.geom_rgba[robot] = (*self.cfg.viz.ghost_color[:3], 1.0)
            model.geom_rgba[others, 3] = 0.0
        return self._ghost


def _norm(asked: torch.Tensor, actual: torch.Tensor) -> torch.Tensor:
    return torch.linalg.vector_norm(asked - actual, dim=-1)


_METRICS: dict[str, Callable[[MotionCommand], torch.Tensor]] = {
    "error_anchor_pos": lambda c: _norm(c.anchor_pos_w, c.robot_anchor_pos_w),
    "error_anchor_rot": lambda c: quat_error_magnitude(c.anchor_quat_w, c.robot_anchor_quat_w),
    "error_anchor_lin_vel": lambda c: _norm(c.anchor_lin_vel_w, c.robot_anchor_lin_vel_w),
    "error_anchor_ang_vel": lambda c: _norm(c.anchor_ang_vel_w, c.robot_anchor_ang_vel_w),
    "error_body_pos": lambda c: _norm(c.body_pos_relative_w, c.robot_body_pos_w).mean(dim=1),
    "error_body_rot": lambda c: quat_error_magnitude(
        c.body_quat_relative_w, c.robot_body_quat_w
    ).mean(dim=1),
    "error_body_lin_vel": lambda c: _norm(c.body_lin_vel_w, c.robot_body_lin_vel_w).mean(dim=1),
    "error_body_ang_vel": lambda c: _norm(c.body_ang_vel_w, c.robot_body_ang_vel_w).mean(dim=1),
    "error_joint_pos": lambda c: _norm(c.joint_pos, c.robot_joint_pos),
    "error_joint_vel": lambda c: _norm(c.joint_vel, c.robot_joint_vel),
}
"""Functions of the metrics of an episode's last step [m, rad, m/s, rad/s]."""
_SAMPLING = ("sampling_entropy", "sampling_top1_prob", "sampling_top1_bin")
