"""Configurations of a run: as in its training, for playback, and for evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from manyworlds.tasks.registry import load_env_cfg, load_rl_cfg, use_cpu_preset
from manyworlds.utils.config import (
    Plain,
    describe_differences,
    flatten,
    to_plain,
    update_from_plain,
)

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnvCfg
    from manyworlds.rl.config import RslRlBaseRunnerCfg
    from manyworlds.rl.run_folder import RunFolder


_NOT_TOLD = ("scene.num_envs:", "seed:", "viewer.")
_OF_EACH_RUN = (
    "env.scene.num_envs:",
    "env.seed:",
    "env.viewer.",
    "agent.seed:",
    "agent.run_name:",
    "agent.max_iterations:",
    "agent.max_minutes:",
    "agent.resume:",
    "agent.load_run:",
    "agent.load_checkpoint:",
    "agent.device:",
)


def configs_of_run(run: RunFolder) -> tuple[ManagerBasedRlEnvCfg, RslRlBaseRunnerCfg]:
    """Return the environment and the learner of a run, as they are in training.

    Terms added to the task after the training are left out.

    Raises:
        ValueError, KeyError, TypeError: the run's configuration does not fit the task.
    """
    task = run.task or ""
    wanted = run.env_params()
    found = []
    failure = None
    for env_cfg, rl_cfg in _registered(task):
        _drop_new_terms(env_cfg, wanted)
        try:
            update_from_plain(env_cfg, wanted)
            update_from_plain(rl_cfg, run.agent_params())
        except (ValueError, KeyError, TypeError) as error:  # it may be of the other preset
            failure = error
            continue
        here = flatten(to_plain(env_cfg))
        there = flatten(wanted)
        differences = sum(here.get(key) != there.get(key) for key in {**here, **there})
        found.append((differences, env_cfg, rl_cfg))
    if not found:
        assert failure is not None
        raise failure
    _, env_cfg, rl_cfg = min(found, key=lambda entry: entry[0])
    return env_cfg, rl_cfg


def play_env_cfg(
    task: str, run: RunFolder | None, *, from_file: bool = False
) -> ManagerBasedRlEnvCfg:
    """Return the playback environment of a task, with the changes that a run made to its training.

    Args:
        task: name of the task.
        run: the run; None, or a run of another task, for the environment as registered.
        from_file: keep the environment as registered, but for texts that it lacks.
    """
    cfg = load_env_cfg(task, play=True)
    if run is None or run.task not in (task, None):
        return cfg
    if from_file:
        return with_texts_of(cfg, run)
    used = run.env_params()
    for name in ("seed", "episode_length_s"):
        used.pop(name, None)
    used.get("scene", {}).pop("num_envs", None)
    registered = to_plain(load_env_cfg(task))
    return update_from_plain(cfg, _with_changes(to_plain(cfg), used, registered))


def evaluation_env_cfg(
    task: str, run: RunFolder | None, *, from_file: bool = False
) -> ManagerBasedRlEnvCfg:
    """Return the environment in which a policy is evaluated: that of its run's training.

    Args:
        task: name of the task.
        run: the run; None, or a run of another task, for the environment as registered.
        from_file: take the environment as registered, and from the run texts that it lacks.
    """
    if run is None or run.task not in (task, None):
        return load_env_cfg(task)
    if from_file:
        return with_texts_of(load_env_cfg(task), run)
    env_cfg, _ = configs_of_run(run)
    return env_cfg


def with_texts_of(cfg: ManagerBasedRlEnvCfg, run: RunFolder) -> ManagerBasedRlEnvCfg:
    """Return a configuration with texts from a run where it has none.

    Such a text is the path of a motion file, without which a tracking task cannot run.
    """
    used = flatten(run.env_params())
    missing: dict[str, Any] = {}
    for path, value in flatten(to_plain(cfg)).items():
        if value != "" or not used.get(path):
            continue
        *parents, name = path.split(".")
        entry = missing
        for parent in parents:
            entry = entry.setdefault(parent, {})
        entry[name] = used[path]
    return update_from_plain(cfg, missing)


def differences_from_training(cfg: ManagerBasedRlEnvCfg, run: RunFolder) -> list[str]:
    """Return the settings in which an environment differs from that of a run, as text.

    The number of worlds, the seed and the view are left out.
    """
    lines = describe_differences(to_plain(cfg), run.env_params(), ("here", "in training"))
    return [line for line in lines if not line.startswith(_NOT_TOLD)]


def differences_from_task(run: RunFolder) -> list[str]:
    """Return the settings in which a run's training differs from its task as registered, as text.

    The number of worlds, the seed and the view are left out. Of the presets for GPUs and for
    CPUs, the one with fewer differences is compared.

    Raises:
        ValueError, KeyError, TypeError: the run's configuration does not fit the task.
    """
    task = run.task or ""
    used = {"env": run.env_params(), "agent": run.agent_params()}
    found = []
    for env_cfg, rl_cfg in _registered(task):
        registered: Plain = {"env": to_plain(env_cfg), "agent": to_plain(rl_cfg)}
        lines = describe_differences(used, registered, ("in the run", "in the task"))
        found.append([line for line in lines if not line.startswith(_OF_EACH_RUN)])
    return min(found, key=len)


def _with_changes(shown: Plain, new: Plain, old: Plain) -> Plain:
    """Return nested dicts with the values that changed from `old` to `new`; add no entry."""
    if new == old:
        return shown
    if not (isinstance(new, dict) and isinstance(old, dict)):
        return new
    if not isinstance(shown, dict):  # a term that playback turns off
        return shown
    result = dict(shown)
    for key in shown.keys() & new.keys() & old.keys():
        result[key] = _with_changes(shown[key], new[key], old[key])
    return result


def _registered(task: str) -> Iterator[tuple[ManagerBasedRlEnvCfg, RslRlBaseRunnerCfg]]:
    """Yield the settings of a task as registered, and those for few CPU cores if it has them."""
    yield load_env_cfg(task), load_rl_cfg(task)
    env_cfg = load_env_cfg(task)
    rl_cfg = load_rl_cfg(task)
    if use_cpu_preset(task, env_cfg, rl_cfg):
        yield env_cfg, rl_cfg


def _drop_new_terms(cfg: ManagerBasedRlEnvCfg, wanted: Plain) -> None:
    """Remove the terms of all managers that saved settings do not have."""
    assert isinstance(wanted, dict)
    for manager, terms in vars(cfg).items():
        saved = wanted.get(manager)
        if not (isinstance(terms, dict) and isinstance(saved, dict)):
            continue
        for name in [name for name in terms if name not in saved]:
            del terms[name]
        if manager == "observations":
            for group, group_cfg in terms.items():
                group_saved = saved[group]
                if group_cfg is None or not isinstance(group_saved, dict):
                    continue
                known = group_saved["terms"]
                assert isinstance(known, dict)
                for name in [name for name in group_cfg.terms if name not in known]:
                    del group_cfg.terms[name]
