"""Registry of tasks by name.

Built-in tasks are listed in a table and imported when they are first loaded, so that listing is
fast. Packages add tasks through the entry-point group `manyworlds.tasks` or by `register_task`.
"""

from __future__ import annotations

import copy
import importlib
import importlib.metadata
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from manyworlds.validation.names import near_matches

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnvCfg
    from manyworlds.rl.config import RslRlBaseRunnerCfg, RslRlOnPolicyRunnerCfg

    CpuPreset = Callable[[ManagerBasedRlEnvCfg, RslRlOnPolicyRunnerCfg], None]


@dataclass(frozen=True)
class _Task:
    env_cfg: ManagerBasedRlEnvCfg
    play_env_cfg: ManagerBasedRlEnvCfg
    rl_cfg: RslRlBaseRunnerCfg
    runner_cls: type | str | None
    """Runner class, or its location as 'module:name', because it needs the extra `train`."""
    cpu_preset: CpuPreset | None = None


_TASKS: dict[str, _Task] = {}

PLUGIN_GROUPS: dict[str, bool] = {"manyworlds.tasks": False}
"""Entry-point groups whose modules register tasks; True once they are loaded."""


@dataclass(frozen=True)
class LazyTask:
    """Location of a task whose module is imported when the task is first loaded."""

    module: str
    env_cfg: str
    """Name of the function that returns the environment's config; it takes `play`."""
    rl_cfg: str
    """Name of the function that returns the learner's config."""
    runner: str | None = None
    """Runner class as 'module:name'; None for `manyworlds.rl.OnPolicyRunner`."""
    cpu_preset: str | None = "use_cpu_preset"
    """Name of the module's function that changes the configs for a few CPU cores, if it is
    defined; None for no such change."""


_CARTPOLE = "manyworlds.tasks.cartpole.cartpole_env_cfg"
_PUSH = "manyworlds.tasks.push.push_env_cfg"
_LEGGED = "manyworlds.tasks.velocity.config.legged"


def _velocity(robot: str, ground: str) -> LazyTask:
    """Return the location of a robot's task on `flat` or `rough` ground."""
    return LazyTask(
        f"manyworlds.tasks.velocity.config.{robot.removeprefix('unitree_')}",
        f"{robot}_{ground}_env_cfg",
        f"{robot}_ppo_runner_cfg",
    )


def _cubes(robot: str, env: str, learner: str, cpu_preset: str | None = None) -> LazyTask:
    """Return the location of a task in which an arm lifts cubes."""
    return LazyTask(
        f"manyworlds.tasks.manipulation.config.{robot}",
        f"{robot}_{env}_env_cfg",
        f"{robot}_{learner}_ppo_runner_cfg",
        cpu_preset=cpu_preset,
    )


def _tracking(robot: str, env: str) -> LazyTask:
    """Return the location of a robot's task that tracks a motion."""
    return LazyTask(
        f"manyworlds.tasks.tracking.config.{robot.removeprefix('unitree_')}",
        f"{robot}_{env}_env_cfg",
        f"{robot}_tracking_ppo_runner_cfg",
        "manyworlds.tasks.tracking.rl.runner:MotionTrackingOnPolicyRunner",
    )


