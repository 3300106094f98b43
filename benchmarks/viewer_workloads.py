"""What looking at worlds costs: the browser's scene, and the page of a running training."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from statistics import median
from time import perf_counter, process_time, sleep
from typing import Any

from benchmarks.workloads import Figures, in_turns, robots_folder

_BLOCK_SECONDS = 3.0
_FRAME_SECONDS = 1 / 30

# A browser that draws nothing: it takes in all messages.
_CLIENT = """
import sys
from websockets.sync.client import connect
import viser
address = sys.argv[1].replace("http", "ws")
protocol = f"viser-v{viser.__version__}"
with connect(address, subprotocols=[protocol], max_size=None, compression=None) as socket:
    print("connected", flush=True)
    for message in socket:
        pass
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
    """Go1 in 1024 worlds: control steps without and with the page of a training, by turns."""
    from manyworlds.utils.torch import torch_threads
    from manyworlds.viewer.training_view import TrainingView

    env = _go1(1024)
    if env is None:
        return None
    import torch

    action = torch.zeros(1024, 12)
    start = perf_counter()
    env.step(action)
    steps = max(int(_BLOCK_SECONDS / (perf_counter() - start)), 1)
    view = TrainingView(env, port=8310)

    def run(stepped: Any) -> None:
        for _ in range(steps):
            stepped.step(action)

    def copies(count: int = 200) -> float:
        start = process_time()
        for _ in range(count):
            view._show()
        return (process_time() - start) / count

    try:
        with torch_threads(1), page_client(view.url):
            without, with_view = in_turns(lambda: run(env), lambda: run(view), seconds)
            copy = copies()
    finally:
        view.finish()
    return {
        "num_envs": 1024,
        "num_shown": 64,
        "steps": steps,
        "copy_us": 1e6 * copy,
        "copying_share": 10 * copy,
        "ratio": median(without) / median(with_view),
    }


def _go1(num_envs: int) -> Any:
    if robots_folder() is None:
        return None
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.tasks import load_env_cfg

    cfg = load_env_cfg("Velocity-Flat-Go1")
    cfg.scene.num_envs = num_envs
    return ManagerBasedRlEnv(cfg, device="cpu")


@contextlib.contextmanager
def page_client(url: str) -> Iterator[None]:
    """Have a browser that takes in all that a page sends, and draws nothing."""
    """Have a browser that takes in all that a page sends, and draws nothing."""
    process = subprocess.Popen(
        [sys.executable, "-c", _CLIENT, url], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    if process.stdout.readline().strip() != "connected":
        raise RuntimeError("The client of the page ended.")
    try:
        yield
    finally:
        process.terminate()
        process.wait()
