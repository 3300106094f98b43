"""Elements of a model by the robot that they belong to."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import mujoco
import numpy as np
import pytest

from manyworlds.lab.world.elements import RobotElements

ASSETS = Path(gymnasium.__file__).parent / "envs/mujoco/assets"
KINDS = ("body", "jnt", "geom", "site", "cam", "light", "tendon", "actuator", "sensor")


@pytest.mark.parametrize("file", ["ant.xml", "half_cheetah.xml", "hopper.xml"])
def test_two_copies_share_nothing(file):
    """Attach a model twice: each copy has what the model has, and its names, in the same order."""
    one = mujoco.MjSpec.from_file(str(ASSETS / file))
    alone = one.compile()
    spec = mujoco.MjSpec()
    for prefix in ("left/", "right/"):
        spec.attach(one.copy(), prefix=prefix, frame=spec.worldbody.add_frame())
    spec.worldbody.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[1, 1, 1])
    model = spec.compile()
    elements = RobotElements(model, {"left": "left/", "right": "right/"})
    single = RobotElements(alone, {"it": ""})
    for kind in KINDS:
        left, right = elements.ids("left", kind), elements.ids("right", kind)
        assert not set(left) & set(right), kind
        assert elements.names("left", kind).keys() == elements.names("right", kind).keys()
        if kind not in ("geom", "light", "cam"):  # some are fixed to the world
            assert len(left) == len(right) == len(single.ids("it", kind)), kind
    assert elements.owners["geom"][model.geom("floor").id] is None
    assert elements.owners["body"][0] is None


def test_unnamed_elements_belong_to_what_carries_them():
    """Leave out names of joints, geoms, an actuator and a sensor: they are their body's robot's."""
    model = mujoco.MjModel.from_xml_string("""
        <mujoco>
          <worldbody>
            <body name="go_arm"><joint/><geom size=".1"/><site name="go_tip"/>
              <body><joint/><geom size=".1"/></body>
            </body>
            <body name="other"><joint/><geom size=".1"/></body>
          </worldbody>
          <actuator><motor site="go_tip" gear="0 0 1 0 0 0"/></actuator>
          <sensor><accelerometer site="go_tip"/></sensor>
        </mujoco>""")
    elements = RobotElements(model, {"go": "go_"})
    assert elements.owners["jnt"] == elements.owners["geom"] == ["go", "go", None]
    assert elements.owners["body"] == [None, "go", "go", None]
    assert elements.owners["actuator"] == elements.owners["sensor"] == ["go"]
    assert elements.names("go", "body") == {"arm": 1}
    assert np.array_equal(elements.ids("go", "body"), [1, 2])
    with pytest.raises(KeyError, match="There is no robot 'gone'; available: go."):
        elements.ids("gone", "body")
