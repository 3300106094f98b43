"""PPO: its update in one and two threads, its settings, and changes of rsl_rl that it respects."""

from __future__ import annotations

import functools
import inspect
import textwrap
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import rsl_rl.algorithms
import torch
from rsl_rl.algorithms import Distillation
from rsl_rl.extensions import Symmetry
from rsl_rl.models import MLPModel
from rsl_rl.storage import RolloutStorage

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.rl import OnPolicyRunner, RslRlVecEnvWrapper
from manyworlds.rl.config import RslRlRndCfg, RslRlSymmetryCfg
from manyworlds.rl.ppo import PPO, algorithm_class, changed_methods
from manyworlds.utils.devices import torch_threads

pytestmark = pytest.mark.slow_on_warp

RSL_RL = rsl_rl.algorithms.PPO
SETTINGS = {
    "as shipped": {},
    "clipped values": {"use_clipped_value_loss": True, "value_loss_coef": 0.5},
    "unclipped values": {"use_clipped_value_loss": False, "max_grad_norm": 0.01},
    "fixed rate": {"schedule": "fixed", "entropy_coef": 0.1},
    "large changes": {"desired_kl": 1e-6, "learning_rate": 0.003},
    "own rate of the critic": {"critic_learning_rate": 7e-4},
    "mixed precision": {"use_mixed_precision": True},
    "advantages of a mini-batch": {"normalize_advantage_per_mini_batch": True},
    "new observations": {"rnd_cfg": RslRlRndCfg(weight=5.0, state_normalization=True)},
    "mirror loss": {
        "symmetry_cfg": RslRlSymmetryCfg(
            use_mirror_loss=True, data_augmentation_func=f"{__name__}:images"
        )
    },
    "mirror images": {
        "symmetry_cfg": RslRlSymmetryCfg(
            use_data_augmentation=True, data_augmentation_func=f"{__name__}:images"
        )
    },
    "adamw": {"optimizer": "adamw"},
    "sgd": {"optimizer": "sgd"},
    "rmsprop": {"optimizer": "rmsprop", "num_mini_batches": 3, "num_learning_epochs": 2},
}


def images(env: Any, obs: Any, actions: Any) -> Any:
    """Return samples with images whose numbers have the other sign."""
    if obs is not None:
        obs = torch.cat([obs, obs.apply(torch.neg)])
    if actions is not None:
        actions = torch.cat([actions, -actions])
    return obs, actions


def make_runner(env_cfg, rl_cfg) -> OnPolicyRunner:
    """Make a runner of a fresh environment, whose networks normalize observations."""
    torch.manual_seed(3)
    rl_cfg.actor.obs_normalization = rl_cfg.critic.obs_normalization = True
    return OnPolicyRunner(RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg)), rl_cfg)


def collect(alg, env) -> None:
    """Collect a rollout, and compute its returns."""
    obs = env.get_observations()
    with torch.inference_mode():
        for _ in range(alg.storage.num_transitions_per_env):
            obs, rewards, dones, extras = env.step(alg.act(obs))
            alg.process_env_step(obs, rewards, dones, extras)
        alg.compute_returns(obs)


def results(env_cfg, rl_cfg, update: Callable[[Any], dict[str, float]], threads: int) -> Any:
    """Return losses, networks and optimizer, learning rate and random state of three updates."""
    runner = make_runner(env_cfg, rl_cfg)
    alg: Any = runner.alg
    losses = []
    for _ in range(3):
        collect(alg, runner.env)
        with torch_threads(threads):
            losses.append(update(alg))
    assert alg.optimizer.param_groups[0]["lr"] == alg.learning_rate
    return losses, alg.save(), alg.learning_rate, torch.get_rng_state()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_the_result_is_that_of_rsl_rl(env_cfg, rl_cfg, settings, threads):
    """Equal losses, weights, optimizer, learning rate and random state, bit for bit."""
    for name, value in settings.items():
        setattr(rl_cfg.algorithm, name, value)
    mine = results(env_cfg, rl_cfg, PPO.update, threads)
    theirs = results(env_cfg, rl_cfg, RSL_RL.update, 1)
    if "symmetry_cfg" in settings:  # whose outputs rsl_rl computes again, in one more operation
        torch.testing.assert_close(mine[1:3], theirs[1:3], rtol=1e-4, atol=1e-6)
        return
    assert [sorted(each.items()) for each in mine[0]] == [sorted(e.items()) for e in theirs[0]]
    torch.testing.assert_close(mine[1:], theirs[1:], rtol=0.0, atol=0.0)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("memory", ["gru", "lstm"])
