"""Runs a program with `mjlab` aliased to manyworlds."""

from __future__ import annotations

import importlib
import os
import runpy
import sys

from manyworlds.compat.mjlab.aliases import PACKAGE, install

_USAGE = "usage: python -m manyworlds.compat.mjlab {SCRIPT | -m MODULE} [ARGUMENTS]"


def main() -> None:
    """Run the program named on the command line, as `python` itself does.

    Raises:
        SystemExit: the program is missing, or exits.
    """
    arguments = sys.argv[1:]
    if arguments[:1] in (["-h"], ["--help"]):
        print(_USAGE)
        return
    if arguments in ([], ["-m"]):
        print(_USAGE, file=sys.stderr)
        raise SystemExit(2)
    install()
    if arguments[0] != "-m":
        sys.argv = arguments
        if not sys.flags.safe_path:
            sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")
        return
    name = arguments[1]
    sys.argv = arguments[1:]
    if name.split(".")[0] == PACKAGE:
        importlib.import_module(name).main()
    else:
        runpy.run_module(name, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
