"""Vectorized environment that is composed of managers."""

from __future__ import annotations

import contextlib
import copy
import pkgutil
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import gymnasium
import mujoco
import numpy as np
import torch

from manyworlds.envs.build_notes import warn_of_doubts
from manyworlds.envs.config_checks import check_episode_length, check_numbers
from manyworlds.envs.env_spaces import action_space, observation_space
from manyworlds.envs.mdp.events import reset_scene_to_default
from manyworlds.envs.step_graph import StepGraph, captured
from manyworlds.envs.types import Extras, StepObserver, SubstepStage, VecEnvObs, VecEnvStepReturn
from manyworlds.managers import (
    ActionManager,
    ActionTermCfg,
    CommandManager,
    CommandTermCfg,
    CurriculumManager,
    CurriculumTermCfg,
    EventManager,
    EventTermCfg,
    MetricsManager,
    MetricsTermCfg,
    NullCommandManager,
    NullCurriculumManager,
    NullMetricsManager,
    NullRecorderManager,
    ObservationGroupCfg,
    ObservationManager,
    RecorderManager,
    RecorderTermCfg,
    RewardManager,
    RewardTermCfg,
    TerminationManager,
    TerminationTermCfg,
)
from manyworlds.managers.not_finite import NotFiniteReport
from manyworlds.scene import Scene, SceneCfg
from manyworlds.sim import Simulation, SimulationCfg, choose_device
from manyworlds.sim.diagnostics.status import FATAL, status_counts
from manyworlds.utils.clocks import steps_in
from manyworlds.utils.debug_visualizer import DebugVisualizer, Drawable
from manyworlds.utils.declared import declared
from manyworlds.utils.devices import DeviceTimer
from manyworlds.utils.memory import check_memory
from manyworlds.utils.seeding import MAX_SEED, new_seed, rng_state, seed_rng, set_rng_state
from manyworlds.utils.state import HasState, Stateful, WorldRows
from manyworlds.utils.unsaved_state import UnsavedState
from manyworlds.utils.viewer_config import ViewerConfig
from manyworlds.validation.host_reads import reads_are_free
from manyworlds.validation.worlds import EnvIds, Worlds

_LEAST_BYTES = 1000
"""Least memory of a world: one of a cart-pole takes 1,570 bytes."""


@dataclass(kw_only=True)
class ManagerBasedRlEnvCfg:
    """Configuration of a task: scene, simulation, and the terms of all managers."""

    decimation: int
    """Number of physics steps per control step."""
    scene: SceneCfg
    observations: dict[str, ObservationGroupCfg] = field(default_factory=dict)
    actions: dict[str, ActionTermCfg] = field(default_factory=dict)
    events: dict[str, EventTermCfg] = field(
        default_factory=lambda: {
            "reset_scene_to_default": EventTermCfg(func=reset_scene_to_default, mode="reset")
        }
    )
    rewards: dict[str, RewardTermCfg] = field(default_factory=dict)
    terminations: dict[str, TerminationTermCfg] = field(default_factory=dict)
    commands: dict[str, CommandTermCfg] = field(default_factory=dict)
    curriculum: dict[str, CurriculumTermCfg] = field(default_factory=dict)
    metrics: dict[str, MetricsTermCfg] = field(default_factory=dict)
    recorders: dict[str, RecorderTermCfg] = field(default_factory=dict)
    seed: int | None = None
    """Seed of all random numbers; None samples a seed."""
    sim: SimulationCfg = field(default_factory=SimulationCfg)
    viewer: ViewerConfig = field(default_factory=ViewerConfig)
    episode_length_s: float = 0.0
    """Maximum length of an episode [s], for terminations that limit time."""
    is_finite_horizon: bool = False
    """True if the time limit is part of the task, so that values are not bootstrapped."""
    auto_reset: bool = True
    """Reset worlds whose episode ended within `step`."""
    scale_rewards_by_dt: bool = True
    """Multiply rewards by the control period."""


