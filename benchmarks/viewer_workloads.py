"""Workloads of viewers: the browser's scene, and the page of a running training."""

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

from benchmarks.measuring import Figures, robots_folder

_BLOCK_SECONDS = 2.0
_TRAINING_WORLDS = 256
_FRAME_SECONDS = 1 / 30

# A client that draws nothing: it sends a camera, since viser counts only such clients, reads all
# messages, and prints a line for each that is as large as poses are.
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
    """1024 Go1 worlds on a page: CPU time of this process for one frame, and bytes sent."""
    from manyworlds.viewer.browser.server import new_server, page_url, stop_server
    from manyworlds.viewer.browser.world_grid import WorldGrid

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
    with page_client(page_url(server)):
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
    """Go1 in 256 worlds: share of the cores that the page of a training takes, with a client.

    Control steps run without and with the page in turn; its process is suspended in the blocks
    without it. The ratio is the share of the time of all cores that the page's process and the
    copies of training leave. The median of the ratios of wall time measures the same, but its error
    on a machine with other load is many times the cost.
    """
    from manyworlds.utils.devices import torch_threads
    from manyworlds.viewer.training_view import TrainingView

    env = _go1(_TRAINING_WORLDS)
    if env is None:
        return None
    import torch

    action = torch.zeros(_TRAINING_WORLDS, 12)
    view = TrainingView(env, port=8310)
    pid = view._process.pid
    assert pid is not None
    page = 0.0

    def block(with_page: bool, steps: int) -> float:
        nonlocal page
        os.kill(pid, signal.SIGCONT if with_page else signal.SIGSTOP)
        env.observers = [view] if with_page else []
        start, busy = perf_counter(), cpu_seconds(pid)
        for _ in range(steps):
            env.step(action)
        page += cpu_seconds(pid) - busy
        return perf_counter() - start

    pairs: list[dict[bool, float]] = []
    try:
        with torch_threads(1), page_client(view.url) as client:
            steps = max(int(_BLOCK_SECONDS * 10 / block(True, 10)), 1)
            page, end = 0.0, perf_counter() + seconds
            while perf_counter() < end or len(pairs) < 4:
                order = (False, True) if len(pairs) % 2 else (True, False)
                pairs.append({shown: block(shown, steps) for shown in order})
            os.kill(pid, signal.SIGCONT)
            copying = _copying_share(view)
            client.terminate()
            assert client.stdout is not None
            pictures = len(client.stdout.readlines())
    finally:
        os.kill(pid, signal.SIGCONT)
        view.finish()
    shown_for = sum(pair[True] for pair in pairs)
    ratios = [pair[False] / pair[True] for pair in pairs]
    page_share = page / (shown_for * (os.cpu_count() or 1))
    return {
        **{"num_envs": _TRAINING_WORLDS, "num_shown": 64, "steps": steps, "pairs": len(pairs)},
        **{"pictures": pictures, "shown_s": shown_for},
        **{"copying_share": copying, "page_cpu_share": page_share},
        "time_ratio": median(ratios),
        # The standard error of the median of normally distributed values.
        "time_ratio_error": 1.25 * stdev(ratios) / len(ratios) ** 0.5,
        "ratio": 1.0 - page_share - copying,
    }


def _copying_share(view: Any) -> float:
    """Return the share of the time that training copies states, ten times per second."""
    start = process_time()
    for _ in range(200):
        view._show()
    return 10 * (process_time() - start) / 200


def cpu_seconds(pid: int) -> float:
    """Return the processor time of all threads of a process [s]; Linux only."""
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
def page_client(url: str) -> Iterator[subprocess.Popen[str]]:
    """Run a client that reads all messages of a page, and draws nothing."""
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
