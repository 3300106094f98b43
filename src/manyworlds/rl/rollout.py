"""Rollouts: storage for learning, and collection on another device than the learner's."""

from __future__ import annotations

import copy
import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from rsl_rl.models import MLPModel
from rsl_rl.storage import RolloutStorage
from tensordict import TensorDict

_ALIGNMENT = 16  # bytes, for views of any type


class ShuffledStorage(RolloutStorage):
    """rsl_rl's storage, which shuffles a rollout once instead of once per epoch.

    rsl_rl divides all epochs into the same mini-batches, whose rows it collects in each epoch. The
    mini-batches have the same values here, as slices of one shuffled copy.
    """

    @classmethod
    def like(cls, storage: RolloutStorage) -> ShuffledStorage:
        """Create an empty storage with the sizes of another."""
        return cls(
            storage.training_type,
            storage.num_envs,
            storage.num_transitions_per_env,
            storage.observations[0],  # type: ignore[arg-type]
            storage.actions_shape,
            storage.device,
        )

    def mini_batch_generator(
        self, num_mini_batches: int, num_epochs: int = 8
    ) -> Generator[RolloutStorage.Batch, None, None]:
        """Generate the mini-batches of all epochs, of shape [worlds * steps / mini-batches, ...].

        Args:
            num_mini_batches: number of mini-batches of an epoch.
            num_epochs: number of epochs.
        """
        size = self.num_envs * self.num_transitions_per_env // num_mini_batches
        order = torch.randperm(num_mini_batches * size, device=self.device)
        assert self.distribution_params is not None, "a rollout was stored"
        rows = {
            "observations": self.observations,
            "actions": self.actions,
            "values": self.values,
            "advantages": self.advantages,
            "returns": self.returns,
            "old_actions_log_prob": self.actions_log_prob,
        }
        shuffled: dict[str, Any] = {k: v.flatten(0, 1)[order] for k, v in rows.items()}
        params = [p.flatten(0, 1)[order] for p in self.distribution_params]
        for _ in range(num_epochs):
            for start in range(0, num_mini_batches * size, size):
                part = slice(start, start + size)
                yield RolloutStorage.Batch(
                    **{name: value[part] for name, value in shuffled.items()},
                    old_distribution_params=tuple(p[part] for p in params),
                )


@dataclass(frozen=True)
class Step:
    """One control step of a rollout."""

    observations: TensorDict
    """Observations before the step, by group, shape [worlds, ...]."""
    actions: torch.Tensor
    """Actions, shape [worlds, actions]."""
    next_observations: TensorDict
    """Observations after the step."""
    rewards: torch.Tensor
    """Rewards, shape [worlds]."""
    dones: torch.Tensor
    """Ends of episodes, shape [worlds]."""
    extras: dict[str, Any]
    """Time-outs and final observations, if the environment reports them."""


class Block:
    """Tensors in one piece of memory, which moves to another device as a whole.

    Args:
        shapes: shape and type of each tensor.
        device: device of the memory, which is zero at first.
    """

    def __init__(
        self, shapes: Mapping[str, tuple[Sequence[int], torch.dtype]], device: torch.device | str
    ) -> None:
        self._layout: dict[str, tuple[Sequence[int], torch.dtype, int, int]] = {}
        end = 0
        for name, (shape, dtype) in shapes.items():
            start = end + -end % _ALIGNMENT
            end = start + math.prod(shape) * dtype.itemsize
            self._layout[name] = shape, dtype, start, end
        self._memory = torch.zeros(end, dtype=torch.uint8, device=device)
        self.tensors = self._views(self._memory)
        """Tensors, to be written in place."""

    def to(self, device: torch.device | str) -> dict[str, torch.Tensor]:
        """Return the tensors on another device, in their shapes, copied there at once."""
        return self._views(self._memory.to(device))

    def _views(self, memory: torch.Tensor) -> dict[str, torch.Tensor]:
        return {
            name: memory[start:end].view(dtype).view(shape)
            for name, (shape, dtype, start, end) in self._layout.items()
        }


