"""Links of the humanoid, see `manyworlds.asset_zoo.humanoid`; nothing here needs torch."""

from __future__ import annotations

import mujoco

from manyworlds.asset_zoo.links import (
    Inertial,
    Joint,
    Link,
    LinkShape,
    Vec3,
    add_imu,
    box,
    build_spec,
    capsule,
    cylinder,
    ellipsoid,
    mirrored,
)

_AXES: dict[str, Vec3] = {"roll": (1, 0, 0), "pitch": (0, 1, 0), "yaw": (0, 0, 1)}


def _link(
    name: str,
    parent: str,
    axis: str,
    limits: tuple[float, float],
    pos: Vec3,
    inertial: Inertial,
    shapes: tuple[LinkShape, ...] = (),
    tilt: Vec3 = (0.0, 0.0, 0.0),
    sites: tuple[tuple[str, Vec3], ...] = (),
) -> Link:
    """Describe a link with a joint of the same name."""
    return Link(
        name=f"{name}_link",
        parent=parent,
        pos=pos,
        tilt=tilt,
        joint=Joint(f"{name}_joint", _AXES[axis], limits),
        inertial=inertial,
        shapes=shapes,
        sites=sites,
    )


# g1_29dof_rev_1_0.urdf: joint positions and limits, inertias. (mass, center, xx yy zz xy xz yz.)
_TRUNK = (
    Link(
        name="pelvis",
        parent=None,
        inertial=Inertial(
            3.813, (0, 0, -0.07605), (0.010549, 0.0093089, 0.0079184, 0, 2.1e-06, 0)
        ),
        shapes=(
            capsule("pelvis_collision", 0.062, (0, 0.03, -0.085), (0, -0.03, -0.085), "frame"),
            cylinder("pelvis_waist", 0.05, (0, 0, -0.06), (0, 0, 0.025), "motor"),
        ),
        sites=(("imu_in_pelvis", (0.04525, 0.0, -0.08339)),),
    ),
    _link(
        "waist_yaw", "pelvis", "yaw", (-2.618, 2.618), (0, 0, 0),
        Inertial(0.214, (0.003494, 0, 0.018034),
                 (0.00010673, 0.00010422, 0.0001625, 0, -7.63112e-06, 0)),
    ),
    _link(
        "waist_roll", "waist_yaw_link", "roll", (-0.52, 0.52), (-0.0039635, 0, 0.044),
        Inertial(0.086, (0, 0, 0), (7.079e-06, 6.339e-06, 8.245e-06, 0, 0, 0)),
    ),
    Link(
        name="torso_link",
        parent="waist_roll_link",
        joint=Joint("waist_pitch_joint", _AXES["pitch"], (-0.52, 0.52)),
        inertial=Inertial(
            7.818, (0.00203158, 0, 0.184568), (0.121698, 0.109825, 0.027522, 0, -0.00374229, 0)
        ),
        shapes=(
            capsule("torso_collision1", 0.08, (0.005, 0.03, 0.24), (0.005, -0.03, 0.24), "shell"),
            capsule("torso_collision2", 0.066, (0.005, 0.02, 0.10), (0.005, -0.02, 0.10), "shell"),
            capsule("torso_left", 0.07, (0.005, 0.022, 0.11), (0.005, 0.03, 0.24), "shell"),
            capsule("torso_right", 0.07, (0.005, -0.022, 0.11), (0.005, -0.03, 0.24), "shell"),
            box("torso_front", (0.07, 0.026, 0.075), (0.005, 0, 0.175), "shell"),
            capsule("torso_waist", 0.044, (-0.004, 0, 0), (0, 0, 0.06), "frame"),
            capsule("torso_light", 0.008, (0.079, 0.03, 0.255), (0.079, -0.03, 0.255), "accent"),
            cylinder("torso_neck", 0.032, (0, 0, 0.30), (0, 0, 0.37), "motor"),
            capsule("head_collision", 0.062, (0.005, 0, 0.395), (0.005, 0, 0.44), "shell"),
            ellipsoid("head_face", (0.03, 0.05, 0.055), (0.047, 0, 0.415), "frame"),
        ),
        sites=(("imu_in_torso", (-0.03959, -0.00224, 0.14792)),),
    ),
)  # fmt: skip

