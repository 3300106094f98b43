"""Search for the mirror images of tendons and actuators, and checks of constraints."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from manyworlds.entity.mirror_search import (
    PARITY,
    Deviation,
    Found,
    Reference,
    assign,
    mirrored_range,
    relative,
)

_JOINT = mujoco.mjtJoint
_TRN = mujoco.mjtTrn
_WRAP = mujoco.mjtWrap
_EQ = mujoco.mjtEq
_RIGID = (_EQ.mjEQ_CONNECT, _EQ.mjEQ_WELD)
_SCALARS = (_JOINT.mjJNT_HINGE, _JOINT.mjJNT_SLIDE)
_JOINTS = (_TRN.mjTRN_JOINT, _TRN.mjTRN_JOINTINPARENT)


@dataclass(frozen=True)
class Images:
    """Ids of mirror images, -1 where there are none, and signs; shape [number of elements]."""

    ids: np.ndarray
    sign: np.ndarray


def mirror_tendons(reference: Reference, found: Found) -> Images:
    """Find the mirror images of the robot's tendons.

    Raises:
        ValueError: a tendon has no mirror image.
    """
    model = reference.model
    images = Images(np.full(model.ntendon, -1), np.ones(model.ntendon))
    paths = {i: _path(reference, i) for i in range(model.ntendon)}
    paths = {i: path for i, path in paths.items() if path}

    def deviations(i: int, j: int) -> list[Deviation]:
        sign = _tendon_sign(paths[i], paths[j], found)
        if not sign:
            return [Deviation("path", 1.0, "", np.inf)]
        differences = []
        if model.tendon_limited[i] != model.tendon_limited[j]:
            differences.append(Deviation("range (limited or not)", 1.0, "", np.inf))
        elif model.tendon_limited[i]:
            image = mirrored_range(model.tendon_range[i], sign)
            differences.append(relative("range", image, model.tendon_range[j]))
        rest = mirrored_range(model.tendon_lengthspring[i], sign)
        differences.append(relative("spring length", rest, model.tendon_lengthspring[j]))
        for field in ("stiffness", "damping", "frictionloss", "armature", "margin"):
            values = getattr(model, f"tendon_{field}")
            differences.append(relative(field, values[i], values[j]))
        return differences

    names = lambda i: reference.name("tendon", i)  # noqa: E731
    for i, j in assign([*paths], [*paths], deviations, names).items():
        reference.accept("tendon", i, j, deviations(i, j))
        images.ids[i] = j
        images.sign[i] = _tendon_sign(paths[i], paths[j], found)
    return images


def _path(reference: Reference, tendon: int) -> list[tuple[mujoco.mjtWrap, int, float]]:
    """Return type, id and parameter of the elements of a tendon; empty for another object's."""
    model = reference.model
    start = model.tendon_adr[tendon]
    count = model.tendon_num[tendon]
    rows = range(start, start + count)
    path = [(_WRAP(model.wrap_type[k]), int(model.wrap_objid[k]), model.wrap_prm[k]) for k in rows]
    bodies = {
        _WRAP.mjWRAP_JOINT: model.jnt_bodyid,
        _WRAP.mjWRAP_SITE: model.site_bodyid,
        _WRAP.mjWRAP_SPHERE: model.geom_bodyid,
        _WRAP.mjWRAP_CYLINDER: model.geom_bodyid,
    }
    if any(kind in bodies and bodies[kind][i] in reference.bodies for kind, i, _ in path):
        return path
    return []


def _tendon_sign(
    own: list[tuple[mujoco.mjtWrap, int, float]],
    image: list[tuple[mujoco.mjtWrap, int, float]],
    found: Found,
) -> float:
    """Return the sign of a tendon's length in its image, or 0 if `image` is another tendon."""
    kinds = {_WRAP.mjWRAP_SITE: "site", _WRAP.mjWRAP_SPHERE: "geom", _WRAP.mjWRAP_CYLINDER: "geom"}
    if all(kind == _WRAP.mjWRAP_JOINT for kind, _, _ in own):
        wanted = {int(found.ids["joint"][i]): found.joint_sign[i] * c for _, i, c in own}
        actual = {i: c for _, i, c in image}
        for sign in (1.0, -1.0):
            if wanted.keys() == actual.keys() and all(
                np.isclose(sign * c, actual[i]) for i, c in wanted.items()
            ):
                return sign
        return 0.0
    wanted_path = []
    for kind, i, _ in own:
        if kind in kinds:
            i = int(found.ids[kinds[kind]][i])
        wanted_path.append((kind, i))
    actual_path = [(kind, i) for kind, i, _ in image]
    return float(actual_path in (wanted_path, wanted_path[::-1]))


