"""Verbs of the world's bodies and options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import mujoco
import numpy as np

from manyworlds.lab.options import FLAGS, check_option, read_options, set_flag, set_option
from manyworlds.lab.verbs.fields import (
    Body,
    Choice,
    Field,
    Flag,
    Integer,
    Number,
    Numbers,
    Values,
    VerbError,
)
from manyworlds.lab.verbs.registry import Reply, between_steps, verb

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

_Body = Annotated[int, Body(text="body by name or id")]
_Mocap = Annotated[int, Body(text="mocap body by name or id", mocap=True)]
_POINT = Numbers(size=3, unit="m", text="position in the world")
_Point = Annotated[np.ndarray, _POINT]
_QUAT = Numbers(size=4, unit="wxyz", text="orientation in the world")
_Quat = Annotated[np.ndarray, _QUAT]
_GROUPS = Numbers(size=6, text="1 for each visible group of geoms, else 0")
_FLAG = Choice(options=tuple(FLAGS), text="flag of MuJoCo")


@verb(options=Values(text="the new values, by name"))
def set_sim_options(
    lab: LiveLab,
    options: Annotated[dict[str, object], Values(text="values by their names in mjOption")],
) -> Reply:
    """Change options of MuJoCo from the next step on, all or none."""
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
    options=Values(text="the present values, by name"),
    model_options=Values(text="those of the compiled model, before all changes"),
)
def read_sim_options(lab: LiveLab) -> Reply:
    """Return MuJoCo's options: the present ones, and the model's own."""
    present = lab.loop.do(lambda model, data: read_options(model.opt), edits_model=False)
    both = {"options": present, "model_options": lab.model_options}
    return {key: {name: o.tolist() for name, o in found.items()} for key, found in both.items()}


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


@verb(body=Field(text="the body"), pos=_POINT, quat=_QUAT)
def read_mocap_pose(lab: LiveLab, body: _Mocap) -> Reply:
    """Return the pose of a mocap body."""
    mocap, snapshot = lab.world.model.body_mocapid[body], lab.snapshot
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


@verb()
def release_body(lab: LiveLab) -> Reply:
    """Let go of the grabbed body: no force is left at the next step."""
    between_steps(lab, lab.perturbation.release)
    return {}


@verb(
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
        return distance, int(model.geom_bodyid[geom[0]]) if geom[0] >= 0 else 0

    distance, body = lab.loop.do(hit, edits_model=False)
    name = lab.world.model.body(body).name if body else ""
    return {"body": name, "body_id": body, "distance": distance}
