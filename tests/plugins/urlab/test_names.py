"""Worlds with any names: only operations of URLab need names that begin by the robot's."""

from __future__ import annotations

from collections import Counter

import mujoco
import numpy as np
import pytest
import zmq

from manyworlds.lab import LabCfg, LiveLab, World, world_from_scene
from manyworlds.lab.client import connect
from manyworlds.lab.server import Dispatcher, LabHub, LabServerCfg
from manyworlds.plugins.ros2.world import RosWorld
from manyworlds.plugins.urlab.fast_path.reader import FastPathReader
from manyworlds.scene import SceneCfg
from tests.lab.server.client import Client, ReplyError
from tests.lab.server.conftest import BOX, GO, add_floor, entity
from tests.lab.server.waiting import ANY, until

CROSSING = GO.replace('joint name="hip"', 'joint name="1_hip"').replace(
    'joint="hip"', 'joint="1_hip"'
)
"""A joint that has the name `go_1_hip` for clients, as the joint `hip` of `go_1` has."""
SLASHES = GO.replace(
    '<gyro name="gyro" site="imu"/>',
    '<gyro name="a/b" site="imu"/><accelerometer name="a_b" site="imu"/>',
)
"""Two sensors that both have the name `a_b` if `/` becomes `_`."""
UNNAMED = """
<mujoco model="go"><worldbody><body pos="0 0 .5">
  <freejoint/><geom type="box" size=".2 .1 .05"/><site name="imu"/>
  <body pos=".1 0 0"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -.2" size=".02"/>
    <body><joint name="knee"/><geom size=".02"/></body>
  </body>
</body></worldbody>
<actuator><motor joint="knee"/></actuator><sensor><gyro site="imu"/></sensor></mujoco>
"""


WORLDS: dict[str, dict[str, str]] = {
    "a duplicate": {"go": GO, "go_1": GO},
    "go and go_2": {"go_2": GO, "go": GO},
    "elements of one name": {"go": CROSSING, "go_1": GO},
    "a prop": {"go": GO, "go_box": BOX},
    "props": {"box": BOX, "box_1": BOX, "go": GO},
    "slashes": {"go": SLASHES, "a/b": SLASHES},
    "spaces and letters": {"a b": GO, "é": GO, "机器人": GO},
    "signs": {"a&b": GO, "x<y>": GO, "\\1": GO, "it's": GO},
    "words of the protocol": {"state": GO, "scene": GO, "world": GO, "net": GO, "image": GO},
    "no names": {"go": UNNAMED, "go2": UNNAMED},
}
REFUSED = {
    "a duplicate": "cannot tell 'go' and 'go_1' apart, because 'go_' begins both",
    "go and go_2": "cannot tell 'go' and 'go_2' apart, because 'go_' begins both",
    "elements of one name": "cannot tell 'go' and 'go_1' apart, because 'go_' begins both",
    "a prop": "cannot tell 'go' and 'go_box' apart, because 'go_' begins both",
}
"""Worlds whose model URLab's clients cannot read, and the reason."""


def build(name: str) -> World:
    """Build a world by its name."""
    robots = WORLDS[name].items()
    cfg = SceneCfg(
        entities={robot: entity(xml, (0.0, i, 0.5)) for i, (robot, xml) in enumerate(robots)}
    )
    cfg.spec_fn = add_floor
    return world_from_scene(cfg)


@pytest.fixture(params=WORLDS)
def lab(request):
    """A lab of each of these worlds, in direct mode."""
    with LiveLab(build(request.param), LabCfg(mode="direct", start_owner="net")) as lab:
        yield lab


@pytest.fixture
def hub(lab):
    """A hub that serves it."""
    with LabHub(LabServerCfg(**ANY)) as hub:
        hub.attach(lab)
        until(hub.is_open, "the ports are not open")
        yield hub


def robots_of(lab: LiveLab, kind: str) -> dict[str, list[int]]:
    """Return the ids of a kind of each robot, by the prefixes of the lab and MuJoCo alone."""
    model = lab.model
    count = {"joint": model.njnt, "sensor": model.nsensor}[kind]
    found: dict[str, list[int]] = {robot: [] for robot in lab.robots}
    for index in range(count):
        name = getattr(model, kind)(index).name
        if kind == "sensor" and not name:
            name = model.site(model.sensor_objid[index]).name
        for robot, prefix in lab.robots.items():
            if name.startswith(prefix):
                found[robot].append(index)
    return found


