"""Training with the algorithms of rsl_rl: the loop of rollouts and updates."""

from __future__ import annotations

import contextlib
import copy
import io
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

import torch

from manyworlds.rl import distributed
from manyworlds.rl.checkpoint import load_checkpoint, restore_checkpoint, save_checkpoint
from manyworlds.rl.config import (
    MIRROR_BATCH,
    NETWORKS,
    RslRlBaseRunnerCfg,
    Settings,
    runner_settings,
)
from manyworlds.rl.exporter_utils import Metadata, export_policy
from manyworlds.rl.inference import InferencePolicy
from manyworlds.rl.progress import IterationRecord
from manyworlds.rl.settings_check import check_settings
from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper
from manyworlds.utils.devices import same_device, torch_threads
from manyworlds.utils.extras import require_extra
from manyworlds.validation.host_reads import reads_are_free

# rsl_rl imports GitPython, which refuses to load where there is no git.
os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
from rsl_rl.algorithms import Distillation
from rsl_rl.extensions import RandomNetworkDistillation
from rsl_rl.models import MLPModel
from rsl_rl.runners import OnPolicyRunner as _RslRlRunner
from rsl_rl.utils import check_nan
from tensordict import TensorDict
from torch.optim.swa_utils import AveragedModel

from manyworlds.rl.collector import Collector
from manyworlds.rl.logger import TrainingLogger
from manyworlds.rl.ppo import PPO, algorithm_class
from manyworlds.rl.symmetry import add_mirror


