"""Runners that projects derive from mjlab's, with the surface of rsl_rl 5."""

from __future__ import annotations

import importlib
import json
import time
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("rsl_rl", reason="learning needs the extra 'train'")

from rsl_rl.utils import check_nan
from rsl_rl.utils.log_writer import LogWriter
from rsl_rl.utils.logger import Logger

from manyworlds.rl.training import TrainingResult, train
from manyworlds.tasks import load_env_cfg, load_rl_cfg

pytestmark = pytest.mark.usefixtures("alias")
TASK = "Mjlab-Cartpole-Balance"


@pytest.fixture
def base(alias: None) -> type[Any]:
    """The class that projects derive from."""
    return importlib.import_module("mjlab.rl.runner").MjlabOnPolicyRunner


def _train(
    runner_cls: type[Any],
    folder: Path,
    iterations: int = 2,
    resume: Path | None = None,
    **settings: Any,
) -> TrainingResult:
    """Train a task of two worlds."""
    env_cfg = load_env_cfg(TASK)
    env_cfg.scene.num_envs = 2
    rl_cfg = load_rl_cfg(TASK)
    rl_cfg.num_steps_per_env = 4
    rl_cfg.save_interval = 1
    rl_cfg.max_iterations = iterations
    for name, value in settings.items():
        setattr(rl_cfg, name, value)
    return train(TASK, env_cfg, rl_cfg, folder, resume=resume, runner_cls=runner_cls)


def test_saving_and_loading_may_be_overridden(base, tmp_path):
    """Save and load further plain data, and know the folder of the run from the beginning."""

    class Runner(base):
        def __init__(self, env, train_cfg, log_dir: Any = None, device="cpu"):
            self.log_dir = log_dir
            (Path(log_dir) / "notes").mkdir()
            super().__init__(env, train_cfg, log_dir, device)
            self.count = 0

        def save(self, path, infos=None):
            self.count += 1
            env_state = {"common_step_counter": self.env.unwrapped.common_step_counter}
            super().save(path, {**(infos or {}), "env_state": env_state, "count": self.count})
            folder, name, onnx = self._get_export_paths(path)
            assert (folder, onnx) == (Path(self.log_dir), folder / name)
            (folder / "notes" / Path(path).name).write_text(self.logger.logger_type)

        def load(self, path, load_cfg=None, strict=True, map_location=None):
            infos = super().load(path, load_cfg, strict, map_location)
            self.count = infos["count"]
            assert infos["env_state"]["common_step_counter"] == 8
            assert self.env.unwrapped.common_step_counter == 8
            return infos

    first = _train(Runner, tmp_path)
    notes = sorted((first.run.path / "notes").iterdir())
    assert [note.name for note in notes] == ["model_0.pt", "model_1.pt"]
    assert notes[0].read_text() == "tensorboard"
    second = _train(Runner, tmp_path, 3, first.checkpoint)
    assert second.records[-1].iteration == 3 and (second.run.path / "notes/model_2.pt").is_file()


def test_a_logger_of_rsl_rl_may_take_the_place_of_ours(base, tmp_path, capsys):
    """Let a subclass of rsl_rl's logger count steps, write curves and print."""

    class Quiet(Logger):
        logged: list[int]

        def log(self, it, start_it, total_it, *args, **kwargs):
            self.__dict__.setdefault("logged", []).append(it)
            super().log(it, start_it, total_it, *args, **kwargs, print_minimal=True, width=60)

    class Runner(base):
        def __init__(self, env, train_cfg, log_dir: Any = None, device="cpu"):
            super().__init__(env, train_cfg, log_dir, device)
            self.logger = Quiet(
                log_dir=log_dir,
                cfg=self.cfg,
                env_cfg=self.env.cfg,
                num_envs=self.env.num_envs,
                is_distributed=self.is_distributed,
                gpu_world_size=self.gpu_world_size,
                gpu_global_rank=self.gpu_global_rank,
                device=self.device,
            )

        def save(self, path, infos=None):
            super().save(path, {**(infos or {}), "logged": self.logger.logged})

    result = _train(Runner, tmp_path)
    assert torch.load(result.checkpoint, weights_only=False)["infos"]["logged"] == [0, 1]
    assert "Learning iteration 1/2" in capsys.readouterr().out
    assert list(result.run.path.glob("events.*"))


class Uploads(LogWriter):
    """Takes curves and files."""

    made: list[Uploads] = []

    def __init__(self, log_dir: str, project: str) -> None:
        self.log_dir, self.project = log_dir, project
        self.scalars: dict[str, float] = {}
        self.models: list[tuple[str, int]] = []
        self.configs: list[Any] = []
        self.made.append(self)

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
        """Keep the last value."""
        self.scalars[tag] = scalar_value

    def save_model(self, model_path: str, it: int) -> None:
        """Keep the name."""
        self.models.append((Path(model_path).name, it))

    def store_config(self, env_cfg: object, train_cfg: dict) -> None:
        """Keep both."""
        self.configs += [env_cfg, train_cfg]


def test_uploads_depend_on_the_kind_of_logger(base, tmp_path):
    """Name a writer of a project by its class, and call it for curves, models and configs."""

    class Runner(base):
        def save(self, path, infos=None):
            super().save(path, infos)
            if self.logger.logger_type in ("wandb", "neptune"):
                raise AssertionError("nothing is uploaded there")
            kinds.append(self.logger.logger_type)
            self.logger.writer.add_scalar("Own/saved", 1.0, self.current_learning_iteration)

    kinds: list[str] = []
    Uploads.made.clear()
    logger = {"class_name": f"{__name__}:Uploads", "project": "mine"}
    result = _train(Runner, tmp_path, logger=logger)
    [writer] = Uploads.made
    assert kinds == ["uploads", "uploads"] and writer.project == "mine"
    assert writer.log_dir == str(result.run.path)
    assert writer.models == [("model_0.pt", 0), ("model_1.pt", 1)]
    assert {"Own/saved", "Loss/value", "Perf/total_fps", "Policy/mean_std"} <= set(writer.scalars)
    assert writer.configs[1]["num_steps_per_env"] == 4


