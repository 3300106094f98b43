"""Sensors of floating robots."""

from __future__ import annotations

import mujoco


def add_imu(spec: mujoco.MjSpec, site: str, root: str) -> None:
    """Add the sensors of a floating robot, with the names that tasks expect.

    Args:
        spec: the robot.
        site: site of the inertial measurement unit.
        root: root body of the robot.
    """
    sensors = {
        "imu_ang_vel": mujoco.mjtSensor.mjSENS_GYRO,
        "imu_lin_vel": mujoco.mjtSensor.mjSENS_VELOCIMETER,
        "imu_lin_acc": mujoco.mjtSensor.mjSENS_ACCELEROMETER,
    }
    for name, kind in sensors.items():
        spec.add_sensor(name=name, type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname=site)
    spec.add_sensor(
        name="imu_upvector",
        type=mujoco.mjtSensor.mjSENS_FRAMEZAXIS,
        objtype=mujoco.mjtObj.mjOBJ_BODY,
        objname="world",
        reftype=mujoco.mjtObj.mjOBJ_SITE,
        refname=site,
    )
    spec.add_sensor(
        name="root_angmom",
        type=mujoco.mjtSensor.mjSENS_SUBTREEANGMOM,
        objtype=mujoco.mjtObj.mjOBJ_BODY,
        objname=root,
    )
