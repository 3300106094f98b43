"""The import name `mjlab` for projects written for mjlab 1.6.

`python -m manyworlds.compat.mjlab SCRIPT [ARGUMENTS]` and `... -m MODULE [ARGUMENTS]` run a program
with `mjlab` aliased to this package; `install()` does the same inside a program.
"""

from manyworlds.compat.mjlab.aliases import install, uninstall

__all__ = ["install", "uninstall"]
