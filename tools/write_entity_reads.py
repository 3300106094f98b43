"""Write src/manyworlds/lab/client/entity_reads.py: the properties of `EntityData` as arrays.

Run from the project's root: python tools/write_entity_reads.py
"""

from __future__ import annotations

import inspect
from pathlib import Path

from manyworlds.entity.data import EntityData
from manyworlds.lab.client.robot_reads import NOT_READ

FILE = Path("src/manyworlds/lab/client/entity_reads.py")
_HEAD = '''"""Properties of `EntityData`, as arrays of one world.

Written by `python tools/write_entity_reads.py`; a test compares them.
"""

from __future__ import annotations

import numpy as np


class EntityReads:
    """State of a robot under the names of `EntityData`."""

    def _read(self, name: str) -> np.ndarray:
        """Return a property, without the dimension of worlds."""
        raise NotImplementedError
'''


def read_properties() -> dict[str, str]:
    """Return the meaning of each property of `EntityData` that clients have, by its name."""
    found = inspect.getmembers(EntityData, lambda value: isinstance(value, property))
    texts = {name: inspect.getdoc(value) or "" for name, value in found if name not in NOT_READ}
    return {name: text.partition("\n")[0] for name, text in texts.items() if name[0] != "_"}


def render() -> str:
    """Return the content of the module."""
    parts = [_HEAD]
    for name, text in read_properties().items():
        one = text.replace("[num_envs, ", "[").replace("[num_envs]", "[]")
        one = one if "shape" in one else one.replace(", [", ", shape [")
        parts.append(f"\n    @property\n    def {name}(self) -> np.ndarray:\n")
        parts.append(f'        """{one}"""\n        return self._read("{name}")\n')
    return "".join(parts)


if __name__ == "__main__":
    FILE.write_text(render())
