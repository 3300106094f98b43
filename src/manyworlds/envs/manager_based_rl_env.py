"""A vectorised environment put together from managers."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
import torch

from manyworlds.envs.mdp.events import reset_scene_to_default
from manyworlds.envs.types import VecEnvObs, VecEnvStepReturn
from manyworlds.managers import (
    ActionManager,
    ActionTermCfg,
    EventManager,
    EventTermCfg,
    ObservationGroupCfg,
    ObservationManager,
    RewardManager,
    RewardTermCfg,
    TerminationManager,
    TerminationTermCfg,
)
from manyworlds.scene import Scene, SceneCfg
from manyworlds.sim import Simulation, SimulationCfg, choose_device
from manyworlds.sim.status import status_counts
from manyworlds.utils.indices import EnvIds, resolve_env_ids
from manyworlds.utils.random import rng_state, seed_rng, set_rng_state
from manyworlds.utils.state import Stateful
from manyworlds.utils.viewer_config import ViewerConfig


def _default_events() -> dict[str, EventTermCfg | None]:
    return {
        "reset_scene_to_default": EventTermCfg(func=reset_scene_to_default, mode="reset"),
    }


@dataclass(kw_only=True)
class ManagerBasedRlEnvCfg:
    """A task: what exists, what is observed, done, rewarded, and when an episode ends."""

    decimation: int
    """Physics steps per control step."""
    scene: SceneCfg
    observations: dict[str, ObservationGroupCfg | None] = field(default_factory=dict)
    actions: dict[str, ActionTermCfg | None] = field(default_factory=dict)
    events: dict[str, EventTermCfg | None] = field(default_factory=_default_events)
    rewards: dict[str, RewardTermCfg | None] = field(default_factory=dict)
    terminations: dict[str, TerminationTermCfg | None] = field(default_factory=dict)
    seed: int | None = None
    """Seed of all random draws; None draws one."""
    sim: SimulationCfg = field(default_factory=SimulationCfg)
    viewer: ViewerConfig = field(default_factory=ViewerConfig)
    episode_length_s: float = 0.0
    """Length of an episode [s], for terminations that limit time."""
    is_finite_horizon: bool = False
    """Whether running out of time is part of the task, so that values are not bootstrapped."""
    auto_reset: bool = True
    """Whether `step` resets the worlds whose episode ended."""
    scale_rewards_by_dt: bool = True
    """Whether rewards are multiplied by the control period."""


class ManagerBasedRlEnv(Stateful):
    """Many worlds, each an episode of one task.

    Args:
        cfg: the task, which is copied.
        device: a torch device; None takes CUDA where there is one, else the CPU.

    Raises:
        ValueError: the configuration contradicts itself; the message names the term.
    """

    is_vector_env = True
    state_attributes = (
        "common_step_counter",
        "episode_length_buf",
        "reset_buf",
        "_must_reset",
        "obs_buf",
        "scene",
        "event_manager",
        "action_manager",
        "observation_manager",
        "termination_manager",
        "reward_manager",
    )

    def __init__(self, cfg: ManagerBasedRlEnvCfg, device: str | torch.device | None = None) -> None:
        if cfg.decimation < 1:
            raise ValueError(f"decimation must be at least 1, got {cfg.decimation}.")
        self.cfg = copy.deepcopy(cfg)
        self.seed_used = self.seed(-1 if cfg.seed is None else cfg.seed)
        self.num_envs = cfg.scene.num_envs
        self.device = choose_device(self.cfg.sim, device)
        self.scene = Scene(self.cfg.scene, self.device)
        self.sim = Simulation(self.num_envs, self.cfg.sim, spec=self.scene.spec, device=self.device)
        self.scene.initialize(self.sim.mj_model, self.sim.model, self.sim.data)
        if self.scene.sensor_context is not None:
            self.sim.set_sensor_context(self.scene.sensor_context)
        self.common_step_counter = 0
        self.episode_length_buf = self._zeros(torch.long)
        self.reset_buf = self._zeros(torch.bool)
        self.reset_terminated = self._zeros(torch.bool)
        self.reset_time_outs = self._zeros(torch.bool)
        self.reward_buf = self._zeros(torch.float32)
        self._must_reset = self._zeros(torch.bool)
        self.extras: dict[str, Any] = {"log": {}}
        self.obs_buf: VecEnvObs = {}
        self.load_managers()
        self._define_spaces()
        self.event_manager.apply("startup")
        self.reset()

    @property
    def physics_dt(self) -> float:
        """Physics timestep [s]."""
        return self.sim.timestep

    @property
    def step_dt(self) -> float:
        """Control period [s]."""
        return self.physics_dt * self.cfg.decimation

    @property
    def max_episode_length_s(self) -> float:
        """Length of an episode [s]."""
        return self.cfg.episode_length_s

    @property
    def max_episode_length(self) -> int:
        """Length of an episode in control steps."""
        return math.ceil(self.max_episode_length_s / self.step_dt - 1e-9)

    @property
    def unwrapped(self) -> ManagerBasedRlEnv:
        """The environment itself."""
        return self

    @staticmethod
    def seed(seed: int = -1) -> int:
        """Seed Python's, NumPy's and torch's generators; -1 draws a seed. Returns the seed."""
        if seed == -1:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        seed_rng(seed)
        return seed

    def load_managers(self) -> None:
        """Build the managers, in the order in which they may depend on each other."""
        self.event_manager = EventManager(self.cfg.events, self)
        self.sim.expand_model_fields(self.event_manager.domain_randomization_fields)
        self.action_manager = ActionManager(self.cfg.actions, self)
        self.observation_manager = ObservationManager(self.cfg.observations, self)
        self.termination_manager = TerminationManager(self.cfg.terminations, self)
        self.reward_manager = RewardManager(
            self.cfg.rewards, self, scale_by_dt=self.cfg.scale_rewards_by_dt
        )
        self._needs_substeps = self.action_manager.needs_substeps or self.scene.needs_substeps

    def reset(
        self,
        *,
        seed: int | None = None,
        env_ids: EnvIds = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[VecEnvObs, dict[str, Any]]:
        """Begin new episodes.

        Args:
            seed: seed for all random draws from here on; None goes on with the present ones.
            env_ids: the worlds; None for all.
            options: unused.

        Returns:
            Observations of all worlds, and extras.
        """
        if seed is not None:
            self.seed_used = self.seed(seed)
        ids = resolve_env_ids(env_ids, self.num_envs)
        self.extras = {"log": {}}
        if ids is None or ids.size:
            worlds = None if ids is None else torch.from_numpy(ids).long().to(self.device)
            self._reset_worlds(worlds)
            self.obs_buf = self.observation_manager.compute(update_history=True, env_ids=worlds)
        return self.obs_buf, self.extras

    def step(self, action: torch.Tensor) -> VecEnvStepReturn:
        """Advance every world by one control step of `step_dt`.

        The action is processed once and applied through `decimation` physics steps. Rewards,
        terminations and observations then see positions and velocities at the new state; what
        depends on accelerations (forces, accelerometers) is one physics step old. Step and
        interval events come next; worlds whose episode ended are reset last, so the observations
        returned for them are those of their new episode. If any event happened, kinematics are
        computed again before the observations.

        Args:
            action: shape [num_envs, total_action_dim].

        Returns:
            Observations by group, rewards [num_envs], terminated [num_envs], truncated [num_envs],
            and extras, whose "log" holds what finished episodes report, and under `Status/` how
            many worlds have each bit of `WorldStatus`.

        Raises:
            ValueError: the action has the wrong shape or is not finite.
            RuntimeError: without auto_reset, a finished world was not reset.
        """
        if not self.cfg.auto_reset and bool(self._must_reset.any()):
            worlds = self._must_reset.nonzero().squeeze(-1).tolist()
            raise RuntimeError(f"Environments {worlds} must be reset via reset(env_ids=...) first.")
        action = torch.as_tensor(action, dtype=torch.float32, device=self.device)
        self.action_manager.process_action(action.detach())
        self._step_physics()
        self.episode_length_buf += 1
        self.common_step_counter += 1
        self.reset_buf = self.termination_manager.compute()
        self.reward_buf = self.reward_manager.compute(self.step_dt)
        self.reset_terminated = self.termination_manager.terminated.clone()
        self.reset_time_outs = self.termination_manager.time_outs.clone()
        self.extras = {"log": {}}
        changed = self.event_manager.apply("step", dt=self.step_dt)
        changed |= self.event_manager.apply("interval", dt=self.step_dt)
        ids = self._read_host()
        if self.cfg.auto_reset:
            if len(ids):
                self._reset_worlds(ids)
        else:
            self._must_reset = self.reset_buf.clone()
        if changed:
            self.sim.forward()
            self.scene.invalidate_sensors()
        self.obs_buf = self.observation_manager.compute(update_history=True)
        return (
            self.obs_buf,
            self.reward_buf,
            self.reset_terminated,
            self.reset_time_outs,
            self.extras,
        )

    def get_observations(self) -> VecEnvObs:
        """The observations that the last step or reset returned."""
        return self.obs_buf

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on from here, the state of random generators included."""
        return {**super().state_dict(), "sim": self.sim.state_dict(), "rng": rng_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state that `state_dict` returned."""
        self.sim.load_state_dict(state["sim"])
        self.obs_buf = copy.deepcopy(self.obs_buf)  # users may still hold the present one
        super().load_state_dict(state)
        set_rng_state(state["rng"])

    def close(self) -> None:
        """Release nothing: memory goes with the object."""

    def _step_physics(self) -> None:
        if self._needs_substeps:
            for substep in range(self.cfg.decimation):
                self.action_manager.apply_action()
                self.scene.write_data_to_sim()
                self.sim.step(refresh=substep == self.cfg.decimation - 1)
                self.scene.update(self.physics_dt)
            return
        self.action_manager.apply_action()
        self.scene.write_data_to_sim()
        self.sim.step(self.cfg.decimation, refresh=True)
        self.scene.update(self.step_dt)

    def _read_host(self) -> torch.Tensor:
        """Log what went wrong; return ids of the worlds whose episode ended, on the device.

        The one place in a step where the host reads from the device.
        """
        codes = torch.add(self.reset_buf, self.sim.status, alpha=2).cpu().numpy()
        for name, count in status_counts(codes >> 1).items():
            self.extras["log"][f"Status/{name}"] = count
        return torch.from_numpy(np.flatnonzero(codes & 1)).to(self.device)

    def _reset_worlds(self, env_ids: torch.Tensor | None) -> None:
        self.sim.reset(env_ids)
        self.scene.reset(env_ids)
        self.event_manager.apply(
            "reset", env_ids=env_ids, global_env_step_count=self.common_step_counter
        )
        for manager in (
            self.observation_manager,
            self.action_manager,
            self.reward_manager,
            self.event_manager,
            self.termination_manager,
        ):
            self.extras["log"].update(manager.reset(env_ids))
        ids = slice(None) if env_ids is None else env_ids
        self.episode_length_buf[ids] = 0
        self._must_reset[ids] = False
        self.scene.write_data_to_sim()
        self.sim.forward(env_ids)
        self.scene.invalidate_sensors(env_ids)

    def _define_spaces(self) -> None:
        """Describe observations and actions in gymnasium's terms."""

        def box(shape: tuple[int, ...]) -> gymnasium.spaces.Box:
            return gymnasium.spaces.Box(-np.inf, np.inf, shape, np.float32)

        groups: dict[str, gymnasium.Space[Any]] = {}
        for name, dim in self.observation_manager.group_obs_dim.items():
            if isinstance(dim, list):
                terms = self.observation_manager.active_terms[name]
                shapes = zip(terms, dim, strict=True)
                groups[name] = gymnasium.spaces.Dict({term: box(shape) for term, shape in shapes})
            else:
                groups[name] = box(dim)
        batch = gymnasium.vector.utils.batch_space
        self.single_observation_space = gymnasium.spaces.Dict(groups)
        self.single_action_space = box((self.action_manager.total_action_dim,))
        self.observation_space = batch(self.single_observation_space, self.num_envs)
        self.action_space = batch(self.single_action_space, self.num_envs)

    def _zeros(self, dtype: torch.dtype) -> torch.Tensor:
        return torch.zeros(self.num_envs, dtype=dtype, device=self.device)
