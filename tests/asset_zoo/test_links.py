"""Tables of links: what becomes of a row."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest

from manyworlds.asset_zoo.links import (
    Inertial,
    Joint,
    Link,
    add_imu,
    box,
    build_spec,
    capsule,
    cylinder,
    ellipsoid,
    mirrored,
    sphere,
)

MASS = Inertial(2.0, (0.1, 0.2, 0.3), (0.4, 0.5, 0.6, 0.01, 0.02, 0.03))
ROOT = Link(name="root", parent=None, inertial=MASS, sites=(("imu", (0.0, 0.0, 0.1)),))
LEFT_ARM = Link(
    name="left_arm",
    parent="root",
    pos=(0.0, 0.3, 0.0),
    tilt=(30.0, 0.0, 0.0),
    joint=Joint("left_joint", (1, 0, 0), (-0.5, 1.0)),
    inertial=MASS,
    shapes=(
        sphere("left_collision", 0.1, (0.0, 0.1, 0.0), "rubber"),
        capsule("left_rod_collision1", 0.1, (0.0, 0.1, 0.0), (0.0, 0.3, 0.0), "frame"),
        cylinder("left_rod", 0.1, (0.0, 0.1, 0.0), (0.0, 0.3, 0.4), "frame"),
        box("left_box", (0.1, 0.2, 0.3), (0.0, 0.1, 0.0), "shell"),
        ellipsoid("left_egg", (0.1, 0.2, 0.3), (0.0, 0.1, 0.0), "accent"),
    ),
    sites=(("left_hand", (0.0, 0.4, 0.0)),),
)


def test_a_row_becomes_a_body():
    """Find place, rotation, inertia, joint, shapes and sites in the compiled model."""
    model = build_spec("test", [ROOT, LEFT_ARM], floating=True).compile()
    arm = model.body("left_arm")
    assert model.joint(0).type[0] == mujoco.mjtJoint.mjJNT_FREE
    assert arm.mass[0] == 2.0
    np.testing.assert_allclose(arm.quat, (math.cos(math.pi / 12), math.sin(math.pi / 12), 0, 0))
    axes = np.zeros(9)
    mujoco.mju_quat2Mat(axes, arm.iquat)
    axes = axes.reshape(3, 3)
    inertia = [[0.4, 0.01, 0.02], [0.01, 0.5, 0.03], [0.02, 0.03, 0.6]]
    np.testing.assert_allclose(axes @ np.diag(arm.inertia) @ axes.T, inertia, atol=1e-12)
    np.testing.assert_array_equal(model.joint("left_joint").range, (-0.5, 1.0))
    colliding = [model.geom(i).name for i in range(model.ngeom) if model.geom_contype[i]]
    assert colliding == ["left_collision", "left_rod_collision1"]
    assert set(model.geom_group) == {2}  # rays that look for the ground see group 0
    rod = model.geom("left_rod")
    assert rod.size[1] == pytest.approx(math.hypot(0.1, 0.2))
    np.testing.assert_allclose(rod.pos, (0.0, 0.2, 0.2))
    np.testing.assert_array_equal(model.site("left_hand").pos, (0.0, 0.4, 0.0))


def test_a_fixed_root_has_no_joint():
    """Leave out the free joint."""
    assert build_spec("test", [ROOT], floating=False).compile().nv == 0


@pytest.mark.parametrize(
    ("axis", "kind", "expected"),
    [
        ((1, 0, 0), "mjJNT_HINGE", (-1.0, 0.5)),
        ((0, 1, 0), "mjJNT_HINGE", (-0.5, 1.0)),
        ((0, 0, 1), "mjJNT_HINGE", (-1.0, 0.5)),
        ((1, 0, 0), "mjJNT_SLIDE", (-0.5, 1.0)),
        ((0, 1, 0), "mjJNT_SLIDE", (-1.0, 0.5)),
    ],
)
def test_limits_of_the_other_side(axis, kind, expected):
    """Swap the limits of what changes its sign in a mirror."""
    joint = Joint("left_joint", axis, (-0.5, 1.0), getattr(mujoco.mjtJoint, kind))
    link = Link(name="left_arm", parent="root", joint=joint, inertial=MASS)
    assert mirrored(link, "left", "right").joint == joint._replace(
        name="right_joint", range=expected
    )


def test_two_reflections_change_nothing():
    """Reflect a link and its mirror image."""
    right = mirrored(LEFT_ARM, "left", "right")
    assert right.name == "right_arm" and right.pos == (0.0, -0.3, 0.0)
    assert right.tilt == (-30.0, 0.0, 0.0)
    assert mirrored(right, "right", "left") == LEFT_ARM


def test_imu_measures_under_the_names_that_tasks_look_for():
    """Add five sensors."""
    spec = build_spec("test", [ROOT], floating=True)
    add_imu(spec, "imu", "root")
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qvel[:3] = (1.0, 2.0, 3.0)
    data.qvel[5] = 0.5
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(data.sensor("imu_lin_vel").data, (1.0, 2.0, 3.0))
    np.testing.assert_allclose(data.sensor("imu_ang_vel").data, (0.0, 0.0, 0.5))
    np.testing.assert_allclose(data.sensor("imu_upvector").data, (0.0, 0.0, 1.0))
    assert data.sensor("root_angmom").data[2] == pytest.approx(0.3)
    assert model.sensor("imu_lin_acc").dim[0] == 3
