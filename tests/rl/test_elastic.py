"""Training on several hosts whose processes fail, as `torchrun` and users repeat it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from manyworlds.rl.checkpoint import load_checkpoint
from manyworlds.rl.progress import read_progress
from manyworlds.rl.run_folder import RunFolder

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds processes in /proc")
ITERATIONS = 30
PATIENCE_S = 600.0  # how long it takes is up to who else uses the machine
TRAINING = f"""
    --env.scene.num-envs 4 --agent.num-steps-per-env 4 --agent.save-interval 5 --device cpu
    --agent.max-iterations {ITERATIONS} --agent.run-name pair --auto-resume
""".split()


class Host:
    """An agent of `torchrun` on this machine, which stands for a host."""

    def __init__(self, command: list[str], log: Path) -> None:
        # The store that agents share would keep the addresses of processes that have ended.
        environment = {**os.environ, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        with log.open("a") as file:
            self.agent = subprocess.Popen(
                command, stdout=file, stderr=subprocess.STDOUT, env=environment
            )

    def workers(self) -> list[int]:
        """Return the process ids of the agent's workers."""
        path = Path(f"/proc/{self.agent.pid}/task/{self.agent.pid}/children")
        return [int(pid) for pid in path.read_text().split()] if path.exists() else []

    def kill(self) -> None:
        """Kill the agent and its workers."""
        for pid in self.workers():
            os.kill(pid, signal.SIGKILL)
        self.agent.kill()
        self.agent.wait()


class Hosts:
    """Two hosts that train one policy."""

    def __init__(self, log_root: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._command = [
            *(sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc_per_node=1"),
            *("--max-restarts=3", "--rdzv_backend=c10d", "--rdzv_id=pair"),
            *(f"--rdzv_endpoint=127.0.0.1:{port}", "--local-addr=127.0.0.1"),
            *("-m", "manyworlds", "train", "Cartpole-Swingup", "--log-root", str(log_root)),
            *TRAINING,
        ]
        self.log_root, self._log = log_root, log_root / "log.txt"
        self.first = self.start()  # has the endpoint, if it is there first
        self._wait_for(port)
        self.second = self.start()

    def _wait_for(self, port: int) -> None:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.1)
        raise AssertionError(f"No endpoint in 60 s: {self._log.read_text()}")

    def start(self) -> Host:
        """Start the training on one host."""
        return Host(self._command, self._log)

    def wait_for_checkpoint(self) -> RunFolder:
        """Return the run once it has a checkpoint of a trained policy."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            for file in self.log_root.glob("*/*/params/run.yaml"):
                if len((run := RunFolder(file.parent.parent)).checkpoints()) > 1:
                    return run
            time.sleep(0.05)
        raise AssertionError(f"No checkpoint in {PATIENCE_S:.0f} s: {self._log.read_text()}")

    def wait_until_done(self) -> None:
        """Wait until the training has ended well on both hosts."""
        for host in (self.first, self.second):
            assert host.agent.wait(PATIENCE_S) == 0, self._log.read_text()


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    """Two hosts that train; what is left of them is killed."""
    hosts = Hosts(tmp_path)
    yield hosts
    hosts.first.kill()
    hosts.second.kill()


def check_continued(first: RunFolder, log_root: Path) -> None:
    """Check that a later run continued the first one, and reached the last iteration."""
    last = RunFolder.latest(log_root)
    assert last.path.name > first.path.name
    assert last.last_checkpoint().name == f"model_{ITERATIONS - 1}.pt"
    assert len(load_checkpoint(last.last_checkpoint())["infos"]["other_ranks"]) == 1
    numbers = [record.iteration for record in read_progress(last.path)]
    assert numbers == list(range(1, ITERATIONS + 1))  # with those of the first run


@pytest.mark.slow
def test_a_killed_process_is_restarted_and_the_training_goes_on(hosts):
    """Kill the worker of one host: both agents restart theirs, from the last checkpoint."""
    run = hosts.wait_for_checkpoint()
    [worker] = hosts.second.workers()
    os.kill(worker, signal.SIGKILL)
    hosts.wait_until_done()
    check_continued(run, hosts.log_root)


@pytest.mark.slow
def test_a_host_that_fails_comes_back_and_the_training_goes_on(hosts):
    """Kill all of one host, and start the same command there again: both go on."""
    run = hosts.wait_for_checkpoint()
    hosts.second.kill()
    hosts.second = hosts.start()
    hosts.wait_until_done()
    check_continued(run, hosts.log_root)
