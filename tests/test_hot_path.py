"""How many functions of the package the paths of every training run call, in a warm environment."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import manyworlds
from manyworlds.entity import Entity
from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.tasks import load_env_cfg

_PACKAGE = str(Path(manyworlds.__file__).parent)


def own_calls(call: Callable[[], object]) -> int:
    """Count the calls of the package's functions, comprehensions and generators in a call."""
    count = 0

    def count_own(frame, event, argument):
        nonlocal count
        if event == "call" and frame.f_code.co_filename.startswith(_PACKAGE):
            count += 1

    before = sys.getprofile()
    sys.setprofile(count_own)
    try:
        call()
    finally:
        sys.setprofile(before)
    return count


@pytest.fixture
def env():
    """Return four worlds of the cartpole that have stepped and been reset, so caches are full."""
    cfg = load_env_cfg("Cartpole-Balance")
    cfg.scene.num_envs = 4
    env = ManagerBasedRlEnv(cfg, device="cpu")
    env.reset()
    env.step(torch.zeros(4, 1))
    env.reset(env_ids=torch.tensor([0, 1]))
    env.step(torch.zeros(4, 1))
    env.step(torch.zeros(4, 1))
    return env


def test_calls_of_a_control_step(env):
    """Count the calls of a control step in which no episode ends."""
    action = torch.zeros(4, 1)
    assert own_calls(lambda: env.step(action)) <= 120


def test_calls_of_a_reset(env):
    """Count the calls of a reset of two worlds, which includes their observations."""
    ids = torch.tensor([0, 1])
    assert own_calls(lambda: env.reset(env_ids=ids)) <= 250


def test_calls_of_a_state_write(env):
    """Count the calls that write positions and velocities of all joints of two worlds."""
    cartpole = env.scene["cartpole"]
    assert isinstance(cartpole, Entity)
    ids = torch.tensor([0, 1])
    value = torch.zeros(2, 2)
    count = own_calls(lambda: cartpole.write_joint_state_to_sim(value, value, env_ids=ids))
    assert count <= 12
