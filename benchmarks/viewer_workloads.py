"""What looking at worlds costs: the browser's scene, and the page of a running training."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median, stdev
from time import perf_counter, process_time, sleep
from typing import Any

from benchmarks.workloads import Figures, robots_folder

_BLOCK_SECONDS = 2.0
_TRAINING_WORLDS = 256
_FRAME_SECONDS = 1 / 30

# A browser that draws nothing: it says where it looks from, since viser counts only such clients,
# and takes in all messages; for each that is as large as poses are, it prints a line.
_CLIENT = """
import sys
import msgspec
import viser
from viser._messages import ViewerCameraMessage
from websockets.sync.client import connect
address = sys.argv[1].replace("http", "ws")
protocol = f"viser-v{viser.__version__}"
camera = ViewerCameraMessage(
    wxyz=(1.0, 0.0, 0.0, 0.0), position=(3.0, 3.0, 3.0), fov=0.8, near=0.1, far=100.0,
    image_height=480, image_width=640, look_at=(0.0, 0.0, 0.0), up_direction=(0.0, 0.0, 1.0),
)
with connect(address, subprotocols=[protocol], max_size=None, compression=None) as socket:
    socket.send(msgspec.msgpack.encode(camera.as_serializable_dict()))
    print("connected", flush=True)
    for message in socket:
        if len(message) > 10_000:
            print("picture", flush=True)
"""


def scene_update(seconds: float) -> Figures | None:
    """1024 Go1 worlds on a page: time of this process for one picture, and bytes sent."""
    from manyworlds.viewer.viser.scene import WorldGrid
    from manyworlds.viewer.viser.server import new_server, page_url, stop_server

    env = _go1(1024)
    if env is None:
        return None
    import numpy as np
    import torch

    server = new_server("127.0.0.1", 8300)
    start = perf_counter()
    grid = WorldGrid(server, env.sim.mj_model, env.cfg.viewer, 1024)
    states = []
    for _ in range(5):
        env.step(torch.zeros(1024, 12))
        data = env.sim.data
        states.append((data.xpos.numpy().copy(), data.xquat.numpy().copy()))
    anchors = np.zeros((1024, 3))
    grid.update(states[0][0], states[0][1], anchors, 0)
    set_up = perf_counter() - start
    times, cpu = [], []
    with _client(page_url(server)):
        end = perf_counter() + seconds
        while perf_counter() < end or len(times) < 10:
            start, busy = perf_counter(), process_time()
            positions, quaternions = states[len(times) % 5]
            grid.update(positions, quaternions, anchors, 0)
            times.append(perf_counter() - start)
            # viser sends in a thread of its own.
            sleep(max(0.0, start + _FRAME_SECONDS - perf_counter()))
            cpu.append(process_time() - busy)
    stop_server(server)
    return {
        "num_envs": 1024,
        "set_up_s": set_up,
        "handles": len(grid._batches),
        "bytes": grid.bytes_per_update,
        "update_ms": 1e3 * median(times),
        "cpu_ms": 1e3 * median(cpu),
        "ratio": _FRAME_SECONDS / median(cpu),
    }


def training_view(seconds: float) -> Figures | None:
    """Go1 in 256 worlds: control steps without and with the page of a training, by turns.

    The page's process stands still in the blocks without it. Blocks take turns in going first. The
    ratio is the median over pairs of blocks; on a machine that does other things, too, its error
    exceeds the page's cost. The processor time of the page, that of serving a client included,
    depends on the load far less.
    """
    from manyworlds.utils.torch import torch_threads
    from manyworlds.viewer.training_view import TrainingView

    env = _go1(_TRAINING_WORLDS)
    if env is None:
        return None
    import torch

    action = torch.zeros(_TRAINING_WORLDS, 12)
    view = TrainingView(env, port=8310)
    pid = view._process.pid
    assert pid is not None

    def block(with_page: bool, steps: int) -> float:
        os.kill(pid, signal.SIGCONT if with_page else signal.SIGSTOP)
        start = perf_counter()
        for _ in range(steps):
            (view if with_page else env).step(action)
        return perf_counter() - start

    ratios, with_page, page_cpu = [], 0.0, 0.0
    try:
        with torch_threads(1), _client(view.url) as client:
            steps = max(int(_BLOCK_SECONDS * 10 / block(True, 10)), 1)
            end = perf_counter() + seconds
            while perf_counter() < end or len(ratios) < 4:
                times = {}
                for shown in (False, True) if len(ratios) % 2 else (True, False):
                    before = _cpu_seconds(pid)
                    times[shown] = block(shown, steps)
                    page_cpu += _cpu_seconds(pid) - before
                with_page += times[True]
                ratios.append(times[False] / times[True])
            os.kill(pid, signal.SIGCONT)
            start = process_time()
            for _ in range(200):
                view._show()
            copy = (process_time() - start) / 200
            client.terminate()
            assert client.stdout is not None
            pictures = len(client.stdout.readlines())
    finally:
        os.kill(pid, signal.SIGCONT)
        view.finish()
    page_share = page_cpu / (with_page * (os.cpu_count() or 1))
    return {
        "num_envs": _TRAINING_WORLDS,
        "num_shown": 64,
        "steps": steps,
        "pairs": len(ratios),
        "pictures_per_s": pictures / with_page,
        "copying_share": 10 * copy,
        "page_cpu_share": page_share,
        "cost_share": 10 * copy + page_share,
        "ratio": median(ratios),
        "ratio_error": 1.25 * stdev(ratios) / len(ratios) ** 0.5,
    }


def _cpu_seconds(pid: int) -> float:
    """Processor time that a process took so far [s], all its threads together; Linux only."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _go1(num_envs: int) -> Any:
    if robots_folder() is None:
        return None
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.tasks import load_env_cfg

    cfg = load_env_cfg("Velocity-Flat-Go1")
    cfg.scene.num_envs = num_envs
    return ManagerBasedRlEnv(cfg, device="cpu")


@contextlib.contextmanager
def _client(url: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", _CLIENT, url], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    if process.stdout.readline().strip() != "connected":
        raise RuntimeError("The client of the page ended.")
    try:
        yield process
    finally:
        process.terminate()
        process.wait()
