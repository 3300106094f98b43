"""Verbs: one registry of everything that can be done to a live world."""

from __future__ import annotations

import ast
import inspect
import json
import math
import re
import threading
from pathlib import Path

import mujoco
import numpy as np
import pytest

import manyworlds.lab.page
from manyworlds.lab import LabCfg, LiveLab, RecorderCfg, world_from_file, world_from_spec
from manyworlds.lab.verbs import VERBS, VerbError, describe_verbs
from manyworlds.lab.verbs.registry import ALWAYS
from tests.lab.conftest import ARM
from tests.robots import robot_file
from tests.waiting import PATIENCE_S

KEYED = ARM.replace(
    "</actuator>",
    "</actuator><keyframe><key name='up' qpos='-1.5 0 1 0 .3 1 0 0 0' ctrl='0 0'/></keyframe>",
)

TETRAHEDRON = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


@pytest.fixture
def lab(tmp_path):
    """A lab of the arm with a keyframe, in direct mode, whose recordings lie in a folder."""
    world = world_from_spec(mujoco.MjSpec.from_string(KEYED))
    cfg = LabCfg(mode="direct", recorder=RecorderCfg(folder=tmp_path))
    with LiveLab(world, cfg) as lab:
        lab.source = lambda: LiveLab(world_from_spec(mujoco.MjSpec.from_string(KEYED)), cfg)
        yield lab


CUP = b"""<mujoco model="cup"><worldbody><body name="cup"><freejoint/><geom size=".05"/></body>
    </worldbody></mujoco>"""