_LEFT_LEG = (
    _link(
        "left_hip_pitch", "pelvis", "pitch", (-2.5307, 2.8798), (0, 0.064452, -0.1027),
        Inertial(1.35, (0.002741, 0.047791, -0.02606),
                 (0.001811, 0.0014193, 0.0012812, 3.68001e-05, -3.44002e-05, 0.000171)),
        (cylinder("left_hip_motor", 0.046, (0, 0.008, 0), (0, 0.085, 0), "motor"),),
    ),
    _link(
        "left_hip_roll", "left_hip_pitch_link", "roll", (-0.5236, 2.9671),
        (0, 0.052, -0.030465),
        Inertial(1.52, (0.029812, -0.001045, -0.087934),
                 (0.0023773, 0.0024123, 0.0016595, -3.80017e-06, -0.0003908, 1.84e-05)),
        (capsule("left_hip_collision", 0.05, (0.022, 0, -0.02), (0.022, 0, -0.08), "frame"),),
        tilt=(0, -10.021, 0),
    ),
    _link(
        "left_hip_yaw", "left_hip_roll_link", "yaw", (-2.7576, 2.7576), (0.025001, 0, -0.12412),
        Inertial(1.702, (-0.057709, -0.010981, -0.15078),
                 (0.0057774, 0.0076124, 0.003149, -0.000541101, -0.0023948, -0.000707202)),
        (capsule("left_thigh_collision", 0.054, (-0.004, 0, -0.03), (-0.066, 0, -0.15), "shell"),
         cylinder("left_knee_motor", 0.05, (-0.078273, -0.038, -0.17734),
                  (-0.078273, 0.042, -0.17734), "motor")),
    ),
    _link(
        "left_knee", "left_hip_yaw_link", "pitch", (-0.087267, 2.8798),
        (-0.078273, 0.0021489, -0.17734),
        Inertial(1.932, (0.005457, 0.003964, -0.12074),
                 (0.011329, 0.011277, 0.0015168, 4.81665e-05, -4.48975e-05, -0.0007146)),
        (capsule("left_shin_collision", 0.042, (0.01, 0, -0.045), (0.006, 0, -0.17), "shell"),
         capsule("left_shank_collision", 0.028, (0.006, 0, -0.18), (0, 0, -0.285), "frame")),
        tilt=(0, 10.021, 0),
    ),
    _link(
        "left_ankle_pitch", "left_knee_link", "pitch", (-0.87267, 0.5236),
        (0, -9.4445e-05, -0.30001),
        Inertial(0.074, (-0.007269, 0, 0.011137), (8.4e-06, 1.89e-05, 1.26e-05, 0, -2.9e-06, 0)),
    ),
    _link(
        "left_ankle_roll", "left_ankle_pitch_link", "roll", (-0.2618, 0.2618), (0, 0, -0.017558),
        Inertial(0.608, (0.026505, 0, -0.016425),
                 (0.0002231, 0.0016161, 0.0016667, 2e-07, 8.9101e-05, -1.00002e-07)),
        (capsule("left_foot1_collision", 0.012, (-0.05, 0.02, -0.023), (0.12, 0.02, -0.023),
                 "rubber"),
         capsule("left_foot2_collision", 0.012, (-0.05, -0.02, -0.023), (0.12, -0.02, -0.023),
                 "rubber"),
         box("left_foot_sole", (0.085, 0.02, 0.0115), (0.035, 0, -0.023), "rubber"),
         ellipsoid("left_foot_shoe", (0.09, 0.03, 0.024), (0.035, 0, -0.016), "frame")),
        sites=(("left_foot", (0.04, 0, -0.037)),),
    ),
)  # fmt: skip

