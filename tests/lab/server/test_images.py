"""Streams of cameras, and images of steps."""

from __future__ import annotations

import json
import os
import signal
import time
from types import SimpleNamespace

import msgpack
import mujoco
import numpy as np
import pytest
import zmq

from manyworlds.lab import LabCfg, LiveLab, VerbError, world_from_file, world_from_scene
from manyworlds.lab.pictures import LabCameraCfg, decode_image, quat_to_look
from manyworlds.lab.server import Dispatcher, HubProcess, LabServerCfg
from manyworlds.lab.server.camera_server import CameraServer
from manyworlds.plugins.urlab.images import robot_cameras
from manyworlds.plugins.urlab.roster import RosterCache
from manyworlds.scene import SceneCfg
from tests.lab.server.client import Client, ReplyError
from tests.lab.server.conftest import BOX, GO, add_floor, entity
from tests.lab.server.test_hub import client_of, connect
from tests.lab.server.waiting import ANY, until
from tests.robots import robot_file

pytestmark = pytest.mark.usefixtures("gl")
EYE = GO.replace(
    '<site name="imu"/>',
    '<site name="imu"/><camera name="eye" pos="0 0 3" resolution="64 48" fovy="60"/>',
)
SIZE = {"width": 64, "height": 48}


@pytest.fixture(scope="module")
def eyes():
    """A lab of two robots with cameras that look down on them, a box, and a free camera."""
    cfg = SceneCfg(
        entities={
            "go": entity(EYE, (0.0, 0.0, 0.5)),
            "go2": entity(EYE, (0.0, 2.0, 0.5)),
            "box": entity(BOX, (1.0, 0.0, 0.1)),
        }
    )
    cfg.spec_fn = add_floor
    with LiveLab(world_from_scene(cfg), LabCfg(mode="direct", start_owner="net")) as lab:
        look = quat_to_look((2.0, -2.0, 1.5), (0.5, 0.5, 0.2))
        lab.cameras.add(LabCameraCfg(name="side", pos=(2.0, -2.0, 1.5), quat=look, **SIZE))
        yield lab


@pytest.fixture(scope="module")
def hub(eyes):
    """A server in a process of its own, which serves that lab."""
    with HubProcess(LabServerCfg(**ANY)) as hub:
        hub.attach(eyes)
        yield hub


@pytest.fixture
def context():
    """ZeroMQ's context of the clients."""
    with zmq.Context() as context:
        yield context
        context.destroy(linger=0)


@pytest.fixture
def client(eyes):
    """A client of a dispatcher in this process."""
    server = Dispatcher(eyes)
    client = Client(lambda request: server.handle(request, "a"))
    client.hello()
    yield client
    server.close()


def images_of(peer, count: int):
    """Return the next images of the port with headers: topic, header, and array."""
    found = []
    for _ in range(count):
        topic, header, pixels = peer.recv_multipart()
        header = msgpack.unpackb(header)
        plain = {key: int(header[key]) for key in ("width", "height", "channels")}
        found.append((topic.decode(), header, decode_image({**header, **plain}, pixels)))
    return found


def move(lab: LiveLab) -> None:
    """Step far enough for a new image."""
    lab.step(20)