def test_recurrent_networks_learn_as_with_rsl_rl(env_cfg, rl_cfg, memory, threads):
    """Equal results for sequences, whose ends of episodes lie anywhere."""
    env_cfg.episode_length_s = 0.2
    rl_cfg.algorithm.num_mini_batches = 2  # in one of a single world, rsl_rl loses a dimension
    for network in (rl_cfg.actor, rl_cfg.critic):
        network.class_name, network.rnn_type, network.rnn_hidden_dim = "RNNModel", memory, 8
    mine = results(env_cfg, rl_cfg, PPO.update, threads)
    theirs = results(env_cfg, rl_cfg, RSL_RL.update, 1)
    torch.testing.assert_close(mine[1:], theirs[1:], rtol=0.0, atol=0.0)


def test_mixed_precision_rounds_and_learns_the_same(env_cfg, rl_cfg):
    """Change the loss of equal parameters by the rounding of bfloat16; keep those in float32."""
    rl_cfg.algorithm.num_learning_epochs = rl_cfg.algorithm.num_mini_batches = 1
    losses = []
    for mixed in (False, True):
        rl_cfg.algorithm.use_mixed_precision = mixed
        runner = make_runner(env_cfg, rl_cfg)
        alg: Any = runner.alg
        collect(alg, runner.env)
        with torch_threads(2):
            losses.append(alg.update()["value"])
    assert losses[0] != losses[1] == pytest.approx(losses[0], rel=0.02)
    parameters = [*alg.actor.parameters(), *alg.critic.parameters()]
    assert {p.dtype for p in parameters} == {torch.float32}


def has_critic_thread(alg: Any) -> bool:
    """Return whether the critic learns in a thread of its own, if torch has two."""
    with torch_threads(2), alg._critic_thread() as thread:
        return thread is not None


class OwnModel(MLPModel):
    """Network of a user."""


def test_the_critic_has_a_thread_where_two_are_of_use(env_cfg, rl_cfg):
    """Take one for two threads and more, but not for networks that may draw random numbers."""
    runner = make_runner(env_cfg, rl_cfg)
    alg: Any = runner.alg
    critic_loss = alg.critic_loss
    names: list[tuple[str, int]] = []

    def noted(*args: Any) -> Any:
        names.append((threading.current_thread().name.split("_")[0], torch.get_num_threads()))
        return critic_loss(*args)

    before = torch.get_num_threads()
    alg.critic_loss = noted
    for threads, expected in ((1, ("MainThread", 1)), (2, ("critic", 1)), (5, ("critic", 2))):
        collect(alg, runner.env)
        names.clear()
        with torch_threads(threads):
            alg.update()
        assert set(names) == {expected}
    assert torch.get_num_threads() == before
    rl_cfg.critic.class_name = f"{__name__}:OwnModel"
    alg = make_runner(env_cfg, rl_cfg).alg
    assert not has_critic_thread(alg)


def test_networks_that_share_parameters_learn_in_one_thread(env_cfg, rl_cfg):
    """Two threads would add to one gradient at the same time."""
    alg: Any = make_runner(env_cfg, rl_cfg).alg
    assert has_critic_thread(alg)
    alg.critic.mlp[0] = alg.actor.mlp[0]
    assert not has_critic_thread(alg)


@pytest.mark.parametrize("network", ["actor", "critic"])
def test_an_error_of_either_network_is_raised(env_cfg, rl_cfg, network, monkeypatch):
    """Raise the error that one thread had, and do not wait for the other."""
    runner = make_runner(env_cfg, rl_cfg)
    alg: Any = runner.alg
    collect(alg, runner.env)

    def fail(*_args, **_kwargs):
        raise ArithmeticError(f"the {network} failed")

    monkeypatch.setattr(getattr(alg, network), "forward", fail)
    with torch_threads(2), pytest.raises(ArithmeticError, match=f"the {network} failed"):
        alg.update()


class OwnLoss(PPO):
    """An algorithm of a user with another loss of the policy."""

    def actor_loss(self, batch: Any, size: int) -> Any:
        """Penalize large actions."""
        loss, parts = super().actor_loss(batch, size)
        parts["size"] = self.actor.output_mean.square().mean()
        return loss + parts["size"], parts


