"""Programs that run in processes of their own, with the large imports done."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import sys
from pathlib import Path

# Each import of these takes seconds: they are imported once, in a process that is then copied.
_PRELOADED = ["manyworlds.envs", "manyworlds.tasks", "manyworlds.rl", "rsl_rl.runners"]
_CONTEXT = multiprocessing.get_context("forkserver")


def run_program(program: Path) -> None:
    """Run a program in its folder, as `python PROGRAM` does, and fail as it does."""
    log = program.with_suffix(".log")
    _CONTEXT.set_forkserver_preload(_PRELOADED)
    process = _CONTEXT.Process(target=_run, args=(program, log))
    process.start()
    process.join()
    assert process.exitcode == 0, log.read_text()


def _run(program: Path, log: Path) -> None:
    os.chdir(program.parent)
    file = os.open(log, os.O_WRONLY | os.O_CREAT)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.argv = [str(program)]
    sys.path[0] = str(program.parent)
    runpy.run_path(str(program), run_name="__main__")
