"""Update of PPO on CPU cores: the actor and the critic learn at the same time.

The networks share no weights, so that each of them can go through the mini-batches in a thread of
its own. More threads for one operation gain nothing with small networks and mini-batches.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import TypeVar

import torch
from rsl_rl.algorithms import PPO
from rsl_rl.storage import RolloutStorage
from torch import nn
from torch.optim import Optimizer

from manyworlds.rl.rollout import ShuffledStorage

Batch = RolloutStorage.Batch
_T = TypeVar("_T")
_LOWEST_RATE, _HIGHEST_RATE, _RATE_FACTOR = 1e-5, 1e-2, 1.5  # as in rsl_rl


def can_update_in_parallel(alg: object) -> bool:
    """Return True if `update_in_parallel` computes what `PPO.update` of rsl_rl 5.5 does.

    Networks of other packages may draw random numbers, whose order two threads do not keep.
    """
    return (
        isinstance(alg, PPO)
        and isinstance(alg.storage, ShuffledStorage)
        and _is_from_here(alg.actor)
        and _is_from_here(alg.critic)
        and not _is_watched(alg.optimizer)
        and torch.device(alg.device).type == "cpu"
        and not (alg.actor.is_recurrent or alg.critic.is_recurrent)
        and not (alg.rnd or alg.symmetry or alg.is_multi_gpu)
        and not alg.normalize_advantage_per_mini_batch
        and not set(alg.actor.parameters()) & set(alg.critic.parameters())
    )


def _is_from_here(network: nn.Module) -> bool:
    """Return True if the class of a network is one of rsl_rl or of this package."""
    return type(network).__module__.split(".")[0] in ("rsl_rl", "manyworlds")


def _is_watched(optimizer: Optimizer) -> bool:
    """Return True if hooks or schedulers watch its steps, which parts of it would lose."""
    hooks = optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks
    return bool(hooks) or "step" in vars(optimizer)


def update_in_parallel(alg: PPO, num_threads: int) -> dict[str, float]:
    """Learn from the collected steps like `PPO.update`, with the same result to the last bit.

    It stands for the `PPO.update` of rsl_rl 5.5 only; see `known_code`.

    Args:
        alg: an algorithm that `can_update_in_parallel`.
        num_threads: number of threads for both networks.

    Returns:
        Mean losses by name.
    """
    batches = list(alg.storage.mini_batch_generator(alg.num_mini_batches, alg.num_learning_epochs))
    per_network = max(1, num_threads // 2)
    rates: SimpleQueue[float | None] = SimpleQueue()

    def update_critic() -> float:
        torch.set_num_threads(per_network)
        return _update_critic(alg, batches, rates)

    before = torch.get_num_threads()
    torch.set_num_threads(per_network)
    try:
        with ThreadPoolExecutor(1, "manyworlds-critic") as pool:
            critic = pool.submit(update_critic)
            try:
                surrogate, entropy = _update_actor(alg, batches, rates)
            finally:
                rates.put(None)  # the critic waits for no other rate
            value = critic.result()
    finally:
        torch.set_num_threads(before)
    if _is_adaptive(alg):
        for group in alg.optimizer.param_groups:
            group["lr"] = alg.learning_rate
    _sort_state(alg.optimizer)
    alg.storage.clear()
    return {"value": value, "surrogate": surrogate, "entropy": entropy}


def _update_actor(
    alg: PPO, batches: list[Batch], rates: SimpleQueue[float | None]
) -> tuple[float, float]:
    """Update the actor with all mini-batches, and put each learning rate into the queue.

    Returns:
        Mean surrogate loss and mean entropy.
    """
    actor = alg.actor
    optimizer = _part(alg.optimizer, alg.actor.parameters())
    surrogates = entropies = 0.0
    for batch in batches:
        with _precision(alg):
            actor(batch.observations, stochastic_output=True)
            log_prob = actor.get_output_log_prob(_given(batch.actions))
            entropy = actor.output_entropy.mean()
            if _is_adaptive(alg):
                alg.learning_rate = _adapt_rate(alg, batch)
            rates.put(alg.learning_rate)
            advantages = _given(batch.advantages).squeeze(-1)
            ratio = torch.exp(log_prob - _given(batch.old_actions_log_prob).squeeze(-1))
            clipped = ratio.clamp(1.0 - alg.clip_param, 1.0 + alg.clip_param)
            surrogate = torch.max(-advantages * ratio, -advantages * clipped).mean()
            loss = surrogate - alg.entropy_coef * entropy
        _descend(alg, optimizer, actor, loss, alg.learning_rate)
        surrogates += surrogate.item()
        entropies += entropy.item()
    actor.update_normalization(alg.storage.observations.flatten(0, 1))
    return surrogates / len(batches), entropies / len(batches)


def _update_critic(alg: PPO, batches: list[Batch], rates: SimpleQueue[float | None]) -> float:
    """Update the critic with all mini-batches and the actor's rates; return the mean loss."""
    critic = alg.critic
    optimizer = _part(alg.optimizer, alg.critic.parameters())
    losses = 0.0
    for batch in batches:
        with _precision(alg):
            values = critic(batch.observations)
            returns = _given(batch.returns)
            loss = (returns - values).pow(2)
            if alg.use_clipped_value_loss:
                old = _given(batch.values)
                change = (values - old).clamp(-alg.clip_param, alg.clip_param)
                loss = torch.max(loss, (old + change - returns).pow(2))
            loss = loss.mean()
        rate = rates.get()
        if rate is None:
            return 0.0  # the actor failed, which its error says
        _descend(alg, optimizer, critic, alg.value_loss_coef * loss, rate)
        losses += loss.item()
    critic.update_normalization(alg.storage.observations.flatten(0, 1))
    return losses / len(batches)


