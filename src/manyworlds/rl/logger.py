"""Logger of a training: returns of episodes, curves in files, and a record of each iteration."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Protocol, TypedDict, cast

import torch
from rsl_rl.utils import resolve_class
from rsl_rl.utils.log_writer import LogWriter
from rsl_rl.utils.wandb_log_writer import WandbLogWriter

from manyworlds.managers.not_finite import mean_of_finite
from manyworlds.rl.code_state import write_code_state
from manyworlds.rl.distributed import Ranks
from manyworlds.rl.progress import IterationRecord
from manyworlds.utils.config import finite_or_none
from manyworlds.utils.wandb import add_wandb_tags

if TYPE_CHECKING:
    from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper

_RECENT_EPISODES = 100


class Writer(Protocol):
    """Destination of curves: TensorBoard's `SummaryWriter`, or a `LogWriter` of rsl_rl."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> object:
        """Write a value of an iteration."""


def _print(record: IterationRecord) -> None:
    if Ranks.from_environment().is_main:
        print(f"iteration {record.iteration}/{record.total}: {record.describe()}", flush=True)


class ReturnsState(TypedDict):
    """Returns and lengths of episodes, in a checkpoint."""

    recent: list[list[float]]
    """Values of recent episodes, by kind: return and length, then return without and with intrinsic
    rewards only."""
    present: list[torch.Tensor]
    """Sums of present episodes by the same kinds, each of shape [worlds]."""


class EpisodeSums:
    """Sums over the present episode of each world, and those of the last 100 episodes.

    Args:
        num_envs: number of worlds.
        device: device of the sums.
    """

    def __init__(self, num_envs: int, device: torch.device | str) -> None:
        self._recent: deque[float] = deque(maxlen=_RECENT_EPISODES)
        self._unread: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.present = torch.zeros(num_envs, device=device)
        """Sums of the present episodes, shape [worlds]."""

    @property
    def recent(self) -> deque[float]:
        """Sums of the last episodes; those of all steps since the last access are read at once."""
        if self._unread:
            sums, ended = (torch.stack(rows).cpu() for rows in zip(*self._unread, strict=True))
            self._unread.clear()
            self._recent.extend(sums[ended].tolist())
        return self._recent

    def add(self, values: torch.Tensor | float, ended: torch.Tensor) -> None:
        """Add values of a control step; begin again in worlds whose episode has ended.

        Args:
            values: values, shape [worlds].
            ended: mask of the worlds whose episode has ended, shape [worlds].
        """
        self.present += values
        self._unread.append((self.present.clone(), ended))
        self.present.masked_fill_(ended, 0.0)


