"""Collection of rollouts on another device than the learner's."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import rsl_rl.algorithms
import torch
from tensordict import TensorDict

from manyworlds.rl.ppo import PPO, sample_by_world
from manyworlds.utils.world_random import RandomStream

_ALIGNMENT = 16  # bytes, for views of any type


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
        views = {}
        for name, (shape, dtype, start, end) in self._layout.items():
            views[name] = memory[start:end].view(dtype).view(shape)
        return views


class Collector:
    """Policy and rollout on the device of the worlds, for a learner on another device.

    It takes the place of the algorithm while worlds step. Control steps are recorded into one block
    of memory, which moves to the learner once per rollout; the weights of the policy move in the
    other direction, as one block, too.

    Args:
        alg: the algorithm, whose policy is copied.
        obs: observations by group, shape [worlds, ...], on any device.
        num_steps: number of control steps of a rollout.
        device: device of the worlds.

    Raises:
        ValueError: the algorithm needs rewards that only the learner computes, or it has a method
            of its own to act.
    """

    def __init__(
        self,
        alg: rsl_rl.algorithms.PPO,
        obs: TensorDict,
        num_steps: int,
        device: torch.device,
    ) -> None:
        _check_can_act_elsewhere(alg, device)
        self._alg = alg
        self._source = alg.get_policy()
        self.policy = copy.deepcopy(self._source).to(device)
        """Copy of the policy, on the device of the worlds."""
        self.noise: RandomStream | None = None
        """Random numbers for the noise of actions by world; None for torch's own generator."""
        self._device = device
        self._step = 0
        self._has_time_outs = False
        row = (num_steps, obs.batch_size[0])
        shapes: dict[str, tuple[Sequence[int], torch.dtype]] = {
            "actions": ((*row, *alg.storage.actions_shape), torch.float32),
            "rewards": (row, torch.float32),
            "dones": (row, torch.long),
            "time_outs": (row, torch.bool),
        }
        for name, value in obs.items():
            shapes[f"obs/{name}"] = (num_steps + 1, *value.shape), value.dtype
            shapes[f"final_obs/{name}"] = (num_steps, *value.shape), value.dtype
        self._block = Block(shapes, device)
        state = self._source.state_dict().items()
        self._weights = Block(
            {n: (v.shape, v.dtype) for n, v in state}, next(self._source.parameters()).device
        )

    def act(self, obs: TensorDict) -> torch.Tensor:
        """Sample actions, shape [worlds, actions], with the learner's weights at the first step."""
        if self._step == 0:
            for name, value in self._source.state_dict().items():
                self._weights.tensors[name].copy_(value)
            self.policy.load_state_dict(self._weights.to(self._device))
            self.policy.train(self._source.training)
            self._write("obs", obs, 0)
        actions = self.policy(obs, stochastic_output=True)
        if self.noise is not None:
            actions = sample_by_world(self.policy, actions, self.noise)
        self._block.tensors["actions"][self._step].copy_(actions)
        return actions

    def process_env_step(
        self,
        obs: TensorDict,
        rewards: torch.Tensor,
        dones: torch.Tensor,
        extras: dict[str, torch.Tensor],
    ) -> None:
        """Record the result of the actions: next observations, rewards, dones and extras."""
        tensors = self._block.tensors
        step = self._step
        tensors["rewards"][step].copy_(rewards)
        tensors["dones"][step].copy_(dones)
        self._has_time_outs = "time_outs" in extras
        if self._has_time_outs:
            tensors["time_outs"][step].copy_(extras["time_outs"])
        if "final_obs" in extras:
            self._write("final_obs", cast("TensorDict", extras["final_obs"]), step)
        self._step += 1
        self._write("obs", obs, self._step)
        self.policy.reset(dones)

    def compute_returns(self, obs: TensorDict) -> None:
        """Move the rollout to the learner, which computes its returns as if it had collected it.

        Whatever the algorithm computes from observations is computed again on its device; the
        actions are those that were taken.

        Args:
            obs: last observations, which are recorded already.
        """
        alg = self._alg
        moved = self._block.to(alg.device)
        with torch.random.fork_rng(devices=[]):  # the sampled actions are not used
            for i in range(self._step):
                alg.act(_group(moved, "obs", i))
                actions = moved["actions"][i]
                alg.transition.actions = actions
                if alg.storage.training_type == "rl":
                    log_prob = alg.get_policy().get_output_log_prob(actions)
                    alg.transition.actions_log_prob = log_prob.detach()
                extras: dict[str, Any] = {}
                if self._has_time_outs:
                    extras["time_outs"] = moved["time_outs"][i]
                    extras["final_obs"] = _group(moved, "final_obs", i)
                alg.process_env_step(
                    _group(moved, "obs", i + 1), moved["rewards"][i], moved["dones"][i], extras
                )
        alg.compute_returns(_group(moved, "obs", self._step))
        self._step = 0

    def _write(self, kind: str, obs: TensorDict, step: int) -> None:
        for name, value in obs.items():
            self._block.tensors[f"{kind}/{name}"][step].copy_(cast("torch.Tensor", value))


def _group(tensors: Mapping[str, torch.Tensor], kind: str, step: int) -> TensorDict:
    """Return the observations of one step, by group."""
    rows = {}
    for name, values in tensors.items():
        if name.startswith(f"{kind}/"):
            rows[name.removeprefix(f"{kind}/")] = values[step]
    return TensorDict(rows, batch_size=[tensors["rewards"].shape[1]])


def _check_can_act_elsewhere(alg: rsl_rl.algorithms.PPO, device: torch.device) -> None:
    known = (PPO.act, rsl_rl.algorithms.PPO.act, rsl_rl.algorithms.Distillation.act)
    if type(alg).act not in known:
        raise ValueError(
            f"{type(alg).__name__} has a method act of its own, but the learner is on "
            f"'{alg.device}' and the worlds, where a copy of the policy acts, are on '{device}': "
            "leave out --agent.device."
        )
    if isinstance(alg, rsl_rl.algorithms.PPO) and alg.rnd is not None:
        raise ValueError(
            "algorithm.rnd_cfg adds rewards that the learner computes in every step, but the "
            f"learner is on '{alg.device}' and the worlds are on '{device}': leave out "
            "--agent.device, or rnd_cfg."
        )
