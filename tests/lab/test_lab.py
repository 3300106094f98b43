"""The lab as a whole: worlds, states, views, dumps."""

from __future__ import annotations

import json

import mujoco
import numpy as np
import pytest

from manyworlds.entity import EntityCfg
from manyworlds.lab import (
    CompileError,
    LabCfg,
    LiveLab,
    RecorderCfg,
    world_from_file,
    world_from_scene,
    world_from_spec,
)
from manyworlds.scene import SceneCfg
from tests.lab.conftest import ARM


def test_the_facade_only_hands_on(lab):
    """Ask the lab and its loop: one answer."""
    lab.pause()
    lab.loop.iterate_once()
    assert lab.paused is lab.loop.paused is True
    assert lab.snapshot is lab.loop.snapshot and lab["arm"] is lab.controls["arm"]


def test_a_lab_begins_in_its_order(world, tmp_path):
    """Start and stop with a recording: each phase is told, in the order in which it was made."""
    cfg = LabCfg(recorder=RecorderCfg(folder=tmp_path, auto_record=True))
    lab = LiveLab(world, cfg)
    phases = []
    lab.loop.on_pre_step(lambda *_: phases.append((tuple(lab.phases), lab.recorder.is_recording)))
    with lab:
        lab.step(2)
    assert lab.phases == ["compiled", "bound", "recording", "running", "stopped"]
    assert phases[0][0][:3] == ("compiled", "bound", "recording") and phases[0][1]


def test_what_nobody_uses_costs_nothing(lab, tmp_path):
    """Look at a fresh lab: only the timeline and the perturbation are called; there is no file."""
    assert len(lab.loop._post) == 1 and len(lab.loop._pre) == 2
    assert not lab.recorder.is_recording and lab.recorder.path is None
    assert not lab.replay.is_active and lab.loop.steppers.top.stepper.name == "physics"


def test_robots_are_found_by_name(lab):
    """Ask for a robot that is there, and for one that is not."""
    assert lab["arm"].name == "arm"
    with pytest.raises(KeyError, match="There is no robot 'leg'; available: arm"):
        _ = lab["leg"]


def test_a_saved_state_goes_on_bit_for_bit(lab, tmp_path):
    """Save, go on, return, from memory and from disk: the same steps again, commands included."""
    lab["arm"].write("panel", {"elbow": 4.0})
    lab.step(60)
    saved = lab.states.save("before")
    future = [lab.step(10).qpos.tobytes() for _ in range(8)]
    path = lab.states.write("before", tmp_path)
    lab["arm"].write("panel", {"elbow": 0.0})
    lab.states.restore("before")
    assert lab.snapshot.time == saved.time == pytest.approx(0.12)
    assert [lab.step(10).qpos.tobytes() for _ in range(8)] == future
    fresh = LiveLab(lab.world)
    fresh.states.read(path)
    fresh.states.restore("before")
    assert [fresh.step(10).qpos.tobytes() for _ in range(8)] == future
    fresh.stop()


def test_states_of_other_models_are_refused(lab, tmp_path):
    """Read a state of another arm, and a file that is none."""
    lab.states.save("mine")
    path = lab.states.write("mine", tmp_path)
    other = LiveLab(world_from_spec(mujoco.MjSpec.from_string(ARM.replace("120", "110"))))
    with pytest.raises(ValueError, match="is a state of another model"):
        other.states.read(path)
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match="is no saved state"):
        other.states.read(path)
    with pytest.raises(ValueError, match="is no valid name of a state"):
        other.states.save("../evil")
    with pytest.raises(KeyError, match="no saved state 'x'; saved: none"):
        other.states.restore("x")
    other.stop()


def test_a_restored_state_mends_a_fault(lab):
    """Break the world and return to a saved state."""
    lab.step(5)
    lab.states.save("good")
    lab.post(lambda model, data: data.qpos.__setitem__(0, np.inf))
    lab.loop.iterate_once()
    assert lab.loop.state == "faulted"
    lab.states.restore("good")
    assert lab.loop.state == "ready" and lab.step().step == 6


def test_views_are_the_engines_arrays(lab):
    """Look at one element of each kind, before and after steps."""
    data, model = lab.loop.data, lab.world.model
    joint, tip = lab.view("joint", "elbow"), lab.view("site", "tip")
    lab["arm"].write("panel", {"elbow": 7.0})
    lab.step(20)
    assert joint.qpos[0] == data.qpos[1] != 0.0 and joint.id == 1
    assert np.array_equal(tip.xpos, data.site_xpos[0]) and tip.xmat.shape == (3, 3)
    assert lab.view("actuator", "elbow").ctrl == 7.0
    assert lab.view("sensor", "angle").data == data.sensordata[0]
    assert lab.view("body", "ball").mass == model.body_mass[3]
    assert lab.view("geom", "forearm").size[0] == 0.025
    with pytest.raises(KeyError, match="no joint 'wrist'"):
        lab.view("joint", "wrist")
    with pytest.raises(ValueError, match="no kind 'wheel'"):
        lab.view("wheel", "x")
    with pytest.raises(AttributeError, match="has no 'colour'"):
        _ = joint.colour


