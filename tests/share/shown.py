"""Share folders in a real browser: a static server, and small worlds with graphs of their own."""

from __future__ import annotations

import contextlib
import functools
import gzip
import json
import shutil
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

import manyworlds
from manyworlds.sensor.raycast_sensor import RaysDescription

PAGE = Path(manyworlds.__file__).parent / "share" / "page"

WORLD = """
<mujoco>
  <option timestep="0.005"/>
  <asset>
    <texture name="checker" type="2d" builtin="checker" rgb1="0.8 0.8 0.8" rgb2="0.7 0.7 0.7"
      width="64" height="64"/>
    <material name="floor" texture="checker" texuniform="true"/>
    <hfield name="hill" nrow="3" ncol="4" size="2 1 0.3 0.1" elevation="0 1 0 0 0 2 1 0 0 0 1 0"/>
    <mesh name="wedge" file="wedge.obj"/>
  </asset>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1" material="floor"/>
    <geom name="hill" type="hfield" hfield="hill" pos="0 3 0"/>
    <body name="block" pos="0 0 0.5">
      <freejoint name="block"/>
      <geom name="block" type="box" size="0.2 0.15 0.1" mass="2" rgba="0.9 0.1 0.1 1"/>
      <site name="nose" pos="0.2 0 0" quat="0.9 0.1 0.3 0.2"/>
      <body name="arm" pos="0 0 0.1">
        <joint name="arm" axis="0 1 0" damping="0.1"/>
        <geom type="capsule" size="0.03 0.15" pos="0 0 0.15" mass="0.3"/>
        <geom type="mesh" mesh="wedge" pos="0 0 0.4" mass="0.1"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="arm" joint="arm" kp="5" ctrlrange="-1 1"/>
    <general name="a" joint="arm" gainprm="0"/> <general name="b" joint="arm" gainprm="0"/>
    <general name="c" joint="arm" gainprm="0"/> <general name="d" joint="arm" gainprm="0"/>
    <general name="e" joint="arm" gainprm="0"/>
  </actuator>
  <keyframe>
    <key name="init_state" qpos="0 0 0.3 0.96 0.1 0.2 0.1 0.4" qvel="0.3 -0.2 0.1 0.5 1 -0.7 0.2"/>
  </keyframe>
</mujoco>
"""
"""A block with an arm, and actuators without a force, which show what a graph read."""

CLOTH = """
<flexcomp name="cloth" type="grid" dim="2" count="4 4 1" spacing="0.15 0.15 1" pos="0.7 -0.3 0.6"
  mass="0.1" radius="0.01" rgba="0.1 0.2 0.9 1"/>
"""

WEDGE = "v 0 0 0\nv 0.1 0 0\nv 0 0.1 0\nv 0 0 0.1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"

RAYS: RaysDescription = {
    "frames": [{"type": "site", "name": "nose", "exclude": "block"}],
    "offsets": [[0.0, 0.0, 0.0], [0.1, 0.05, 0.0], [0.0, 0.0, 0.0]],
    "directions": [[0.0, 0.0, -1.0], [0.8648, 0.4993, -0.05], [0.0, 0.0, 1.0]],
    "alignment": "yaw",
    "max_distance": 5.0,
    "geom_groups": None,
}


MOTION = np.zeros((4, 15))
"""Poses of the small world: the block rises and turns its arm, shape [4, nq + nv]."""
MOTION[:, 2] = 1.0 + 0.1 * np.arange(4)
MOTION[:, 3] = 1.0
MOTION[:, 7] = 0.2 * np.arange(4)
MOTION[:, 8] = 0.5


