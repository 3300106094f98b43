"""The live lab: one world that runs in real time.

Names are loaded on first use, so that a reader in another process needs no environments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyworlds.utils import mujoco_messages as mujoco_messages
from manyworlds.utils.lazy_names import lazy_names

if TYPE_CHECKING:
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
    from manyworlds.lab.timeline import Timeline
    from manyworlds.lab.timeline_parts import TimelineCfg
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
    "Binding": "manyworlds.lab.replay",
    "CommandFuture": "manyworlds.lab.commands",
    "CompileError": "manyworlds.lab.world",
    "Controller": "manyworlds.lab.controllers",
    "Driver": "manyworlds.lab.drivers",
    "ElementView": "manyworlds.lab.views",
    "FaultError": "manyworlds.lab.physics_loop",
    "LIVE": "manyworlds.lab.recorder",
    "LabCfg": "manyworlds.lab.lab_cfg",
    "LiveLab": "manyworlds.lab.lab",
    "Match": "manyworlds.lab.matching",
    "MatchReport": "manyworlds.lab.matching",
    "PRESETS": "manyworlds.lab.presets",
    "Passthrough": "manyworlds.lab.controllers",
    "PdController": "manyworlds.lab.controllers",
    "PhysicsLoop": "manyworlds.lab.physics_loop",
    "Pose": "manyworlds.lab.sequence",
    "PoseSequencer": "manyworlds.lab.sequence",
    "Puppet": "manyworlds.lab.drivers",
    "Rebuilt": "manyworlds.lab.rebuild",
    "Recorder": "manyworlds.lab.recorder",
    "RecorderCfg": "manyworlds.lab.recorder",
    "Recording": "manyworlds.lab.recording",
    "RecordingError": "manyworlds.lab.recording",
    "Replay": "manyworlds.lab.replay",
    "RobotControl": "manyworlds.lab.control",
    "RobotControls": "manyworlds.lab.control",
    "SEQUENCE": "manyworlds.lab.sequence",
    "SavedState": "manyworlds.lab.states",
    "SavedStates": "manyworlds.lab.states",
    "Snapshot": "manyworlds.lab.snapshot",
    "StaleViewError": "manyworlds.lab.views",
    "Timeline": "manyworlds.lab.timeline",
    "TimelineCfg": "manyworlds.lab.timeline_parts",
    "VerbError": "manyworlds.lab.verbs",
    "World": "manyworlds.lab.world",
    "add_entities": "manyworlds.lab.world",
    "describe_verbs": "manyworlds.lab.verbs",
    "find_presets": "manyworlds.lab.presets",
    "world_from_env": "manyworlds.lab.world",
    "world_from_file": "manyworlds.lab.world",
    "world_from_scene": "manyworlds.lab.world",
    "world_from_spec": "manyworlds.lab.world",
}

__getattr__ = lazy_names(__name__, _MODULES)