class ManagerBasedRlEnv(Stateful):
    """Vectorized environment: many worlds, each of which runs episodes of one task.

    Args:
        cfg: the task; it is copied.
        device: torch device; None selects CUDA if it is available, else the CPU.
        render_mode: "rgb_array" to get images from `render`; None for no rendering.

    Raises:
        ValueError: the configuration is inconsistent; the message names the term.
    """

    is_vector_env = True
    metadata: ClassVar[dict[str, Any]] = {
        "render_modes": [None, "rgb_array"],
        "mujoco_version": mujoco.__version__,
        "autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP,
    }
    renderer_factory: ClassVar[str] = "manyworlds.viewer:attach_renderer"
    """Function that attaches a `renderer` to an environment; given by name, because rendering
    belongs to a higher layer."""
    num_envs: int = declared()
    """Number of worlds."""
    device: torch.device = declared()
    """Device of the tensors."""
    physics_dt: float = declared()
    """Physics timestep [s]."""
    step_dt: float = declared()
    """Control period [s]."""
    state_attributes = (
        "common_step_counter",
        "episode_length_buf",
        "reset_buf",
        "has_stepped",
        "_must_reset",
        "obs_buf",
        "scene",
        "event_manager",
        "command_manager",
        "action_manager",
        "observation_manager",
        "termination_manager",
        "reward_manager",
        "curriculum_manager",
        "metrics_manager",
        "recorder_manager",
    )
    # Set by every step. `extras` is only for the caller, and rendering is not part of the state;
    # the seed has had its effect, and the generators are part of it.
    derived_attributes = (
        "extras",
        "reset_terminated",
        "reset_time_outs",
        "reward_buf",
        "render_mode",
        "renderer",
        "physics_time",
        "_physics_timer",
        "seed_used",
        "observers",
        "attached_states",
        "resetting",
        "_not_finite",
        "physics_pool",
        "step_graph",
    )

    def __init__(
        self,
        cfg: ManagerBasedRlEnvCfg,
        device: str | torch.device | None = None,
        render_mode: str | None = None,
    ) -> None:
        check_numbers(cfg)
        if render_mode not in (None, "human", "rgb_array"):
            raise ValueError(f"render_mode must be None or 'rgb_array', got '{render_mode}'.")
        self.cfg = copy.deepcopy(cfg)
        self.render_mode = render_mode
        self.renderer: Callable[[], np.ndarray] | None = None
        """Renderer of the worlds; if None, the first `render` creates one according to
        `cfg.viewer`."""
        self.seed_used = new_seed() if cfg.seed is None else cfg.seed
        self._seed_generators(self.seed_used)
        self.num_envs = cfg.scene.num_envs
        self.device = choose_device(self.cfg.sim, device)
        if self.device.type == "cpu":
            check_memory("an environment", self.num_envs, _LEAST_BYTES)
        self.scene = Scene(self.cfg.scene, self.device)
        self.random_streams = self.scene.random
        """Random numbers of the worlds, by name of what draws them."""
        self.random_streams.reseed(self.seed_used)
        self.random = self.random_streams.stream("env")
        """Random numbers of the term that is called: see `RandomStream`."""
        self.scene.keep_substeps(cfg.decimation)
        self.sim = Simulation(
            self.num_envs,
            self.cfg.sim,
            spec=self.scene.spec,
            device=self.device,
            variant_info=self.scene.collect_variant_info(),
        )
        self.physics_dt = self.sim.timestep
        self.step_dt = self.physics_dt * cfg.decimation
        check_episode_length(cfg, self.step_dt)
        self.scene.initialize(self.sim.mj_model, self.sim.model, self.sim.data)
        if self.scene.sensor_context is not None:
            self.sim.set_sensor_context(self.scene.sensor_context)
        self.physics_time = 0.0
        """Time of the physics steps of all control steps so far [s], actuators included."""
        self._physics_timer = DeviceTimer(self.device)
        self.common_step_counter = 0
        self.episode_length_buf = self._zeros(torch.long)
        self.reset_buf = self._zeros(torch.bool)
        self.reset_terminated = self._zeros(torch.bool)
        self.reset_time_outs = self._zeros(torch.bool)
        self.reward_buf = self._zeros(torch.float32)
        self.has_stepped = self._zeros(torch.bool)
        """Mask of the worlds that have stepped since their last reset, shape [num_envs]: those
        that end an episode when they are reset."""
        self.resetting = self._zeros(torch.bool)
        """Mask of the worlds whose episode has ended and that are reset in the running step, shape
        [num_envs]."""
        self._must_reset = torch.zeros(self.num_envs, dtype=torch.bool)  # on the host
        self.extras: dict[str, Any] = {"log": {}}
        self.obs_buf: VecEnvObs = {}
        self.observers: list[StepObserver] = []
        """Objects that see every control step: `before_step` in their order, `after_step` in the
        reverse one."""
        self.attached_states: dict[str, HasState] = {}
        """Objects that are saved with the environment, by name; see `attach_state`."""
        self.physics_pool: Executor | None = None
        """Threads on which physics steps run, while others work with other environments: `substeps`
        with `merge` yields "launched" meanwhile. None for the thread that calls."""
        self.step_graph: StepGraph | None = None
        """Captured control step; None where Python makes each one."""
        self.load_managers()
        self._define_spaces()
        self.event_manager.apply("startup")
        ManagerBasedRlEnv.reset(self)  # a subclass is not complete yet
        warn_of_doubts(self)
        others = (self.sim, self.sim.data, self.sim.model)
        self._unsaved_state = UnsavedState(self, "env", self.sim.bound_tensors, others)
        if cfg.sim.capture != "off":
            self.step_graph = captured(self, strict=cfg.sim.capture == "full")

    @property
    def max_episode_length_s(self) -> float:
        """Maximum length of an episode [s]."""
        return self.cfg.episode_length_s

    @property
    def max_episode_length(self) -> int:
        """Maximum length of an episode [control steps]."""
        return steps_in(self.cfg.episode_length_s, self.step_dt)

    @property
    def unwrapped(self) -> ManagerBasedRlEnv:
        """Environment itself."""
        return self

    def seed(self, seed: int = -1) -> int:
        """Seed the random numbers of the worlds, and Python's, NumPy's and torch's generators.

        Args:
            seed: the seed; -1 samples one.

        Returns:
            The seed.
        """
        if seed == -1:
            seed = new_seed()
        self._seed_generators(seed)
        self.random_streams.reseed(seed)
        return seed

    def _seed_generators(self, seed: int) -> None:
        """Seed what all worlds share; processes with other worlds of a batch draw other numbers."""
        seed_rng(seed)
        first_world = self.cfg.scene.first_world
        if first_world:
            seed_rng((seed + first_world) % MAX_SEED)

    def load_managers(self) -> None:
        """Build the managers, in order of their dependencies."""
        cfg = self.cfg
        self.use_events(EventManager(cfg.events, self))
        self.event_manager.check_terms()
        self.command_manager: CommandManager = NullCommandManager()
        if any(cfg.commands.values()):
            self.command_manager = CommandManager(cfg.commands, self)
        self.action_manager = ActionManager(cfg.actions, self)
        self.observation_manager = ObservationManager(cfg.observations, self)
        self.termination_manager = TerminationManager(cfg.terminations, self)
        self.reward_manager = RewardManager(cfg.rewards, self, scale_by_dt=cfg.scale_rewards_by_dt)
        self.curriculum_manager: CurriculumManager = NullCurriculumManager()
        if any(cfg.curriculum.values()):
            self.curriculum_manager = CurriculumManager(cfg.curriculum, self)
        self.metrics_manager: MetricsManager = NullMetricsManager()
        if any(cfg.metrics.values()):
            self.metrics_manager = MetricsManager(cfg.metrics, self)
        self.recorder_manager: RecorderManager = NullRecorderManager()
        if any(cfg.recorders.values()):
            self.recorder_manager = RecorderManager(cfg.recorders, self)
        self._needs_substeps = (
            self.action_manager.needs_substeps
            or self.scene.needs_substeps
            or self.metrics_manager.needs_substeps
        )
        self._not_finite = NotFiniteReport(
            (
                self.termination_manager,
                self.reward_manager,
                self.metrics_manager,
                self.command_manager,
                self.observation_manager,
            )
        )
        self.setup_manager_visualizers()

    def use_events(self, manager: EventManager) -> None:
        """Apply the events of a manager from now on; see `EventManager.with_term`."""
        self.event_manager = manager
        self._forget_graph()
        self.sim.expand_model_fields(manager.domain_randomization_fields)
        self.sim.after_assignment = manager.after_assignment

    def _forget_graph(self) -> None:
        """Capture the control step again, because tensors are replaced."""
        if self.step_graph is not None:
            self.step_graph.forget()

    def setup_manager_visualizers(self) -> None:
        """Collect the managers and sensors that have a `debug_vis`."""
        self.manager_visualizers: dict[str, Drawable] = {
            name: manager
            for name, manager in vars(self).items()
            if name.endswith("_manager") and hasattr(manager, "debug_vis")
        }
        self.manager_visualizers.update(self.scene.sensors)

    def reset(
        self,
        *,
        seed: int | None = None,
        env_ids: EnvIds = None,
        options: dict[str, object] | None = None,
    ) -> tuple[VecEnvObs, Extras]:
        """Start new episodes.

        The log describes the episodes that end: those of worlds that have stepped since their last
        reset. Curricula and recorders are given only these worlds.

        Args:
            seed: seed of all random numbers from now on; None keeps the current generators.
            env_ids: ids of the worlds; None for all.
            options: unused.

        Returns:
            Observations of all worlds by group, shape [num_envs, ...], and extras.
        """
        self._forget_graph()
        worlds = Worlds.of(env_ids, self.num_envs, self.device).ascending
        self.extras = {"log": {}}
        if not worlds:
            if seed is not None:
                self.seed_used = self.seed(seed)
            return self.obs_buf, self.extras
        stepped = self.has_stepped[worlds.ids]
        ended = worlds
        if not stepped.all():
            ended = Worlds(worlds.ids[stepped], self.num_envs, self.device)
        if ended:
            self.recorder_manager.record_pre_reset(ended)
        self._reset_worlds(worlds, ended, seed)
        self._must_reset[worlds.host_rows] = False
        # The given worlds start an episode, the others do not advance.
        begin = None if worlds.is_all else worlds
        self.obs_buf = self.observation_manager.compute(update_history=True, env_ids=begin)
        self.recorder_manager.record_post_reset(worlds)
        return self.obs_buf, self.extras

    def step(self, action: torch.Tensor) -> VecEnvStepReturn:
        """Advance every world by one control step of `step_dt`.

        The action is processed once and applied in `decimation` physics steps. Terminations,
        rewards and metrics are then computed with positions and velocities of the new state;
        quantities that depend on accelerations (forces, accelerometers) are one physics step old.
        Step and interval events follow, and kinematics are recomputed where any was applied.
        Commands advance. Then worlds whose episode ended are observed for the last time and reset;
        and observations are computed, so that those of finished worlds belong to the new episode.
        The page "What is valid when" of the documentation has a table of all quantities.

        On a GPU, the host synchronizes once, to read ended episodes and expired intervals. Commands
        that select worlds by ids and terms that read values on the host synchronize once more.

        Args:
            action: unprocessed actions, shape [num_envs, total_action_dim].

        Returns:
            Observations by group, rewards [num_envs], terminated [num_envs], truncated [num_envs],
            and extras, which are created in every step:

            - "log": values about finished episodes, and under `Status/` the number of worlds with
                each bit of `WorldStatus`, and with values of rewards and other terms that are not
                finite. Values may be tensors on the device, and NaN where no episode ended.
            - "final_obs", if auto_reset reset worlds, and on a GPU in each step: observations in
                the form of the first value. The rows of finished worlds are the observations of
                their final state, delays and history included; the other rows have no meaning.
                Noise is sampled again; delays, histories and noise models do not advance. Values
                that are not finite are zero, unless the group's nan_policy is "disabled".

        Raises:
            ValueError: the action has the wrong shape or is not finite, or a term with the
                nan_policy "error" is not finite.
            RuntimeError: without auto_reset, a finished world was not reset.
        """
        for _ in self.substeps(action, merge=True):
            pass  # nobody looks between the physics steps
        return (
            self.obs_buf,
            self.reward_buf,
            self.reset_terminated,
            self.reset_time_outs,
            self.extras,
        )

    def substeps(
        self, action: torch.Tensor | None, done: int = 0, *, merge: bool = False
    ) -> Iterator[SubstepStage]:
        """Make a control step, from its first line to its last, and yield at each physics step.

        "controls" follows the controls of a physics step, which the caller may change, and
        "physics" the physics step itself. After the last iteration, `obs_buf`, `reward_buf`,
        `reset_terminated`, `reset_time_outs` and `extras` are what `step` returns, bit for bit.
        Worlds whose episode ended may continue without a reset if `auto_reset` is off. A control
        step that is not iterated to its end is given up by the next one, or by `reset`.

        Args:
            action: unprocessed actions, shape [num_envs, total_action_dim]; None continues the
                control step of a loaded state, which includes the processed actions.
            done: number of physics steps that were made before that state was saved.
            merge: whether to make all physics steps in one call of the engine, without yielding,
                if nothing is computed between them, and to require that finished worlds were reset.

        Raises:
            ValueError: the action has the wrong shape or is not finite, or a term with the
                nan_policy "error" is not finite.
        """
        if merge and not self.cfg.auto_reset and self._must_reset.numpy().any():
            worlds = np.flatnonzero(self._must_reset.numpy()).tolist()
            raise RuntimeError(f"Environments {worlds} must be reset via reset(env_ids=...) first.")
        self.extras = {"log": {}}
        observed = action is not None  # observers see whole control steps
        if action is not None:
            action = torch.as_tensor(action, dtype=torch.float32, device=self.device)
            for observer in self.observers:  # the first one may wait, and another one be added
                observer.before_step(action)
            action = action.detach()
        graph = self.step_graph if merge else None
        self._physics_timer.enabled = graph is None
        if graph is not None and action is not None:
            report = graph.step(action)
        else:
            if self.step_graph is not None:
                self.step_graph.forget()
            report = yield from self.on_device(action, done, merge=merge)
        if report is not None:
            self._tell(*report, self.extras["log"])
        if observed:
            for observer in self.observers[::-1]:
                observer.after_step()

    def on_device(
        self, action: torch.Tensor | None, done: int = 0, *, merge: bool = False
    ) -> Generator[SubstepStage, None, tuple[torch.Tensor, int] | None]:
        """Make the part of a control step that can be captured as a CUDA graph; see `substeps`.

        Returns:
            The first arguments of `_tell`, which reads them on the host; None if it has.
        """
        if action is not None:
            self.action_manager.process_action(action)
        self._physics_timer.start()
        yield from self._physics_steps(done, merge)
        self._physics_timer.stop()

        # Terminations, rewards and metrics see the new state.
        self.episode_length_buf += 1
        self.has_stepped.fill_(True)
        self.common_step_counter += 1
        self.reset_buf = self.termination_manager.compute()
        self.reward_buf = self.reward_manager.compute(self.step_dt)
        self.metrics_manager.compute()
        self.reset_terminated = self.termination_manager.terminated.clone()
        self.reset_time_outs = self.termination_manager.time_outs.clone()

        # Worlds are named by ids; or by masks where the host would wait for the device, and reads
        # the report when the step is complete.
        due: torch.Tensor | np.ndarray = self.event_manager.tick(self.step_dt)
        codes = torch.add(self.reset_buf, self.sim.status, alpha=2)
        values = [codes.unsqueeze(0), due]
        masks = self._not_finite.masks()
        if masks:
            values.append(torch.stack(masks))
        report = torch.cat(values), len(due)
        if reads_are_free(self.device):
            finished, due = self._tell(*report, self.extras["log"])
            report = None
        else:
            finished = Worlds.masked(self.reset_buf)
        if not self.cfg.auto_reset:
            finished = None

        # Events change worlds during an episode.
        self.event_manager.apply("step", dt=self.step_dt)
        self.event_manager.apply("interval", dt=self.step_dt, due=due)
        self.sim.refresh()

        # Worlds that end their episode keep their command until they are reset.
        if finished is not None:
            self.resetting.copy_(self.reset_buf)
        self.command_manager.compute(dt=self.step_dt)
        self.sim.refresh()

        # Worlds whose episode ended are observed for the last time, and begin the next one.
        if finished is not None:
            with self.random_streams.only(finished.mask):
                self.extras["final_obs"] = self.observation_manager.compute_final()
            self.recorder_manager.record_pre_reset(finished)
            self._reset_worlds(finished, ended=finished)
            self.resetting.fill_(False)
        self.obs_buf = self.observation_manager.compute(update_history=True)
        if finished is not None:
            self.recorder_manager.record_post_reset(finished)
        self.recorder_manager.record_post_step()
        return report

    def reporting_later(self) -> AbstractContextManager[object]:
        """Read the reports of all captured control steps at the end of this context, at once.

        Numbers of worlds under `Status/` are written to the logs of their steps then, and values
        that are not finite are named by manager. Steps that are not captured, without auto_reset,
        or with the nan_policy "error" of a term are read when they are complete.
        """
        if self.step_graph is None or not self.cfg.auto_reset or self._not_finite.raises:
            return contextlib.nullcontext()
        return self.step_graph.reporting_later(self._tell)

    def _tell(
        self, report: torch.Tensor, num_timers: int, log: dict[str, object]
    ) -> tuple[Worlds | None, np.ndarray]:
        """Log and name what has gone wrong in a control step; the only transfer to the host.

        Args:
            report: all that the host reads of a control step, shape [rows, num_envs]: which
                episodes end and which worlds have errors, which intervals of events have expired,
                and masks of worlds where values are not finite.
            num_timers: number of intervals of events.
            log: log of the step, to which numbers of worlds are added.

        Returns:
            The worlds whose episode ended, None if there are none, and the flags of expired
            intervals, shape [num_timers, num_envs].
        """
        host = report.cpu().numpy()
        ended = (host[0] & 1) != 0
        status = host[0] >> 1
        due = host[1 : 1 + num_timers]
        not_finite = host[1 + num_timers :]
        self.physics_time += self._physics_timer.elapsed()  # a GPU has done this work by now
        for name, count in status_counts(status).items():
            log[f"Status/{name}"] = count
        if not_finite.any():
            diverged = ended & ((status & int(FATAL)) != 0)
            is_over = log is not self.extras["log"]
            log.update(self._not_finite.tell(not_finite, diverged, is_over=is_over))
        if not self.cfg.auto_reset:
            self._must_reset.copy_(torch.from_numpy(ended))
        finished = None
        if ended.any():
            finished = Worlds(ended, self.num_envs, self.device)
        return finished, due

    def _physics_steps(self, done: int, merge: bool) -> Iterator[SubstepStage]:
        """Make the physics steps of a control step; see `substeps`."""
        if merge and not self._needs_substeps:
            self.action_manager.apply_action()
            self.scene.write_data_to_sim()
            if self.physics_pool is None:
                self.sim.step(self.cfg.decimation, refresh=True)
            else:
                yield from self._launch(self.physics_pool, self.cfg.decimation, refresh=True)
            self.scene.update(self.step_dt)
            return
        for substep in range(done, self.cfg.decimation):
            # Without terms and actuators that need each physics step, controls stay the same.
            if substep == 0 or self._needs_substeps:
                self.action_manager.apply_action()
                self.scene.write_data_to_sim()
            yield "controls"
            last = substep == self.cfg.decimation - 1
            refresh = last or self.scene.needs_refresh(self.physics_dt)
            if self.physics_pool is None or not merge:
                self.sim.step(refresh=refresh)
            else:
                yield from self._launch(self.physics_pool, 1, refresh)
            if self._needs_substeps:
                self.scene.update(self.physics_dt)
                if self.metrics_manager.needs_substeps:
                    self.metrics_manager.compute_substep()
            elif last:
                self.scene.update(self.step_dt)
            yield "physics"

    def _launch(self, pool: Executor, nsubsteps: int, refresh: bool) -> Iterator[SubstepStage]:
        """Make physics steps on a thread, during which the caller may do other work."""
        self.sim.launch(pool, nsubsteps, refresh=refresh)
        began = time.perf_counter()
        yield "launched"
        self._physics_timer.leave_out(time.perf_counter() - began)
        self.sim.finish()

    def get_observations(self) -> VecEnvObs:
        """Return the observations of the last step or reset, by group, shape [num_envs, ...]."""
        return self.obs_buf

    def set_auto_reset(self, on: bool) -> None:
        """Change the setting `auto_reset`, which no checkpoint contains."""
        self.cfg.auto_reset = on
        self._unsaved_state.accept(self, "cfg")

    def state_dict(self) -> dict[str, object]:
        """Return everything that is needed to continue, including the state of random generators.

        Warn once about each attribute that has changed since the build and is not included.
        """
        self._unsaved_state.warn()
        return {**super().state_dict(), "sim": self.sim.state_dict(), "rng": rng_state()}

    def saved_values(self) -> dict[str, object]:
        """Return the saved values of the environment, and attached states that are not empty."""
        attached = {name: part for name, part in self.attached_states.items() if part.state_dict()}
        return {**super().saved_values(), **attached}

    def attach_state(self, name: str, part: HasState) -> None:
        """Save an object with the environment from now on, and load it before all else.

        Args:
            name: name of its state in that of the environment.
            part: the object; while its state is empty, that of the environment does not contain it.

        Raises:
            ValueError: the name is taken.
        """
        if name in (*self.state_attributes, "sim", "rng", *self.attached_states):
            raise ValueError(f"The state of the environment has '{name}': choose another name.")
        self.attached_states[name] = part

    def world_state(self, env_id: int) -> dict[str, object]:
        """Return everything that is needed to continue one world in an environment of its own.

        `load_state_dict` of an environment of one world accepts it; see `fork_env`.
        Random generators and recorders belong to all worlds and are left out.

        Args:
            env_id: index of the world.

        Raises:
            ValueError: there is no such world.
        """
        if not 0 <= env_id < self.num_envs:
            raise ValueError(
                f"There is no world {env_id}: the environment has {self.num_envs} worlds."
            )
        self._unsaved_state.warn()
        return self._state_of(env_id) | {"sim": self.sim.get_state([env_id])}

    def world_states(self, env_ids: torch.Tensor) -> dict[str, object]:
        """Return `world_state` of several worlds at once, shape [n]; see `state_of_one`."""
        rows = {name: WorldRows(row, 0) for name, row in self.sim.get_state(env_ids).items()}
        return self._state_of(env_ids) | {"sim": rows}

    def _state_of(self, env_id: int | torch.Tensor) -> dict[str, object]:
        state = self._rows_of(self.saved_values(), env_id, self.num_envs)
        return state | {"recorder_manager": {"terms": {}}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load a state that `state_dict` or `world_state` returned, attached states first.

        Raises:
            ValueError: the state does not fit, or the object is not attached whose state it has.
        """
        known = {*self.state_attributes, "sim", "rng", *self.attached_states}
        unknown = sorted(set(state) - known)
        if unknown:
            raise ValueError(
                f"The saved state has {unknown}, which no part of this environment loads: attach "
                "their owners first, see `attach_state`; for 'edits', call "
                "`manyworlds.live.edit_log(env)`, or give `on_runner=RunEdits` to `train`."
            )
        self._forget_graph()
        for name, part in self.attached_states.items():
            part.load_state_dict(state.get(name, {}))
        self.sim.load_state_dict(state["sim"])
        self.obs_buf = copy.deepcopy(self.obs_buf)  # callers may still hold the current one
        # Checkpoints of earlier versions lack it; they were saved between steps.
        state = {"has_stepped": torch.ones(self.num_envs, dtype=torch.bool)} | state
        super().load_state_dict(state)
        if "rng" in state:  # not in the state of one world
            set_rng_state(state["rng"])

    def render(self) -> np.ndarray | None:
        """Render the world `cfg.viewer.env_idx` and its neighbors in their current state.

        Returns:
            An RGB image, uint8, shape [height, width, 3]; None unless `render_mode` is "rgb_array".

        Raises:
            RuntimeError: no working OpenGL is found; the message says what to install.
        """
        if self.render_mode != "rgb_array":
            return None
        if self.renderer is None:
            pkgutil.resolve_name(self.renderer_factory)(self)
            assert self.renderer is not None
        return self.renderer()

    def update_visualizers(self, visualizer: DebugVisualizer) -> None:
        """Draw the managers and sensors whose visualization is enabled."""
        for source in self.manager_visualizers.values():
            source.debug_vis(visualizer)

    def close(self) -> None:
        """Close the recorders and release the renderer's OpenGL context."""
        self.recorder_manager.close()
        self.renderer = None

    def _reset_worlds(self, worlds: Worlds, ended: Worlds, seed: int | None = None) -> None:
        """Start new episodes.

        Args:
            worlds: the worlds.
            ended: those of them that end an episode, which the log describes: `worlds` itself if
                all do.
            seed: seed of all random numbers of the new episodes; None keeps the generators.
        """
        log = self.extras["log"]
        self.event_manager.end_episodes(ended)
        self.curriculum_manager.compute(ended)
        if ended is not worlds:
            if ended:
                log.update(self._reset_managers(ended))
            # The episodes of the other worlds were counted when they ended.
            self.termination_manager.clear(worlds)
        if seed is not None:
            self.seed_used = self.seed(seed)
        self.sim.reset(worlds)
        self.sim.outdate(worlds)
        self.scene.reset(worlds)
        self.event_manager.apply(
            "reset", env_ids=worlds, global_env_step_count=self.common_step_counter
        )
        values = self._reset_managers(worlds)
        if ended is worlds:
            log.update(values)
        worlds.put(self.episode_length_buf, 0)
        worlds.put(self.has_stepped, False)
        self.scene.write_data_to_sim(worlds)
        self.sim.forward(worlds)
        self.command_manager.compute(dt=0.0, env_ids=worlds)

    def _reset_managers(self, worlds: Worlds) -> dict[str, object]:
        """Reset what managers keep of given worlds; return the values that they log."""
        log: dict[str, object] = {}
        for manager in (
            self.observation_manager,
            self.action_manager,
            self.reward_manager,
            self.metrics_manager,
            self.curriculum_manager,
        ):
            log.update(manager.reset(worlds))
        log.update(self.command_manager.reset(worlds))
        log.update(self.event_manager.reset(worlds))
        log.update(self.termination_manager.reset(worlds))
        return log

    def _define_spaces(self) -> None:
        """Define the gymnasium spaces of observations and actions."""
        self.single_observation_space = observation_space(self.observation_manager)
        self.single_action_space = action_space(self.action_manager)
        batch = gymnasium.vector.utils.batch_space
        self.observation_space = batch(self.single_observation_space, self.num_envs)
        self.action_space = batch(self.single_action_space, self.num_envs)

    def _zeros(self, dtype: torch.dtype) -> torch.Tensor:
        return torch.zeros(self.num_envs, dtype=dtype, device=self.device)
