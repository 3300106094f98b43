"""Ids and addresses of an entity's elements in the compiled model."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
import torch
from numpy.typing import ArrayLike

from manyworlds.spec.edits import get_non_free_joints
from manyworlds.spec.elements import SpecElement
from manyworlds.validation.worlds import as_index

ELEMENT_KINDS: dict[str, str] = {
    "body": "bodies",
    "joint": "joints",
    "geom": "geoms",
    "site": "sites",
    "tendon": "tendons",
    "camera": "cameras",
    "light": "lights",
    "material": "materials",
    "texture": "textures",
    "pair": "pairs",
    "actuator": "actuators",
}
"""Attribute of `mujoco.MjSpec` that lists the elements of a kind, by kind."""


_BALL = mujoco.mjtJoint.mjJNT_BALL


def spec_elements(spec: mujoco.MjSpec) -> dict[str, tuple[SpecElement, ...]]:
    """List an entity's elements by kind, without the world body and free joints.

    Ball joints are a kind of their own, so that one joint is one column wherever joints are.
    """
    elements = {kind: tuple(getattr(spec, attr)) for kind, attr in ELEMENT_KINDS.items()}
    elements["body"] = elements["body"][1:]
    joints = get_non_free_joints(spec)
    elements["joint"] = tuple(joint for joint in joints if joint.type != _BALL)
    elements["ball_joint"] = tuple(joint for joint in joints if joint.type == _BALL)
    return elements


@dataclass(frozen=True)
class EntityIndexing:
    """Ids and addresses of an entity's elements in the compiled model.

    The element tuples are in spec order; `<kind>_ids` are the global MuJoCo ids of the same
    elements, shape [number of elements].
    """

    bodies: tuple[mujoco.MjsBody, ...]
    joints: tuple[mujoco.MjsJoint, ...]
    geoms: tuple[mujoco.MjsGeom, ...]
    sites: tuple[mujoco.MjsSite, ...]
    tendons: tuple[mujoco.MjsTendon, ...]
    cameras: tuple[mujoco.MjsCamera, ...]
    lights: tuple[mujoco.MjsLight, ...]
    materials: tuple[mujoco.MjsMaterial, ...]
    textures: tuple[mujoco.MjsTexture, ...]
    pairs: tuple[mujoco.MjsPair, ...]
    actuators: tuple[mujoco.MjsActuator, ...]
    ball_joints: tuple[mujoco.MjsJoint, ...]
    body_ids: torch.Tensor
    joint_ids: torch.Tensor
    geom_ids: torch.Tensor
    site_ids: torch.Tensor
    tendon_ids: torch.Tensor
    cam_ids: torch.Tensor
    light_ids: torch.Tensor
    mat_ids: torch.Tensor
    tex_ids: torch.Tensor
    pair_ids: torch.Tensor
    actuator_ids: torch.Tensor
    ctrl_ids: torch.Tensor
    """Addresses in `ctrl` of the actuators' controls; most actuators have one."""
    ball_joint_ids: torch.Tensor
    joint_q_adr: torch.Tensor
    """Addresses in `qpos` of hinges and slides, shape [num_joints]."""
    joint_v_adr: torch.Tensor
    """Addresses in `qvel` of hinges and slides, shape [num_joints]."""
    ball_joint_q_adr: torch.Tensor
    """Addresses in `qpos` of ball joints, shape [num_ball_joints, 4]."""
    ball_joint_v_adr: torch.Tensor
    """Addresses in `qvel` of ball joints, shape [num_ball_joints, 3]."""
    free_joint_q_adr: torch.Tensor
    """Addresses in `qpos` of the root's pose, shape [7] or [0]."""
    free_joint_v_adr: torch.Tensor
    """Addresses in `qvel` of the root's velocity, shape [6] or [0]."""
    mocap_id: int | None
    """Row of the root in `mocap_pos`; None if it is no mocap body."""
    geom_body_ids: torch.Tensor
    """Global ids of the bodies that the geoms move with, shape [num_geoms]."""
    site_body_ids: torch.Tensor
    """Global ids of the bodies that the sites move with, shape [num_sites]."""
    root_index: int
    """Entity-local id of the root body: that of the free joint, or the first one."""
    tree_root_ids: torch.Tensor
    """Global id of the root of each body's kinematic tree, for all bodies of the model, [nbody]."""

    # The cheapest forms of index: slices where ids or addresses are contiguous.

    @functools.cached_property
    def body_index(self) -> slice | torch.Tensor:
        """Index of `body_ids`."""
        return as_index(self.body_ids)

    @functools.cached_property
    def joint_index(self) -> slice | torch.Tensor:
        """Index of `joint_ids`."""
        return as_index(self.joint_ids)

    @functools.cached_property
    def tendon_index(self) -> slice | torch.Tensor:
        """Index of `tendon_ids`."""
        return as_index(self.tendon_ids)

    @functools.cached_property
    def actuator_index(self) -> slice | torch.Tensor:
        """Index of `actuator_ids`."""
        return as_index(self.actuator_ids)

    @functools.cached_property
    def ctrl_index(self) -> slice | torch.Tensor:
        """Index of `ctrl_ids`."""
        return as_index(self.ctrl_ids)

    @functools.cached_property
    def joint_q_index(self) -> slice | torch.Tensor:
        """Index of `joint_q_adr`."""
        return as_index(self.joint_q_adr)

    @functools.cached_property
    def joint_v_index(self) -> slice | torch.Tensor:
        """Index of `joint_v_adr`."""
        return as_index(self.joint_v_adr)

    @functools.cached_property
    def free_joint_q_index(self) -> slice | torch.Tensor:
        """Index of `free_joint_q_adr`."""
        return as_index(self.free_joint_q_adr)

    @functools.cached_property
    def free_joint_v_index(self) -> slice | torch.Tensor:
        """Index of `free_joint_v_adr`."""
        return as_index(self.free_joint_v_adr)

    @property
    def root_body_id(self) -> int:
        """Global id of the root body."""
        return int(self.body_ids[self.root_index])

    @property
    def is_fixed_base(self) -> bool:
        """True if the root has no free joint."""
        return len(self.free_joint_q_adr) == 0