@pytest.mark.slow
def test_colors_on_the_port_of_a_camera(eyes, hub, context):
    """Read the endpoint from greeting and list; subscribe as old clients do: BGRA, size known."""
    client = client_of(context, hub)
    until(
        lambda: (
            len(client.hello()["articulations"][0]["camera_topics"]) == 1
            and client.world["articulations"][0]["camera_topics"]["eye"]["zmq_endpoint"][-2:]
            != ":0"
        ),
        "the cameras are not told",
    )
    camera = client.world["articulations"][0]["camera_topics"]["eye"]
    assert camera["mode"] == "real" and camera["resolution"] == [64, 48] and camera["fovy"] == 60
    assert camera["zmq_topic"] == "go/camera/eye "
    info = connect(context, hub.ports["info"], zmq.SUB)

    def listed():
        move(eyes)
        while info.poll(50):
            told = json.loads(info.recv())
            if told["robot"] == "go":
                return told["camera_list"]
        return None

    found = until(listed, "the list does not come")
    assert found == [{"name": "eye", "endpoint": camera["zmq_endpoint"]}]
    port = int(camera["zmq_endpoint"].rpartition(":")[2])
    peer = connect(context, port, zmq.SUB, camera["zmq_topic"].encode())

    def seen():
        """Compare an image with the present one, which the world may have left behind."""
        move(eyes)
        if not peer.poll(200):
            return False
        topic, pixels = peer.recv_multipart()
        picture = np.frombuffer(pixels, np.uint8).reshape(48, 64, 4)
        assert topic == b"go/camera/eye " and (picture[..., 3] == 255).all()
        colors = eyes.camera("go/eye").frame().image
        return np.abs(picture[..., 2::-1].astype(int).mean() - colors.mean()) < 30

    until(seen, "no image comes that looks like the camera's")


@pytest.mark.slow
def test_all_kinds_with_headers(eyes, hub, context):
    """Subscribe to all images of a camera: each kind can be decoded by its header alone."""
    kinds = ("rgb", "depth", "segmentation", "geom", "body", "entity")
    peer = connect(context, hub.ports["image"], zmq.SUB, b"image/side/")

    frames: dict[int, dict] = {}

    def complete():
        """Return the images of one frame; a busy machine drops images of others."""
        move(eyes)
        while peer.poll(300):
            ((topic, header, image),) = images_of(peer, 1)
            images = frames.setdefault(header["frame_id"], {})
            images[topic] = header, image
            if set(images) == {f"image/side/{kind}" for kind in kinds}:
                return header["frame_id"]
        return None

    frame = until(complete, "no frame has all kinds")
    found = frames[frame]
    assert frame <= eyes.snapshot.frame_id
    header, depth = found["image/side/depth"]
    assert depth.dtype == np.float32 and depth.shape == (48, 64) and header["unit"] == "m"
    geoms, entities = found["image/side/geom"][1], found["image/side/entity"]
    floor = eyes.model.geom("floor").id
    assert geoms.dtype == np.int32 and floor in geoms
    box = eyes.model.geom("box/box").id
    assert entities[0]["entities"] == list(eyes.robots)
    assert (entities[1][geoms == box] == list(eyes.robots).index("box")).all()
    assert (found["image/side/body"][1][geoms == box] == eyes.model.geom_bodyid[box]).all()
    # Distances to the floor follow from the intrinsics and the pose.
    rows, columns = np.nonzero(geoms == floor)
    fx, fy, cx, cy = (header[key] for key in ("fx", "fy", "cx", "cy"))
    rays = np.stack([(columns + 0.5 - cx) / fx, -(rows + 0.5 - cy) / fy, -np.ones(len(rows))])
    axes = np.empty(9)
    mujoco.mju_quat2Mat(axes, np.array(header["quat"]))
    drop = (axes.reshape(3, 3) @ rays)[2]
    expected = -header["pos"][2] / drop
    near = expected < 6.0
    assert near.sum() > 100
    assert np.abs(depth[rows, columns] - expected)[near].max() < 0.02


def test_nothing_is_drawn_for_nobody(eyes, hub, context):
    """Let all subscribers leave: no image is drawn any more; the next one starts it again."""
    peer = connect(context, hub.ports["image"], zmq.SUB, b"image/side/rgb")
    until(lambda: move(eyes) or peer.poll(200), "no image comes")
    until(lambda: hub.describe()["images"]["streams"], "the stream is not described")
    peer.close()
    until(lambda: hub.describe()["images"]["streams"] == 0, "the stream does not end")
    before = hub.describe()["images"]["drawn"]
    for _ in range(5):
        move(eyes)
        time.sleep(0.05)
    time.sleep(0.6)  # the description is half a second old
    assert hub.describe()["images"]["drawn"] == before
    again = connect(context, hub.ports["image"], zmq.SUB, b"image/side/rgb")
    until(lambda: move(eyes) or again.poll(200), "no image comes")


