"""Configuration of a run, as it was in training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyworlds.tasks.registry import load_env_cfg, load_rl_cfg, use_cpu_preset
from manyworlds.utils.config import flatten, to_plain, update_from_plain

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnvCfg
    from manyworlds.rl.config import RslRlBaseRunnerCfg
    from manyworlds.rl.run_folder import RunFolder


def configs_of_run(run: RunFolder) -> tuple[ManagerBasedRlEnvCfg, RslRlBaseRunnerCfg]:
    """Return the environment and the learner of a run, as they are in training.

    Raises:
        ValueError, KeyError, TypeError: the run's configuration does not fit the task.
    """
    task = run.task or ""
    wanted = run.env_params()
    found, failure = [], None
    for preset in (False, True):
        env_cfg, rl_cfg = load_env_cfg(task), load_rl_cfg(task)
        if preset and not use_cpu_preset(task, env_cfg, rl_cfg):
            continue
        try:
            update_from_plain(env_cfg, wanted)
            update_from_plain(rl_cfg, run.agent_params())
        except (ValueError, KeyError, TypeError) as error:  # it may be of the other preset
            failure = error
            continue
        here, there = flatten(to_plain(env_cfg)), flatten(wanted)
        differences = sum(here.get(key) != there.get(key) for key in {**here, **there})
        found.append((differences, env_cfg, rl_cfg))
    if not found:
        assert failure is not None
        raise failure
    _, env_cfg, rl_cfg = min(found, key=lambda entry: entry[0])
    return env_cfg, rl_cfg
