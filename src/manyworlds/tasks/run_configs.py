"""Configurations of a run: as in its training, for playback, and for evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from manyworlds.tasks.registry import load_env_cfg, load_rl_cfg, use_cpu_preset
from manyworlds.utils.config import Plain, flatten, to_plain, update_from_plain

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
    found = []
    failure = None
    for preset in (False, True):
        env_cfg = load_env_cfg(task)
        rl_cfg = load_rl_cfg(task)
        if preset and not use_cpu_preset(task, env_cfg, rl_cfg):
            continue
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


def play_env_cfg(task: str, run: RunFolder | None) -> ManagerBasedRlEnvCfg:
    """Return the playback environment of a task, with the changes that a run made to its training.

    Args:
        task: name of the task.
        run: the run; None for the environment as registered.
    """
    cfg = load_env_cfg(task, play=True)
    if run is None:
        return cfg
    used = run.env_params()
    for name in ("seed", "episode_length_s"):
        used.pop(name, None)
    used.get("scene", {}).pop("num_envs", None)
    registered = to_plain(load_env_cfg(task))
    return update_from_plain(cfg, _with_changes(to_plain(cfg), used, registered))


def evaluation_env_cfg(task: str, run: RunFolder) -> ManagerBasedRlEnvCfg:
    """Return the environment of a task as registered, with texts from the run where it has none.

    Such a text is the path of a motion file, without which a tracking task cannot run.
    """
    cfg = load_env_cfg(task)
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
    return [
        line
        for line in _describe_differences(to_plain(cfg), run.env_params())
        if not line.startswith(("scene.num_envs:", "seed:", "viewer."))
    ]


def _describe_differences(here: Plain, there: Plain, path: str = "") -> Iterator[str]:
    """Yield a text for each entry in which nested dicts differ, and for each that one lacks."""
    if not (isinstance(here, dict) and isinstance(there, dict)):
        if here != there:
            yield f"{path}: {here}, in training {there}"
        return
    for key in dict.fromkeys((*there, *here)):
        inner = f"{path}.{key}".lstrip(".")
        if key in here and key in there:
            yield from _describe_differences(here[key], there[key], inner)
        elif key in here:
            yield f"{inner}: only here"
        else:
            yield f"{inner}: only in training"


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