def test_the_export_may_be_overridden(base, tmp_path):
    """Export by rsl_rl's means or by ours, in a method that saving calls."""

    class Runner(base):
        def export_policy_to_onnx(self, path, filename="policy.onnx", verbose=False):
            super().export_policy_to_onnx(path, f"ours_{filename}", verbose)
            model = self.alg.get_policy().as_onnx(verbose=verbose)
            model.to("cpu")
            model.eval()
            torch.onnx.export(
                model,
                model.get_dummy_inputs(),
                str(Path(path) / filename),
                input_names=model.input_names,
                output_names=model.output_names,
                opset_version=18,
                dynamo=False,
            )

        def save(self, path, infos=None):
            super().save(path, infos)
            self.export_policy_to_onnx(str(Path(path).parent), "mine.onnx")
            self.export_policy_to_jit(str(Path(path).parent), "mine.pt")
            policy = self.get_inference_policy(device=self.device)
            assert policy(self.env.get_observations()).shape == (2, 1)
            self.alg.train_mode()

    result = _train(Runner, tmp_path, iterations=1)
    for name in ("mine.onnx", "ours_mine.onnx", "mine.pt", "policy.onnx"):
        assert (result.run.path / name).stat().st_size > 100


def _copied_loop(self: Any, num_learning_iterations: int, init_at_random_ep_len: bool) -> None:
    """Learn as rsl_rl's runner does."""
    if init_at_random_ep_len:
        self.env.episode_length_buf = torch.randint_like(
            self.env.episode_length_buf, high=int(self.env.max_episode_length)
        )
    obs = self.env.get_observations().to(self.device)
    self.alg.train_mode()
    if self.is_distributed:
        self.alg.broadcast_parameters()
    self.logger.init_logging_writer()
    start_it = self.current_learning_iteration
    total_it = start_it + num_learning_iterations
    for it in range(start_it, total_it):
        start = time.time()
        with torch.inference_mode():
            for _ in range(self.cfg["num_steps_per_env"]):
                actions = self.alg.act(obs)
                obs, rewards, dones, extras = self.env.step(actions.to(self.env.device))
                if self.cfg.get("check_for_nan", True):
                    check_nan(obs, rewards, dones)
                obs, rewards, dones = (
                    obs.to(self.device),
                    rewards.to(self.device),
                    dones.to(self.device),
                )
                self.alg.process_env_step(obs, rewards, dones, extras)
                intrinsic = None
                if self.cfg["algorithm"].get("rnd_cfg"):
                    intrinsic = self.alg.intrinsic_rewards
                self.logger.process_env_step(rewards, dones, extras, intrinsic)
            stop = time.time()
            collect_time = stop - start
            start = stop
            self.alg.compute_returns(obs)
        loss_dict = self.alg.update()
        stop = time.time()
        self.current_learning_iteration = it
        self.logger.log(
            it=it,
            start_it=start_it,
            total_it=total_it,
            collect_time=collect_time,
            learn_time=stop - start,
            loss_dict=loss_dict,
            learning_rate=self.alg.learning_rate,
            action_std=self.alg.get_policy().output_std,
            rnd_weight=self.alg.rnd.weight if self.cfg["algorithm"].get("rnd_cfg") else None,
        )
        if self.logger.writer is not None and it % self.cfg["save_interval"] == 0:
            self.save(str(Path(self.logger.log_dir) / f"model_{it}.pt"))
    if self.logger.writer is not None:
        name = f"model_{self.current_learning_iteration}.pt"
        self.save(str(Path(self.logger.log_dir) / name))
        self.logger.stop_logging_writer()


def test_the_loop_of_learning_may_be_a_project_s_own(base, tmp_path):
    """Learn the same networks by a copy of rsl_rl's loop, with progress, and continue from it."""

    class Runner(base):
        def learn(self, num_learning_iterations, init_at_random_ep_len=False):
            _copied_loop(self, num_learning_iterations, False)

    class Ours(base):
        def learn(self, num_learning_iterations, init_at_random_ep_len=False):
            super().learn(num_learning_iterations, False)

    first = _train(Runner, tmp_path / "own")
    lines = (first.run.path / "progress.jsonl").read_text().splitlines()
    assert [json.loads(line)["iteration"] for line in lines] == [1, 2]
    usual = _train(Ours, tmp_path / "usual")
    own, ours = (torch.load(run.checkpoint, weights_only=False) for run in (first, usual))
    for name, value in ours["actor_state_dict"].items():
        torch.testing.assert_close(own["actor_state_dict"][name], value)
    assert own["infos"]["returns"]["recent"] == ours["infos"]["returns"]["recent"]
    third = _train(Runner, tmp_path / "own", 3, first.checkpoint)
    assert [record.iteration for record in third.records] == [1, 2, 3]


def test_a_run_that_cannot_begin_leaves_no_folder(base, tmp_path):
    """Remove the folder that a runner got when it fails."""

    class Runner(base):
        def __init__(self, env, train_cfg, log_dir: Any = None, device="cpu"):
            Path(log_dir, "notes.txt").write_text("begun")
            raise ValueError("not today")

    with pytest.raises(ValueError, match="not today"):
        _train(Runner, tmp_path)
    assert not list(tmp_path.iterdir())
