"""What a checkpoint leaves out, and what it must not."""

from __future__ import annotations

import io
import warnings
from typing import Any, cast

import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg, mdp
from manyworlds.managers import CurriculumTermCfg, RewardTermCfg
from tests.envs.forgetful_task import STATE, MeanReward, Term, task


def complaints(env: ManagerBasedRlEnv) -> list[str]:
    """Save, and return what is warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        env.state_dict()
    return [str(warning.message) for warning in caught]


def run(env: ManagerBasedRlEnv, actions: list[torch.Tensor]) -> list[Any]:
    """Take steps; return what is observed, rewarded, ended and logged."""
    seen = []
    for action in actions:
        obs, *rest, extras = cast("tuple[Any, ...]", env.step(action))
        seen.append([obs["actor"].clone(), *rest, repr(extras["log"])])
    return seen


def same(one: list[Any], other: list[Any]) -> bool:
    """Compare what two runs saw, bit for bit."""
    return all(
        a == b if isinstance(a, str) else torch.equal(a, b)
        for left, right in zip(one, other, strict=True)
        for a, b in zip(left, right, strict=True)
    )


def random_actions(env: ManagerBasedRlEnv, count: int) -> list[torch.Tensor]:
    """Draw actions that depend on no state."""
    source = torch.Generator().manual_seed(9)
    shape = env.num_envs, env.action_manager.total_action_dim
    return [2 * torch.rand(shape, generator=source) - 1 for _ in range(count)]


def resume(
    cfg: ManagerBasedRlEnvCfg, env: ManagerBasedRlEnv, actions: list[torch.Tensor]
) -> tuple[list[Any], list[Any], ManagerBasedRlEnv]:
    """Go on in an environment, and from its checkpoint in a new one; return what both saw."""
    file = io.BytesIO()
    torch.save(env.state_dict(), file)
    expected = run(env, actions)
    file.seek(0)
    other = ManagerBasedRlEnv(cfg)
    other.load_state_dict(torch.load(file, weights_only=True))
    return expected, run(other, actions), other


def test_what_is_not_named_is_warned_of_once():
    """Name the class, the attribute, the term and the remedy; say it once, in order of the task."""
    cfg = task(names_state=False)
    env = ManagerBasedRlEnv(cfg)
    assert complaints(env) == []
    actions = random_actions(env, 80)
    with torch.inference_mode():  # as rollouts do
        run(env, actions[:30])
    messages = complaints(env)
    unsaved = {f"{cls.__name__}.{name}" for cls, names in STATE.items() for name in names}
    assert sorted(message.split(" of ")[0] for message in messages) == sorted(unsaved)
    assert (
        "MeanReward.mean of env.reward_manager term 'mean' changes, but is not in any checkpoint, "
        "so a resumed run does not continue exactly: list it in state_attributes, or in "
        "derived_attributes if it is recomputed before it is read."
    ) in messages
    for place in (
        "LateObservation.past of env.observation_manager term 'actor/late'",
        "SmoothAction.stages of env.action_manager term 'smooth'",
        "LagSensor.buffer of env.scene.sensors['lag']",
        "TiringActuator.fatigue of env.scene.entities['robot'].actuators[0]",
    ):
        assert any(message.startswith(place) for message in messages)
    run(env, actions[30:32])
    assert complaints(env) == []
    expected, got, _ = resume(cfg, env, actions[32:])
    assert not same(expected, got)


def test_what_is_named_resumes_bit_for_bit():
    """Go on for 50 steps as if nothing had happened, without a warning."""
    cfg = task(names_state=True)
    env = ManagerBasedRlEnv(cfg)
    actions = random_actions(env, 80)
    run(env, actions[:30])
    assert complaints(env) == []
    expected, got, other = resume(cfg, env, actions[30:])
    assert same(expected, got)
    assert complaints(other) == []
    assert any(step[2].any() for step in expected)  # episodes ended


def test_changes_of_configs_that_a_curriculum_restores_are_no_state(env_cfg):
    """Reach a stage of a reward's weight, read limits and change a range of the model."""
    stages = [{"step": 0, "weight": 1.0}, {"step": 2, "weight": 3.0}]
    env_cfg.curriculum["steep"] = CurriculumTermCfg(
        func=mdp.reward_curriculum, params={"reward_name": "smooth_reward", "stages": stages}
    )
    env = ManagerBasedRlEnv(env_cfg)
    env.sim.expand_model_fields(("jnt_range",))
    env.sim.model.jnt_range[:] *= 0.9
    assert env.scene["cartpole"].data.soft_joint_pos_limits.shape == (4, 2, 2)
    actions = random_actions(env, 6)
    env.episode_length_buf[:] = env.max_episode_length - 3
    run(env, actions)
    assert env.reward_manager.get_term_cfg("smooth_reward").weight == 3.0
    assert complaints(env) == []


