"""Legged robots drawn at random: two to six legs of two or three joints each.

A robot is a function of a seed and its own number, so that robot 7 of seed 0 is the same wherever
it is drawn. Five robots in a row have two, three, four, five and six legs. Upright legs bend
forward and back below the trunk, as those of a dog; sprawled legs turn about a vertical axis at
their hips and reach to the side, as those of an insect. All joints are zero in the pose in which
the robot stands.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import mujoco
import numpy as np

from manyworlds.actuator import BuiltinPositionActuatorCfg
from manyworlds.asset_zoo.imu import add_imu
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from manyworlds.spec.config import CollisionCfg

FOOT_GEOMS = "leg[0-9]+_foot_collision"
"""Pattern of the names of the feet's geoms."""
FOOT_SITES = "leg[0-9]+_foot"
"""Pattern of the names of the sites at the soles."""
TRUNK_GEOM = "trunk_collision"
"""Name of the trunk's geom."""

_GRAVITY = 9.81  # [m/s^2]
_TYPICAL_MASS = 9.0  # [kg]: lengths of other robots are scaled by the cube root of their mass
_TRUNK_SHARE = 0.55  # of the mass; the legs share the rest
_LINK_SHARES = (0.25, 0.4, 0.35)  # of a leg's mass: hip, thigh, shank with foot
_SOLE = 0.012  # [m]: half the thickness of a biped's feet
# Of the torque that lifts the robot's weight on half of its legs, with the lever of its height.
_EFFORT = 1.3
_STIFFNESS = 3.0  # [1/rad]: share of the largest effort for a deviation of 1 rad
_DAMPING = 0.06  # [s/rad]: share of the largest effort for a velocity of 1 rad/s
_ARMATURE = 1.7e-4  # [kg m^2 / N m]: a rotor behind its gear, for each N m of the largest effort

_COLORS = {
    "trunk": (0.25, 0.29, 0.36, 1.0),
    "hip": (0.16, 0.33, 0.62, 1.0),
    "thigh": (0.86, 0.55, 0.16, 1.0),
    "shank": (0.75, 0.77, 0.80, 1.0),
    "foot": (0.15, 0.15, 0.17, 1.0),
}


@dataclass(frozen=True, kw_only=True)
class DrawnLeg:
    """Leg in a frame at its hip, whose x axis is its plane's direction and whose z axis is up.

    Angles of links are those from straight down towards the x axis, in the standing pose.
    """

    hip_pos: tuple[float, float, float]
    """Position of the hip relative to the middle of the trunk [m]."""
    azimuth: float
    """Direction of the leg's plane, 0 for forward and positive to the left [rad]."""
    joints: tuple[str, ...]
    """Two or three of `hip`, `thigh` and `knee`."""
    hip_axis: tuple[float, float, float]
    """Axis of the hip; the other joints turn about the y axis."""
    hip_link: tuple[float, float, float]
    """Vector from the hip to the thigh's joint [m]."""
    thigh: float
    """Length of the thigh [m]."""
    thigh_angle: float
    """Angle of the thigh [rad]."""
    shank: float
    """Length of the shank [m]."""
    shank_angle: float
    """Angle of the shank [rad]."""
    ranges: tuple[float, ...]
    """Largest angle of each joint to both sides [rad]."""


@dataclass(frozen=True, kw_only=True)
class DrawnRobot:
    """Dimensions of a drawn robot."""

    mass: float
    """Total mass [kg]."""
    trunk: tuple[float, float, float]
    """Half sizes of the trunk along x, y and z [m]."""
    height: float
    """Height of the middle of the trunk in the standing pose [m]."""
    foot: tuple[float, ...]
    """Radius of spherical feet [m], or half sizes of flat ones along x, y and z [m]."""
    legs: tuple[DrawnLeg, ...]
    """Legs from front to rear, the left one of a pair first."""

    @property
    def num_joints(self) -> int:
        """Number of joints."""
        return sum(len(leg.joints) for leg in self.legs)

    @property
    def effort(self) -> float:
        """Largest torque of each joint [N m]."""
        carrying = max(1.0, len(self.legs) / 2.0)
        return _EFFORT * self.mass * _GRAVITY / carrying * self.height