SCRIPT: tuple[tuple[str, dict[str, object]], ...] = (
    ("set_paused", {"paused": True}),
    ("set_paused", {"paused": False}),
    ("set_mode", {"mode": "direct"}),
    ("set_sim_speed", {"percent": 50.0}),
    ("take_robot", {"robot": "arm", "owner": "script"}),
    ("set_targets", {"robot": "arm", "owner": "script", "targets": {"elbow": 2.0}}),
    ("reset_targets", {"robot": "arm", "owner": "script"}),
    ("release_robot", {"robot": "arm", "owner": "script"}),
    ("enable_controller", {"robot": "arm", "enabled": True}),
    ("list_keyframes", {"robot": "arm"}),
    ("apply_keyframe", {"robot": "arm", "keyframe_name": "up", "root": "authored"}),
    ("hold_keyframe", {"robot": "arm"}),
    ("stop_hold", {"robot": "arm"}),
    ("set_sim_options", {"options": {"timestep": 0.004, "gravity": [0, 0, -1]}}),
    ("set_threads", {"num_threads": 1}),
    ("read_sim_options", {}),
    ("set_threads", {"num_threads": 0}),
    ("set_sim_flag", {"flag": "contact", "on": False}),
    ("set_model", {"element": "body:lower", "field": "mass", "value": 2.0}),
    ("read_element", {"element": "joint:elbow"}),
    ("undo", {}),
    ("redo", {}),
    ("reset_model", {"element": "body:lower"}),
    ("read_names", {"kind": "actuator"}),
    ("set_joint_qpos", {"joint": "elbow", "qpos": [0.2], "still": True}),
    ("set_mocap_pose", {"body": "post", "pos": [1, 2, 3]}),
    ("read_mocap_pose", {"body": "post"}),
    ("pick_body", {"origin": [1, 2, 9], "direction": [0, 0, -1]}),
    ("grab_body", {"body": "ball", "point": [0.5, 0, 0.3]}),
    ("pull_body", {"target": [0.5, 0, 0.6]}),
    ("turn_body", {"quat": [1, 0, 0, 0]}),
    ("drag_body", {"body": "ball", "localpos": [0, 0, 0.1], "target": [0.5, 0, 0.6]}),
    ("push_body", {"body": "ball", "force": [0, 0, 1]}),
    ("bind_input", {"robot": "arm", "input": "KeyG", "actuator": "elbow"}),
    ("set_drive_speeds", {"forward": 1.0}),
    ("drive", {"robot": "arm", "inputs": {"KeyG": 1.0}}),
    ("read_driving", {}),
    ("stop_driving", {"robot": "arm"}),
    ("unbind_input", {"input": "KeyG"}),
    ("aim_launcher", {"body": "ball", "point": [0, 0, 1]}),
    ("read_launcher", {}),
    ("fire_launcher", {}),
    ("forget_launch", {"body": "ball"}),
    ("watch_contacts", {"first": "ball"}),
    ("read_contact_events", {}),
    ("unwatch_contacts", {"watch": 0}),
    ("set_sim_flag", {"flag": "sleep", "on": True}),
    ("put_bodies_to_sleep", {"body": "ball"}),
    ("wake_bodies", {}),
    ("set_sim_flag", {"flag": "sleep", "on": False}),
    ("release_body", {}),
    ("add_camera", {"name": "eye", "pos": [1, 1, 1], "look_at": [0, 0, 0], "body": "lower"}),
    ("configure_camera", {"camera": "eye", "width": 64, "height": 48, "rate": 10, "delay": 0}),
    ("move_camera", {"camera": "eye", "pos": [1, 0, 1], "quat": [1, 0, 0, 0], "fovy": 60}),
    ("list_cameras", {}),
    ("remove_camera", {"camera": "eye"}),
    ("recording_start", {"name": "a.mcap"}),
    ("step", {"n_steps": 20}),
    ("read_status", {}),
    ("read_server", {}),
    ("read_robot", {"robot": "arm"}),
    ("read_captures", {"kinds": ["contacts", "tendons", "joints", "groups"]}),
    ("list_quantities", {}),
    ("read_series", {"names": ["elbow position", "number of contacts"]}),
    ("set_recording_view", {"view": [1, 2, 3, -20, 90, 0]}),
    ("describe_world", {}),
    ("export_model", {"sources": True}),
    ("forward", {}),
    ("get_contacts", {"filter": {"subtree": "ball"}}),
    ("set_actions", {"robot": "arm", "actions": 5}),
    ("recording_stop", {}),
    ("capture_state", {"label": "here"}),
    ("list_states", {}),
    ("recording_save", {"path": "b.csv"}),
    ("recording_export", {"path": "c.json"}),
    ("replay_list_sessions", {}),
    ("replay_load", {"path": "b.csv"}),
    ("replay_set_active", {"name": "a.mcap"}),
    ("set_replay_role", {"robot": "arm"}),
    ("set_replay", {"rate": 1.0, "loop": False}),
    ("replay_start", {}),
    ("replay_pause", {}),
    ("replay_seek", {"replay_time": 0.01}),
    ("replay_step_frames", {"n_frames": 2}),
    ("replay_play", {}),
    ("replay_stop", {}),
    ("recording_clear", {}),
    ("export_state", {"label": "here"}),
    ("restore_state", {"label": "here"}),
    ("drop_state", {"label": "here"}),
    ("step", {"n_steps": 5}),
    ("read_timeline", {}),
    ("timeline_seek", {"ago": 0.004}),
    ("timeline_step", {"n_frames": -1}),
    ("timeline_leave", {}),
    ("timeline_branch", {"ago": 0.004, "play": True}),
    ("timeline_swap", {}),
    ("timeline_save", {"path": "d.mcap", "seconds": 0.02}),
    (
        "set_camera_path",
        {"camera_path": {"waypoints": [{"time": 0.0, "pos": [0, 0, 1], "quat": [1, 0, 0, 0]}]}},
    ),
    ("read_camera_path", {}),
    ("save_camera_path", {"path": "fly"}),
    ("load_camera_path", {"path": "fly.camera.json"}),
    ("film_start", {"source": "next", "seconds": 9.0}),
    ("read_film", {}),
    ("film_cancel", {}),
    ("reset", {}),
    ("set_qpos", {"target": "arm", "qpos": [0.1] * 9, "still": True}),
    ("add_prop", {"shape": "box", "size": [0.1, 0.1, 0.1], "name": "crate"}),
    ("add_mesh_prop", {"content": TETRAHEDRON, "file_name": "rock.obj", "threshold": 0}),
    ("read_conversion", {"conversion": 0}),
    ("cancel_conversion", {"conversion": 0}),
    ("read_region_heights", {"resolution": [3, 4]}),
    ("add_height_field", {"resolution": [3, 4], "exclude": ["crate/prop"]}),
    ("reload", {}),
    ("draw_shape", {"name": "goal", "kind": "marker", "points": [0, 0, 1]}),
    ("read_drawings", {}),
    ("clear_drawings", {}),
    ("list_sources", {}),
    ("upload_item", {"file": "cup.xml", "content": CUP, "name": "cup"}),
    ("add_item", {"source": "cartpole", "name": "pole", "pos": [0, 3, 0]}),
    ("duplicate_item", {"item": "cup", "name": "mug"}),
    ("add_item_grid", {"item": "cup", "rows": 1, "columns": 2}),
    ("add_light", {}),
    ("apply_scene", {"items": [{"id": "second", "source": "cartpole", "pos": [0, -3, 0]}]}),
    ("list_items", {}),
    ("move_item", {"item": "mug", "pos": [0, 0, 2]}),
    ("rename_item", {"item": "mug", "name": "glass"}),
    ("select_item", {"item": "glass"}),
    ("read_item_bounds", {"item": "glass"}),
    ("read_item_pose", {"item": "glass"}),
    ("read_item_tree", {}),
    ("remove_item", {"item": "glass"}),
    ("add_body", {"name": "gate"}),
    ("add_geom", {"body": "gate/base", "name": "knob", "shape": "sphere"}),
    ("add_joint", {"body": "gate/base", "name": "hinge"}),
    ("add_actuator", {"joint": "gate/hinge"}),
    ("remove_element", {"kind": "geom", "name": "gate/knob"}),
)
"""Fields of each verb, but of those that need more than this lab."""
ELSEWHERE = {"set_command", "play_sequence", "stop_sequence", "import_state", "recording_import"}
ELSEWHERE |= {"run_policy", "add_mesh_prop_from_file", "add_item_file"}  # need a file
ELSEWHERE |= {"save_scene", "open_scene"}  # need a folder
ELSEWHERE |= {"decompose_mesh", "remove_decomposition"}  # need a mesh that collides
ELSEWHERE |= {"set_twist", "set_gains", "show_state"}  # need a policy, a PD law, another mode
ELSEWHERE |= {  # they need an environment
    *("steer_command", "seek_motion", "set_auto_reset"),
    *("read_task", "read_task_report", "read_debug_shapes", "reset_task", "step_task"),
    *("read_task_details", "set_terrain_cell"),
}
ELSEWHERE |= {  # they need a training
    *("read_training", "read_worst_episodes", "rewind_training", "push_training"),
    *("compare_futures", "send_start_state", "send_disturbance", "send_case"),
    *("send_randomization", "send_value", "send_edit"),
}
ELSEWHERE |= {"capture_camera", "release_client"}  # need OpenGL, a server


