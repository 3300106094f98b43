"""The live lab: one world that runs in real time."""

from manyworlds.lab.commands import CommandFuture
from manyworlds.lab.control import RobotControl, RobotControls
from manyworlds.lab.controllers import Controller, Passthrough, PdController
from manyworlds.lab.drivers import Driver, Puppet
from manyworlds.lab.lab import LiveLab
from manyworlds.lab.lab_cfg import LabCfg
from manyworlds.lab.matching import Match, MatchReport
from manyworlds.lab.physics_loop import FaultError, PhysicsLoop
from manyworlds.lab.presets import PRESETS, find_presets
from manyworlds.lab.rebuild import Rebuilt
from manyworlds.lab.recorder import LIVE, Recorder, RecorderCfg
from manyworlds.lab.recording import Recording, RecordingError
from manyworlds.lab.replay import Binding, Replay
from manyworlds.lab.sequence import SEQUENCE, Pose, PoseSequencer
from manyworlds.lab.snapshot import Snapshot
from manyworlds.lab.states import SavedState, SavedStates
from manyworlds.lab.verbs import VerbError, describe_verbs
from manyworlds.lab.views import ElementView, StaleViewError
from manyworlds.lab.world import (
    CompileError,
    World,
    add_entities,
    world_from_env,
    world_from_file,
    world_from_scene,
    world_from_spec,
)

__all__ = [
    "LIVE",
    "PRESETS",
    "SEQUENCE",
    "Binding",
    "CommandFuture",
    "CompileError",
    "Controller",
    "Driver",
    "ElementView",
    "FaultError",
    "LabCfg",
    "LiveLab",
    "Match",
    "MatchReport",
    "Passthrough",
    "PdController",
    "PhysicsLoop",
    "Pose",
    "PoseSequencer",
    "Puppet",
    "Rebuilt",
    "Recorder",
    "RecorderCfg",
    "Recording",
    "RecordingError",
    "Replay",
    "RobotControl",
    "RobotControls",
    "SavedState",
    "SavedStates",
    "Snapshot",
    "StaleViewError",
    "VerbError",
    "World",
    "add_entities",
    "describe_verbs",
    "find_presets",
    "world_from_env",
    "world_from_file",
    "world_from_scene",
    "world_from_spec",
]
