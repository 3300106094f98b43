"""Streams of states: bytes as the protocol has them."""

from __future__ import annotations

import json
import struct

import mujoco
import numpy as np
import pytest

from manyworlds.lab import LabCfg, LiveLab, world_from_file
from manyworlds.plugins.urlab.control_inbox import ControlInbox
from manyworlds.plugins.urlab.roster import RosterCache
from manyworlds.plugins.urlab.streams import (
    StateEncoder,
    camera_message,
    info_is_due,
    info_message,
    pack_actions,
    pack_base_state,
    pack_control,
    pack_joint,
    pack_sensor,
    pack_twist,
)
from tests.robots import robot_file

GOLDEN = {
    "joint": (pack_joint(3, 0.5, -1.25, 2.0), "030000000000003f0000a0bf00000040"),
    "sensor": (
        pack_sensor(7, [0.0, 0.0, 9.81]),
        "0700000003000000" + "0000000000000000c3f51c41",
    ),
    "base_state": (
        pack_base_state([0, 0, 0.79, 1, 0, 0, 0], [0.1, 0, 0, 0, 0, 0.2]),
        "0000000000000000713d4a3f0000000000000000000000000000803f"
        "cdcccc3d00000000000000000000000000000000cdcc4c3e",
    ),
    "twist": (pack_twist([0.4, 0.0, 0.5]), "cdcccc3e000000000000003f"),
    "actions": (pack_actions(5), "05000000"),
    "control": (
        pack_control([(0, 0.25), (1, -0.5)]),
        "02000000000000000000803e01000000000000bf",
    ),
}
"""Bytes of the protocol, which other programs were written against."""


@pytest.mark.parametrize("kind", GOLDEN)
def test_bytes_are_those_of_the_protocol(kind):
    """Pack known values: the bytes are those that other programs read."""
    packed, expected = GOLDEN[kind]
    assert packed.hex() == expected


def decode_rows(messages):
    """Decode messages as a program in any language would."""
    rows = {}
    for topic, payload in messages:
        robot, kind, *name = topic.decode().split("/")
        if kind == "joint":
            rows[robot, kind, *name] = struct.unpack("<Ifff", payload)
        elif kind == "sensor":
            dim = struct.unpack_from("<ii", payload)[1]
            rows[robot, kind, *name] = struct.unpack(f"<ii{dim}f", payload)
        else:
            rows[robot, kind, *name] = struct.unpack({"twist": "<3f"}.get(kind, "<13f"), payload)
    return rows


def test_all_rows_of_a_world(lab, roster):
    """Step two robots: each joint, sensor and free joint is published with its values."""
    lab["go"].write("net", {"hip": 1.0})
    snapshot = lab.step(20)
    status = lab.call("read_status")["robots"]
    rows = decode_rows(StateEncoder(roster).encode(snapshot, status))
    model = lab.model
    assert {key[:2] for key in rows} == {
        (robot, kind) for robot in ("go", "go2") for kind in ("joint", "sensor", "base_state")
    }
    for robot in ("go", "go2"):
        for name in ("root", "hip", "knee"):
            joint = model.joint(f"{robot}/{name}")
            q, v = joint.qposadr[0], joint.dofadr[0]
            expected = snapshot.qpos[q], snapshot.qvel[v], snapshot.qacc[v]
            assert rows[robot, "joint", name] == (joint.id, *np.float32(expected))
        sensor = model.sensor(f"{robot}/gyro")
        values = snapshot.sensordata[sensor.adr[0] :][:3]
        assert rows[robot, "sensor", "gyro"] == (sensor.id, 3, *np.float32(values))
        q = model.joint(f"{robot}/root").qposadr[0]
        base = rows[robot, "base_state", "root"]
        assert base[3:7] == tuple(np.float32(snapshot.qpos[[q + 4, q + 5, q + 6, q + 3]]))
    assert rows["go", "joint", "hip"] != rows["go2", "joint", "hip"]


