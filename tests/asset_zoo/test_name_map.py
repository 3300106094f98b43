"""Models of others, renamed."""

from __future__ import annotations

import mujoco
import pytest

from manyworlds.asset_zoo.name_map import NameMap, apply_name_map

MODEL = """
<mujoco model="dog">
  <compiler angle="radian"/>
  <worldbody>
    <body name="base">
      <freejoint/>
      <site name="sensor"/>
      <camera name="eye" mode="targetbody" target="leg"/>
      <geom size=".1"/>
      <geom size=".1" contype="0" conaffinity="0"/>
      <body name="leg">
        <joint name="hip" axis="0 1 0" range="-1 1" limited="true"/>
        <geom size=".02"/>
        <geom name="toe" size=".02" pos="0 0 -.2"/>
        <geom size=".03"/>
      </body>
      <body name="tail"><joint name="wag"/><geom size=".01"/></body>
    </body>
  </worldbody>
  <actuator><position name="hip" joint="hip"/></actuator>
  <equality><joint joint1="hip" joint2="wag"/></equality>
  <contact><exclude body1="base" body2="leg"/></contact>
  <sensor>
    <jointpos name="angle" joint="hip"/>
    <framepos objtype="site" objname="sensor" reftype="body" refname="base"/>
  </sensor>
  <keyframe><key name="home" ctrl="1"/></keyframe>
</mujoco>
"""
NAMES = NameMap(
    body={"base": "trunk", "leg": "FR_calf"},
    joint={"hip": "FR_hip_joint"},
    geom={"toe": "FR_foot_collision"},
    site={"sensor": "imu"},
    collisions={"FR_calf": "shin{}_collision"},
    feet={"FR": "FR_foot_collision"},
    imu="imu",
)


def test_parts_and_what_refers_to_them_are_renamed():
    """Compile a model whose sensors, couplings, exclusions and cameras named what was renamed."""
    model = apply_name_map(mujoco.MjSpec.from_string(MODEL), NAMES).compile()
    assert [model.body(i).name for i in range(1, 4)] == ["trunk", "FR_calf", "tail"]
    assert model.joint("FR_hip_joint").range[1] == 1.0
    assert model.sensor("angle").objid[0] == model.joint("FR_hip_joint").id
    assert model.cam("eye").targetbodyid[0] == model.body("FR_calf").id
    assert (model.nexclude, model.neq, model.nu, model.nkey) == (1, 1, 0, 0)
    assert list(model.site("FR").pos) == [0.0, 0.0, -0.2]
    assert model.sensor("root_angmom").objid[0] == model.body("trunk").id


def test_nameless_collisions_get_names():
    """Number what collides by body; leave what does not alone."""
    model = apply_name_map(mujoco.MjSpec.from_string(MODEL), NAMES).compile()
    names = [model.geom(i).name for i in range(model.ngeom)]
    assert names == [
        *("trunk_collision1", "", "shin1_collision", "FR_foot_collision", "shin2_collision"),
        "tail_collision1",
    ]


def test_a_second_time_changes_nothing():
    """Leave alone what has the names of tasks, so that one map serves several models."""
    spec = apply_name_map(mujoco.MjSpec.from_string(MODEL), NAMES)
    before = spec.to_xml()
    assert apply_name_map(spec, NAMES).to_xml() == before


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (NameMap(body={"bas": "trunk"}), "model 'dog' has no body 'bas' and none named 'trunk'"),
        (NameMap(feet={"FR": "foot"}), r"no geom 'foot': correct the map. It has .*'toe'"),
        (NameMap(imu="imu"), "no site 'imu': correct the map. It has .*'sensor'"),
    ],
)
def test_wrong_maps_are_reported(names, message):
    """Say what is missing, and what there is instead."""
    with pytest.raises(ValueError, match=message):
        apply_name_map(mujoco.MjSpec.from_string(MODEL), names)
