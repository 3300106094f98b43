"""Where an entity's elements are in the compiled model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mujoco
import torch

from manyworlds.utils.spec import get_free_joint, get_non_free_joints

# Kind of element -> the attribute of MjSpec that lists it.
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


def spec_elements(spec: mujoco.MjSpec) -> dict[str, tuple[Any, ...]]:
    """List an entity's elements by kind, without the world body and free joints."""
    elements = {kind: tuple(getattr(spec, attr)) for kind, attr in ELEMENT_KINDS.items()}
    elements["body"] = elements["body"][1:]
    elements["joint"] = get_non_free_joints(spec)
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
    ctrl_ids: torch.Tensor
    joint_q_adr: torch.Tensor
    """Addresses in `qpos` of the joints that are not free, shape [num_joints]."""
    joint_v_adr: torch.Tensor
    """Addresses in `qvel` of the joints that are not free, shape [num_joints]."""
    free_joint_q_adr: torch.Tensor
    """Addresses in `qpos` of the root's pose, shape [7] or [0]."""
    free_joint_v_adr: torch.Tensor
    """Addresses in `qvel` of the root's velocity, shape [6] or [0]."""

    @property
    def root_body_id(self) -> int:
        """Global id of the root body."""
        return int(self.body_ids[0])


_IDS_FIELD = {"camera": "cam_ids", "material": "mat_ids", "texture": "tex_ids"}


def compute_indexing(
    spec: mujoco.MjSpec, mj_model: mujoco.MjModel, device: torch.device
) -> EntityIndexing:
    """Read global ids off an entity's spec after the scene that holds it was compiled."""

    def tensor(values: list[int]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.long, device=device)

    elements = spec_elements(spec)
    fields: dict[str, Any] = {ELEMENT_KINDS[kind]: items for kind, items in elements.items()}
    for kind, items in elements.items():
        name = "ctrl_ids" if kind == "actuator" else _IDS_FIELD.get(kind, f"{kind}_ids")
        fields[name] = tensor([item.id for item in items])
    joints = [joint.id for joint in elements["joint"]]
    free = get_free_joint(spec)
    q0 = mj_model.jnt_qposadr[free.id] if free else 0
    v0 = mj_model.jnt_dofadr[free.id] if free else 0
    return EntityIndexing(
        **fields,
        joint_q_adr=tensor(mj_model.jnt_qposadr[joints].tolist()),
        joint_v_adr=tensor(mj_model.jnt_dofadr[joints].tolist()),
        free_joint_q_adr=tensor(list(range(q0, q0 + 7)) if free else []),
        free_joint_v_adr=tensor(list(range(v0, v0 + 6)) if free else []),
    )