_ELEMENTS_FIELD = {**ELEMENT_KINDS, "ball_joint": "ball_joints"}
_IDS_FIELD = {
    "camera": "cam_ids",
    "material": "mat_ids",
    "texture": "tex_ids",
}


def compute_indexing(
    elements: dict[str, tuple[SpecElement, ...]],
    free_joint: mujoco.MjsJoint | None,
    mj_model: mujoco.MjModel,
    device: torch.device,
) -> EntityIndexing:
    """Read the global ids of an entity's elements, after the scene with them is compiled."""

    def tensor(values: ArrayLike, width: int | None = None) -> torch.Tensor:
        """Return addresses, shape [n], or the `width` addresses from each one, [n, width]."""
        starts = torch.as_tensor(np.asarray(values, dtype=np.int64), device=device)
        if width is None:
            return starts
        return starts[:, None] + torch.arange(width, device=device)

    def controls(actuator_ids: list[int]) -> list[int]:
        ranges = zip(mj_model.actuator_ctrladr, mj_model.actuator_ctrlnum, strict=True)
        addresses = [list(range(adr, adr + num)) for adr, num in ranges]
        return [adr for i in actuator_ids for adr in addresses[i]]

    fields: dict[str, Any] = {_ELEMENTS_FIELD[kind]: items for kind, items in elements.items()}
    ids = {kind: [item.id for item in items] for kind, items in elements.items()}
    for kind, values in ids.items():
        fields[_IDS_FIELD.get(kind, f"{kind}_ids")] = tensor(values)
    root: list[int] = []
    root_index = 0
    if free_joint is not None:
        root = [free_joint.id]
        root_index = ids["body"].index(free_joint.parent.id)
    mocap_id = int(mj_model.body_mocapid[ids["body"][root_index]])
    return EntityIndexing(
        **fields,
        ctrl_ids=tensor(controls(ids["actuator"])),
        joint_q_adr=tensor(mj_model.jnt_qposadr[ids["joint"]]),
        joint_v_adr=tensor(mj_model.jnt_dofadr[ids["joint"]]),
        ball_joint_q_adr=tensor(mj_model.jnt_qposadr[ids["ball_joint"]], 4),
        ball_joint_v_adr=tensor(mj_model.jnt_dofadr[ids["ball_joint"]], 3),
        free_joint_q_adr=tensor(mj_model.jnt_qposadr[root], 7).flatten(),
        free_joint_v_adr=tensor(mj_model.jnt_dofadr[root], 6).flatten(),
        mocap_id=mocap_id if mocap_id >= 0 else None,
        geom_body_ids=tensor(mj_model.geom_bodyid[ids["geom"]]),
        site_body_ids=tensor(mj_model.site_bodyid[ids["site"]]),
        root_index=root_index,
        tree_root_ids=tensor(mj_model.body_rootid),
    )
