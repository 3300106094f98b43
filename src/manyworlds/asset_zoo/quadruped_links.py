"""Links of the quadruped, see `manyworlds.asset_zoo.quadruped`; nothing here needs torch."""

from __future__ import annotations

import mujoco

from manyworlds.asset_zoo.links import (
    Inertial,
    Joint,
    Link,
    add_imu,
    box,
    build_spec,
    capsule,
    cylinder,
    mirrored,
    sphere,
)

# go1_description, const.xacro: hip positions and link lengths.
_HIP_X, _HIP_Y = 0.1881, 0.04675  # [m]
_HIP_WIDTH = 0.08  # [m], from the hip axis to the plane in which thigh and calf move
_LENGTH = 0.213  # [m], of the thigh, and of the calf
FOOT_RADIUS = 0.023
"""Radius of the sphere at the end of the leg [m]."""

_TRUNK = Link(
    name="trunk",
    parent=None,
    # go1_description, const.xacro.
    inertial=Inertial(
        5.204, (0.0223, 0.0, -0.0005), (0.0168128, 0.0630095, 0.0716547, 0.0, -0.000294553, 0.0)
    ),
    shapes=(
        capsule("trunk_collision1", 0.046, (-0.15, 0.042, 0), (0.16, 0.042, 0), "shell"),
        capsule("trunk_collision2", 0.046, (-0.15, -0.042, 0), (0.16, -0.042, 0), "shell"),
        box("trunk_deck", (0.165, 0.042, 0.046), (0.005, 0.0, 0.0), "shell"),
        capsule("head_collision", 0.05, (0.235, 0.03, 0.006), (0.235, -0.03, 0.006), "frame"),
        capsule("tail_cover", 0.044, (-0.19, 0.02, 0), (-0.19, -0.02, 0), "shell"),
        capsule("head_light", 0.008, (0.28, 0.032, 0.018), (0.28, -0.032, 0.018), "accent"),
    ),
    # go1_description, go1.urdf: joint of the IMU.
    sites=(("imu", (-0.01592, -0.06659, -0.00617)),),
)


def _left_leg(leg: str, front: int) -> tuple[Link, ...]:
    """Describe a leg of the left side, at the front (1) or at the rear (-1)."""
    hip, thigh, calf = f"{leg}_hip", f"{leg}_thigh", f"{leg}_calf"
    return (
        Link(
            name=hip,
            parent="trunk",
            pos=(front * _HIP_X, _HIP_Y, 0.0),
            joint=Joint(f"{hip}_joint", (1, 0, 0), (-0.863, 0.863)),
            inertial=Inertial(
                0.68,
                (-0.0049166 * front, -0.00762615, -8.865e-05),
                (
                    0.00039938,
                    0.000733419,
                    0.000468422,
                    -1.45897e-05 * front,
                    1.24609e-06 * front,
                    1.57518e-06,
                ),
            ),
            shapes=(capsule(f"{hip}_collision", 0.042, (0, 0.024, 0), (0, 0.034, 0), "frame"),),
        ),
        Link(
            name=thigh,
            parent=hip,
            pos=(0.0, _HIP_WIDTH, 0.0),
            joint=Joint(f"{thigh}_joint", (0, 1, 0), (-0.686, 4.501)),
            inertial=Inertial(
                1.009,
                (-0.00304722, -0.019315, -0.0305004),
                (0.0045988, 0.00468922, 0.000817448, 6.13737e-05, -0.00022753, 0.000610808),
            ),
            shapes=(
                # Ends above the knee, so that a kneeling leg touches the ground with its calf.
                capsule(f"{thigh}_collision", 0.019, (-0.012, 0, -0.02), (0, 0, -0.19), "shell"),
                cylinder(f"{thigh}_motor", 0.042, (0, -0.026, 0), (0, 0.018, 0), "motor"),
            ),
        ),
        Link(
            name=calf,
            parent=thigh,
            pos=(0.0, 0.0, -_LENGTH),
            joint=Joint(f"{calf}_joint", (0, 1, 0), (-2.818, -0.888)),
            inertial=Inertial(
                0.195862,
                (0.00429862, 0.0, -0.146197),
                (0.00148449, 0.00149764, 3.60682e-05, 0.0, -1.772e-05, 0.0),
            ),
            shapes=(
                capsule(f"{calf}_collision", 0.014, (0, 0, 0), (0, 0, -_LENGTH), "frame"),
                sphere(f"{leg}_foot_collision", FOOT_RADIUS, (0, 0, -_LENGTH), "rubber"),
            ),
            sites=((leg, (0, 0, -_LENGTH)),),
        ),
    )


def _links() -> tuple[Link, ...]:
    front, rear = _left_leg("FL", 1), _left_leg("RL", -1)
    return (
        _TRUNK,
        *(mirrored(link, "FL", "FR") for link in front),
        *front,
        *(mirrored(link, "RL", "RR") for link in rear),
        *rear,
    )


def get_spec() -> mujoco.MjSpec:
    """Build the robot; with all joints at zero the legs are straight down."""
    spec = build_spec("quadruped", _links(), floating=True)
    add_imu(spec, site="imu", root="trunk")
    return spec
