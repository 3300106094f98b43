"""Proximal policy optimization (PPO): one loss for each network, on all devices.

To train with another loss, derive from `PPO`, override `actor_loss` or `critic_loss`, and name the
class as `algorithm.class_name`.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import inspect
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, cast

import rsl_rl.algorithms
import torch
from rsl_rl.extensions import Symmetry
from rsl_rl.models import MLPModel
from rsl_rl.modules import GaussianDistribution, HeteroscedasticGaussianDistribution
from rsl_rl.storage import RolloutStorage
from rsl_rl.utils import resolve_callable
from tensordict import TensorDict
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from manyworlds.envs.step_segments import CudaGraph, Graph
from manyworlds.rl.masked_actions import MaskedGaussianDistribution
from manyworlds.rl.storage import MiniBatch, shuffled_mini_batches
from manyworlds.rl.symmetry import mirror_loss
from manyworlds.rl.update_graph import UpdateGraph
from manyworlds.utils.devices import torch_threads
from manyworlds.utils.world_random import RandomStream
from manyworlds.validation.host_reads import reads_are_free

__all__ = ["PPO", "Losses"]

Losses = dict[str, torch.Tensor]
"""Parts of a loss by the names that are logged, each of shape []."""
LossOf = Callable[[MiniBatch, int], tuple[torch.Tensor, Losses]]
"""Function that returns a loss, shape [], and its parts for a mini-batch; see `PPO.actor_loss`."""

_OWN_RATE = "own_lr"
"""Key of a constant learning rate in a group of an optimizer's parameters."""
_OWN_SETTINGS = (
    "critic_learning_rate",
    "entropy_stages",
    "learning_rate_stages",
    "averaged_iterations",
    "capture_update",
)
_LOWEST_RATE = 1e-5
_HIGHEST_RATE = 1e-2
_RATE_FACTOR = 1.5

_REPLACED: dict[tuple[type, str], str] = {
    (rsl_rl.algorithms.PPO, "update"): "70ae0e38b5fc39e2",
    (rsl_rl.algorithms.PPO, "act"): "930a814dd21dd200",
    (rsl_rl.algorithms.PPO, "process_env_step"): "0454dc3eb3ac6829",
    (RolloutStorage, "mini_batch_generator"): "756bc69b9fc7dcac",
    (Symmetry, "compute_loss"): "0eecb2ae2f6b7007",
}
"""Methods in whose place `PPO` has its own: digests of their sources in rsl_rl 5.5.0 and 5.5.1."""


