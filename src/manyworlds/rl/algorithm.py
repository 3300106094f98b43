"""Learning algorithms of rsl_rl, adjusted by subclassing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from rsl_rl.algorithms import PPO, Distillation
from rsl_rl.extensions import Symmetry
from rsl_rl.models import MLPModel
from rsl_rl.storage import RolloutStorage
from rsl_rl.utils import resolve_callable
from tensordict import TensorDict
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils._pytree import tree_map_only

from manyworlds.rl.checkpoint import AVERAGED
from manyworlds.rl.config import NETWORKS
from manyworlds.rl.known_code import is_known, warn_changed
from manyworlds.rl.parallel_update import can_update_in_parallel, update_in_parallel
from manyworlds.rl.rollout import Collector, ShuffledStorage
from manyworlds.rl.symmetry import MirrorSymmetry
from manyworlds.utils.devices import torch_threads

_OWN_RATE = "own_lr"
"""Key of a learning rate in a group of an optimizer's parameters."""


class AdjustedAlgorithm:
    """Base class that comes before an algorithm of rsl_rl; see `adjusted`.

    Args:
        first: actor of a reinforcement learner, or student.
        second: critic or teacher.
        storage: storage with the sizes of a rollout.
        critic_learning_rate: constant learning rate of the critic; None for that of the actor.
        entropy_stages: iterations from which on other entropy coefficients apply.
        learning_rate_stages: iterations from which on other learning rates of the actor apply.
        averaged_iterations: time constant of the average of the policy's parameters; 0 for none.
        kwargs: settings of the algorithm.

    Raises:
        ValueError: the critic's learning rate is not positive, stages are not in order, the
            learning rate has stages and is adaptive, or the policy is averaged over less than one
            iteration.
    """

    device: str
    gamma: float
    storage: RolloutStorage
    transition: RolloutStorage.Transition
    update_threads: int | None = None
    """Number of torch threads that `update` runs with; None for the present number."""
    iteration: int = 0
    """Number of updates so far, in all runs that were continued."""
    entropy_coef: float
    learning_rate: float
    optimizer: torch.optim.Optimizer
    symmetry: Symmetry | None
    collector: Collector | None = None
    """Policy and rollout on the device of the worlds, if that is not the learner's."""
    averaged: AveragedModel | None = None
    """Average of the policy's parameters over the last iterations, if it is configured."""

    def __init__(
        self,
        first: nn.Module,
        second: nn.Module,
        storage: RolloutStorage,
        *,
        critic_learning_rate: float | None = None,
        entropy_stages: Sequence[Sequence[float]] = (),
        learning_rate_stages: Sequence[Sequence[float]] = (),
        averaged_iterations: float = 0.0,
        **kwargs: object,
    ) -> None:
        learner: Any = super()
        learner.__init__(first, second, _shuffled(storage), **kwargs)
        self._entropy_stages = _checked_stages("entropy_stages", entropy_stages)
        self._rate_stages = _checked_stages("learning_rate_stages", learning_rate_stages)
        if self._rate_stages and getattr(self, "schedule", "") == "adaptive":
            raise ValueError(
                f"algorithm.learning_rate_stages is {learning_rate_stages}, but algorithm.schedule "
                "is 'adaptive', which sets the learning rate: leave one of them out, or set "
                "schedule to 'fixed'."
            )
        symmetry = getattr(self, "symmetry", None)
        if symmetry is not None:
            self.symmetry = _mirrored(symmetry)
        self._bootstraps = is_known(PPO.process_env_step)
        """True if time-outs are bootstrapped here; otherwise rsl_rl's method gets them."""
        if not self._bootstraps:
            warn_changed("PPO.process_env_step", "it bootstraps time-outs itself")
        optimizer = getattr(self, "optimizer", None)
        if isinstance(optimizer, torch.optim.Optimizer):
            self.optimizer = self._rebuilt(optimizer, critic_learning_rate)
        if averaged_iterations:
            if not averaged_iterations >= 1.0:
                raise ValueError(
                    f"algorithm.averaged_iterations is {averaged_iterations}, but must be at least "
                    "1, or 0 for no average."
                )
            average = get_ema_multi_avg_fn(1.0 - 1.0 / averaged_iterations)
            self.averaged = AveragedModel(learner.get_policy(), multi_avg_fn=average).eval()

    def acting_policy(self) -> MLPModel:
        """Return the network with which playback and export act: the average, if there is one."""
        if self.averaged is not None and self.averaged.n_averaged > 0:
            return cast("MLPModel", self.averaged.module)
        return cast("PPO", self).get_policy()

    def collect_on(self, device: torch.device) -> None:
        """Collect rollouts on another device than the learner's, which gets them as a whole.

        Args:
            device: device of the worlds.

        Raises:
            ValueError: the algorithm needs rewards that only the learner computes, or it has an
                own method to act.
        """
        learner: Any = super()
        act: Any = getattr(learner.act, "__func__", None)
        if act not in (PPO.act, Distillation.act):
            raise ValueError(
                f"{type(self).__name__} has a method act of its own, but the learner is on "
                f"'{self.device}' and the worlds, where a copy of the policy acts, are on "
                f"'{device}': leave out --agent.device."
            )
        if not is_known(act):
            effect = f"actions are the policy's own samples, since the worlds are on '{device}'"
            warn_changed(act.__qualname__, effect)
        if getattr(self, "rnd", None) is not None:
            raise ValueError(
                f"algorithm.rnd_cfg adds rewards that the learner computes in every step, but the "
                f"learner is on '{self.device}' and the worlds are on '{device}': leave out "
                "--agent.device, or rnd_cfg."
            )
        st = self.storage
        obs = cast("TensorDict", st.observations[0])
        steps = st.num_transitions_per_env
        actions = st.actions_shape[0]
        self.collector = Collector(cast("PPO", self).get_policy(), obs, actions, steps, device)

    def act(self, obs: TensorDict) -> torch.Tensor:
        """Sample actions, shape [worlds, actions], for observations on the worlds' device."""
        if self.collector is not None:
            return self.collector.act(obs)
        learner: Any = super()
        return learner.act(obs)

    def process_env_step(
        self, obs: TensorDict, rewards: torch.Tensor, dones: torch.Tensor, extras: dict[str, Any]
    ) -> None:
        """Record one step; bootstrap a time-out with the value of the final observation.

        rsl_rl takes the value of the observation before it, which is one step old. That remains so
        for a recurrent critic, because a call for its value would advance its memory.
        """
        if self.collector is not None:
            self.collector.record(obs, rewards, dones, extras)
            return
        self._store(obs, rewards, dones, extras)

    def compute_returns(self, obs: TensorDict) -> None:
        """Compute the returns of the rollout, whose last observations are given."""
        learner: Any = super()
        if self.collector is not None:
            obs = self._store_rollout(self.collector)
        learner.compute_returns(obs)

    def update(self) -> dict[str, float]:
        """Learn from the collected steps; return mean losses."""
        self._begin_stages()
        self.iteration += 1
        losses = self._update()
        if self.averaged is not None:
            self.averaged.update_parameters(cast("PPO", self).get_policy())
        return losses

    def save(self) -> dict[str, object]:
        """Return networks and optimizer for a checkpoint, with the average if there is one."""
        learner: Any = super()
        state = learner.save()
        if self.averaged is not None and self.averaged.n_averaged > 0:
            state[AVERAGED] = self.averaged.module.state_dict()
        return state

    def load(
        self, loaded_dict: dict[str, object], load_cfg: dict[str, bool] | None, strict: bool
    ) -> bool:
        """Load parts of a checkpoint, and return True if training continues from it.

        The part `actor` is the policy, also of a student, and its average if there is one: only a
        training continues from the last parameters.
        """
        learner: Any = super()
        average: Any = loaded_dict.get(AVERAGED)
        if load_cfg is not None:
            if average is not None:
                trained = "student" if "student_state_dict" in loaded_dict else "actor"
                loaded_dict = {**loaded_dict, f"{trained}_state_dict": average}
            if hasattr(self, "student"):
                load_cfg = {"student": load_cfg.get("actor", False), **load_cfg}
        if self.averaged is not None:
            self.averaged.n_averaged.fill_(0)
            if load_cfg is None and average is not None:
                self.averaged.module.load_state_dict(average, strict)
                self.averaged.n_averaged.fill_(1)
        return learner.load(loaded_dict, load_cfg, strict)

    def memory(self) -> dict[str, object]:
        """Return what depends on the present episodes: hidden states, and the state of rewards.

        rsl_rl does not include them in its checkpoints.
        """
        state: dict[str, object] = {
            name: net.get_hidden_state() for name, net in self._networks().items()
        }
        rnd = getattr(self, "rnd", None)
        if rnd is not None:
            average = rnd.reward_normalizer.disc_avg.avg if rnd.reward_normalization else None
            state["rnd"] = {"steps": rnd.update_counter, "average": average}
        return state

    def load_memory(self, state: Mapping[str, object]) -> None:
        """Load a state that `memory` returned."""
        for name, network in self._networks().items():
            device = next(network.parameters()).device
            hidden = tree_map_only(
                torch.Tensor, lambda value, to=device: value.to(to), state.get(name)
            )
            network.reset(hidden_state=hidden)
        if hasattr(self, "last_hidden_states"):
            networks: Any = self
            pair = networks.student, networks.teacher
            self.last_hidden_states = tuple(network.get_hidden_state() for network in pair)
        rnd = getattr(self, "rnd", None)
        rewards = cast("dict[str, Any] | None", state.get("rnd"))
        if rnd is not None and rewards is not None:
            rnd.update_counter = rewards["steps"]
            if rnd.reward_normalization and rewards["average"] is not None:
                rnd.reward_normalizer.disc_avg.avg = rewards["average"].to(self.device)

    def _update(self) -> dict[str, float]:
        learner: Any = super()
        threads = self.update_threads or torch.get_num_threads()
        own = getattr(learner.update, "__func__", None) is not PPO.update
        if threads > 1 and not own and can_update_in_parallel(self):
            if is_known(PPO.update):
                return update_in_parallel(cast("PPO", self), threads)
            warn_changed("PPO.update", "it runs as it is, which takes more time on CPU cores")
        with torch_threads(threads):
            return learner.update()

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

    def _rebuilt(
        self, optimizer: torch.optim.Optimizer, critic_learning_rate: float | None
    ) -> torch.optim.Optimizer:
        """Return the optimizer with one kernel for many parameters, and the critic's own rate."""
        groups = optimizer.param_groups
        kind = type(optimizer)
        if critic_learning_rate is not None:
            if not critic_learning_rate > 0.0:
                raise ValueError(
                    f"algorithm.critic_learning_rate is {critic_learning_rate}, but must be "
                    "positive: leave it out for the learning rate of the actor."
                )
            networks = self._networks()
            actor = [*networks["actor"].parameters()]
            shared = {id(parameter) for parameter in actor}
            critic = [p for p in networks["critic"].parameters() if id(p) not in shared]
            rated = {"params": critic, _OWN_RATE: critic_learning_rate}
            groups = [{**groups[0], "params": actor}, {**groups[0], **rated}]
            kind = _with_own_rates(kind)
        if issubclass(kind, torch.optim.Adam | torch.optim.SGD):
            # One kernel for all parameters, instead of a dozen for each.
            groups = [{**group, "fused": True} for group in groups]
        elif critic_learning_rate is None:
            return optimizer
        make: Any = kind
        return make(groups)

    def _networks(self) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in NETWORKS if hasattr(self, name)}
        return found if self.collector is None else {**found, "collector": self.collector.policy}

    def _store_rollout(self, collector: Collector) -> TensorDict:
        """Store the collector's rollout as if it was collected here; return the last observations.

        Whatever the algorithm computes from observations is computed again on its device; the
        actions are those that were taken.
        """
        learner: Any = super()
        step = None
        with torch.random.fork_rng(devices=[]):  # the sampled actions are not used
            for step in collector.take(self.device):
                learner.act(step.observations)
                self.transition.actions = step.actions
                if self.storage.training_type == "rl":
                    log_prob = learner.get_policy().get_output_log_prob(step.actions)
                    self.transition.actions_log_prob = log_prob.detach()
                self._store(step.next_observations, step.rewards, step.dones, step.extras)
        assert step is not None, "a rollout was collected"
        return step.next_observations

    def _store(
        self, obs: TensorDict, rewards: torch.Tensor, dones: torch.Tensor, extras: dict[str, Any]
    ) -> None:
        critic: Any = getattr(self, "critic", None)
        learner: Any = super()
        final = self._bootstraps and {"final_obs", "time_outs"} <= extras.keys()
        if final and critic is not None and not critic.is_recurrent:
            extras = dict(extras)
            # The value of these worlds only: most calls have few of them, or none.
            ended = extras.pop("time_outs").nonzero().squeeze(1)
            if len(ended) > 0:
                value = critic(extras["final_obs"][ended]).detach().squeeze(1)
                rewards = rewards.index_add(0, ended, value, alpha=self.gamma)
        learner.process_env_step(obs, rewards, dones, extras)


