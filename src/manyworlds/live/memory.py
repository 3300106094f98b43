"""Memory of the last seconds of all worlds, and of the worst episodes: what led to their ends.

Sparse states and actions are kept, from which a world's past is simulated again.
"""

from __future__ import annotations

import bisect
import collections
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.utils._pytree import tree_leaves

from manyworlds.live.edits import edit_log
from manyworlds.live.record import Coupling, RecordedStep, WorldRecord, quick_checksums
from manyworlds.live.snapshot import snapshot_of_state
from manyworlds.utils.state import WorldRows, state_of_one

if TYPE_CHECKING:
    from manyworlds.envs.manager_based_rl_env import ManagerBasedRlEnv

DEFAULT_BUDGET = 256 * 2**20
"""Largest size of a memory [bytes]."""
_SPARSE_STEPS = 50
_DIVERGED = "diverged"


@dataclass(frozen=True)
class _Step:
    """Control step of all worlds."""

    action: torch.Tensor
    checks: np.ndarray
    """Checksum of each world after the step, shape [num_envs]."""
    size: int
    """Size in memory [bytes]."""


@dataclass(frozen=True)
class _States:
    """States of some worlds before a step."""

    step: int
    env_ids: np.ndarray
    state: Mapping[str, Any]
    size: int


@dataclass(frozen=True)
class EndedEpisode:
    """End of an episode, and the control steps before it."""

    env_id: int
    step: int
    """Control steps of the batch until the end."""
    ended_by: tuple[str, ...]
    """Terminations that ended the episode."""
    length: int
    """Length of the episode [control steps]."""
    episode_return: float
    """Sum of rewards of the episode."""
    record: WorldRecord
    """Last seconds of the episode; its last step is the one that ended it."""
    size: int
    """Size of the record in memory [bytes]."""

    @property
    def text(self) -> str:
        """The end in one line."""
        return (
            f"world {self.env_id}: {', '.join(self.ended_by)} after {self.length} control steps, "
            f"return {self.episode_return:.4g}"
        )


