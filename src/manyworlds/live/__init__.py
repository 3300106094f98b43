"""Access to a running environment: snapshots and forks of a world, records, edits.

`manyworlds.live.server` is the server that other programs attach to, `manyworlds.live.memory` keeps
the last seconds of all worlds, and `manyworlds.live.story` simulates an episode's end again.
"""

from typing import TYPE_CHECKING

from manyworlds.utils.lazy_names import lazy_names

if TYPE_CHECKING:
    from manyworlds.live.edits import (
        START_STATES,
        AddCase,
        AddDisturbance,
        AddRandomization,
        AddStartState,
        EditLog,
        EnvironmentEdit,
        RecordedPush,
        SetValue,
        Undo,
        apply_edit,
        edit_from_plain,
        edit_log,
    )
    from manyworlds.live.fork import env_from_snapshot, fork_env
    from manyworlds.live.record import WorldRecord, WorldRecorder
    from manyworlds.live.run_edits import RunEdits
    from manyworlds.live.snapshot import WorldSnapshot, take_snapshot

__all__ = [
    "START_STATES",
    "AddCase",
    "AddDisturbance",
    "AddRandomization",
    "AddStartState",
    "EditLog",
    "EnvironmentEdit",
    "RecordedPush",
    "RunEdits",
    "SetValue",
    "Undo",
    "WorldRecord",
    "WorldRecorder",
    "WorldSnapshot",
    "apply_edit",
    "edit_from_plain",
    "edit_log",
    "env_from_snapshot",
    "fork_env",
    "take_snapshot",
]

_MODULES = {
    "RunEdits": ".run_edits",
    "WorldSnapshot": ".snapshot",
    "WorldRecord": ".record",
    "WorldRecorder": ".record",
    "env_from_snapshot": ".fork",
    "fork_env": ".fork",
    "take_snapshot": ".snapshot",
}
__getattr__ = lazy_names(__name__, {name: ".edits" for name in __all__} | _MODULES)
