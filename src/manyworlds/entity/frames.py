"""Poses and velocities of an entity's frames as tensors."""

from __future__ import annotations

import torch

from manyworlds.entity.indexing import EntityIndexing
from manyworlds.sim.gravity import gravity_direction
from manyworlds.sim.views import DataView, ModelView
from manyworlds.sim.write_mark import WriteMark
from manyworlds.utils.declared import declared
from manyworlds.utils.math import quat_mul
from manyworlds.utils.math.vectors import atan2
from manyworlds.validation.worlds import as_index


def compute_velocity_from_cvel(
    pos: torch.Tensor, subtree_com: torch.Tensor, cvel: torch.Tensor
) -> torch.Tensor:
    """Return world velocities [m/s, rad/s] of points that move with bodies, shape [..., 6].

    Args:
        pos: the points in the world [m], shape [..., 3].
        subtree_com: centers of mass of the trees that the bodies belong to [m], shape [..., 3].
        cvel: MuJoCo's velocities of the bodies [rad/s, m/s], shape [..., 6].
    """
    return torch.cat([_point_velocity(pos, subtree_com, cvel), cvel[..., :3]], dim=-1)


def _point_velocity(
    pos: torch.Tensor, subtree_com: torch.Tensor, cvel: torch.Tensor
) -> torch.Tensor:
    # MuJoCo's cvel is the velocity of the point of the body that is at its tree's center of mass:
    # https://mujoco.readthedocs.io/en/stable/computation/index.html#forward-dynamics
    return cvel[..., 3:] + torch.linalg.cross(cvel[..., :3], pos - subtree_com)


class FrameReader:
    """Reads poses and velocities of frames of one kind, each of which moves with a body.

    Every tensor is a new one of shape [num_envs, num_frames, ...], or [num_envs, ...] for one frame
    whose ids are integers.

    Args:
        model: the simulation's model.
        data: the simulation's data.
        pos: field of `data` with the positions of the frames.
        frame_ids: indices of the frames in `pos`.
        body_ids: indices of the bodies that the frames move with.
        tree_ids: indices of the roots of the trees of these bodies.
        quat: field of `model` with the orientations of the frames relative to their bodies; None
            for the frames of the bodies themselves.
    """

    def __init__(
        self,
        model: ModelView,
        data: DataView,
        pos: str,
        frame_ids: int | slice | torch.Tensor,
        body_ids: int | slice | torch.Tensor,
        tree_ids: int | slice | torch.Tensor,
        quat: str | None = None,
    ) -> None:
        self._model = model
        self._data = data
        self._pos = pos
        self._quat = quat
        self._frame_ids = frame_ids
        self._body_ids = body_ids
        self._tree_ids = tree_ids

    def pos_w(self) -> torch.Tensor:
        """Return positions in the world [m], shape [..., 3]."""
        return getattr(self._data, self._pos)[:, self._frame_ids].clone()

    def quat_w(self) -> torch.Tensor:
        """Return orientations in the world (wxyz), shape [..., 4]."""
        # MuJoCo stores quaternions of bodies only.
        quat = self._data.xquat[:, self._body_ids]
        if self._quat is None:
            return quat.clone()
        return quat_mul(quat, getattr(self._model, self._quat)[:, self._frame_ids])

    def pose_w(self) -> torch.Tensor:
        """Return poses in the world [m, wxyz], shape [..., 7]."""
        return torch.cat([self._position(), self.quat_w()], dim=-1)

    def vel_w(self) -> torch.Tensor:
        """Return linear and angular velocities in the world [m/s, rad/s], shape [..., 6]."""
        return compute_velocity_from_cvel(self._position(), self._subtree_com(), self._cvel())

    def lin_vel_w(self) -> torch.Tensor:
        """Return linear velocities in the world [m/s], shape [..., 3]."""
        return _point_velocity(self._position(), self._subtree_com(), self._cvel())

    def ang_vel_w(self) -> torch.Tensor:
        """Return angular velocities in the world [rad/s], shape [..., 3]."""
        return self._data.cvel[:, self._body_ids, :3].clone()

    def _position(self) -> torch.Tensor:
        return getattr(self._data, self._pos)[:, self._frame_ids]

    def _subtree_com(self) -> torch.Tensor:
        return self._data.subtree_com[:, self._tree_ids]

    def _cvel(self) -> torch.Tensor:
        return self._data.cvel[:, self._body_ids]


