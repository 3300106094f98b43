"""A physical object: built from a spec, found by name, driven by actuators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import mujoco
import torch

from manyworlds.actuator import Actuator, ActuatorCfg, ActuatorCmd
from manyworlds.entity.data import EntityData
from manyworlds.entity.elements import Matches, NamedElements, Names
from manyworlds.entity.indexing import EntityIndexing, compute_indexing, spec_elements
from manyworlds.sim.sim_data import WarpBridge
from manyworlds.utils.indices import EnvIds, as_index, assign
from manyworlds.utils.math import quat_apply_inverse
from manyworlds.utils.spec import get_free_joint
from manyworlds.utils.state import Stateful
from manyworlds.utils.string import resolve_expr


@dataclass(kw_only=True)
class EntityArticulationInfoCfg:
    """How an entity is driven."""

    actuators: tuple[ActuatorCfg, ...] = ()
    soft_joint_pos_limit_factor: float = 1.0
    """Share of each joint's range that counts as soft limits, around the midpoint."""


@dataclass(kw_only=True)
class EntityCfg:
    """What an entity is made of and where it starts."""

    @dataclass(kw_only=True)
    class InitialStateCfg:
        """State at reset."""

        pos: tuple[float, float, float] = (0.0, 0.0, 0.0)
        """Root position relative to the world's origin [m]."""
        rot: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
        """Root orientation (wxyz)."""
        lin_vel: tuple[float, float, float] = (0.0, 0.0, 0.0)
        """Root linear velocity [m/s]."""
        ang_vel: tuple[float, float, float] = (0.0, 0.0, 0.0)
        """Root angular velocity [rad/s]."""
        joint_pos: dict[str, float] | None = field(default_factory=lambda: {".*": 0.0})
        """Joint positions by regular expression [rad or m]; None takes the first keyframe's."""
        joint_vel: dict[str, float] = field(default_factory=lambda: {".*": 0.0})
        """Joint velocities by regular expression [rad/s or m/s]."""

    init_state: InitialStateCfg = field(default_factory=InitialStateCfg)
    spec_fn: Callable[[], mujoco.MjSpec] = mujoco.MjSpec
    """Returns a new spec of the entity alone; its first body is the root."""
    articulation: EntityArticulationInfoCfg | None = None

    def build(self) -> Entity:
        """Make the entity."""
        return Entity(self)