def mirror_actuators(reference: Reference, found: Found, tendons: Images) -> Images:
    """Find the mirror images of the robot's actuators.

    Raises:
        ValueError: an actuator has no mirror image, or is of a kind without a known one.
    """
    model = reference.model
    images = Images(np.full(model.nactuator, -1), np.ones(model.nactuator))
    own = [i for i in range(model.nactuator) if _target(reference, i, found, tendons) >= 0]

    def compare(i: int, j: int) -> tuple[list[Deviation], float]:
        return _actuator(reference, found, tendons, i, j)

    names = lambda i: reference.name("actuator", i)  # noqa: E731
    for i, j in assign(own, own, lambda i, j: compare(i, j)[0], names).items():
        differences, sign = compare(i, j)
        reference.accept("actuator", i, j, differences)
        images.ids[i] = j
        images.sign[i] = sign
    return images


def _target(reference: Reference, actuator: int, found: Found, tendons: Images) -> int:
    """Return the id of the image of what an actuator acts on; -1 for those of other objects."""
    model = reference.model
    kind = _TRN(model.actuator_trntype[actuator])
    target, ref = model.actuator_trnid[actuator]
    ids = {_TRN.mjTRN_TENDON: tendons.ids, _TRN.mjTRN_BODY: found.ids["body"]}
    ids |= {_TRN.mjTRN_SITE: found.ids["site"], **dict.fromkeys(_JOINTS, found.ids["joint"])}
    if kind in (_TRN.mjTRN_SITE, _TRN.mjTRN_SLIDERCRANK):
        own = model.site_bodyid[target] in reference.bodies
    elif kind in (*_JOINTS, _TRN.mjTRN_SO3):
        own = model.jnt_bodyid[target] in reference.bodies
    else:
        own = kind not in ids or ids[kind][target] >= 0
    if not own:
        return -1
    refers = kind == _TRN.mjTRN_SITE and ref >= 0
    if kind in ids and model.actuator_ctrlnum[actuator] == 1 and not refers:
        image = int(ids[kind][target])
        if image >= 0:
            return image
    raise ValueError(
        f"The actuator '{reference.name('actuator', actuator)}' has no known mirror image: "
        "supported are single controls of joints, tendons, bodies, and sites with a mirror "
        "image and without a reference site."
    )


def _actuator(
    reference: Reference, found: Found, tendons: Images, own: int, image: int
) -> tuple[list[Deviation], float]:
    """Return the deviations of a pair of actuators, and the sign of the control's image."""
    model = reference.model
    kinds = ("trntype", "dyntype", "gaintype", "biastype", "ctrlnum", "actnum")
    for field in kinds:
        values = getattr(model, f"actuator_{field}")
        if values[own] != values[image]:
            return [Deviation(field, 1.0, "", np.inf)], 1.0
    if _target(reference, own, found, tendons) != model.actuator_trnid[image, 0]:
        return [Deviation("target", 1.0, "", np.inf)], 1.0
    reflected = _effect(reference, own, found, tendons)[1]
    actual = _effect(reference, image, found, tendons)[0]
    sign = 1.0 if reflected @ actual >= 0 else -1.0
    bias = model.actuator_biasprm[own].copy()
    bias[0] *= sign
    differences = [
        relative("gear", sign * reflected, actual),
        relative("bias", bias, model.actuator_biasprm[image]),
    ]
    for field in ("gainprm", "dynprm"):
        values = getattr(model, f"actuator_{field}")
        differences.append(relative(field, values[own], values[image]))
    for what, rows in (("ctrl", model.actuator_ctrladr), ("force", None), ("act", None)):
        i, j = own, image
        if rows is not None:
            i, j = rows[[own, image]]
        limited = getattr(model, f"actuator_{what}limited")
        bounds = getattr(model, f"actuator_{what}range")
        if limited[i] != limited[j]:
            differences.append(Deviation(f"{what}range (limited or not)", 1.0, "", np.inf))
        elif limited[i]:
            differences.append(relative(f"{what}range", mirrored_range(bounds[i], sign), bounds[j]))
    return differences, sign