class PPO(rsl_rl.algorithms.PPO):
    """rsl_rl's PPO with its own update, whose losses are `actor_loss` and `critic_loss`.

    It computes what rsl_rl 5.5 does, to the last bit on a CPU, except that

    - each world draws the noise of its actions by itself, so that it is the same in every batch;
    - a time-out is bootstrapped with the value of the final observation;
    - on CPU cores the two networks learn at the same time, in a thread each;
    - the settings below exist.

    A method of rsl_rl that is not that of 5.5, because it was changed or is of another release,
    runs in place of the own one, and a warning says so.

    Args:
        actor: network of the policy.
        critic: network of the value.
        storage: storage with the sizes of a rollout.
        critic_learning_rate: constant learning rate of the critic; None for that of the actor.
        entropy_stages: iterations from which on other entropy coefficients apply.
        learning_rate_stages: iterations from which on other learning rates of the actor apply.
        averaged_iterations: time constant of the average of the policy's parameters; 0 for none.
        capture_update: whether to repeat the update by a mini-batch as a CUDA graph.
        settings: settings of rsl_rl's PPO.

    Raises:
        ValueError: the critic's learning rate is not positive, stages are not in order, the
            learning rate has stages and is adaptive, the policy is averaged over less than one
            iteration, or the update cannot be captured.
    """

    def __init__(
        self,
        actor: MLPModel,
        critic: MLPModel,
        storage: RolloutStorage,
        *,
        critic_learning_rate: float | None = None,
        entropy_stages: Sequence[Sequence[float]] = (),
        learning_rate_stages: Sequence[Sequence[float]] = (),
        averaged_iterations: float = 0.0,
        capture_update: bool = False,
        **settings: object,
    ) -> None:
        super().__init__(actor, critic, storage, **cast("dict[str, Any]", settings))
        self.iteration = 0
        """Number of updates so far, in all runs that were continued."""
        self.averaged: AveragedModel | None = None
        """Average of the policy's parameters over the last iterations, if it is configured."""
        self.noise: RandomStream | None = None
        """Random numbers for the noise of actions by world; None for torch's own generator."""
        self._changed: set[str] = set()
        self._check_rsl_rl()

        self._entropy_stages = _checked_stages("entropy_stages", entropy_stages)
        self._rate_stages = _checked_stages("learning_rate_stages", learning_rate_stages)
        if self._rate_stages and self.schedule == "adaptive":
            raise ValueError(
                f"algorithm.learning_rate_stages is {learning_rate_stages}, but algorithm.schedule "
                "is 'adaptive', which sets the learning rate: leave one of them out, or set "
                "schedule to 'fixed'."
            )
        self.optimizer = self._make_optimizer(critic_learning_rate)
        self.update_graph: UpdateGraph | None = None
        """Captured update by a mini-batch; None where Python makes each one."""
        if capture_update:
            self._check_can_capture()
            for group in self.optimizer.param_groups:
                group["capturable"] = True
            device = torch.device(self.device)
            self.capture_updates(lambda: CudaGraph(device))
        if averaged_iterations:
            if not averaged_iterations >= 1.0:
                raise ValueError(
                    f"algorithm.averaged_iterations is {averaged_iterations}, but must be at least "
                    "1, or 0 for no average."
                )
            average = get_ema_multi_avg_fn(1.0 - 1.0 / averaged_iterations)
            self.averaged = AveragedModel(self.get_policy(), multi_avg_fn=average).eval()

    def act(self, obs: TensorDict) -> torch.Tensor:
        """Sample actions, shape [worlds, actions], and record them with their values."""
        actions = super().act(obs)
        if self.noise is not None and "PPO.act" not in self._changed:
            actions = sample_by_world(self.actor, actions, self.noise)
            self.transition.actions = actions
            self.transition.actions_log_prob = self.actor.get_output_log_prob(actions).detach()
        return actions

    def process_env_step(
        self,
        obs: TensorDict,
        rewards: torch.Tensor,
        dones: torch.Tensor,
        extras: dict[str, torch.Tensor],
    ) -> None:
        """Record one step; bootstrap a time-out with the value of the final observation.

        rsl_rl takes the value of the observation before it, which is one step old. That remains so
        for a recurrent critic, because a call for its value would advance its memory.
        """
        has_final = "final_obs" in extras and "time_outs" in extras
        is_changed = "PPO.process_env_step" in self._changed
        if has_final and not is_changed and not self.critic.is_recurrent:
            extras = dict(extras)
            time_outs = extras.pop("time_outs")
            final_obs = cast("TensorDict", extras["final_obs"])
            if reads_are_free(time_outs.device):
                # The value of these worlds only: most calls have few of them, or none.
                ended = time_outs.nonzero().squeeze(1)
                if len(ended) > 0:
                    value = self.critic(final_obs[ended]).detach().squeeze(1)
                    rewards = rewards.index_add(0, ended, value, alpha=self.gamma)
            else:
                value = self.critic(final_obs).detach().squeeze(1)
                rewards = torch.where(time_outs, rewards + self.gamma * value, rewards)
        super().process_env_step(obs, rewards, dones, extras)

    def update(self) -> dict[str, float]:
        """Learn from the collected steps; return mean losses by name."""
        self._begin_stages()
        self.iteration += 1
        self._check_rsl_rl()
        if self._changed <= {"PPO.act", "PPO.process_env_step"}:
            losses = self._learn()
        else:
            losses = super().update()
        if self.averaged is not None:
            self.averaged.update_parameters(self.get_policy())
        return losses

    def _learn(self) -> dict[str, float]:
        """Go through the mini-batches of all epochs; return mean losses by name."""
        losses: dict[str, list[torch.Tensor]] = {"value": [], "surrogate": [], "entropy": []}
        with self._critic_thread() as critic_thread, self._rate_on_device():
            for batch in self._mini_batches():
                if self.update_graph is None:
                    parts = self._learn_from(batch, critic_thread)
                else:
                    parts = self.update_graph(batch, self._numbers(), self._memory())
                for name, value in parts.items():
                    losses.setdefault(name, []).append(value.detach())

        obs = self.storage.observations.flatten(0, 1)
        self.actor.update_normalization(obs)
        self.critic.update_normalization(obs)
        if self.rnd:
            self.rnd.update_normalization(obs)
        self.storage.clear()
        count = self.num_learning_epochs * self.num_mini_batches
        means: dict[str, float] = {}
        read = torch.cat([torch.stack(values) for values in losses.values()]).cpu()  # all at once
        parts = read.split([len(values) for values in losses.values()])
        for name, values in zip(losses, parts, strict=True):
            means[name] = sum(values.tolist()) / count
        return means

    def _learn_from(self, batch: MiniBatch, critic_thread: Executor | None = None) -> Losses:
        """Learn from a mini-batch; return the parts of the losses."""
        size = batch.observations.batch_size[0]
        if self.normalize_advantage_per_mini_batch:
            mean = batch.advantages.mean()
            batch.advantages = (batch.advantages - mean) / (batch.advantages.std() + 1e-8)
        if self.symmetry:
            self.symmetry.augment_batch(cast("RolloutStorage.Batch", batch), size)

        self.optimizer.zero_grad()
        learn_critic = functools.partial(self._backward, self.critic_loss, batch, size)
        if critic_thread is not None:
            learn_critic = critic_thread.submit(learn_critic).result
        losses = self._backward(self.actor_loss, batch, size)
        if self.desired_kl is not None and self.schedule == "adaptive":
            self._adapt_learning_rate(batch, size)
        losses.update(learn_critic())
        if self.rnd:
            self.rnd.optimizer.zero_grad()
            losses.update(self._backward(self._rnd_loss, batch, size))

        if self.is_multi_gpu:
            self.reduce_parameters()
        nn.utils.clip_grad_norm_(self.actor.parameters(), self.max_grad_norm)
        nn.utils.clip_grad_norm_(self.critic.parameters(), self.max_grad_norm)
        self.optimizer.step()
        if self.rnd:
            self.rnd.optimizer.step()
        return losses

    def capture_updates(self, make_graph: Callable[[], Graph]) -> None:
        """Repeat updates by mini-batches by graphs from now on.

        Args:
            make_graph: function that makes an empty graph.
        """
        self.update_graph = UpdateGraph(self._learn_from, make_graph, self.actor.distribution)
        # As Python's numbers on a CPU; Adam's kernel of CUDA takes single precision.
        dtype = torch.float32
        if torch.device(self.device).type == "cpu":
            dtype = torch.float64
        self._rate = torch.zeros((), dtype=dtype, device=self.device)

    @contextlib.contextmanager
    def _rate_on_device(self) -> Iterator[None]:
        """Keep the learning rate in a tensor within this context, if updates are captured."""
        if self.update_graph is None:
            yield
            return
        self._rate.fill_(self.learning_rate)
        for group in self.optimizer.param_groups:
            group["lr"] = self._rate
        try:
            yield
        finally:
            self.learning_rate = self._rate.item()
            for group in self.optimizer.param_groups:
                group["lr"] = self.learning_rate

    def _numbers(self) -> dict[str, object]:
        """Return the numbers of Python that an update depends on, by name."""
        kinds = int | float | str | bool
        numbers = {name: value for name, value in vars(self).items() if isinstance(value, kinds)}
        del numbers["iteration"], numbers["learning_rate"]
        return numbers

    def _memory(self) -> list[torch.Tensor]:
        """Return the parameters, and the state of the optimizer."""
        memory: list[torch.Tensor] = [*self.actor.parameters(), *self.critic.parameters()]
        for state in self.optimizer.state.values():
            memory += state.values()
        return memory

    def actor_loss(self, batch: MiniBatch, size: int) -> tuple[torch.Tensor, Losses]:
        """Return the loss of the actor: clipped surrogate, entropy bonus and mirror loss.

        Args:
            batch: a mini-batch of `size` samples, followed by their mirror images with the data
                augmentation of the symmetry extension.
            size: number of samples.

        Returns:
            The loss, shape [], and its parts.
        """
        self.actor(
            batch.observations,
            masks=batch.masks,
            hidden_state=batch.hidden_states[0],
            stochastic_output=True,
        )
        log_prob = self.actor.get_output_log_prob(batch.actions)
        ratio = torch.exp(log_prob - batch.old_actions_log_prob.squeeze(-1))
        clipped = ratio.clamp(1.0 - self.clip_param, 1.0 + self.clip_param)
        advantages = batch.advantages.squeeze(-1)
        surrogate = torch.max(-advantages * ratio, -advantages * clipped).mean()
        entropy = self.actor.output_entropy[:size].mean()
        loss = surrogate - self.entropy_coef * entropy
        parts = {"surrogate": surrogate, "entropy": entropy}
        if self.symmetry:
            parts["symmetry"] = mirror_loss(self.symmetry, self.actor, batch, size)
            if self.symmetry.use_mirror_loss:
                loss = loss + self.symmetry.mirror_loss_coeff * parts["symmetry"]
        return loss, parts

    def critic_loss(self, batch: MiniBatch, size: int) -> tuple[torch.Tensor, Losses]:
        """Return the loss of the critic: squared errors of its values, which change within bounds.

        Args:
            batch: a mini-batch; see `actor_loss`.
            size: number of samples.

        Returns:
            The loss, shape [], and its parts.
        """
        values = self.critic(
            batch.observations, masks=batch.masks, hidden_state=batch.hidden_states[1]
        )
        error = (values - batch.returns).pow(2)
        if self.use_clipped_value_loss:
            change = (values - batch.values).clamp(-self.clip_param, self.clip_param)
            error = torch.max(error, (batch.values + change - batch.returns).pow(2))
        error = error.mean()
        return self.value_loss_coef * error, {"value": error}

    def _rnd_loss(self, batch: MiniBatch, size: int) -> tuple[torch.Tensor, Losses]:
        """Return the error of the network that predicts the output of a random one."""
        assert self.rnd is not None
        loss = self.rnd.compute_loss(batch.observations[:size])
        return loss, {"rnd": loss}

    @torch.no_grad()
    def _adapt_learning_rate(self, batch: MiniBatch, size: int) -> None:
        """Lower the learning rate of a policy that changed too much since the rollout, or raise it.

        The measure is the mean KL divergence, which should be `desired_kl`.
        """
        new = tuple(values[:size] for values in self.actor.output_distribution_params)
        kl = self.actor.get_kl_divergence(batch.old_distribution_params, new).mean()
        if self.is_multi_gpu:
            torch.distributed.all_reduce(kl)
            kl /= self.gpu_world_size
        if self.update_graph is not None:
            rate = self._rate
            higher = (rate * _RATE_FACTOR).clamp(max=_HIGHEST_RATE)
            lower = (rate / _RATE_FACTOR).clamp(min=_LOWEST_RATE)
            is_small = (kl > 0.0) & (kl < self.desired_kl / 2.0)
            adapted = torch.where(is_small, higher, rate)
            rate.copy_(torch.where(kl > 2.0 * self.desired_kl, lower, adapted))
            return
        if kl > 2.0 * self.desired_kl:
            self.learning_rate = max(_LOWEST_RATE, self.learning_rate / _RATE_FACTOR)
        elif 0.0 < kl < self.desired_kl / 2.0:
            self.learning_rate = min(_HIGHEST_RATE, self.learning_rate * _RATE_FACTOR)
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate

    def _backward(self, loss_of: LossOf, batch: MiniBatch, size: int) -> Losses:
        """Compute the gradient of a loss; return the parts of the loss."""
        kind = torch.device(self.device).type
        with torch.autocast(kind, torch.bfloat16, enabled=self.use_mixed_precision):
            loss, parts = loss_of(batch, size)
        loss.backward()
        return parts

    @contextlib.contextmanager
    def _critic_thread(self) -> Iterator[Executor | None]:
        """Yield the thread in which the critic learns beside the actor; None if there is none.

        The networks are small: on a CPU, two threads gain more with one of them each than with both
        in each operation. Networks that share parameters, or that are of other packages and may
        draw random numbers, learn one after the other.
        """
        networks = (self.actor, self.critic)
        are_known = all(type(n).__module__.startswith(("rsl_rl.", "manyworlds.")) for n in networks)
        shared = {*self.actor.parameters()} & {*self.critic.parameters()}
        per_network = torch.get_num_threads() // 2
        if self.update_graph is not None:
            per_network = 0
        if torch.device(self.device).type != "cpu" or not are_known or shared or per_network < 1:
            yield None
            return
        with (
            torch_threads(per_network),
            ThreadPoolExecutor(1, "critic", torch.set_num_threads, (per_network,)) as thread,
        ):
            yield thread

    def _mini_batches(self) -> Iterator[MiniBatch]:
        """Return the mini-batches of all epochs."""
        count = self.num_mini_batches
        epochs = self.num_learning_epochs
        if self.actor.is_recurrent or self.critic.is_recurrent:
            batches = self.storage.recurrent_mini_batch_generator(count, epochs)
        elif type(self.storage) is RolloutStorage:
            batches = shuffled_mini_batches(self.storage, count, epochs)
        else:
            batches = self.storage.mini_batch_generator(count, epochs)
        return cast("Iterator[MiniBatch]", batches)

    def _begin_stages(self) -> None:
        """Apply the entropy coefficient and the learning rate of the present iteration."""
        for start, coefficient in self._entropy_stages:
            if self.iteration >= start:
                self.entropy_coef = coefficient
        for start, rate in self._rate_stages:
            if self.iteration >= start:
                self.learning_rate = rate
                for group in self.optimizer.param_groups:
                    group["lr"] = rate

    def _make_optimizer(self, critic_learning_rate: float | None) -> torch.optim.Optimizer:
        """Return the optimizer with one kernel for many parameters, and the critic's own rate."""
        groups = self.optimizer.param_groups
        if critic_learning_rate is not None:
            if not critic_learning_rate > 0.0:
                raise ValueError(
                    f"algorithm.critic_learning_rate is {critic_learning_rate}, but must be "
                    "positive: leave it out for the learning rate of the actor."
                )
            actor = [*self.actor.parameters()]
            shared = {id(parameter) for parameter in actor}
            critic = [p for p in self.critic.parameters() if id(p) not in shared]
            groups = [
                {**groups[0], "params": actor},
                {**groups[0], "params": critic, _OWN_RATE: critic_learning_rate},
            ]
        make: Any = type(self.optimizer)
        if issubclass(make, torch.optim.Adam | torch.optim.SGD):
            # One kernel for all parameters, instead of a dozen for each.
            groups = [{**group, "fused": True} for group in groups]
        optimizer: torch.optim.Optimizer = make(groups)
        optimizer.register_step_pre_hook(_keep_own_rates)
        return optimizer

    def _check_can_capture(self) -> None:
        """Check that an update is the same operations each time.

        Raises:
            ValueError: it is not, or the learner is not on an NVIDIA GPU.
        """
        optimizer = type(self.optimizer).__name__
        problems = {
            f"the learner is on '{self.device}', not on an NVIDIA GPU": (
                torch.device(self.device).type != "cuda"
            ),
            "a network is recurrent": self.actor.is_recurrent or self.critic.is_recurrent,
            f"{optimizer} is not Adam": "capturable" not in self.optimizer.defaults,
            "rnd_cfg is set": bool(self.rnd),
            "symmetry_cfg is set": bool(self.symmetry),
            "use_mixed_precision is set": self.use_mixed_precision,
            "several processes learn together": self.is_multi_gpu,
        }
        for problem, applies in problems.items():
            if applies:
                raise ValueError(
                    f"algorithm.capture_update is True, but {problem}: set capture_update to False."
                )

    def _check_rsl_rl(self) -> None:
        """Leave to rsl_rl what is not the method that this class replaces, and say so once."""
        changed = changed_methods()
        if changed - self._changed:
            version = importlib.metadata.version("rsl-rl-lib")
            warnings.warn(
                f"rsl_rl's {', '.join(sorted(changed))} is not that of the versions 5.5.0 and "
                f"5.5.1, but of {version} or replaced at run time: it runs as it is, in place of "
                "that of manyworlds.rl.ppo.PPO. Derive a class from that one to change it.",
                stacklevel=2,
            )
        self._changed = changed


