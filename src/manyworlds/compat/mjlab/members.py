"""Methods that classes of this project have under the alias alone."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manyworlds.entity import Entity
    from manyworlds.scene import Scene


def _to_zip(self: Scene, path: str | Path) -> Path:
    """Write the scene and its assets into one archive; deprecated: call `write(zip=True)`."""
    warnings.warn("Scene.to_zip is deprecated: call write(path, zip=True).", DeprecationWarning, 2)
    return self.write(Path(path).with_suffix(""), zip=True)


def _clear_state(self: Entity, env_ids: Any = None) -> None:
    """Clear targets, wrenches and actuators in some worlds; deprecated: call `reset`."""
    warnings.warn("Entity.clear_state is deprecated: call reset.", DeprecationWarning, 2)
    self.reset(env_ids)


MEMBERS: dict[str, dict[str, Any]] = {
    "manyworlds.entity.entity:Entity": {"clear_state": _clear_state},
    "manyworlds.scene.scene:Scene": {"to_zip": _to_zip},
}
"""Members by 'module:Class'."""


def attach() -> None:
    """Give the classes that are imported their members; those that have them keep theirs."""
    for cls, members in _imported():
        for name, member in members.items():
            if not hasattr(cls, name):
                setattr(cls, name, member)


def detach() -> None:
    """Undo `attach`."""
    for cls, members in _imported():
        for name, member in members.items():
            if vars(cls).get(name) is member:
                delattr(cls, name)


def _imported() -> list[tuple[type, dict[str, Any]]]:
    places = [(*place.split(":"), members) for place, members in MEMBERS.items()]
    return [
        (getattr(sys.modules[module], name), members)
        for module, name, members in places
        if module in sys.modules
    ]
