"""Rules by which observation terms mirror, for `symmetry`.

Each rule receives the `EnvSymmetry` and the term's parameters.
"""

from __future__ import annotations

import warnings

import mujoco
import numpy as np

from manyworlds.entity.mirror import REFLECTION
from manyworlds.managers.scene_entity_config import SceneEntityCfg
from manyworlds.managers.symmetry import EnvSymmetry, Reflection
from manyworlds.sensor import (
    BuiltinSensor,
    ContactSensor,
    ObjRef,
    RayCastSensor,
    TerrainHeightSensorCfg,
)
from manyworlds.spec.elements import id_of_element

_SENSOR = mujoco.mjtSensor
# Sensors of vectors in the frame of their site: 1 for polar vectors, -1 for axial ones.
_AT_SITE = {
    _SENSOR.mjSENS_ACCELEROMETER: 1,
    _SENSOR.mjSENS_VELOCIMETER: 1,
    _SENSOR.mjSENS_FORCE: 1,
    _SENSOR.mjSENS_GYRO: -1,
    _SENSOR.mjSENS_TORQUE: -1,
}
# Sensors of vectors in the frame of their reference object, or in the world frame.
_IN_REFERENCE = {
    _SENSOR.mjSENS_FRAMEPOS: 1,
    _SENSOR.mjSENS_FRAMELINVEL: 1,
    _SENSOR.mjSENS_FRAMELINACC: 1,
    _SENSOR.mjSENS_FRAMEZAXIS: 1,
    _SENSOR.mjSENS_FRAMEANGVEL: -1,
    _SENSOR.mjSENS_FRAMEANGACC: -1,
    _SENSOR.mjSENS_SUBTREECOM: 1,
    _SENSOR.mjSENS_SUBTREELINVEL: 1,
    _SENSOR.mjSENS_SUBTREEANGMOM: -1,
}
_SCALARS = (_SENSOR.mjSENS_CLOCK, _SENSOR.mjSENS_E_KINETIC, _SENSOR.mjSENS_E_POTENTIAL)
_PLACED = (_SENSOR.mjSENS_ACCELEROMETER, _SENSOR.mjSENS_VELOCIMETER)
_BESIDE_PLANE = 0.1
"""Largest distance from the sagittal plane without a warning [m]: 0.1 m/s at a turn of 1 rad/s."""
_FRAME_KINDS = {
    mujoco.mjtObj.mjOBJ_BODY: "body",
    mujoco.mjtObj.mjOBJ_XBODY: "body",
    mujoco.mjtObj.mjOBJ_SITE: "site",
}


def unchanged(mirror: EnvSymmetry, **_: object) -> None:
    """Keep values that do not depend on side, such as heights and phases."""


def polar(mirror: EnvSymmetry, asset_cfg: SceneEntityCfg, **_: object) -> Reflection:
    """Mirror a velocity, a force or a direction in the frame of the root."""
    return mirror.vector(asset_cfg, 1)


def axial(mirror: EnvSymmetry, asset_cfg: SceneEntityCfg, **_: object) -> Reflection:
    """Mirror an angular velocity or a torque in the frame of the root."""
    return mirror.vector(asset_cfg, -1)


def joints(mirror: EnvSymmetry, asset_cfg: SceneEntityCfg, **_: object) -> Reflection:
    """Mirror one value per joint, such as velocities."""
    return mirror.joints(asset_cfg)


def joint_positions(mirror: EnvSymmetry, asset_cfg: SceneEntityCfg, **_: object) -> Reflection:
    """Mirror joint positions relative to their defaults, which must be symmetric."""
    defaults = mirror.env.scene.entity(asset_cfg.name).data.default_joint_pos[0]
    return mirror.joints(asset_cfg, defaults)


def actions(mirror: EnvSymmetry, action_name: str | None = None, **_: object) -> Reflection:
    """Mirror the actions of one term, or of all."""
    if action_name is None:
        return mirror.action.to("cpu")
    return mirror.action_term(action_name)


def command(mirror: EnvSymmetry, command_name: str, **_: object) -> Reflection:
    """Mirror a command, by the method `mirror` of its term."""
    return mirror.command(command_name)