def test_replies_are_as_declared(lab):
    """Carry out each verb: its reply has the declared fields, of their types, and a frame."""
    assert {name for name, _ in SCRIPT} | ELSEWHERE == set(VERBS)
    frame = -1
    for name, fields in SCRIPT:
        reply = lab.call(name, **fields)
        declared = {**VERBS[name].reply, **ALWAYS}
        assert set(reply) == set(declared), name
        for key, value in reply.items():
            declared[key].check(value, lab)
        assert frame <= reply["frame_id"] <= lab.snapshot.frame_id
        frame = reply["frame_id"]


def test_effects_are_seen(lab):
    """Carry out verbs in a running world: the snapshot after each shows its effect."""
    lab.loop.mode = "live"
    lab.call("set_paused", paused=True)
    assert lab.snapshot.paused
    lab.call("set_mocap_pose", body="post", pos=[1, 2, 3], quat=[0, 2, 0, 0])
    assert lab.snapshot.mocap_pos[0].tolist() == [1, 2, 3]
    assert lab.snapshot.mocap_quat[0].tolist() == [0, 1, 0, 0]
    lab.call("apply_keyframe", robot="arm", keyframe_name="up")
    assert lab.snapshot.qpos[0] == -1.5
    assert lab.call("pick_body", origin=[1, 2, 9], direction=[0, 0, -1])["body"] == "post"
    assert lab.call("set_sim_speed", percent=25)["percent"] == 25.0 and lab.loop.speed == 0.25
    assert lab.call("set_sim_speed", percent=math.inf)["percent"] == math.inf
    reply = lab.call("set_targets", robot="arm", owner="script", targets={"elbow": 1})
    assert reply["accepted"] is False and reply["owner"] == "panel"
    lab.call("set_sim_options", options={"timestep": 0.004, "cone": 1})
    assert (lab.world.model.opt.timestep, lab.world.model.opt.cone) == (0.004, 1)
    lab.call("set_sim_flag", flag="sleep", on=True)
    assert lab.world.model.opt.enableflags == mujoco.mjtEnableBit.mjENBL_SLEEP
    before = lab.snapshot.step
    assert lab.call("step", n_steps=3.0)["step"] == before + 3


