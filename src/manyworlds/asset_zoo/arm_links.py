"""Links of the arm, see `manyworlds.asset_zoo.arm`; nothing here needs torch."""

from __future__ import annotations

import mujoco

from manyworlds.asset_zoo.links import (
    Inertial,
    Joint,
    Link,
    box,
    build_spec,
    capsule,
    cylinder,
    mirrored,
)

_SLIDE = mujoco.mjtJoint.mjJNT_SLIDE

_LEFT_FINGER = Link(
    name="link_left_finger",
    parent="link_6",
    pos=(0.0605, 0.0, 0.0),
    joint=Joint("left_finger", (0, 1, 0), (-0.00205, 0.037524), _SLIDE),
    inertial=Inertial(
        0.118,
        (0.0192995, 0.002774, 0.0),
        (0.000132042, 0.000153523, 7.47934e-05, -9.37931e-06, 4.65705e-05, 1.30806e-05),
    ),
    shapes=(
        box("left_finger_rail_collision", (0.009, 0.012, 0.03), (0.012, 0.0165, 0.0), "motor"),
        box("left_finger_pad_collision", (0.04, 0.004, 0.011), (0.046, 0.0044, -0.034), "rubber"),
        capsule("left_finger_back", 0.008, (0.014, 0.014, -0.03), (0.07, 0.011, -0.034), "frame"),
    ),
)

_LINKS = (
    Link(
        name="arm",
        parent=None,
        inertial=Inertial(
            0.218956, (0, 0, 0.026), (0.000138791, 0.000138791, 0.000102829, 0, 0, 0)
        ),
        shapes=(
            cylinder("base_collision", 0.042, (0, 0, 0), (0, 0, 0.056), "frame"),
            box("base_plate", (0.06, 0.06, 0.006), (0, 0, 0.006), "motor"),
        ),
    ),
    Link(
        name="link_1",
        parent="arm",
        pos=(0, 0, 0.0631),
        joint=Joint("joint1", (0, 0, 1), (-2.61799, 3.05433)),
        inertial=Inertial(
            0.12415, (0.00795735, -0.00192861, 0.0208176),
            (0.000169215, 5.98038e-05, 0.000156182, 4.59011e-06, -1.68338e-05, 7.41112e-06),
        ),
        shapes=(
            cylinder("link1_turret", 0.04, (0, 0, -0.005), (0, 0, 0.012), "accent"),
            box("link1_fork_left", (0.026, 0.005, 0.03), (0.014, 0.036, 0.036), "shell"),
            box("link1_fork_right", (0.026, 0.005, 0.03), (0.014, -0.036, 0.036), "shell"),
        ),
    ),
    Link(
        name="link_2",
        parent="link_1",
        pos=(0.02, 2.5e-05, 0.0409),
        joint=Joint("joint2", (0, 1, 0), (0.0, 3.66519)),
        inertial=Inertial(
            1.24434, (-0.132008, 0.000293073, 2.10599e-06),
            (0.000683304, 0.0121318, 0.0121902, 0, 0, 0),
        ),
        shapes=(
            cylinder("link2_shoulder", 0.033, (0, -0.031, 0), (0, 0.031, 0), "motor"),
            capsule("link2_collision", 0.03, (-0.02, 0, 0), (-0.244, 0, 0), "shell"),
            cylinder("link2_elbow", 0.033, (-0.264, -0.043, 0), (-0.264, 0.043, 0), "motor"),
        ),
    ),
    Link(
        name="link_3",
        parent="link_2",
        pos=(-0.264, 0, 0),
        joint=Joint("joint3", (0, -1, 0), (0.0, 3.66519)),
        inertial=Inertial(
            0.853698, (0.121816, 0.000111108, 0.054846),
            (0.000788244, 0.00696112, 0.00699732, 0, 0, 0),
        ),
        shapes=(
            capsule("link3_bend", 0.026, (0, 0, 0), (0.03, 0, 0.06), "frame"),
            capsule("link3_collision", 0.028, (0.03, 0, 0.06), (0.245, 0, 0.06), "shell"),
            cylinder("link3_wrist", 0.03, (0.245, -0.032, 0.06), (0.245, 0.032, 0.06), "motor"),
        ),
    ),
    Link(
        name="link_4",
        parent="link_3",
        pos=(0.245, 0, 0.06),
        joint=Joint("joint4", (0, -1, 0), (-1.5708, 1.5708)),
        inertial=Inertial(
            0.463511, (0.0769778, -0.000154878, 0.0527104),
            (0.000590042, 0.000744733, 0.000483606, 0, -0.000249086, 0),
        ),
        shapes=(
            capsule("link4_bend", 0.022, (0, 0, 0), (0.05, 0, 0.055), "frame"),
            cylinder("link4_collision", 0.028, (0.074, 0, 0.03), (0.074, 0, 0.076), "shell"),
        ),
    ),
    Link(
        name="link_5",
        parent="link_4",
        pos=(0.074, -2.5e-05, 0.0395),
        joint=Joint("joint5", (0, 0, -1), (-1.5708, 1.5708)),
        inertial=Inertial(
            0.350962, (0.00025665, 3.64861e-05, -0.0353526),
            (0.0001775, 0.000197802, 0.000147402, 0, 0, 0),
        ),
        shapes=(
            cylinder("link5_stem", 0.024, (0, 0, -0.0395), (0, 0, 0), "frame"),
            cylinder("link5_collision", 0.029, (-0.012, 0, -0.0395), (0.034, 0, -0.0395), "motor"),
        ),
    ),
    Link(
        name="link_6",
        parent="link_5",
        pos=(0.0353, 0, -0.0395),
        joint=Joint("joint6", (1, 0, 0), (-2.0944, 2.0944)),
        inertial=Inertial(
            0.367476, (0.0270545, -0.000217767, 7.37059e-05),
            (0.000242686, 0.000265958, 0.000227409, 0, 0, 0),
        ),
        shapes=(
            cylinder("link6_flange", 0.03, (0.002, 0, 0), (0.024, 0, 0), "accent"),
            box("link6_collision", (0.018, 0.07, 0.026), (0.042, 0, 0), "shell"),
        ),
        sites=(("tcp_site", (0, 0, 0)), ("grasp_site", (0.1247, 0, -0.03))),
    ),
    _LEFT_FINGER,
    mirrored(_LEFT_FINGER, "left_", "right_"),
)  # fmt: skip


def get_spec() -> mujoco.MjSpec:
    """Build the arm; with all joints at zero it is folded back, gripper forward, fingers closed."""
    spec = build_spec("arm", _LINKS, floating=False)
    # One rack drives both fingers.
    coupling = spec.add_equality(
        type=mujoco.mjtEq.mjEQ_JOINT, name1="left_finger", name2="right_finger"
    )
    coupling.data[:5] = (0, -1, 0, 0, 0)
    return carried(spec)


def carried(spec: mujoco.MjSpec) -> mujoco.MjSpec:
    """Enable gravity compensation of all bodies, as the manufacturer's controller does."""
    for body in spec.bodies[1:]:
        body.gravcomp = 1.0
    return spec
