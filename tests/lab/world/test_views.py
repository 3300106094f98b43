"""Views of single elements, and what MuJoCo's specs do for them."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyworlds.lab import LiveLab, world_from_scene, world_from_spec
from manyworlds.scene import SceneCfg
from tests.lab.conftest import ARM

WIDTHS = {"free": (7, 6), "ball": (4, 3), "slide": (1, 1), "hinge": (1, 1)}
RAW = {
    "body": {"mass": "body_mass", "mocap_id": "body_mocapid"}
    | {name: name for name in ("xpos", "xquat", "xfrc_applied")},
    "geom": {
        name: f"geom_{name}"
        for name in ["xpos", "size", "type", "contype", "conaffinity", "dataid"]
    },
    "actuator": {n: f"actuator_{n}" for n in ["force", "length", "gainprm", "biasprm"]},
    "sensor": {name: f"sensor_{name}" for name in ("dim", "adr", "type")},
    "tendon": {
        n: f"tendon_{n}" for n in ["stiffness", "stiffnesspoly", "damping", "dampingpoly", "range"]
    }
    | {"length": "ten_length", "velocity": "ten_velocity"},
    "site": {name: f"site_{name}" for name in ["xpos", "size", "type"]}
    | {"body_id": "site_bodyid"},
}


@st.composite
def specs(draw) -> mujoco.MjSpec:
    """A tree of bodies with joints of any type, and all that can be looked at on them."""
    spec = mujoco.MjSpec()
    bodies = [spec.worldbody]
    for i, kind in enumerate(draw(st.lists(st.sampled_from(list(WIDTHS)), min_size=1, max_size=6))):
        parent = bodies[0] if kind == "free" else bodies[draw(st.integers(0, len(bodies) - 1))]
        body = parent.add_body(name=f"body{i}", pos=[0.3 * i, 0.1, 0.5])
        bodies.append(body)
        joint = body.add_joint(
            name=f"joint{i}",
            type=getattr(mujoco.mjtJoint, f"mjJNT_{kind.upper()}"),
            axis=[0.0, 1.0, 0.2],
            damping=[0.1 * i, 0.0, 0.0],
            range=[-1.0, 1.0] if WIDTHS[kind] == (1, 1) else [0.0, 0.0],
            stiffness=[0.2 * i, 0.0, 0.0],
        )
        body.add_geom(name=f"geom{i}", size=[0.05 + 0.01 * i, 0.1, 0.1], condim=1)
        body.add_site(name=f"site{i}", pos=[0.1, 0.0, 0.0], size=[0.01, 0.01, 0.01])
        if WIDTHS[kind] == (1, 1):
            tendon = spec.add_tendon(
                name=f"tendon{i}", range=[-1.0, 1.0 + i], stiffness=[0.1, 0, 0]
            )
            tendon.wrap_joint(joint.name, 0.5)
            spec.add_actuator(
                name=f"actuator{i}", target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT
            ).set_to_position(kp=3.0 + i)
        spec.add_sensor(
            name=f"sensor{i}",
            type=draw(
                st.sampled_from((mujoco.mjtSensor.mjSENS_FRAMEQUAT, mujoco.mjtSensor.mjSENS_GYRO))
            ),
            objtype=mujoco.mjtObj.mjOBJ_SITE,
            objname=f"site{i}",
        )
    return spec


@settings(max_examples=25)
@given(specs())
def test_views_are_the_raw_arrays(spec):
    """Look at each element of random models while they move: all attributes are MuJoCo's rows."""
    lab = LiveLab(world_from_spec(spec))
    model, data = lab.world.model, lab.loop.data
    views = {
        kind: [lab.view(kind, e.name) for e in getattr(spec, plural) if e.name != "world"]
        for kind, plural in {
            k: "bodies" if k == "body" else f"{k}s" for k in (*RAW, "joint")
        }.items()
    }
    lab.step(5)
    for kind, attributes in RAW.items():
        code = getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
        for view in views[kind]:
            assert view.id == mujoco.mj_name2id(model, code, view.name)
            for name, field in attributes.items():
                raw = getattr(model if hasattr(model, field) else data, field)
                mine = getattr(view, name)
                assert np.shares_memory(mine, raw) and np.array_equal(
                    mine.ravel(), np.ravel(raw[view.id])
                )
    for view in views["joint"]:
        kind = mujoco.mjtJoint(model.jnt_type[view.id]).name.removeprefix("mjJNT_").lower()
        (nq, nv), q, v = WIDTHS[kind], model.jnt_qposadr[view.id], model.jnt_dofadr[view.id]
        assert np.array_equal(view.qpos, data.qpos[q : q + nq])
        for name in ("qvel", "qacc"):
            assert np.array_equal(getattr(view, name), getattr(data, name)[v : v + nv])
        assert np.array_equal(view.damping, model.dof_damping[v : v + nv])
        assert np.array_equal(view.dampingpoly, model.dof_dampingpoly[v : v + nv])
        for name, table in (("xanchor", data.xanchor), ("xaxis", data.xaxis)):
            assert np.array_equal(getattr(view, name), table[view.id])
        for name in ("range", "stiffness", "stiffnesspoly"):
            assert np.array_equal(
                getattr(view, name).ravel(), getattr(model, f"jnt_{name}")[view.id].ravel()
            )
    for view in views["actuator"]:
        adr = model.actuator_ctrladr[view.id]
        assert view.ctrl == data.ctrl[adr] and np.array_equal(
            view.ctrlrange[0], model.actuator_ctrlrange[adr]
        )
    for view in views["sensor"]:
        assert np.array_equal(view.data, data.sensordata[view.adr[0] :][: view.dim[0]])
    for view in (*views["geom"], *views["site"]):
        assert view.xmat.shape == (3, 3)
        assert np.array_equal(view.xmat.ravel(), getattr(data, f"{view.kind}_xmat")[view.id])
    lab.stop()


