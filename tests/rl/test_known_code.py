"""Methods of rsl_rl that were changed, where this package has second implementations of them."""

from __future__ import annotations

import functools
import inspect
import textwrap
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from rsl_rl.algorithms import PPO
from rsl_rl.extensions import Symmetry
from rsl_rl.models import MLPModel
from rsl_rl.storage import RolloutStorage

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.rl import OnPolicyRunner, RslRlVecEnvWrapper
from manyworlds.rl.known_code import is_known
from manyworlds.rl.parallel_update import can_update_in_parallel
from manyworlds.utils.devices import torch_threads

pytestmark = pytest.mark.slow_on_warp

SQUARED = ("(values - batch.returns).pow(2)", "(values - batch.returns).abs()")
CLIPPED = ("torch.max(surrogate, surrogate_clipped)", "surrogate")


def rewritten(method: Callable[..., Any], *changes: tuple[str, str]) -> Callable[..., Any]:
    """Return a method with other code, as of another version or a fork of rsl_rl."""
    source = textwrap.dedent(inspect.getsource(method))
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    scope: dict[str, Any] = {}
    exec(source, {**method.__globals__}, scope)
    return scope[method.__name__]


def negated(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a decorated update, which shows the source of the one that it hides."""

    @functools.wraps(method)
    def update(self: Any) -> Any:
        self.storage.advantages = -self.storage.advantages
        return method(self)

    return update


def doubled(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method whose result is twice that of another one."""
    return functools.wraps(method)(lambda *args: 2.0 * method(*args))


def learned(env_cfg, rl_cfg, threads: int) -> list[float]:
    """Return the losses of two iterations and all weights after them."""
    torch.manual_seed(3)
    runner = OnPolicyRunner(RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg)), rl_cfg)
    losses: list[Any] = []
    runner.on_iteration(lambda item: losses.extend(item.scalars.values()))
    with torch_threads(threads), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "rsl_rl's")
        runner.learn(2)
    networks: Any = runner.alg
    parameters = [*networks.actor.parameters(), *networks.critic.parameters()]
    return losses + torch.cat([p.detach().flatten() for p in parameters]).tolist()


CHANGES = {
    "a value loss": (PPO, "update", rewritten(PPO.update, SQUARED)),
    "a policy loss": (PPO, "update", rewritten(PPO.update, CLIPPED)),
    "a decorator": (PPO, "update", negated(PPO.update)),
    "a log probability": (MLPModel, "get_output_log_prob", doubled(MLPModel.get_output_log_prob)),
    "a divergence": (MLPModel, "get_kl_divergence", doubled(MLPModel.get_kl_divergence)),
    "mini-batches": (
        RolloutStorage,
        "mini_batch_generator",
        rewritten(RolloutStorage.mini_batch_generator, ("torch.randperm(", "torch.arange(")),
    ),
    "time-outs": (
        PPO,
        "process_env_step",
        rewritten(PPO.process_env_step, ("self.gamma *", "0.5 * self.gamma *")),
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_method_of_rsl_rl_changes_the_training(env_cfg, rl_cfg, change, monkeypatch):
    """Learn the same with two threads as with one, and something else than without the change."""
    env_cfg.episode_length_s = 0.05
    before = learned(env_cfg, rl_cfg, threads=2)
    monkeypatch.setattr(*change)
    changed = learned(env_cfg, rl_cfg, threads=2)
    assert changed == pytest.approx(learned(env_cfg, rl_cfg, threads=1), rel=1e-3, abs=1e-5)
    assert changed != pytest.approx(before, rel=1e-3, abs=1e-5)


def test_a_changed_update_is_told_once(env_cfg, rl_cfg, monkeypatch):
    """Say which method was changed, in which version, and what follows."""
    runner = OnPolicyRunner(RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg)), rl_cfg)
    monkeypatch.setattr(PPO, "update", rewritten(PPO.update, SQUARED))
    with torch_threads(2), pytest.warns(UserWarning) as told:
        warnings.simplefilter("default")
        runner.learn(3)
    [message] = [str(item.message) for item in told if "rsl_rl" in str(item.message)]
    assert message.startswith("rsl_rl's PPO.update is not that of the versions 5.5.0 and 5.5.1")


def test_a_changed_mirror_loss_is_kept(env_cfg, rl_cfg, monkeypatch):
    """Use rsl_rl's symmetry as it is if its loss was changed."""
    rl_cfg.algorithm.symmetry_cfg = {
        "use_mirror_loss": True,
        "data_augmentation_func": f"{__name__}:images",
    }
    monkeypatch.setattr(Symmetry, "compute_loss", doubled(Symmetry.compute_loss))
    with pytest.warns(UserWarning, match=r"Symmetry.compute_loss is not that .* mirror loss"):
        runner = OnPolicyRunner(RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg)), rl_cfg)
    alg: Any = runner.alg
    assert type(alg.symmetry) is Symmetry


def images(env: Any, obs: Any, actions: Any) -> Any:
    """Return images of a user's own."""
    return obs, actions


class OwnStorage(RolloutStorage):
    """Storage of a user."""


class OwnActing(PPO):
    """Algorithm of a user, with a storage and actions of its own."""

    def __init__(self, actor: Any, critic: Any, storage: Any, **kwargs: Any) -> None:
        assert type(storage) is not RolloutStorage
        super().__init__(actor, critic, storage, **kwargs)

    @staticmethod
    def construct_algorithm(obs: Any, env: Any, cfg: Any, device: str) -> PPO:
        """Construct with another storage."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("rsl_rl.algorithms.ppo.RolloutStorage", OwnStorage)
            return PPO.construct_algorithm(obs, env, cfg, device)

    def act(self, obs: Any) -> torch.Tensor:
        """Return smaller actions."""
        return 0.5 * super().act(obs)


def test_storage_and_actions_of_ones_own_are_kept_or_refused(env_cfg, rl_cfg):
    """Keep a storage, and refuse actions that a copy of the policy elsewhere would not draw."""
    rl_cfg.algorithm.class_name = f"{__name__}:OwnActing"
    alg: Any = OnPolicyRunner(RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg)), rl_cfg).alg
    assert type(alg.storage) is OwnStorage and not can_update_in_parallel(alg)
    with pytest.raises(ValueError, match=r"OwnActing has a method act of its own, .* on 'cuda'"):
        alg.collect_on(torch.device("cuda"))


class OwnModel(MLPModel):
    """Network of a user."""


def test_what_two_threads_do_not_keep_is_left_to_rsl_rl(env_cfg, rl_cfg):
    """Leave networks of others, and optimizers that are watched, to one thread after another."""
    env = RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg))
    alg: Any = OnPolicyRunner(env, rl_cfg).alg
    assert can_update_in_parallel(alg)
    hook = alg.optimizer.register_step_post_hook(lambda *_: None)
    assert not can_update_in_parallel(alg)
    hook.remove()
    assert can_update_in_parallel(alg)
    torch.optim.lr_scheduler.ExponentialLR(alg.optimizer, 0.5)
    assert not can_update_in_parallel(alg)
    rl_cfg.critic.class_name = f"{__name__}:OwnModel"
    assert not can_update_in_parallel(OnPolicyRunner(env, rl_cfg).alg)


def test_what_is_not_a_function_is_not_known():
    """Know the installed methods, and nothing that wraps, renames or partially calls them."""
    methods = (PPO.update, PPO.act, RolloutStorage.mini_batch_generator, Symmetry.compute_loss)
    assert all(is_known(method) for method in methods)
    for other in (negated(PPO.update), functools.partial(PPO.update), PPO.compute_returns, len):
        assert not is_known(other)
