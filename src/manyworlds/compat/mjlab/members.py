"""Members that classes of this project have under the alias alone."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from manyworlds.compat.mjlab.signatures import adapt_command

if TYPE_CHECKING:
    import torch

    from manyworlds.entity import Entity
    from manyworlds.entity.data import EntityData
    from manyworlds.entity.writers import Ids, StateWriters
    from manyworlds.managers import EventTermCfg
    from manyworlds.managers.event_manager import EventManager
    from manyworlds.rl.logger import TrainingLogger
    from manyworlds.rl.runner import OnPolicyRunner
    from manyworlds.scene import Scene
    from manyworlds.sensor import ContactSensor
    from manyworlds.validation.worlds import EnvIds, Worlds


class _Computed:
    """Attribute that is computed at each access, unless an instance has assigned its own."""

    def __init__(self, compute: Callable[[Any], object]) -> None:
        self._compute = compute

    def __get__(self, instance: object | None, owner: type) -> object:
        if instance is None:
            return self
        return self._compute(instance)


class _Absent:
    """Member that mjlab has and this project has not: any access raises the remedy."""

    def __init__(self, name: str, remedy: str) -> None:
        self._name = name
        self.remedy = remedy

    def __get__(self, instance: object | None, owner: type) -> NoReturn:
        raise AttributeError(f"manyworlds has no {owner.__name__}.{self._name}: {self.remedy}.")


def _refuse_overrides(cls: type, **options: object) -> None:
    """Refuse a subclass that overrides a member which this project would never call.

    Raises:
        TypeError: it overrides one.
    """
    owner = next(base for base in cls.__mro__[1:] if _absent_members(base))
    for name, member in _absent_members(owner).items():
        if name in vars(cls):
            raise TypeError(
                f"{cls.__name__} overrides {name}, which is never called: {member.remedy}."
            )
    super(owner, cls).__init_subclass__(**options)


def _absent_members(cls: type) -> dict[str, _Absent]:
    return {name: member for name, member in vars(cls).items() if isinstance(member, _Absent)}


def _to_zip(self: Scene, path: str | Path) -> Path:
    """Write the scene and its assets into one archive; deprecated: call `write(zip=True)`."""
    warnings.warn("Scene.to_zip is deprecated: call write(path, zip=True).", DeprecationWarning, 2)
    return self.write(Path(path).with_suffix(""), zip=True)


def _clear_state(self: Entity, env_ids: EnvIds = None) -> None:
    """Clear targets, wrenches and actuators in some worlds; deprecated: call `reset`."""
    warnings.warn("Entity.clear_state is deprecated: call reset.", DeprecationWarning, 2)
    self.reset(env_ids)


def _reset_idx(self: Any, env_ids: EnvIds = None) -> None:
    """Start new episodes in the given worlds; a subclass may extend it."""
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.validation.worlds import Worlds

    worlds = Worlds.of(env_ids, self.num_envs, self.device).ascending
    arguments = self.__dict__.pop("_resetting", (worlds, worlds))
    ManagerBasedRlEnv._reset_worlds(self, *arguments)


def _call_reset_idx(cls: type[Any], **options: object) -> None:
    """Let a subclass of the environment that extends `_reset_idx` start new episodes by it."""
    from manyworlds.envs import ManagerBasedRlEnv

    def reset_worlds(self: Any, worlds: Worlds, ended: Worlds, seed: int | None = None) -> None:
        if not self.obs_buf:  # the subclass is not complete yet
            ManagerBasedRlEnv._reset_worlds(self, worlds, ended, seed)
            return
        self._resetting = (worlds, ended, seed)
        self._reset_idx(worlds.ids)

    super(ManagerBasedRlEnv, cls).__init_subclass__(**options)  # type: ignore[misc]
    if "_reset_idx" in vars(cls):
        cls._reset_worlds = reset_worlds


def _class_term_cfgs(manager: EventManager) -> list[EventTermCfg]:
    return [cfg for name, cfg in manager._terms.items() if name in manager._class_terms]


def _writers(data: EntityData) -> StateWriters:
    """Return the writers of the entity whose data are given."""
    from manyworlds.entity.writers import StateWriters

    writers = StateWriters()
    writers.data = data
    writers.indexing = data.indexing
    return writers


def _logger_type(self: TrainingLogger) -> str:
    """Return 'tensorboard', 'wandb', or the name of another writer."""
    settings = self._cfg.get("logger", "tensorboard")
    if isinstance(settings, dict):
        settings = settings.get("class_name", "tensorboard")
    name = str(settings).rpartition(":")[2]  # of 'module:Class'
    return name.removesuffix("LogWriter").lower()


def _total_steps(self: TrainingLogger) -> int:
    """Return the number of control steps of all worlds and processes."""
    steps = self._env.unwrapped.common_step_counter
    return steps * self._env.num_envs * self._ranks.world_size


def _of_logger(self: OnPolicyRunner, name: str) -> object:
    return getattr(self.logger, name)


class ContactSlot(NamedTuple):
    """One field of one primary of a contact sensor."""

    primary_name: str
    field_name: str
    sensor_name: str


def _slots(self: ContactSensor) -> list[ContactSlot]:
    return [
        ContactSlot(primary, field, f"{self.cfg.name}_{primary}")
        for primary in self.primary_names
        for field in self.cfg.fields
    ]


class _DataWriters:
    """Methods of `EntityData` that write as those of its entity do."""

    def write_root_state(self: Any, root_state: torch.Tensor, env_ids: EnvIds = None) -> None:
        _writers(self).write_root_state_to_sim(root_state, env_ids)

    def write_root_pose(self: Any, pose: torch.Tensor, env_ids: EnvIds = None) -> None:
        _writers(self).write_root_link_pose_to_sim(pose, env_ids)

    def write_root_velocity(self: Any, velocity: torch.Tensor, env_ids: EnvIds = None) -> None:
        _writers(self).write_root_link_velocity_to_sim(velocity, env_ids)

    def write_root_velocity_b(self: Any, velocity_b: torch.Tensor, env_ids: EnvIds = None) -> None:
        _writers(self).write_root_link_velocity_b_to_sim(velocity_b, env_ids)

    def write_root_com_velocity(self: Any, velocity: torch.Tensor, env_ids: EnvIds = None) -> None:
        _writers(self).write_root_com_velocity_to_sim(velocity, env_ids)

    def write_mocap_pose(self: Any, pose: torch.Tensor, env_ids: EnvIds = None) -> None:
        _writers(self).write_mocap_pose_to_sim(pose, env_ids)

    def write_joint_state(
        self: Any,
        position: torch.Tensor,
        velocity: torch.Tensor,
        joint_ids: Ids = None,
        env_ids: EnvIds = None,
    ) -> None:
        _writers(self).write_joint_state_to_sim(position, velocity, joint_ids, env_ids)

    def write_joint_position(
        self: Any, position: torch.Tensor, joint_ids: Ids = None, env_ids: EnvIds = None
    ) -> None:
        _writers(self).write_joint_position_to_sim(position, joint_ids, env_ids)

    def write_joint_velocity(
        self: Any, velocity: torch.Tensor, joint_ids: Ids = None, env_ids: EnvIds = None
    ) -> None:
        _writers(self).write_joint_velocity_to_sim(velocity, joint_ids, env_ids)

    def write_ctrl(
        self: Any, ctrl: torch.Tensor, ctrl_ids: Ids = None, env_ids: EnvIds = None
    ) -> None:
        _writers(self).write_ctrl_to_sim(ctrl, ctrl_ids, env_ids)

    def write_external_wrench(
        self: Any,
        force: torch.Tensor | None,
        torque: torch.Tensor | None,
        body_ids: Ids = None,
        env_ids: EnvIds = None,
    ) -> None:
        _writers(self).write_external_wrench_to_sim(force, torque, env_ids, body_ids)


MEMBERS: dict[str, dict[str, object]] = {
    "manyworlds.actuator.actuator:Actuator": {
        "_target_names": _Computed(lambda self: self.target_names),
        "_target_ids_list": _Computed(lambda self: self.target_ids.tolist()),
    },
    "manyworlds.rl.logger:TrainingLogger": {
        "logger_type": _Computed(_logger_type),
        "cfg": _Computed(lambda self: self._cfg),
        "env_cfg": _Computed(lambda self: self._env.cfg),
        "num_envs": _Computed(lambda self: self._env.num_envs),
        "device": _Computed(lambda self: self._env.device),
        "gpu_world_size": _Computed(lambda self: self._ranks.world_size),
        "disable_logs": _Computed(lambda self: not self._ranks.is_main),
        "tot_timesteps": _Computed(_total_steps),
        "tot_time": _Computed(lambda self: self._time),
        "rewbuffer": _Computed(lambda self: self.returns.recent),
        "lenbuffer": _Computed(lambda self: self.lengths.recent),
        "cur_reward_sum": _Computed(lambda self: self.returns.present),
        "cur_episode_length": _Computed(lambda self: self.lengths.present),
    },
    "manyworlds.rl.runner:OnPolicyRunner": {
        name: _Computed(functools.partial(_of_logger, name=name))
        for name in (
            "disable_logs",
            "log_dir",
            "logger_type",
            "tot_time",
            "tot_timesteps",
            "writer",
        )
    },
    "manyworlds.sensor.contact_sensor:ContactSensor": {"_slots": _Computed(_slots)},
    "manyworlds.sim.views:DataView": {"nworld": _Computed(lambda self: self._engine.num_envs)},
    "manyworlds.entity.data:EntityData": {
        name: write for name, write in vars(_DataWriters).items() if name.startswith("write_")
    },
    "manyworlds.entity.entity:Entity": {
        "clear_state": _clear_state,
        "_builtin_group": _Computed(lambda self: self._actuator_groups.builtin_group),
        "_fused_actuator_group": _Computed(lambda self: self._actuator_groups.fused_group),
        "_custom_actuators": _Computed(lambda self: self._actuator_groups.custom),
    },
    "manyworlds.envs.manager_based_rl_env:ManagerBasedRlEnv": {
        "__init_subclass__": classmethod(_call_reset_idx),
        "_reset_idx": _reset_idx,
    },
    "manyworlds.managers.command_manager:CommandTerm": {
        "__init_subclass__": classmethod(adapt_command),
    },
    "manyworlds.managers.event_manager:EventManager": {
        "_mode_term_names": _Computed(lambda self: self.active_terms),
        "_mode_term_cfgs": _Computed(
            lambda self: {
                mode: [self._terms[name] for name in names]
                for mode, names in self.active_terms.items()
            }
        ),
    },
    "manyworlds.managers.manager_base:BuiltTermManager": {
        "cfg": _Computed(lambda self: {name: term.cfg for name, term in self._terms.items()}),
        "_term_cfgs": _Computed(lambda self: [term.cfg for term in self._terms.values()]),
    },
    "manyworlds.managers.manager_base:ManagerBase": {
        "cfg": _Computed(lambda self: dict(self._terms)),
        "_term_names": _Computed(lambda self: list(self._terms)),
        "_term_cfgs": _Computed(lambda self: list(self._terms.values())),
        "_class_term_cfgs": _Computed(_class_term_cfgs),
    },
    "manyworlds.managers.observation_manager:ObservationManager": {
        "cfg": _Computed(lambda self: dict(self._groups)),
        "_group_obs_term_names": _Computed(lambda self: self.active_terms),
        "_group_obs_term_cfgs": _Computed(
            lambda self: {n: list(group.terms.values()) for n, group in self._groups.items()}
        ),
    },
    "manyworlds.scene.scene:Scene": {"to_zip": _to_zip},
}
"""Members by 'module:Class'; a class also has those of its base classes."""

_RAYS = "rays are cast when `data` is read: override `_compute_data`"
_CAMERAS = "images are rendered when a sensor's `data` is read"
ABSENT_MEMBERS: dict[str, dict[str, str]] = {
    "manyworlds.entity.variants.metadata:VariantMetadata": {
        "variant_source_specs": (
            "merging empties the specs: call the function in `VariantEntityCfg.variants`"
        ),
    },
    "manyworlds.sensor.raycast_sensor:RayCastSensor": {
        "prepare_rays": _RAYS,
        "raycast_kernel": _RAYS,
        "postprocess_rays": _RAYS,
    },
    "manyworlds.sensor.sensor_context:SensorContext": {
        "prepare": _CAMERAS,
        "finalize": _CAMERAS,
        "render_context": f"it belongs to the engine, and {_CAMERAS}",
        "unpack_rgb": "images have three channels already: call get_rgb(cam_idx)",
    },
}
"""Remedies for members that do not exist here, by 'module:Class'."""
for _place, _remedies in ABSENT_MEMBERS.items():
    MEMBERS[_place] = {name: _Absent(name, remedy) for name, remedy in _remedies.items()}
    MEMBERS[_place]["__init_subclass__"] = classmethod(_refuse_overrides)

ABSENT_PARAMETERS: dict[str, str] = {
    "actuator.builtin_group.BuiltinActuatorGroup(_index_groups)": (
        "groups form by themselves, in `BuiltinActuatorGroup.process`"
    ),
    "entity.data.EntityData(...)": "an entity makes its data in `Entity.initialize`",
    "entity.entity.EntityIndexing(...)": "an entity computes its ids in `Entity.initialize`",
    "entity.variants.BodySignature(...)": "signatures are internal; geoms may differ",
    "entity.variants.JointSignature(...)": "signatures are internal; the type defines the widths",
    "entity.variants.VariantMetadata(...)": "it is the result of merging a `VariantEntityCfg`",
    "sensor.raycast_sensor.PinholeCameraPatternCfg(_camera_name)": "use `from_mujoco_camera`",
}
"""Reasons for parameters of mjlab's constructors that do not exist here."""


def attach() -> None:
    """Give the classes that are imported their members; those that have them keep theirs."""
    for cls, members in _imported():
        for name, member in members.items():
            if name not in vars(cls):
                setattr(cls, name, member)


def detach() -> None:
    """Undo `attach`."""
    for cls, members in _imported():
        for name, member in members.items():
            if vars(cls).get(name) is member:
                delattr(cls, name)


def _imported() -> list[tuple[type, dict[str, object]]]:
    places = [(*place.split(":"), members) for place, members in MEMBERS.items()]
    return [
        (getattr(sys.modules[module], name), members)
        for module, name, members in places
        if module in sys.modules
    ]
