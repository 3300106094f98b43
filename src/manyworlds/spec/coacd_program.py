"""Decomposition of one mesh by CoACD, as a program: `python -m ... INPUT OUTPUT`.

INPUT and OUTPUT are NPZ files: vertices, faces and settings, and vertices and faces of each piece.
CoACD cannot be interrupted, so that it has a process of its own. Its messages go to the standard
output. The program ends when its standard input does, because the caller has ended then.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from itertools import chain

import numpy as np

from manyworlds.utils.platforms import lower_priority


def main() -> None:
    """Read a mesh, decompose it, and write the pieces."""
    threading.Thread(target=_end_with_caller, daemon=True).start()
    lower_priority(10)  # the physics of a running world comes first
    import coacd

    source, target = sys.argv[1:]
    with np.load(source) as given:
        mesh = coacd.Mesh(given["vertices"], given["faces"])
        settings = json.loads(str(given["settings"]))
    coacd.set_log_level("info")
    pieces = coacd.run_coacd(mesh, **settings)
    np.savez(target, *chain.from_iterable(pieces))


def _end_with_caller() -> None:
    os.read(sys.stdin.fileno(), 1)
    os._exit(1)


if __name__ == "__main__":
    main()