def rays(mirror: EnvSymmetry, sensor_name: str, **_: object) -> Reflection:
    """Mirror one value per ray of a ray sensor, such as its heights."""
    sensor = mirror.env.scene.sensor(sensor_name, RayCastSensor)
    model = mirror.env.sim.mj_model
    frames = _ray_frames(mirror, sensor)
    origins, directions = (
        part.double().cpu().numpy() for part in sensor.cfg.pattern.generate_rays(model, "cpu")
    )
    own = np.concatenate([origins, directions], axis=1)
    index: list[int] = []
    for image in frames:
        # Values of a frame come from the frame whose image it is.
        turn = _frame_matrix(mirror, sensor.cfg.frames[image])
        if sensor.cfg.ray_alignment != "base":
            if sensor.cfg.ray_alignment == "yaw" and abs(turn[0, 0] - 1.0) > 1e-4:
                raise ValueError(
                    f"the x axes of the frames of sensor '{sensor_name}', which define its "
                    "heading, are not mirror images: use frames that are."
                )
            turn = REFLECTION
        reflected = np.concatenate([origins @ turn.T, directions @ turn.T], axis=1)
        distance = np.linalg.norm(own[:, None] - reflected[None], axis=2)
        source = distance.argmin(axis=1)
        worst = distance[range(len(own)), source].max()
        if worst > 1e-4:
            raise ValueError(
                f"the rays of sensor '{sensor_name}' are not symmetric: the image of one is "
                f"{worst:.3g} m from the nearest: center the pattern on the sagittal plane."
            )
        index += [image * len(own) + int(ray) for ray in source]
    return Reflection.of(index, [1.0] * len(index))


def ray_frames(mirror: EnvSymmetry, sensor_name: str, **_: object) -> Reflection:
    """Mirror one value per frame of a ray sensor, such as heights of feet."""
    sensor = mirror.env.scene.sensor(sensor_name, RayCastSensor)
    if isinstance(sensor.cfg, TerrainHeightSensorCfg) and sensor.cfg.reduction == "none":
        return rays(mirror, sensor_name)
    rays(mirror, sensor_name)  # reduced over the rays of a frame, which must be symmetric
    frames = _ray_frames(mirror, sensor)
    return Reflection.of(frames, [1.0] * len(frames))


def contacts(mirror: EnvSymmetry, sensor_name: str, **_: object) -> Reflection:
    """Mirror one value per slot of a contact sensor, such as `found`."""
    cfg = mirror.env.scene.sensor(sensor_name, ContactSensor).cfg
    slots = cfg.num_slots
    if slots > 1 and cfg.reduce == "none":
        raise ValueError(
            f"the {slots} slots of sensor '{sensor_name}' are in no order: set another `reduce`, "
            "or num_slots=1."
        )
    index = [s * slots + k for s in _primaries(mirror, sensor_name) for k in range(slots)]
    return Reflection.of(index, [1.0] * len(index))


def contact_times(mirror: EnvSymmetry, sensor_name: str, **_: object) -> Reflection:
    """Mirror one value per primary of a contact sensor, such as air times."""
    index = _primaries(mirror, sensor_name)
    return Reflection.of(index, [1.0] * len(index))


