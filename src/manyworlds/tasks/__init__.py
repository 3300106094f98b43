"""Built-in tasks, and the registry that finds tasks by name."""

from manyworlds.tasks.registry import (
    cpu_training,
    list_tasks,
    load_env_cfg,
    load_rl_cfg,
    load_runner_cls,
    register_task,
    require_task,
    use_cpu_preset,
)

__all__ = [
    "cpu_training",
    "list_tasks",
    "load_env_cfg",
    "load_rl_cfg",
    "load_runner_cls",
    "register_task",
    "require_task",
    "use_cpu_preset",
]
