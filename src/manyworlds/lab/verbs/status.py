"""Verbs that return everything about a live world that its snapshots do not contain."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Annotated

from manyworlds.lab.errors import VerbError
from manyworlds.lab.robots.controllers import PdController
from manyworlds.lab.robots.twist import read_twist
from manyworlds.lab.verbs.fields import (
    Choice,
    Content,
    Field,
    Flag,
    Integer,
    Listing,
    Name,
    Number,
    Numbers,
    Texts,
    Values,
)
from manyworlds.lab.verbs.gathered_facts import gather_facts
from manyworlds.lab.verbs.registry import Reply, verb
from manyworlds.lab.world.model_facts import binary_model
from manyworlds.lab.world.scene_files import scene_mjcf

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

_EXPORT_S = 10.0  # longest wait for a copy of the model


@verb(
    reads=True,
    state=Choice(options=("ready", "running", "faulted", "stopped")),
    fault=Field(text="reason why the world stopped; empty if it can advance"),
    paused=Flag(),
    mode=Choice(options=("live", "direct", "puppet")),
    driver=Values(text="name and owner of the driver that advances the world"),
    has_task=Flag(text="true if a task's environment steps the world, or is replaced for now"),
    percent=Number(unit="%", infinite=True, text="requested speed"),
    real_time_factor=Number(text="achieved speed over the last second"),
    behind_s=Number(unit="s", text="delay behind the wall clock"),
    model_version=Integer(text="number of changes of the model"),
    model_hash=Field(text="hash of the compiled model, before later changes"),
    drawings=Integer(text="number of shapes that programs draw into the view"),
    rebuild_notes=Texts(text="sentences about what the last rebuild did not keep"),
    warnings=Values(text="MuJoCo's warnings since the last reset, by type"),
    left_out=Values(text="reasons why entities of the scene were left out, by name"),
    world_warnings=Texts(text="sentences about what is probably wrong with the world's file"),
    failures=Texts(text="sentences about callbacks and drawing that failed, and ports in use"),
    robots=Values(text="owner, targets and controller by robot, and why it does not move"),
    held=Texts(text="robots that are held in a keyframe"),
    states=Texts(text="names of the saved states"),
    recording=Values(text="progress of the recording"),
    replay=Values(text="progress of the replay"),
    timeline=Values(text="length, moment that is shown, and marks of the timeline"),
)
def read_status(lab: LiveLab) -> Reply:
    """Return the state of the loop, the robots' owners, recordings, and all failures."""
    return gather_facts(lab).plain()


@verb(
    reads=True,
    ports=Listing(text="use, number, state and number of messages of each"),
    clients=Listing(text="name, role and encoding of each"),
    driver=Field(text="client that drives; empty if none does"),
    events=Texts(text="sentences about who drove, the newest last"),
    requests=Values(text="number of requests by operation"),
    errors=Values(text="number of errors by code"),
    problems=Texts(text="sentences about ports in use, and about the end of the server"),
)
def read_server(lab: LiveLab) -> Reply:
    """Return the state of the server for programs; nothing is in it if there is none."""
    said = lab.server.describe()
    empty = {"driver": "", "requests": {}, "errors": {}}
    names = ("ports", "clients", "driver", "events", "requests", "errors", "problems")
    return {name: said.get(name, empty.get(name, [])) for name in names}


@verb()
def release_client(lab: LiveLab) -> Reply:
    """Let the client of the network that drives observe from now on."""
    if not lab.server.release_driver("the page took the world"):
        raise VerbError("not_ready", "release_client: no server serves this world.")
    return {}


@verb(
    reads=True,
    actuators=Texts(text="name of each control, as in targets"),
    controls=Numbers(text="index of each in MjData.ctrl"),
    actuator_ids=Numbers(text="actuator of each in the model"),
    neutral=Numbers(text="targets before the first write and after a reset"),
    types=Texts(text="element of MJCF that each was written as: position, motor ..."),
)
def read_robot(
    lab: LiveLab, robot: Annotated[str, Name(of="robot", text="robot with actuators")]
) -> Reply:
    """Return the controls of a robot; they change only with a rebuild."""
    control = lab[robot]
    return {
        "actuators": list(control.actuators.names),
        "controls": control.actuators.ids.tolist(),
        "actuator_ids": control.actuators.actuator_ids.tolist(),
        "types": [lab.world.actuator_types[i] for i in control.actuators.actuator_ids.tolist()],
        "neutral": control.neutral.tolist(),
    }


@verb(
    reads=True,
    robots=Values(text="prefix, controls and gains by robot, also of those without actuators"),
    model_version=Integer(text="number of changes of the model"),
    model_hash=Field(text="hash of the compiled model, before later changes"),
    environment=Flag(text="true if the environment of a task steps the world"),
    option_sources=Values(text="robot that set each option that is not MuJoCo's default"),
    batch=Values(text="index, variants, terrain, randomized values; empty if it is from no batch"),
)
def describe_world(lab: LiveLab) -> Reply:
    """Return the robots of the world, and the batch that it is from."""
    card = lab.world.card
    batch = {}
    if card is not None:
        batch = lab.loop.do(lambda model, data: card.plain(model), edits_model=False)
    return {
        "robots": {name: _member(lab, name) for name in lab.world.robots},
        "model_version": lab.loop.model_version,
        "model_hash": lab.world.model_hash,
        "environment": lab.environment is not None,
        "option_sources": dict(lab.world.option_sources),
        "batch": batch,
    }


def _member(lab: LiveLab, name: str) -> Reply:
    member: Reply = {"prefix": lab.world.robots[name], "controls": [], "ids": [], "gains": {}}
    robot = lab.controls.find(name)
    if robot is not None:
        law = robot.controller.base
        member["controls"] = list(robot.actuators.names)
        member["ids"] = robot.actuators.ids.tolist()
        if isinstance(law, PdController):
            member["gains"] = law.gains
        member["enabled"] = robot.enabled
        member["twist"] = bool(read_twist(lab, robot))
    return member


@verb(
    reads=True,
    mjb=Content(text="the present model in MuJoCo's binary format"),
    mjcf=Field(text="XML of the scene; empty unless `sources`"),
    files=Values(text="content of each file that the XML refers to, by name"),
)
def export_model(
    lab: LiveLab,
    sources: Annotated[bool, Flag(text="true to include the XML and its files")] = False,
) -> Reply:
    """Return the model as files."""
    model = lab.read(lambda model, data: copy.copy(model)).result(_EXPORT_S)
    mjcf = ""
    files = {}
    if sources:
        mjcf, files = scene_mjcf(lab.world)
    return {"mjb": binary_model(model), "mjcf": mjcf, "files": files}
