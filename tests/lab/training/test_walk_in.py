"""A world of a batch that goes on in a lab."""

from __future__ import annotations

import pytest
import torch

from manyworlds.cli.policies import UntrainedPolicy
from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.lab import LabCfg, LiveLab, RecorderCfg, world_from_env
from manyworlds.rl.inference import InferencePolicy
from manyworlds.tasks import load_env_cfg

TASKS = ["Velocity-Rough-Quadruped", "Lift-Cube-Arm", "Push-Variants", "Tracking-Flat-Humanoid"]
WORLDS, STEPS = 4, 25


class Replayed:
    """Actions that were drawn before, for any number of worlds."""

    def __init__(self, actions: torch.Tensor) -> None:
        self.actions = iter(actions)

    def __call__(self, obs):
        return next(self.actions)


def make_env(task: str) -> tuple[ManagerBasedRlEnv, torch.Tensor]:
    """Worlds of a task some steps after the start, and actions for the next ones."""
    cfg = load_env_cfg(task)
    cfg.scene.num_envs, cfg.seed = WORLDS, 4
    env = ManagerBasedRlEnv(cfg, device="cpu")
    shape = STEPS, WORLDS, env.action_manager.total_action_dim
    actions = torch.rand(shape, generator=torch.Generator().manual_seed(1)) - 0.5
    for action in actions[:9]:
        env.step(action)
    return env, actions


def open_lab(env: ManagerBasedRlEnv, env_id: int, policy=None) -> LiveLab:
    """Walk into a world; the lab waits for steps."""
    return LiveLab.walk_into(
        env, env_id, policy, LabCfg(mode="direct", recorder=RecorderCfg(to_file=False))
    )


def state_of(env: ManagerBasedRlEnv, env_id: int) -> bytes:
    """State of a world, to the last bit."""
    start = world_from_env(env, env_id).start
    assert start is not None
    return start.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_the_lab_goes_on_as_the_batch_would(task):
    """Walk into world 2: state, observations and commands of its next control steps are equal."""
    env, actions = make_env(task)
    lab = open_lab(env, 2, Replayed(actions[:, 2:3]))
    stepper, period = lab.environment, env.cfg.decimation
    assert stepper is not None
    assert state_of(stepper.env, 0) == state_of(env, 2)
    assert lab.snapshot.qpos.tobytes() == world_from_env(env, 2).new_data().qpos.tobytes()
    for action in actions:
        obs = env.step(action)[0]
        lab.step(period)
        assert state_of(stepper.env, 0) == state_of(env, 2)
        assert lab.snapshot.time == float(world_from_env(env, 2).new_data().time)
        for name, group in stepper.env.obs_buf.items():
            assert torch.equal(group[0], obs[name][2]), name
        terms = dict(env.command_manager.get_active_iterable_terms(2))
        assert stepper.report.commands == {name: tuple(values) for name, values in terms.items()}
    lab.stop()
    env.close()


def test_a_pull_in_the_lab_does_not_reach_the_batch():
    """Pull and reset in the lab: the batch stays as it is."""
    env, _ = make_env("Cartpole-Balance")
    before = state_of(env, 1)
    lab = open_lab(env, 1)
    lab.loop.do(lambda model, data: data.qvel.__setitem__(0, 3.0))
    lab.step(20)
    lab.reset()
    assert state_of(env, 1) == before
    lab.stop()
    env.close()


def test_untrained_policies_walk_along():
    """Walk in with actions of zero and with random ones: one row of actions."""
    env, _ = make_env("Cartpole-Balance")
    for kind in ("zero", "random"):
        lab = open_lab(env, 3, UntrainedPolicy(env, kind))
        lab.step(3 * env.cfg.decimation)
        assert lab.environment.report.step == int(env.episode_length_buf[3]) + 3
        lab.stop()
    env.close()


@pytest.mark.parametrize("kind", ["MLPModel", "RNNModel"])
def test_a_trained_policy_takes_the_memory_of_its_world_along(kind):
    """Walk in with a network, also a recurrent one: its next action is that of the batch."""
    models = pytest.importorskip("rsl_rl.models", reason="needs the extra 'train'")
    tensordict = pytest.importorskip("tensordict")
    env, _ = make_env("Velocity-Flat-Quadruped")
    torch.manual_seed(0)
    more = {"rnn_type": "lstm", "rnn_hidden_dim": 8} if kind == "RNNModel" else {}
    obs = tensordict.TensorDict(dict(env.obs_buf), [WORLDS])
    actor = getattr(models, kind)(obs, {"actor": ["actor"]}, "actor", 12, [16], **more)
    policy = InferencePolicy(actor.eval(), 1.0, env)
    for _ in range(3):
        env.step(policy(env.obs_buf))
    lab = open_lab(env, 2, policy)
    memory = policy.state_dict()
    expected = policy(env.obs_buf)[2]
    policy.load_state_dict(memory)
    lab.step()
    taken = lab.environment.env.action_manager.action[0]
    torch.testing.assert_close(taken, expected, rtol=1e-5, atol=1e-6)
    for name, parts in policy.state_dict().items():
        assert all(map(torch.equal, parts, memory[name]))  # the lab has a copy
    lab.stop()
    env.close()


def test_a_memory_of_all_worlds_is_refused():
    """Walk in with a policy that remembers all worlds at once: the message names the remedy."""

    class Remembering:
        def __call__(self, obs):
            return torch.zeros(WORLDS, 1)

        def reset(self, dones=None):
            return None

    env, _ = make_env("Cartpole-Balance")
    with pytest.raises(ValueError, match=r"Remembering has a memory .* of_world\(env_id, env\)"):
        open_lab(env, 1, Remembering())
    with pytest.raises(ValueError, match="no world 4: the environment has 4 worlds"):
        open_lab(env, 4)
    env.close()
