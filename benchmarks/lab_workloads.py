"""Workloads of the live lab: real time, and the cost of a page for stepping."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter, process_time, sleep
from typing import Any

import numpy as np

from benchmarks.measuring import Figures, in_turns, robots_folder
from benchmarks.viewer_workloads import page_client

_CORES = 2
_TIMESTEP = 0.002
_BLOCK_STEPS = 1000
_SETTLE_S = 2.0
_TURNS = 5


def real_time(seconds: float) -> Figures | None:
    """Run the G1 at 500 Hz with a page and a client for six times the time: real time, jitter."""
    with _lab() as (lab, page):
        if lab is None:
            return None
        ends: list[float] = []
        lab.loop.on_post_step(lambda model, data, moved: ends.append(perf_counter()))
        page.start()
        lab.start()
        with page_client(page.url):
            sleep(_SETTLE_S)
            ends.clear()
            start, since, busy = lab.snapshot.time, perf_counter(), process_time()
            sleep(6 * seconds)
            stop, elapsed, busy = lab.snapshot.time, perf_counter() - since, process_time() - busy
            lab.stop()
    jitter = np.abs(np.diff(ends) - _TIMESTEP)
    return {
        "measured_s": elapsed,
        "p50_jitter_us": 1e6 * float(np.quantile(jitter, 0.5)),
        "p99_jitter_us": 1e6 * float(np.quantile(jitter, 0.99)),
        "worst_jitter_us": 1e6 * float(jitter.max()),
        "cpu_share": busy / elapsed,
        "ratio": (stop - start) / elapsed,
    }


def direct_steps(seconds: float) -> Figures | None:
    """Run the G1 in direct mode: a thousand steps without / with a page and a client."""
    with _lab() as (lab, page):
        if lab is None:
            return None
        lab.loop.mode = "direct"
        page.start()
        lab.start()

        def run(looked_at: bool) -> None:
            # A page whose process is stopped takes nothing.
            os.kill(page.pid, signal.SIGCONT if looked_at else signal.SIGSTOP)
            lab.reset()
            lab.step(_BLOCK_STEPS)

        with page_client(page.url):
            sleep(_SETTLE_S)
            without, with_page = in_turns(lambda: run(False), lambda: run(True), seconds)
            os.kill(page.pid, signal.SIGCONT)
        lab.stop()
    return {
        "steps": _BLOCK_STEPS,
        "step_us": 1e6 * median(without) / _BLOCK_STEPS,
        "page_step_us": 1e6 * median(with_page) / _BLOCK_STEPS,
        "ratio": median(without) / median(with_page),
    }


def camera_frames(seconds: float) -> Figures | None:
    """Draw the G1 at 640 x 480: time of colors and of depth, and jitter without / with a stream."""
    from manyworlds.utils.gl import gl_available

    if gl_available() is not None:
        return None
    with _lab() as (lab, _):
        if lab is None:
            return None
        from manyworlds.lab.pictures import LabCameraCfg, quat_to_look

        pos = (2.0, -2.0, 1.3)
        look = quat_to_look(pos, (0.0, 0.0, 0.7))
        eye = lab.cameras.add(LabCameraCfg(name="eye", pos=pos, quat=look))
        colors, depth = in_turns(eye.render, lambda: eye.render("depth"), seconds)
        ends: list[float] = []
        lab.loop.on_post_step(lambda model, data, moved: ends.append(perf_counter()))
        lab.start()
        sleep(_SETTLE_S)
        alone, _ = _jitter(ends, 3 * seconds)
        with eye.subscribe() as stream:
            stream.get()
            before = stream.num_images
            beside, elapsed = _jitter(ends, 3 * seconds)
            rate = (stream.num_images - before) / elapsed
        lab.stop()
    return {
        "rgb_ms": 1e3 * median(colors),
        "depth_ms": 1e3 * median(depth),
        "stream_hz": rate,
        "p50_jitter_us": 1e6 * float(np.quantile(beside, 0.5)),
        "p99_jitter_us": 1e6 * float(np.quantile(beside, 0.99)),
        "p99_jitter_alone_us": 1e6 * float(np.quantile(alone, 0.99)),
        "ratio": _TIMESTEP * len(beside) / elapsed,
    }


def image_recording(seconds: float) -> Figures | None:
    """Record the G1 at 500 Hz to a file, in turns without / with 640 x 480 images: jitter."""
    from manyworlds.utils.gl import gl_available

    if gl_available() is not None:
        return None
    with tempfile.TemporaryDirectory() as folder, _lab() as (lab, _):
        if lab is None:
            return None
        from manyworlds.lab.pictures import LabCameraCfg, quat_to_look

        pos = (2.0, -2.0, 1.3)
        look = quat_to_look(pos, (0.0, 0.0, 0.7))
        lab.cameras.add(LabCameraCfg(name="eye", pos=pos, quat=look))
        lab.recorder.folder = Path(folder)
        ends: list[float] = []
        lab.loop.on_post_step(lambda model, data, moved: ends.append(perf_counter()))
        lab.start()
        jitter: dict[bool, list[np.ndarray]] = {False: [], True: []}
        images, elapsed = 0, 0.0
        for turn in range(2 * _TURNS):
            drawn = turn % 2 == 1
            lab.recorder.start(f"{turn}.mcap", cameras=["eye"] if drawn else [])
            sleep(_SETTLE_S)
            before = lab.recorder.images["eye"]["images"] if drawn else 0
            found, took = _jitter(ends, 3 * seconds / _TURNS)
            jitter[drawn].append(found)
            if drawn:
                images += lab.recorder.images["eye"]["images"] - before
                elapsed += took
            lab.recorder.stop()
        lab.stop()
    beside, alone = (np.concatenate(jitter[drawn]) for drawn in (True, False))
    return {
        "turns": _TURNS,
        "images_hz": images / elapsed,
        "p50_jitter_us": 1e6 * float(np.quantile(beside, 0.5)),
        "p99_jitter_us": 1e6 * float(np.quantile(beside, 0.99)),
        "p50_jitter_alone_us": 1e6 * float(np.quantile(alone, 0.5)),
        "p99_jitter_alone_us": 1e6 * float(np.quantile(alone, 0.99)),
        "ratio": _TIMESTEP * len(beside) / elapsed,
    }


def _jitter(ends: list[float], seconds: float) -> tuple[np.ndarray, float]:
    """Collect the ends of steps; return their deviations from the timestep and the time [s]."""
    ends.clear()
    since = perf_counter()
    sleep(seconds)
    gaps, elapsed = np.diff(ends), perf_counter() - since
    return np.abs(gaps - _TIMESTEP), elapsed


@contextlib.contextmanager
def _lab() -> Iterator[tuple[Any, Any]]:
    """Yield the G1 on a floor and its page, on two cores; None without the third-party robots."""
    if robots_folder() is None:
        yield None, None
        return
    from manyworlds.lab import Controller, LabCfg, LiveLab, world_from_scene
    from manyworlds.lab.page import LabPage
    from manyworlds.tasks import load_env_cfg

    class Sway(Controller):
        """Keeps all joints moving, so that each frame is new."""

        def compute(self, model: Any, data: Any, target: np.ndarray) -> np.ndarray:
            return target + 0.2 * np.sin(6.0 * data.time)

    cfg = load_env_cfg("Velocity-Flat-G1", play=True)
    world = world_from_scene(cfg.scene, cfg.sim.mujoco)
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(cores)[:_CORES])
    lab = LiveLab(world, LabCfg(options={"timestep": _TIMESTEP}))
    lab["robot"].controller = Sway()
    page = LabPage(lab, port=8320)
    try:
        yield lab, page
    finally:
        page.close()
        lab.stop()
        os.sched_setaffinity(0, cores)
