"""The warp engine draws what the native engine draws, and steps accordingly."""

import pytest
import torch

from manyworlds.envs.mdp import dr
from manyworlds.sim.fields.model_fields import derived_fields
from tests.envs.mdp.dr.robot import disturb, make_env
from tests.envs.mdp.dr.test_fields import LOOKS, PHYSICS, SOME, event

STEPS = 2


@pytest.fixture(scope="module")
def envs():
    """Both engines after drawing everything at once in two of four worlds, with one seed."""
    pytest.importorskip("mujoco_warp")
    built = {}
    for engine in ("native", "warp"):
        env = make_env(engine=engine, **{name: event(name) for name in PHYSICS | LOOKS})
        torch.manual_seed(5)
        env.event_manager.apply("step", SOME, dt=env.step_dt)
        built[engine] = env
    return built["native"], built["warp"]


@pytest.mark.filterwarnings("ignore:dr.body_mass")
@pytest.mark.parametrize("name", PHYSICS | LOOKS)
def test_rows(envs, name):
    """Write the same values to the same rows."""
    native, warp = (env.sim for env in envs)
    for field in getattr(dr, name).model_fields:
        drawn, expected = getattr(warp.model, field), getattr(native.model, field)
        torch.testing.assert_close(drawn, expected.to(drawn.dtype), atol=1e-6, rtol=1e-5)
        changed = (drawn != warp.get_default_field(field)).flatten(1).any(dim=1)
        assert changed.tolist() == [False, True, False, True]


def test_what_follows(envs):
    """Recompute the same constants, in the worlds drawn only."""
    native, warp = (env.sim for env in envs)
    for field in set(derived_fields(dr.RecomputeLevel.set_const)) & warp.expanded_fields:
        derived, expected = getattr(warp.model, field), getattr(native.model, field)
        torch.testing.assert_close(derived, expected, atol=1e-4, rtol=2e-3, msg=field)
        default = warp.get_default_field(field)
        torch.testing.assert_close(derived[[0, 2]], default.expand(2, *default.shape), msg=field)


def test_steps(envs):
    """Move the same, each world in its own way."""
    for env in envs:
        disturb(env)
        env.sim.step(STEPS)
    native, warp = (env.sim.data.qvel for env in envs)
    torch.testing.assert_close(warp, native, atol=2e-3, rtol=1e-3)
    assert (native[1] - native[0]).abs().max() > 0.5
