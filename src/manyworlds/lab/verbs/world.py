"""Verbs of the world's bodies and options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import mujoco
import numpy as np

from manyworlds.lab.errors import VerbError
from manyworlds.lab.play.contacts import check_filter, matches, read_contact
from manyworlds.lab.verbs.fields import (
    Body,
    Choice,
    Field,
    Flag,
    Integer,
    Listing,
    Name,
    Number,
    Numbers,
    PlainMap,
    Values,
)
from manyworlds.lab.verbs.registry import Reply, between_steps, verb
from manyworlds.lab.world.options import (
    FLAGS,
    check_option,
    read_option,
    read_options,
    set_flag,
    set_option,
)
from manyworlds.spec.elements import dof_width, qpos_width

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

_Body = Annotated[int, Body(text="body by name or id")]
_Mocap = Annotated[int, Body(text="mocap body by name or id", mocap=True)]
_POINT = Numbers(size=3, unit="m", text="position in the world")
_Point = Annotated[np.ndarray, _POINT]
_QUAT = Numbers(size=4, unit="wxyz", text="orientation in the world")
_Quat = Annotated[np.ndarray, _QUAT]
_GROUPS = Numbers(size=6, text="1 for each visible group of geoms, else 0")
_FILTER = Values(text="names: body1, body2, geom1, geom2, in any order, or subtree")
_NONE: PlainMap = {}
_THREADS = Integer(low=0, high=64, text="number of further threads for one step; 0 for none")
_FLAG = Choice(options=tuple(FLAGS), text="flag of MuJoCo")


@verb(options=Values(text="the new values, by name"))
def set_sim_options(
    lab: LiveLab,
    options: Annotated[
        dict[str, object],
        Values(
            text="values by their names in mjOption; integrator, cone, solver and jacobian also as "
            "in MJCF"
        ),
    ],
) -> Reply:
    """Change options of MuJoCo from the next step on, all or none."""
    options = {name: read_option(name, value) for name, value in options.items()}
    for name, value in options.items():
        try:
            check_option(name, value)
        except TypeError as error:
            raise VerbError("bad_value", str(error)) from error

    def change(model: mujoco.MjModel, data: mujoco.MjData) -> Reply:
        for name, value in options.items():
            set_option(model.opt, name, value)  # type: ignore[arg-type]
        return {name: np.asarray(getattr(model.opt, name)).tolist() for name in options}

    return {"options": lab.loop.do(change)}


@verb(
    reads=True,
    options=Values(text="the present values, by name"),
    model_options=Values(text="those of the compiled model, before all changes"),
    num_threads=_THREADS,
)
def read_sim_options(lab: LiveLab) -> Reply:
    """Return MuJoCo's options: the present ones, and the model's own."""
    present = lab.loop.do(lambda model, data: read_options(model.opt), edits_model=False)
    return {
        "options": {name: value.tolist() for name, value in present.items()},
        "model_options": {name: value.tolist() for name, value in lab.model_options.items()},
        "num_threads": lab.loop.num_threads,
    }


@verb(num_threads=_THREADS)
def set_threads(lab: LiveLab, num_threads: Annotated[int, _THREADS]) -> Reply:
    """Let further threads help with each step, which speeds up large worlds."""
    lab.loop.set_threads(num_threads)
    return {"num_threads": num_threads}


@verb(flag=_FLAG, on=Flag())
def set_sim_flag(
    lab: LiveLab,
    flag: Annotated[str, _FLAG],
    on: Annotated[bool, Flag(text="true to have the feature")],
) -> Reply:
    """Switch a feature of MuJoCo on or off: contacts, gravity, sleep ..."""
    lab.loop.do(lambda model, data: set_flag(model.opt, flag, on))
    return {"flag": flag, "on": on}


@verb(body=Field(text="the body"), pos=_POINT, quat=_QUAT)
def set_mocap_pose(
    lab: LiveLab, body: _Mocap, pos: _Point | None = None, quat: _Quat | None = None
) -> Reply:
    """Move a mocap body; what is left out stays."""

    def move(model: mujoco.MjModel, data: mujoco.MjData) -> None:
        mocap = model.body_mocapid[body]
        if pos is not None:
            data.mocap_pos[mocap] = pos
        if quat is not None:
            data.mocap_quat[mocap] = quat / np.linalg.norm(quat)
        mujoco.mj_kinematics(model, data)  # shows the move in a paused world, too

    lab.loop.do(move, edits_model=False)
    return read_mocap_pose(lab, body)


@verb(reads=True, body=Field(text="the body"), pos=_POINT, quat=_QUAT)
def read_mocap_pose(lab: LiveLab, body: _Mocap) -> Reply:
    """Return the pose of a mocap body."""
    mocap = lab.world.model.body_mocapid[body]
    snapshot = lab.snapshot
    return {
        "body": lab.world.model.body(body).name,
        "pos": snapshot.mocap_pos[mocap].tolist(),
        "quat": snapshot.mocap_quat[mocap].tolist(),
    }


@verb()
def grab_body(lab: LiveLab, body: _Body, point: _Point) -> Reply:
    """Take hold of a body at a point of it, for `pull_body` and `turn_body`."""
    lab.perturbation.grab(body, point)
    return {}


@verb()
def pull_body(lab: LiveLab, target: _Point) -> Reply:
    """Pull the grabbed point to a position by a spring; renew it while the pull lasts."""
    between_steps(lab, lambda: lab.perturbation.pull(target))
    return {}


@verb()
def turn_body(lab: LiveLab, quat: _Quat) -> Reply:
    """Turn the grabbed body to an orientation by a spring; renew it while the turn lasts."""
    between_steps(lab, lambda: lab.perturbation.turn(quat))
    return {}


_LOCAL = Annotated[np.ndarray, Numbers(size=3, unit="m", text="point in the body's frame")]
_Target = Annotated[np.ndarray | None, _POINT]
_FORCE = Numbers(size=3, unit="N", text="force in the world's frame")
_TORQUE = Numbers(size=3, unit="N m", text="torque in the world's frame")
_ZERO = (0.0, 0.0, 0.0)


@verb()
def drag_body(
    lab: LiveLab, body: _Body, localpos: _LOCAL, target: _Target = None, quat: _Quat | None = None
) -> Reply:
    """Pull a point of a body, turn the body, or both, by a spring; renew it while it lasts."""
    lab.perturbation.drag(body, localpos, target, quat)
    return {}


@verb()
def push_body(
    lab: LiveLab,
    body: _Body,
    force: Annotated[Sequence[float], _FORCE] = _ZERO,
    torque: Annotated[Sequence[float], _TORQUE] = _ZERO,
) -> Reply:
    """Add a force at a body's center of mass during the next step only."""
    lab.perturbation.push(body, np.concatenate([force, torque]))
    return {}