class OnPolicyRunner(_RslRlRunner):
    """Trains a policy.

    torch runs with one thread while worlds step, and with all of its threads while the networks
    learn. On a busy machine `OMP_NUM_THREADS=1` is several times faster, since threads wait for
    each other. Under `torchrun` each process has an environment of its own and its share of the
    cores, and all processes learn the same networks.

    Args:
        env: the wrapped environment.
        train_cfg: learning settings, as a config or as a dict, which are copied.
        log_dir: folder for checkpoints and logs; None writes nothing.
        device: device of the learner. If the worlds are on another one, a copy of the policy acts
            there, and each rollout moves to the learner as a whole.

    Raises:
        ValueError: the settings do not fit the environment or the algorithm.
    """

    env: RslRlVecEnvWrapper
    logger: TrainingLogger

    def __init__(
        self,
        env: RslRlVecEnvWrapper,
        train_cfg: RslRlBaseRunnerCfg | Mapping[str, object],
        log_dir: str | Path | None = None,
        device: str = "cpu",
    ) -> None:
        settings = runner_settings(train_cfg)
        settings["obs_groups"] = _observed(settings, env)
        if settings.get("logger") == "wandb":
            require_extra("wandb", "wandb")
        self.ranks = distributed.Ranks.from_environment()
        self.learner_device = device
        """Device of the learner; `device` is that of the worlds."""

        algorithm = settings["algorithm"]
        class_name = algorithm["class_name"]
        algorithm["class_name"] = algorithm_class(algorithm)
        networks = {name: settings[name] for name in NETWORKS if name in settings}
        symmetry = algorithm.get("symmetry_cfg", {})
        augments = symmetry.get("data_augmentation_func") == MIRROR_BATCH
        add_mirror(env, settings["obs_groups"], networks, augments)
        folder = None
        if log_dir is not None:
            folder = str(log_dir)
        with contextlib.redirect_stdout(io.StringIO()):  # rsl_rl prints its networks
            super().__init__(env, settings, folder, device)
        algorithm["class_name"] = class_name  # settings are logged as plain data
        for model in networks.values():
            model.pop("mirror", None)

        self.rnd: RandomNetworkDistillation | None = None
        """Rewards for new observations, if the algorithm adds them."""
        if algorithm.get("rnd_cfg"):
            self.rnd = self.alg.rnd
        # Made before the first use, after which torch cannot copy it.
        self._blank_policy = copy.deepcopy(self.alg.get_policy())

        streams = env.unwrapped.random_streams
        if isinstance(self.alg, PPO):
            self.alg.noise = streams.stream("action_noise")
        self._start_times = streams.stream("start_times")
        self.collector: Collector | None = None
        """Policy and rollout on the device of the worlds, if that is not the learner's."""
        self.device = str(env.device)
        if not same_device(env.device, device):
            self.collect_on(torch.device(env.device))

        self.logger = TrainingLogger(env, self.cfg, folder, self.ranks, self.rnd is not None)
        self.between_iterations: list[Callable[[int], None]] = []
        """Functions that are called after each iteration, before its checkpoint, with the number of
        iterations done. They may change the environment; all processes call them together."""
        self.stopped = False
        """True if `request_stop` ended the last call of `learn`."""
        self._stop_requested = False

    def _configure_multi_gpu(self) -> None:
        """Connect the processes, also on CPUs, which rsl_rl does not support."""
        ranks = self.ranks
        self.gpu_world_size = ranks.world_size
        self.gpu_global_rank = ranks.rank
        self.gpu_local_rank = ranks.local_rank
        self.is_distributed = ranks.is_distributed
        self.cfg["multi_gpu"] = None
        if ranks.is_distributed:
            distributed.connect(ranks, self.device)
            self.cfg["multi_gpu"] = {
                "global_rank": ranks.rank,
                "local_rank": ranks.local_rank,
                "world_size": ranks.world_size,
            }

    def collect_on(self, device: torch.device) -> None:
        """Collect rollouts on another device than the learner's, which gets them as a whole.

        Args:
            device: device of the worlds.

        Raises:
            ValueError: the algorithm needs rewards that only the learner computes, or it has a
                method of its own to act.
        """
        obs = self.env.get_observations()
        self.collector = Collector(self.alg, obs, self.cfg["num_steps_per_env"], device)
        if isinstance(self.alg, PPO):
            self.collector.noise = self.alg.noise
            self.alg.noise = None

    def learn(self, num_learning_iterations: int, init_at_random_ep_len: bool = False) -> None:
        """Run iterations, each of which collects steps and learns from them.

        Args:
            num_learning_iterations: number of iterations.
            init_at_random_ep_len: whether the present episodes begin at random times.

        Raises:
            ValueError: a student has no teacher, or a number is out of range.
        """
        check_settings(self.cfg, self.env.num_envs)
        self.load_teacher()
        if self.ranks.is_distributed:
            self.alg.broadcast_parameters()
        if init_at_random_ep_len:
            longest = self.env.unwrapped.max_episode_length
            self.env.episode_length_buf = self._start_times.integers(0, longest)
        threads = torch.get_num_threads()
        if self.ranks.is_distributed:
            threads = self.ranks.threads  # torchrun has set one thread
        folder = self.logger.log_dir
        start = self.current_learning_iteration
        total = start + num_learning_iterations
        if isinstance(self.alg, PPO):
            self.alg.iteration = start
        self.alg.train_mode()
        self.logger.init_logging_writer()
        self.stopped = False
        obs = self.env.get_observations()
        with torch_threads(1):
            for iteration in range(start, total):
                began = time.perf_counter()
                with torch.inference_mode():
                    obs = self._collect(obs)
                    collected = time.perf_counter()
                    (self.collector or self.alg).compute_returns(obs)
                with torch_threads(threads):
                    losses = self.alg.update()
                learned = time.perf_counter()
                self.current_learning_iteration = iteration
                rnd_weight = None
                if self.rnd is not None:
                    rnd_weight = self.rnd.weight
                self.logger.log(
                    iteration,
                    start,
                    total,
                    collect_time=collected - began,
                    learn_time=learned - collected,
                    loss_dict=losses,
                    learning_rate=self.alg.learning_rate,
                    action_std=self.alg.get_policy().output_std,
                    rnd_weight=rnd_weight,
                )
                for function in self.between_iterations:
                    function(iteration + 1)
                self.stopped = distributed.any_rank(self._stop_requested, self.learner_device)
                is_last = self.stopped or iteration == total - 1
                if folder is not None and (is_last or iteration % self.cfg["save_interval"] == 0):
                    self.save(str(Path(folder, f"model_{iteration}.pt")))
                if self.stopped:
                    break
        self._stop_requested = False
        self.logger.stop_logging_writer()

    def _collect(self, obs: TensorDict) -> TensorDict:
        """Collect the steps of an iteration from observations on; return the last ones."""
        learner = self.collector or self.alg
        intrinsic_rewards = None
        checks_nan = self.cfg.get("check_for_nan", True)
        has_nan: list[torch.Tensor] = []
        with self.env.unwrapped.reporting_later():
            for _ in range(self.cfg["num_steps_per_env"]):
                actions = learner.act(obs)
                obs, rewards, dones, extras = self.env.step(actions)
                if checks_nan and reads_are_free(rewards.device):
                    check_nan(obs, rewards, dones)
                elif checks_nan:
                    values = [*(cast("torch.Tensor", v) for v in obs.values()), rewards]
                    has_nan.append(torch.stack([value.isnan().any() for value in values]))
                learner.process_env_step(obs, rewards, dones, extras)
                if self.rnd is not None:
                    intrinsic_rewards = self.alg.intrinsic_rewards
                self.logger.process_env_step(rewards, dones, extras, intrinsic_rewards)
        if has_nan:
            groups = [f"observations '{name}'" for name, _ in obs.items()]
            _refuse_nan([*groups, "rewards"], has_nan)
        return obs

    def load_teacher(self) -> None:
        """Load the teacher of a distillation from its checkpoint, unless it is loaded.

        Raises:
            ValueError: no checkpoint is named, or it is one of another network.
        """
        if not isinstance(self.alg, Distillation) or self.alg.teacher_loaded:
            return
        path = self.cfg.get("teacher_checkpoint")
        if path is None:
            raise ValueError(
                "Distillation has no teacher: set --agent.teacher-checkpoint to a checkpoint of "
                "its training."
            )
        self.load(path, load_cfg={"teacher": True})

    @property
    def averaged(self) -> AveragedModel | None:
        """Average of the policy's parameters, if the algorithm computes one."""
        if not isinstance(self.alg, PPO):
            return None
        return self.alg.averaged

    def acting_policy(self) -> MLPModel:
        """Return the network with which playback and export act: the average, if there is one."""
        averaged = self.averaged
        if averaged is not None and averaged.n_averaged > 0:
            return cast("MLPModel", averaged.module)
        return self.alg.get_policy()

    def on_iteration(self, callback: Callable[[IterationRecord], None]) -> None:
        """Call `callback` after every iteration."""
        self.logger.report = callback

    def request_stop(self) -> None:
        """Stop after the present iteration, with a checkpoint."""
        self._stop_requested = True

    def save(self, path: str | Path, infos: dict[str, object] | None = None) -> None:  # type: ignore[override]
        """Write networks, optimizer and environment to a checkpoint, completely or not at all.

        In distributed training all processes must call this; rank 0 writes the states of all.
        """
        save_checkpoint(self, Path(path), infos)
        if self.ranks.is_main and self.cfg.get("upload_model", True):
            self.logger.save_model(str(path), self.current_learning_iteration)

    def load(  # type: ignore[override]
        self,
        path: str | Path,
        load_cfg: dict[str, bool] | None = None,
        strict: bool = True,
        map_location: str | None = None,
    ) -> dict[str, object]:
        """Load a checkpoint; only tensors and plain data are read from it.

        Args:
            path: the checkpoint.
            load_cfg: parts to load; None loads all, including the environment's state, so that
                training continues as if it had not stopped.
            strict: whether the networks must match exactly.
            map_location: device for the tensors.

        Raises:
            ValueError: the file is not a checkpoint, or is one of other networks.
        """
        checkpoint = load_checkpoint(Path(path), map_location or self.device)
        return restore_checkpoint(self, checkpoint, Path(path), load_cfg, strict)

    def export_policy_to_onnx(
        self, path: str | Path, filename: str = "policy.onnx", verbose: bool = False
    ) -> None:
        """Write the policy as ONNX, with the data needed to run it elsewhere.

        Args:
            path: the folder.
            filename: the file's name.
            verbose: whether PyTorch's exporter prints.
        """
        export_policy(self, Path(path) / filename, verbose=verbose)

    def onnx_model(self, verbose: bool = False) -> torch.nn.Module:
        """Return the exported module: the policy's mean action; tasks may add outputs."""
        return self.acting_policy().as_onnx(verbose=verbose)

    def onnx_metadata(self) -> Metadata:
        """Return metadata that a task adds to those of an exported policy."""
        return {}

    @staticmethod
    def _get_export_paths(checkpoint_path: str | Path) -> tuple[Path, str, Path]:
        """Return folder, file name and path of the exported policy of a checkpoint."""
        folder = Path(checkpoint_path).parent
        name = f"{folder.name}.onnx"
        return folder, name, folder / name

    def get_inference_policy(  # type: ignore[override]
        self, device: str | None = None
    ) -> InferencePolicy:
        """Return the policy as a function from observations to mean actions.

        These have shape [worlds, actions]. If the learner is on another device than the given one,
        or the policy is recurrent, the function has a copy of the policy. The memory of a recurrent
        policy is empty at the start of each episode of the environment.

        Args:
            device: device of the observations; None for that of the worlds.
        """
        self.alg.eval_mode()
        policy = self.acting_policy()
        device = device or self.device
        if policy.is_recurrent or not same_device(device, self.learner_device):
            state = policy.state_dict()
            policy = copy.deepcopy(self._blank_policy).to(device).eval()
            policy.load_state_dict(state)
        return InferencePolicy(policy, env=self.env.unwrapped)