BUILTIN_TASKS: dict[str, LazyTask] = {
    "Cartpole-Balance": LazyTask(_CARTPOLE, "cartpole_balance_env_cfg", "cartpole_ppo_runner_cfg"),
    "Cartpole-Swingup": LazyTask(_CARTPOLE, "cartpole_swingup_env_cfg", "cartpole_ppo_runner_cfg"),
    "Push-Variants": LazyTask(_PUSH, "push_variants_env_cfg", "push_ppo_runner_cfg"),
    "Reach": LazyTask("manyworlds.tasks.reach.reach_env_cfg", "env_cfg", "rl_cfg"),
    "Velocity-Flat-Quadruped": _velocity("quadruped", "flat"),
    "Velocity-Rough-Quadruped": _velocity("quadruped", "rough"),
    "Velocity-Flat-Humanoid": _velocity("humanoid", "flat"),
    "Velocity-Rough-Humanoid": _velocity("humanoid", "rough"),
    "Velocity-Flat-Go1": _velocity("unitree_go1", "flat"),
    "Velocity-Rough-Go1": _velocity("unitree_go1", "rough"),
    "Velocity-Flat-G1": _velocity("unitree_g1", "flat"),
    "Velocity-Rough-G1": _velocity("unitree_g1", "rough"),
    "Velocity-Flat-Legged": LazyTask(_LEGGED, "legged_flat_env_cfg", "legged_ppo_runner_cfg"),
    "Velocity-Flat-Legged-Held-Out": LazyTask(
        _LEGGED, "legged_held_out_env_cfg", "legged_ppo_runner_cfg"
    ),
    "Lift-Cube-Arm": _cubes("arm", "lift_cube", "lift_cube", "use_cpu_preset"),
    "Lift-Cube-Arm-Rgb": _cubes("arm", "lift_cube_rgb", "lift_cube_vision"),
    "Lift-Cube-Arm-Depth": _cubes("arm", "lift_cube_depth", "lift_cube_vision"),
    "Multi-Cube-Seg-Arm": _cubes("arm", "multi_cube_seg", "multi_cube_seg"),
    "Lift-Cube-Yam": _cubes("yam", "lift_cube", "lift_cube", "use_cpu_preset"),
    "Lift-Cube-Yam-Rgb": _cubes("yam", "lift_cube_rgb", "lift_cube_vision"),
    "Lift-Cube-Yam-Depth": _cubes("yam", "lift_cube_depth", "lift_cube_vision"),
    "Multi-Cube-Seg-Yam": _cubes("yam", "multi_cube_seg", "multi_cube_seg"),
    "Tracking-Flat-Humanoid": _tracking("humanoid", "flat_tracking"),
    "Tracking-Flat-Humanoid-No-State-Estimation": _tracking(
        "humanoid", "flat_tracking_no_state_estimation"
    ),
    "Tracking-Flat-G1": _tracking("unitree_g1", "flat_tracking"),
    "Tracking-Flat-G1-No-State-Estimation": _tracking(
        "unitree_g1", "flat_tracking_no_state_estimation"
    ),
}
"""Tasks of this package, by id."""
_LAZY: dict[str, LazyTask] = dict(BUILTIN_TASKS)

FAMILIES: dict[str, str] = {
    "Velocity-Flat": "manyworlds.tasks.velocity.config.robots:flat_task",
    "Velocity-Rough": "manyworlds.tasks.velocity.config.robots:rough_task",
}
"""Tasks for a robot that is named: function of the robot's name that registers its task."""

_CPU_TRAINING: dict[str, str] = {
    "Cartpole-Balance": "1 minute on 2 cores",
    "Cartpole-Swingup": "1 minute on 2 cores",
    "Velocity-Flat-G1": "51 minutes on 1 core",
    "Velocity-Flat-Go1": "5 minutes on 2 cores",
    "Velocity-Flat-Quadruped": "5 minutes on 2 cores",
    "Velocity-Flat-Legged": "walks in part after 48 minutes on 2 cores",
    "Velocity-Flat-Legged-Held-Out": "evaluates Velocity-Flat-Legged, after 48 minutes on 2 cores",
    "Velocity-Flat-Humanoid": "41 minutes on 1 core",
    "Velocity-Rough-Quadruped": "22 minutes on 2 cores",
    "Velocity-Rough-Go1": "30 minutes on 2 cores",
    "Push-Variants": "1 minute on 2 cores",
    "Reach": "1 minute on 2 cores",
    "Lift-Cube-Arm": "17 minutes on 2 cores",
    "Lift-Cube-Yam": "38 minutes on 2 cores",
    "Tracking-Flat-Humanoid": "46 minutes on 2 cores",
    # Not trained to their end; 10 million control steps with images take more than half a day.
    "Lift-Cube-Arm-Depth": "needs a GPU: 172 control steps per second on 2 cores",
    "Lift-Cube-Arm-Rgb": "needs a GPU: 86 control steps per second on 2 cores",
    "Lift-Cube-Yam-Depth": "needs a GPU: 102 control steps per second on 2 cores",
    "Lift-Cube-Yam-Rgb": "needs a GPU: 25 control steps per second on 2 cores",
    "Multi-Cube-Seg-Arm": "needs a GPU: 183 control steps per second on 2 cores",
    "Multi-Cube-Seg-Yam": "needs a GPU: 96 control steps per second on 2 cores",
    "Tracking-Flat-G1": "hours: 6,200 control steps per second on 2 cores",
    "Tracking-Flat-G1-No-State-Estimation": "hours: 6,900 control steps per second on 2 cores",
    "Tracking-Flat-Humanoid-No-State-Estimation": (
        "hours: 8,700 control steps per second on 2 cores"
    ),
    "Velocity-Rough-G1": "hours: 3,700 control steps per second on 2 cores",
    "Velocity-Rough-Humanoid": "hours: 5,100 control steps per second on 2 cores",
}
"""Training times of tasks on a CPU, by id, as measured for docs/learning.md and
docs/performance.md."""