def _precision(alg: PPO) -> torch.autocast:
    return torch.autocast("cpu", torch.bfloat16, enabled=alg.use_mixed_precision)


def _adapt_rate(alg: PPO, batch: Batch) -> float:
    """Return a lower learning rate for a policy that changed much, a higher one for little."""
    with torch.inference_mode():
        new = alg.actor.output_distribution_params
        change = alg.actor.get_kl_divergence(_given(batch.old_distribution_params), new).mean()
    if change > 2.0 * alg.desired_kl:
        return max(_LOWEST_RATE, alg.learning_rate / _RATE_FACTOR)
    if 0.0 < change < alg.desired_kl / 2.0:
        return min(_HIGHEST_RATE, alg.learning_rate * _RATE_FACTOR)
    return alg.learning_rate


def _is_adaptive(alg: PPO) -> bool:
    """Return True if the algorithm sets the learning rate; otherwise the optimizer's own holds."""
    return alg.desired_kl is not None and alg.schedule == "adaptive"


def _descend(
    alg: PPO, optimizer: Optimizer, network: nn.Module, loss: torch.Tensor, rate: float
) -> None:
    if _is_adaptive(alg):
        for group in optimizer.param_groups:
            group["lr"] = rate
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(network.parameters(), alg.max_grad_norm)
    optimizer.step()


def _part(optimizer: Optimizer, parameters: Iterable[nn.Parameter]) -> Optimizer:
    """Return an optimizer of some of the parameters, which shares the state of the whole one."""
    kept = {id(p) for p in parameters}
    part = copy.copy(optimizer)
    part.param_groups = [
        {**group, "params": [p for p in group["params"] if id(p) in kept]}
        for group in optimizer.param_groups
    ]
    return part


def _sort_state(optimizer: Optimizer) -> None:
    """Order the state as the parameters, since the first of two threads was any of them."""
    state = optimizer.state
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    ordered = {p: state[p] for p in parameters if p in state}
    state.clear()
    state.update(ordered)


def _given(value: _T | None) -> _T:
    """Return a part of a batch, which rsl_rl declares as optional."""
    assert value is not None, "a batch of reinforcement learning has all parts"
    return value