def test_the_status_has_what_snapshots_have_not(lab):
    """Change owners, recordings and replays, and let a callback fail: the status is plain data."""
    lab.call("take_robot", robot="arm", owner="script")
    lab.call("set_targets", robot="arm", owner="script", targets={"elbow": 2.0})
    lab.call("set_targets", robot="arm", targets={"elbow": 3.0})
    lab.loop.on_pre_step(lambda *_: 1 / 0)
    lab.call("recording_start", name="a.mcap")
    lab.call("step", n_steps=5)
    status = lab.call("read_status")
    assert json.loads(json.dumps(status)) == status
    arm = status["robots"]["arm"]
    assert arm["owner"] == "script" and arm["targets"] == {"shoulder": 0.0, "elbow": 2.0}
    assert arm["ignored"] == {"panel": 1} and arm["reasons"] == lab.why_not_moving("arm")
    assert status["recording"]["num_frames"] == 5 and status["recording"]["file"] == "a.mcap"
    assert "ZeroDivisionError" in status["failures"][0] and status["state"] == "running"
    lab.call("hold_keyframe", robot="arm")
    lab.call("replay_start", session="Live")
    status = lab.call("read_status")
    assert status["held"] == ["arm"] and status["replay"]["session"] == "Live"
    assert status["driver"] == {"name": "replay", "owner": "replay"}


def test_facts_are_gathered_when_they_may_have_changed(lab):
    """Read facts without an age: a verb that changes something expires them, and a rebuild."""
    lab.gathered.max_age = 1e9
    before = lab.facts
    lab["arm"].take("script")
    lab.call("read_status")
    lab.call("step", n_steps=2)  # at the rate of control
    assert lab.facts is before and before.robots["arm"].owner == "panel"
    lab.call("capture_state", label="here")
    assert lab.facts.robots["arm"].owner == "script" and lab.facts.states == ["here"]
    lab["arm"].take("panel")
    assert lab.rebuild(lab.world)
    assert lab.facts.robots["arm"].owner == "panel"
    lab.gathered.max_age = -math.inf
    lab["arm"].take("net")
    assert lab.facts.robots["arm"].owner == "net"


