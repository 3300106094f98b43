"""Poses of arms at given positions of the hand, against plain MuJoCo C."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from manyworlds.asset_zoo.arm import get_arm_cfg
from manyworlds.entity import EntityCfg
from manyworlds.tasks import load_env_cfg
from manyworlds.tasks.manipulation.config.arm import ARM
from manyworlds.tasks.manipulation.hand_poses import hand_poses
from tests.robots import robot_file


def arm(name: str) -> tuple[EntityCfg, str, dict[str, float]]:
    """Configure an arm; return it with its grasp site and a posture of the hand in front of it."""
    if name == "jaco":
        package = pytest.importorskip("dm_control", reason="needs dm_control, of the extra 'dev'")
        path = Path(package.__file__).parent / "third_party/kinova/jaco_arm.xml"
        posture = {"joint_2": 3.8, "joint_3": 1.4, "joint_5": 1.2}
        return EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_file(str(path))), "wristsite", posture
    if name == "yam":
        robot_file("i2rt_yam/yam.xml")
        return (
            load_env_cfg("Lift-Cube-Yam").scene.entities["robot"],
            ARM.grasp_site,
            dict(ARM.grasp),
        )
    return get_arm_cfg(), ARM.grasp_site, dict(ARM.grasp)


@pytest.mark.parametrize("name", ["arm", "yam", "jaco"])
def test_the_hand_is_where_it_was_asked_to_be(name):
    """Set the joints in a plain model: the site has the stated pose, within the joint limits."""
    cfg, site, posture = arm(name)
    positions = np.random.default_rng(1).uniform((0.2, -0.2, 0.4), (0.5, 0.2, 0.7), (40, 3))
    poses = hand_poses(cfg, site, posture, positions)
    assert len(poses.joint_pos) > 25
    model = cfg.spec_fn().compile()
    data = mujoco.MjData(model)
    hinges = model.jnt_type != mujoco.mjtJoint.mjJNT_FREE
    low, high = model.jnt_range[hinges].T
    limited = model.jnt_limited[hinges].astype(bool)
    for joints, position, quat in zip(
        poses.joint_pos.numpy(), poses.hand_pos.numpy(), poses.hand_quat.numpy(), strict=True
    ):
        data.qpos[:] = joints
        mujoco.mj_forward(model, data)
        found, actual = data.site(site), np.zeros(4)
        mujoco.mju_mat2Quat(actual, found.xmat)
        assert np.abs(found.xpos - position).max() < 2e-3
        assert abs(actual @ quat) == pytest.approx(1.0, abs=1e-5)
        assert ((low - 1e-6 <= joints) & (joints <= high + 1e-6))[limited].all()
        assert np.abs(positions - position).max(axis=1).min() < 1e-6


def test_the_hand_points_away_from_the_root():
    """Go around the root at one distance and height: only the first joint turns."""
    cfg, site, posture = arm("arm")
    angles = np.linspace(-0.6, 0.6, 5)
    positions = np.stack([0.3 * np.cos(angles), 0.3 * np.sin(angles), 0.06 + 0 * angles], axis=1)
    joints = hand_poses(cfg, site, posture, positions).joint_pos.numpy()
    assert joints[:, 0] == pytest.approx(angles, abs=2e-3)
    assert np.ptp(joints[:, 1:], axis=0) == pytest.approx(np.zeros(7), abs=2e-3)


def test_positions_out_of_reach_or_in_the_ground_are_left_out():
    """Ask for one position that is free, one too far away, and one at which fingers are buried."""
    cfg, site, posture = arm("arm")
    positions = np.array([[0.3, 0.0, 0.1], [2.0, 0.0, 0.1], [0.3, 0.0, 0.0]])
    poses = hand_poses(cfg, site, posture, positions)
    assert poses.hand_pos.numpy() == pytest.approx(positions[:1])
    with pytest.raises(ValueError, match="'grasp_site' reaches none of 2 positions"):
        hand_poses(cfg, site, posture, positions[1:])
