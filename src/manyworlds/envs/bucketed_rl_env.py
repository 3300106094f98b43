"""Environment whose worlds have different topology: buckets of worlds that share one model."""

from __future__ import annotations

import copy
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from typing import Any, NamedTuple, NoReturn

import gymnasium
import numpy as np
import torch

from manyworlds.envs.buckets import assign_buckets, blame_bucket, mask_of, model_cfgs, rows_of
from manyworlds.envs.manager_based_rl_env import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.envs.types import Extras, SubstepStage, VecEnvObs, VecEnvStepReturn
from manyworlds.scene.scene import world_ids_of
from manyworlds.sim import Simulation, choose_device
from manyworlds.sim.diagnostics.status import quiet_mujoco
from manyworlds.utils.devices import usable_cores
from manyworlds.utils.seeding import new_seed
from manyworlds.utils.world_random import WorldRandom
from manyworlds.validation.worlds import EnvIds, Worlds

_COUNTS = ("Status/", "Episode_Termination/")
"""Prefixes of logged numbers of worlds."""


class Part(NamedTuple):
    """Worlds of a `BucketedRlEnv` that share one model."""

    names: tuple[str, ...]
    """Names of their buckets: one, or several of equal topology with `merge_buckets`."""
    env: ManagerBasedRlEnv
    """Environment of these worlds alone."""
    rows: torch.Tensor
    """Indices of its worlds among those of the whole environment, ascending, shape [n]."""