class Collector:
    """Policy and rollout on the device of the worlds, for a learner on another device.

    Control steps are recorded into one block of memory, which moves to the learner once per
    rollout; the weights of the policy move in the other direction, as one block, too.

    Args:
        policy: the learner's policy, which is copied.
        obs: observations by group, shape [worlds, ...], on any device.
        num_actions: number of actions.
        num_steps: number of control steps of a rollout.
        device: device of the worlds.
    """

    def __init__(
        self,
        policy: MLPModel,
        obs: TensorDict,
        num_actions: int,
        num_steps: int,
        device: torch.device,
    ) -> None:
        self._source = policy
        self.policy = copy.deepcopy(policy).to(device)
        self._device = device
        self._step = 0
        self._has_time_outs = False
        row = (num_steps, obs.batch_size[0])
        shapes = {name: (tuple(value.shape), value.dtype) for name, value in obs.items()}
        self._block = Block(
            {
                "actions": ((*row, num_actions), torch.float32),
                "rewards": (row, torch.float32),
                "dones": (row, torch.long),
                "time_outs": (row, torch.bool),
                **{f"obs/{n}": ((num_steps + 1, *s), dtype) for n, (s, dtype) in shapes.items()},
                **{f"final_obs/{n}": ((num_steps, *s), dtype) for n, (s, dtype) in shapes.items()},
            },
            device,
        )
        state = policy.state_dict().items()
        self._weights = Block(
            {n: (v.shape, v.dtype) for n, v in state}, next(policy.parameters()).device
        )

    def act(self, obs: TensorDict) -> torch.Tensor:
        """Sample actions, shape [worlds, actions], with the learner's weights at the first step."""
        if self._step == 0:
            self._fetch_weights()
            self._write("obs", obs, 0)
        actions = self.policy(obs, stochastic_output=True)
        self._block.tensors["actions"][self._step].copy_(actions)
        return actions

    def record(
        self,
        obs: TensorDict,
        rewards: torch.Tensor,
        dones: torch.Tensor,
        extras: Mapping[str, object],
    ) -> None:
        """Record the result of the actions: next observations, rewards, dones and extras."""
        tensors = self._block.tensors
        step = self._step
        tensors["rewards"][step].copy_(rewards)
        tensors["dones"][step].copy_(dones)
        self._has_time_outs = "time_outs" in extras
        if self._has_time_outs:
            tensors["time_outs"][step].copy_(cast("torch.Tensor", extras["time_outs"]))
        if "final_obs" in extras:
            self._write("final_obs", cast("TensorDict", extras["final_obs"]), step)
        self._step += 1
        self._write("obs", obs, self._step)
        self.policy.reset(dones)

    def take(self, device: torch.device | str) -> Iterator[Step]:
        """Move the rollout to a device, yield its steps, and begin the next rollout."""
        moved = self._block.to(device)
        count = self._step
        self._step = 0
        for i in range(count):
            extras: dict[str, Any] = {}
            if self._has_time_outs:
                final_obs = _group(moved, "final_obs", i)
                extras = {"time_outs": moved["time_outs"][i], "final_obs": final_obs}
            yield Step(
                observations=_group(moved, "obs", i),
                actions=moved["actions"][i],
                next_observations=_group(moved, "obs", i + 1),
                rewards=moved["rewards"][i],
                dones=moved["dones"][i],
                extras=extras,
            )

    def _write(self, kind: str, obs: TensorDict, step: int) -> None:
        for name, value in obs.items():
            self._block.tensors[f"{kind}/{name}"][step].copy_(cast("torch.Tensor", value))

    def _fetch_weights(self) -> None:
        for name, value in self._source.state_dict().items():
            self._weights.tensors[name].copy_(value)
        self.policy.load_state_dict(self._weights.to(self._device))
        self.policy.train(self._source.training)


def _group(tensors: Mapping[str, torch.Tensor], kind: str, step: int) -> TensorDict:
    """Return the observations of one step, by group."""
    rows = {
        n.removeprefix(f"{kind}/"): v[step] for n, v in tensors.items() if n.startswith(f"{kind}/")
    }
    return TensorDict(rows, batch_size=[len(next(iter(rows.values())))])
