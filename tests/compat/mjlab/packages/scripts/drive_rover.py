"""Drives the rover by keys, in a viewer without a window."""

from __future__ import annotations

import sys
from dataclasses import asdict

import torch
from mjlab.envs import ManagerBasedRlEnv
from mjlab.rl import MjlabOnPolicyRunner, RslRlVecEnvWrapper
from mjlab.tasks.registry import list_tasks, load_env_cfg, load_rl_cfg, load_runner_cls
from mjlab.utils.torch import configure_torch_backends
from mjlab.viewer import NativeMujocoViewer
from mjlab.viewer.base import BaseViewer, ViewerAction
from mjlab.viewer.native.keys import KEY_COMMA, KEY_DOWN, KEY_R, KEY_SPACE, KEY_UP

SPEEDS = {KEY_UP: 1.0, KEY_DOWN: -1.0}


class KeyPolicy:
    """Adds what keys say to a policy."""

    def __init__(self, policy):
        self.policy = policy
        self.forward = 0.0
        self.resets = 0

    def __call__(self, obs) -> torch.Tensor:
        actions = self.policy(obs).clone()
        actions[:, 0] = self.forward
        return actions

    def reset(self) -> None:
        self.resets += 1


class KeyViewer(BaseViewer):
    """Takes a list of keys, one in each frame."""

    def __init__(self, env, policy, keys: list[int]):
        super().__init__(env, policy, frame_rate=1000.0)
        self.keys = keys
        self.synced = 0
        self.custom: list[object] = []

    def setup(self) -> None:
        self.model = self.env.unwrapped.sim.mj_model

    def _press(self, key: int) -> None:
        if key in SPEEDS:
            self.policy.forward = SPEEDS[key]
        elif key == KEY_SPACE:
            self.request_toggle_pause()
        elif key == KEY_R:
            self.request_reset()
        elif key == KEY_COMMA:
            self.request_action("CUSTOM", {"say": "hello"})

    def _handle_custom_action(self, action: ViewerAction, payload) -> bool:
        self.custom.append((action, payload))
        return action == ViewerAction.CUSTOM

    def sync_viewer_to_env(self) -> None:
        if self.keys:
            self._press(self.keys.pop(0))

    def sync_env_to_viewer(self) -> None:
        self.synced += 1

    def close(self) -> None:
        self.closed = True

    def is_running(self) -> bool:
        return bool(self.keys) or self.synced < 20


def main(task: str, checkpoint: str) -> None:
    """Load the policy, drive, and say where the rover went."""
    configure_torch_backends()
    assert task in list_tasks()
    env_cfg, agent_cfg = load_env_cfg(task, play=True), load_rl_cfg(task)
    env_cfg.scene.num_envs = 1
    env = RslRlVecEnvWrapper(
        ManagerBasedRlEnv(cfg=env_cfg, device="cpu"), clip_actions=agent_cfg.clip_actions
    )
    runner_cls = load_runner_cls(task) or MjlabOnPolicyRunner
    runner = runner_cls(env, asdict(agent_cfg), device="cpu")
    runner.load(checkpoint, load_cfg={"actor": True}, strict=True, map_location="cpu")
    policy = KeyPolicy(runner.get_inference_policy(device="cpu"))
    viewer = KeyViewer(env, policy, [KEY_UP, KEY_COMMA, KEY_SPACE, KEY_SPACE, KEY_R, KEY_DOWN])
    viewer.run(num_steps=30)
    assert viewer.closed and viewer.synced and policy.resets >= 1
    assert viewer.custom == [(ViewerAction.CUSTOM, {"say": "hello"})]
    pressed: list[int] = []
    native = NativeMujocoViewer(env, policy, key_callback=pressed.append)
    assert native.env is env and not native.is_running()
    status = viewer.get_status()
    print(f"drove {status.step_count} steps, paused {status.paused}")
    env.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
