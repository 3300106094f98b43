"""Verbs of a live world, by name: the same for the page, for Python and for protocols."""

from manyworlds.lab.errors import VerbError
from manyworlds.lab.verbs import (  # noqa: F401  they register verbs
    building,
    cameras,
    drawing,
    driving,
    environment,
    film,
    history,
    model_edits,
    models,
    play,
    props,
    recordings,
    robots,
    scene,
    status,
    time,
    timeline,
    training,
    world,
)
from manyworlds.lab.verbs.fields import Field
from manyworlds.lab.verbs.registry import VERBS, Reply, Verb, describe_verbs, find_verb

__all__ = ["VERBS", "Field", "Reply", "Verb", "VerbError", "describe_verbs", "find_verb"]
