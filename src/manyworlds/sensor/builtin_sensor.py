"""MuJoCo's built-in sensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import mujoco
import torch

from manyworlds.sensor.sensor import Sensor, SensorCfg
from manyworlds.sim.views import DataView, ModelView
from manyworlds.validation.names import near_matches

if TYPE_CHECKING:
    from manyworlds.entity import Entity

ObjType = Literal["body", "xbody", "joint", "geom", "site", "actuator", "tendon", "camera"]
SensorType = Literal[
    "accelerometer",
    "velocimeter",
    "gyro",
    "force",
    "torque",
    "magnetometer",
    "touch",
    "rangefinder",
    "jointpos",
    "jointvel",
    "jointactuatorfrc",
    "jointlimitpos",
    "jointlimitvel",
    "jointlimitfrc",
    "ballquat",
    "ballangvel",
    "tendonpos",
    "tendonvel",
    "tendonactuatorfrc",
    "tendonlimitpos",
    "tendonlimitvel",
    "tendonlimitfrc",
    "actuatorpos",
    "actuatorvel",
    "actuatorfrc",
    "framepos",
    "framequat",
    "framexaxis",
    "frameyaxis",
    "framezaxis",
    "framelinvel",
    "frameangvel",
    "framelinacc",
    "frameangacc",
    "subtreecom",
    "subtreelinvel",
    "subtreeangmom",
    "e_potential",
    "e_kinetic",
    "clock",
]

_FRAMES = ("body", "xbody", "geom", "site", "camera")
# Attachable objects by prefix of the sensor type; the first match wins.
_ATTACHED_TO: dict[str, tuple[str, ...]] = {
    "joint": ("joint",),
    "ball": ("joint",),
    "tendon": ("tendon",),
    "actuator": ("actuator",),
    "frame": _FRAMES,
    "subtree": ("body",),
    "e_": (),
    "clock": (),
    "rangefinder": ("site", "camera"),
    "": ("site",),
}
_RELATIVE = ("pos", "quat", "xaxis", "yaxis", "zaxis", "linvel", "angvel")
_WITH_REF = tuple(f"frame{quantity}" for quantity in _RELATIVE)
# Types whose enum name differs from the MJCF name.
_ENUM_NAMES = {"jointactuatorfrc": "jointactfrc", "tendonactuatorfrc": "tendonactfrc"}
_LISTS = {"xbody": "bodies", "body": "bodies"}
ROTATIONS = {
    mujoco.mjtObj.mjOBJ_BODY: "ximat",
    mujoco.mjtObj.mjOBJ_XBODY: "xmat",
    mujoco.mjtObj.mjOBJ_GEOM: "geom_xmat",
    mujoco.mjtObj.mjOBJ_SITE: "site_xmat",
    mujoco.mjtObj.mjOBJ_CAMERA: "cam_xmat",
}
"""Fields of the data with the orientations of frames, by the kind of object."""


@dataclass
class ObjRef:
    """A reference to an element of the scene or of one of its entities."""

    type: ObjType
    name: str
    entity: str | None = None
    """Entity that `name` is relative to; None for the scene."""

    def prefixed_name(self) -> str:
        """Name of the element in the scene."""
        if not self.entity:
            return self.name
        return f"{self.entity}/{self.name}"


@dataclass
class BuiltinSensorCfg(SensorCfg):
    """Configuration of a MuJoCo sensor that needs at most an object and a reference frame.

    Raises:
        ValueError: the object or the reference frame is not valid for the sensor type.
    """

    sensor_type: SensorType
    """Type of the sensor, by its name in MJCF."""
    obj: ObjRef | None = None
    """Object that the sensor is attached to."""
    ref: ObjRef | None = None
    """Reference frame of a frame sensor; None for the world."""
    cutoff: float = 0.0
    """Largest absolute value of the output; 0 for no limit."""

    def __post_init__(self) -> None:
        if self.sensor_type not in get_args(SensorType):
            raise ValueError(
                f"Sensor '{self.name}': unknown sensor_type '{self.sensor_type}'."
                + near_matches(self.sensor_type, get_args(SensorType))
            )
        kinds = next(k for start, k in _ATTACHED_TO.items() if self.sensor_type.startswith(start))
        what = f"Sensor '{self.name}': sensor_type '{self.sensor_type}'"
        got = f"got {self.obj.type if self.obj else None}"
        if not kinds and self.obj is not None:
            raise ValueError(f"{what} does not support obj specification, {got}: remove it.")
        if kinds and (self.obj is None or self.obj.type not in kinds):
            if kinds == ("site",):
                raise ValueError(f"{what} requires obj.type='site', {got}.")
            wanted = " or ".join(f"type='{kind}'" for kind in kinds)
            raise ValueError(f"{what} requires obj with {wanted}, {got}.")
        if self.ref is not None and self.sensor_type not in _WITH_REF:
            raise ValueError(f"{what} does not support ref specification: remove ref.")
        if self.ref is not None and self.ref.type not in _FRAMES:
            raise ValueError(f"{what} requires ref.type in {_FRAMES}, got '{self.ref.type}'.")
        if self.cutoff < 0:
            raise ValueError(f"{what} has cutoff {self.cutoff}: give at least 0.")

    @property
    def prefixed_name(self) -> str:
        """Name of the sensor in the model, as if its entity's XML declared it."""
        if self.obj is None or not self.obj.entity:
            return self.name
        return f"{self.obj.entity}/{self.name}"

    def build(self) -> BuiltinSensor:
        """Build the sensor."""
        return BuiltinSensor(self)