def register_task(
    task_id: str,
    env_cfg: ManagerBasedRlEnvCfg,
    play_env_cfg: ManagerBasedRlEnvCfg,
    rl_cfg: RslRlBaseRunnerCfg,
    runner_cls: type | None = None,
    *,
    cpu_preset: CpuPreset | None = None,
    cpu_training: str = "",
) -> None:
    """Register a task.

    Args:
        task_id: name of the task, unique among all tasks.
        env_cfg: environment for training.
        play_env_cfg: environment for playback: usually endless episodes without perturbations.
        rl_cfg: configuration of the learner.
        runner_cls: subclass of `manyworlds.rl.OnPolicyRunner`; None for that class.
        cpu_preset: function that changes both configurations to settings that train well on a few
            CPU cores; None if no change is needed.
        cpu_training: measured training time on a CPU, which `manyworlds list` shows, such as
            "15 minutes on 2 cores" or "needs a GPU: ..."; empty if it is not known.

    Raises:
        ValueError: the name is already registered.
    """
    _check_free(task_id)
    _TASKS[task_id] = _Task(env_cfg, play_env_cfg, rl_cfg, runner_cls, cpu_preset)
    _CPU_TRAINING[task_id] = cpu_training


def register_lazy_task(task_id: str, task: LazyTask, cpu_training: str = "") -> None:
    """Register a task whose module is imported when the task is first loaded.

    Args:
        task_id: name of the task, unique among all tasks.
        task: location of the task.
        cpu_training: measured training time on a CPU; see `register_task`.

    Raises:
        ValueError: the name is already registered.
    """
    _check_free(task_id)
    _LAZY[task_id] = task
    _CPU_TRAINING[task_id] = cpu_training


def unregister_task(task_id: str) -> None:
    """Remove a task; unknown names are ignored."""
    _LAZY.pop(task_id, None)
    _TASKS.pop(task_id, None)
    _CPU_TRAINING.pop(task_id, None)


def list_tasks() -> list[str]:
    """Return the names of all tasks, sorted."""
    _load_plugins()
    return sorted({*_LAZY, *_TASKS})


def cpu_training(task_name: str) -> str:
    """Return a task's measured training time on a CPU as text; empty if it is not known."""
    return _CPU_TRAINING.get(task_name, "")


def load_env_cfg(task_name: str, play: bool = False) -> ManagerBasedRlEnvCfg:
    """Return a copy of a task's environment configuration, for training or playback.

    Raises:
        KeyError: the task does not exist.
    """
    task = _find(task_name)
    if play:
        return copy.deepcopy(task.play_env_cfg)
    return copy.deepcopy(task.env_cfg)


def load_rl_cfg(task_name: str) -> RslRlOnPolicyRunnerCfg:
    """Return a copy of a task's learner configuration.

    It is the one that was registered, which is that of a distillation in tasks for students.

    Raises:
        KeyError: the task does not exist.
    """
    return cast("RslRlOnPolicyRunnerCfg", copy.deepcopy(_find(task_name).rl_cfg))