def contact_forces(mirror: EnvSymmetry, sensor_name: str, **_: object) -> Reflection:
    """Mirror contact forces in the world frame."""
    cfg = mirror.env.scene.sensor(sensor_name, ContactSensor).cfg
    if not (cfg.global_frame or cfg.reduce == "netforce"):
        raise ValueError(
            f"the tangents of the contact frames of sensor '{sensor_name}' have no mirror image: "
            "set global_frame=True."
        )
    index = [3 * i + k for i in contacts(mirror, sensor_name).index.tolist() for k in range(3)]
    return Reflection.of(index, [1.0, -1.0, 1.0] * (len(index) // 3))


def builtin_sensor(mirror: EnvSymmetry, sensor_name: str, **_: object) -> Reflection:
    """Mirror the output of a MuJoCo sensor whose object is its own mirror image."""
    model = mirror.env.sim.mj_model
    sensor = model.sensor(mirror.env.scene.sensor(sensor_name, BuiltinSensor).name).id
    kind = _SENSOR(model.sensor_type[sensor])
    if kind in _SCALARS:
        return Reflection.of([0], [1.0])
    owner = mujoco.mjtObj(model.sensor_objtype[sensor]), int(model.sensor_objid[sensor])
    if kind in _AT_SITE:
        if kind in _PLACED:
            _warn_beside_plane(mirror, sensor_name, owner[1])
        return mirror.of_matrix(_AT_SITE[kind] * _own_frame(mirror, sensor_name, *owner))
    if kind not in _IN_REFERENCE:
        raise ValueError(
            f"no mirror image is known for a sensor of type {kind.name}: observe the quantity by "
            "a term of your own that declares how it mirrors."
        )
    matrix = _own_frame(mirror, sensor_name, *owner)
    if kind == _SENSOR.mjSENS_FRAMEZAXIS and abs(matrix[2, 2] - 1.0) > 1e-4:
        raise ValueError(f"the z axis of sensor '{sensor_name}' is not in the sagittal plane.")
    reference = int(model.sensor_refid[sensor])
    if reference >= 0:
        referred = mujoco.mjtObj(model.sensor_reftype[sensor])
        matrix = _own_frame(mirror, sensor_name, referred, reference)
    else:
        matrix = REFLECTION
    return mirror.of_matrix(_IN_REFERENCE[kind] * matrix)


def _entity_of(mirror: EnvSymmetry, body: int) -> str:
    """Return the name of the entity that has a body of the scene."""
    for name, entity in mirror.env.scene.entities.items():
        if body in entity.indexing.body_ids.tolist():
            return name
    raise ValueError("its sensor is on no entity: attach it to a body or site of one.")


def _own_frame(
    mirror: EnvSymmetry, sensor_name: str, kind: mujoco.mjtObj, index: int
) -> np.ndarray:
    """Return the reflection of vectors in the frame of an object that is its own image."""
    model = mirror.env.sim.mj_model
    if kind not in _FRAME_KINDS:
        raise ValueError(f"the sensor '{sensor_name}' is attached to neither a body nor a site.")
    local = np.eye(3)
    body = index
    if _FRAME_KINDS[kind] == "site":
        body = int(model.site_bodyid[index])
        local = _matrix(model.site_quat[index])
    if body == 0:
        return local.T @ REFLECTION @ local
    table = mirror.table(_entity_of(mirror, body))
    if table.body_ids[body] != body:
        raise ValueError(
            f"the sensor '{sensor_name}' is on body '{model.body(body).name}', whose mirror image "
            f"is '{model.body(int(table.body_ids[body])).name}': observe both by one term of your "
            "own that declares how it mirrors."
        )
    if kind == mujoco.mjtObj.mjOBJ_BODY:
        local = _matrix(model.body_iquat[body])
    return local.T @ table.body_frames[body].T @ local


def _warn_beside_plane(mirror: EnvSymmetry, sensor_name: str, site: int) -> None:
    model = mirror.env.sim.mj_model
    body = int(model.site_bodyid[site])
    if not body:
        return
    table = mirror.table(_entity_of(mirror, body))
    distance = abs(table.site_offsets[site])
    if table.site_ids[site] < 0 and distance > _BESIDE_PLANE:
        warnings.warn(
            f"The sensor '{sensor_name}' at site '{model.site(site).name}' is "
            f"{distance:.2f} m beside the sagittal plane, so that its mirror image is "
            "approximate: it leaves out velocities that the body's rotation causes there. Move the "
            f"site to within {_BESIDE_PLANE} m of the plane, or train without mirror symmetry.",
            stacklevel=2,
        )


def _matrix(quat: np.ndarray) -> np.ndarray:
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, quat)
    return matrix.reshape(3, 3)


def _ray_frames(mirror: EnvSymmetry, sensor: RayCastSensor) -> list[int]:
    """Return the position of each frame's mirror image among a sensor's frames."""
    model = mirror.env.sim.mj_model
    refs = sensor.cfg.frames
    kinds = {ref.type for ref in refs}
    entities = {ref.entity for ref in refs}
    if len(kinds) > 1 or len(entities) > 1 or None in entities:
        raise ValueError(
            f"the frames of sensor '{sensor.cfg.name}' must be of one kind and entity."
        )
    kind = kinds.pop()
    ids = [id_of_element(model, kind, ref.prefixed_name()) for ref in refs]
    return mirror.elements(kind, ids, str(entities.pop()))


def _frame_matrix(mirror: EnvSymmetry, ref: ObjRef) -> np.ndarray:
    """Return the reflection from the frame of an object to that of its mirror image."""
    model = mirror.env.sim.mj_model
    table = mirror.table(str(ref.entity))
    own = id_of_element(model, ref.type, ref.prefixed_name())
    image = int(table.images(ref.type, np.array([own]))[0])
    body = own
    local = np.eye(3)
    other = np.eye(3)
    if ref.type != "body":
        body = int(getattr(model, f"{ref.type}_bodyid")[own])
        quats = getattr(model, f"{ref.type}_quat")
        local = _matrix(quats[own])
        other = _matrix(quats[image])
    return other.T @ table.body_frames[body].T @ local


def _primaries(mirror: EnvSymmetry, sensor_name: str) -> list[int]:
    """Return the position of each primary's mirror image among a contact sensor's."""
    sensor = mirror.env.scene.sensor(sensor_name, ContactSensor)
    primary = sensor.cfg.primary
    if primary.entity is None:
        raise ValueError(f"the sensor '{sensor_name}' names no entity for its primaries.")
    kind = "body"
    if primary.mode == "geom":
        kind = "geom"
    model = mirror.env.sim.mj_model
    names = [f"{primary.entity}/{name}" for name in sensor.primary_names]
    return mirror.elements(
        kind, [id_of_element(model, kind, name) for name in names], primary.entity
    )
