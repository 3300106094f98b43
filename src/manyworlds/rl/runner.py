"""Training with rsl_rl's PPO: checkpoints that can be resumed, threads where they help."""

from __future__ import annotations

import contextlib
import io
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import torch

from manyworlds.rl import distributed
from manyworlds.rl.checkpoint import load_checkpoint
from manyworlds.rl.code_state import write_code_state
from manyworlds.rl.config import RslRlOnPolicyRunnerCfg, runner_settings
from manyworlds.rl.exporter_utils import export_policy
from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper
from manyworlds.utils.devices import torch_threads
from manyworlds.utils.extras import require_extra
from manyworlds.utils.files import write_atomic
from manyworlds.utils.wandb import add_wandb_tags

# rsl_rl imports GitPython, which refuses to load where there is no git.
os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
from rsl_rl.runners import OnPolicyRunner as _RslRlRunner
from rsl_rl.utils.logger import Logger as _RslRlLogger


class TrainingStopped(Exception):  # noqa: N818 - not an error
    """Raised between two iterations when a stop was asked for."""


@dataclass(frozen=True)
class IterationRecord:
    """What one iteration reports."""

    iteration: int
    """Iterations done so far."""
    total: int
    """Iterations planned."""
    mean_return: float | None
    """Mean return of the last 100 finished episodes, or None before the first."""
    steps_per_s: float
    """Environment steps per second, learning included."""
    collect_time: float
    """Time spent stepping worlds [s]."""
    learn_time: float
    """Time spent learning [s]."""


class _NoWriter:
    """Stands where rsl_rl asks whether there is a writer."""


class _Logger(_RslRlLogger):
    """rsl_rl's logger, without its printing."""

    on_iteration: Callable[[IterationRecord], None] | None = None
    stop_requested = False

    def init_logging_writer(self) -> None:
        super().init_logging_writer()
        add_wandb_tags(self.cfg.get("wandb_tags", ()))
        if self.disable_logs and self.log_dir is not None:
            # rsl_rl saves where there is a writer, and all processes save together.
            self.writer = _NoWriter()  # type: ignore[assignment]

    def log(self, **kwargs: Any) -> None:  # type: ignore[override]
        if not self.disable_logs:
            with contextlib.redirect_stdout(io.StringIO()):
                super().log(**kwargs)
        self.ep_extras.clear()
        times = kwargs["collect_time"], kwargs["learn_time"]
        if self.on_iteration is not None:
            self.on_iteration(
                IterationRecord(
                    iteration=kwargs["it"] + 1,
                    total=kwargs["total_it"],
                    mean_return=mean(self.rewbuffer) if self.rewbuffer else None,
                    steps_per_s=self._steps_per_iteration / sum(times),
                    collect_time=times[0],
                    learn_time=times[1],
                )
            )
        if distributed.any_rank(self.stop_requested, self.device):
            raise TrainingStopped

    def process_env_step(self, rewards: Any, dones: Any, extras: Any, *args: Any) -> None:
        """Keep returns even where nothing is written to disk."""
        writer, self.writer = self.writer, self.writer or _NoWriter()  # type: ignore[assignment]
        super().process_env_step(rewards, dones, extras, *args)
        self.writer = writer

    @property
    def _steps_per_iteration(self) -> int:
        return self.cfg["num_steps_per_env"] * self.num_envs * self.gpu_world_size

    def returns_state(self) -> dict[str, Any]:
        """Returns and lengths of recent episodes and of those under way."""
        return {
            "recent": [list(self.rewbuffer), list(self.lenbuffer)],
            "present": [self.cur_reward_sum.clone(), self.cur_episode_length.clone()],
        }

    def load_returns_state(self, state: dict[str, Any]) -> None:
        """Go on counting from what `returns_state` returned."""
        for buffer, values in zip((self.rewbuffer, self.lenbuffer), state["recent"], strict=True):
            buffer.extend(values)
        self.cur_reward_sum, self.cur_episode_length = state["present"]

    def _store_code_state(self) -> list[str]:
        """Write the state of the user's code and ours; return the files."""
        if self.log_dir is None or self.disable_logs:
            return []
        places = (Path.cwd(), Path(__file__).parent)
        return [str(file) for file in write_code_state(Path(self.log_dir, "git"), places)]


