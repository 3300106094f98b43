"""ROS 2 messages of live worlds, against the `.msg` definitions of ROS's packages."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest

from manyworlds.cli.main import main
from manyworlds.lab import LabCfg, LiveLab, world_from_file
from manyworlds.lab.pictures import LabCameraCfg, quat_to_look
from manyworlds.lab.pictures.camera import model_cameras
from manyworlds.plugins.ros2.bridge import RosBridge
from manyworlds.plugins.ros2.sinks import McapSink, RosSink, RosTypes
from manyworlds.plugins.ros2.world import RosMessage, RosWorld, to_stamp, to_topic
from manyworlds.plugins.urlab.fast_path.server import _STATE_FIELDS
from manyworlds.tasks import list_tasks, load_env_cfg
from tests.lab.server.conftest import two_robots
from tests.lab.server.waiting import until
from tests.plugins.urlab.publishers import fast_path_of, hub, lab, reader, registry, shared
from tests.robots import robot_file

__all__ = ["hub", "lab", "reader", "registry", "shared"]
TYPES = (
    "tf2_msgs/msg/TFMessage",
    "rosgraph_msgs/msg/Clock",
    "sensor_msgs/msg/JointState",
    "sensor_msgs/msg/Imu",
    "sensor_msgs/msg/Image",
    "sensor_msgs/msg/CameraInfo",
)
ASSETS = Path(gymnasium.__file__).parent / "envs/mujoco/assets"
IMU = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
    <body name="go_base" pos="0 0 1" quat="0.8 0 0.6 0"><freejoint/><geom size=".1"/>
      <site name="go_imu" pos=".1 0 0" quat="0.6 0.8 0 0"/><site name="go_tail"/>
      <camera name="go_eye" pos=".1 0 .05" xyaxes="0 -1 0 0 0 1"/>
      <body name="go_leg" pos="0 .2 0"><joint name="go_hip" axis="0 1 0"/><geom size=".05"/></body>
    </body></worldbody>
    <actuator><position name="go_hip" joint="go_hip" kp="20"/></actuator>
    <sensor><accelerometer site="go_imu"/><gyro site="go_imu"/><gyro site="go_tail"/></sensor>
    </mujoco>"""


def state_of(data: mujoco.MjData) -> dict:
    """Return a state as the publisher publishes it."""
    return {"t": data.time, **{name: getattr(data, name).ravel() for name in _STATE_FIELDS}}


def messages_of(world: RosWorld, data: mujoco.MjData) -> dict:
    """Return the contents of the messages of a state, by topic."""
    return {message.topic: message.content for message in world.messages(state_of(data))}


