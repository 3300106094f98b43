"""Record of some control steps of one world of a batch, and its repetition in one world."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from manyworlds.envs.types import VecEnvStepReturn
from manyworlds.live.snapshot import WorldSnapshot, take_snapshot
from manyworlds.utils.plain_archive import pack, unpack

if TYPE_CHECKING:
    from manyworlds.envs.manager_based_rl_env import ManagerBasedRlEnv
    from manyworlds.managers import CommandTerm


_ODD = 0x9E3779B97F4A7C15


@dataclass(frozen=True)
class RecordedStep:
    """Control step of one world."""

    action: torch.Tensor
    """Action, shape [1, num_actions]."""
    state: dict[str, Any] | None
    """State after the step if other worlds had a part in it, as at the start of an episode; else
    None."""
    check: int
    """Checksum of the physics and the observations after the step."""


@dataclass
class WorldRecord:
    """Moment of a world, and the control steps that followed."""

    snapshot: WorldSnapshot
    steps: list[RecordedStep] = field(default_factory=list)

    def to_bytes(self) -> bytes:
        """Return the record as an NPZ archive, which runs no code when it is read."""
        steps = [asdict(step) | {"state": step.state} for step in self.steps]
        return pack({"moment": self.snapshot.to_bytes(), "steps": steps})

    @classmethod
    def from_bytes(cls, data: bytes) -> WorldRecord:
        """Read what `to_bytes` returned.

        Raises:
            ValueError: the bytes are damaged, or are something else.
        """
        content: Any = unpack(data)
        try:
            steps = [RecordedStep(**step) for step in content["steps"]]
            return cls(WorldSnapshot.from_bytes(content["moment"]), steps)
        except (TypeError, KeyError) as error:
            raise ValueError(
                f"These bytes are no record of a world ({type(error).__name__}: {error}): write it "
                "with the version of manyworlds that reads it."
            ) from None


class Coupling:
    """Tells in which worlds a step depended on other worlds, too.

    These are the worlds whose episode began, since curricula choose how, and those with new
    commands that do: see `CommandTerm.is_coupled`.

    Args:
        env: the batch.
    """

    def __init__(self, env: ManagerBasedRlEnv) -> None:
        self._env = env
        self._counters: list[torch.Tensor] = []

    def begin(self) -> None:
        """Begin a step."""
        self._counters = [term.command_counter.clone() for term in self._terms()]

    def worlds(self) -> np.ndarray:
        """Return the mask of these worlds after the step, shape [num_envs]."""
        coupled = self._env.reset_buf.clone()
        for term, before in zip(self._terms(), self._counters, strict=True):
            coupled |= term.command_counter != before
        return coupled.cpu().numpy()

    def _terms(self) -> list[CommandTerm]:
        manager = self._env.command_manager
        terms = [manager.get_term(name) for name in manager.active_terms]
        # A curriculum, which all worlds advance, may change what commands are drawn from.
        if self._env.curriculum_manager.active_terms:
            return terms
        return [term for term in terms if term.is_coupled]


class WorldRecorder:
    """Records the steps of some worlds of a batch, which does not change by that.

    It observes the batch while it records.

    Args:
        env: the batch.
    """

    def __init__(self, env: ManagerBasedRlEnv) -> None:
        self._env = env
        self._coupling = Coupling(env)
        self._records: dict[int, WorldRecord] = {}
        self._action = torch.zeros(0)  # of the step that is under way
        self._stepping = False

    @property
    def env_ids(self) -> list[int]:
        """The worlds that are recorded."""
        return list(self._records)

    def start(self, env_id: int) -> WorldRecord:
        """Begin a record of a world with its present moment; the record grows from now on.

        Raises:
            ValueError: there is no such world, or the engine is not bit-exact.
        """
        record = WorldRecord(take_snapshot(self._env, env_id))
        if self not in self._env.observers:
            self._env.observers.append(self)
        self._records[env_id] = record
        return record

    def stop(self, env_id: int) -> None:
        """End the record of a world."""
        self._records.pop(env_id, None)
        if not self._records and self in self._env.observers:
            self._env.observers.remove(self)

    def before_step(self, action: torch.Tensor) -> None:
        """Begin to record a step; end all records if the last step has failed.

        What a failed step did to a world is not known, so that no step after it can be repeated.
        """
        if self._stepping:
            self._records.clear()
        self._stepping = True
        self._action = action.detach().cpu().clone()
        self._coupling.begin()

    def after_step(self) -> None:
        """Record the step."""
        self._stepping = False
        coupled = self._coupling.worlds()
        for i, record in self._records.items():
            state = None
            if coupled[i]:
                state = self._env.world_state(i)
            action = self._action[i : i + 1].clone()
            record.steps.append(RecordedStep(action, state, checksum(self._env, i)))
        if not self._records:
            self._env.observers.remove(self)


class WorldReplay:
    """Repeats recorded steps in an environment of one world, for callers that drive it.

    It ends after the last step, or at the first step that is not the recorded one.

    Args:
        env: the environment, at the moment of the record.
        steps: the recorded steps.
        check: function that returns the checksum that the steps have.
    """

    def __init__(
        self,
        env: ManagerBasedRlEnv,
        steps: Sequence[RecordedStep],
        check: Callable[[ManagerBasedRlEnv, int], int] | None = None,
    ) -> None:
        self._env = env
        self._check = check or checksum
        self._steps = steps
        self.done = 0
        """Number of steps that were equal to the recorded ones, bit for bit."""
        self.ended = ""
        """Reason why the replay has ended; empty while it goes on."""
        if not steps:
            self.ended = "The record has no steps."

    def begin(self) -> torch.Tensor:
        """Return the action of the next step, shape [1, num_actions]."""
        return self._steps[self.done].action

    def end(self) -> None:
        """Compare a step with the record, and prepare for the next one."""
        step = self._steps[self.done]
        if step.state is not None:
            self._env.load_state_dict(step.state)
        if self._check(self._env, 0) != step.check:
            self.stop(f"Step {self.done + 1} is not equal to the recorded one.")
            return
        self.done += 1
        if self.done == len(self._steps):
            self.stop(f"All {self.done} recorded steps are repeated.")

    def skip(self, count: int, before: Callable[[], object]) -> None:
        """Make steps of the environment at once.

        Args:
            count: number of steps; fewer are made if the replay ends before.
            before: called before each step, for example a policy with a memory.
        """
        for _ in range(count):
            if self.ended:
                return
            before()
            action = self.begin()
            with torch.no_grad():
                step_past_end(self._env, action)
            self.end()

    def stop(self, reason: str) -> None:
        """End the replay."""
        self.ended = self.ended or reason


def repeat(env: ManagerBasedRlEnv, steps: Sequence[RecordedStep]) -> Iterable[VecEnvStepReturn]:
    """Step an environment of one world through recorded steps, and yield their results.

    Args:
        env: the environment, at the moment of the record; see `env_from_snapshot`.
        steps: the recorded steps.

    Raises:
        RuntimeError: a step is not equal to the recorded one.
    """
    replay = WorldReplay(env, steps)
    while not replay.ended:
        result = env.step(replay.begin())
        replay.end()
        yield result
    if replay.done < len(steps):
        raise RuntimeError(replay.ended)


def step_past_end(env: ManagerBasedRlEnv, action: torch.Tensor) -> None:
    """Make a control step, also of a world whose episode has ended without a reset."""
    for _ in env.substeps(action):
        pass


def checksum(env: ManagerBasedRlEnv, env_id: int) -> int:
    """Return a checksum of the physics and the observations of a world."""
    state = env.sim.get_state([env_id])["state"]
    total = zlib.crc32(state.cpu().numpy().tobytes())
    for tensor in _leaves(env.obs_buf):
        row = tensor[env_id].detach().cpu().numpy()
        total = zlib.crc32(np.ascontiguousarray(row).tobytes(), total)
    return total


def quick_checksums(env: ManagerBasedRlEnv) -> np.ndarray:
    """Return a checksum of positions, velocities and observations of each world, [num_envs]."""
    data = env.sim.data
    total = np.zeros(env.num_envs, np.uint64)
    for tensor in (data.qpos, data.qvel, *_leaves(env.obs_buf)):
        rows = tensor.detach().float().cpu().contiguous().numpy().reshape(env.num_envs, -1)
        factors = np.arange(1, 2 * rows.shape[1], 2, dtype=np.uint64) * np.uint64(_ODD)
        total = total * np.uint64(_ODD) + (rows.view(np.uint32) * factors).sum(axis=1)
    return total >> np.uint64(1)


def quick_checksum(env: ManagerBasedRlEnv, env_id: int) -> int:
    """Return the checksum of one world; see `quick_checksums`."""
    return int(quick_checksums(env)[env_id])


def _leaves(value: Any) -> Iterable[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    else:
        for name in sorted(value):
            yield from _leaves(value[name])