WRONG = (
    ("fly", {}, "unknown_op", "There is no verb 'fly'"),
    ("rset", {}, "unknown_op", r"no verb 'rset'; did you mean 'reset'\?"),
    ("set_paused", {}, "missing_field", r"set_paused needs 'paused' \(true to pause\)\."),
    ("set_paused", {"paused": 1}, "bad_value", "paused must be true or false, got 1"),
    ("set_paused", {"pause": True}, "bad_request", r"no field 'pause'; fields: paused; did you"),
    ("set_sim_speed", {"percent": math.nan}, "bad_value", r"from 5 to 1000 \[%\], or inf, got nan"),
    ("set_sim_speed", {"percent": 4.9}, "bad_value", r"from 5 to 1000 \[%\], or inf, got 4\.9"),
    ("set_sim_speed", {"percent": "fast"}, "bad_value", "percent must be a number .*got 'fast'"),
    ("step", {"n_steps": 0}, "bad_value", "n_steps must be a whole number from 1 to 1e.09, got 0"),
    ("step", {"n_steps": 1.5}, "bad_value", "must be a whole number"),
    ("set_mode", {"mode": "fly"}, "bad_value", "one of live, direct, puppet, auto, got 'fly'"),
    (
        "take_robot",
        {"robot": "amr", "owner": "me"},
        "unknown_robot",
        r"robot must be the name of a robot \(arm\), got 'amr'; did you mean 'arm'\?",
    ),
    ("set_targets", {"robot": "arm", "targets": {"elbow": math.nan}}, "bad_value", "'elbow'"),
    ("set_targets", {"robot": "arm", "targets": {"wrist": 1.0}}, "bad_value", "actuator 'wrist'"),
    ("set_targets", {"robot": "arm", "targets": [1.0]}, "bad_value", "a map of numbers by name"),
    ("set_mocap_pose", {"body": "ball", "pos": [0] * 3}, "not_mocap_body", r"mocap body \(post\)"),
    ("set_mocap_pose", {"body": "post", "pos": [0, 0]}, "bad_value", r"3 finite numbers \[m\]"),
    ("set_mocap_pose", {"body": "post", "quat": [0] * 4}, "bad_value", "not all 0"),
    ("grab_body", {"body": "bal", "point": [0] * 3}, "unknown_body", "did you mean 'ball'"),
    ("grab_body", {"body": 0, "point": [0] * 3}, "unknown_body", "an id from 1 to 4, got 0"),
    ("pull_body", {"target": [0, 0, math.inf]}, "bad_value", "3 finite numbers"),
    ("push_body", {"body": "ball", "torque": [0, 0]}, "bad_value", r"3 finite numbers \[N m\]"),
    ("set_sim_options", {"options": {"timestp": 1}}, "bad_value", "did you mean 'timestep'"),
    ("set_sim_options", {"options": {"timestep": 0}}, "bad_value", "above 0 s, got 0"),
    ("set_sim_options", {"options": {"gravity": [1, 2]}}, "bad_value", r"has shape \(3,\)"),
    ("set_sim_options", {"options": {"timestep": "fast"}}, "bad_value", "a number, got 'fast'"),
    ("set_sim_options", {"options": {"solver": 9}}, "bad_value", "solver must be one of"),
    ("set_threads", {"num_threads": -1}, "bad_value", "from 0 to 64, got -1"),
    ("apply_keyframe", {"robot": "arm", "keyframe_name": "x"}, "bad_value", "available: up"),
    ("restore_state", {"label": "x"}, "unknown_state", r"name of a state \(there is none\)"),
    ("set_command", {"robot": "arm", "command": "c", "values": [1]}, "bad_value", "has none"),
    ("play_sequence", {"robot": "arm", "sequence": "Sit"}, "bad_value", "no preset 'Sit'"),
    ("replay_seek", {"replay_time": 1.0}, "not_ready", "Nothing is played"),
    ("replay_set_active", {"name": "../x.csv"}, "bad_value", "not a valid name"),
    ("recording_save", {"path": "a.csv"}, "bad_value", "no frames to save"),
    ("recording_import", {"path": "a.csv", "content": "text"}, "bad_value", "must be bytes"),
    ("import_state", {"content": b"none"}, "bad_value", "is no saved state"),
    ("set_replay", {"rate": 0.0}, "bad_value", "rate must not be 0"),
    ("read_captures", {"kinds": ["contact"]}, "bad_value", "'contact'; did you mean 'contacts'"),
    ("set_recording_view", {"view": [1, 2, 3]}, "bad_value", "6 finite numbers"),
    ("read_robot", {"robot": "ar"}, "unknown_robot", "did you mean 'arm'"),
    ("read_task", {}, "not_ready", "no environment steps this world"),
    ("read_debug_shapes", {}, "not_ready", "no environment steps this world"),
    ("capture_camera", {"camera": "up"}, "unknown_camera", r"of a camera \(there is none\)"),
    ("step", {"include_cameras": {"up": "sync"}}, "unknown_camera", "no camera 'up' .there is no"),
    ("add_camera", {"name": "", "pos": [0] * 3}, "name_taken", "A camera needs a name"),
    ("add_camera", {"name": "a", "pos": [0] * 3, "body": "bal"}, "unknown_body", "mean 'ball'"),
    (
        "add_camera",
        {"name": "a", "pos": [0] * 3, "quat": [1, 0, 0, 0], "look_at": [0, 0, 1]},
        "bad_request",
        "give quat or look_at, not both",
    ),
    ("add_camera", {"name": "a", "pos": [0] * 3, "look_at": [0] * 3}, "bad_value", "another point"),
    ("add_camera", {"name": "a", "pos": [0] * 3, "width": 5000}, "bad_value", "from 1 to 4096"),
    ("add_camera", {"name": "a", "pos": [0] * 3, "rate": 0}, "bad_value", r"1000 \[Hz\], got 0"),
    ("add_camera", {"name": "a", "pos": [0] * 3, "fovy": 180}, "bad_value", r"179 \[degrees\]"),
    (
        "add_camera",
        {"name": "a", "pos": [0] * 3, "intrinsics": [0, 1, 1, 1]},
        "bad_value",
        "Camera 'a': focal lengths must be positive",
    ),
)