class OnPolicyRunner(_RslRlRunner):
    """Trains a policy.

    One torch thread runs while worlds step, and as many as torch has while the networks learn: on
    a busy machine `OMP_NUM_THREADS=1` is several times faster, since threads wait for each other.
    Under `torchrun` each process has an environment of its own and its share of the cores, and all
    learn the same networks.

    Args:
        env: the wrapped environment.
        train_cfg: learning settings, as a config or as a dict, which are copied.
        log_dir: folder for checkpoints and logs; None writes nothing.
        device: where the networks live.
    """

    env: RslRlVecEnvWrapper

    def __init__(
        self,
        env: RslRlVecEnvWrapper,
        train_cfg: RslRlOnPolicyRunnerCfg | dict[str, Any],
        log_dir: str | Path | None = None,
        device: str = "cpu",
    ) -> None:
        settings = runner_settings(train_cfg)
        settings["obs_groups"] = _observed(settings["obs_groups"], env)
        if isinstance(settings.get("logger"), dict):
            require_extra("wandb", "wandb")
        self.ranks = distributed.Ranks.from_environment()
        with contextlib.redirect_stdout(io.StringIO()):
            super().__init__(env, settings, None if log_dir is None else str(log_dir), device)
        _bootstrap_with_final_values(self.alg)
        self.logger = _Logger(
            log_dir=self.logger.log_dir,
            cfg=self.cfg,
            env_cfg=env.cfg,
            num_envs=env.num_envs,
            is_distributed=self.ranks.is_distributed,
            gpu_world_size=self.gpu_world_size,
            gpu_global_rank=self.gpu_global_rank,
            device=device,
        )

    def _configure_multi_gpu(self) -> None:
        """Connect the processes; unlike rsl_rl's, on CPUs, too."""
        ranks = self.ranks
        self.gpu_world_size, self.gpu_global_rank = ranks.world_size, ranks.rank
        self.gpu_local_rank = ranks.local_rank
        # `learn` broadcasts the parameters itself; rsl_rl would print about it.
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
        """Run iterations of collecting and learning.

        Raises:
            TrainingStopped: `request_stop` was called; the state is that between two iterations.
        """
        if self.ranks.is_distributed:
            self.alg.broadcast_parameters()
        update = self.alg.update
        # torchrun asks for one thread a process; elsewhere torch's own number is a user's choice.
        threads = self.ranks.threads if self.ranks.is_distributed else torch.get_num_threads()

        def update_on_more_cores() -> dict[str, float]:
            with torch_threads(threads):
                return update()

        self.alg.update = update_on_more_cores  # type: ignore[method-assign]
        try:
            with torch_threads(1):
                super().learn(num_learning_iterations, init_at_random_ep_len)
        finally:
            self.alg.update = update  # type: ignore[method-assign]

    def on_iteration(self, callback: Callable[[IterationRecord], None]) -> None:
        """Call `callback` after every iteration."""
        self.logger.on_iteration = callback

    def request_stop(self) -> None:
        """Stop after the present iteration."""
        self.logger.stop_requested = True

    def save(self, path: str | Path, infos: dict[str, Any] | None = None) -> None:  # type: ignore[override]
        """Write a checkpoint, whole or not at all: networks, optimiser, and the environment.

        In distributed training all processes must call this; rank 0 writes the states of all.
        """
        own = {
            "env_state": self.env.unwrapped.state_dict(),
            "returns": self.logger.returns_state(),
        }
        states = [own]
        if self.ranks.is_distributed:
            states = [_from_bytes(state) for state in distributed.gather(_to_bytes(own))]
        if not self.ranks.is_main:
            return
        checkpoint = self.alg.save()
        checkpoint["iter"] = self.current_learning_iteration
        checkpoint["infos"] = {**(infos or {}), **states[0], "other_ranks": states[1:]}
        write_atomic(Path(path), _to_bytes(checkpoint))
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
            load_cfg: which parts to load; None loads all, the environment's state included, so
                that training goes on where it stopped.
            strict: whether the networks must match exactly.
            map_location: device for the tensors.

        Raises:
            ValueError: the file is not a checkpoint, or of other networks.
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
        """Take over the worlds of this process, as far as the checkpoint has them."""
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
                "and optimiser go on from it, episodes begin anew.",
                stacklevel=3,
            )
        if "returns" in own:
            self.logger.load_returns_state(own["returns"])

    def export_policy_to_onnx(
        self, path: str | Path, filename: str = "policy.onnx", verbose: bool = False
    ) -> None:
        """Write the policy as ONNX, with what is needed to run it elsewhere.

        Args:
            path: the folder.
            filename: the file's name.
            verbose: whether PyTorch's exporter may talk.
        """
        export_policy(self, Path(path) / filename, verbose=verbose)

    def onnx_model(self, verbose: bool = False) -> torch.nn.Module:
        """What is exported: the policy's mean action, and what a task adds to it."""
        return self.alg.get_policy().as_onnx(verbose=verbose)

    def onnx_metadata(self) -> dict[str, Any]:
        """What a task adds to the metadata of an exported policy."""
        return {}

    @staticmethod
    def _get_export_paths(checkpoint_path: str | Path) -> tuple[Path, str, Path]:
        """Folder, file name and path of the policy that belongs to a checkpoint."""
        folder = Path(checkpoint_path).parent
        name = f"{folder.name}.onnx"
        return folder, name, folder / name

    def get_inference_policy(self, device: str | None = None) -> Callable[[Any], torch.Tensor]:
        """Return the policy as a function from observations to mean actions."""
        policy = super().get_inference_policy(device or self.device)

        def act(obs: Any) -> torch.Tensor:
            with torch.inference_mode():
                return policy(obs)

        return act