def _shuffled(storage: RolloutStorage) -> RolloutStorage:
    """Return a storage that shuffles once, unless this one has mini-batches of another kind."""
    if type(storage) is not RolloutStorage:
        return storage
    if not is_known(RolloutStorage.mini_batch_generator):
        effect = "it makes the mini-batches, and the update runs in one piece"
        warn_changed("RolloutStorage.mini_batch_generator", effect)
        return storage
    return ShuffledStorage.like(storage)


def _mirrored(symmetry: Symmetry) -> Symmetry:
    """Return the quicker symmetry, unless this one has a loss of another kind."""
    if type(symmetry) is not Symmetry:
        return symmetry
    if not is_known(Symmetry.compute_loss):
        warn_changed("Symmetry.compute_loss", "it computes the mirror loss, which takes more time")
        return symmetry
    return MirrorSymmetry(**vars(symmetry))


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


def _with_own_rates(optimizer: type[torch.optim.Optimizer]) -> type[torch.optim.Optimizer]:
    """Derive an optimizer whose groups of parameters may have a learning rate of their own.

    rsl_rl sets one rate in all groups whenever it adapts it.
    """

    def step(self: torch.optim.Optimizer, closure: Any = None) -> Any:
        """Make one step, with the own rates of the groups that have one."""
        given = [group["lr"] for group in self.param_groups]
        for group in self.param_groups:
            group["lr"] = group.get(_OWN_RATE, group["lr"])
        result = optimizer.step(self, closure)
        for group, rate in zip(self.param_groups, given, strict=True):
            group["lr"] = rate
        return result

    return type(optimizer.__name__, (optimizer,), {"__doc__": optimizer.__doc__, "step": step})


def adjusted(algorithm: type | str) -> type:
    """Derive a class from an algorithm of rsl_rl, or of its kind.

    Args:
        algorithm: the class, or its name as rsl_rl resolves it, such as `PPO` or `module:class`.
    """
    base = cast("type", resolve_callable(algorithm))
    return type(base.__name__, (AdjustedAlgorithm, base), {"__doc__": base.__doc__})
