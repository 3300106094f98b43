"""Verbs of fields of the model, of its names, and of the batch that a world is from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from manyworlds.lab.editable_fields import EDITABLE
from manyworlds.lab.verbs.fields import Anything, Choice, Field, Integer, Listing, Texts, Values
from manyworlds.lab.verbs.registry import Reply, verb

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

_ELEMENT = Field(text="element as KIND:NAME, with the id for a name if it has none: body:cup")
_Element = Annotated[str, _ELEMENT]


@verb(
    element=_ELEMENT,
    value=Anything(text="the new value"),
    model_version=Integer(text="number of changes of the model"),
)
def set_model(
    lab: LiveLab,
    element: _Element,
    field: Annotated[str, Field(text="field as in MJCF or in the compiled model: mass")],
    value: Annotated[object, Anything(text="number, list of numbers, or name")],
) -> Reply:
    """Change a field of an element from the next step on, in the spec, too; `undo` takes it back.

    Values are those of the compiled model: radians, and frames of bodies.
    """
    new = lab.set_model(element, field, value)
    label = lab.edits.label_of(lab.edits.find(element))
    return {"element": label, "value": new, "model_version": lab.loop.model_version}


@verb(fields=Texts(text="fields that were set"))
def reset_model(
    lab: LiveLab,
    element: _Element,
    field: Annotated[str, Field(text="field; all of them if empty")] = "",
) -> Reply:
    """Set a field of an element, or all of them, to what the model had before all edits."""
    return {"fields": lab.edits.reset(element, field)}


@verb(
    element=_ELEMENT,
    type=Field(text="kind of the joint, geom, actuator ... as in the model's file"),
    fields=Listing(text="name, value, model_value, unit, bounds, choices, consequence of each"),
)
def read_element(lab: LiveLab, element: _Element) -> Reply:
    """Return the fields of an element that can change, and their values in the compiled model."""
    place = lab.edits.find(element)
    return {
        "element": lab.edits.label_of(place),
        "type": lab.edits.type_of(place),
        "fields": lab.edits.read(element),
    }


@verb(names=Listing(text="kind, name, robot, original name, source of each element"))
def read_names(
    lab: LiveLab,
    kind: Annotated[
        str, Choice(options=("", *EDITABLE), text="kind of element; all if empty")
    ] = "",
) -> Reply:
    """Return the names of elements in this world beside those in the robots' own files."""
    return {"names": lab.edits.names(kind)}


@verb(
    env_id=Integer(text="index of the world in its batch; -1 if it is from none"),
    num_envs=Integer(text="number of worlds of the batch"),
    variants=Values(text="name of the variant, by entity"),
    terrain=Values(text="type, level, column and difficulty of its cell; empty on a plane"),
    randomized=Listing(text="event, field, element, value, nominal, low, high, draw of each"),
    others=Listing(text="events that randomize what is not in the model"),
)
def describe_world(lab: LiveLab) -> Reply:
    """Return the facts about the world of a batch: variant, terrain, and what was randomized."""
    card = lab.world.card
    if card is None:
        empty: Reply = {"variants": {}, "terrain": {}, "randomized": [], "others": []}
        return {"env_id": -1, "num_envs": 0, **empty}
    return lab.loop.do(lambda model, data: card.plain(model), edits_model=False)