@verb()
def release_body(lab: LiveLab) -> Reply:
    """Let go of the grabbed body: no force is left at the next step."""
    between_steps(lab, lab.perturbation.release)
    return {}


@verb(free_base_shortcut=Flag(text="true if only the free base was set"))
def set_qpos(
    lab: LiveLab,
    target: Annotated[str, Name(of="entity", text="robot or other entity")],
    qpos: Annotated[np.ndarray, Numbers(text="positions of its joints, or of its free base")],
    still: Annotated[bool, Flag(text="true to set the velocities to zero")] = False,
) -> Reply:
    """Set positions of a robot's joints in their order, or only of its free base (7 values)."""
    q, v, base = _places(lab, target)
    shortcut = False
    sizes = f"{len(q)}"
    if base is not None and len(q) != 7:
        sizes += " or 7"
        if qpos.size == 7:
            q, v = base
            shortcut = True
    if qpos.size != len(q):
        raise VerbError("dim_mismatch", f"'{target}' has {sizes} positions, got {qpos.size}.")

    def put(model: mujoco.MjModel, data: mujoco.MjData) -> None:
        data.qpos[q] = qpos
        if still:
            data.qvel[v] = 0.0
        mujoco.mj_forward(model, data)

    lab.loop.do(put, edits_model=False)
    return {"free_base_shortcut": shortcut}


_Place = tuple[list[int], list[int]]


def _places(lab: LiveLab, target: str) -> tuple[list[int], list[int], _Place | None]:
    """Return the places of an entity's positions and velocities, and those of its free base."""
    model = lab.model
    bodies = set(lab.world.elements.ids(target, "body").tolist())
    q: list[int] = []
    v: list[int] = []
    base = None
    for joint in range(model.njnt):
        if int(model.jnt_bodyid[joint]) not in bodies:
            continue
        kind = int(model.jnt_type[joint])
        start = int(model.jnt_qposadr[joint])
        speed = int(model.jnt_dofadr[joint])
        mine = [*range(start, start + qpos_width(kind))], [*range(speed, speed + dof_width(kind))]
        if base is None and kind == mujoco.mjtJoint.mjJNT_FREE:
            base = mine
        q += mine[0]
        v += mine[1]
    if not q:
        raise VerbError("no_joints", f"'{target}' has no joints.")
    return q, v, base


@verb(
    reads=True,
    n_contacts=Integer(text="number of contacts that match"),
    truncated=Flag(text="true if not all of them are in the reply"),
    contacts=Listing(text="geoms, bodies, position, normal, distance and force of each"),
)
def get_contacts(
    lab: LiveLab,
    max_contacts: Annotated[int, Integer(low=0, high=100_000, text="most contacts to return")] = 64,
    filter: Annotated[PlainMap, _FILTER] = _NONE,
) -> Reply:
    """Return the contacts of the present state; forces are in the frame of the contact."""
    wanted = check_filter(lab.model, filter)

    def read(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[int, list[Reply]]:
        found = [i for i in range(data.ncon) if matches(model, data.contact[i], wanted)]
        return len(found), [read_contact(model, data, i) for i in found[:max_contacts]]

    count, contacts = lab.loop.do(read, edits_model=False)
    return {"n_contacts": count, "truncated": count > len(contacts), "contacts": contacts}


@verb(
    reads=True,
    body=Field(text="name of the body"),
    body_id=Integer(text="its id; 0 for none"),
    distance=Number(unit="lengths of the direction", text="distance to it; -1 for none"),
)
def pick_body(
    lab: LiveLab,
    origin: _Point,
    direction: Annotated[np.ndarray, Numbers(size=3, text="direction of the ray")],
    groups: Annotated[Sequence[float], _GROUPS] = (1.0,) * 6,
) -> Reply:
    """Find the body that a ray hits first."""
    visible = np.array(groups, np.uint8)

    def hit(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[float, int]:
        geom = np.full(1, -1, np.int32)
        distance = mujoco.mj_ray(model, data, origin, direction, visible, True, -1, geom)
        if geom[0] < 0:
            return distance, 0
        return distance, int(model.geom_bodyid[geom[0]])

    distance, body = lab.loop.do(hit, edits_model=False)
    name = lab.world.model.body(body).name if body else ""
    return {"body": name, "body_id": body, "distance": distance}