def test_a_loss_of_ones_own_trains_in_two_threads(env_cfg, rl_cfg):
    """Learn something else with it, the same with both numbers of threads, and log its parts."""
    plain = learned(env_cfg, rl_cfg, threads=2)
    rl_cfg.algorithm.class_name = f"{__name__}:OwnLoss"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        own = learned(env_cfg, rl_cfg, threads=2)
    assert own == learned(env_cfg, rl_cfg, threads=1)
    assert len(own) == len(plain) + 2  # the part of two iterations
    assert own[-100:] != plain[-100:]


class OwnPPO(RSL_RL):
    """An algorithm of a user, which records what it is given."""

    def update(self) -> dict[str, float]:
        """Learn, and record the number of threads."""
        self.threads = torch.get_num_threads()
        return super().update()

    def process_env_step(self, obs: Any, rewards: Any, dones: Any, extras: Any) -> None:
        """Record the rewards."""
        self.rewards, self.time_outs = rewards, extras.get("time_outs")
        super().process_env_step(obs, rewards, dones, extras)


def test_the_class_of_rsl_rl_is_replaced_and_no_other_one():
    """Take the class of this package for PPO, by any name, and every other one as it is."""
    for name in ("PPO", "rsl_rl.algorithms:PPO", RSL_RL, PPO, "manyworlds.rl.ppo:PPO"):
        assert algorithm_class({"class_name": name}) is PPO
    assert algorithm_class({"class_name": "Distillation"}) is Distillation
    assert algorithm_class({"class_name": OwnLoss}) is OwnLoss
    with pytest.warns(UserWarning, match=r"OwnPPO is not .* lacks .* value of the final obs"):
        assert algorithm_class({"class_name": f"{__name__}:OwnPPO"}) is OwnPPO
    with pytest.raises(ValueError, match="'PPOO'"):
        algorithm_class({"class_name": "PPOO"})


@pytest.mark.filterwarnings("ignore:The algorithm OwnPPO")
def test_an_algorithm_of_ones_own_runs_as_it_is(env_cfg, rl_cfg):
    """Give it rewards and time-outs as they are, and all threads; set none of its attributes."""
    rl_cfg.algorithm.class_name = f"{__name__}:OwnPPO"
    env = RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg))
    runner = OnPolicyRunner(env, rl_cfg)
    alg: Any = runner.alg
    assert type(alg) is OwnPPO and not {"update", "process_env_step"} & vars(alg).keys()
    assert runner.cfg["algorithm"]["class_name"] == f"{__name__}:OwnPPO"
    env.unwrapped.episode_length_buf[1] = 199
    with torch.inference_mode():
        obs, rewards, dones, extras = env.step(alg.act(env.get_observations()))
        alg.process_env_step(obs, rewards, dones, extras)
    assert alg.time_outs.tolist() == [False, True, False, False]
    assert torch.equal(alg.rewards, rewards)
    alg.storage.clear()
    runner.learn(1)
    assert alg.threads == torch.get_num_threads()


@pytest.mark.parametrize(
    ("name", "value"), [("averaged_iterations", 9.0), ("entropy_stages", ((1, 0.1),))]
)
def test_settings_that_an_algorithm_does_not_have_are_refused(env_cfg, rl_cfg, name, value):
    """Name the setting, the class, and the remedy."""
    rl_cfg.algorithm.class_name = f"{__name__}:OwnPPO"
    setattr(rl_cfg.algorithm, name, value)
    env = RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg))
    with pytest.raises(ValueError, match=f"{name} is .* but OwnPPO does not have this setting"):
        OnPolicyRunner(env, rl_cfg)


@pytest.mark.parametrize("name", ["adam", "adamw", "sgd", "rmsprop"])
def test_optimizers_keep_their_settings(env_cfg, rl_cfg, tmp_path, name):
    """Learn with each optimizer, as one kernel where torch has one; follow the learning rate."""
    rl_cfg.algorithm.optimizer, rl_cfg.algorithm.learning_rate = name, 0.0007
    runner = OnPolicyRunner(RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg)), rl_cfg)
    optimizer: Any = runner.alg.optimizer
    [group] = optimizer.param_groups
    assert group["lr"] == 0.0007 and group.get("fused", False) == (name != "rmsprop")
    parameters = [*runner.alg.actor.parameters(), *runner.alg.critic.parameters()]
    assert [id(p) for p in group["params"]] == [id(p) for p in parameters]
    before = [p.detach().clone() for p in parameters]
    runner.learn(1)
    assert all(not torch.equal(old, new) for old, new in zip(before, parameters, strict=True))
    assert optimizer.param_groups[0]["lr"] == runner.alg.learning_rate