def placed(transforms: list[dict]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the pose of each frame in the world, as a ROS program chains transforms."""
    poses = {"world": (np.zeros(3), np.eye(3))}
    for transform in transforms:
        pos, matrix = poses[transform["header"]["frame_id"]]
        part = transform["transform"]
        turn, quat = np.empty(9), [part["rotation"][key] for key in "wxyz"]
        mujoco.mju_quat2Mat(turn, quat)
        place = [part["translation"][key] for key in "xyz"]
        poses[transform["child_frame_id"]] = pos + matrix @ place, matrix @ turn.reshape(3, 3)
    return poses


@pytest.mark.parametrize("name", ["ant.xml", "humanoid.xml", "half_cheetah.xml"])
def test_third_party_robots(name):
    """Step models that others made: joints and frames are those of MuJoCo."""
    model = mujoco.MjModel.from_xml_path(str(ASSETS / name))
    data, world = mujoco.MjData(model), RosWorld(model, {})
    data.ctrl[:] = 0.3
    for _ in range(50):
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    found = messages_of(world, data)
    joints = found["/joint_states"]
    assert len(joints["name"]) == sum(t in (2, 3) for t in model.jnt_type)
    for i, joint in enumerate(joints["name"]):
        element = model.joint(joint)
        assert joints["position"][i] == data.qpos[element.qposadr[0]]
        assert joints["velocity"][i] == data.qvel[element.dofadr[0]]
        assert joints["effort"][i] == pytest.approx(data.qfrc_actuator[element.dofadr[0]])
    assert any(joints["effort"])
    poses = placed(found["/tf"]["transforms"])
    for body in range(1, model.nbody):
        pos, matrix = poses[model.body(body).name or f"body_{body}"]
        np.testing.assert_allclose(pos, data.xpos[body], atol=1e-9)
        np.testing.assert_allclose(matrix.ravel(), data.xmat[body], atol=1e-9)
    assert found["/clock"]["clock"] == to_stamp(data.time)


def test_imus_and_cameras():
    """Rest and turn: an IMU measures gravity upwards in its frame; optical frames look along z."""
    model = mujoco.MjModel.from_xml_string(IMU)
    data, world = mujoco.MjData(model), RosWorld(model, {"go": "go_"})
    data.qvel[3:6] = [0.1, -0.2, 0.3]
    mujoco.mj_forward(model, data)
    found = messages_of(world, data)
    assert found["/go/joint_states"]["name"] == ["hip"]
    imu, tail = found["/go/imu/imu"], found["/go/imu/tail"]
    measured = [imu["linear_acceleration"][key] for key in "xyz"]
    assert measured == data.sensordata[:3].tolist()
    assert [imu["angular_velocity"][key] for key in "xyz"] == data.sensordata[3:6].tolist()
    turn = np.empty(9)
    mujoco.mju_quat2Mat(turn, [imu["orientation"][key] for key in "wxyz"])
    np.testing.assert_allclose(turn, data.site("go_imu").xmat, atol=1e-9)
    assert imu["linear_acceleration_covariance"][0] == 0.0
    assert tail["linear_acceleration_covariance"][0] == -1.0  # there is no such sensor
    poses = placed(found["/tf"]["transforms"])
    pos, axes = poses["go_eye_optical_frame"]
    camera = data.camera("go_eye")
    np.testing.assert_allclose(pos, camera.xpos, atol=1e-9)
    right, up, back = camera.xmat.reshape(3, 3).T
    np.testing.assert_allclose(axes, np.column_stack([right, -up, -back]), atol=1e-9)
    np.testing.assert_allclose(poses["go_imu"][1].ravel(), data.site("go_imu").xmat, atol=1e-9)
    assert imu["header"]["frame_id"] == "go_imu"


SAME = """<mujoco><worldbody>
    <body name="imu"><freejoint/><geom size=".1"/><site name="imu"/><camera name="imu"/>
      <body><joint/><geom size=".1"/><site name="body_3"/></body>
      <body name="body_2" pos=".1 0 0"><joint/><geom size=".1"/><site name="world"/></body>
      <body name="imu_site"><joint/><geom size=".1"/><site name="a-b"/><site name="a.b"/></body>
      <body name="imu_optical_frame"><joint/><geom size=".1"/></body>
    </body></worldbody>
    <sensor><gyro site="imu"/><gyro site="body_3"/><gyro site="world"/><gyro site="a-b"/>
      <gyro site="a.b"/></sensor></mujoco>"""


def check_frames(model: mujoco.MjModel, robots: dict[str, str]) -> list[RosMessage]:
    """Check that all frames have one parent, and that messages name frames; return these."""
    data, world = mujoco.MjData(model), RosWorld(model, robots)
    mujoco.mj_forward(model, data)
    messages = world.messages(state_of(data))
    for camera in model_cameras(model):
        header = {"camera": camera, "kind": "rgb", "width": 1, "height": 1, "time": 0.0}
        messages += world.images({**header, "fx": 1.0, "fy": 1.0, "cx": 0.5, "cy": 0.5}, bytes(3))
    (tf,) = (message.content["transforms"] for message in messages if message.topic == "/tf")
    children = [transform["child_frame_id"] for transform in tf]
    assert len({*children, "world"}) == len(children) + 1
    assert all(transform["header"]["frame_id"] != transform["child_frame_id"] for transform in tf)
    assert set(placed(tf)) == {*children, "world"}  # each parent comes first
    topics = [message.topic for message in messages]
    assert len(set(topics)) == len(topics)
    heads = [message.content["header"] for message in messages if "header" in message.content]
    assert {head["frame_id"] for head in heads} <= {*children, "world", ""}
    return messages


def test_names_that_elements_share_are_frames_of_their_own():
    """Name sites and cameras as bodies, topics alike, and bodies as unnamed ones."""
    model = mujoco.MjModel.from_xml_string(SAME)
    found = {message.topic: message.content for message in check_frames(model, {})}
    assert found["/imu/imu"]["header"]["frame_id"] == "imu_site_1"
    assert found["/imu/a_b"]["header"]["frame_id"] == "a-b"
    assert found["/imu/a_b_1"]["header"]["frame_id"] == "a.b"
    poses = placed(found["/tf"]["transforms"])
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(poses["body_2"][0], data.body("body_2").xpos, atol=1e-9)
    np.testing.assert_allclose(poses["imu_site_1"][0], data.site("imu").xpos, atol=1e-9)


@pytest.mark.parametrize("task", list_tasks())
def test_frames_of_the_robots_of_tasks(task):
    """Show each entity of each task: all frames are there once."""
    cfg = load_env_cfg(task)
    for name, entity in cfg.scene.entities.items():
        try:
            model = entity.build().compile()
        except FileNotFoundError as error:
            pytest.skip(str(error))
        check_frames(model, {name: f"{name}/"})


@pytest.mark.parametrize("name", ["unitree_go1/go1.xml", "unitree_g1/g1.xml", "i2rt_yam/yam.xml"])
def test_frames_of_third_party_robots(name):
    """Open files as they are: an IMU is often a site on a body of the same name."""
    model = mujoco.MjModel.from_xml_path(str(robot_file(name)))
    check_frames(model, {})


def test_cameras_of_the_lab_have_frames():
    """Show images of cameras by their names in the lab, and of one that was added to it."""
    model = mujoco.MjModel.from_xml_string(IMU)
    world, data = RosWorld(model, {"go": "go_"}), mujoco.MjData(model)
    header = {"kind": "rgb", "width": 1, "height": 1, "time": 0.0}
    header |= {"fx": 1.0, "fy": 1.0, "cx": 0.5, "cy": 0.5}
    image, _ = world.images({**header, "camera": "go_eye"}, bytes(3))
    assert image.content["header"]["frame_id"] == "go_eye_optical_frame"
    quat = np.array(quat_to_look((1.0, 2.0, 3.0), (0.0, 0.0, 0.0)))
    header |= {"pos": [1.0, 2.0, 3.0], "quat": quat.tolist(), "time": 2.5}
    for _ in range(2):
        found = world.images({**header, "camera": "eye"}, bytes(3))
        tf, image, info = (message.content for message in found)
        assert image["header"] == info["header"]
        assert image["header"]["frame_id"] == "eye_optical_frame"
        assert image["header"]["stamp"] == tf["transforms"][0]["header"]["stamp"]
        pos, axes = placed(tf["transforms"])["eye_optical_frame"]
        np.testing.assert_allclose(pos, [1.0, 2.0, 3.0])
        np.testing.assert_allclose(axes[:, 2], -pos / np.linalg.norm(pos), atol=1e-9)
    mujoco.mj_forward(model, data)
    assert "eye_optical_frame" not in placed(messages_of(world, data)["/tf"]["transforms"])


def test_cameras_of_robots_with_slashes_have_frames():
    """Show the image of a camera of a robot whose name has a slash: it is the model's camera."""
    model = mujoco.MjModel.from_xml_string(IMU.replace("go_", "a/b/"))
    world = RosWorld(model, {"a/b": "a/b/"})
    header = {"kind": "rgb", "width": 1, "height": 1, "time": 0.0}
    header |= {"fx": 1.0, "fy": 1.0, "cx": 0.5, "cy": 0.5, "camera": "a/b/eye"}
    image, _ = world.images(header, bytes(3))
    assert image.content["header"]["frame_id"] == "a_b_eye_optical_frame"


def test_an_imu_at_rest_measures_up():
    """Hold a body still on the floor: the acceleration is gravity's opposite, as ROS has it."""
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><worldbody><body name="a"><geom size=".1"/><site name="s"/></body></worldbody>
        <sensor><accelerometer site="s"/></sensor></mujoco>"""
    )
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    imu = messages_of(RosWorld(model, {}), data)["/imu"]
    assert imu["linear_acceleration"] == pytest.approx({"x": 0.0, "y": 0.0, "z": 9.81})


def test_pixels_and_parameters():
    """Make images: the principal point counts from the center of a pixel, depth is in meters."""
    world = RosWorld(mujoco.MjModel.from_xml_string(IMU), {"go": "go_"})
    header = {"camera": "go_eye", "kind": "rgb", "width": 4, "height": 2, "time": 1.5}
    header |= {"fx": 3.0, "fy": 3.0, "cx": 2.0, "cy": 1.0}
    image, info = world.images(header, bytes(range(24)))
    assert (image.topic, info.topic) == ("/go_eye/image_raw", "/go_eye/camera_info")
    assert (image.content["encoding"], image.content["step"]) == ("rgb8", 12)
    assert image.content["header"]["frame_id"] == "go_eye_optical_frame"
    assert image.content["header"]["stamp"] == {"sec": 1, "nanosec": 500_000_000}
    assert info.content["k"] == [3.0, 0.0, 1.5, 0.0, 3.0, 0.5, 0.0, 0.0, 1.0]
    depth, _ = world.images({**header, "kind": "depth"}, bytes(32))
    assert (depth.topic, depth.content["encoding"]) == ("/go_eye/depth/image_raw", "32FC1")
    assert depth.content["step"] * 2 == len(depth.content["data"])
    assert [to_topic(name) for name in ("a/b-c", "2d")] == ["a_b_c", "_2d"]


def test_a_file_has_definitions_and_messages_that_others_read(tmp_path):
    """Write states and images, and decode them by another implementation: the same values."""
    reader = pytest.importorskip("mcap_ros2.reader", reason="needs the package mcap-ros2-support")
    pytest.importorskip("rosbags", reason="needs the extra 'ros'")
    model = mujoco.MjModel.from_xml_string(IMU)
    world, data = RosWorld(model, {"go": "go_"}), mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    header = {"camera": "go_eye", "kind": "rgb", "width": 4, "height": 2, "time": 1.5}
    header |= {"fx": 3.0, "fy": 3.0, "cx": 2.0, "cy": 1.0}
    messages = world.messages(state_of(data)) + world.images(header, bytes(range(24)))
    sink = McapSink(tmp_path / "a.mcap")
    for message in messages:
        sink.put(message, 1.5)
    sink.close()
    assert sink.num_messages == len(messages)
    found = {
        message.channel.topic: (message.schema.name, plain(message.ros_msg))
        for message in reader.read_ros2_messages(str(sink.path))
    }
    assert found == {message.topic: (message.type, plain(message.content)) for message in messages}
    assert {kind for kind, _ in found.values()} == set(TYPES)


def plain(value: Any) -> Any:
    """Return a message as maps and lists."""
    if hasattr(value, "__slots__"):
        return {name: plain(getattr(value, name)) for name in value.__slots__}
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, bytes | list | tuple | np.ndarray):
        return [plain(item) for item in value]
    return value


@pytest.fixture(scope="module")
def bag(hub, tmp_path_factory):
    """File of a lab of two robots, with a camera, that ran for a moment and was reset."""
    pytest.importorskip("rosbags", reason="needs the extra 'ros'")
    path = tmp_path_factory.mktemp("bag") / "run.mcap"
    with LiveLab(two_robots(), LabCfg(mode="direct")) as lab:
        hub.attach(lab)
        done = threading.Event()

        def move():
            until(lambda: b"state" in fast_path_of(hub)._topics, "the bridge does not come")
            for _ in range(2):
                for _ in range(100):
                    lab.step(5)
                    if done.wait(0.002):
                        return
                lab.reset()

        thread = threading.Thread(target=move)
        thread.start()
        argv = ["ros2", str(hub.ports["fast_path"]), "--output", str(path), "--seconds", "3"]
        assert main([*argv, "--rate", "50"]) == 0
        done.set()
        thread.join()
        hub.attach(None)
    return path


@pytest.mark.slow
def test_the_file_is_read_by_ros_tools(bag):
    """Read the file with a decoder of ROS: topics, types, order and contents."""
    import mcap_ros2.reader

    found: dict[str, list] = {}
    last = 0
    for message in mcap_ros2.reader.read_ros2_messages(str(bag)):
        found.setdefault(message.channel.topic, []).append(message)
        assert message.log_time_ns >= last
        last = message.log_time_ns
    robots = ("/go/joint_states", "/go2/joint_states", "/go/imu", "/go2/imu")
    assert set(found) == {"/clock", "/tf", *robots}
    states = [message.ros_msg for message in found["/go/joint_states"]]
    assert len(states) > 10 and list(states[0].name) == ["hip"]
    stamps = [message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec for message in states]
    steps = np.diff(stamps)
    assert sum(steps < 0) in (1, 2)  # resets: one run is after the other
    assert steps[steps > 0].min() >= 0.02 - 1e-8  # not more often than asked for
    frames = {t.child_frame_id for t in found["/tf"][0].ros_msg.transforms}
    assert {"go_base", "go_foot", "go2_base", "box_box"} <= frames


@pytest.mark.slow
def test_rosbags_reads_the_file(bag):
    """Decode each message by another implementation, with ROS's own definitions."""
    reader = pytest.importorskip("mcap.reader")
    typesys = pytest.importorskip("rosbags.typesys", reason="needs the package rosbags")
    ros = typesys.get_typestore(typesys.Stores.ROS2_JAZZY)
    count = 0
    with bag.open("rb") as stream:
        for schema, _, message in reader.make_reader(stream).iter_messages():
            decoded = ros.deserialize_cdr(message.data, schema.name)
            assert bytes(ros.serialize_cdr(decoded, schema.name)) == message.data
            count += 1
    assert count > 40


def message_class(name: str) -> type:
    """Return a stand-in for a class of ROS's messages, from its definition."""
    fields, types = {}, {}
    for line in RosTypes().definition(name).partition("=" * 80)[0].split("\n"):
        if not line:
            continue
        kind, field = line.split()
        types[field] = f"sequence<{kind[:-2]}>" if kind.endswith("[]") else kind
        if "[" in kind:
            fields[field] = list
        elif "/" in kind:
            fields[field] = message_class(kind.replace("/", "/msg/"))
        else:
            fields[field] = str if kind == "string" else int

    def make(self):
        for field, default in fields.items():
            setattr(self, field, default())

    return type(name, (), {"__init__": make, "get_fields_and_field_types": lambda: types})


def test_ros_itself(monkeypatch, lab, hub):
    """Publish through `rclpy`, on stand-ins for its modules: messages of its classes arrive."""
    sent: list[tuple[str, object]] = []
    node = SimpleNamespace(
        create_publisher=lambda kind, topic, depth: SimpleNamespace(
            publish=lambda message: sent.append((topic, message))
        ),
        destroy_node=lambda: None,
    )
    modules: dict[str, dict] = {
        "rclpy": {
            "ok": lambda: False,
            "init": lambda: None,
            "create_node": lambda name: node,
            "try_shutdown": lambda: None,
        }
    }
    for name in (*TYPES, "geometry_msgs/msg/TransformStamped"):
        package, _, kind = name.split("/")
        modules.setdefault(f"{package}.msg", {})[kind] = message_class(name)
    for name, content in modules.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    bridge = RosBridge(f"tcp://127.0.0.1:{hub.ports['fast_path']}", [RosSink()])
    until(lambda: b"state" in fast_path_of(hub)._topics, "the bridge does not come")
    lab.step(10)
    found: dict[str, Any] = {}

    def has_newest_state() -> bool:
        bridge.run(0.01)
        found.update(sent)
        clock = found.get("/clock")
        return clock is not None and clock.clock.nanosec == round(lab.snapshot.time * 1e9)

    until(has_newest_state, "the newest state did not come")
    lab.step(1)  # sooner than the rate allows, and the last one
    until(has_newest_state, "the last state did not come")
    bridge.close()
    assert found["/tf"].transforms[0].transform.rotation.w == 1.0
    assert found["/go/joint_states"].name == ["hip"]


def test_what_is_wrong_is_one_sentence(hub, lab, tmp_path, monkeypatch, capsys):
    """Ask for ROS where there is none, for a wrong camera, and for a file that is there."""
    monkeypatch.setitem(sys.modules, "rclpy", None)
    port = str(hub.ports["fast_path"])
    assert main(["ros2", port]) == 1
    assert "There is no ROS 2 in this Python" in capsys.readouterr().err
    pytest.importorskip("rosbags", reason="needs the extra 'ros'")
    monkeypatch.delitem(sys.modules, "rclpy")
    path = tmp_path / "a.mcap"
    assert main(["ros2", port, "--output", str(path), "--cameras", "eye"]) == 1
    assert "There is no camera 'eye'" in capsys.readouterr().err and not path.exists()
    assert main(["ros2", port, "--output", str(path), "--rate", "0"]) == 1
    assert "rate must be above 0" in capsys.readouterr().err
    path.write_text("")
    assert main(["ros2", port, "--output", str(path)]) == 1
    said = capsys.readouterr().err
    assert f"error: {path} exists already: choose another file.\n" == said and path.exists()


def test_images_come_from_the_lab(hub, tmp_path):
    """Take colors and depth of a camera: the messages have its size, and the pixels of the lab."""
    from manyworlds.utils.gl import gl_available

    if reason := gl_available():
        pytest.skip(reason)
    pytest.importorskip("PIL", reason="needs the extra 'lab'")
    got = []
    sink = SimpleNamespace(put=lambda message, time: got.append(message), close=lambda: None)
    path = tmp_path / "scene.xml"
    path.write_text(IMU.replace("go_", ""))
    with LiveLab(world_from_file(path), LabCfg(mode="direct")) as lab:
        lab.call("configure_camera", camera="eye", width=32, height=24)
        lab.cameras.add(LabCameraCfg(name="top", pos=(0.0, 0.0, 3.0), width=32, height=24))
        hub.attach(lab)
        bridge = RosBridge(
            f"tcp://127.0.0.1:{hub.ports['fast_path']}", [sink], cameras=["eye", "top"], depth=True
        )
        names = {"/eye/image_raw", "/eye/camera_info", "/eye/depth/image_raw", "/top/image_raw"}
        lab.step(1)
        names.add("/clock")
        until(
            lambda: bridge.run(0.05) or names <= {message.topic for message in got},
            "images are missing",
        )
        bridge.close()
        hub.attach(None)
    frames = {
        transform["child_frame_id"]
        for message in got
        if message.topic == "/tf"
        for transform in message.content["transforms"]
    }
    for start in ("/eye", "/top"):
        image = next(message.content for message in got if message.topic == f"{start}/image_raw")
        assert image["header"]["frame_id"] in frames
    image = next(message.content for message in got if message.topic == "/eye/image_raw")
    assert (image["width"], image["height"], len(image["data"])) == (32, 24, 32 * 24 * 3)
