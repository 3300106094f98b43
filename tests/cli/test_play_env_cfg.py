"""The environment in which a run is watched."""

from __future__ import annotations

import pytest

from manyworlds.cli.runs import play_env_cfg
from manyworlds.rl.run_folder import RunFolder
from manyworlds.tasks import load_env_cfg, load_rl_cfg, registry, use_cpu_preset
from manyworlds.utils.config import to_plain


@pytest.mark.parametrize("task", [t for t in registry.BUILTIN_TASKS if t.startswith("Velocity")])
def test_terms_of_the_training_alone_are_left_out(task, tmp_path, monkeypatch):
    """Train with the settings for a CPU, whose curriculum the watched task has not."""
    if task.endswith(("Go1", "G1")):
        pytest.skip("the robot's files are not part of this package")
    cfg = load_env_cfg(task)
    use_cpu_preset(task, cfg, load_rl_cfg(task))
    plain = to_plain(cfg)
    monkeypatch.setattr(RunFolder, "env_params", lambda self: plain)
    watched = play_env_cfg(task, RunFolder(tmp_path))
    assert watched.curriculum == load_env_cfg(task, play=True).curriculum
    assert watched.decimation == cfg.decimation