def sample_by_world(policy: MLPModel, sampled: torch.Tensor, noise: RandomStream) -> torch.Tensor:
    """Return actions with noise that each world draws by itself, shape [worlds, actions].

    Args:
        policy: the policy, which has the outputs of these worlds.
        sampled: actions that it has sampled with torch's generator, which all worlds share; they
            remain for distributions other than normal ones.
        noise: random numbers of the worlds.
    """
    kinds = (
        GaussianDistribution,
        HeteroscedasticGaussianDistribution,
        MaskedGaussianDistribution,
    )
    if type(policy.distribution) not in kinds:
        return sampled
    mean = policy.output_mean
    return noise.normal(mean, policy.output_std, tuple(mean.shape[1:])).detach()


def algorithm_class(settings: dict[str, object]) -> type[rsl_rl.algorithms.PPO]:
    """Return the class of an algorithm: in place of rsl_rl's PPO that of this module.

    Any other one runs as it is.

    Args:
        settings: settings of the algorithm, with its `class_name` as rsl_rl resolves it; those of
            this module that another algorithm does not have are removed.

    Raises:
        ValueError: there is no such class, or it does not have a setting.
    """
    name = cast("str", settings["class_name"])
    found = cast("type[rsl_rl.algorithms.PPO]", resolve_callable(name))
    if found is rsl_rl.algorithms.PPO:
        return PPO
    if issubclass(found, PPO):
        return found
    for setting in _OWN_SETTINGS:
        value = settings.pop(setting, None)
        if value:
            raise ValueError(
                f"algorithm.{setting} is {value}, but {found.__name__} does not have this setting: "
                "leave it out, or derive the class from manyworlds.rl.ppo.PPO."
            )
    if issubclass(found, rsl_rl.algorithms.PPO):
        warnings.warn(
            f"The algorithm {found.__name__} is not derived from manyworlds.rl.ppo.PPO, and lacks "
            "what that adds to rsl_rl's: the value of the final observation at a time-out, noise "
            "of actions by world, the critic's learning rate, stages of the entropy coefficient "
            "and of the learning rate, the average of the policy, and the critic's thread.",
            stacklevel=2,
        )
    return found


