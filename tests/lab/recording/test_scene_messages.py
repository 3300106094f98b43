"""Messages of recordings for other programs: read back, checked against MuJoCo."""

from __future__ import annotations

from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path

import mujoco
import numpy as np
import pytest
from mcap.reader import make_reader

from manyworlds.lab import LabCfg, LiveLab, RecorderCfg, world_from_file, world_from_spec
from manyworlds.lab.recording.scene_messages import TOPICS
from tests.lab.conftest import ARM
from tests.lab.protobuf_reader import read_message
from tests.lab.scene.test_rebuild import suite_file
from tests.robots import robot_file


def gym_file(name: str) -> Path:
    """Find a model of gymnasium."""
    package = find_spec("gymnasium")
    if package is None or not package.submodule_search_locations:
        pytest.skip("needs gymnasium")
    return Path(package.submodule_search_locations[0]) / "envs/mujoco/assets" / name


def read(path: Path, topics: tuple[str, ...] = tuple(TOPICS)) -> dict[str, list[tuple[int, dict]]]:
    """Times [ns] and messages of topics."""
    messages = defaultdict(list)
    with path.open("rb") as stream:
        for schema, channel, message in make_reader(stream).iter_messages():
            if channel.message_encoding != "protobuf" or channel.topic not in topics:
                continue
            assert schema is not None and schema.name == TOPICS[channel.topic].DESCRIPTOR.full_name
            plain = read_message(schema, message.data)
            messages[channel.topic].append((message.log_time, plain))
    return messages


def lab_of(world, folder: Path, **cfg) -> LiveLab:
    """Lab that waits for steps, and writes into a folder."""
    return LiveLab(world, LabCfg(mode="direct", recorder=RecorderCfg(folder=folder, **cfg)))


@pytest.mark.parametrize("model", ["unitree_go1/go1.xml", "walker", "ant.xml"])
def test_joints_and_transforms_are_mujocos(model, tmp_path):
    """Record foreign models: angles and poses are those of MuJoCo, at 30 Hz of the recording."""
    finders = {"unitree_go1/go1.xml": robot_file, "walker": suite_file, "ant.xml": gym_file}
    with lab_of(world_from_file(finders[model](model)), tmp_path) as lab:
        timestep = lab.model.opt.timestep
        lab.recorder.start("live.mcap")
        lab.step(round(0.5 / timestep))
        lab.recorder.stop()
        live, compiled = lab.recorder.load("live.mcap"), lab.model
        lab.recorder.save("saved.mcap", "Live")
    data = mujoco.MjData(compiled)
    messages = read(tmp_path / "live.mcap", ("/tf", "/joint_states"))
    assert read(tmp_path / "saved.mcap", ("/tf", "/joint_states")) == messages
    assert len(messages["/tf"]) == len(messages["/joint_states"])
    assert len(messages["/tf"]) in (15, 16)
    times = np.round(live.times * 1e9).astype(int).tolist()
    for (when, joints), (_, tf) in zip(messages["/joint_states"], messages["/tf"], strict=True):
        row = times.index(when)
        stamps = {tuple(item["timestamp"].values()) for item in (joints, *tf["transforms"])}
        assert stamps == {divmod(when, 10**9)}
        assert len(joints["joints"]) == (compiled.jnt_type >= 2).sum() > 5  # slides and hinges
        for joint in joints["joints"]:
            assert joint["position"] == live.columns("qpos", joint["name"])[row, 0]
            assert joint["velocity"] == live.columns("qvel", joint["name"])[row, 0]
        mujoco.mj_setState(
            compiled,
            data,
            np.ascontiguousarray(live.values[row]),
            mujoco.mjtState.mjSTATE_INTEGRATION,
        )
        mujoco.mj_kinematics(compiled, data)
        assert len(tf["transforms"]) == compiled.nbody - 1
        for body, item in enumerate(tf["transforms"], 1):
            assert item["parent_frame_id"] == "world"
            assert list(item["translation"].values()) == data.xpos[body].tolist()
            x, y, z, w = item["rotation"].values()
            assert [w, x, y, z] == data.xquat[body].tolist()


@pytest.mark.slow
def test_shapes_are_those_of_the_geoms(tmp_path):
    """Compare shapes of primitives and meshes with the model's geoms; capsules have round ends."""
    with lab_of(world_from_spec(mujoco.MjSpec.from_string(ARM)), tmp_path) as lab:
        lab.recorder.start("a.mcap")
        lab.step(2)
        assert lab.rebuild(world_from_file(robot_file("unitree_go1/go1.xml")))
        lab.step(100)
        lab.recorder.stop()
        model = lab.model
    (_, arm), (_, go1) = read(tmp_path / "a.mcap", ("/scene",))["/scene"]
    entities = {entity["id"]: entity for entity in arm["entities"]}
    assert set(entities) == {"world", "upper", "lower", "ball", "post"} and not arm["deletions"]
    assert entities["ball"]["spheres"][0]["size"] == {"x": 0.1, "y": 0.1, "z": 0.1}
    (limb,) = entities["upper"]["cylinders"]
    assert limb["size"] == pytest.approx({"x": 0.06, "y": 0.06, "z": 0.3})
    ends = sorted(end["pose"]["position"]["x"] for end in entities["upper"]["spheres"])
    assert ends == pytest.approx([0.0, 0.3]) and all(e["frame_locked"] for e in arm["entities"])
    assert [item["type"] for item in go1["deletions"]] == [1]
    count = 0
    for entity in go1["entities"]:
        for mesh in entity["triangles"]:
            count += 1
            points = np.array([[p["x"], p["y"], p["z"]] for p in mesh["points"]])
            same = [i for i in range(model.nmesh) if len(_vertices(model, i)) == len(points)]
            far = [np.abs(_vertices(model, i) - points).max() for i in same]
            assert min(far) <= 0.51e-5 and max(mesh["indices"]) < len(points)
    shown = (model.geom_group <= 2) & (model.geom_type == mujoco.mjtGeom.mjGEOM_MESH)
    assert count == shown.sum() > 0


def _vertices(model: mujoco.MjModel, mesh: int) -> np.ndarray:
    start = model.mesh_vertadr[mesh]
    return model.mesh_vert[start : start + model.mesh_vertnum[mesh]]


def test_they_can_be_left_out(tmp_path):
    """Record without them: the file has the exact states only."""
    with lab_of(world_from_spec(mujoco.MjSpec.from_string(ARM)), tmp_path, scene_rate=0.0) as lab:
        lab.recorder.start("a.mcap")
        lab.step(50)
        lab.recorder.stop()
        assert not read(tmp_path / "a.mcap") and len(lab.recorder.load("a.mcap")) == 50