class WorldMemory:
    """Remembers the last seconds of all worlds of a batch, which does not change by that.

    It observes the batch until `close`.

    The memory has the worst episodes of each rollout, too: those that ended by divergence first,
    then those that failed, then those that reached a time limit; among these by their returns.

    Args:
        env: the batch.
        seconds: time that is remembered, as far as the budget allows [s].
        budget: largest size of the memory [bytes]; a third of it is for the worst episodes.
        worst: number of episodes to keep of each rollout.
    """

    def __init__(
        self,
        env: ManagerBasedRlEnv,
        seconds: float = 10.0,
        budget: int = DEFAULT_BUDGET,
        worst: int = 4,
    ) -> None:
        if not env.sim.is_bit_exact:
            raise ValueError(
                f"The past is simulated by MuJoCo C, but the engine of these worlds is "
                f"{env.sim.engine}: set cfg.sim.engine = 'native'."
            )
        self._env = env
        self._worst_count = worst
        self._length = max(1, round(seconds / env.step_dt))
        self._budget = budget - budget // 3
        self._worst_budget = budget // 3
        self._coupling = Coupling(env)
        self._steps: collections.deque[_Step] = collections.deque()
        self._states: collections.deque[_States] = collections.deque()
        self._stepping = False
        self._now = 0
        """Number of steps so far."""
        self._first = 0
        """Number of the first remembered step."""
        self._recent_size = 0
        self._worst_size = 0
        self._returns = torch.zeros(env.num_envs, device=env.device)
        self._ends: list[EndedEpisode] = []
        self.worst: collections.deque[EndedEpisode] = collections.deque()
        """Worst episodes of the last rollouts, the latest last."""
        self._edits = len(edit_log(env).applied)
        self._lengths = env.episode_length_buf.clone()
        self._since = np.zeros(env.num_envs, dtype=np.int64)
        """Step from which each world can be simulated alone: no other world has had a part."""
        self._keep_states(np.arange(env.num_envs))
        self._action = torch.zeros(0)  # of the step that is under way
        env.observers.append(self)

    def close(self) -> None:
        """Observe no further steps."""
        self._env.observers.remove(self)

    @property
    def size(self) -> int:
        """Size of what is remembered [bytes]."""
        return self._recent_size + self._worst_size

    @property
    def seconds(self) -> float:
        """Time that is remembered now [s]."""
        return len(self._steps) * self._env.step_dt

    def before_step(self, action: torch.Tensor) -> None:
        """Remember the actions, shape [num_envs, num_actions]."""
        env = self._env
        lengths = env.episode_length_buf
        # What was changed since the last step cannot be simulated from before: by a step that has
        # failed, by an edit, or, as runners do at first, by new times in the episodes.
        edited = len(edit_log(env).applied) != self._edits
        if self._stepping or edited or not torch.equal(lengths, self._lengths):
            self.forget()
        self._stepping = True
        self._lengths = lengths.clone()
        self._action = action.detach().cpu().clone()
        self._coupling.begin()

    def after_step(self) -> None:
        """Remember the step."""
        self._stepping = False
        env = self._env
        coupled = self._coupling.worlds()
        checks = quick_checksums(env)
        size = self._action.nbytes + checks.nbytes
        self._steps.append(_Step(self._action, checks, size))
        self._recent_size += size
        self._now += 1
        self._returns += env.reward_buf
        ended = np.flatnonzero(env.reset_buf.cpu().numpy())
        for env_id in ended.tolist():
            self._note_end(env_id, int(self._lengths[env_id]) + 1)
        self._returns[env.reset_buf] = 0.0
        self._since[coupled] = self._now
        if self._now % _SPARSE_STEPS == 0:
            coupled[:] = True
        self._keep_states(np.flatnonzero(coupled))
        self._forget_old()
        self._lengths = env.episode_length_buf.clone()

    def end_rollout(self) -> None:
        """Choose the worst episodes since the last call."""
        chosen = self._ends
        self._ends = []
        self.worst.extend(chosen)
        self._worst_size += sum(end.size for end in chosen)
        while self.worst and self._worst_size > self._worst_budget:
            self._worst_size -= self.worst.popleft().size

    def past(self, env_id: int) -> WorldRecord:
        """Return the last seconds of a world's episode, as far as they are remembered.

        Raises:
            ValueError: there is no such world.
        """
        if not 0 <= env_id < self._env.num_envs:
            raise ValueError(
                f"There is no world {env_id}: the environment has {self._env.num_envs} worlds."
            )
        length = int(self._env.episode_length_buf[env_id])
        if not length or self._since[env_id] == self._now:
            raise ValueError(f"World {env_id} has just begun an episode: it has no past.")
        record = self._record(env_id, self._now, length)
        if record is None:
            raise ValueError(f"Nothing is remembered of world {env_id}: increase the budget.")
        return record

    def forget(self) -> None:
        """Begin again with the present state."""
        self._steps.clear()
        self._states.clear()
        self._recent_size = 0
        self._first = self._now
        self._edits = len(edit_log(self._env).applied)
        self._keep_states(np.arange(self._env.num_envs))

    def _note_end(self, env_id: int, length: int) -> None:
        """Keep the end of an episode if it is one of the worst since the last rollout."""
        terms = self._env.termination_manager
        ended_by = tuple(n for n in terms.active_terms if bool(terms.get_term(n)[env_id]))
        value = float(self._returns[env_id])
        badness = [self._badness(end.ended_by, end.episode_return) for end in self._ends]
        place = bisect.bisect(badness, self._badness(ended_by, value))
        if place >= self._worst_count:
            return
        record = self._record(env_id, self._now, length)
        if record is None:
            return
        size = _size(record.steps) + _size(record.snapshot.state)
        end = EndedEpisode(env_id, self._now, ended_by, length, value, record, size)
        self._ends.insert(place, end)
        del self._ends[self._worst_count :]

    def _badness(self, ended_by: tuple[str, ...], value: float) -> tuple[int, float]:
        """Return a key by which the worst episodes come first."""
        terms = self._env.termination_manager
        if _DIVERGED in ended_by:
            return 0, value
        if any(not terms.get_term_cfg(name).time_out for name in ended_by):
            return 1, value
        return 2, value

    def _record(self, env_id: int, until: int, length: int) -> WorldRecord | None:
        """Return a world's steps from the first remembered state of an episode on, if any."""
        start = max(until - length, int(self._since[env_id]))
        for states in self._states:
            if start <= states.step < until and (states.env_ids == env_id).any():
                break
        else:
            return None
        place = int(np.flatnonzero(states.env_ids == env_id)[0])
        state = {name: state_of_one(part, place) for name, part in states.state.items()}
        snapshot = snapshot_of_state(self._env, env_id, states.step, state)
        steps = [
            RecordedStep(
                action=step.action[env_id : env_id + 1].clone(),
                state=None,
                check=int(step.checks[env_id]),
            )
            for step in list(self._steps)[states.step - self._first : until - self._first]
        ]
        return WorldRecord(snapshot, steps)

    def _keep_states(self, env_ids: np.ndarray) -> None:
        if not env_ids.size:
            return
        state = self._env.world_states(torch.from_numpy(env_ids))
        self._states.append(_States(self._now, env_ids, state, _size(state)))
        self._recent_size += self._states[-1].size

    def _forget_old(self) -> None:
        """Leave out old steps, and states from which no remembered step begins."""
        while len(self._steps) > self._length or (
            len(self._steps) > 1 and self._recent_size > self._budget
        ):
            self._recent_size -= self._steps.popleft().size
            self._first += 1
            while self._states and self._states[0].step < self._first:
                self._recent_size -= self._states.popleft().size


def _size(value: object) -> int:
    """Return the size of all tensors in a value [bytes]."""
    total = 0
    for leaf in tree_leaves(value, is_leaf=lambda item: isinstance(item, WorldRows)):
        if isinstance(leaf, WorldRows):
            total += leaf.rows.nbytes
        elif isinstance(leaf, torch.Tensor):
            total += leaf.nbytes
        elif isinstance(leaf, RecordedStep):
            total += leaf.action.nbytes
    return total
