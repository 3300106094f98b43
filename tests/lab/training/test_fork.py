"""Walking into one world of a batch."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.lab import LiveLab
from manyworlds.tasks import load_env_cfg

STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)


def make_env(task: str = "Velocity-Flat-Quadruped") -> ManagerBasedRlEnv:
    """Four worlds of different masses and frictions, on their way for a while."""
    cfg = load_env_cfg(task)
    cfg.scene.num_envs, cfg.seed = 4, 1
    env = ManagerBasedRlEnv(cfg)
    env.reset()
    env.sim.expand_model_fields(("body_mass", "geom_friction"))
    env.sim.model.body_mass[:] *= 1.0 + 0.2 * torch.rand_like(env.sim.model.body_mass)
    env.sim.model.geom_friction[:] *= 0.5 + torch.rand_like(env.sim.model.geom_friction)
    for _ in range(10):
        env.step(2.0 * torch.rand(4, env.action_manager.total_action_dim) - 1.0)
    return env


def state_of(env: ManagerBasedRlEnv, env_id: int) -> np.ndarray:
    """All of a world's state, in double precision."""
    model, data = next(iter(env.sim.world_copies([env_id])))
    state = np.empty(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, data, state, STATE)
    return state


@pytest.mark.parametrize("task", ["Velocity-Flat-Quadruped", "Push-Variants"])
def test_a_fork_goes_on_as_the_batch_does(task):
    """Walk into a world, also of variants: two hundred steps are those of the batch, to the bit."""
    env = make_env(task)
    before = [state_of(env, i).tobytes() for i in range(4)]
    lab = LiveLab.from_env(env, 2)
    lab.step(200)
    assert [state_of(env, i).tobytes() for i in range(4)] == before
    mass = env.sim.model.body_mass[2].numpy()
    assert np.allclose(lab.world.model.body_mass, mass, rtol=1e-6)
    env.sim.step(200)
    state = state_of(env, 2)
    mine = np.empty_like(state)
    mujoco.mj_getState(lab.world.model, lab.loop.data, mine, STATE)
    assert mine.tobytes() == state.tobytes()
    lab.reset()
    again = np.empty_like(state)
    mujoco.mj_getState(lab.world.model, lab.loop.data, again, STATE)
    assert again.tobytes() == before[2]
    lab.stop()


def test_there_must_be_such_a_world():
    """Walk into a world that is not there."""
    env = make_env()
    with pytest.raises(ValueError, match="no world 4: the batch has 4"):
        LiveLab.from_env(env, 4)
