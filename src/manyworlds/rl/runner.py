"""Training with the algorithms of rsl_rl: runner, its logger, and complete checkpoints."""

from __future__ import annotations

import contextlib
import copy
import io
import math
import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import mean
from typing import Any, cast

import torch
from torch.utils._pytree import tree_map_only

from manyworlds.managers.not_finite import mean_of_finite
from manyworlds.rl import distributed
from manyworlds.rl.checkpoint import load_checkpoint
from manyworlds.rl.code_state import write_code_state
from manyworlds.rl.config import (
    MIRROR_BATCH,
    NETWORKS,
    RslRlBaseRunnerCfg,
    runner_settings,
)
from manyworlds.rl.exporter_utils import Metadata, export_policy
from manyworlds.rl.inference import InferencePolicy
from manyworlds.rl.progress import IterationRecord
from manyworlds.rl.run_edits import RunEdits
from manyworlds.rl.settings_check import check_settings
from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper
from manyworlds.utils.devices import same_device, torch_threads
from manyworlds.utils.extras import require_extra
from manyworlds.utils.files import write_atomic
from manyworlds.utils.wandb import add_wandb_tags

# rsl_rl imports GitPython, which refuses to load where there is no git.
os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
from rsl_rl.runners import OnPolicyRunner as _RslRlRunner
from rsl_rl.utils.logger import Logger as _RslRlLogger

from manyworlds.rl.algorithm import AdjustedAlgorithm, adjusted
from manyworlds.rl.symmetry import add_mirror


class TrainingStopped(Exception):  # noqa: N818 - not an error
    """Raised between two iterations when a stop was asked for."""


class _NoWriter:
    """Placeholder for a writer, for code of rsl_rl that only tests whether there is one."""