def _bootstrap_with_final_values(alg: Any) -> None:
    """Let an episode cut off by time count on with the value of the state that it ended in.

    rsl_rl takes the value of the state before, the last one that it saw: it is one step old. A
    recurrent critic keeps rsl_rl's way, because asking it would advance its memory.
    """
    critic, process = getattr(alg, "critic", None), alg.process_env_step
    if critic is None or critic.is_recurrent:
        return

    def process_env_step(obs: Any, rewards: torch.Tensor, dones: Any, extras: Any) -> None:
        if "final_obs" in extras and "time_outs" in extras:
            extras = dict(extras)
            value = critic(extras["final_obs"].to(rewards.device)).detach().squeeze(1)
            time_outs = extras.pop("time_outs").to(rewards.device)
            # Not a product: the final observation of a world that diverged is not finite.
            rewards = torch.where(time_outs, rewards + alg.gamma * value, rewards)
        process(obs, rewards, dones, extras)

    alg.process_env_step = process_env_step


def _observed(
    obs_groups: dict[str, tuple[str, ...]], env: RslRlVecEnvWrapper
) -> dict[str, list[str]]:
    """Groups that each network sees; a critic whose groups do not exist sees what the actor sees.

    Raises:
        ValueError: the actor's groups do not exist.
    """
    available = set(env.get_observations().keys())
    groups = {name: list(names) for name, names in obs_groups.items()}
    if missing := set(groups.get("actor", ["actor"])) - available:
        raise ValueError(
            f"The actor observes {sorted(missing)}, but the environment has observation groups "
            f"{sorted(available)}: name one of them in obs_groups['actor']."
        )
    if not set(groups.get("critic", ["critic"])) <= available:
        groups["critic"] = groups.get("actor", ["actor"])
    return groups


def _to_bytes(value: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def _from_bytes(data: bytes) -> Any:
    return torch.load(io.BytesIO(data), weights_only=True, map_location="cpu")