@pytest.mark.parametrize(("name", "fields", "code", "message"), WRONG)
def test_wrong_input_is_one_sentence(lab, name, fields, code, message):
    """Send what is wrong: one error with a code and the remedy, and nothing has changed."""
    before = lab.snapshot
    with pytest.raises(VerbError, match=message) as caught:
        lab.call(name, **fields)
    assert caught.value.code == code
    assert "\n" not in str(caught.value)
    assert np.array_equal(lab.snapshot.block, before.block)
    assert lab.snapshot.model_version == before.model_version


def test_options_are_changed_all_or_none(lab):
    """Name a good option before a bad one: the good one stays as it was."""
    with pytest.raises(VerbError):
        lab.call("set_sim_options", options={"timestep": 0.004, "solver": 9})
    assert lab.world.model.opt.timestep == 0.002


def test_only_edits_of_the_model_raise_its_version(lab):
    """Carry out all verbs: the version rises with options, models and programs' posts."""
    versions = {}
    for name, fields in SCRIPT:
        before = lab.snapshot.model_version
        lab.call(name, **fields)
        versions[name] = lab.snapshot.model_version - before
    rises = {"set_sim_options", "set_sim_flag", "reload", "undo", "redo"}
    rises |= {"set_model", "reset_model"}
    rises |= {"add_prop", "add_mesh_prop", "add_height_field", "add_item", "upload_item"}
    rises |= {"duplicate_item", "add_item_grid", "add_light", "apply_scene", "rename_item"}
    rises |= {"move_item", "remove_item", "remove_element"}
    rises |= {"add_body", "add_geom", "add_joint", "add_actuator"}
    assert {name for name, rise in versions.items() if rise} == rises
    before = lab.snapshot.model_version
    lab.read(lambda model, data: data.time).result(PATIENCE_S)
    assert lab.snapshot.model_version == before
    lab.post(lambda model, data: model.body_mass.__setitem__(1, 2.0)).result(PATIENCE_S)
    assert lab.snapshot.model_version == before + 1
    assert lab.rebuild(lab.world) and lab.snapshot.model_version > before + 1


