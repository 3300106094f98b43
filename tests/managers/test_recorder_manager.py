"""Recorders: what the hooks see."""

import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.managers import (
    NullRecorderManager,
    RecorderManager,
    RecorderTerm,
    RecorderTermCfg,
)


class Watcher(RecorderTerm):
    """Notes what it can see of world 1."""

    def __init__(self, cfg, env):
        super().__init__(cfg, env)
        self.seen = []

    def _note(self, hook: str) -> None:
        velocity = self._env.scene["cartpole"].data.joint_vel[1, 0].item()
        action = self._env.action_manager.action[1, 0].item()
        self.seen.append((hook, velocity, action, self._env.obs_buf["actor"][1, 3].item()))

    def record_pre_reset(self, env_ids):
        self._note(f"pre {env_ids.tolist()}")

    def record_post_reset(self, env_ids):
        self._note(f"post {env_ids.tolist()}")

    def record_post_step(self):
        self._note("step")


def test_hooks_see_the_final_state_and_the_new_episode(env_cfg):
    """Show the final state and action with the observation before it, then the new ones."""
    env_cfg.recorders = {"w": RecorderTermCfg(func=Watcher)}
    env = ManagerBasedRlEnv(env_cfg)
    term = env.recorder_manager.get_term("w")
    assert "w" in env.recorder_manager and "x" not in env.recorder_manager
    term.seen.clear()
    env.episode_length_buf[1] = 198
    for _ in range(2):
        obs, *_, extras = env.step(torch.ones(4, 1))
    hooks = [entry[0] for entry in term.seen]
    assert hooks == ["step", "pre [1]", "post [1]", "step"]
    first, pre, post, _ = term.seen
    final = extras["final_obs"]["actor"][1, 3].item()
    assert pre[1] == final and pre[2] == 1.0 and pre[3] == first[3] != final
    assert post[1] == post[3] == obs["actor"][1, 3].item() and post[2] == 0.0


def test_mistakes_are_named(env):
    """Refuse a term that is no recorder, and unknown names."""
    for func in (print, dict):
        with pytest.raises(TypeError, match="'bad' needs a RecorderTerm subclass"):
            RecorderManager({"bad": RecorderTermCfg(func=func)}, env)
    with pytest.raises(KeyError, match="has no term 'x'"):
        RecorderManager({}, env).get_term("x")


def test_the_empty_manager_does_nothing():
    """Run without terms and without an environment."""
    null = NullRecorderManager()
    null.record_pre_reset(torch.arange(2))
    null.record_post_reset(torch.arange(2))
    null.record_post_step()
    null.close()
    assert "x" not in null and null.active_terms == []
    with pytest.raises(KeyError):
        null.get_term("x")