@functools.cache
def draw_robot(number: int, seed: int = 0) -> DrawnRobot:
    """Draw the dimensions of a robot.

    Args:
        number: number of the robot, from 0.
        seed: seed of all robots.

    Raises:
        ValueError: a number is negative.
    """
    if number < 0 or seed < 0:
        raise ValueError(
            f"The number of a drawn robot is {number} and its seed {seed}: both start from 0."
        )
    rng = np.random.default_rng([seed, number])
    num_legs = 2 + number % 5
    num_joints = int(rng.integers(2, 4))
    # Legs that reach to the side give no robot of less than four legs a stable gait.
    is_sprawled = num_legs >= 4 and bool(rng.random() < 0.4)
    mass = float(np.exp(rng.uniform(math.log(5.0), math.log(15.0))))
    scale = (mass / _TYPICAL_MASS) ** (1.0 / 3.0)
    pairs = num_legs // 2
    length = scale * rng.uniform(0.13, 0.18) * (0.4 + 0.3 * pairs)
    width = scale * rng.uniform(0.06, 0.09)
    thickness = scale * rng.uniform(0.035, 0.05)
    height = scale * rng.uniform(0.23, 0.32)
    foot: tuple[float, ...] = (scale * 0.022,)
    reach = scale * rng.uniform(0.04, 0.06)
    if num_legs == 2:
        # Flat feet that nearly touch carry the robot on one leg, too.
        foot = (0.38 * height, 0.85 * (width + reach), _SOLE)
    leg_height = height - foot[-1]

    legs = []
    for x, sides in _places(num_legs, length):
        shape = _leg_shape(rng, is_sprawled, leg_height)
        ranges = tuple(rng.uniform(0.6, 0.9, 3).tolist())
        for side in sides:
            azimuth = 0.0
            hip_axis = (1.0, 0.0, 0.0)
            hip_link = (0.0, side * reach, 0.0)
            joints = ("hip", "thigh", "knee")[3 - num_joints :]
            if is_sprawled:
                azimuth = math.atan2(side * length, x)
                hip_axis = (0.0, 0.0, 1.0)
                hip_link = (reach, 0.0, 0.0)
                joints = ("hip", "thigh", "knee")[:num_joints]
            legs.append(
                DrawnLeg(
                    hip_pos=(x, side * width, 0.0),
                    azimuth=azimuth,
                    joints=joints,
                    hip_axis=hip_axis,
                    hip_link=hip_link,
                    ranges=ranges[: len(joints)],
                    **shape,
                )
            )
    return DrawnRobot(
        mass=mass,
        trunk=(length, width, thickness),
        height=height,
        foot=foot,
        legs=tuple(legs),
    )


def _places(num_legs: int, length: float) -> list[tuple[float, tuple[int, ...]]]:
    """Return positions along the trunk [m] with their sides: 1 for left, -1 for right, 0 for both.

    Args:
        num_legs: number of legs; an odd one is behind the pairs, in the middle.
        length: half the length of the trunk [m].
    """
    if num_legs == 2:
        return [(0.0, (1, -1))]
    rows = (num_legs + 1) // 2
    places: list[tuple[float, tuple[int, ...]]] = []
    for row in range(rows):
        sides = (1, -1)
        if row == rows - 1 and num_legs % 2:
            sides = (0,)
        places.append((length * (1.0 - 2.0 * row / (rows - 1)), sides))
    return places


def _leg_shape(rng: np.random.Generator, is_sprawled: bool, leg_height: float) -> dict[str, float]:
    """Draw a leg's links, whose end is at the ground.

    Args:
        rng: the random numbers.
        is_sprawled: whether the foot is beside the hip rather than below it.
        leg_height: height of the hip above the center of the foot [m].
    """
    if is_sprawled:
        elevation = rng.uniform(0.1, 0.5)
        shank_angle = rng.uniform(0.1, 0.4)
        thigh = leg_height * rng.uniform(0.5, 0.7)
        shank = (leg_height + thigh * math.sin(elevation)) / math.cos(shank_angle)
        return {
            "thigh": thigh,
            "thigh_angle": 0.5 * math.pi + elevation,
            "shank": shank,
            "shank_angle": shank_angle,
        }
    share = rng.uniform(0.46, 0.54)  # of the leg's length
    thigh_angle = -rng.uniform(0.5, 0.8)
    shank_angle = math.asin(-share / (1.0 - share) * math.sin(thigh_angle))
    total = leg_height / (share * math.cos(thigh_angle) + (1.0 - share) * math.cos(shank_angle))
    return {
        "thigh": share * total,
        "thigh_angle": thigh_angle,
        "shank": (1.0 - share) * total,
        "shank_angle": shank_angle,
    }


def robot_spec(robot: DrawnRobot) -> mujoco.MjSpec:
    """Build a drawn robot, standing at the origin's height of its trunk.

    Bodies are `trunk` and `leg0_hip`, `leg0_thigh`, `leg0_shank`, ...; joints `leg0_hip`,
    `leg0_thigh`, `leg0_knee`, ...; the site of the inertial measurement unit is `imu`.
    """
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    trunk = spec.worldbody.add_body(name="trunk")
    trunk.add_freejoint()
    trunk.add_geom(
        name=TRUNK_GEOM,
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=robot.trunk,
        mass=_TRUNK_SHARE * robot.mass,
        rgba=_COLORS["trunk"],
    )
    trunk.add_geom(
        name="trunk_face",  # shows where forward is
        type=mujoco.mjtGeom.mjGEOM_SPHERE,
        pos=(robot.trunk[0], 0.0, 0.3 * robot.trunk[2]),
        size=(0.6 * robot.trunk[2], 0, 0),
        mass=0.0,
        contype=0,
        conaffinity=0,
        rgba=_COLORS["thigh"],
    )
    trunk.add_site(name="imu", group=5)
    for number in range(len(robot.legs)):
        _add_leg(trunk, robot, number)
    add_imu(spec, site="imu", root="trunk")
    return spec