def test_files_go_through_verbs(lab):
    """Export a state and a recording, and import them under other names."""
    lab.call("capture_state", label="here")
    content = lab.call("export_state", label="here")["content"]
    lab.call("drop_state", label="here")
    assert lab.call("import_state", content=content)["label"] == "here"
    lab.call("recording_start", name="a.mcap")
    lab.call("step", n_steps=5)
    lab.call("recording_stop")
    content = lab.call("recording_export", path="b.csv")["content"]
    assert lab.call("recording_import", path="c.csv", content=content)["name"] == "c.csv"
    assert lab.call("replay_list_sessions")["sessions"] == ["Live", "a.mcap", "b.csv", "c.csv"]


def test_the_catalogue_is_plain_data():
    """Read the catalogue: JSON has it whole, each verb and field says what it is."""
    catalogue = describe_verbs()
    assert json.loads(json.dumps(catalogue)) == catalogue and len(catalogue) == len(VERBS)
    for entry in catalogue:
        assert entry["text"].endswith("."), entry["name"]
        for field in entry["fields"]:
            assert field["text"] and field["type"], (entry["name"], field)
            assert field["required"] or "default" in field
    for name, verb in VERBS.items():
        parameters = list(inspect.signature(verb.call).parameters)
        assert parameters[0] == "lab" and parameters[1:] == list(verb.fields), name


def test_verbs_that_only_read_say_so():
    """List them: observers may call these, and clients repeat them after a reconnect."""
    reads = {
        *("capture_camera", "describe_world", "export_model", "export_state", "get_contacts"),
        *("list_cameras", "list_items", "list_keyframes", "list_quantities", "list_sources"),
        *("list_states", "read_series"),
        *("pick_body", "read_camera_path", "read_captures", "read_contact_events"),
        *("read_conversion", "read_debug_shapes", "read_drawings", "read_driving", "read_element"),
        *("read_film", "read_item_bounds", "read_item_pose", "read_item_tree", "read_launcher"),
        *("read_mocap_pose", "read_names", "read_region_heights", "read_robot", "read_server"),
        *("read_sim_options", "read_status", "read_task", "read_task_details"),
        *("read_task_report", "read_timeline", "read_training", "read_worst_episodes"),
        "replay_list_sessions",
    }
    assert {name for name, verb in VERBS.items() if verb.reads} == reads
    assert {entry["name"] for entry in describe_verbs() if entry["reads"]} == reads


def test_the_documentation_names_all_verbs():
    """Compare the table of docs/lab.md with the registry."""
    text = (Path(__file__).parents[2] / "docs" / "lab.md").read_text()
    table = text.partition("| verbs | |")[2].partition("## Time")[0]
    assert sorted(re.findall(r"`(\w+)`", table)) == sorted(VERBS)


@pytest.mark.parametrize("name", ["unitree_go1/go1.xml", "unitree_g1/g1.xml", "i2rt_yam/yam.xml"])
def test_verbs_of_robots(name):
    """Drive third-party robots by verbs alone."""
    lab = LiveLab(world_from_file(robot_file(name)), LabCfg(mode="direct"))
    body = lab.world.model.body(lab.world.model.nbody - 1).name
    point = lab.snapshot.xpos[-1].tolist()
    lab.call("grab_body", body=body, point=point)
    lab.call("pull_body", target=[point[0], point[1], point[2] + 1.0])
    assert lab.call("step", n_steps=10)["step"] == 10
    assert np.abs(lab.snapshot.xfrc_applied[-1]).max() > 0.0
    lab.call("release_body")
    lab.call("reset")
    assert lab.snapshot.time == 0.0 and not lab.snapshot.xfrc_applied.any()
    for robot in lab.controls:
        actuator = robot.actuators.names[0]
        lab.call("set_targets", robot=robot.name, targets={actuator: 0.1})
        lab.call("step")
        assert lab.snapshot.ctrl[robot.actuators.ids[0]] == 0.1
    lab.stop()


