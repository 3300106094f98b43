"""Gravity of each world."""

from __future__ import annotations

import copy

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.envs.mdp import dr
from manyworlds.managers import EventTermCfg
from tests.envs.mdp.dr.robot import make_env

SOME = torch.tensor([1, 3])


def test_worlds_fall_as_plain_mujoco_with_their_gravity(engine):
    """Draw another gravity for each world, and step as MuJoCo with it."""
    params = {"ranges": {0: (-3.0, 3.0), 2: (-2.0, 5.0)}}
    env = make_env(engine=engine, g=EventTermCfg(func=dr.gravity, mode="startup", params=params))
    gravity = env.sim.model.opt.gravity.clone()
    assert gravity.shape == (4, 3) and (gravity[:, 1] == 0.0).all()
    assert len(gravity[:, 0].unique()) == 4 and gravity[:, 0].abs().max() <= 3.0
    assert gravity[:, 2].min() >= -11.81 and gravity[:, 2].max() <= -4.80
    start = env.sim.data.qpos.clone()
    start[:, 2] += 5.0  # far above the floor
    env.sim.data.qpos[:] = start
    env.sim.data.qvel.zero_()
    env.sim.step(20)
    for world in range(4):
        model = copy.copy(env.sim.mj_model)
        model.opt.gravity[:] = gravity[world].numpy()
        data = mujoco.MjData(model)
        data.qpos[:] = start[world].numpy()
        for _ in range(20):
            mujoco.mj_step(model, data)
        now = env.sim.data.qpos[world].numpy()
        np.testing.assert_allclose(now, data.qpos, atol=2e-4 if engine == "warp" else 1e-6)


def test_operations_and_worlds(engine):
    """Set, scale or add in the worlds named, from the compiled values each time."""
    env = make_env(engine=engine)
    compiled = env.sim.get_default_field("opt.gravity")
    for _ in range(3):
        dr.gravity(env, SOME, (0.5, 0.5), operation="scale")
    expected = compiled.repeat(4, 1)
    expected[SOME] *= 0.5
    torch.testing.assert_close(env.sim.model.opt.gravity[:], expected)
    dr.gravity(env, SOME, {0: (1.0, 1.0)}, operation="abs")
    expected[SOME, 0] = 1.0
    torch.testing.assert_close(env.sim.model.opt.gravity[:], expected)
    dr.gravity(env, torch.tensor([0]), (2.0, 2.0))
    assert env.sim.model.opt.gravity[0].tolist() == pytest.approx((compiled + 2.0).tolist())


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"ranges": {3: (0.0, 1.0)}}, "Invalid axes"),
        ({"ranges": (1.0, 0.0)}, "above its upper bound"),
        ({"ranges": {"robot": (0.0, 1.0)}}, "'robot' matches none"),
        ({"ranges": (0.0, 1.0), "operation": "times"}, "Unknown operation"),
    ],
)
def test_mistakes(params, message):
    """Refuse what is wrong when the environment is built."""
    with pytest.raises(ValueError, match=f"term 'g' .*{message}"):
        make_env(g=EventTermCfg(func=dr.gravity, mode="reset", params=params))
