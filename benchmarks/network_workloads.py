"""Workloads of a lab's server: what programs on the network cost the steps, and how long they wait.

The server is a process of its own; clients are processes of their own, too. All share two cores.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from statistics import median
from time import perf_counter, sleep
from typing import Any

import numpy as np

from benchmarks.measuring import Figures, in_turns, robots_folder
from benchmarks.viewer_workloads import page_client

_CORES = 2
_JOINTS = 40
_BLOCK_STEPS = 500
_SETTLE_S = 2.0
_ROUND_TRIPS = 2000
_TURNS = 5
_ANY: dict[str, Any] = {"step_port": 0, "state_port": 0, "control_port": 0, "info_port": 0}

# Clients print a line when they are connected, and a number for each second that has passed.
_WATCHER = """
import sys, time, zmq
peer = zmq.Context().socket(zmq.SUB)
peer.setsockopt(zmq.SUBSCRIBE, sys.argv[2].encode())
peer.connect("tcp://127.0.0.1:" + sys.argv[1])
count, since = 0, time.monotonic()
print("connected", flush=True)
while True:
    peer.recv_multipart()
    count += 1
    if time.monotonic() - since > 1.0:
        print(count, flush=True)
        count, since = 0, time.monotonic()
"""
_DRIVER = """
import sys, time, struct, zmq
peer = zmq.Context().socket(zmq.PUB)
peer.connect("tcp://127.0.0.1:" + sys.argv[1])
topic, ids = sys.argv[2].encode() + b"/control ", range(int(sys.argv[3]))
print("connected", flush=True)
while True:
    pairs = b"".join(struct.pack("<if", i, 0.1 * (time.monotonic() % 1.0)) for i in ids)
    peer.send_multipart([topic, struct.pack("<i", len(ids)) + pairs])
    time.sleep(0.01)
"""
_STEPPER = """
import sys, time, msgpack, zmq
peer = zmq.Context().socket(zmq.REQ)
peer.connect("tcp://127.0.0.1:" + sys.argv[1])
def ask(**fields):
    peer.send(msgpack.packb(fields))
    return msgpack.unpackb(peer.recv())
hello = ask(op="hello")
key, robot = hello["session_id"], hello["articulations"][0]
ask(op="set_mode", mode="direct", session_id=key)
targets = {robot["prefix"]: {"ctrl": [0.1] * len(robot["actuator_types"])}}
times = []
for _ in range(200 + int(sys.argv[2])):
    since = time.perf_counter()
    reply = ask(op="step", per_articulation=targets, session_id=key)
    times.append(time.perf_counter() - since)
assert reply["per_articulation"][robot["prefix"]]["ctrl"] == targets[robot["prefix"]]["ctrl"]
times = times[200:]
print(*times, flush=True)
"""

# As the server of a lab, but nothing is decoded: a request goes on through a local socket.
_BARE_SERVER = """
import socket, sys, zmq
lab = socket.socket(fileno=int(sys.argv[1]))
peer = zmq.Context().socket(zmq.ROUTER)
print(peer.bind_to_random_port("tcp://127.0.0.1"), flush=True)
while True:
    frames = peer.recv_multipart()
    lab.sendall(b"?")
    lab.recv(1)
    peer.send_multipart(frames)
"""
_BARE_STEPPER = """
import sys, time, zmq
peer = zmq.Context().socket(zmq.REQ)
peer.connect("tcp://127.0.0.1:" + sys.argv[1])
times = []
for _ in range(200 + int(sys.argv[2])):
    since = time.perf_counter()
    peer.send(b"?")
    peer.recv()
    times.append(time.perf_counter() - since)