@pytest.mark.slow
def test_images_come_again_after_the_end_of_the_drawing(eyes, hub, context):
    """Kill the process that draws: the server reports it, and its subscribers get images again."""
    peer = connect(context, hub.ports["image"], zmq.SUB, b"image/side/rgb")
    until(lambda: move(eyes) or peer.poll(200), "no image comes")
    os.kill(eyes.cameras._process.process.pid, signal.SIGKILL)
    until(lambda: eyes.cameras.problems, "the end is not known")
    (problem,) = eyes.cameras.problems
    until(lambda: f"Images are not published: {problem}" in hub.reports, "the end is not reported")
    while peer.poll(0):
        peer.recv_multipart()
    until(lambda: move(eyes) or peer.poll(200), "no image comes again")
    assert not eyes.cameras.problems


def test_cameras_that_come_and_go(eyes, hub, context):
    """Subscribe to a camera before it is there: its images come when it does."""
    peer = connect(context, hub.ports["image"], zmq.SUB, b"image/late/depth")
    assert not peer.poll(100)
    eyes.cameras.add(LabCameraCfg(name="late", pos=(0.0, 0.0, 3.0), **SIZE))
    until(lambda: move(eyes) or peer.poll(200), "no image comes")
    ((_, header, _),) = images_of(peer, 1)
    assert header["camera"] == "late" and header["kind"] == "depth"
    eyes.cameras.remove("late")


def test_images_of_a_step(eyes, client):
    """Ask for images with steps: those of this step have its frame id, and match the painter."""
    for _ in range(2):
        wish = {"go_eye": "sync", "side": "sync depth", "go2/eye": "latest"}
        reply = client.ask("step", n_steps=3, include_cameras=wish)
        cameras = reply["cameras"]
        assert set(cameras) == set(wish)
        for name in ("go_eye", "side"):
            assert cameras[name]["frame_id"] == reply["frame_id"] == eyes.snapshot.frame_id
        colors, depth = cameras["go_eye"], cameras["side"]
        assert (colors["dtype"], colors["width"], colors["height"]) == ("bgra8", 64, 48)
        picture = np.frombuffer(colors["data"], np.uint8).reshape(48, 64, 4)
        expected = eyes.camera("go/eye").frame(snapshot=eyes.snapshot).image
        assert np.array_equal(picture[..., 2::-1], expected)
        values = np.frombuffer(depth["data"], np.float32).reshape(48, 64)
        assert depth["dtype"] == "float32"
        assert np.array_equal(values, eyes.camera("side").frame("depth", eyes.snapshot).image)
    everything = client.ask("step", include_cameras=True)["cameras"]
    assert set(everything) == set(eyes.cameras)
    assert client.ask("step", include_cameras=False)["cameras"] == {}


WRONG = (
    ({"eyes": "sync"}, "unknown_camera", "There is no camera 'eyes'"),
    ({"go_eye": "later"}, "bad_value", "must be sync or latest"),
    ({"go_eye": "sync heat"}, "bad_value", "must be sync or latest"),
    ({"go_eye": 3}, "bad_value", "must be sync or latest"),
    ("go_eye", "bad_value", "must be true, or a map"),
)


@pytest.mark.parametrize(("wish", "code", "text"), WRONG)
def test_wrong_wishes_change_nothing(eyes, client, wish, code, text):
    """Ask for images that there are not: one sentence, and no step is made."""
    before = eyes.snapshot.step
    with pytest.raises(ReplyError, match=text) as caught:
        client.ask("step", include_cameras=wish)
    assert caught.value.code == code and eyes.snapshot.step == before