def test_our_client_works_in_any_world(lab, hub):
    """Connect, drive each robot, read its state, follow pushed states: all is the lab's."""
    with connect(f"tcp://127.0.0.1:{hub.ports['step']}") as client:
        assert client.is_driver and client.robots == lab.robots
        for name in lab.robots:
            robot = client[name]
            if robot.actuators:
                robot.set_targets(dict.fromkeys(robot.actuators, 0.5))
            assert robot.joints == tuple(
                lab.model.joint(i).name.removeprefix(robot.prefix)
                for i in robots_of(lab, "joint")[name]
                if lab.model.joint(i).name
            )
        assert client.step(5)["step"] == 5
        assert np.array_equal(client.data.qpos, lab.snapshot.qpos)
        assert client.data.ctrl.tolist() == [0.5] * lab.model.nu
        states = client.states(timeout=20.0)
        assert next(states).step == 5
        client.step()
        assert next(states).step == 6
        assert client.model.names == lab.model.names


def test_steps_of_urlab_are_told_by_robot(lab):
    """Step by the operation of URLab: positions and sensors of each robot are its own, all."""
    server = Dispatcher(lab)
    client = Client(lambda request: server.handle(request, "a"), "json")
    client.hello(include_model=False)
    reply = client.ask("step", n_steps=3)
    state = {**reply["per_articulation"], **reply["entities"]}
    model, snapshot = lab.model, lab.snapshot
    sensors, joints = robots_of(lab, "sensor"), robots_of(lab, "joint")
    assert set(state) == set(lab.robots)
    for robot, values in state.items():
        starts = [(model.jnt_qposadr[i], int(model.jnt_type[i])) for i in joints[robot]]
        expected = [snapshot.qpos[a : a + {0: 7, 1: 4}.get(k, 1)] for a, k in starts]
        assert values["qpos"] == np.concatenate(expected).tolist()
        read = [
            snapshot.sensordata[model.sensor_adr[i] :][: model.sensor_dim[i]].tolist()
            for i in sensors[robot]
        ]
        assert list(values.get("sensors", {}).values()) == read
    server.close()


def test_the_model_of_urlab_is_refused_only_where_it_is_ambiguous(lab, request):
    """Ask for the model: it has the prefixes that clients look for, or one sentence says why not.

    A refusal leaves no session, and the world to others.
    """
    server = Dispatcher(lab)
    client = Client(lambda request: server.handle(request, "a"))
    if reason := REFUSED.get(request.node.callspec.params["lab"]):
        with pytest.raises(ReplyError, match=reason) as caught:
            client.hello()
        assert "rename one of them, or say hello with include_model = false" in str(caught.value)
        assert caught.value.code == "not_ready" and len(server.sessions) == 0
        client.hello(include_model=False)
        with pytest.raises(ReplyError, match=reason):
            client.ask("begin_pie")
        with pytest.raises(ReplyError, match=reason):
            client.ask("export_model", names="clients")
        assert client.ask("export_model", names="lab")["mjb"]
        return
    client.hello()
    model, joints = client.model(), robots_of(lab, "joint")
    for member in client.world["articulations"]:
        begin = f"{member['prefix']}_"
        named = [i for i in range(model.njnt) if model.joint(i).name.startswith(begin)]
        assert named == joints[member["prefix"]]
    written = mujoco.MjModel.from_xml_string(client.world["mjcf"])
    assert [written.joint(i).name for i in range(model.njnt)] == [
        model.joint(i).name for i in range(model.njnt)
    ]
    for kind, count in (("joint", model.njnt), ("sensor", model.nsensor), ("body", model.nbody)):
        names = [getattr(model, kind)(i).name for i in range(count)]
        assert all(number == 1 for name, number in Counter(names).items() if name), kind
    server.close()


