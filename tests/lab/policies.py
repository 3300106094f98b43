"""Policies with random weights, for tests of what runs them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from manyworlds.tasks import load_env_cfg, load_rl_cfg


def export_policy_of(task: str, folder: Path) -> Path:
    """Export a policy of a task, and its scene beside it as `scene/scene.xml`."""
    pytest.importorskip("rsl_rl", reason="learning needs the extra 'train'")
    pytest.importorskip("onnxruntime", reason="running policies needs the extra 'train'")
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.rl.exporter_utils import export_policy, export_scene
    from manyworlds.rl.runner import OnPolicyRunner
    from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper

    cfg = load_env_cfg(task)
    cfg.scene.num_envs, cfg.seed = 1, 3
    env = ManagerBasedRlEnv(cfg, device="cpu")
    runner = OnPolicyRunner(RslRlVecEnvWrapper(env), asdict(load_rl_cfg(task)))
    path = export_policy(runner, folder / "policy.onnx")
    export_scene(env, folder / "scene")
    env.close()
    return path
