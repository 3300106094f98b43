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
    return tuple(_drawn(engine, "cpu") for engine in ("native", "warp"))


def _drawn(engine: str, device: str):
    env = make_env(engine=engine, device=device, **{n: event(n) for n in PHYSICS | LOOKS})
    torch.manual_seed(5)
    env.event_manager.apply("step", SOME.to(device), dt=env.step_dt)
    return env


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


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no NVIDIA GPU here")
@pytest.mark.filterwarnings("ignore:dr.body_mass")
def test_on_a_gpu():
    """Draw on the GPU in the given worlds only; the CPU recomputes the same from the same rows."""
    there, here = _drawn("warp", "cuda").sim, _drawn("warp", "cpu").sim
    for name in PHYSICS | LOOKS:
        for field in getattr(dr, name).model_fields:
            drawn = getattr(there.model, field)
            assert drawn.device.type == "cuda"
            changed = (drawn != there.get_default_field(field)).flatten(1).any(dim=1)
            assert changed.tolist() == [False, True, False, True], field
    here.set_state({name: value.cpu() for name, value in there.get_state().items()})
    for sim in (here, there):
        sim.recompute_constants(dr.RecomputeLevel.set_const)
    for field in set(derived_fields(dr.RecomputeLevel.set_const)) & there.expanded_fields:
        expected = getattr(here.model, field)
        found = getattr(there.model, field).cpu()
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=2e-3, msg=field)