class BucketedRlEnv(ManagerBasedRlEnv):
    """Vectorized environment of worlds with different models: other robots, objects or joints.

    The worlds are divided into the buckets of `cfg.scene.buckets`. Each bucket is a
    `ManagerBasedRlEnv` of its own, in which the terms of the task find the bucket's entities. This
    environment steps all of them, and joins their values by world: observations and actions have
    the shapes of the largest bucket, padded with zeros; see `bucket_cfgs`. A term that is marked as
    `optional` may lack its entity in some buckets.

    Each world equals, bit for bit on the native engine, the same world in an environment of its
    bucket alone. On the CPU one thread computes terms while others step the physics of further
    buckets, and helps them while it would wait; users' terms that draw from torch's own generator
    get their numbers in the order of the buckets' sizes.

    Scene, simulation and managers belong to the buckets: `env.buckets["a"].scene`. With
    `cfg.scene.merge_buckets`, buckets of equal topology share these: they are variants of one model
    (see `VariantEntityCfg`), and an environment has the worlds of all of them.

    Args:
        cfg: the task; it is copied.
        device: torch device; None selects CUDA if it is available, else the CPU.
        render_mode: "rgb_array" to get images of the bucket of world `cfg.viewer.env_idx` from
            `render`; None for no rendering.

    Raises:
        ValueError: the configuration is inconsistent; the message names the bucket and the term.
    """

    def __init__(
        self,
        cfg: ManagerBasedRlEnvCfg,
        device: str | torch.device | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.cfg = copy.deepcopy(cfg)
        self.render_mode = render_mode
        self.num_envs = cfg.scene.num_envs
        """Number of worlds of all buckets."""
        self.device = choose_device(self.cfg.sim, device)
        """Device of the tensors."""
        if self.cfg.seed is None:
            self.cfg.seed = new_seed()
        self.seed_used = self.cfg.seed
        self.extras: dict[str, Any] = {"log": {}}
        self.obs_buf: VecEnvObs = {}
        scene = cfg.scene
        assigned = assign_buckets(scene)
        here = assigned[scene.first_world : scene.first_world + scene.num_envs]
        self.world_to_bucket = torch.from_numpy(here.copy()).to(self.device)
        """Index of each world's bucket in `cfg.scene.buckets`, shape [num_envs]."""
        ids = world_ids_of(scene)
        self.random_streams = WorldRandom(self.num_envs, self.device, self.seed_used, ids)
        """Random numbers of the worlds for what belongs to no bucket, such as noise of actions."""
        self._parts: list[Part] = []
        threads = self.cfg.sim.num_threads or usable_cores()
        names = list(scene.buckets)
        for shared, part in model_cfgs(self.cfg).items():
            rows = rows_of(scene, mask_of(scene, assigned, shared))
            share = len(rows) / self.num_envs
            part.sim.num_threads = max(1, round(threads * share))
            mode = None
            if cfg.viewer.env_idx in rows:
                mode = render_mode
            with blame_bucket(", ".join(shared)):
                env = ManagerBasedRlEnv(part, self.device, mode)
            self._parts.append(Part(shared, env, torch.from_numpy(rows).to(self.device)))
        present = {names[index] for index in here.tolist()}
        envs = {name: part.env for part in self._parts for name in part.names}
        self.buckets: dict[str, ManagerBasedRlEnv] = {
            name: envs[name] for name in names if name in present
        }
        """Environment of each bucket that has worlds here, by name."""
        if self.device.type == "cpu" and len(self._parts) > 1 and threads > 1:
            pool = ThreadPoolExecutor(threads - 1, thread_name_prefix="manyworlds-physics")
            for part in self._parts:
                part.env.physics_pool = pool
        self._helped = 0.0
        """Time in which the calling thread took physics steps of waiting buckets [s]."""
        self._returns = torch.zeros(self.num_envs, device=self.device)
        """Sum of rewards over each world's running episode, shape [num_envs]."""
        order = torch.cat([part.rows for part in self._parts])
        self._places: torch.Tensor | None = None
        """Place of each world in the buckets' values one after another; None if they are equal."""
        if not torch.equal(order, torch.arange(self.num_envs, device=self.device)):
            self._places = order.argsort()
        first = self._parts[0].env
        self.physics_dt = first.physics_dt
        self.step_dt = first.step_dt
        self.single_observation_space = first.single_observation_space
        self.single_action_space = first.single_action_space
        batch = gymnasium.vector.utils.batch_space
        self.observation_space = batch(self.single_observation_space, self.num_envs)
        self.action_space = batch(self.single_action_space, self.num_envs)
        self._collect()
        # Small buckets are launched first, so that there soon are terms to compute.
        self._order = sorted(
            self._parts, key=lambda part: part.env.num_envs * part.env.sim.mj_model.nv
        )

    def __getattr__(self, name: str) -> NoReturn:
        """Raise an error: what one model has belongs to the buckets."""
        buckets = vars(self).get("buckets", {})
        if not name.startswith("_") and any(name in vars(env) for env in buckets.values()):
            first = next(iter(buckets))
            raise AttributeError(
                f"'{name}' belongs to each of {len(buckets)} buckets: take that of one, as in "
                f"env.buckets['{first}'].{name}."
            )
        raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'.")

    @property
    def unwrapped(self) -> BucketedRlEnv:
        """Environment itself."""
        return self

    @property
    def physics_time(self) -> float:
        """Time of physics steps so far [s], without what passes while terms are computed."""
        return self._helped + sum(part.env.physics_time for part in self._parts)

    @property
    def common_step_counter(self) -> int:
        """Number of control steps so far."""
        return self._parts[0].env.common_step_counter

    @common_step_counter.setter
    def common_step_counter(self, value: int) -> None:
        for part in self._parts:
            part.env.common_step_counter = value

    @property
    def episode_length_buf(self) -> torch.Tensor:
        """Control steps since each world's last reset, shape [num_envs]; a copy.

        Assigning a tensor sets the values in the buckets.
        """
        return self._joined([part.env.episode_length_buf for part in self._parts])

    @episode_length_buf.setter
    def episode_length_buf(self, value: torch.Tensor) -> None:
        for part in self._parts:
            part.env.episode_length_buf.copy_(value[part.rows])

    @property
    def reset_buf(self) -> torch.Tensor:
        """Mask of the worlds whose episode ended in the last step, shape [num_envs]."""
        return self._joined([part.env.reset_buf for part in self._parts])

    def bucket_of(self, world: int) -> tuple[str, int]:
        """Return the bucket of a world, and the world's index in the bucket's environment.

        Raises:
            ValueError: there is no such world.
        """
        for part in self._parts:
            found = (part.rows == world).nonzero()
            if len(found):
                bucket = int(self.world_to_bucket[world])
                return list(self.cfg.scene.buckets)[bucket], int(found)
        raise ValueError(f"There is no world {world}: the environment has {self.num_envs} worlds.")

    def seed(self, seed: int = -1) -> int:
        """Seed the random numbers of the worlds; -1 samples a seed. Returns the seed."""
        if seed == -1:
            seed = new_seed()
        for part in self._parts:
            part.env.seed(seed)
        self.random_streams.reseed(seed)
        return seed

    def reset(
        self,
        *,
        seed: int | None = None,
        env_ids: EnvIds = None,
        options: dict[str, object] | None = None,
    ) -> tuple[VecEnvObs, Extras]:
        """Start new episodes; see `ManagerBasedRlEnv.reset`."""
        if seed is not None:
            self.seed_used = seed
            self.random_streams.reseed(seed)
        mask = Worlds.of(env_ids, self.num_envs, self.device).mask
        for part in self._parts:
            part.env.reset(seed=seed, env_ids=mask[part.rows], options=options)
        self._returns[mask] = 0.0
        self._collect()
        return self.obs_buf, self.extras

    def step(self, action: torch.Tensor) -> VecEnvStepReturn:
        """Advance every world by one control step; see `ManagerBasedRlEnv.step`.

        Args:
            action: unprocessed actions, shape [num_envs, widest total_action_dim]. A bucket reads
                the first columns of each term.

        Returns:
            Observations by group, rewards [num_envs], terminated [num_envs], truncated [num_envs],
            and extras of all worlds. Values of "log" are means over the worlds whose episode ended,
            but for counts under "Status/" and "Episode_Termination/", which are summed.
            "Bucket_Reward/<name>" is the mean reward per second of the episodes that ended in a
            bucket, NaN without any.

        Raises:
            ValueError: the action has the wrong shape or is not finite, or a term with the
                nan_policy "error" is not finite.
            RuntimeError: without auto_reset, a finished world was not reset.
        """
        action = torch.as_tensor(action, dtype=torch.float32, device=self.device)
        width = self.single_action_space.shape
        if action.shape != (self.num_envs, *width):
            raise ValueError(
                f"The action has shape {tuple(action.shape)}, expected {(self.num_envs, *width)}."
            )
        running: deque[tuple[Simulation, Iterator[SubstepStage]]] = deque()
        for part in self._order:
            steps = part.env.substeps(action[part.rows], merge=True)
            running.append((part.env.sim, steps))
        # While physics runs on the pool, this thread computes the terms of another bucket.
        with quiet_mujoco():
            try:
                while running:
                    sim, steps = running.popleft()
                    # Until the next bucket's physics is done, help with that of the last ones.
                    began = time.perf_counter()
                    while sim.is_stepping():
                        if not any(other.take_launched() for other, _ in reversed(running)):
                            break
                    self._helped += time.perf_counter() - began
                    if next(steps, None) is not None:
                        running.append((sim, steps))
            finally:
                for part in self._parts:
                    part.env.sim.finish()
        envs = [part.env for part in self._parts]
        reward = self._joined([env.reward_buf for env in envs])
        self._returns += reward
        self._collect()
        self._log_buckets()
        return (
            self.obs_buf,
            reward,
            self._joined([env.reset_terminated for env in envs]),
            self._joined([env.reset_time_outs for env in envs]),
            self.extras,
        )

    def reporting_later(self) -> AbstractContextManager[object]:
        """Read the reports of captured control steps at the end of this context, at once."""
        stack = ExitStack()
        for part in self._parts:
            stack.enter_context(part.env.reporting_later())
        return stack

    def set_auto_reset(self, on: bool) -> None:
        """Change the setting `auto_reset`, which no checkpoint contains."""
        self.cfg.auto_reset = on
        for part in self._parts:
            part.env.set_auto_reset(on)

    def state_dict(self) -> dict[str, object]:
        """Return everything that is needed to continue, random generators included."""
        return {
            "buckets": {"+".join(part.names): part.env.state_dict() for part in self._parts},
            "random": self.random_streams.state_dict(),
            "returns": self._returns.clone(),
            "common_step_counter": self.common_step_counter,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load a state that `state_dict` returned.

        Raises:
            ValueError: the state is that of other buckets.
        """
        saved = list(state["buckets"])
        own = ["+".join(part.names) for part in self._parts]
        if saved != own:
            raise ValueError(
                f"The saved state has the buckets {saved}, but the environment has {own}: use the "
                "configuration that the state was saved with."
            )
        for part, values in zip(self._parts, state["buckets"].values(), strict=True):
            part.env.load_state_dict(values)
        self.random_streams.load_state_dict(state["random"])
        self._returns.copy_(state.get("returns", torch.zeros_like(self._returns)))
        self._collect()

    def render(self) -> np.ndarray | None:
        """Render the bucket of world `cfg.viewer.env_idx`; see `ManagerBasedRlEnv.render`."""
        name, _ = self.bucket_of(self.cfg.viewer.env_idx)
        return self.buckets[name].render()

    def close(self) -> None:
        """Close the buckets, and end the threads."""
        for part in self._parts:
            part.env.close()
        pool = self._parts[0].env.physics_pool
        if pool is not None:
            pool.shutdown()

    def _joined(self, values: list[torch.Tensor]) -> torch.Tensor:
        """Return the values of all buckets by world, shape [num_envs, ...]."""
        joined = torch.cat(values)
        if self._places is not None:
            joined = joined[self._places]
        return joined

    def _joined_tree(self, values: list[Any]) -> Any:
        """Return dicts of values by world; see `_joined`."""
        if isinstance(values[0], dict):
            return {key: self._joined_tree([each[key] for each in values]) for key in values[0]}
        return self._joined(values)

    def _collect(self) -> None:
        """Join the observations and the extras of all buckets."""
        envs = [part.env for part in self._parts]
        self.obs_buf = self._joined_tree([env.obs_buf for env in envs])
        self.extras = {"log": self._log()}
        if any("final_obs" in env.extras for env in envs):
            # The rows of worlds that continue have no meaning.
            final = [env.extras.get("final_obs", env.obs_buf) for env in envs]
            self.extras["final_obs"] = self._joined_tree(final)
        common = set.intersection(*(set(env.extras) for env in envs)) - {"log", "final_obs"}
        for key in sorted(common):
            values = [env.extras[key] for env in envs]
            if all(isinstance(value, torch.Tensor) and value.ndim for value in values):
                self.extras[key] = self._joined(values)

    def _log(self) -> dict[str, Any]:
        """Join the logged values of all buckets; see `step`."""
        logs = [part.env.extras["log"] for part in self._parts]
        names = list(dict.fromkeys(name for log in logs for name in log))
        if not names:
            return {}
        counts = [name for name in names if name.startswith(_COUNTS)]
        means = [name for name in names if not name.startswith(_COUNTS)]
        missing = torch.full((), torch.nan, device=self.device)
        rows: list[torch.Tensor] = []
        for log in logs:
            row = [log.get(name, missing) for name in (*counts, *means)]
            row = [torch.as_tensor(value, device=self.device).float() for value in row]
            rows.append(torch.stack(row))
        values = torch.stack(rows)
        ended = torch.stack([part.env.reset_buf.sum() for part in self._parts])
        # A curriculum's value counts even where no episode ended.
        weights = values.isfinite() * ended.clamp(min=1e-6)[:, None]
        values = values.nan_to_num()
        totals = values.sum(dim=0)
        averages = (values * weights).sum(dim=0) / weights.sum(dim=0)
        joined = [*totals[: len(counts)].unbind(), *averages[len(counts) :].unbind()]
        return dict(zip((*counts, *means), joined, strict=True))

    def _log_buckets(self) -> None:
        """Log the rewards of the episodes that ended, by bucket."""
        ended = self.reset_buf
        num_buckets = len(self.cfg.scene.buckets)
        counts = torch.bincount(self.world_to_bucket, ended.float(), num_buckets)
        sums = torch.bincount(self.world_to_bucket, self._returns * ended, num_buckets)
        means = sums / counts / (self._parts[0].env.max_episode_length_s or 1.0)
        names = [f"Bucket_Reward/{name}" for name in self.cfg.scene.buckets]
        self.extras["log"] |= dict(zip(names, means.unbind(), strict=True))
        self._returns.masked_fill_(ended, 0.0)


def make_env(
    cfg: ManagerBasedRlEnvCfg,
    device: str | torch.device | None = None,
    render_mode: str | None = None,
) -> ManagerBasedRlEnv | BucketedRlEnv:
    """Make the environment of a task: `BucketedRlEnv` if its scene has buckets.

    Args:
        cfg: the task; it is copied.
        device: torch device; None selects CUDA if it is available, else the CPU.
        render_mode: "rgb_array" to get images from `render`; None for no rendering.

    Raises:
        ValueError: the configuration is inconsistent.
    """
    if cfg.scene.buckets:
        return BucketedRlEnv(cfg, device, render_mode)
    return ManagerBasedRlEnv(cfg, device, render_mode)
