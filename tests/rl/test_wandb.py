"""Weights & Biases: what a run leaves there, and how it goes on from there.

The package itself is not needed: another of the same interface stands in its place.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from rsl_rl.utils import wandb_log_writer

from manyworlds.cli.main import main
from manyworlds.rl.training import train
from manyworlds.utils.files import get_wandb_checkpoint_path

pytestmark = pytest.mark.slow_on_warp


@pytest.fixture
def wandb(monkeypatch):
    """Stand in for the package."""
    module = SimpleNamespace(run=None, logged=[], saved=[], config={}, files={})

    def init(project, **kwargs):
        module.run = SimpleNamespace(project=project, tags=("given",), **kwargs)

    def file(name):
        def download(root, replace):
            module.saved.append(f"download {name}")
            Path(root, name).write_bytes(module.files[name])

        return SimpleNamespace(name=name, download=download)

    run = SimpleNamespace(files=lambda: map(file, module.files), file=file)
    module.Api = lambda: SimpleNamespace(run=lambda path: run)
    module.init, module.finish = init, lambda: None
    module.log = lambda values, step: module.logged.append((step, *values))
    module.save = lambda path, base_path: module.saved.append(Path(path).name)
    monkeypatch.setitem(sys.modules, "wandb", module)
    monkeypatch.setattr(wandb_log_writer, "wandb", module)
    return module


def test_a_run_goes_to_weights_and_biases(env_cfg, rl_cfg, log_root, wandb):
    """Log a run there: project, tags, settings, curves, checkpoints if they are wanted."""
    rl_cfg.logger, rl_cfg.wandb_project, rl_cfg.wandb_tags = "wandb", "mine", ("given", "new")
    rl_cfg.max_iterations = 2
    result = train("Cartpole-Swingup", env_cfg, rl_cfg, log_root)
    assert wandb.run.project == "mine" and wandb.run.name == result.run.path.name
    assert wandb.run.tags == ("given", "new")
    assert set(wandb.config) == {"train_cfg", "env_cfg"}
    assert {step for step, name in wandb.logged if name == "Loss/learning_rate"} == {0, 1}
    assert {"model_0.pt", "model_1.pt"} <= set(wandb.saved)
    wandb.saved.clear()
    rl_cfg.upload_model = False
    train("Cartpole-Swingup", env_cfg, rl_cfg, log_root)
    assert not [name for name in wandb.saved if name.endswith(".pt")]


def test_a_checkpoint_is_downloaded_once(tmp_path, wandb):
    """Take the last checkpoint of a run, or the one named, and keep it."""
    wandb.files = {"model_9.pt": b"9", "model_10.pt": b"10", "config.yaml": b""}
    path, cached = get_wandb_checkpoint_path(tmp_path, Path("me/project/abc"))
    assert (path.name, path.read_bytes(), cached) == ("model_10.pt", b"10", False)
    assert get_wandb_checkpoint_path(tmp_path, "me/project/abc") == (path, True)
    assert wandb.saved == ["download model_10.pt"]
    other, _ = get_wandb_checkpoint_path(tmp_path, "me/project/abc", "model_9.pt")
    assert other.read_bytes() == b"9"
    with pytest.raises(ValueError, match="no checkpoint 'model_3.pt': it has model_9.pt, model_10"):
        get_wandb_checkpoint_path(tmp_path, "me/project/abc", "model_3.pt")


@pytest.mark.slow
def test_training_goes_on_from_weights_and_biases(env_cfg, rl_cfg, log_root, wandb, capsys):
    """Train, put the checkpoint there, and go on from it by its path."""
    rl_cfg.max_iterations = 2
    result = train("Cartpole-Swingup", env_cfg, rl_cfg, log_root)
    wandb.files = {"model_1.pt": result.checkpoint.read_bytes()}
    small = ["--env.scene.num-envs", str(env_cfg.scene.num_envs), "--agent.max-iterations", "3"]
    small += ["--agent.num-steps-per-env", "8", "--log-root", str(log_root)]
    assert main(["train", "Cartpole-Swingup", *small, "--wandb-run-path", "me/p/abc"]) == 0
    runs = sorted(log_root.glob("*/*/model_2.pt"), key=lambda path: path.stat().st_mtime)
    assert torch.load(runs[-1], weights_only=True)["iter"] == 2
    argv = ["train", "Cartpole-Swingup", *small, "--wandb-run-path", "me/p/abc"]
    assert main([*argv, "--checkpoint", "x"]) == 2
    assert "either --wandb-run-path or --checkpoint" in capsys.readouterr().err
