"""Programs that `manyworlds new-task --robot` writes: tasks of robots, for people to edit."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyworlds.asset_zoo.legged import LeggedModel
    from manyworlds.managers import RewardTermCfg
    from manyworlds.tasks.velocity.velocity_env_cfg import LeggedRobot

_LEGGED = Template('''"""The task $name: a robot with $count legs follows velocity commands.

The values of MODEL were derived from the robot's model. Check them against its data sheet.
"""

from pathlib import Path

from manyworlds.asset_zoo.legged import JointDrive, LeggedModel
from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.managers import RewardTermCfg, SceneEntityCfg
from manyworlds.tasks import register_task
from manyworlds.tasks.velocity import mdp
from manyworlds.tasks.velocity.config.derived import (
    cpu_preset,
    legged_robot,
    velocity_env_cfg,
    velocity_rl_cfg,
)

MODEL = LeggedModel(
    root=$root,
    feet=$feet,
    height=$height,  # [m]
    drives={  # default [rad], effort limit [N m], stiffness, damping, armature
$drives
    },
    knees=$knees,
    pitch=$pitch,
    legs=$legs,
)
FILE = $file  # noqa: E501
ROBOT = legged_robot(FILE, MODEL)


def rewards() -> dict[str, RewardTermCfg]:
    """Return the rewards, to be edited: change weights and parameters, remove terms, add yours.

    Terms of weight 0 are computed only once they have another weight. `use_few_cores` changes
    weights.
    """
    return {
$rewards
    }


def env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Return the environment; `play` is for playback."""
    cfg = velocity_env_cfg(ROBOT, "flat", play=play)  # or "rough"
    cfg.rewards = rewards()
    return cfg


def use_few_cores(env_cfg, rl_cfg):
    """Change both configurations for a few CPU cores, unless `train` has `--preset gpu`.

    This replaces the number of worlds, the timestep, the learner's settings and weights of rewards,
    which then change during the training: set yours below.
    """
    cpu_preset(ROBOT)(env_cfg, rl_cfg)
    # rl_cfg.max_iterations = 1000
    # del env_cfg.curriculum["air_time_weight"]
    # env_cfg.rewards["air_time"].weight = 0.5


register_task(
    "$name",
    env_cfg(),
    env_cfg(play=True),
    velocity_rl_cfg("$stem", ROBOT),
    cpu_preset=use_few_cores,
)
''')


def legged_source(name: str, path: Path, file: Path, model: LeggedModel) -> str:
    """Return the program of a legged robot's velocity task.

    Args:
        name: name of the task.
        path: path of the program.
        file: the robot's model.
        model: facts about the robot.
    """
    from manyworlds.tasks.velocity.config.derived import legged_robot, velocity_env_cfg

    robot = legged_robot(file, model)
    return _LEGGED.substitute(
        name=name,
        stem=path.stem,
        count=len(model.feet),
        root=json.dumps(model.root),
        feet=_names(model.feet),
        height=repr(model.height),
        drives=_drives(model),
        knees=_names(model.knees),
        pitch=_names(model.pitch),
        legs=_names(model.legs),
        file=_path_source(file, path.parent),
        rewards=_rewards(velocity_env_cfg(robot).rewards, robot),
    )


def _drives(model: LeggedModel) -> str:
    """Return the controlled joints as source, in lines of one joint each."""
    return "\n".join(
        f"        {json.dumps(joint)}: JointDrive{astuple(drive)},"
        for joint, drive in model.drives.items()
    )


def _rewards(terms: Mapping[str, RewardTermCfg], robot: LeggedRobot) -> str:
    """Return reward terms as source; what names elements of the robot refers to `ROBOT`."""
    standing, walking, running = robot.posture
    known = {
        repr(running): "ROBOT.posture[2]",
        repr(walking): "ROBOT.posture[1]",  # where it is that of running, too
        repr(standing): "ROBOT.posture[0]",
        repr(tuple(standing)): "tuple(ROBOT.posture[0])",
        repr(robot.feet): "ROBOT.feet",
        repr((robot.trunk,)): "(ROBOT.trunk,)",
    }
    lines = []
    for name, term in terms.items():
        lines.append(f"        {json.dumps(name)}: RewardTermCfg(")
        lines.append(f"            func=mdp.{getattr(term.func, '__name__', '')},")
        lines.append(f"            weight={term.weight!r},")
        if term.params:
            lines.append("            params={")
            for parameter, value in term.params.items():
                text = repr(value)
                for values, source in known.items():
                    text = text.replace(values, source)
                lines.append(f"                {json.dumps(parameter)}: {_double_quotes(text)},")
            lines.append("            },")
        lines.append("        ),")
    return "\n".join(lines)


def _double_quotes(text: str) -> str:
    """Return source with the quotes of this project, unless a text in it has quotes itself."""
    if '"' in text or "\\" in text:
        return text
    return text.replace("'", '"')


def _path_source(file: Path, folder: Path) -> str:
    """Return a path as source for a module in a folder, which may move with the files below it."""
    plain = Path(os.path.abspath(file))  # keeps symbolic links
    home = folder.absolute()
    if plain.is_relative_to(home):
        return f"Path(__file__).parent / {json.dumps(plain.relative_to(home).as_posix())}"
    return f"Path({json.dumps(str(file.resolve()))})"


def _names(names: tuple[str, ...]) -> str:
    """Return a tuple of names as source, in lines of one name each."""
    if not names:
        return "()"
    lines = "".join(f"\n        {json.dumps(name)}," for name in names)
    return f"({lines}\n    )"
