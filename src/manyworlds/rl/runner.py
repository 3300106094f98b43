"""Training with rsl_rl's PPO: checkpoints that can be resumed, threads where they help."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import torch

from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper
from manyworlds.utils.os import write_atomic
from manyworlds.utils.torch import torch_threads, usable_cores

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


class _Logger(_RslRlLogger):
    """rsl_rl's logger, without its printing and its copy of the git state."""

    on_iteration: Callable[[IterationRecord], None] | None = None
    stop_requested = False

    def log(self, **kwargs: Any) -> None:  # type: ignore[override]
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
                    steps_per_s=self.cfg["num_steps_per_env"] * self.num_envs / sum(times),
                    collect_time=times[0],
                    learn_time=times[1],
                )
            )
        if self.stop_requested:
            raise TrainingStopped

    def process_env_step(self, rewards: Any, dones: Any, extras: Any, *args: Any) -> None:
        """Keep returns even where nothing is written to disk."""
        writer, self.writer = self.writer, self.writer or object()  # type: ignore[assignment]
        super().process_env_step(rewards, dones, extras, *args)
        self.writer = writer

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
        return []


class OnPolicyRunner(_RslRlRunner):
    """Trains a policy.

    One torch thread runs while worlds step, all cores while the networks learn.

    Args:
        env: the wrapped environment.
        train_cfg: learning settings, which are copied.
        log_dir: folder for checkpoints and logs; None writes nothing.
        device: where the networks live.
    """

    env: RslRlVecEnvWrapper

    def __init__(
        self,
        env: RslRlVecEnvWrapper,
        train_cfg: RslRlOnPolicyRunnerCfg,
        log_dir: str | Path | None = None,
        device: str = "cpu",
    ) -> None:
        settings = asdict(train_cfg)
        settings["obs_groups"] = _observed(train_cfg.obs_groups, env)
        with contextlib.redirect_stdout(io.StringIO()):
            super().__init__(env, settings, None if log_dir is None else str(log_dir), device)
        _bootstrap_with_final_values(self.alg)
        self.logger = _Logger(
            log_dir=self.logger.log_dir,
            cfg=self.cfg,
            env_cfg=env.cfg,
            num_envs=env.num_envs,
            is_distributed=self.is_distributed,
            gpu_world_size=self.gpu_world_size,
            gpu_global_rank=self.gpu_global_rank,
            device=device,
        )

    def learn(self, num_learning_iterations: int, init_at_random_ep_len: bool = False) -> None:
        """Run iterations of collecting and learning.

        Raises:
            TrainingStopped: `request_stop` was called; the state is that between two iterations.
        """
        update = self.alg.update

        def update_on_all_cores() -> dict[str, float]:
            with torch_threads(usable_cores()):
                return update()

        self.alg.update = update_on_all_cores  # type: ignore[method-assign]
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
        """Write a checkpoint, whole or not at all: networks, optimiser, and the environment."""
        checkpoint = self.alg.save()
        checkpoint["iter"] = self.current_learning_iteration
        checkpoint["infos"] = {
            **(infos or {}),
            "env_state": self.env.unwrapped.state_dict(),
            "returns": self.logger.returns_state(),
        }
        buffer = io.BytesIO()
        torch.save(checkpoint, buffer)
        write_atomic(Path(path), buffer.getvalue())

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
            if "env_state" in infos:
                self.env.unwrapped.load_state_dict(infos["env_state"])
            if "returns" in infos:
                self.logger.load_returns_state(infos["returns"])
        return infos

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


def load_checkpoint(path: Path, map_location: str = "cpu") -> dict[str, Any]:
    """Read a checkpoint without running anything that it contains.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is not a checkpoint.
    """
    if not path.is_file():
        raise FileNotFoundError(f"There is no checkpoint '{path}': give the path of a .pt file.")
    try:
        checkpoint = torch.load(path, weights_only=True, map_location=map_location)
        _ = checkpoint["actor_state_dict"], checkpoint["iter"]
    except Exception:
        raise ValueError(
            f"'{path}' is not a checkpoint that training wrote, or it is damaged: choose another."
        ) from None
    return checkpoint