@pytest.mark.parametrize("name", ["unitree_go1/go1.xml", "unitree_g1/g1.xml", "i2rt_yam/yam.xml"])
def test_rows_of_robots(name):
    """Encode third-party robots: as many rows as joints, sensors and free joints."""
    with LiveLab(world_from_file(robot_file(name)), LabCfg(mode="direct")) as lab:
        roster = RosterCache().get(lab)
        rows = decode_rows(StateEncoder(roster).encode(lab.step(), {}))
        model = lab.model
        free = int((model.jnt_type == mujoco.mjtJoint.mjJNT_FREE).sum())
        assert len(rows) == model.njnt + model.nsensor + free
        (robot,) = roster.articulations
        info = json.loads(info_message(roster, robot))
        names = [model.actuator(i).name for i in range(model.nactuator)]
        assert info["names"] == [f"{robot.name}_{n}" for n in names] and len(names) == len(
            info["ids"]
        )


def test_twist_and_actions_are_published_when_there_are_any(lab, roster):
    """Switch actions on: a row appears; twist comes with a velocity command only."""
    lab.call("set_actions", robot="go", actions=5)
    status = lab.call("read_status")["robots"]
    status["go2"]["twist"] = [0.4, 0.0, 0.5]
    rows = dict(StateEncoder(roster).encode(lab.snapshot, status))
    assert rows[b"go/actions"].hex() == "05000000" and b"go2/actions" not in rows
    assert rows[b"go2/twist"].hex() == "cdcccc3e000000000000003f" and b"go/twist" not in rows


def test_loose_bodies_are_doubles(lab, roster):
    """Read the box: pose and velocity as 64-bit numbers."""
    snapshot = lab.step(3)
    rows = dict(StateEncoder(roster).encode_entities(snapshot))
    assert {topic for topic in rows} == {
        b"scene/box/" + f for f in (b"xpos", b"xquat", b"qpos", b"qvel")
    }
    body = lab.model.body("box/box").id
    assert struct.unpack("<4d", rows[b"scene/box/xquat"]) == tuple(snapshot.xquat[body])


def test_the_list_of_actuators(lab, roster):
    """Read the list: names, ids and ranges, with a mark for those without limits."""
    info = json.loads(info_message(roster, roster.members["go2"]))
    assert info["type"] == "actuator_list" and info["robot"] == "go2"
    assert info["names"] == ["go2_hip", "go2_lag"] and info["ids"] == [2, 3]
    assert (info["mins"], info["maxs"]) == ([-5.0, -100.0], [5.0, 100.0])
    assert info["limited"] == [True, False]


def test_the_list_comes_often_at_first():
    """Count frames: a list every 50 of the first 2500, then every 500, none is missed."""
    assert info_is_due(-1, 0)
    assert sum(info_is_due(i - 1, i) for i in range(1, 2501)) == 50
    assert sum(info_is_due(i - 1, i) for i in range(2501, 10_001)) == 15
    assert info_is_due(30, 130)  # frames that a reader has missed


def test_pictures_have_a_topic_with_a_space():
    """Pack a picture: topic and bytes alone, as the protocol has it."""
    picture = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    assert camera_message("go", "eye", picture) == (b"go/camera/eye ", picture.tobytes())
    depth = np.ones((2, 3))
    assert camera_message("go", "eye", depth)[1] == struct.pack("<6f", *[1.0] * 6)


@pytest.mark.parametrize("space", [b"", b" "])
def test_the_last_of_many_commands_wins(lab, roster, space):
    """Queue 1000 commands before a step: the last value of each actuator is applied, once."""
    inbox = ControlInbox()
    for i in range(1000):
        inbox.put([b"go/control" + space, pack_control([(0, i * 0.001)])], roster)
    inbox.put([b"go/control" + space, pack_control([(1, 0.5)])], roster)
    inbox.flush(lab)
    assert lab["go"].command.targets.tolist() == pytest.approx([0.999, 0.5])
    assert inbox.stats["control"] == 1001 and inbox.is_empty
    lab.step()
    assert lab.snapshot.ctrl[:2].tolist() == pytest.approx([0.999, 0.5])


