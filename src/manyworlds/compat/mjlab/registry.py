"""mjlab's dictionary of registered tasks."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import NamedTuple

from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.tasks import registry


class RegisteredTask(NamedTuple):
    """A task: its configurations, which are copies, and the class of its runner."""

    env_cfg: ManagerBasedRlEnvCfg
    play_env_cfg: ManagerBasedRlEnvCfg
    rl_cfg: RslRlOnPolicyRunnerCfg
    runner_cls: type | None


class _Registry(MutableMapping[str, RegisteredTask]):
    """Registered tasks by id."""

    def __getitem__(self, task_id: str) -> RegisteredTask:
        if task_id not in registry.list_tasks():
            raise KeyError(task_id)
        return RegisteredTask(
            registry.load_env_cfg(task_id),
            registry.load_env_cfg(task_id, play=True),
            registry.load_rl_cfg(task_id),
            registry.load_runner_cls(task_id),
        )

    def __setitem__(self, task_id: str, task: RegisteredTask) -> None:
        registry.register_task(
            task_id, task.env_cfg, task.play_env_cfg, task.rl_cfg, task.runner_cls
        )

    def __delitem__(self, task_id: str) -> None:
        if task_id not in registry.list_tasks():
            raise KeyError(task_id)
        registry.unregister_task(task_id)

    def __iter__(self) -> Iterator[str]:
        return iter(registry.list_tasks())

    def __len__(self) -> int:
        return len(registry.list_tasks())

    def __contains__(self, task_id: object) -> bool:
        return task_id in registry.list_tasks()


REGISTRY = _Registry()
"""All registered tasks by id."""