class BuiltinSensor(Sensor["torch.Tensor"]):
    """A MuJoCo sensor: `data` has shape [num_envs, dim], in MuJoCo's units.

    Without options, `data` is a view of `sim.data.sensordata`. After a control step, outputs that
    depend on positions and velocities are at the new state; outputs that depend on forces or
    accelerations are one physics step old.

    Args:
        cfg: configuration of a new sensor; None for one that the model already has.
        name: name of the sensor in the model; None for that of `cfg`.

    Raises:
        ValueError: neither is given.
    """

    def __init__(self, cfg: BuiltinSensorCfg | None = None, name: str | None = None) -> None:
        super().__init__()
        if name is None:
            if cfg is None:
                raise ValueError(
                    "BuiltinSensor has neither a cfg nor a name: give the cfg of a new sensor, or "
                    "the name of one that the model already has."
                )
            name = cfg.prefixed_name
        self.name = name
        self.cfg: BuiltinSensorCfg | None = cfg

    @classmethod
    def from_existing(cls, name: str) -> BuiltinSensor:
        """Return a sensor that reads one that the model already has."""
        return cls(name=name)

    def edit_spec(self, scene_spec: mujoco.MjSpec, entities: dict[str, Entity]) -> None:
        """Add the sensor to the scene.

        Raises:
            ValueError: the scene does not have the entity or the object.
        """
        cfg = self.cfg
        if cfg is None:
            return
        options: dict[str, Any] = {}
        for ref, kind, name in (
            (cfg.obj, "objtype", "objname"),
            (cfg.ref, "reftype", "refname"),
        ):
            if ref is not None:
                check_exists(f"Sensor '{cfg.name}'", ref, scene_spec, entities)
                options[kind] = getattr(mujoco.mjtObj, f"mjOBJ_{ref.type.upper()}")
                options[name] = ref.prefixed_name()
        if cfg.sensor_type == "rangefinder":
            options["intprm"] = [1 << mujoco.mjtRayDataField.mjRAYDATA_DIST.value, 0, 0]
        enum = _ENUM_NAMES.get(cfg.sensor_type, cfg.sensor_type).upper()
        scene_spec.add_sensor(
            name=self.name,
            type=getattr(mujoco.mjtSensor, f"mjSENS_{enum}"),
            cutoff=cfg.cutoff,
            **options,
        )

    def initialize(
        self, mj_model: mujoco.MjModel, model: ModelView, data: DataView, device: torch.device
    ) -> None:
        """Find the sensor's columns in `sensordata`."""
        sensor = mj_model.sensor(self.name)
        start = int(sensor.adr[0])
        self._columns = slice(start, start + int(sensor.dim[0]))
        self._sim_data = data

    def _compute_data(self) -> torch.Tensor:
        return self._sim_data.sensordata[:, self._columns]


def check_exists(
    who: str, ref: ObjRef, scene_spec: mujoco.MjSpec, entities: dict[str, Entity]
) -> None:
    """Check that the scene has the element that a reference names.

    Raises:
        ValueError: the scene does not have the entity or the object.
    """
    if ref.entity is not None and ref.entity not in entities:
        raise ValueError(
            f"{who} refers to the entity '{ref.entity}', but the scene has {sorted(entities)}."
        )
    elements = getattr(scene_spec, _LISTS.get(ref.type, f"{ref.type}s"))
    names = [element.name for element in elements]
    if ref.prefixed_name() not in names:
        raise ValueError(
            f"{who} refers to the {ref.type} '{ref.prefixed_name()}', which the scene does not "
            "have." + near_matches(ref.prefixed_name(), names)
        )