class _Logger(_RslRlLogger):
    """Logger of rsl_rl without printed output."""

    on_iteration: Callable[[IterationRecord], None] | None = None
    stop_requested = False
    edits: RunEdits
    """Edits, which are applied after each iteration."""
    env: RslRlVecEnvWrapper
    """Environment whose time is recorded."""
    learner_device: str
    """Device on which processes exchange data."""
    _env_times: tuple[float, float]

    def init_logging_writer(self) -> None:
        super().init_logging_writer()
        self._env_times = self._read_env_times()
        add_wandb_tags(self.cfg.get("wandb_tags", ()))
        if self.disable_logs and self.log_dir is not None:
            # rsl_rl saves only with a writer, and all processes save together.
            self.writer = _NoWriter()  # type: ignore[assignment]

    def log(self, **kwargs: Any) -> None:  # type: ignore[override]
        # NaN is the mean of no episode: rsl_rl's mean over the steps would become NaN.
        self.ep_extras = [self._means()]
        scalars = self._scalars(kwargs["loss_dict"], kwargs["learning_rate"], kwargs["action_std"])
        if not self.disable_logs:
            with contextlib.redirect_stdout(io.StringIO()):
                super().log(**kwargs)
        self.ep_extras.clear()
        times = kwargs["collect_time"], kwargs["learn_time"]
        before = self._env_times
        self._env_times = self._read_env_times()
        if self.on_iteration is not None:
            self.on_iteration(
                IterationRecord(
                    iteration=kwargs["it"] + 1,
                    total=kwargs["total_it"],
                    mean_return=mean(self.rewbuffer) if self.rewbuffer else None,
                    steps_per_s=self._steps_per_iteration / sum(times),
                    collect_time=times[0],
                    learn_time=times[1],
                    env_time=self._env_times[0] - before[0],
                    physics_time=self._env_times[1] - before[1],
                    scalars=scalars,
                )
            )
        self.edits.apply(kwargs["it"] + 1)
        if distributed.any_rank(self.stop_requested, self.learner_device):
            self.stop_requested = False
            raise TrainingStopped

    def _read_env_times(self) -> tuple[float, float]:
        """Return the time of all control steps and of their physics so far [s]."""
        return self.env.step_time, self.env.unwrapped.physics_time

    def _scalars(
        self, losses: dict[str, float], learning_rate: float, action_std: torch.Tensor
    ) -> dict[str, float | None]:
        """Return the values of an iteration by rsl_rl's names; None for those not finite."""
        values = {f"Loss/{name}": value for name, value in losses.items()}
        values |= {"Loss/learning_rate": learning_rate, "Policy/mean_std": action_std.mean().item()}
        for name, mean_value in self.ep_extras[0].items():
            values[name if "/" in name else f"Episode/{name}"] = mean_value.item()
        if self.rewbuffer:
            values["Train/mean_reward"] = mean(self.rewbuffer)
            values["Train/mean_episode_length"] = mean(self.lenbuffer)
        if getattr(self, "irewbuffer", None):
            values["Rnd/mean_intrinsic_reward"] = mean(self.irewbuffer)
        return {name: value if math.isfinite(value) else None for name, value in values.items()}

    def _means(self) -> dict[str, torch.Tensor]:
        """Return the means of the finite values that the steps of an iteration logged."""
        means = {}
        for name in dict.fromkeys(name for extras in self.ep_extras for name in extras):
            given = [extras[name] for extras in self.ep_extras if name in extras]
            flat = torch.cat([torch.as_tensor(value).float().flatten().cpu() for value in given])
            means[name] = mean_of_finite(flat)
        return means

    def process_env_step(
        self,
        rewards: torch.Tensor,
        dones: torch.Tensor,
        extras: dict[str, Any],
        intrinsic_rewards: torch.Tensor | None = None,
    ) -> None:
        """Record returns, also without a writer."""
        writer, self.writer = self.writer, self.writer or _NoWriter()  # type: ignore[assignment]
        super().process_env_step(rewards, dones, extras, intrinsic_rewards)
        self.writer = writer

    @property
    def _steps_per_iteration(self) -> int:
        return self.cfg["num_steps_per_env"] * self.num_envs * self.gpu_world_size

    def returns_state(self) -> dict[str, Any]:
        """Copy the returns and lengths of recent episodes and of present ones."""
        return {
            "recent": [list(getattr(self, name)) for name in self._recent],
            "present": [getattr(self, name).clone() for name in self._present],
        }

    def load_returns_state(self, state: dict[str, Any]) -> None:
        """Load a state that `returns_state` returned."""
        if len(state["recent"]) != len(self._recent):  # of a run with other rewards
            return
        for name, values in zip(self._recent, state["recent"], strict=True):
            getattr(self, name).extend(values)
        for name, values in zip(self._present, state["present"], strict=True):
            setattr(self, name, values.to(self.device))

    @property
    def _recent(self) -> tuple[str, ...]:
        """Names of rsl_rl's buffers of recent episodes."""
        names = ("rewbuffer", "lenbuffer", "erewbuffer", "irewbuffer")
        return names if hasattr(self, "irewbuffer") else names[:2]

    @property
    def _present(self) -> tuple[str, ...]:
        """Names of rsl_rl's sums of present episodes."""
        names = ("cur_reward_sum", "cur_episode_length", "cur_ereward_sum", "cur_ireward_sum")
        return names if hasattr(self, "irewbuffer") else names[:2]

    def _store_code_state(self) -> list[str]:
        """Write the state of the user's code and of this package; return the files."""
        if self.log_dir is None or self.disable_logs:
            return []
        places = (Path.cwd(), Path(__file__).parent)
        return [str(file) for file in write_code_state(Path(self.log_dir, "git"), places)]


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
    """

    env: RslRlVecEnvWrapper
    logger: _Logger

    def __init__(
        self,
        env: RslRlVecEnvWrapper,
        train_cfg: RslRlBaseRunnerCfg | Mapping[str, object],
        log_dir: str | Path | None = None,
        device: str = "cpu",
    ) -> None:
        settings = runner_settings(train_cfg)
        settings["obs_groups"] = _observed(settings, env)
        if isinstance(settings.get("logger"), dict):
            require_extra("wandb", "wandb")
        self.ranks = distributed.Ranks.from_environment()
        algorithm = settings["algorithm"]
        name = algorithm["class_name"]
        algorithm["class_name"] = adjusted(name)
        networks = {name: settings[name] for name in NETWORKS if name in settings}
        mirrors = (algorithm.get("symmetry_cfg") or {}).get("data_augmentation_func")
        add_mirror(env, settings["obs_groups"], networks, augments=mirrors == MIRROR_BATCH)
        with contextlib.redirect_stdout(io.StringIO()):
            super().__init__(env, settings, None if log_dir is None else str(log_dir), device)
        algorithm["class_name"] = name  # settings are logged as plain data
        for model in networks.values():
            model.pop("mirror", None)
        # Made before the first use, after which torch cannot copy it.
        self._blank_policy = copy.deepcopy(self.alg.get_policy())
        # rsl_rl moves each step to this device.
        self.device = str(env.device)
        if not same_device(env.device, device):
            cast("AdjustedAlgorithm", self.alg).collect_on(torch.device(env.device))
        self.logger = _Logger(
            log_dir=self.logger.log_dir,
            cfg=self.cfg,
            env_cfg=env.cfg,
            num_envs=env.num_envs,
            is_distributed=self.ranks.is_distributed,
            gpu_world_size=self.gpu_world_size,
            gpu_global_rank=self.gpu_global_rank,
            device=self.device,
        )
        self.logger.env = env
        self.edits = self.logger.edits = RunEdits(env.unwrapped, device)
        """Edits of the training, which it applies between two iterations."""
        self.logger.learner_device = device

    def _configure_multi_gpu(self) -> None:
        """Connect the processes, also on CPUs, which rsl_rl does not support."""
        ranks = self.ranks
        self.gpu_world_size = ranks.world_size
        self.gpu_global_rank = ranks.rank
        self.gpu_local_rank = ranks.local_rank
        # `learn` broadcasts the parameters, since rsl_rl prints a line when it does so.
        self.is_distributed = False
        self.cfg["multi_gpu"] = None
        if ranks.is_distributed:
            distributed.connect(ranks, self.device)
            self.cfg["multi_gpu"] = {
                "global_rank": ranks.rank,
                "local_rank": ranks.local_rank,
                "world_size": ranks.world_size,
            }

    def learn(self, num_learning_iterations: int, init_at_random_ep_len: bool = False) -> None:
        """Run iterations, each of which collects steps and learns from them.

        Raises:
            TrainingStopped: `request_stop` was called; the state is that between two iterations.
            ValueError: a student has no teacher, or a number is out of range.
        """
        check_settings(self.cfg, self.env.num_envs)
        self.load_teacher()
        if self.ranks.is_distributed:
            self.alg.broadcast_parameters()
        # torchrun sets one thread per process; elsewhere the present number is the user's choice.
        threads = self.ranks.threads if self.ranks.is_distributed else torch.get_num_threads()
        algorithm = cast("AdjustedAlgorithm", self.alg)
        algorithm.update_threads = threads
        algorithm.iteration = self.current_learning_iteration
        with torch_threads(1):
            super().learn(num_learning_iterations, init_at_random_ep_len)

    def load_teacher(self) -> None:
        """Load the teacher of a distillation from its checkpoint, unless it is loaded.

        Raises:
            ValueError: no checkpoint is named, or it is one of another network.
        """
        if getattr(self.alg, "teacher_loaded", True):
            return
        path = self.cfg.get("teacher_checkpoint")
        if path is None:
            raise ValueError(
                "Distillation has no teacher: set --agent.teacher-checkpoint to a checkpoint of "
                "its training."
            )
        self.load(path, load_cfg={"teacher": True})

    def on_iteration(self, callback: Callable[[IterationRecord], None]) -> None:
        """Call `callback` after every iteration."""
        self.logger.on_iteration = callback

    def request_stop(self) -> None:
        """Stop after the present iteration."""
        self.logger.stop_requested = True

    def save(self, path: str | Path, infos: dict[str, object] | None = None) -> None:  # type: ignore[override]
        """Write networks, optimizer and environment to a checkpoint, completely or not at all.

        In distributed training all processes must call this; rank 0 writes the states of all.
        """
        own = {
            "env_state": self.env.unwrapped.state_dict(),
            "returns": self.logger.returns_state(),
            "memory": cast("AdjustedAlgorithm", self.alg).memory(),
        }
        states = [own]
        if self.ranks.is_distributed:
            states = [_from_bytes(state) for state in distributed.gather(_to_bytes(own))]
        if not self.ranks.is_main:
            return
        checkpoint = self.alg.save()
        checkpoint["iter"] = self.current_learning_iteration
        checkpoint["infos"] = {**(infos or {}), **states[0], "other_ranks": states[1:]}
        on_cpu = tree_map_only(torch.Tensor, torch.Tensor.cpu, checkpoint)
        write_atomic(Path(path), _to_bytes(on_cpu))
        if self.cfg.get("upload_model", True):
            self.logger.save_model(str(path), self.current_learning_iteration)

    def load(  # type: ignore[override]
        self,
        path: str | Path,
        load_cfg: dict[str, bool] | None = None,
        strict: bool = True,
        map_location: str | None = None,
    ) -> dict[str, Any]:
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
        try:
            resumes = self.alg.load(checkpoint, load_cfg, strict)
        except (KeyError, RuntimeError) as error:
            raise ValueError(
                f"The checkpoint '{path}' does not fit these networks, which its run folder or "
                f"--agent.* describe: {str(error).splitlines()[-1].strip()}"
            ) from None
        infos = checkpoint.get("infos") or {}
        if resumes:
            self.current_learning_iteration = checkpoint["iter"] + 1
            self._load_own_state(path, infos)
        return infos

    def _load_own_state(self, path: str | Path, infos: dict[str, Any]) -> None:
        """Load the worlds of this process, if the checkpoint has them."""
        states = [infos, *infos.get("other_ranks", [])]
        own = states[self.ranks.rank] if self.ranks.rank < len(states) else {}
        env = self.env.unwrapped
        if "sim" in own.get("env_state", {}):
            env.load_state_dict(own["env_state"])
        else:
            counter = infos.get("env_state", {}).get("common_step_counter", 0)
            env.common_step_counter = int(counter)
            warnings.warn(
                f"The checkpoint '{path}' has no worlds for process {self.ranks.rank}: networks "
                "and optimizer continue from it, and new episodes begin.",
                stacklevel=3,
            )
        if "memory" in own:
            cast("AdjustedAlgorithm", self.alg).load_memory(own["memory"])
        if "returns" in own:
            self.logger.load_returns_state(own["returns"])

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
        return cast("AdjustedAlgorithm", self.alg).acting_policy().as_onnx(verbose=verbose)

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
        policy: Any = cast("AdjustedAlgorithm", self.alg).acting_policy()
        device = device or self.device
        if getattr(policy, "is_recurrent", False) or not same_device(device, self.alg.device):
            state = policy.state_dict()
            policy = copy.deepcopy(self._blank_policy).to(device).eval()
            policy.load_state_dict(state)
        return InferencePolicy(policy, env=self.env.unwrapped)


def _observed(settings: Mapping[str, Any], env: RslRlVecEnvWrapper) -> dict[str, list[str]]:
    """Return the groups that each network sees.

    A critic whose groups do not exist sees those of the actor, as does the network that rewards
    new observations if no groups are named.

    Raises:
        ValueError: groups of another network do not exist.
    """
    available = set(env.get_observations().keys())
    groups = {name: list(names) for name, names in settings["obs_groups"].items()}
    needed = ("student", "teacher") if "student" in settings else ("actor",)
    if settings["algorithm"].get("rnd_cfg"):
        groups.setdefault("rnd_state", groups.get("actor", ["actor"]))
        needed = (*needed, "rnd_state")
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


def _to_bytes(value: object) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def _from_bytes(data: bytes) -> Any:
    return torch.load(io.BytesIO(data), weights_only=True, map_location="cpu")
