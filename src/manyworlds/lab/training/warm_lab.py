"""Lab in a process of its own that waits to enter worlds of a training."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

from manyworlds.lab.readers.reader_process import import_paths

_CLOSE_S = 5.0


class WarmLab:
    """Starts `manyworlds lab --attach RUN --wait`, which enters a world whenever it is asked to.

    The process starts at once and is small until `warm` is called. Then it loads what a lab needs,
    so that entering takes less than a second. It has the priority of the process that creates this
    object. If it ends by itself, the next call starts another one.

    Args:
        folder: run folder of the training.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._is_warm = False
        self.process = self._start()
        """Process of the lab."""

    def warm(self) -> None:
        """Load what a lab needs; a second call does nothing."""
        with self._lock:
            self._warm()

    def enter(self, world: int) -> str:
        """Open a world in the lab in place of the one before, and return the page's address.

        Raises:
            RuntimeError: the world cannot be entered; the message has the reason.
        """
        with self._lock:
            self._warm()
            answer = self._ask(str(world))
            if "url" not in answer:
                raise RuntimeError(answer.get("error", "The process of the lab has ended."))
            return answer["url"]

    def close(self) -> None:
        """End the process."""
        self.process.terminate()
        try:
            self.process.wait(_CLOSE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _start(self) -> subprocess.Popen[str]:
        python = [sys.executable, "-P"]
        return subprocess.Popen(
            [*python, "-m", "manyworlds", "lab", "--attach", str(self._folder), "--wait"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(import_paths())},
        )

    def _warm(self) -> None:
        if self.process.poll() is not None:
            self.process = self._start()
            self._is_warm = False
        if not self._is_warm:
            answer = self._ask("warm")
            if "ready" not in answer:
                raise RuntimeError(answer.get("error", "The process of the lab has ended."))
            self._is_warm = True

    def _ask(self, line: str) -> dict[str, str]:
        """Send a line, and return the answer; empty if the process has ended."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(f"{line}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return {}
        for answer in self.process.stdout:
            if answer.startswith("{"):
                return json.loads(answer)
        return {}
