"""The live lab: one world that runs in real time.

Names are loaded on first use, so that a reader in another process needs no environments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyworlds.utils import mujoco_messages as mujoco_messages
from manyworlds.utils.lazy_names import lazy_names

if TYPE_CHECKING:
    from manyworlds.lab.errors import VerbError
    from manyworlds.lab.facts import LabFacts
    from manyworlds.lab.lab import LiveLab
    from manyworlds.lab.lab_cfg import LabCfg
    from manyworlds.lab.loop.commands import CommandFuture
    from manyworlds.lab.loop.controls import RobotControls
    from manyworlds.lab.loop.physics_loop import FaultError, PhysicsLoop
    from manyworlds.lab.loop.snapshot import Snapshot
    from manyworlds.lab.loop.steppers import Driver, Puppet, Stepper
    from manyworlds.lab.moments.recording import LIVE, Recording, RecordingError
    from manyworlds.lab.moments.states import SavedState, SavedStates
    from manyworlds.lab.moments.timeline import Timeline
    from manyworlds.lab.moments.timeline_parts import TimelineCfg
    from manyworlds.lab.recording.matching import Match, MatchReport
    from manyworlds.lab.recording.recorder import Recorder, RecorderCfg
    from manyworlds.lab.recording.replay import Binding, Replay
    from manyworlds.lab.robots.control import RobotControl
    from manyworlds.lab.robots.controllers import Controller, Passthrough, PdController
    from manyworlds.lab.robots.presets import PRESETS, find_presets
    from manyworlds.lab.robots.sequence import SEQUENCE, Pose, PoseSequencer
    from manyworlds.lab.scene.rebuild import Rebuilt
    from manyworlds.lab.verb_methods import LabVerbs
    from manyworlds.lab.verbs import describe_verbs
    from manyworlds.lab.world.views import ElementView, StaleViewError
    from manyworlds.lab.world.world import (
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
    "LabFacts",
    "LabVerbs",
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
    "Stepper",
    "Timeline",
    "TimelineCfg",
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

_MODULES = {
    "Binding": "manyworlds.lab.recording.replay",
    "CommandFuture": "manyworlds.lab.loop.commands",
    "CompileError": "manyworlds.lab.world.world",
    "Controller": "manyworlds.lab.robots.controllers",
    "Driver": "manyworlds.lab.loop.steppers",
    "ElementView": "manyworlds.lab.world.views",
    "FaultError": "manyworlds.lab.loop.physics_loop",
    "LIVE": "manyworlds.lab.moments.recording",
    "LabCfg": "manyworlds.lab.lab_cfg",
    "LabFacts": "manyworlds.lab.facts",
    "LabVerbs": "manyworlds.lab.verb_methods",
    "LiveLab": "manyworlds.lab.lab",
    "Match": "manyworlds.lab.recording.matching",
    "MatchReport": "manyworlds.lab.recording.matching",
    "PRESETS": "manyworlds.lab.robots.presets",
    "Passthrough": "manyworlds.lab.robots.controllers",
    "PdController": "manyworlds.lab.robots.controllers",
    "PhysicsLoop": "manyworlds.lab.loop.physics_loop",
    "Pose": "manyworlds.lab.robots.sequence",
    "PoseSequencer": "manyworlds.lab.robots.sequence",
    "Puppet": "manyworlds.lab.loop.steppers",
    "Stepper": "manyworlds.lab.loop.steppers",
    "Rebuilt": "manyworlds.lab.scene.rebuild",
    "Recorder": "manyworlds.lab.recording.recorder",
    "RecorderCfg": "manyworlds.lab.recording.recorder",
    "Recording": "manyworlds.lab.moments.recording",
    "RecordingError": "manyworlds.lab.moments.recording",
    "Replay": "manyworlds.lab.recording.replay",
    "RobotControl": "manyworlds.lab.robots.control",
    "RobotControls": "manyworlds.lab.loop.controls",
    "SEQUENCE": "manyworlds.lab.robots.sequence",
    "SavedState": "manyworlds.lab.moments.states",
    "SavedStates": "manyworlds.lab.moments.states",
    "Snapshot": "manyworlds.lab.loop.snapshot",
    "StaleViewError": "manyworlds.lab.world.views",
    "Timeline": "manyworlds.lab.moments.timeline",
    "TimelineCfg": "manyworlds.lab.moments.timeline_parts",
    "VerbError": "manyworlds.lab.errors",
    "World": "manyworlds.lab.world.world",
    "add_entities": "manyworlds.lab.world.world",
    "describe_verbs": "manyworlds.lab.verbs",
    "find_presets": "manyworlds.lab.robots.presets",
    "world_from_env": "manyworlds.lab.world.world",
    "world_from_file": "manyworlds.lab.world.world",
    "world_from_scene": "manyworlds.lab.world.world",
    "world_from_spec": "manyworlds.lab.world.world",
}

__getattr__ = lazy_names(__name__, _MODULES)
