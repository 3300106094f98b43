"""Methods and arguments of earlier releases of mjlab, called as they were written.

`docs/coming_from_mjlab.md` has the table.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import warnings
from collections.abc import Callable
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
    """Let the configs that are imported, and classes derived from them, have earlier names, too."""
    for cls in _configs():
        if cls not in _adapting:
            cls.__new__ = _adapting_new(cls)  # type: ignore[method-assign]
        _adapting[cls] = True
        cls.__getattr__ = _get  # type: ignore[attr-defined]
        cls.__setattr__ = _set  # type: ignore[method-assign]


def detach() -> None:
    """Undo `attach`, but for `__new__`, which classes must keep; it does nothing from now on."""
    for cls, is_attached in _adapting.items():
        if is_attached:
            del cls.__getattr__, cls.__setattr__  # type: ignore[attr-defined]
        _adapting[cls] = False
    for cls, written in _written.items():
        cls.__init__ = written  # type: ignore[misc]
    _written.clear()
    _renamed.cache_clear()
    _told.clear()


def _configs() -> set[type]:
    """Return the imported configs that define a renamed field."""
    configs = set()
    for module in [sys.modules[name] for name in _CONFIGS if name in sys.modules]:
        for value in list(vars(module).values()):
            if isinstance(value, type):
                configs.update([each for each in value.__mro__ if _renamed(each)][-1:])
    return configs


@functools.cache
def _renamed(cls: type) -> dict[str, str]:
    """Return the present names of a config's renamed fields, by the earlier ones."""
    if not dataclasses.is_dataclass(cls):
        return {}
    fields = {field.name for field in dataclasses.fields(cls)}
    return {old: new for old, new in RENAMED.items() if new in fields and old not in fields}


def _adapting_new(base: type) -> Callable[..., object]:
    """Return a `__new__` that lets the constructor of a derived class take earlier names."""

    @functools.wraps(base.__init__)  # whose signature is that of the class
    def new(cls: type, /, *args: object, **kwargs: object) -> object:
        if _adapting[base]:
            owner = next(each for each in cls.__mro__ if "__init__" in vars(each))
            if owner not in _written:
                _written[owner] = owner.__init__
                owner.__init__ = _with_present_names(owner.__init__)  # type: ignore[misc]
        return object.__new__(cls)

    return new


def _with_present_names(init: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(init)
    def initialize(self: Any, /, *args: object, **kwargs: object) -> None:
        init(self, *args, **{_present_name(self, name): kwargs[name] for name in kwargs})

    return initialize


def _get(self: object, name: str) -> object:
    """Return a field by its earlier name."""
    present = _present_name(self, name)
    if present == name:
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
    return getattr(self, present)


def _set(self: object, name: str, value: object) -> None:
    """Set a field by its present or earlier name."""
    object.__setattr__(self, _present_name(self, name), value)


def _present_name(cfg: object, name: str) -> str:
    """Return the present name of a field of a config."""
    cls = type(cfg)
    present = _renamed(cls).get(name)
    if present is None:
        return name
    message = f"{cls.__name__} has {name}: it is named {present} in later releases."
    _tell(cls.__name__, name, message)
    return present


_adapting: dict[type, bool] = {}
"""Configs that have been attached to, and whether they are at present."""
_written: dict[type, Callable[..., None]] = {}
"""Constructors as they were written, of configs that have been instantiated."""


def _tell(name: str, what: str, message: str) -> None:
    """Warn once of what a project writes in an earlier form."""
    if (name, what) not in _told:
        _told.add((name, what))
        warnings.warn(message, DeprecationWarning, stacklevel=3)