def test_streams_are_told_by_robot(lab, hub):
    """Subscribe to one robot's topics: its states come, whatever its name is."""
    robot = next(robot for robot in lab.robots if lab.controls.find(robot))
    with zmq.Context() as context:
        peer = context.socket(zmq.SUB)
        peer.setsockopt(zmq.RCVTIMEO, 20_000)
        peer.setsockopt(zmq.SUBSCRIBE, f"{robot}/joint/".encode())
        peer.connect(f"tcp://127.0.0.1:{hub.ports['state']}")
        until(lambda: hub.streams.states[0].wanted, "the subscription does not come")
        lab.step()
        topic, payload = peer.recv_multipart()
        assert topic.startswith(f"{robot}/joint/".encode()) and len(payload) == 16
        context.destroy(linger=0)


def test_ros_has_a_frame_for_each_body(lab, hub):
    """Read the world as the ROS bridge does: frames are unique, joints are their robot's."""
    reader = FastPathReader(f"tcp://127.0.0.1:{hub.ports['fast_path']}", topics=(b"state",))
    scene = reader.hello()
    assert len(reader.request("fastpath_hello")["mjb"]) > 0  # as a renderer asks
    reader.close()
    world = RosWorld(scene.model, scene.robots)
    data = lab.snapshot
    state = {
        name: getattr(data, name)
        for name in ("qpos", "qvel", "act", "ctrl", "mocap_pos", "mocap_quat", "sensordata")
    }
    found = {message.topic: message for message in world.messages({"t": 0.0, **state})}
    frames = [t["child_frame_id"] for t in found["/tf"].content["transforms"]]
    assert len(set(frames)) == len(frames) >= lab.model.nbody - 1
    joints = robots_of(lab, "joint")
    hinges = {
        robot: sum(lab.model.jnt_type[i] == mujoco.mjtJoint.mjJNT_HINGE for i in ids)
        for robot, ids in joints.items()
    }
    counts = [
        len(message.content["name"])
        for topic, message in found.items()
        if topic.endswith("/joint_states")
    ]
    assert sorted(counts) == sorted(count for count in hinges.values() if count)


def test_an_element_of_no_robot_is_not_taken_for_one():
    """Name a loose body of the scene as if it were a robot's: the model is refused, steps go on."""
    cfg = SceneCfg(entities={"go": entity(GO)})

    def add_stone(spec: mujoco.MjSpec) -> None:
        body = spec.worldbody.add_body(name="go_stone", pos=[2, 0, 1])
        body.add_freejoint()
        body.add_geom(size=[0.1, 0, 0])

    cfg.spec_fn = add_stone
    with LiveLab(world_from_scene(cfg), LabCfg(mode="direct")) as other:
        server = Dispatcher(other)
        client = Client(lambda request: server.handle(request, "a"))
        with pytest.raises(ReplyError, match="cannot tell 'go' and 'go_stone' apart"):
            client.hello()
        client.hello(include_model=False)
        reply = client.ask("step")
        assert len(reply["per_articulation"]["go"]["qpos"]) == 12
        assert len(reply["entities"]["go_stone"]["qpos"]) == 7


def test_a_client_goes_on_when_its_robot_is_duplicated():
    """Duplicate a robot under a client that drives: it drives both, and new clients connect."""
    cfg = SceneCfg(entities={"go": entity(GO)})
    cfg.spec_fn = add_floor
    with (
        LiveLab(world_from_scene(cfg), LabCfg(mode="direct", start_owner="net")) as lab,
        LabHub(LabServerCfg(**ANY)) as hub,
    ):
        hub.attach(lab)
        until(hub.is_open, "the ports are not open")
        with connect(f"tcp://127.0.0.1:{hub.ports['step']}") as client:
            client.step(2)
            client.duplicate_item("go", pos=[0.0, 2.0, 0.0])
            assert list(client.robots) == ["go", "go_1"]
            client.take_robot("go_1", "net")
            client["go_1"].set_targets({"hip": 0.5})
            client.step(5)
            assert client["go_1"].actuator("hip").data.ctrl[0] == 0.5
            assert client["go"].actuator("hip").data.ctrl[0] == 0.0
            assert np.array_equal(client.data.qpos, lab.snapshot.qpos)
            with connect(f"tcp://127.0.0.1:{hub.ports['step']}", role="observer") as other:
                assert other.robots == client.robots