@pytest.mark.parametrize("name", ["adam", "adamw", "sgd", "rmsprop"])
def test_the_critic_learns_at_a_rate_of_its_own(env_cfg, rl_cfg, name):
    """Keep the critic's learning rate while that of the actor adapts, also after loading."""
    rl_cfg.algorithm.optimizer, rl_cfg.algorithm.critic_learning_rate = name, 0.0007
    rl_cfg.algorithm.desired_kl = 1e9  # increases the actor's rate
    runner = OnPolicyRunner(RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg)), rl_cfg)
    alg: Any = runner.alg
    actor, critic = alg.optimizer.param_groups
    for group, network in ((actor, alg.actor), (critic, alg.critic)):
        assert [id(p) for p in group["params"]] == [id(p) for p in network.parameters()]
        assert group.get("fused", False) == (name != "rmsprop")
    runner.learn(1)
    assert actor["lr"] == alg.learning_rate > 0.001
    assert critic["lr"] == critic["own_lr"] == 0.0007 and "own_lr" not in actor
    alg.load(alg.save(), None, True)
    alg.learning_rate = 0.0
    for group in alg.optimizer.param_groups:
        group["lr"] = 0.0
    before = [[p.detach().clone() for p in net.parameters()] for net in (alg.actor, alg.critic)]
    alg.optimizer.step()
    for network, old, moved in zip((alg.actor, alg.critic), before, (False, True), strict=True):
        same = [torch.equal(p, was) for p, was in zip(network.parameters(), old, strict=True)]
        assert not any(same) if moved else all(same)
    assert [group["lr"] for group in alg.optimizer.param_groups] == [0.0, 0.0007]


@pytest.mark.parametrize("rate", [0.0, -1e-3, float("nan")])
def test_a_rate_of_the_critic_that_is_not_positive_is_refused(env_cfg, rl_cfg, rate):
    """Say the value and the remedy before the training starts."""
    rl_cfg.algorithm.critic_learning_rate = rate
    env = RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg))
    with pytest.raises(ValueError, match=f"critic_learning_rate is {rate}, but must be positive"):
        OnPolicyRunner(env, rl_cfg)


@pytest.mark.parametrize("name", ["entropy_coef", "learning_rate"])
def test_settings_change_at_their_iterations(env_cfg, rl_cfg, tmp_path, name):
    """Apply each stage from its iteration on, also in a run that goes on later."""
    cfg = rl_cfg.algorithm
    cfg.schedule, cfg.entropy_coef, cfg.learning_rate = "fixed", 0.3, 0.3
    setattr(cfg, name.replace("_coef", "") + "_stages", ((1, 0.2), (3, 0.1)))
    env = RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg))
    runner, used = OnPolicyRunner(env, rl_cfg), []
    alg: Any = runner.alg
    runner.on_iteration(lambda record: used.append((getattr(alg, name), _rate(alg))))
    runner.learn(4)
    values = [0.3, 0.2, 0.2, 0.1]
    rates = values if name == "learning_rate" else [0.3] * 4
    assert used == list(zip(values, rates, strict=True))
    runner.save(tmp_path / "last.pt")
    again: Any = OnPolicyRunner(env, rl_cfg)
    assert getattr(again.alg, name) == 0.3
    again.load(tmp_path / "last.pt")
    again.learn(1)
    assert (getattr(again.alg, name), _rate(again.alg)) == (0.1, rates[-1])


def _rate(alg: Any) -> float:
    [group] = alg.optimizer.param_groups
    return group["lr"]


@pytest.mark.parametrize("name", ["entropy_stages", "learning_rate_stages"])
@pytest.mark.parametrize(
    "stages", [((5, 0.1), (5, 0.2)), ((5, 0.1), (3, 0.2)), ((-1, 0.1),), ((1, float("nan")),)]
)
def test_stages_out_of_order_are_refused(env_cfg, rl_cfg, name, stages):
    """Say the value and an example before the training starts."""
    rl_cfg.algorithm.schedule = "fixed"
    setattr(rl_cfg.algorithm, name, stages)
    env = RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg))
    with pytest.raises(ValueError, match=f"{name} is .* such as \\(\\(200, 0.002\\),\\)"):
        OnPolicyRunner(env, rl_cfg)