def test_a_camera_can_be_used_at_once(eyes, client):
    """Add cameras, and take images without a pause: each is known, by all ways to name it."""
    client.ask("capture_camera", camera="side")  # the list of cameras is known now
    try:
        for number in range(3):
            name, pos = f"new {number}", [1.0, 1.0, 1.0]
            settings = {**SIZE, "pos": pos, "look_at": [0.0, 0.0, 0.0]}
            client.ask("add_camera", name=name, **settings)
            if number % 2:
                assert name in client.ask("step", include_cameras={name: "sync"})["cameras"]
            else:
                assert client.ask("capture_camera", camera=name)["header"]["camera"] == name
            assert name in client.ask("step", include_cameras=True)["cameras"]
    finally:
        for name in [name for name in eyes.cameras if name.startswith("new ")]:
            eyes.cameras.remove(name)


def test_single_images_cost_the_lab_nothing(eyes, client):
    """Capture an image: it is that of the lab, and the lab's process has not received it."""
    before = eyes.cameras.num_drawn
    reply = client.ask("capture_camera", camera="go_eye", kind="body")
    assert eyes.cameras.num_drawn == before
    plain = {key: int(reply["header"][key]) for key in ("width", "height", "channels")}
    image = decode_image({**reply["header"], **plain}, reply["data"])
    assert np.array_equal(image, eyes.camera("go/eye").frame("body").image)
    result = client.ask("call_verb", verb="capture_camera", fields={"camera": "side"})["result"]
    assert result["frame_id"] == eyes.snapshot.frame_id and len(result["data"]) == 64 * 48 * 3
    assert eyes.cameras.num_drawn == before + 1  # of the comparison
    jpeg = client.ask("capture_camera", camera="side", format="jpeg")["data"]
    assert jpeg[:2] == b"\xff\xd8"


@pytest.mark.parametrize("name", ["unitree_g1/g1.xml", "unitree_go1/go1.xml", "i2rt_yam/yam.xml"])
def test_cameras_of_robots(name):
    """Read third-party robots: each of their cameras is one of the robot, with a name for clients.

    The name is that in the model for clients, without the robot's.
    """
    with LiveLab(world_from_file(robot_file(name)), LabCfg(mode="direct")) as lab:
        roster = RosterCache().get(lab)
        found = robot_cameras(roster)
        assert len(found) == lab.model.ncam > 0
        (robot,) = {robot for robot, _ in found}
        assert set(found.values()) == set(lab.cameras)
        named = [name for name in roster.names.wire["cam"] if name]
        assert {f"{robot}_{short}" for _, short in found} >= set(named)


def test_a_model_that_is_edited_often_is_listed_later(monkeypatch):
    """Let the model change during each look at it: only if that goes on, it is reported."""
    reports: list[str] = []
    stub = SimpleNamespace(
        new_outlets=lambda *_, **__: [], pause=lambda seconds: None, report=reports.append
    )
    server = CameraServer(stub)  # type: ignore[arg-type]
    cameras = SimpleNamespace(cfgs={})
    server._present = server._next = object(), cameras  # type: ignore[assignment]
    port = SimpleNamespace(
        poll=lambda now: True, read_subscriptions=lambda: False, wanted=frozenset()
    )
    monkeypatch.setattr(CameraServer, "ports", [port])
    looks: list[Exception] = []

    def look(cameras) -> None:
        raise looks[-1]

    server.add(SimpleNamespace(list=look, wanted=set))  # type: ignore[arg-type]
    looks.append(VerbError("not_ready", "The model changes all the time: try again later."))
    for expected in (0, 0, 0, 0, 1, 1):
        server._listed = 0.0
        server.run_once()
        assert len(reports) == expected
    looks.append(ValueError("two cameras have one name."))
    server._listed = 0.0
    server.run_once()
    assert reports[1:] == ["Images are not published: two cameras have one name."]