def test_a_dump_is_what_was_compiled(lab, tmp_path):
    """Dump twice, load the binary and the XML: the same steps, to the bit and to six digits."""
    folder = lab.dump(tmp_path / "dump")
    assert lab.dump(folder) == folder
    build = json.loads((folder / "build.json").read_text())
    assert build["model_hash"] == lab.world.model_hash and build["robots"] == {"arm": ""}
    lab.set_option("timestep", 0.003)
    lab.step(1)
    lab.reset()
    lab.dump(folder)
    qpos = lab.step(100).qpos
    for name, tolerance in (("scene.mjb", 0.0), ("scene.xml", 1e-4)):
        load = getattr(mujoco.MjModel, f"from_{'binary' if name[-1] == 'b' else 'xml'}_path")
        model = load(str(folder / name))
        data = mujoco.MjData(model)
        for _ in range(100):
            mujoco.mj_step(model, data)
        assert np.abs(data.qpos - qpos).max() <= tolerance, name


def test_robots_of_a_scene_begin_where_it_says(tmp_path):
    """Put two arms into a scene: each is a robot of its own, in its own initial state."""
    bodies, actuators = ARM.split('    <body name="ball"')
    only_arm = bodies.split("<geom name", 1)
    xml = (
        only_arm[0] + only_arm[1].split("/>", 1)[1] + actuators.split("post")[1].split("</body>")[1]
    )
    entity = EntityCfg(
        spec_fn=lambda: mujoco.MjSpec.from_string(xml),
        init_state=EntityCfg.InitialStateCfg(joint_pos={"elbow": 0.5, ".*": 0.0}),
    )
    world = world_from_scene(SceneCfg(entities={"left": entity, "right": entity}, num_envs=7))
    lab = LiveLab(world)
    assert lab["left"].actuators.names == ("shoulder", "elbow")
    assert lab["right"].actuators.ids.tolist() == [2, 3]
    assert lab.view("joint", "left/elbow").qpos == 0.5 == lab.view("joint", "right/elbow").qpos
    with pytest.raises(KeyError, match="Several robots have a joint 'elbow'"):
        lab.view("joint", "elbow")
    lab["right"].write("panel", {"elbow": 3.0})
    assert lab.step().ctrl.tolist() == [0.0, 0.0, 0.0, 3.0]
    lab.stop()


def test_what_does_not_compile_says_mujocos_reason(tmp_path):
    """Open a broken file, and one that is not there."""
    path = tmp_path / "bad.xml"
    path.write_text("<mujoco><worldbody><body><joint/></body></worldbody></mujoco>")
    with pytest.raises(CompileError, match="mass and inertia"):
        world_from_file(path)
    path.write_text("<mujoco><nonsense/></mujoco>")
    with pytest.raises(CompileError, match=r"bad\.xml.*nonsense"):
        world_from_file(str(path))
    with pytest.raises(FileNotFoundError, match="no model file"):
        world_from_file(tmp_path / "none.xml")


def test_options_count_and_wrong_ones_are_refused(world):
    """Give options: they count; others keep the model's values."""
    lab = LiveLab(world, LabCfg(options={"timestep": 0.004, "gravity": (0.0, 0.0, -1.0)}))
    option = world.model.opt
    assert option.timestep == 0.004 and option.gravity.tolist() == [0.0, 0.0, -1.0]
    assert lab.step(10).time == pytest.approx(0.04)
    with pytest.raises(ValueError, match="MuJoCo has no option 'stepsize'"):
        LiveLab(world, LabCfg(options={"stepsize": 1.0}))


def test_the_lab_tells_its_versions(lab):
    """Ask for versions and sizes."""
    info = lab.info()
    assert info["mujoco"] == mujoco.mj_versionString() and info["robots"] == ["arm"]
    assert info["extras"].keys() == {"mcap", "onnxruntime", "viser"}
    assert info["model_hash"] == lab.world.model_hash == world_hash(lab)


def world_hash(lab) -> str:
    """The hash of the same model, compiled again."""
    return world_from_spec(mujoco.MjSpec.from_string(ARM)).model_hash
