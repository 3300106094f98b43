"""`manyworlds export-dataset RUN`: episodes of a trained policy as Parquet files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from manyworlds.cli.errors import UsageError
from manyworlds.cli.options import RUNS, Device, FromFile, Load, LogRoot, parse
from manyworlds.cli.runs import find_run, tell_differences
from manyworlds.cli.task_files import load_task_of


@dataclass(kw_only=True)
class ExportDatasetOptions:
    """Run the policy of a run, and write its episodes in the layout of a LeRobot dataset (v3.0).

    Each world runs one episode, in the environment of the run's training. A frame holds the
    observation, the action, and the resulting reward and end of the episode.
    """

    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Run folder, name of a run, checkpoint, or a task for its newest run."""
    output: Path
    """Folder to create; it must not exist."""
    episodes: int = 10
    """Number of episodes."""
    group: str = "actor"
    """Observation group written as `observation.state`."""
    description: str = ""
    """Description of the episodes in words; empty for the name of the task."""
    seed: int = 1_000_003
    """Seed of the worlds."""
    log_root: LogRoot = RUNS
    device: Device = None
    load: Load = ()
    from_file: FromFile = False


def main(argv: list[str]) -> int:
    """Run `manyworlds export-dataset`."""
    options = parse(ExportDatasetOptions, argv, "export-dataset")
    if options.episodes < 1:
        raise UsageError(f"--episodes must be at least 1, got {options.episodes}.")
    if options.output.exists():
        raise UsageError(f"--output '{options.output}' exists: name another folder, or delete it.")
    from manyworlds.utils.extras import require_extra
    from manyworlds.utils.files import check_writable

    check_writable(options.output)
    require_extra("pyarrow", "data")
    require_extra("rsl_rl", "train")
    print(f"wrote {options.episodes} episodes to '{_record(options)}'")
    return 0


def _record(options: ExportDatasetOptions) -> Path:
    from manyworlds.cli.policies import load_run_policy, with_progress
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.envs.mdp import record_dataset
    from manyworlds.managers import RecorderTermCfg
    from manyworlds.tasks.run_configs import evaluation_env_cfg

    found = find_run(options.run, options.log_root)
    run = found.need_folder()
    task = found.need_task()
    checkpoint = found.need_checkpoint()
    load_task_of(run, from_file=options.from_file)
    tell_differences(run, task, from_file=options.from_file)
    cfg = evaluation_env_cfg(task, run, from_file=options.from_file)
    cfg.scene.num_envs = options.episodes
    cfg.seed = options.seed
    params = {
        "folder": options.output,
        "group": options.group,
        "task": options.description or task,
        "episodes_per_world": 1,
    }
    cfg.recorders["dataset"] = RecorderTermCfg(func=record_dataset, params=params)
    env = ManagerBasedRlEnv(cfg, device=options.device)
    policy = load_run_policy(env, task, run, checkpoint)
    recorder = env.recorder_manager.get_term("dataset")
    assert isinstance(recorder, record_dataset)
    with with_progress(policy, env.max_episode_length, "recording") as shown:
        obs, _ = env.reset()
        for _ in range(env.max_episode_length):
            if recorder.finished:
                break
            obs, *_ = env.step(shown(obs))
    if not recorder.finished:
        raise ValueError(
            f"Episodes of '{task}' have not ended after {env.max_episode_length_s:g} s, the "
            "episode_length_s of the task: add the termination mdp.time_out to it."
        )
    env.close()
    return options.output