class Sum(Term):
    """Keeps a sum and what follows from it."""

    def __init__(self, cfg: Any, env: Any) -> None:
        super().__init__(cfg, env)
        self._sum = torch.zeros(env.num_envs)
        self.doubled = self._sum

    def __call__(self, env: Any) -> torch.Tensor:
        """Reward what has come together."""
        self._sum = self._sum + env.scene["robot"].data.joint_pos[:, 0] + 0.1
        self.doubled = 2 * self._sum
        return self.doubled


class SavesItself(Sum):
    """Overrides what is saved; the base class says what is derived."""

    derived_attributes = ("doubled",)

    def state_dict(self) -> dict[str, Any]:
        """Save the sum under a name of its own."""
        return {"total": [self._sum.clone()]}


class SavesByName(SavesItself):
    """Saves in another form, under its name."""

    derived_attributes = ()

    def state_dict(self) -> dict[str, Any]:
        """Save the sum as a list."""
        return {"sum": self._sum.tolist()}


class Plain:
    """A term that is no `Stateful`."""

    def __init__(self, cfg: Any, env: Any) -> None:
        self.sum = torch.zeros(env.num_envs)

    def __call__(self, env: Any) -> torch.Tensor:
        """Count."""
        self.sum += 1
        return self.sum.clone()

    def method(self, env: Any) -> torch.Tensor:
        """Count as a method of an object that the task made."""
        return self(env)


def counting() -> Any:
    """Make a function that counts in its closure."""
    calls = torch.zeros(4)

    def count(env: Any) -> torch.Tensor:
        calls.add_(1)
        return calls.clone()

    return count


def remembering(env: Any, memo: list[int] = []) -> torch.Tensor:  # noqa: B006
    """Keep state in a default, as one should not."""
    memo.append(1)
    remembering.calls = len(memo)  # type: ignore[attr-defined]
    return torch.full((env.num_envs,), float(len(memo)))


class Env(ManagerBasedRlEnv):
    """Has attributes of its own, made after the base class was built."""

    def __init__(self, cfg: ManagerBasedRlEnvCfg) -> None:
        super().__init__(cfg)
        self.table, self.total = torch.arange(3.0), torch.zeros(4)

    def step(self, action: torch.Tensor) -> Any:
        """Count steps."""
        self.total += 1
        return super().step(action)


@pytest.mark.parametrize(
    ("func", "expected"),
    [
        (Sum, ["Sum._sum", "Sum.doubled"]),
        (SavesItself, []),
        (SavesByName, []),
        (Plain, ["Plain.sum"]),
        (counting(), ["count.calls"]),
        (remembering, ["remembering.calls", "remembering.memo"]),
        (Plain(None, type("FourWorlds", (), {"num_envs": 4})).method, ["Plain.sum"]),
    ],
)
def test_overrides_opt_outs_and_functions(env_cfg, func, expected):
    """Believe an overridden `state_dict`; look into functions and plain objects, too."""
    env_cfg.scene.entities["robot"] = env_cfg.scene.entities["cartpole"]
    env_cfg.rewards["own"] = RewardTermCfg(func=func, weight=1.0)
    env = ManagerBasedRlEnv(env_cfg)
    run(env, random_actions(env, 3))
    messages = complaints(env)
    assert sorted(message.split(" of ")[0] for message in messages) == expected
    assert all("env.reward_manager term 'own'" in message for message in messages)


def test_subclasses_of_the_environment_count_from_their_first_checkpoint(env_cfg):
    """Warn of what changes between checkpoints, not of what a subclass made after the build."""
    env = Env(env_cfg)
    run(env, random_actions(env, 2))
    assert complaints(env) == []
    run(env, random_actions(env, 2))
    assert [message.split(" changes")[0] for message in complaints(env)] == ["Env.total of env"]


@pytest.mark.parametrize(
    ("state", "error", "message"),
    [
        (
            ("mean", "men"),
            AttributeError,
            r"MeanReward.state_attributes names 'men', which env.reward_manager term 'mean' does "
            r"not have once it is built: .* it has .*mean",
        ),
        (("mean", "lambda_"), TypeError, r"MeanReward.lambda_ .* a method cannot be saved"),
    ],
)
def test_wrong_names_are_refused_at_the_build(state, error, message):
    """Refuse names of what is not there, and of what cannot be saved."""
    wrong = type(
        "MeanReward", (MeanReward,), {"state_attributes": state, "lambda_": lambda self: None}
    )
    cfg = task(names_state=True)
    cfg.rewards["mean"] = RewardTermCfg(func=wrong, weight=1.0)
    with pytest.raises(error, match=message):
        ManagerBasedRlEnv(cfg)
