"""Properties of `EntityData`, as arrays of one world.

Written by `python tools/write_entity_reads.py`; a test compares them.
"""

from __future__ import annotations

import numpy as np


class EntityReads:
    """State of a robot under the names of `EntityData`."""

    def _read(self, name: str) -> np.ndarray:
        """Return a property, without the dimension of worlds."""
        raise NotImplementedError

    @property
    def actuator_force(self) -> np.ndarray:
        """Actuator efforts before gears [N m or N], shape [num_actuators]."""
        return self._read("actuator_force")

    @property
    def ball_joint_ang_vel(self) -> np.ndarray:
        """Ball joint velocities in the child's frame [rad/s], shape [num_ball_joints, 3]."""
        return self._read("ball_joint_ang_vel")

    @property
    def ball_joint_quat(self) -> np.ndarray:
        """Orientations of ball joints (wxyz), shape [num_ball_joints, 4]."""
        return self._read("ball_joint_quat")

    @property
    def body_ang_vel_w(self) -> np.ndarray:
        """The same as `body_link_ang_vel_w`, shape [num_bodies, 3]."""
        return self._read("body_ang_vel_w")

    @property
    def body_com_ang_vel_w(self) -> np.ndarray:
        """World angular velocities of body com frames [rad/s], shape [num_bodies, 3]."""
        return self._read("body_com_ang_vel_w")

    @property
    def body_com_lin_vel_w(self) -> np.ndarray:
        """World linear velocities of body com frames [m/s], shape [num_bodies, 3]."""
        return self._read("body_com_lin_vel_w")

    @property
    def body_com_pos_w(self) -> np.ndarray:
        """World positions of body com frames [m], shape [num_bodies, 3]."""
        return self._read("body_com_pos_w")

    @property
    def body_com_pose_w(self) -> np.ndarray:
        """World poses of body com frames [m, wxyz], shape [num_bodies, 7]."""
        return self._read("body_com_pose_w")

    @property
    def body_com_quat_w(self) -> np.ndarray:
        """World orientations of body com frames (wxyz), shape [num_bodies, 4]."""
        return self._read("body_com_quat_w")

    @property
    def body_com_vel_w(self) -> np.ndarray:
        """World velocities of body com frames [m/s, rad/s], shape [num_bodies, 6]."""
        return self._read("body_com_vel_w")

    @property
    def body_external_force(self) -> np.ndarray:
        """Forces applied at centers of mass in the world [N], shape [num_bodies, 3]."""
        return self._read("body_external_force")

    @property
    def body_external_torque(self) -> np.ndarray:
        """Torques applied to bodies in the world [N m], shape [num_bodies, 3]."""
        return self._read("body_external_torque")

    @property
    def body_external_wrench(self) -> np.ndarray:
        """Forces and torques applied at centers of mass [N, N m], shape [num_bodies, 6]."""
        return self._read("body_external_wrench")

    @property
    def body_lin_vel_w(self) -> np.ndarray:
        """The same as `body_link_lin_vel_w`, shape [num_bodies, 3]."""
        return self._read("body_lin_vel_w")

    @property
    def body_link_ang_vel_w(self) -> np.ndarray:
        """World angular velocities of body link frames [rad/s], shape [num_bodies, 3]."""
        return self._read("body_link_ang_vel_w")

    @property
    def body_link_lin_vel_w(self) -> np.ndarray:
        """World linear velocities of body link frames [m/s], shape [num_bodies, 3]."""
        return self._read("body_link_lin_vel_w")

    @property
    def body_link_pos_w(self) -> np.ndarray:
        """World positions of body link frames [m], shape [num_bodies, 3]."""
        return self._read("body_link_pos_w")

    @property
    def body_link_pose_w(self) -> np.ndarray:
        """World poses of body link frames [m, wxyz], shape [num_bodies, 7]."""
        return self._read("body_link_pose_w")

    @property
    def body_link_quat_w(self) -> np.ndarray:
        """World orientations of body link frames (wxyz), shape [num_bodies, 4]."""
        return self._read("body_link_quat_w")

    @property
    def body_link_vel_w(self) -> np.ndarray:
        """World velocities of body link frames [m/s, rad/s], shape [num_bodies, 6]."""
        return self._read("body_link_vel_w")

    @property
    def body_pos_w(self) -> np.ndarray:
        """The same as `body_link_pos_w`, shape [num_bodies, 3]."""
        return self._read("body_pos_w")

    @property
    def body_pose_w(self) -> np.ndarray:
        """The same as `body_link_pose_w`, shape [num_bodies, 7]."""
        return self._read("body_pose_w")

    @property
    def body_quat_w(self) -> np.ndarray:
        """The same as `body_link_quat_w`, shape [num_bodies, 4]."""
        return self._read("body_quat_w")

    @property
    def body_vel_w(self) -> np.ndarray:
        """The same as `body_link_vel_w`, shape [num_bodies, 6]."""
        return self._read("body_vel_w")

    @property
    def default_joint_pos(self) -> np.ndarray:
        """Joint positions at reset [rad or m], shape [num_joints]."""
        return self._read("default_joint_pos")

    @property
    def geom_ang_vel_w(self) -> np.ndarray:
        """World angular velocities of geom frames [rad/s], shape [num_geoms, 3]."""
        return self._read("geom_ang_vel_w")

    @property
    def geom_lin_vel_w(self) -> np.ndarray:
        """World linear velocities of geom frames [m/s], shape [num_geoms, 3]."""
        return self._read("geom_lin_vel_w")

    @property
    def geom_pos_w(self) -> np.ndarray:
        """World positions of geom frames [m], shape [num_geoms, 3]."""
        return self._read("geom_pos_w")

    @property
    def geom_pose_w(self) -> np.ndarray:
        """World poses of geom frames [m, wxyz], shape [num_geoms, 7]."""
        return self._read("geom_pose_w")

    @property
    def geom_quat_w(self) -> np.ndarray:
        """World orientations of geom frames (wxyz), shape [num_geoms, 4]."""
        return self._read("geom_quat_w")

    @property
    def geom_vel_w(self) -> np.ndarray:
        """World velocities of geom frames [m/s, rad/s], shape [num_geoms, 6]."""
        return self._read("geom_vel_w")

    @property
    def gravity_vec_w(self) -> np.ndarray:
        """Direction of each world's gravity, zero where there is none, shape [3]."""
        return self._read("gravity_vec_w")

    @property
    def heading_w(self) -> np.ndarray:
        """Angle of the root's forward direction about the world's z [rad], shape []."""
        return self._read("heading_w")

    @property
    def joint_acc(self) -> np.ndarray:
        """Joint accelerations [rad/s^2 or m/s^2], shape [num_joints]."""
        return self._read("joint_acc")

    @property
    def joint_pos(self) -> np.ndarray:
        """Joint positions [rad or m], shape [num_joints]."""
        return self._read("joint_pos")

    @property
    def joint_pos_limits(self) -> np.ndarray:
        """Joint limits [rad or m], infinite where unlimited, shape [num_joints, 2]."""
        return self._read("joint_pos_limits")

    @property
    def joint_vel(self) -> np.ndarray:
        """Joint velocities [rad/s or m/s], shape [num_joints]."""
        return self._read("joint_vel")

    @property
    def projected_gravity_b(self) -> np.ndarray:
        """`gravity_vec_w` in the root body's frame, shape [3]."""
        return self._read("projected_gravity_b")

    @property
    def qfrc_actuator(self) -> np.ndarray:
        """Actuator efforts at the joints [N m or N], shape [num_joints]."""
        return self._read("qfrc_actuator")

    @property
    def qfrc_external(self) -> np.ndarray:
        """Efforts of external wrenches at the joints [N m or N], shape [num_joints]."""
        return self._read("qfrc_external")

    @property
    def root_com_ang_vel_b(self) -> np.ndarray:
        """`root_com_ang_vel_w` in the root body's frame [rad/s], shape [3]."""
        return self._read("root_com_ang_vel_b")

    @property
    def root_com_ang_vel_w(self) -> np.ndarray:
        """World angular velocity of the root's com frame [rad/s], shape [3]."""
        return self._read("root_com_ang_vel_w")

    @property
    def root_com_lin_vel_b(self) -> np.ndarray:
        """`root_com_lin_vel_w` in the root body's frame [m/s], shape [3]."""
        return self._read("root_com_lin_vel_b")

    @property
    def root_com_lin_vel_w(self) -> np.ndarray:
        """World linear velocity of the root's com frame [m/s], shape [3]."""
        return self._read("root_com_lin_vel_w")

    @property
    def root_com_pos_w(self) -> np.ndarray:
        """World position of the root's com frame [m], shape [3]."""
        return self._read("root_com_pos_w")

    @property
    def root_com_pose_w(self) -> np.ndarray:
        """World pose of the root's com frame [m, wxyz], shape [7]."""
        return self._read("root_com_pose_w")

    @property
    def root_com_quat_w(self) -> np.ndarray:
        """World orientation of the root's com frame (wxyz), shape [4]."""
        return self._read("root_com_quat_w")

    @property
    def root_com_vel_w(self) -> np.ndarray:
        """World velocity of the root's com frame [m/s, rad/s], shape [6]."""
        return self._read("root_com_vel_w")

    @property
    def root_link_ang_vel_b(self) -> np.ndarray:
        """`root_link_ang_vel_w` in the root body's frame [rad/s], shape [3]."""
        return self._read("root_link_ang_vel_b")

    @property
    def root_link_ang_vel_w(self) -> np.ndarray:
        """World angular velocity of the root's link frame [rad/s], shape [3]."""
        return self._read("root_link_ang_vel_w")

    @property
    def root_link_lin_vel_b(self) -> np.ndarray:
        """`root_link_lin_vel_w` in the root body's frame [m/s], shape [3]."""
        return self._read("root_link_lin_vel_b")

    @property
    def root_link_lin_vel_w(self) -> np.ndarray:
        """World linear velocity of the root's link frame [m/s], shape [3]."""
        return self._read("root_link_lin_vel_w")

    @property
    def root_link_pos_w(self) -> np.ndarray:
        """World position of the root's link frame [m], shape [3]."""
        return self._read("root_link_pos_w")

    @property
    def root_link_pose_w(self) -> np.ndarray:
        """World pose of the root's link frame [m, wxyz], shape [7]."""
        return self._read("root_link_pose_w")

    @property
    def root_link_quat_w(self) -> np.ndarray:
        """World orientation of the root's link frame (wxyz), shape [4]."""
        return self._read("root_link_quat_w")

    @property
    def root_link_vel_w(self) -> np.ndarray:
        """World velocity of the root's link frame [m/s, rad/s], shape [6]."""
        return self._read("root_link_vel_w")

    @property
    def site_ang_vel_w(self) -> np.ndarray:
        """World angular velocities of site frames [rad/s], shape [num_sites, 3]."""
        return self._read("site_ang_vel_w")

    @property
    def site_lin_vel_w(self) -> np.ndarray:
        """World linear velocities of site frames [m/s], shape [num_sites, 3]."""
        return self._read("site_lin_vel_w")

    @property
    def site_pos_w(self) -> np.ndarray:
        """World positions of site frames [m], shape [num_sites, 3]."""
        return self._read("site_pos_w")

    @property
    def site_pose_w(self) -> np.ndarray:
        """World poses of site frames [m, wxyz], shape [num_sites, 7]."""
        return self._read("site_pose_w")

    @property
    def site_quat_w(self) -> np.ndarray:
        """World orientations of site frames (wxyz), shape [num_sites, 4]."""
        return self._read("site_quat_w")

    @property
    def site_vel_w(self) -> np.ndarray:
        """World velocities of site frames [m/s, rad/s], shape [num_sites, 6]."""
        return self._read("site_vel_w")

    @property
    def tendon_len(self) -> np.ndarray:
        """Tendon lengths [m], shape [num_tendons]."""
        return self._read("tendon_len")

    @property
    def tendon_vel(self) -> np.ndarray:
        """Tendon velocities [m/s], shape [num_tendons]."""
        return self._read("tendon_vel")