def _effect(
    reference: Reference, actuator: int, found: Found, tendons: Images
) -> tuple[np.ndarray, np.ndarray]:
    """Return the effect of a unit of force on the target's coordinates, and its reflection."""
    model = reference.model
    kind = _TRN(model.actuator_trntype[actuator])
    target = model.actuator_trnid[actuator, 0]
    gear = model.actuator_gear[model.actuator_outadr[actuator]]
    if kind == _TRN.mjTRN_TENDON:
        return gear[:1], tendons.sign[target] * gear[:1]
    if kind in _JOINTS and _JOINT(model.jnt_type[target]) in _SCALARS:
        return gear[:1], found.joint_sign[target] * gear[:1]
    if kind in _JOINTS and _JOINT(model.jnt_type[target]) == _JOINT.mjJNT_BALL:
        torque = reference.matrices[model.jnt_bodyid[target]] @ gear[:3]
        return torque, -PARITY * torque
    if kind == _TRN.mjTRN_BODY:
        return gear[:1], gear[:1]
    matrix = np.eye(3)
    if kind not in _JOINTS:
        matrix = reference.site_matrices[target]
    force = matrix @ gear[:3]
    torque = matrix @ gear[3:]
    return np.concatenate([force, torque]), np.concatenate([PARITY * force, -PARITY * torque])


def check_constraints(reference: Reference, found: Found, tendons: Images) -> None:
    """Check that each equality and each excluded pair of bodies has a mirror image.

    Relative poses of welds are not compared.

    Raises:
        ValueError: one has none.
    """
    model = reference.model
    bodies = np.maximum(found.ids["body"], 0)
    pairs = {(int(s) >> 16, int(s) & 0xFFFF) for s in model.exclude_signature}
    for pair in pairs:
        image = tuple(int(bodies[body]) for body in pair)
        if all(image) and not {image, image[::-1]} & pairs:
            names = [reference.name("body", body) for body in (*pair, *image)]
            raise ValueError(
                f"Contacts of the bodies {names[:2]} are excluded, and those of their mirror "
                f"images {names[2:]} are not: exclude both."
            )
    for own in range(model.neq):
        is_site = mujoco.mjtObj(model.eq_objtype[own]) == mujoco.mjtObj.mjOBJ_SITE
        kind = mujoco.mjtEq(model.eq_type[own])
        scalars = {
            _EQ.mjEQ_JOINT: Images(found.ids["joint"], found.joint_sign),
            _EQ.mjEQ_TENDON: tendons,
        }
        between = found.ids["body"]
        if is_site:
            between = found.ids["site"]
        images = scalars.get(kind, Images(between, np.ones(len(between))))
        first = int(model.eq_obj1id[own])
        second = int(model.eq_obj2id[own])
        if kind not in (*scalars, *_RIGID) or images.ids[first] < 0:
            continue
        wanted = int(images.ids[first]), second
        signs = images.sign[first], 1.0
        # The second object may be the world's body, or none.
        none = second < 0 or (second == 0 and kind in _RIGID and not is_site)
        if not none:
            wanted = int(images.ids[first]), int(images.ids[second])
            signs = images.sign[first], images.sign[second]
        if not any(_is_equality(reference, own, i, wanted, signs) for i in range(model.neq)):
            raise ValueError(
                f"The equality '{reference.name('eq', own)}' has no mirror image: add one."
            )


def _is_equality(
    reference: Reference, own: int, image: int, wanted: tuple[int, int], signs: tuple[float, float]
) -> bool:
    """Return whether an equality is the mirror image of another, which acts on `wanted`.

    Args:
        reference: the robot.
        own: the other equality.
        image: the equality.
        wanted: mirror images of the other's objects.
        signs: signs of their coordinates.
    """
    model = reference.model
    same = model.eq_type[own] == model.eq_type[image]
    same = same and model.eq_objtype[own] == model.eq_objtype[image]
    actual = int(model.eq_obj1id[image]), int(model.eq_obj2id[image])
    if _EQ(model.eq_type[own]) in _RIGID:
        return bool(same and actual in (wanted, wanted[::-1]))
    if not same or actual != wanted:
        return False
    coefficients = signs[0] * model.eq_data[own, :5] * signs[1] ** np.arange(5)
    difference = relative("polycoef", coefficients, model.eq_data[image, :5])
    return bool(difference.fraction <= reference.tolerance)