@contextlib.contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder as any static host does; yield its address."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(folder))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def write_small_folder(folder: Path, vendored: Path) -> dict[str, Any]:
    """Write a folder with two small worlds and three graphs; return its world.json."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    def graph(name: str, nodes: list, inputs: list, outputs: list, constants: dict) -> None:
        initializers = [numpy_helper.from_array(np.array(v), k) for k, v in constants.items()]
        taken = [helper.make_tensor_value_info(*item) for item in inputs]
        given = [helper.make_tensor_value_info(*item) for item in outputs]
        model = helper.make_model(
            helper.make_graph(nodes, name, taken, given, initializers),
            opset_imports=[helper.make_opsetid("", 18)],
            ir_version=9,
        )
        onnx.save(model, str(folder / f"policies/{name}.onnx"))

    shutil.copytree(PAGE, folder / "page", ignore=shutil.ignore_patterns("index.html"))
    shutil.copy(PAGE / "index.html", folder)
    (folder / "vendor").symlink_to(vendored)
    (folder / "policies").mkdir()
    worlds = []
    heavy = WORLD.replace('mass="2"', 'mass="4"').replace("</worldbody>", f"{CLOTH}</worldbody>")
    for name, xml in (("block", WORLD), ("heavy block", heavy)):
        path = folder / "worlds" / name.replace(" ", "_")
        path.mkdir(parents=True)
        (path / "scene.xml").write_text(xml)
        (path / "wedge.obj").write_text(WEDGE)
        model = f"worlds/{path.name}/scene.xml"
        worlds.append(
            {"name": name, "model": model, "files": ["wedge.obj"], "keyframe": "init_state"}
        )
    recorded = folder / "worlds" / "block" / "recording.f32.gz"
    recorded.write_bytes(gzip.compress(MOTION.astype("<f4").tobytes()))
    motion = {"file": "worlds/block/recording.f32.gz", "period": 0.02, "columns": 15}
    worlds.append(worlds[0] | {"name": "recorded block", "recording": motion})
    double, integer = TensorProto.DOUBLE, TensorProto.INT64
    node = helper.make_node
    graph(  # ctrl[0] = command + 0.01 * number of calls before
        "count",
        [
            node("Cast", ["count"], ["number"], to=double),
            node("Mul", ["number", "hundredth"], ["part"]),
            node("Cast", ["command"], ["wanted"], to=double),
            node("Add", ["part", "wanted"], ["ctrl"]),
            node("Add", ["count", "one"], ["next"]),
        ],
        [
            ("count", integer, [1, 1]),
            ("command", TensorProto.FLOAT, [1, 1]),
            ("goal", TensorProto.FLOAT, [1, 2]),
        ],
        [("ctrl", double, [1, 1]), ("next", integer, [1, 1])],
        {"hundredth": [[0.01]], "one": np.array([[1]])},
    )
    graph(  # ctrl[0] = number of calls since the control period began, in tenths
        "substep",
        [
            node("Add", ["since", "tenth"], ["more"]),
            node("Cast", ["begin"], ["begins"], to=TensorProto.BOOL),
            node("Where", ["begins", "zero", "more"], ["ctrl"]),
            node("Identity", ["ctrl"], ["next"]),
        ],
        [("since", double, [1, 1]), ("begin", TensorProto.FLOAT, [1, 1])],
        [("ctrl", double, [1, 1]), ("next", double, [1, 1])],
        {"tenth": [[0.1]], "zero": [[0.0]]},
    )
    graph(  # ctrl = (velocity's 3 last, distances)
        "senses",
        [
            node("Gather", ["velocity", "linear"], ["v"], axis=1),
            node("Concat", ["v", "distances"], ["ctrl"], axis=1),
        ],
        [("velocity", double, [1, 6]), ("distances", double, [1, 3])],
        [("ctrl", double, [1, 6])],
        {"linear": np.array([3, 4, 5])},
    )
    ctrl = {"name": "ctrl", "kind": "data", "field": "ctrl"}
    base = {"world": None, "timestep": 0.005, "decimation": 4, "calls": "control"}
    memory = {"kind": "memory", "shape": [1, 1]}
    rays = {"name": "distances", "kind": "rays", "sensor": "scan", "rays": RAYS}
    velocity = {"kind": "velocity", "object": "site", "id": "nose", "frame": "local"}
    description = {
        "version": 1,
        "title": "A block",
        "task": "Block",
        "card": {
            "trained": "5 min on 2 cores",
            "iterations": 30,
            "evaluation": {"success": 0.9},
            "command": "manyworlds share runs/block",
        },
        "mujoco": {"trained_with": "4.0.0", "wasm": "3.14.0"},
        "worlds": worlds,
        "policies": [
            base
            | {
                "name": "count",
                "file": "policies/count.onnx",
                "inputs": [
                    memory | {"name": "count", "start": [[2]], "dtype": "int64"},
                    {"name": "command", "kind": "command", "command": "arm", "size": 1},
                    {"name": "goal", "kind": "command", "command": "goal", "size": 2},
                ],
                "outputs": [
                    ctrl | {"indices": [0]},
                    {"name": "next", "kind": "memory", "input": "count"},
                ],
            },
            base
            | {
                "name": "substep",
                "file": "policies/substep.onnx",
                "calls": "substep",
                "inputs": [
                    memory | {"name": "since", "start": None, "dtype": "float64"},
                    {"name": "begin", "kind": "begin"},
                ],
                "outputs": [
                    ctrl | {"indices": [0]},
                    {"name": "next", "kind": "memory", "input": "since"},
                ],
            },
            base
            | {
                "name": "senses",
                "file": "policies/senses.onnx",
                "inputs": [velocity | {"name": "velocity"}, rays],
                "outputs": [ctrl | {"indices": None}],
            },
        ],
        "commands": [
            {
                "name": "arm",
                "labels": ["angle [rad]"],
                "low": [-1.0],
                "high": [0.5],
                "start": [0.25],
                "keys": {"KeyA": [0, 1], "KeyD": [0, -1]},
                "kind": "numbers",
            },
            {
                "name": "goal",
                "labels": ["x [m]", "y [m]"],
                "low": [-2.0, -2.0],
                "high": [2.0, 2.0],
                "start": [-0.6, 0.2],
                "keys": None,
                "kind": "numbers",
            },
        ],
        "randomization": [
            {
                "label": "mass",
                "field": "body_mass",
                "ids": [1, 2],
                "operation": "scale",
                "axes": None,
                "low": 2.0,
                "high": 3.0,
                "distribution": "uniform",
            }
        ],
        "reset": {"keyframe": "init_state", "ranges": []},
        "camera": {"lookat": [0, 0, 0], "distance": 2, "azimuth": 120, "elevation": -20},
        "terminations": [],
    }
    description["camera"]["track_body"] = "block"
    (folder / "world.json").write_text(json.dumps(description))
    return description