WRITERS = {
    *("post", "do", "drive", "release", "set_option", "set_threads", "rebuild"),
    *("run_policy", "run_sequence", "take", "write", "pull", "turn", "grab"),
    *("hold", "stop_hold", "save", "restore", "pack", "unpack", "seek", "step_frames"),
}


def test_the_page_changes_the_world_by_verbs_alone():
    """Read the page's source: it calls no method that writes, and sets no part of the lab."""
    folder = Path(str(manyworlds.lab.page.__file__)).parent
    wrong = []
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner = ast.unparse(node.func.value)
                of_lab = "lab" in owner or owner.endswith(("recorder", "replay", "robot"))
                wrong += [f"{path.name}: {ast.unparse(node.func)}"] * (
                    of_lab and node.func.attr in WRITERS
                )
            targets = node.targets if isinstance(node, ast.Assign) else []
            for target in targets:
                if isinstance(target, ast.Attribute) and ".lab." in ast.unparse(target):
                    wrong.append(f"{path.name}: {ast.unparse(target)} =")
    assert not wrong


def test_a_reload_continues_by_name(tmp_path):
    """Change a file and reload it; break it: the error is a verb's, and the world continues."""
    path = tmp_path / "arm.xml"
    path.write_text(ARM)
    lab = LiveLab(world_from_file(path), LabCfg(mode="direct"))
    with pytest.raises(VerbError, match="source of this lab is not known") as caught:
        lab.call("reload")
    assert caught.value.code == "not_ready"
    lab.source = lambda: LiveLab(world_from_file(path))
    lab.call("set_targets", robot="arm", targets={"elbow": 2.0})
    before, threads = lab.step(20), threading.active_count()
    path.write_text(ARM.replace('name="ball"', 'name="globe"').replace(' pos=".5 0 .3"', ""))
    reply = lab.call("reload")
    assert reply["kept"] == ["shoulder", "elbow"] and reply["fresh"] == ["globe:0"]
    assert lab.snapshot.qpos[:2].tolist() == before.qpos[:2].tolist()
    assert lab.snapshot.time == before.time and lab["arm"].command.targets[1] == 2.0
    assert threading.active_count() == threads
    path.write_text("<mujoco><nonsense/></mujoco>")
    world = lab.world
    with pytest.raises(VerbError, match="present world continues: .*nonsense") as caught:
        lab.call("reload")
    assert caught.value.code == "bad_model" and lab.world is world and lab.step().time > before.time
    lab.stop()


def test_paths_are_fields_of_their_own(lab):
    """Describe the field of a policy's path, and send what is no path."""
    (path,) = (f for f in VERBS["run_policy"].describe()["fields"] if f["name"] == "path")
    assert path["type"] == "path" and path["required"]
    with pytest.raises(VerbError, match="run_policy: path must be the path of a file, got 3"):
        lab.call("run_policy", path=3)
    with pytest.raises(VerbError, match="There is no policy 'gone.onnx'") as caught:
        lab.call("run_policy", path="gone.onnx")
    assert caught.value.code == "path_not_readable"


def test_a_free_base_alone_has_seven_positions():
    """Give a loose robot one position: the message names its seven once."""
    spec = mujoco.MjSpec.from_string(
        '<mujoco><worldbody><body name="ball"><freejoint/><geom size="0.1"/></body></worldbody>'
        "</mujoco>"
    )
    lab = LiveLab(world_from_spec(spec, "ball"), LabCfg(mode="direct"))
    with lab, pytest.raises(VerbError, match="'ball' has 7 positions, got 1"):
        lab.verbs.set_qpos("ball", [1.0])
