"""Verbs that replace the model of the world, or load a policy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np

from manyworlds.lab.errors import VerbError
from manyworlds.lab.verbs.fields import Field, FilePath, Name, Texts, Values
from manyworlds.lab.verbs.registry import Reply, verb

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab


@verb(
    kept=Texts(text="joints that keep their state"),
    fresh=Texts(text="joints in the initial state"),
    gone=Texts(text="joints that the new world does not have"),
    notes=Texts(text="sentences about what else did not continue"),
    model_hash=Field(text="hash of the new model"),
)
def reload(lab: LiveLab) -> Reply:
    """Build the world again from its model file, task or run, and continue by name."""
    result = lab.reload()
    if not result:
        raise VerbError("bad_model", f"The present world continues: {result.error}")
    return {
        "kept": list(result.kept),
        "fresh": list(result.fresh),
        "gone": list(result.gone),
        "notes": list(result.notes),
        "model_hash": lab.world.model_hash,
    }


@verb(
    differences=Texts(text="differences between the world and that of training"),
    commands=Values(text="values of the policy's commands, by name"),
)
def run_policy(
    lab: LiveLab,
    path: Annotated[Path, FilePath(text="policy: .onnx, or a checkpoint .pt in its run folder")],
    robot: Annotated[str | None, Name(of="robot", text="robot; the only one if left out")] = None,
    commands: Annotated[
        dict[str, object] | None, Values(text="values of command terms, by name; 0 by default")
    ] = None,
) -> Reply:
    """Control a robot by a trained policy, from the initial state."""
    given: dict[str, np.ndarray] = {}
    for name, value in (commands or {}).items():
        try:
            given[name] = np.array(value, float)
        except (TypeError, ValueError):
            raise VerbError("bad_value", f"run_policy: '{name}' must be numbers.") from None
    law = lab.run_policy(path, robot or "", given)
    return {
        "differences": list(law.differences),
        "commands": {name: np.ravel(value).tolist() for name, value in law.commands.items()},
    }
