"""MuJoCo's own sensors against the same sensors compiled from MJCF."""

from __future__ import annotations

from typing import get_args

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.sensor import BuiltinSensorCfg, ObjRef
from manyworlds.sensor.builtin_sensor import SensorType
from manyworlds.signals import ConstantNoiseCfg
from tests.sensor.scenes import build, entity, heap, mj_data

# A ball joint, a limited tendon and a camera, besides what the robot has.
RICH = """
<body name="arm" pos="0 .5 .3">
  <joint name="wrist" type="ball"/>
  <geom name="arm" type="capsule" fromto="0 0 0 .1 0 -.1" size=".02"/>
  <camera name="eye" pos=".1 0 0"/>
</body>
"""
OBJECTS = {
    "site": ObjRef("site", "imu", "robot"),
    "joint": ObjRef("joint", "ankle", "robot"),
    "ball": ObjRef("joint", "wrist", "robot"),
    "tendon": ObjRef("tendon", "wire", "robot"),
    "actuator": ObjRef("actuator", "hip", "robot"),
    "body": ObjRef("body", "foot", "robot"),
    "xbody": ObjRef("xbody", "foot", "robot"),
    "geom": ObjRef("geom", "thigh", "robot"),
    "camera": ObjRef("camera", "eye", "robot"),
}
FRAMES = ("body", "xbody", "geom", "site", "camera")


def robot() -> str:
    """The model of a robot with everything that can be sensed."""
    tendon = (
        '<tendon><fixed name="wire" limited="true" range="-.01 .01">'
        '<joint joint="hip" coef="1"/><joint joint="ankle" coef=".5"/></fixed></tendon>'
    )
    wire = '<actuator><motor name="wire" tendon="wire" gear="2"/></actuator></mujoco>'
    return heap(extra=RICH).replace("</mujoco>", tendon + wire)


def kinds(sensor_type: str) -> tuple[str, ...]:
    """Elements to which each type can be attached, according to MuJoCo's XML reference."""
    if sensor_type.startswith("frame"):
        return FRAMES
    if sensor_type == "rangefinder":
        return ("site", "camera")
    if sensor_type in ("clock", "e_potential", "e_kinetic"):
        return ()
    for start, kind in (("joint", "joint"), ("ball", "ball"), ("tendon", "tendon")):
        if sensor_type.startswith(start):
            return (kind,)
    if sensor_type.startswith("actuator"):
        return ("actuator",)
    return ("body",) if sensor_type.startswith("subtree") else ("site",)


def mjcf(sensor_type: str, obj: ObjRef | None, kind: str, ref: ObjRef | None) -> str:
    """Write one sensor by hand."""
    attributes = 'name="reference"'
    if obj is not None and (sensor_type.startswith("frame")):
        attributes += f' objtype="{obj.type}" objname="robot/{obj.name}"'
    elif obj is not None:
        attributes += f' {"joint" if kind == "ball" else kind}="robot/{obj.name}"'
    if ref is not None:
        attributes += f' reftype="{ref.type}" refname="robot/{ref.name}"'
    return f"<{sensor_type} {attributes}/>"


CASES = [(name, kind) for name in get_args(SensorType) for kind in kinds(name) or (None,)]


@pytest.mark.usefixtures("engine")
@pytest.mark.slow_on_warp
@pytest.mark.parametrize(("sensor_type", "kind"), CASES)
def test_every_type_measures_what_mjcf_declares(sensor_type: str, kind: str | None):
    """Equal the sensor of the same name in MJCF, with a reference frame where it can have one."""
    obj = OBJECTS[kind] if kind else None
    relative = sensor_type.startswith("frame") and not sensor_type.endswith("acc")
    for ref in (None, OBJECTS["site"]) if relative else (None,):
        cfg = BuiltinSensorCfg(name="s", sensor_type=sensor_type, obj=obj, ref=ref)
        scene, sim = build({"robot": entity(robot(), (0, 0, 0.13))}, cfg, num_envs=2)
        sim.data.qvel[1] = 0.3
        sim.data.ctrl[1] = torch.tensor([5.0, 3.0])
        sim.step(3)
        sim.forward()
        xml = scene.spec.to_xml().split("<sensor>")[0].replace("</mujoco>", "")
        reference = mujoco.MjModel.from_xml_string(
            f"{xml}<sensor>{mjcf(sensor_type, obj, kind or '', ref)}</sensor></mujoco>"
        )
        data = mujoco.MjData(reference)
        state = mj_data(sim, 1)
        data.qpos, data.qvel, data.ctrl = state.qpos, state.qvel, state.ctrl
        data.time = float(sim.data.time[1])
        mujoco.mj_forward(reference, data)
        shown = scene["s"].data
        assert shown.shape == (2, data.sensordata.size)
        np.testing.assert_allclose(shown[1], data.sensordata, rtol=2e-4, atol=2e-4)
        # MJCF and the spec give the same model, bit for bit.
        ours, theirs = scene.spec.sensors[-1], reference
        assert (ours.type.value, ours.objtype.value) == (
            theirs.sensor_type[0],
            theirs.sensor_objtype[0],
        )