class TrainingLogger:
    """Logger of a training.

    The methods that a loop of learning calls are those of rsl_rl's `Logger`, for runners with a
    loop of their own.

    Args:
        env: environment of this process.
        cfg: settings of the runner, as plain data.
        log_dir: folder for curves and the state of the code; None writes nothing.
        ranks: this process among all; the first one writes files.
        has_intrinsic_rewards: whether the algorithm adds rewards.
    """

    def __init__(
        self,
        env: RslRlVecEnvWrapper,
        cfg: dict[str, object],
        log_dir: str | None,
        ranks: Ranks,
        has_intrinsic_rewards: bool = False,
    ) -> None:
        self.log_dir = log_dir
        """Folder of the run; checkpoints are saved there."""
        self.writer: Writer | None = None
        """Destination of curves while a training runs; None in processes that write no files."""
        self.git_status_repos: list[str] = []
        """Files of further repositories whose state is written; `add_git_repo_to_log` of rsl_rl's
        runners appends them."""
        self.report: Callable[[IterationRecord], None] = _print
        """Function that gets the record of each iteration; rank 0 prints it by default."""
        self._env = env
        self._cfg = cfg
        self._ranks = ranks
        self._time = 0.0
        self._env_times = (0.0, 0.0)
        self._num_ended = torch.zeros((), dtype=torch.long, device=env.device)
        self._num_terminated: torch.Tensor | None = None
        self._logged: list[Mapping[str, torch.Tensor | float]] = []
        self.returns = EpisodeSums(env.num_envs, env.device)
        """Returns, with intrinsic rewards."""
        self.lengths = EpisodeSums(env.num_envs, env.device)
        """Numbers of control steps."""
        self.extrinsic = EpisodeSums(env.num_envs, env.device)
        """Returns without intrinsic rewards, if there are any."""
        self.intrinsic = EpisodeSums(env.num_envs, env.device)
        """Returns of intrinsic rewards, if there are any."""
        self._sums = [self.returns, self.lengths]
        if has_intrinsic_rewards:
            self._sums += [self.extrinsic, self.intrinsic]

    def init_logging_writer(self) -> None:
        """Open the writer, and write settings and the state of the code."""
        self._env_times = self._read_env_times()
        if self.log_dir is None or not self._ranks.is_main:
            return
        settings = self._cfg.get("logger", "tensorboard")
        if settings == "wandb":
            project = self._cfg.get("wandb_project", "manyworlds")
            settings = {"class_name": "WandbLogWriter", "project_name": project}
        if settings == "tensorboard":
            from torch.utils.tensorboard import SummaryWriter

            self.writer = SummaryWriter(log_dir=self.log_dir, flush_secs=10)
        else:
            make, arguments = resolve_class(cast("dict[str, object]", settings))
            self.writer = make(log_dir=self.log_dir, **arguments)
        add_wandb_tags(cast("Sequence[str]", self._cfg.get("wandb_tags", ())))
        places = [Path.cwd(), Path(__file__).parent]
        places += [Path(file).parent for file in self.git_status_repos]
        code = write_code_state(Path(self.log_dir, "git"), places)
        if isinstance(self.writer, LogWriter):
            self.writer.store_config(self._env.cfg, self._cfg)
            for path in code:
                self.writer.save_file(str(path))

    def stop_logging_writer(self) -> None:
        """Close the writer."""
        if isinstance(self.writer, LogWriter):
            self.writer.stop()

    def process_env_step(
        self,
        rewards: torch.Tensor,
        dones: torch.Tensor,
        extras: Mapping[str, object],
        intrinsic_rewards: torch.Tensor | None = None,
    ) -> None:
        """Add a control step.

        Args:
            rewards: rewards of the environment, shape [worlds].
            dones: ends of episodes, shape [worlds].
            extras: extras of the environment, with its logged values.
            intrinsic_rewards: rewards of the algorithm, shape [worlds]; None for none.
        """
        logged = extras.get("episode", extras.get("log", {}))
        self._logged.append(cast("Mapping[str, torch.Tensor | float]", logged))
        ended = dones.bool()
        time_outs = extras.get("time_outs")
        self._num_ended = self._num_ended + ended.sum()
        if isinstance(time_outs, torch.Tensor):
            if self._num_terminated is None:
                self._num_terminated = torch.zeros_like(self._num_ended)
            self._num_terminated = self._num_terminated + (ended & ~time_outs).sum()
        self.lengths.add(1.0, ended)
        if intrinsic_rewards is None:
            self.returns.add(rewards, ended)
            return
        self.returns.add(rewards + intrinsic_rewards, ended)
        self.extrinsic.add(rewards, ended)
        self.intrinsic.add(intrinsic_rewards, ended)

    def log(
        self,
        it: int,
        start_it: int,
        total_it: int,
        collect_time: float,
        learn_time: float,
        loss_dict: Mapping[str, float],
        learning_rate: float,
        action_std: torch.Tensor,
        rnd_weight: float | None = None,
        **options: object,
    ) -> None:
        """Write the curves of an iteration, and report its record.

        Args:
            it: number of the iteration, from 0 on.
            start_it: number of the first iteration of this process.
            total_it: number of the iterations planned.
            collect_time: time of the rollout [s].
            learn_time: time of the update [s].
            loss_dict: mean losses by name.
            learning_rate: learning rate.
            action_std: standard deviations of the actions.
            rnd_weight: weight of the intrinsic rewards; None if there are none.
            options: how rsl_rl would print, which is not done here.
        """
        scalars = {f"Loss/{name}": value for name, value in loss_dict.items()}
        scalars["Loss/learning_rate"] = learning_rate
        real = action_std > 0.0  # columns that pad a robot's actions have none
        scalars["Policy/mean_std"] = action_std[real].mean().item()
        scalars.update(self._means_of_logged())
        mean_return = None
        if self.returns.recent:
            mean_return = mean(self.returns.recent)
            scalars["Train/mean_reward"] = mean_return
            scalars["Train/mean_episode_length"] = mean(self.lengths.recent)
            if rnd_weight is not None:
                scalars["Rnd/mean_extrinsic_reward"] = mean(self.extrinsic.recent)
                scalars["Rnd/mean_intrinsic_reward"] = mean(self.intrinsic.recent)
                scalars["Rnd/weight"] = rnd_weight
        num_steps = cast("int", self._cfg["num_steps_per_env"])
        num_worlds = self._env.num_envs * self._ranks.world_size
        steps_per_s = num_steps * num_worlds / (collect_time + learn_time)
        self._time += collect_time + learn_time
        if self.writer is not None:
            performance = {
                "Perf/total_fps": int(steps_per_s),
                "Perf/collection_time": collect_time,
                "Perf/learning_time": learn_time,
            }
            for name, value in {**scalars, **performance}.items():
                self.writer.add_scalar(name, value, it)
            if not isinstance(self.writer, WandbLogWriter):  # whose steps must increase
                for name in ("Train/mean_reward", "Train/mean_episode_length"):
                    if name in scalars:
                        self.writer.add_scalar(f"{name}/time", scalars[name], int(self._time))
            if isinstance(self.writer, LogWriter):
                for video in Path(cast("str", self.log_dir)).rglob("*.mp4"):
                    self.writer.save_video(video, it)
        before = self._env_times
        self._env_times = self._read_env_times()
        terminated = None
        num_ended = int(self._num_ended)
        if self._num_terminated is not None and num_ended:
            terminated = int(self._num_terminated) / num_ended
        self._num_ended = torch.zeros_like(self._num_ended)
        self._num_terminated = None
        record = IterationRecord(
            iteration=it + 1,
            total=total_it,
            mean_return=mean_return,
            steps_per_s=steps_per_s,
            collect_time=collect_time,
            learn_time=learn_time,
            env_time=self._env_times[0] - before[0],
            physics_time=self._env_times[1] - before[1],
            terminated=terminated,
            scalars=cast("dict[str, float | None]", finite_or_none(scalars)),
        )
        self.report(record)

    def save_model(self, path: str, it: int) -> None:
        """Upload a checkpoint, if the writer does that."""
        if isinstance(self.writer, LogWriter):
            self.writer.save_model(path, it)

    def returns_state(self) -> ReturnsState:
        """Copy the returns and lengths of recent episodes and of present ones."""
        return {
            "recent": [list(sums.recent) for sums in self._sums],
            "present": [sums.present.clone() for sums in self._sums],
        }

    def load_returns_state(self, state: ReturnsState) -> None:
        """Load a state that `returns_state` returned."""
        if len(state["recent"]) != len(self._sums):  # of a run with other rewards
            return
        for sums, recent, present in zip(
            self._sums, state["recent"], state["present"], strict=True
        ):
            sums.recent.extend(recent)
            sums.present.copy_(present)

    def _means_of_logged(self) -> dict[str, float]:
        """Return the means of the finite values that the steps of an iteration logged."""
        values: dict[str, list[torch.Tensor]] = {}
        for logged in self._logged:
            for name, value in logged.items():
                values.setdefault(name, []).append(torch.as_tensor(value).float().flatten().cpu())
        self._logged.clear()
        means = {}
        for name, parts in values.items():
            if "/" not in name:
                name = f"Episode/{name}"
            means[name] = mean_of_finite(torch.cat(parts)).item()
        return means

    def _read_env_times(self) -> tuple[float, float]:
        """Return the time of all control steps and of their physics so far [s]."""
        return self._env.step_time, self._env.unwrapped.physics_time