class Entity(NamedElements, Stateful):
    """A robot, a prop or a fixture.

    Before compilation it owns an editable spec; after `initialize` it reads and writes its part of
    the simulation. Names are relative to the entity: the scene's prefix is not part of them.

    Raises:
        ValueError: the spec has no body or several free joints, or an actuator's pattern selects
            nothing.
    """

    state_attributes = ("data",)

    def __init__(self, cfg: EntityCfg) -> None:
        self.cfg = cfg
        self.spec = cfg.spec_fn()
        if len(self.spec.bodies) < 2:
            raise ValueError("An entity needs at least one body, but its spec has none: add one.")
        self.is_fixed_base = not self._prepare_joints()
        for body in self.spec.bodies[1:]:
            # MuJoCo compiles some bodies to shortcuts that per-world changes of mass break.
            body.simple = False
        self._names = {
            kind: tuple(element.name for element in elements)
            for kind, elements in spec_elements(self.spec).items()
        }
        self.actuators: list[Actuator] = []
        self._actuator_specs: list[list[mujoco.MjsActuator]] = []
        self._add_actuators()
        self._keyframe = list(self.spec.keys[0].qpos) if self.spec.keys else None
        self.indexing: EntityIndexing
        self.data: EntityData

    # Structure.

    @property
    def is_articulated(self) -> bool:
        """Whether it has joints besides a free one."""
        return self.num_joints > 0

    @property
    def is_actuated(self) -> bool:
        """Whether it has actuators."""
        return self.num_actuators > 0

    @property
    def root_body(self) -> mujoco.MjsBody:
        """The root body in the spec."""
        return self.spec.bodies[1]

    @property
    def needs_substeps(self) -> bool:
        """Whether an actuator must compute its control before every physics step."""
        return any(actuator.needs_substeps for actuator in self.actuators)

    def find_joints_by_actuator_names(self, actuator_name_keys: Names) -> Matches:
        """Select the joints that the named actuators move, in joint order."""
        actuators, _ = self.find("actuator", actuator_name_keys)
        targets = {self._actuator_targets[i] for i in actuators}
        joints = self.names("joint")
        ids = [i for i, joint in enumerate(joints) if joint in targets]
        return ids, [joints[i] for i in ids]

    # Life cycle.

    def compile(self) -> mujoco.MjModel:
        """Compile the entity alone."""
        return self.spec.compile()

    def initialize(
        self, mj_model: mujoco.MjModel, model: WarpBridge, data: WarpBridge, device: torch.device
    ) -> None:
        """Find the entity in the compiled scene and allocate its data."""
        self.indexing = compute_indexing(self.spec, mj_model, device)
        num_envs = data.qpos.shape[0]
        init, articulation = self.cfg.init_state, self.cfg.articulation

        def rows(values: Sequence[Any]) -> torch.Tensor:
            row = torch.tensor(values, dtype=torch.float32, device=device)
            return row.expand(num_envs, -1).clone()

        joints = self.names("joint")
        self.data = EntityData(
            self.indexing,
            model,
            data,
            default_root_state=rows(
                [*init.pos, *init.rot]
                + ([] if self.is_fixed_base else [*init.lin_vel, *init.ang_vel])
            ),
            default_joint_pos=rows(self._default_joint_pos()),
            default_joint_vel=rows(resolve_expr(init.joint_vel, joints, 0.0)),
            soft_joint_pos_limit_factor=(
                articulation.soft_joint_pos_limit_factor if articulation else 1.0
            ),
        )
        for actuator, specs in zip(self.actuators, self._actuator_specs, strict=True):
            actuator.ctrl_ids = as_index([spec.id for spec in specs])

    def reset(self, env_ids: EnvIds = None) -> None:
        """Clear the targets of the worlds named."""
        assign(self.data.joint_effort_target, 0.0, env_ids)

    def update(self, dt: float) -> None:
        """Advance what the entity tracks over time by `dt` [s]."""

    def write_data_to_sim(self) -> None:
        """Turn targets into controls."""
        for actuator in self.actuators:
            cmd = ActuatorCmd(effort_target=self.data.joint_effort_target[:, actuator.target_ids])
            self.data.data.ctrl[:, actuator.ctrl_ids] = actuator.compute(cmd)

    # Writing state and targets.

    def write_root_link_pose_to_sim(self, root_pose: torch.Tensor, env_ids: EnvIds = None) -> None:
        """Set the root's pose [m, wxyz], shape [len(env_ids), 7]; floating bases only."""
        self._require_floating_base("pose")
        assign(self.data.data.qpos, root_pose, env_ids, self.indexing.free_joint_q_adr)

    def write_root_link_velocity_to_sim(
        self, root_velocity: torch.Tensor, env_ids: EnvIds = None
    ) -> None:
        """Set the root's velocity in the world [m/s, rad/s], shape [len(env_ids), 6]."""
        self._require_floating_base("velocity")
        qpos = self.data.data.qpos[:, self.indexing.free_joint_q_adr[3:]]
        quat = qpos if env_ids is None else qpos[env_ids]
        angular = quat_apply_inverse(quat, root_velocity[..., 3:])
        velocity = torch.cat([root_velocity[..., :3], angular], dim=-1)
        assign(self.data.data.qvel, velocity, env_ids, self.indexing.free_joint_v_adr)

    def write_joint_state_to_sim(
        self,
        position: torch.Tensor,
        velocity: torch.Tensor,
        joint_ids: Sequence[int] | slice | torch.Tensor | None = None,
        env_ids: EnvIds = None,
    ) -> None:
        """Set joint positions and velocities, each of shape [len(env_ids), len(joint_ids)]."""
        self.write_joint_position_to_sim(position, joint_ids, env_ids)
        self.write_joint_velocity_to_sim(velocity, joint_ids, env_ids)

    def write_joint_position_to_sim(
        self,
        position: torch.Tensor,
        joint_ids: Sequence[int] | slice | torch.Tensor | None = None,
        env_ids: EnvIds = None,
    ) -> None:
        """Set joint positions [rad or m], shape [len(env_ids), len(joint_ids)]."""
        columns = self.indexing.joint_q_adr[_index(joint_ids)]
        assign(self.data.data.qpos, position, env_ids, columns)

    def write_joint_velocity_to_sim(
        self,
        velocity: torch.Tensor,
        joint_ids: Sequence[int] | slice | torch.Tensor | None = None,
        env_ids: EnvIds = None,
    ) -> None:
        """Set joint velocities [rad/s or m/s], shape [len(env_ids), len(joint_ids)]."""
        columns = self.indexing.joint_v_adr[_index(joint_ids)]
        assign(self.data.data.qvel, velocity, env_ids, columns)

    def set_joint_effort_target(
        self,
        effort: torch.Tensor,
        joint_ids: Sequence[int] | slice | torch.Tensor | None = None,
        env_ids: EnvIds = None,
    ) -> None:
        """Set desired joint efforts [N or N m], shape [len(env_ids), len(joint_ids)]."""
        assign(self.data.joint_effort_target, effort, env_ids, _index(joint_ids))

    # Helpers.

    def _prepare_joints(self) -> bool:
        """Check the joints and name a free one; return whether the base floats."""
        free = get_free_joint(self.spec)
        if free is not None and free.parent.name != self.root_body.name:
            raise ValueError(
                f"The freejoint must be on the root body '{self.root_body.name}', but it is on "
                f"'{free.parent.name}': make that body the first, or an entity of its own."
            )
        for joint in self.spec.joints:
            if joint.type == mujoco.mjtJoint.mjJNT_BALL:
                raise ValueError(
                    f"Joint '{joint.name}' is a ball joint, which entities cannot index yet: "
                    "use three hinges."
                )
        if free is not None and not free.name:
            free.name = "floating_base_joint"
        return free is not None

    def _add_actuators(self) -> None:
        articulation = self.cfg.articulation or EntityArticulationInfoCfg()
        for actuator_cfg in articulation.actuators:
            ids, names = self.find("joint", actuator_cfg.target_names_expr)
            actuator = actuator_cfg.build(self, ids, names)
            actuator.edit_targets(self.spec)
            self._actuator_specs.append(actuator.edit_spec(self.spec))
            self.actuators.append(actuator)
        self._names["actuator"] = tuple(actuator.name for actuator in self.spec.actuators)
        self._actuator_targets = [actuator.target for actuator in self.spec.actuators]

    def _default_joint_pos(self) -> tuple[float | None, ...]:
        table = self.cfg.init_state.joint_pos
        if table is not None:
            return resolve_expr(table, self.names("joint"), 0.0)
        if self._keyframe is None:
            raise ValueError(
                "init_state.joint_pos=None requires the model to have a keyframe, but it has "
                "none: add a <key> or give joint positions."
            )
        joints = self._keyframe[0 if self.is_fixed_base else 7 :]
        if len(joints) != self.num_joints:
            raise ValueError(
                f"The first keyframe has {len(joints)} joint positions, but the entity has "
                f"{self.num_joints} joints: complete its qpos."
            )
        return tuple(float(q) for q in joints)

    def _require_floating_base(self, what: str) -> None:
        if self.is_fixed_base:
            raise ValueError(
                f"Cannot write the root {what} of a fixed base: give its root body a <freejoint> "
                "or place it through init_state."
            )


def _index(ids: Sequence[int] | slice | torch.Tensor | None) -> slice | torch.Tensor:
    if ids is None:
        return slice(None)
    return ids if isinstance(ids, slice | torch.Tensor) else torch.tensor(ids, dtype=torch.long)
