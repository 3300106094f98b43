"""Verbs of a live world, as methods.

Written by `python tools/write_client_verbs.py`; a test compares them.
"""

from __future__ import annotations

from manyworlds.lab.client.written.cameras import CamerasVerbs
from manyworlds.lab.client.written.drawing import DrawingVerbs
from manyworlds.lab.client.written.driving import DrivingVerbs
from manyworlds.lab.client.written.environment import EnvironmentVerbs
from manyworlds.lab.client.written.film import FilmVerbs
from manyworlds.lab.client.written.history import HistoryVerbs
from manyworlds.lab.client.written.model_edits import ModelEditsVerbs
from manyworlds.lab.client.written.models import ModelsVerbs
from manyworlds.lab.client.written.play import PlayVerbs
from manyworlds.lab.client.written.props import PropsVerbs
from manyworlds.lab.client.written.recordings import RecordingsVerbs
from manyworlds.lab.client.written.robots import RobotsVerbs
from manyworlds.lab.client.written.scene import SceneVerbs
from manyworlds.lab.client.written.status import StatusVerbs
from manyworlds.lab.client.written.time import TimeVerbs
from manyworlds.lab.client.written.timeline import TimelineVerbs
from manyworlds.lab.client.written.training import TrainingVerbs
from manyworlds.lab.client.written.world import WorldVerbs


class LabVerbs(
    CamerasVerbs,
    DrawingVerbs,
    DrivingVerbs,
    EnvironmentVerbs,
    FilmVerbs,
    HistoryVerbs,
    ModelEditsVerbs,
    ModelsVerbs,
    PlayVerbs,
    PropsVerbs,
    RecordingsVerbs,
    RobotsVerbs,
    SceneVerbs,
    StatusVerbs,
    TimeVerbs,
    TimelineVerbs,
    TrainingVerbs,
    WorldVerbs,
):
    """All verbs of a live world, as methods of the same names."""
