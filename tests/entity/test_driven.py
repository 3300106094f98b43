"""Selection of driven elements: by their names, or else by the names of their actuators."""

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mujoco
import pytest

from manyworlds.actuator import BuiltinPositionActuatorCfg
from manyworlds.entity import Entity, EntityArticulationInfoCfg, EntityCfg
from manyworlds.entity.driven import DrivenTargets
from manyworlds.spec.transmissions import TransmissionType
from tests.robots import robot_file

ARM = DrivenTargets(
    "joint",
    ("hip", "knee", "ankle"),
    (("hip_pos", "hip"), ("knee_pos", "knee"), ("knee_motor", "knee"), ("ankle_pos", "ankle")),
)
# Joint j0 has the motor j3 and so on, as in files whose motors follow the order of a bus.
CROSSED = DrivenTargets(
    "joint",
    ("j0", "j1", "j2", "j3"),
    (("j3", "j0"), ("j5", "j1"), ("j0", "j2"), ("j4", "j3")),
)


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ("knee", ["knee"]),
        (("ankle", "hip"), ["hip", "ankle"]),
        (("ankle", "hip_pos"), ["hip", "ankle"]),
        ("knee_.*", ["knee"]),
        (("knee_pos", "knee_motor"), ["knee"]),
        (("knee", "knee_motor"), ["knee"]),
        (".*_pos", ["hip", "knee", "ankle"]),
        (".*", ["hip", "knee", "ankle"]),
    ],
)
def test_patterns_match_targets_or_else_actuators(patterns, expected):
    """Select each target once, in model order."""
    assert ARM.select(patterns) == expected


def test_order_of_patterns_is_preserved_on_request():
    """Order names of targets and of actuators alike."""
    assert ARM.select(("ankle_pos", "hip", "knee.*"), preserve_order=True) == [
        "ankle",
        "hip",
        "knee",
    ]


@pytest.mark.parametrize(
    ("targets", "patterns", "message"),
    [
        (
            CROSSED,
            ("j[0-35]",),
            "'j[0-35]' matches the joints ['j0', 'j1', 'j2', 'j3'] by their own names, but ['j0', "
            "'j1', 'j2'] by the names of their actuators: make it match the names of one kind "
            "only, or rename the actuators in spec_fn.",
        ),
        (CROSSED, "j0", "['j0'] by their own names, but ['j2'] by"),
        (
            ARM,
            ("hip", "ankel"),
            "'ankel' matches none of the joints ['hip', 'knee', 'ankle'] and none of the actuators "
            "['hip_pos', 'knee_pos', 'knee_motor', 'ankle_pos'] that drive them. Did you mean "
            "'ankle'?",
        ),
        (ARM, ("hip", "h.*"), "joint 'hip' is matched by both 'hip' and 'h.*'"),
        (ARM, (".*_pos", "hip_.*"), "joint 'hip' is matched by both '.*_pos' and 'hip_.*'"),
    ],
)
def test_patterns_without_one_meaning_are_refused(targets, patterns, message):
    """Name the pattern, both readings, and the remedy."""
    with pytest.raises(ValueError, match=re.escape(message)):
        targets.select(patterns)


def test_names_that_have_one_meaning_pass_between_crossed_ones():
    """Accept `j4`, which is an actuator alone, and `.*`, which means the same in both readings."""
    assert CROSSED.select("j4") == ["j3"]
    assert CROSSED.select(".*") == list(CROSSED.names)


def test_unnamed_actuators_contradict_nothing():
    """Match targets by name if only some of their actuators have names."""
    legs = DrivenTargets("joint", ("left", "right"), (("left", "left"), ("", "right")))
    assert legs.select(".*t") == ["left", "right"] == legs.select(".*")
    assert legs.select("right") == ["right"]


def test_whole_names_of_targets_precede_ends_of_names_of_actuators():
    """Select a joint by its whole name beside attached parts whose actuators end in that name."""
    pairs = (("bend", "elbow"), ("left/elbow", "left/elbow"))
    for attached in (pairs, (*pairs, ("right/elbow", "right/elbow"))):
        arms = DrivenTargets("joint", tuple(target for _, target in attached), attached)
        assert arms.select("elbow") == ["elbow"] == arms.select("bend")
    assert DrivenTargets("joint", ("left/elbow",), (("left/bend", "left/elbow"),)).select(
        "bend"
    ) == ["left/elbow"]


