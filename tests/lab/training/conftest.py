"""A training that runs in another process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from manyworlds.live.server import ATTACH_FILE

START_S = 240.0
PROGRAM = Path(__file__).parent / "paced_training.py"


class Training:
    """Training of a task with an attach server, as `manyworlds train` starts it, but slower.

    Args:
        task: name of the task.
        root: folder of all runs.
        options: further options of the command.
    """

    def __init__(self, task: str, root: Path, *options: str) -> None:
        self.root = root
        args = ["train", task, "--log-root", str(root), "--env.scene.num-envs", "12"]
        args += ["--agent.max-iterations", "1000000", "--agent.save-interval", "1000000"]
        self.log = (root / "log.txt").open("w")
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), *args, *options],
            stdout=self.log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        self.folder = self._wait_for(lambda: next(root.glob(f"*/*/{ATTACH_FILE}"), None)).parent

    @property
    def iterations(self) -> int:
        """Number of iterations so far."""
        lines = (self.folder / "progress.jsonl").read_text().splitlines()
        return json.loads(lines[-1])["iteration"] if lines else 0

    def wait_for_iterations(self, more: int) -> None:
        """Wait until the training has made more iterations."""
        until = self.iterations + more
        self._wait_for(lambda: self.iterations >= until)

    def end(self) -> int:
        """Stop the training as Ctrl-C does, and return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        code = self.process.wait(START_S)
        self.log.close()
        return code

    def _wait_for(self, what):
        end = time.monotonic() + START_S
        while not (result := what()):
            text = (self.root / "log.txt").read_text()
            assert self.process.poll() is None, text
            assert time.monotonic() < end, text
            time.sleep(0.05)
        return result


@pytest.fixture(scope="module")
def training(tmp_path_factory) -> Iterator[Training]:
    """A training of quadrupeds."""
    pytest.importorskip("rsl_rl", reason="needs the extra 'train'")
    root = tmp_path_factory.mktemp("runs")
    training = Training("Velocity-Flat-Quadruped", root, "--enter", "--remember")
    yield training
    training.end()