class FrameData:
    """Poses and velocities of an entity's root, bodies, geoms and sites.

    They describe the state at the last `sim.forward` or refreshed step: after writing state, call
    `sim.forward` to have them current. A name ending in `_w` is a quantity in the world's frame,
    one ending in `_b` is in the root body's frame. A link frame is the frame of a body in the
    model; a com frame is at the body's center of mass, along its principal axes of inertia.
    Quaternions are in the order wxyz; velocities are linear, then angular. Each access returns new
    tensors, which later steps do not change.

    Args:
        indexing: ids and addresses of the entity's elements.
        model: the simulation's model.
        data: the simulation's data.
    """

    num_envs: int = declared()
    """Number of worlds."""
    device: torch.device = declared()
    """Device of the tensors."""

    def __init__(self, indexing: EntityIndexing, model: ModelView, data: DataView) -> None:
        self.indexing = indexing
        self.model = model
        self.data = data
        self.num_envs = data.qpos.shape[0]
        self.device = indexing.body_ids.device
        forward = torch.tensor([1.0, 0.0, 0.0], device=self.device)
        self.forward_vec_b = forward.repeat(self.num_envs, 1)
        """Forward direction of the root in its frame, shape [num_envs, 3]."""
        self._gravity_mark = WriteMark()
        self._root_id = root = indexing.root_body_id
        root_tree = int(indexing.tree_root_ids[root])
        self._root_link = FrameReader(model, data, "xpos", root, root, root_tree)
        self._root_com = FrameReader(model, data, "xipos", root, root, root_tree, "body_iquat")
        bodies = indexing.body_index
        body_trees = _tree_index(indexing, indexing.body_ids)
        self._body_link = FrameReader(model, data, "xpos", bodies, bodies, body_trees)
        self._body_com = FrameReader(model, data, "xipos", bodies, bodies, body_trees, "body_iquat")
        self._geom = FrameReader(
            model,
            data,
            "geom_xpos",
            as_index(indexing.geom_ids),
            as_index(indexing.geom_body_ids),
            _tree_index(indexing, indexing.geom_body_ids),
            "geom_quat",
        )
        self._site = FrameReader(
            model,
            data,
            "site_xpos",
            as_index(indexing.site_ids),
            as_index(indexing.site_body_ids),
            _tree_index(indexing, indexing.site_body_ids),
            "site_quat",
        )

    # The root's link frame.

    @property
    def root_link_pose_w(self) -> torch.Tensor:
        """World pose of the root's link frame [m, wxyz], [num_envs, 7]."""
        return self._root_link.pose_w()

    @property
    def root_link_vel_w(self) -> torch.Tensor:
        """World velocity of the root's link frame [m/s, rad/s], [num_envs, 6]."""
        return self._root_link.vel_w()

    @property
    def root_link_pos_w(self) -> torch.Tensor:
        """World position of the root's link frame [m], [num_envs, 3]."""
        return self._root_link.pos_w()

    @property
    def root_link_quat_w(self) -> torch.Tensor:
        """World orientation of the root's link frame (wxyz), [num_envs, 4]."""
        return self._root_link.quat_w()

    @property
    def root_link_lin_vel_w(self) -> torch.Tensor:
        """World linear velocity of the root's link frame [m/s], [num_envs, 3]."""
        return self._root_link.lin_vel_w()

    @property
    def root_link_ang_vel_w(self) -> torch.Tensor:
        """World angular velocity of the root's link frame [rad/s], [num_envs, 3]."""
        return self._root_link.ang_vel_w()

    # The root's com frame.

    @property
    def root_com_pose_w(self) -> torch.Tensor:
        """World pose of the root's com frame [m, wxyz], [num_envs, 7]."""
        return self._root_com.pose_w()

    @property
    def root_com_vel_w(self) -> torch.Tensor:
        """World velocity of the root's com frame [m/s, rad/s], [num_envs, 6]."""
        return self._root_com.vel_w()

    @property
    def root_com_pos_w(self) -> torch.Tensor:
        """World position of the root's com frame [m], [num_envs, 3]."""
        return self._root_com.pos_w()

    @property
    def root_com_quat_w(self) -> torch.Tensor:
        """World orientation of the root's com frame (wxyz), [num_envs, 4]."""
        return self._root_com.quat_w()

    @property
    def root_com_lin_vel_w(self) -> torch.Tensor:
        """World linear velocity of the root's com frame [m/s], [num_envs, 3]."""
        return self._root_com.lin_vel_w()

    @property
    def root_com_ang_vel_w(self) -> torch.Tensor:
        """World angular velocity of the root's com frame [rad/s], [num_envs, 3]."""
        return self._root_com.ang_vel_w()

    # The root's own frame.

    @property
    def root_link_lin_vel_b(self) -> torch.Tensor:
        """`root_link_lin_vel_w` in the root body's frame [m/s], [num_envs, 3]."""
        return self._in_root_frame(self.root_link_lin_vel_w)

    @property
    def root_link_ang_vel_b(self) -> torch.Tensor:
        """`root_link_ang_vel_w` in the root body's frame [rad/s], [num_envs, 3]."""
        return self._in_root_frame(self.root_link_ang_vel_w)

    @property
    def root_com_lin_vel_b(self) -> torch.Tensor:
        """`root_com_lin_vel_w` in the root body's frame [m/s], [num_envs, 3]."""
        return self._in_root_frame(self.root_com_lin_vel_w)

    @property
    def root_com_ang_vel_b(self) -> torch.Tensor:
        """`root_com_ang_vel_w` in the root body's frame [rad/s], [num_envs, 3]."""
        return self._in_root_frame(self.root_com_ang_vel_w)

    @property
    def gravity_vec_w(self) -> torch.Tensor:
        """Direction of each world's gravity, zero where there is none, shape [num_envs, 3]."""
        if self._gravity_mark.moved(self.model.opt.gravity):
            self._gravity = gravity_direction(self.model)
        return self._gravity

    @property
    def projected_gravity_b(self) -> torch.Tensor:
        """`gravity_vec_w` in the root body's frame, shape [num_envs, 3]."""
        return self._in_root_frame(self.gravity_vec_w)

    @property
    def heading_w(self) -> torch.Tensor:
        """Angle of the root's forward direction about the world's z [rad], shape [num_envs]."""
        level = self.data.xmat[:, self._root_id, :2]
        x, y = (level * self.forward_vec_b.unsqueeze(1)).sum(dim=-1).unbind(1)
        return atan2(y, x)

    def _in_root_frame(self, vectors: torch.Tensor) -> torch.Tensor:
        """Rotate vectors, [num_envs, 3], from the world's frame to the root body's frame."""
        rotation = self.data.xmat[:, self._root_id]
        return torch.matmul(vectors.unsqueeze(1), rotation).squeeze(1)

    # Link frames of the bodies.

    @property
    def body_link_pose_w(self) -> torch.Tensor:
        """World poses of body link frames [m, wxyz], [num_envs, num_bodies, 7]."""
        return self._body_link.pose_w()

    @property
    def body_link_vel_w(self) -> torch.Tensor:
        """World velocities of body link frames [m/s, rad/s], [num_envs, num_bodies, 6]."""
        return self._body_link.vel_w()

    @property
    def body_link_pos_w(self) -> torch.Tensor:
        """World positions of body link frames [m], [num_envs, num_bodies, 3]."""
        return self._body_link.pos_w()

    @property
    def body_link_quat_w(self) -> torch.Tensor:
        """World orientations of body link frames (wxyz), [num_envs, num_bodies, 4]."""
        return self._body_link.quat_w()

    @property
    def body_link_lin_vel_w(self) -> torch.Tensor:
        """World linear velocities of body link frames [m/s], [num_envs, num_bodies, 3]."""
        return self._body_link.lin_vel_w()

    @property
    def body_link_ang_vel_w(self) -> torch.Tensor:
        """World angular velocities of body link frames [rad/s], [num_envs, num_bodies, 3]."""
        return self._body_link.ang_vel_w()

    # Short names of the bodies' link frames.

    @property
    def body_pose_w(self) -> torch.Tensor:
        """The same as `body_link_pose_w`, shape [num_envs, num_bodies, 7]."""
        return self._body_link.pose_w()

    @property
    def body_vel_w(self) -> torch.Tensor:
        """The same as `body_link_vel_w`, shape [num_envs, num_bodies, 6]."""
        return self._body_link.vel_w()

    @property
    def body_pos_w(self) -> torch.Tensor:
        """The same as `body_link_pos_w`, shape [num_envs, num_bodies, 3]."""
        return self._body_link.pos_w()

    @property
    def body_quat_w(self) -> torch.Tensor:
        """The same as `body_link_quat_w`, shape [num_envs, num_bodies, 4]."""
        return self._body_link.quat_w()

    @property
    def body_lin_vel_w(self) -> torch.Tensor:
        """The same as `body_link_lin_vel_w`, shape [num_envs, num_bodies, 3]."""
        return self._body_link.lin_vel_w()

    @property
    def body_ang_vel_w(self) -> torch.Tensor:
        """The same as `body_link_ang_vel_w`, shape [num_envs, num_bodies, 3]."""
        return self._body_link.ang_vel_w()

    # Com frames of the bodies.

    @property
    def body_com_pose_w(self) -> torch.Tensor:
        """World poses of body com frames [m, wxyz], [num_envs, num_bodies, 7]."""
        return self._body_com.pose_w()

    @property
    def body_com_vel_w(self) -> torch.Tensor:
        """World velocities of body com frames [m/s, rad/s], [num_envs, num_bodies, 6]."""
        return self._body_com.vel_w()

    @property
    def body_com_pos_w(self) -> torch.Tensor:
        """World positions of body com frames [m], [num_envs, num_bodies, 3]."""
        return self._body_com.pos_w()

    @property
    def body_com_quat_w(self) -> torch.Tensor:
        """World orientations of body com frames (wxyz), [num_envs, num_bodies, 4]."""
        return self._body_com.quat_w()

    @property
    def body_com_lin_vel_w(self) -> torch.Tensor:
        """World linear velocities of body com frames [m/s], [num_envs, num_bodies, 3]."""
        return self._body_com.lin_vel_w()

    @property
    def body_com_ang_vel_w(self) -> torch.Tensor:
        """World angular velocities of body com frames [rad/s], [num_envs, num_bodies, 3]."""
        return self._body_com.ang_vel_w()

    # Frames of the geoms.

    @property
    def geom_pose_w(self) -> torch.Tensor:
        """World poses of geom frames [m, wxyz], [num_envs, num_geoms, 7]."""
        return self._geom.pose_w()

    @property
    def geom_vel_w(self) -> torch.Tensor:
        """World velocities of geom frames [m/s, rad/s], [num_envs, num_geoms, 6]."""
        return self._geom.vel_w()

    @property
    def geom_pos_w(self) -> torch.Tensor:
        """World positions of geom frames [m], [num_envs, num_geoms, 3]."""
        return self._geom.pos_w()

    @property
    def geom_quat_w(self) -> torch.Tensor:
        """World orientations of geom frames (wxyz), [num_envs, num_geoms, 4]."""
        return self._geom.quat_w()

    @property
    def geom_lin_vel_w(self) -> torch.Tensor:
        """World linear velocities of geom frames [m/s], [num_envs, num_geoms, 3]."""
        return self._geom.lin_vel_w()

    @property
    def geom_ang_vel_w(self) -> torch.Tensor:
        """World angular velocities of geom frames [rad/s], [num_envs, num_geoms, 3]."""
        return self._geom.ang_vel_w()

    # Frames of the sites.

    @property
    def site_pose_w(self) -> torch.Tensor:
        """World poses of site frames [m, wxyz], [num_envs, num_sites, 7]."""
        return self._site.pose_w()

    @property
    def site_vel_w(self) -> torch.Tensor:
        """World velocities of site frames [m/s, rad/s], [num_envs, num_sites, 6]."""
        return self._site.vel_w()

    @property
    def site_pos_w(self) -> torch.Tensor:
        """World positions of site frames [m], [num_envs, num_sites, 3]."""
        return self._site.pos_w()

    @property
    def site_quat_w(self) -> torch.Tensor:
        """World orientations of site frames (wxyz), [num_envs, num_sites, 4]."""
        return self._site.quat_w()

    @property
    def site_lin_vel_w(self) -> torch.Tensor:
        """World linear velocities of site frames [m/s], [num_envs, num_sites, 3]."""
        return self._site.lin_vel_w()

    @property
    def site_ang_vel_w(self) -> torch.Tensor:
        """World angular velocities of site frames [rad/s], [num_envs, num_sites, 3]."""
        return self._site.ang_vel_w()


def _tree_index(indexing: EntityIndexing, body_ids: torch.Tensor) -> slice | torch.Tensor:
    """Index the roots of the trees of bodies; a root that all of them share is one column."""
    roots = indexing.tree_root_ids[body_ids]
    if len(roots) and bool((roots == roots[0]).all()):
        return slice(roots[0].item(), roots[0].item() + 1)
    return roots