def test_stages_of_an_adaptive_learning_rate_are_refused(env_cfg, rl_cfg):
    """Say that the schedule sets the rate."""
    rl_cfg.algorithm.schedule, rl_cfg.algorithm.learning_rate_stages = "adaptive", ((5, 0.1),)
    env = RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg))
    with pytest.raises(ValueError, match="schedule is 'adaptive', which sets the learning rate"):
        OnPolicyRunner(env, rl_cfg)


def test_encoders_that_the_critic_shares_learn_with_the_actor(env_cfg, rl_cfg):
    """Optimize each parameter once, also if both networks have it."""
    rl_cfg.algorithm.critic_learning_rate = 0.0007
    alg: Any = OnPolicyRunner(RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg)), rl_cfg).alg
    alg.critic.mlp = alg.actor.mlp
    actor, critic = alg._make_optimizer(0.0007).param_groups
    own = [p for p in alg.critic.parameters() if all(p is not q for q in alg.actor.parameters())]
    assert len(actor["params"]) == len([*alg.actor.parameters()])
    assert [id(p) for p in critic["params"]] == [id(p) for p in own]


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
    "a value loss": (RSL_RL, "update", rewritten(RSL_RL.update, SQUARED)),
    "a policy loss": (RSL_RL, "update", rewritten(RSL_RL.update, CLIPPED)),
    "a decorator": (RSL_RL, "update", negated(RSL_RL.update)),
    "actions": (RSL_RL, "act", doubled(RSL_RL.act)),
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
        rewritten(RSL_RL.process_env_step, ("self.gamma *", "0.5 * self.gamma *")),
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
    monkeypatch.setattr(RSL_RL, "update", rewritten(RSL_RL.update, SQUARED))
    with torch_threads(2), pytest.warns(UserWarning) as told:
        warnings.simplefilter("default")
        runner.learn(3)
    [message] = [str(item.message) for item in told if "rsl_rl" in str(item.message)]
    assert message.startswith("rsl_rl's PPO.update is not that of the versions 5.5.0 and 5.5.1")


def test_a_changed_mirror_loss_is_kept(env_cfg, rl_cfg, monkeypatch):
    """Leave the update to rsl_rl, which calls the loss that was changed."""
    rl_cfg.algorithm.symmetry_cfg = SETTINGS["mirror loss"]["symmetry_cfg"]
    rl_cfg.algorithm.num_learning_epochs = rl_cfg.algorithm.num_mini_batches = 1
    plain = learned(env_cfg, rl_cfg, threads=2)
    monkeypatch.setattr(Symmetry, "compute_loss", doubled(Symmetry.compute_loss))
    with pytest.warns(UserWarning, match=r"Symmetry.compute_loss is not that .* runs as it is"):
        changed = learned(env_cfg, rl_cfg, threads=2)
    of_mirror = 3  # after those of value, policy and entropy
    assert plain[of_mirror] > 0.0
    assert changed[of_mirror] == pytest.approx(2.0 * plain[of_mirror])


class OwnStorage(RolloutStorage):
    """Storage of a user, whose mini-batches are in the order of the rollout."""

    def mini_batch_generator(self, *args: Any) -> Any:
        """Shuffle nothing."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch, "randperm", lambda size, **_: torch.arange(size))
            yield from super().mini_batch_generator(*args)


def test_a_storage_of_ones_own_is_kept(env_cfg, rl_cfg, monkeypatch):
    """Learn from its mini-batches."""
    shuffled = learned(env_cfg, rl_cfg, threads=2)
    monkeypatch.setattr("rsl_rl.algorithms.ppo.RolloutStorage", OwnStorage)
    assert learned(env_cfg, rl_cfg, threads=2) != pytest.approx(shuffled, rel=1e-3, abs=1e-5)


def test_what_is_not_a_function_is_a_change(monkeypatch):
    """Know the installed methods, and nothing that wraps, renames or partially calls them."""
    assert changed_methods() == set()
    update = RSL_RL.update
    for other in (negated(update), functools.partial(update), RSL_RL.compute_returns, len):
        monkeypatch.setattr(RSL_RL, "update", other)
        assert changed_methods() == {"PPO.update"}
