"""Sensors of floating robots."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from manyworlds.asset_zoo.imu import add_imu

BODY = """
<mujoco>
  <worldbody>
    <body name="root">
      <freejoint/>
      <inertial mass="2" pos="0.1 0.2 0.3" fullinertia="0.4 0.5 0.6 0.01 0.02 0.03"/>
      <site name="imu" pos="0 0 0.1"/>
    </body>
  </worldbody>
</mujoco>
"""


def test_imu_measures_under_the_names_that_tasks_look_for():
    """Add five sensors."""
    spec = mujoco.MjSpec.from_string(BODY)
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
