"""Methods and arguments of earlier releases of mjlab, called as they were written.

`docs/coming_from_mjlab.md` has the table.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from manyworlds.managers import CommandTerm

RENAMED = {"asset_name": "entity_name", "joint_names_expr": "target_names_expr"}
"""Fields of configs under their earlier names, with the present ones."""
_CONFIGS = (
    *("manyworlds.actuator", "manyworlds.envs.mdp.actions", "manyworlds.utils.viewer_config"),
    *(f"manyworlds.tasks.{task}.mdp" for task in ("manipulation", "tracking", "velocity")),
)
"""Modules of configs whose fields were renamed."""

_told: set[tuple[str, str]] = set()


def adapt_command(cls: type[CommandTerm], **options: object) -> None:
    """Let a subclass of `CommandTerm` have an `_update_command` without `env_ids`.

    It updates all worlds. Where some worlds begin an episode, its tensors keep their values in the
    others.
    """
    import torch

    from manyworlds.managers import CommandTerm

    super(CommandTerm, cls).__init_subclass__(**options)
    written = vars(cls).get("_update_command")
    if not inspect.isfunction(written) or len(inspect.signature(written).parameters) != 1:
        return

    @functools.wraps(written)
    def update(self: CommandTerm, env_ids: torch.Tensor | None = None) -> None:
        before: list[tuple[str, torch.Tensor]] = []
        others = torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)
        if env_ids is not None and len(env_ids) < self.num_envs:
            others.fill_(True)
            others[env_ids] = False
            names = [name for name, value in vars(self).items() if _has_rows(value, self.num_envs)]
            before = [(name, getattr(self, name)[others].clone()) for name in names]
        written(self)
        for name, rows in before:
            value = getattr(self, name)
            if _has_rows(value, self.num_envs):
                value[others] = rows

    del update.__wrapped__  # whose signature would be taken for this one
    cls._update_command = update  # type: ignore[method-assign]
    _tell(
        cls.__name__,
        "_update_command",
        f"{cls.__name__}._update_command takes no env_ids, as in earlier releases of mjlab: it is "
        "called for all worlds. Write `def _update_command(self, env_ids)`, where None is all.",
    )


def _has_rows(value: object, num_envs: int) -> bool:
    import torch

    return isinstance(value, torch.Tensor) and value.shape[:1] == (num_envs,)


def attach() -> None:
    """Let the configs that are imported take their fields under earlier names, too."""
    for cls in _configs():
        init = cls.__init__
        if not hasattr(init, "__manyworlds_written__"):
            cls.__init__ = _with_old_names(cls, init)  # type: ignore[misc]


def detach() -> None:
    """Undo `attach`."""
    for cls in _configs():
        written = getattr(cls.__init__, "__manyworlds_written__", None)
        if written is not None:
            cls.__init__ = written  # type: ignore[misc]
    _told.clear()


def _configs() -> Iterator[type]:
    """Yield the imported configs that have a renamed field and a constructor of their own."""
    for module in [sys.modules[name] for name in _CONFIGS if name in sys.modules]:
        for cls in list(vars(module).values()):
            if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
                continue
            fields = {field.name for field in dataclasses.fields(cls)}
            if "__init__" in vars(cls) and fields & set(RENAMED.values()):
                yield cls


def _with_old_names(cls: type, init: Callable[..., None]) -> Callable[..., None]:
    fields = {field.name for field in dataclasses.fields(cls)}
    renamed = {old: new for old, new in RENAMED.items() if new in fields and old not in fields}

    @functools.wraps(init)
    def initialize(self: Any, *args: object, **kwargs: object) -> None:
        for old, new in renamed.items():
            if old in kwargs and new not in kwargs:
                kwargs[new] = kwargs.pop(old)
                _tell(
                    cls.__name__,
                    old,
                    f"{cls.__name__} has {old}: it is named {new} in later releases.",
                )
        init(self, *args, **kwargs)

    initialize.__manyworlds_written__ = init  # type: ignore[attr-defined]
    return initialize


def _tell(name: str, what: str, message: str) -> None:
    """Warn once of what a project writes in an earlier form."""
    if (name, what) not in _told:
        _told.add((name, what))
        warnings.warn(message, DeprecationWarning, stacklevel=3)