def _refuse_nan(names: list[str], has_nan: list[torch.Tensor]) -> None:
    """Raise an error if values of any step of an iteration have been NaN.

    Args:
        names: names of the values.
        has_nan: for each step a flag for each of the names, on the device.

    Raises:
        ValueError: some are NaN.
    """
    for step, flags in enumerate(torch.stack(has_nan).tolist()):
        for name, flag in zip(names, flags, strict=True):
            if flag:
                raise ValueError(
                    f"The {name} of the environment were NaN in step {step + 1} of the iteration: "
                    "correct the term, or set its nan_policy to 'sanitize'."
                )


def _observed(settings: Settings, env: RslRlVecEnvWrapper) -> dict[str, list[str]]:
    """Return the groups that each network sees.

    A critic whose groups do not exist sees those of the actor, as does the network that rewards
    new observations if no groups are named.

    Raises:
        ValueError: groups of another network do not exist.
    """
    available = set(env.get_observations().keys())
    groups = {name: list(names) for name, names in settings["obs_groups"].items()}
    needed = ["actor"]
    if "student" in settings:
        needed = ["student", "teacher"]
    if settings["algorithm"].get("rnd_cfg"):
        groups.setdefault("rnd_state", groups.get("actor", ["actor"]))
        needed.append("rnd_state")
    for name in needed:
        missing = set(groups.get(name, [name])) - available
        if missing:
            raise ValueError(
                f"The {name} observes {sorted(missing)}, but the environment has observation "
                f"groups {sorted(available)}: name one of them in obs_groups['{name}']."
            )
    if "student" not in settings and not set(groups.get("critic", ["critic"])) <= available:
        groups["critic"] = groups.get("actor", ["actor"])
    return groups