def test_values_follow_the_same_rule():
    """Look up values by names of targets or actuators; the first match wins."""
    assert ARM.values(2.0, 1.0) == (2.0, 2.0, 2.0)
    assert ARM.values({"knee_motor": 3.0, "k.*": 4.0, "hip": 5.0}, 1.0) == (5.0, 3.0, 1.0)
    some = ARM.of(["ankle", "hip"])
    assert some.names == ("ankle", "hip") and some.values({".*": 2.0}, 1.0) == (2.0, 2.0)
    assert some.values({"ankle_pos": 0.5, "hip": 4.0}, 1.0) == (0.5, 4.0)
    with pytest.raises(ValueError, match="'knee' matches none of the joints"):
        some.values({"knee": 1.0}, 1.0)
    with pytest.raises(ValueError, match="by the names of their actuators"):
        CROSSED.values({"j[0-35]": 1.0}, 1.0)
    assert DrivenTargets("joint", (), ()).values({".*": 2.0}, 1.0) == ()


def _package_file(package: str, name: str) -> Path:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(f"{package} is not installed")
    return Path(spec.origin).parent / name


@pytest.mark.parametrize(
    ("package", "name", "kind", "joints"),
    [
        ("dm_control", "suite/cartpole.xml", "joint", {"slider": "slide"}),
        ("dm_control", "suite/ball_in_cup.xml", "joint", {"cup_x": "x", "cup_z": "z"}),
        ("dm_control", "suite/manipulator.xml", "joint", {"arm_wrist": "wrist"}),
        ("dm_control", "suite/manipulator.xml", "tendon", {"grasp": "grasp"}),
        ("dm_control", "suite/humanoid_CMU.xml", "joint", {"lfemurrx": "lfemurrx"}),
        ("gymnasium", "envs/mujoco/assets/inverted_pendulum.xml", "joint", {"slider": "slide"}),
    ],
)
def test_models_of_packages(package: str, name: str, kind: str, joints: dict[str, str]):
    """Find each target of a published model by its own name and by that of its actuator."""
    path = _package_file(package, name)
    entity = Entity(EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_file(str(path))))
    driven = entity.driven_targets(TransmissionType(kind))
    for target, actuator in joints.items():
        assert driven.select(target) == [target] == driven.select(actuator)
    for target in driven.names:
        assert driven.select(re.escape(target)) == [target]
    assert tuple(driven.select(".*")) == driven.names


@pytest.mark.parametrize(
    ("name", "pattern", "count"),
    [
        ("unitree_go1/go1.xml", ".*_hip_joint", 4),
        ("unitree_g1/g1.xml", ".*_knee_joint", 2),
        ("i2rt_yam/yam.xml", "joint[1-6]", 6),
    ],
)
def test_created_actuators_have_the_names_of_their_joints(name: str, pattern: str, count: int):
    """Give the same answer for names of joints and of actuators that a configuration created."""
    path = robot_file(name)
    motors = BuiltinPositionActuatorCfg(target_names_expr=(".*",), stiffness=20.0, damping=1.0)
    entity = Entity(
        EntityCfg(
            spec_fn=lambda: mujoco.MjSpec.from_file(str(path)),
            articulation=EntityArticulationInfoCfg((motors,)),
        )
    )
    ids, names = entity.find_joints_by_actuator_names(pattern)
    assert len(ids) == count and (ids, names) == entity.find_joints(pattern)
    assert entity.find_joints_by_actuator_names(".*")[1] == list(entity.joint_names)


XML = """
<mujoco>
  <worldbody><body name="base">
    <joint name="ball" type="ball"/><geom size=".1"/>
    <body name="link"><joint name="hinge"/><geom size=".1"/><site name="tip"/></body>
  </body></worldbody>
  <tendon><fixed name="cable"><joint joint="hinge" coef="1"/></fixed></tendon>
  <actuator>
    <motor name="turn" joint="hinge"/><motor name="spin" joint="ball" gear="1 0 0"/>
    <motor name="pull" tendon="cable"/><motor name="push" site="tip" gear="0 0 1 0 0 0"/>
  </actuator>
</mujoco>
"""


def test_kinds_are_kept_apart():
    """List the elements that each kind of actuator drives; a ball joint is none of the joints."""
    entity = Entity(EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_string(XML)))
    found: dict[str, Any] = {}
    for kind in TransmissionType:
        targets = entity.driven_targets(kind)
        found[kind.value] = targets.names, targets.actuators
    assert found == {
        "joint": (("hinge",), (("turn", "hinge"),)),
        "tendon": (("cable",), (("pull", "cable"),)),
        "site": (("tip",), (("push", "tip"),)),
    }
    assert entity.find_joints_by_actuator_names("turn") == ([0], ["hinge"])
