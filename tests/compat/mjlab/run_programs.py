"""Runs programs one after the other in one process, each as `python -m manyworlds.compat.mjlab`.

Reads command lines by name from standard input as JSON, and writes what each printed, and its
traceback or the code of its exit, to the file that is the only argument. In a command line, the
text `{newest:PATTERN}` is replaced by the newest file that matches.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import re
import sys
import time
import traceback
from glob import glob
from os.path import getmtime
from pathlib import Path

from manyworlds.compat.mjlab.__main__ import main


def _newest(match: re.Match[str]) -> str:
    files = sorted(glob(match[1]), key=getmtime)
    return files[-1] if files else match[0]


def _run(arguments: list[str]) -> dict[str, object]:
    printed = io.StringIO()
    error: str | int | None = None
    sys.argv = ["mjlab", *(re.sub(r"\{newest:(.*?)\}", _newest, text) for text in arguments)]
    start = time.monotonic()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            main()
        except SystemExit as exit_:
            error = exit_.code  # type: ignore[assignment]
        except Exception:
            error = traceback.format_exc()
    seconds = time.monotonic() - start
    return {"printed": printed.getvalue(), "error": error, "seconds": seconds}


if __name__ == "__main__":
    if importlib.util.find_spec("warp") is not None:
        import warp as wp

        wp.config.optimization_level = 0  # see `tests.conftest`: the same compiled kernels
    output = Path(sys.argv[1])
    results = {name: _run(arguments) for name, arguments in json.load(sys.stdin).items()}
    output.write_text(json.dumps(results))