_LEFT_ARM = (
    _link(
        "left_shoulder_pitch", "torso_link", "pitch", (-3.0892, 2.6704),
        (0.0039563, 0.10022, 0.24778),
        Inertial(0.718, (0, 0.035892, -0.011628),
                 (0.0004291, 0.000453, 0.000423, -9.20002e-06, 6.39978e-06, 2.26001e-05)),
        (cylinder("left_shoulder_motor", 0.036, (0, 0.005, 0), (0, 0.055, 0), "motor"),),
        tilt=(16.0033, 0, 0),
    ),
    _link(
        "left_shoulder_roll", "left_shoulder_pitch_link", "roll", (-1.5882, 2.2515),
        (0, 0.038, -0.013831),
        Inertial(0.643, (-0.000227, 0.00727, -0.063243),
                 (0.0006177, 0.0006912, 0.0003894, -1.00008e-06, 8.7e-06, -5.30032e-06)),
        (capsule("left_shoulder_shell", 0.037, (0, 0.004, 0), (0, 0.006, -0.05), "shell"),),
        tilt=(-16.0, 0, 0),
    ),
    _link(
        "left_shoulder_yaw", "left_shoulder_roll_link", "yaw", (-2.618, 2.618),
        (0, 0.00624, -0.1032),
        Inertial(0.734, (0.010773, -0.002949, -0.072009),
                 (0.000998804, 0.0010605, 0.0004354, 7.89971e-06, 0.000141201, -2.85999e-05)),
        (capsule("left_shoulder_yaw_collision", 0.034, (0, 0, 0.03), (0.004, 0, -0.06), "shell"),
         cylinder("left_elbow_motor", 0.036, (0.015783, -0.034, -0.080518),
                  (0.015783, 0.034, -0.080518), "motor")),
    ),
    _link(
        "left_elbow", "left_shoulder_yaw_link", "pitch", (-1.0472, 2.0944),
        (0.015783, 0, -0.080518),
        Inertial(0.6, (0.064956, 0.004454, -0.010062),
                 (0.0002891, 0.0004152, 0.0004197, 6.53002e-05, 1.72001e-05, -5.60009e-06)),
        (capsule("left_elbow_yaw_collision", 0.031, (0.02, 0, -0.01), (0.09, 0, -0.01), "shell"),),
    ),
    _link(
        "left_wrist_roll", "left_elbow_link", "roll", (-1.97222, 1.97222),
        (0.1, 0.00188791, -0.01),
        Inertial(0.085445, (0.0171394, 0.000537591, 0),
                 (4.82154e-05, 3.7229e-05, 5.48211e-05, -4.24514e-06, 0, 0)),
    ),
    _link(
        "left_wrist_pitch", "left_wrist_roll_link", "pitch", (-1.61443, 1.61443), (0.038, 0, 0),
        Inertial(0.48405, (0.0229999, -0.00111685, -0.00111658),
                 (0.000165797, 0.000429541, 0.000429537, -1.2312e-05, 1.2317e-05, 8.14249e-07)),
        (capsule("left_wrist_collision", 0.029, (-0.005, 0, 0), (0.046, 0, 0), "frame"),),
    ),
    _link(
        "left_wrist_yaw", "left_wrist_pitch_link", "yaw", (-1.61443, 1.61443), (0.046, 0, 0),
        Inertial(0.254576, (0.0708244, 0.000191745, 0.00161742),
                 (0.000150445, 0.000643114, 0.000560114, 3.76029e-05, -2.95447e-06, 3.77545e-06)),
        (capsule("left_hand_collision", 0.032, (0.06, 0, 0), (0.115, -0.004, 0), "rubber"),),
        sites=(("left_palm", (0.08, 0, 0)),),
    ),
)  # fmt: skip


def _links() -> tuple[Link, ...]:
    pelvis, *upper = _TRUNK
    right_leg, right_arm = (
        tuple(mirrored(link, "left_", "right_") for link in limb) for limb in (_LEFT_LEG, _LEFT_ARM)
    )
    return (pelvis, *_LEFT_LEG, *right_leg, *upper, *_LEFT_ARM, *right_arm)


def get_spec() -> mujoco.MjSpec:
    """Build the robot; with all joints at zero it is upright, legs straight, forearms forward."""
    spec = build_spec("humanoid", _links(), floating=True)
    add_imu(spec, site="imu_in_pelvis", root="pelvis")
    for side in ("left", "right"):
        for one, other in (
            ("pelvis", f"{side}_hip_roll_link"),
            (f"{side}_elbow_link", f"{side}_wrist_pitch_link"),
        ):
            spec.add_exclude(bodyname1=one, bodyname2=other)
    return spec