print(*times[200:], flush=True)
"""


def publish_cost(seconds: float) -> Figures | None:
    """Step 40 joints in direct mode: without and with a server and a subscriber to all states.

    The ratio is the time of steps without those with them, whose processes are stopped in the
    blocks without. What publishing takes in the lab's own process is in `publish_share`.
    """
    with _served(_chain_world()) as (lab, hub):
        lab.loop.mode = "direct"
        lab.start()
        with _client(_WATCHER, hub.ports["state"], "") as watcher:
            pids = (hub.process.pid, watcher.pid)

            def run(served: bool) -> None:
                for pid in pids:
                    os.kill(pid, signal.SIGCONT if served else signal.SIGSTOP)
                lab.step(_BLOCK_STEPS)

            without, served = in_turns(lambda: run(False), lambda: run(True), seconds)
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
        own = _publish_seconds(lab)
        return {
            "joints": _JOINTS,
            "step_us": 1e6 * median(without) / _BLOCK_STEPS,
            "served_step_us": 1e6 * median(served) / _BLOCK_STEPS,
            "publish_us": 1e6 * own,
            "publish_share": own / 0.001,
            "ratio": median(without) / median(served),
        }


def round_trip(seconds: float) -> Figures | None:
    """Request single steps of 40 joints over a socket: time beyond that of the step itself.

    A request has the controls of all joints, and its reply the standard state; the step itself is
    `lab.step()` in the lab's own process, in turns with them. `bare` are the times of a round trip
    through the same processes and threads without any work, in turns, too: what this machine needs
    to start each of them.
    """
    with _served(_chain_world()) as (lab, hub), _bare_server() as bare_port:
        lab.loop.mode = "direct"
        lab.start()
        direct, times, bare = [], [], []
        for _ in range(_TURNS):
            for _ in range(_ROUND_TRIPS // _TURNS):
                since = perf_counter()
                lab.step()
                direct.append(perf_counter() - since)
            times += _trips(_STEPPER, hub.ports["step"])
            bare += _trips(_BARE_STEPPER, bare_port)
        beyond = 1e3 * (np.array(times) - median(direct))
        return {
            "step_us": 1e6 * median(direct),
            "p50_ms": float(np.quantile(beyond, 0.5)),
            "p99_ms": float(np.quantile(beyond, 0.99)),
            "worst_ms": float(beyond.max()),
            "bare_p50_ms": 1e3 * float(np.quantile(bare, 0.5)),
            "bare_p99_ms": 1e3 * float(np.quantile(bare, 0.99)),
            "ratio": 1.0 / max(float(np.quantile(beyond, 0.99)), 1e-9),
        }


def _trips(program: str, port: int) -> list[float]:
    """Return the times of the round trips of a client [s]."""
    with _client(program, port, str(_ROUND_TRIPS // _TURNS), wait=False) as client:
        assert client.stdout is not None
        return [float(text) for text in client.stdout.readline().split()]


@contextlib.contextmanager
def _bare_server() -> Iterator[int]:
    """Yield the port of `_BARE_SERVER`, which a thread of this process answers for another one."""
    near, far = socket.socketpair()

    def link() -> None:
        while near.recv(1):
            near.sendall(b"!")

    threading.Thread(target=link, daemon=True).start()
    process = subprocess.Popen(
        [sys.executable, "-c", _BARE_SERVER, str(far.fileno())],
        pass_fds=[far.fileno()],
        stdout=subprocess.PIPE,
        text=True,
    )
    far.close()
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        near.close()


def loaded_real_time(seconds: float) -> Figures | None:
    """Run the G1 at 500 Hz with a driver, three observers, the page, and a 640 x 480 stream."""
    from manyworlds.utils.gl import gl_available

    if robots_folder() is None or gl_available() is not None:
        return None
    from manyworlds.lab.page import LabPage
    from manyworlds.lab.pictures import LabCameraCfg, quat_to_look

    with (
        _served(_g1_world(), options={"timestep": 0.002}) as (lab, hub),
        contextlib.ExitStack() as s,
    ):
        pos = (2.0, -2.0, 1.3)
        look = quat_to_look(pos, (0.0, 0.0, 0.7))
        lab.cameras.add(LabCameraCfg(name="eye", pos=pos, quat=look))
        page = LabPage(lab, port=8330)
        s.callback(page.close)
        page.start()
        lab.start()
        s.enter_context(page_client(page.url))
        robot = "robot"
        controls = len(lab[robot].actuators.names)
        s.enter_context(_client(_DRIVER, hub.ports["control"], robot, str(controls)))
        states = hub.ports["state"]
        watchers = [
            s.enter_context(_client(_WATCHER, states, topic))
            for topic in ("", "state/full", f"{robot}/joint/")
        ]
        camera = s.enter_context(_client(_WATCHER, hub.ports["image"], "image/eye/rgb"))
        ends: list[float] = []
        lab.loop.on_post_step(lambda model, data, moved: ends.append(perf_counter()))
        sleep(2 * _SETTLE_S)
        ends.clear()
        start, since = lab.snapshot.time, perf_counter()
        sleep(6 * seconds)
        stop, elapsed = lab.snapshot.time, perf_counter() - since
        lab.stop()
        full = _rates(watchers[1])
        gaps = np.abs(np.diff(ends) - 0.002)
        return {
            "measured_s": elapsed,
            "states_hz": full,
            "images_hz": _rates(camera),
            "p50_jitter_us": 1e6 * float(np.quantile(gaps, 0.5)),
            "p99_jitter_us": 1e6 * float(np.quantile(gaps, 0.99)),
            "ratio": (stop - start) / elapsed,
        }


def _publish_seconds(lab: Any) -> float:
    """Return the time that a snapshot takes until readers have it [s]."""
    snapshot, publisher, times = lab.snapshot, lab.loop.publisher, []

    def measure(model: Any, data: Any) -> None:
        for _ in range(_ROUND_TRIPS):
            since = perf_counter()
            publisher.publish(snapshot)
            times.append(perf_counter() - since)

    lab.loop.do(measure, edits_model=False)
    return median(times)


def _rates(client: subprocess.Popen[str]) -> float:
    """End a client, and return the median number of messages that it received in a second."""
    client.terminate()
    assert client.stdout is not None
    counts = [int(line) for line in client.stdout.read().split()]
    return float(median(counts[2:] or [0]))


@contextlib.contextmanager
def _client(
    program: str, port: int, *arguments: str, wait: bool = True
) -> Iterator[subprocess.Popen[str]]:
    """Run a client in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(port), *arguments], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        if wait:
            process.stdout.readline()
            sleep(_SETTLE_S / 4)  # subscriptions reach the server
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def _chain_world() -> Any:
    """Return a chain of 40 hinges with motors, at a timestep of 1 ms."""
    import mujoco

    from manyworlds.lab import world_from_spec

    spec = mujoco.MjSpec()
    spec.modelname = "chain"
    spec.option.timestep = 0.001
    body = spec.worldbody
    for index in range(_JOINTS):
        body = body.add_body(pos=[0.05, 0, 0] if index else [0, 0, 2])
        body.add_joint(name=f"joint{index}", axis=[0, 1, 0], damping=0.1)
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.02, 0, 0], contype=0)
        motor = spec.add_actuator(name=f"joint{index}", target=f"joint{index}")
        motor.trntype = mujoco.mjtTrn.mjTRN_JOINT
    return world_from_spec(spec)


def _g1_world() -> Any:
    """Return the G1 on a floor."""
    from manyworlds.lab import world_from_scene
    from manyworlds.tasks import load_env_cfg

    cfg = load_env_cfg("Velocity-Flat-G1", play=True)
    return world_from_scene(cfg.scene, cfg.sim.mujoco)


@contextlib.contextmanager
def _served(world: Any, options: dict[str, Any] | None = None) -> Iterator[tuple[Any, Any]]:
    """Yield a lab and its server, on two cores."""
    from manyworlds.lab import LabCfg, LiveLab
    from manyworlds.lab.server import HubProcess, LabServerCfg

    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(cores)[:_CORES])
    lab = LiveLab(world, LabCfg(options=options or {}))
    try:
        with HubProcess(LabServerCfg(**_ANY)) as hub:
            hub.attach(lab)
            yield lab, hub
    finally:
        lab.stop()
        os.sched_setaffinity(0, cores)