@pytest.mark.parametrize("engine", ["native"], indirect=True)
def test_data_is_a_view_that_nobody_pays_for(engine: str):
    """Bind nothing before the first read; then show sensordata itself."""
    cfg = BuiltinSensorCfg(name="gyro", sensor_type="gyro", obj=OBJECTS["site"])
    scene, sim = build({"robot": entity(robot())}, cfg, num_envs=2)
    sim.step()
    scene.update(0.005)
    scene.reset()
    assert "sensordata" not in sim._engine._derived
    data = scene["gyro"].data
    assert data.untyped_storage().data_ptr() == sim.data.sensordata.untyped_storage().data_ptr()


@pytest.mark.slow_on_warp
@pytest.mark.usefixtures("engine")
def test_cutoff_limits_what_is_shown():
    """Clamp to the cutoff."""
    cfg = BuiltinSensorCfg(name="v", sensor_type="velocimeter", obj=OBJECTS["site"], cutoff=0.2)
    scene, sim = build({"robot": entity(robot())}, cfg)
    sim.data.qvel[:, :3] = 5.0
    sim.forward()
    assert scene["v"].data.abs().max() == pytest.approx(0.2)


@pytest.mark.usefixtures("engine")
def test_options_apply_to_mujocos_sensors():
    """Put noise on a copy, not on sensordata."""
    noise = ConstantNoiseCfg(bias=1.0)
    cfg = BuiltinSensorCfg(name="a", sensor_type="framepos", obj=OBJECTS["body"], noise=noise)
    scene, sim = build({"robot": entity(robot())}, cfg)
    torch.testing.assert_close(scene["a"].data, sim.data.sensordata + 1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sensor_type": "gyroo"}, "unknown sensor_type 'gyroo'. Did you mean 'gyro'"),
        ({"sensor_type": "gyro"}, "requires obj.type='site', got None"),
        ({"sensor_type": "gyro", "obj": OBJECTS["body"]}, "requires obj.type='site', got body"),
        (
            {"sensor_type": "jointpos", "obj": OBJECTS["site"]},
            "requires obj with type='joint', got site",
        ),
        ({"sensor_type": "tendonpos"}, "requires obj with type='tendon'"),
        ({"sensor_type": "subtreecom", "obj": OBJECTS["geom"]}, "requires obj with type='body'"),
        ({"sensor_type": "framepos", "obj": OBJECTS["joint"]}, "type='body' or type='xbody' or"),
        ({"sensor_type": "clock", "obj": OBJECTS["body"]}, "does not support obj specification"),
        (
            {"sensor_type": "gyro", "obj": OBJECTS["site"], "ref": OBJECTS["site"]},
            "does not support ref specification",
        ),
        (
            {"sensor_type": "framelinacc", "obj": OBJECTS["site"], "ref": OBJECTS["site"]},
            "does not support ref specification",
        ),
        (
            {"sensor_type": "framepos", "obj": OBJECTS["site"], "ref": OBJECTS["joint"]},
            "requires ref.type in",
        ),
        ({"sensor_type": "clock", "cutoff": -1.0}, "has cutoff -1.0: give at least 0"),
    ],
)
def test_configurations_are_checked(options: dict, message: str):
    """Refuse what MuJoCo's sensor cannot have, with its name and what it needs."""
    with pytest.raises(ValueError, match="Sensor 's'") as error:
        BuiltinSensorCfg(name="s", **options)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (ObjRef("site", "imu", "robt"), r"the entity 'robt', but the scene has \['robot'\]"),
        (ObjRef("site", "imuu", "robot"), r"the site 'robot/imuu', .*Did you mean 'robot/imu'"),
    ],
)
def test_missing_objects_are_named(obj: ObjRef, message: str):
    """Name the entity or object that the scene lacks."""
    with pytest.raises(ValueError, match=f"Sensor 's' refers to {message}"):
        build({"robot": entity(robot())}, BuiltinSensorCfg(name="s", sensor_type="gyro", obj=obj))