def test_bodies_lead_to_their_parts(lab):
    """Walk from the world down the arm, over parts without names, too."""
    world = lab.view("body", "world")
    assert [body.name for body in world.bodies()] == ["upper", "ball", "post"]
    upper = world.bodies()[0]
    assert [joint.name for joint in upper.joints()] == ["shoulder"]
    assert [geom.name for geom in upper.geoms()] == [""]
    assert upper.bodies()[0].geoms()[0].name == "forearm"
    assert world.bodies()[2].mocap_id == 0 and upper.mocap_id == -1
    with pytest.raises(AttributeError, match="A joint has no parts"):
        upper.joints()[0].geoms()


def test_edits_of_the_spec_are_found_after_it_is_built():
    """Add a site to a scene by its hook: it can be looked at by its name, and moves."""

    def add_site(spec: mujoco.MjSpec) -> None:
        body = spec.worldbody.add_body(name="drop", pos=[0.0, 0.0, 2.0])
        body.add_freejoint(name="fall")
        body.add_geom(size=[0.1, 0.1, 0.1])
        body.add_site(name="mine", pos=[0.0, 0.0, 0.5])

    lab = LiveLab(world_from_scene(SceneCfg(spec_fn=add_site)))
    site = lab.view("site", "mine")
    assert site.xpos.tolist() == [0.0, 0.0, 2.5] and site.body_id == lab.view("body", "drop").id
    lab.step(100)
    assert site.xpos[2] < 2.5
    lab.stop()


def test_defaults_are_mujocos():
    """Edit a class of defaults, use it, rebuild: its members change; one that is not is refused."""
    classes = '<default><default class="thick"><geom condim="{}"/></default></default><worldbody>'
    text = ARM.replace('name="forearm"', 'name="forearm" class="thick"')
    for condim in (4, 6):
        spec = mujoco.MjSpec.from_string(text.replace("<worldbody>", classes.format(condim), 1))
        thick = spec.find_default("thick")
        assert thick.geom.condim == condim and spec.find_default("thin") is None
        thick.geom.friction[0] = 0.1 * condim
        spec.body("lower").add_geom(thick, name="knob", size=[0.1, 0.1, 0.1])
        model = world_from_spec(spec).model
        assert model.geom("forearm").condim == model.geom("knob").condim == condim
        assert model.geom("knob").friction[0] == 0.1 * condim
    with pytest.raises(ValueError, match="thick"):
        mujoco.MjSpec.from_string(text)
