"""The live lab: one world that goes on in real time."""

from manyworlds.lab.control import ControlDesk, RobotControl
from manyworlds.lab.controllers import Controller, Passthrough, PdController, Pose, PoseSequencer
from manyworlds.lab.drivers import Driver, Puppet
from manyworlds.lab.engine import FaultError, PhysicsEngine
from manyworlds.lab.lab import LabCfg, LiveLab
from manyworlds.lab.snapshot import Snapshot
from manyworlds.lab.states import SavedState, SavedStates
from manyworlds.lab.views import View
from manyworlds.lab.world import (
    CompileError,
    World,
    world_from_env,
    world_from_file,
    world_from_scene,
    world_from_spec,
)

__all__ = [
    "CompileError",
    "ControlDesk",
    "Controller",
    "Driver",
    "FaultError",
    "LabCfg",
    "LiveLab",
    "Passthrough",
    "PdController",
    "PhysicsEngine",
    "Pose",
    "PoseSequencer",
    "Puppet",
    "RobotControl",
    "SavedState",
    "SavedStates",
    "Snapshot",
    "View",
    "World",
    "world_from_env",
    "world_from_file",
    "world_from_scene",
    "world_from_spec",
]
