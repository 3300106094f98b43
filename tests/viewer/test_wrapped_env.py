"""Viewers of environments in rsl_rl's adapter, as a runner's policy needs them."""

import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.managers import CommandManager
from manyworlds.tasks import load_env_cfg
from manyworlds.viewer.native import NativeMujocoViewer
from manyworlds.viewer.viser.viewer import ViserPlayViewer
from tests.viewer.test_native_viewer import Handle

RslRlVecEnvWrapper = pytest.importorskip(
    "manyworlds.rl.vecenv_wrapper", reason="rsl_rl needs the extra 'train'"
).RslRlVecEnvWrapper


@pytest.fixture(params=["Cartpole-Swingup", "Reach", "Velocity-Flat-Quadruped"])
def wrapped(request):
    """Wrap three worlds of a task, with actions that are clipped."""
    cfg = load_env_cfg(request.param, play=True)
    cfg.scene.num_envs = 3
    env = RslRlVecEnvWrapper(ManagerBasedRlEnv(cfg, device="cpu"), clip_actions=0.5)
    yield env
    env.close()


def _policy(env, seen):
    def policy(obs):
        seen.append(obs)
        return torch.full((env.num_envs, env.num_actions), 2.0)

    return policy


@pytest.mark.parametrize("kind", [NativeMujocoViewer, ViserPlayViewer])
def test_viewers_step_the_adapter(kind, wrapped, monkeypatch):
    """Pass the adapter's observations to the policy, and its actions through the adapter."""
    import mujoco.viewer

    monkeypatch.setattr(mujoco.viewer, "launch_passive", Handle)
    monkeypatch.setattr("manyworlds.viewer.native.viewer.check_display", lambda remedy: None)
    seen, plain = [], wrapped.unwrapped
    viewer = kind(wrapped, _policy(wrapped, seen))
    viewer.run(num_steps=3)
    assert viewer.get_status().last_error is None and len(seen) == 3
    assert type(seen[0]).__name__ == "TensorDict" and seen[0].batch_size == torch.Size([3])
    assert plain.action_manager.action.unique().tolist() == [0.5]
    viewer.setup()
    viewer.select_env(1)
    viewer.tick()
    viewer.request_reset()
    viewer.tick()
    assert viewer.get_status().last_error is None
    viewer.close()


def test_the_page_switches_drawings_of_commands(wrapped, monkeypatch):
    """Let the command manager add its switches to the page, where there are commands."""
    pages = []

    def add(self, server, on_change):
        pages.append((self, server, on_change))

    monkeypatch.setattr(CommandManager, "create_debug_vis_gui", add)
    viewer = ViserPlayViewer(wrapped, _policy(wrapped, []))
    viewer.setup()
    manager = wrapped.unwrapped.command_manager
    assert pages == [(manager, viewer.server, viewer.request_redraw)]
    viewer.close()
