"""Worlds of all kinds, as old clients find them: robots of others, many robots, no names."""

from __future__ import annotations

from pathlib import Path

import mujoco
import pytest

from manyworlds.lab import (
    LabCfg,
    LiveLab,
    RecorderCfg,
    world_from_file,
    world_from_scene,
    world_from_spec,
)
from manyworlds.lab.server import Dispatcher
from manyworlds.scene import SceneCfg
from tests.lab.conftest import ARM
from tests.lab.server.client import Client
from tests.lab.server.conftest import GO, entity
from tests.plugins.urlab.test_conformance import slices_of
from tests.robots import robot_file


@pytest.mark.slow
@pytest.mark.parametrize("name", ["unitree_go1/go1.xml", "unitree_g1/g1.xml", "i2rt_yam/yam.xml"])
def test_robots(name, tmp_path):
    """Serve third-party robots: their models load, and old clients find their joints."""
    cfg = LabCfg(mode="direct", start_owner="net", recorder=RecorderCfg(folder=tmp_path))
    with LiveLab(world_from_file(robot_file(name), plane=True), cfg) as lab:
        server = Dispatcher(lab)
        client = Client(lambda request: server.handle(request, "a"))
        client.hello(include_assets=True)
        (robot,) = client.world["articulations"]
        model, prefix = client.model(), robot["prefix"]
        qpos, qvel, ctrl = slices_of(model, prefix)
        assert (len(qpos), len(qvel), len(ctrl)) == (model.nq, model.nv, model.nu)
        reply = client.ask("step", n_steps=5, per_articulation={prefix: {"ctrl": [0.1] * model.nu}})
        state = reply["per_articulation"][prefix]
        assert state["qpos"] == lab.snapshot.qpos.tolist() and state["ctrl"] == [0.1] * model.nu
        compiled = mujoco.MjModel.from_xml_string(
            client.world["mjcf_compiled"], client.world["vfs_assets"]
        )
        assert compiled.nq == model.nq and compiled.joint(0).name == model.joint(0).name


def test_unnamed_elements_have_names_for_clients():
    """Serve a world with a joint that has no name: clients see all positions."""
    with LiveLab(world_from_spec(mujoco.MjSpec.from_string(ARM)), LabCfg(mode="direct")) as lab:
        server = Dispatcher(lab)
        client = Client(lambda request: server.handle(request, "a"))
        client.hello()
        model = client.model()
        assert model.joint(2).name == "arm_jnt_2"
        assert mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, "arm_jnt_2") == 2
        assert len(slices_of(model, "arm")[0]) == model.nq
        qpos = client.ask("reset", per_articulation_qpos={"arm": {"elbow": 0.2}})
        assert qpos["per_articulation"]["arm"]["qpos"][1] == 0.2
        place = client.ask("set_mocap_pose", body="arm_post", pos=[1, 2, 3])
        assert place["body"] == "arm_post" and lab.snapshot.mocap_pos[0].tolist() == [1, 2, 3]
        client.ask("set_mocap_pose", body="arm_post", quat=[0, 1, 0, 0])
        read = client.ask("read_mocap_pose", body="arm_post")
        assert (read["pos"], read["quat"]) == ([1, 2, 3], [0, 1, 0, 0])


def test_a_hundred_robots():
    """Serve a hundred robots: replies of any size come whole."""
    cfg = SceneCfg(entities={f"r{i:02d}x": entity(GO, (i, 0.0, 0.5)) for i in range(100)})
    with LiveLab(world_from_scene(cfg), LabCfg(mode="direct")) as lab:
        server = Dispatcher(lab)
        client = Client(lambda request: server.handle(request, "a"))
        assert len(client.hello()["articulations"]) == 100
        state = client.ask("step", observations="full")["per_articulation"]
        qpos = [value for robot in state.values() for value in robot["qpos"]]
        assert qpos == lab.snapshot.qpos.tolist()


@pytest.mark.parametrize(
    ("package", "file"),
    [
        ("dm_control", "suite/humanoid.xml"),
        ("dm_control", "suite/manipulator.xml"),
        ("gymnasium", "envs/mujoco/assets/ant.xml"),
    ],
)
def test_models_of_other_packages(package, file):
    """Greet worlds of one file: binary model and XML both load, with the robot in all names."""
    module = pytest.importorskip(package, reason="its models are the input")
    path = Path(module.__file__).parent / file
    with LiveLab(world_from_file(path), LabCfg(mode="direct")) as lab:
        server = Dispatcher(lab)
        client = Client(lambda request: server.handle(request, "a"))
        world = client.hello(include_assets=True)
        compiled = mujoco.MjModel.from_xml_string(world["mjcf_compiled"], world["vfs_assets"])
        model = client.model()
        assert compiled.nq == model.nq == lab.model.nq and world["mjcf_error"] == ""
        names = [model.joint(i).name for i in range(model.njnt)]
        (robot,) = lab.robots
        assert " " not in robot
        assert names == [f"{robot}_{lab.model.joint(i).name}" for i in range(model.njnt)]