def changed_methods() -> set[str]:
    """Return the names of rsl_rl's methods that are not those which `PPO` replaces."""
    changed = set()
    for (cls, name), digest in _REPLACED.items():
        if _digest(getattr(cls, name)) != digest:
            changed.add(f"{cls.__name__}.{name}")
    return changed


@functools.cache
def _digest(method: Callable[..., object]) -> str:
    """Return a digest of a function's own source; an empty one if there is none."""
    # `inspect.getsource(method)` would show the source that a decorator hides.
    source = ""
    if isinstance(method, types.FunctionType):
        with contextlib.suppress(OSError):
            source = inspect.getsource(method.__code__)
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def _keep_own_rates(optimizer: torch.optim.Optimizer, args: object, kwargs: object) -> None:
    """Set the learning rate of the groups that have their own, before each step.

    rsl_rl sets one rate in all groups whenever it adapts it.
    """
    for group in optimizer.param_groups:
        group["lr"] = group.get(_OWN_RATE, group["lr"])


def _checked_stages(name: str, stages: Sequence[Sequence[float]]) -> list[tuple[float, float]]:
    """Return stages of a setting as pairs.

    Raises:
        ValueError: iterations do not increase from 0 on, or a value is negative.
    """
    pairs = [(start, value) for start, value in stages]
    starts = [start for start, _ in pairs]
    if starts != sorted({*starts}) or not all(x >= 0 for pair in pairs for x in pair):
        raise ValueError(
            f"algorithm.{name} is {stages}, but must be pairs of iteration and value with "
            "increasing iterations and without negative numbers, such as ((200, 0.002),)."
        )
    return pairs