def test_robots_are_matched_by_their_whole_names(lab, roster):
    """Send to `go`: `go2` does not move, and ids of one are not accepted for the other."""
    inbox = ControlInbox()
    inbox.put([b"go/control ", pack_control([(0, 1.0), (2, 2.0)])], roster)
    inbox.flush(lab)
    assert lab["go"].command.targets.tolist() == [1.0, 0.0]
    assert lab["go2"].command.targets.tolist() == [0.0, 0.0]
    assert inbox.stats["unknown_actuator"] == 1


def test_gains_reach_one_robot(lab, roster):
    """Send gains to `go` by short and full names: `go2` keeps its own, others stay."""
    from manyworlds.lab import PdController

    for name in ("go", "go2"):
        lab[name].controller = PdController(lab.model, lab[name].actuators)
        lab[name].enabled = False
    inbox = ControlInbox()
    inbox.put([b"go/set_gains ", b'{"hip": {"kp": 7, "torque_limit": 3}}'], roster)
    inbox.put([b"go/set_gains", b'{"go_hip": {"kv": 2.5}}'], roster)
    inbox.flush(lab)
    assert lab["go"].controller.gains["hip"] == {"kp": 7.0, "kd": 2.5, "limit": 3.0}
    assert lab["go2"].controller.gains["hip"]["kp"] == 100.0
    assert lab["go"].enabled and not lab["go2"].enabled


BAD = (
    ([b"go/control "], "malformed"),
    ([b"go/control ", b"x", b"y"], "malformed"),
    ([b"go/control ", b""], "malformed"),
    ([b"go/control ", b"\x02\0\0\0" + b"\0" * 8], "malformed"),
    ([b"go/control ", b"\xff\xff\xff\xff"], "malformed"),
    ([b"go/control ", pack_control([(99, 1.0)])], "unknown_actuator"),
    ([b"go/control ", pack_control([(0, float("nan"))])], "not_finite"),
    ([b"goo/control ", pack_control([(0, 1.0)])], "unknown_robot"),
    ([b"box/control ", pack_control([(0, 1.0)])], "unknown_robot"),
    ([b"\xff\xfe", b""], "unknown_topic"),
    ([b"go/fly ", b""], "unknown_topic"),
    ([b"go/set_gains ", b"{"], "malformed"),
    ([b"go/set_gains ", b"[]"], "malformed"),
    ([b"go/set_gains ", b'{"hip": 1}'], "malformed"),
    ([b"go/set_gains ", b'{"hip": {"kp": NaN}}'], "malformed"),
    ([b"go/set_gains ", b'{"hip": {"kp": 1' + b"0" * 400 + b"}}"], "malformed"),
    ([b"go/set_gains ", b'{"hip": {"stiffness": 1}}'], "malformed"),
    ([b"go/set_gains ", b'{"hip": {"kp": 1}}'], "refused"),  # there is no PD law
)


@pytest.mark.parametrize(("frames", "counter"), BAD)
def test_bad_messages_are_counted_and_change_nothing(lab, roster, frames, counter):
    """Send what is wrong 501 times: a counter tells, two warnings are given, nothing moves."""
    said: list[str] = []
    inbox = ControlInbox(said.append)
    for _ in range(501):
        inbox.put(frames, roster)
    if counter == "refused":
        for _ in range(501):
            inbox.flush(lab)
            inbox.put(frames, roster)
    assert inbox.stats[counter] == 501 and inbox.stats["control"] == 0
    assert len(said) == 2 and all("\n" not in text for text in said)
    assert lab["go"].command.targets.tolist() == [0.0, 0.0]


def test_targets_of_others_are_told(lab, roster):
    """Let the panel own the robot: targets from the network are counted, and said to be ignored."""
    lab["go"].take("panel")
    said: list[str] = []
    inbox = ControlInbox(said.append)
    inbox.put([b"go/control ", pack_control([(0, 1.0)])], roster)
    inbox.flush(lab)
    assert inbox.stats["not_owner"] == 1 and "which 'panel' owns" in said[0]
    assert lab["go"].ignored == {"net": 1}