def _add_leg(trunk: mujoco.MjsBody, robot: DrawnRobot, number: int) -> None:
    """Add a leg's bodies, joints, geoms and the site at its sole."""
    leg = robot.legs[number]
    leg_mass = (1.0 - _TRUNK_SHARE) * robot.mass / len(robot.legs)
    radius = 0.02 * (robot.mass / _TYPICAL_MASS) ** (1.0 / 3.0)
    turn = (math.cos(0.5 * leg.azimuth), 0.0, 0.0, math.sin(0.5 * leg.azimuth))
    vectors = {
        "hip": np.array(leg.hip_link),
        "thigh": _link(leg.thigh, leg.thigh_angle),
        "shank": _link(leg.shank, leg.shank_angle),
    }
    ranges = dict(zip(leg.joints, leg.ranges, strict=True))
    parent = trunk
    pos = np.array(leg.hip_pos)
    for link, joint, share in zip(vectors, ("hip", "thigh", "knee"), _LINK_SHARES, strict=True):
        quat = (1.0, 0.0, 0.0, 0.0)
        if link == "hip":
            quat = turn
        body = parent.add_body(name=f"leg{number}_{link}", pos=pos.tolist(), quat=quat)
        if joint in ranges:
            axis = (0.0, 1.0, 0.0)
            if joint == "hip":
                axis = leg.hip_axis
            body.add_joint(
                name=f"leg{number}_{joint}",
                type=mujoco.mjtJoint.mjJNT_HINGE,
                axis=axis,
                limited=True,
                range=(-ranges[joint], ranges[joint]),
            )
        vector = vectors[link]
        end = vector
        if not vector.any():  # the leg in the middle has its thigh at its hip
            end = np.array([0.0, 0.0, 0.5 * radius])
        body.add_geom(
            name=f"leg{number}_{link}_collision",
            type=mujoco.mjtGeom.mjGEOM_CAPSULE,
            fromto=(0.0, 0.0, 0.0, *end),
            size=(radius * {"hip": 1.4, "thigh": 1.1, "shank": 0.8}[link], 0, 0),
            mass=share * leg_mass,
            rgba=_COLORS[link],
        )
        parent = body
        pos = vector
    kind = mujoco.mjtGeom.mjGEOM_SPHERE
    if len(robot.foot) == 3:
        kind = mujoco.mjtGeom.mjGEOM_BOX
    parent.add_geom(
        name=f"leg{number}_foot_collision",
        type=kind,
        pos=pos.tolist(),
        size=(*robot.foot, 0.0, 0.0)[:3],
        mass=0.0,
        rgba=_COLORS["foot"],
    )
    sole = pos - (0.0, 0.0, robot.foot[-1])
    parent.add_site(name=f"leg{number}_foot", pos=sole.tolist(), group=5)


def _link(length: float, angle: float) -> np.ndarray:
    """Return the vector along a link [m], shape (3,); the angle is that from straight down."""
    return length * np.array([math.sin(angle), 0.0, -math.cos(angle)])


def drawn_robot_cfg(number: int, seed: int = 0) -> EntityCfg:
    """Configure a drawn robot, standing, with position control of its joints.

    It touches the ground and other objects, not itself.

    Args:
        number: number of the robot, from 0.
        seed: seed of all robots.
    """
    robot = draw_robot(number, seed)
    feet = f"^{FOOT_GEOMS}$"
    return EntityCfg(
        spec_fn=functools.partial(robot_spec, robot),
        init_state=EntityCfg.InitialStateCfg(pos=(0.0, 0.0, robot.height), joint_pos={".*": 0.0}),
        articulation=EntityArticulationInfoCfg(
            actuators=(
                BuiltinPositionActuatorCfg(
                    target_names_expr=(".*",),
                    stiffness=_STIFFNESS * robot.effort,
                    damping=_DAMPING * robot.effort,
                    effort_limit=robot.effort,
                    armature=_ARMATURE * robot.effort,
                ),
            ),
            soft_joint_pos_limit_factor=0.9,
        ),
        collisions=(
            CollisionCfg(
                geom_names_expr=(".*_collision",),
                contype=0,
                conaffinity=1,
                condim={feet: 3, ".*": 1},
                priority={feet: 1},
                friction={feet: (0.8,)},
            ),
        ),
    )