def load_runner_cls(task_name: str) -> type | None:
    """Return a task's own runner class; None if it has none.

    Raises:
        KeyError: the task does not exist.
    """
    runner_cls = _find(task_name).runner_cls
    if not isinstance(runner_cls, str):
        return runner_cls
    module, _, name = runner_cls.partition(":")
    return getattr(importlib.import_module(module), name)


def use_cpu_preset(
    task_name: str, env_cfg: ManagerBasedRlEnvCfg, rl_cfg: RslRlBaseRunnerCfg
) -> bool:
    """Change both configurations to settings that train well on a few CPU cores.

    Returns:
        True if the task has such settings.

    Raises:
        KeyError: the task does not exist.
    """
    preset = _find(task_name).cpu_preset
    if preset is not None:
        preset(env_cfg, cast("RslRlOnPolicyRunnerCfg", rl_cfg))
    return preset is not None


def task_of_robot(family: str, robot: str) -> str:
    """Return the name of a family's task for a robot, registering it if it is new.

    Args:
        family: beginning of the task's name, such as Velocity-Flat.
        robot: name of a robot of this package, of a third party, or of MuJoCo Menagerie.

    Raises:
        KeyError: there is no such family, or no such robot.
        ValueError: the robot's model does not say all that the task needs.
        OSError: the model cannot be downloaded.
    """
    if family not in FAMILIES:
        raise KeyError(
            f"'{family}' is no task for a named robot: use --robot with {' or '.join(FAMILIES)}."
        )
    module, _, function = FAMILIES[family].partition(":")
    return getattr(importlib.import_module(module), function)(robot)


def require_task(task_name: str) -> str:
    """Check that a task of this name exists, without importing its module.

    Returns:
        The name as it is registered, such as Velocity-Flat-Go1 for Velocity-Flat-go1.

    Raises:
        KeyError: the task does not exist.
    """
    if task_name in _LAZY or task_name in _TASKS:
        return task_name
    known = list_tasks()
    if task_name in FAMILIES:
        raise KeyError(
            f"{task_name} is for a robot: name one, as in {task_name} --robot quadruped."
        )
    for family in FAMILIES:  # such as a run of a robot that is not registered in this process
        robot = task_name.removeprefix(f"{family}-")
        if robot != task_name and robot == robot.lower() and task_name not in known:
            return task_of_robot(family, robot)
    if task_name not in known:
        raise KeyError(
            f"There is no task '{task_name}'.{near_matches(task_name, known)} A task of your own "
            "needs --load FILE, or in Python the import of the module that registers it. "
            f"Available: {', '.join(known)}."
        )
    return task_name


def _check_free(task_id: str) -> None:
    if task_id in _TASKS or task_id in _LAZY:
        raise ValueError(f"Task '{task_id}' is already registered: choose another name.")


def _find(task_name: str) -> _Task:
    """Return a task, after importing its module if it is the first time."""
    task_name = require_task(task_name)
    if task_name not in _TASKS:
        lazy = _LAZY[task_name]
        module = importlib.import_module(lazy.module)
        make_env = getattr(module, lazy.env_cfg)
        make_rl = getattr(module, lazy.rl_cfg)
        preset = None
        if lazy.cpu_preset:
            preset = getattr(module, lazy.cpu_preset, None)
        _TASKS[task_name] = _Task(make_env(), make_env(play=True), make_rl(), lazy.runner, preset)
    return _TASKS[task_name]


def _load_plugins() -> None:
    """Import the modules of installed packages' entry points; warn about those that fail."""
    for group in [group for group, loaded in PLUGIN_GROUPS.items() if not loaded]:
        PLUGIN_GROUPS[group] = True
        for entry_point in importlib.metadata.entry_points(group=group):
            try:
                entry_point.load()
            except Exception as error:
                warnings.warn(f"Task plug-in '{entry_point.name}' failed to load: {error!r}")
