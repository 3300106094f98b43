"""`manyworlds new-task`: write a Python file with a new task."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from manyworlds.cli.errors import UsageError
from manyworlds.cli.options import parse
from manyworlds.cli.reach_tasks import reach_source
from manyworlds.cli.robot_tasks import legged_source, planar_source, wheeled_source
from manyworlds.cli.task_files import module_file
from manyworlds.utils.files import write_atomic

if TYPE_CHECKING:
    import mujoco

    from manyworlds.asset_zoo.fixed_base import FixedBaseModel
    from manyworlds.asset_zoo.legged import JointDrive, LeggedModel
    from manyworlds.asset_zoo.planar import PlanarModel
    from manyworlds.asset_zoo.wheeled import WheeledModel

EffortLimit = float | Mapping[str, float] | None
"""Largest torque of joints, or by pattern of joints [N m]; None takes the model's."""
_TEMPLATE = "manyworlds.tasks.reach.reach_env_cfg"
_BEFORE = "from manyworlds.sim import MujocoCfg, SimulationCfg\n"
LEAST_HEIGHT = 0.85
"""Height of a root that stands in the default pose, as a share of the derived height."""
_NAME = re.compile(r"[A-Za-z]\w*(-\w+)*", re.ASCII)


@dataclass(kw_only=True)
class NewTaskOptions:
    """Write a Python file with a new task into the current folder.

    The new task trains as it is: an arm with two joints reaches for goals or, with --robot, a robot
    on two or four legs or on wheels follows velocity commands, one that moves in a vertical plane
    runs forward, and one with a fixed base reaches goals. Edit the file to make it your own task.
    """

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")]
    """Name of the task, such as My-Robot-Reach, which makes the file my_robot_reach.py."""
    robot: Annotated[
        Path | None,
        tyro.conf.arg(
            help="Model of a robot, MJCF or URDF. Feet or wheels, default pose and gains are "
            "derived from it, printed, and written into the file; see docs/robots.md."
        ),
    ] = None
    feet: tuple[str, ...] = ()
    """Last bodies of the robot's legs, if they cannot be derived."""
    wheels: tuple[str, ...] = ()
    """Bodies of the robot's wheels, if they cannot be derived."""
    fixed_base: bool = False
    """The robot's base is fixed, as that of an arm, if this cannot be derived."""
    effort_limit: Annotated[
        tyro.conf.UseAppendAction[tuple[str, ...]],
        tyro.conf.arg(
            metavar="[PATTERN=]VALUE",
            help="Largest torque of the robot's joints, if the model does not have it, or of the "
            "joints whose names a regular expression matches, as in '.*knee.*=35' [N m]. Repeat "
            "the option for others; the first pattern that matches a joint counts.",
        ),
    ] = ()


def main(argv: list[str]) -> int:
    """Run `manyworlds new-task`."""
    cfg = parse(NewTaskOptions, argv, "new-task")
    name = cfg.name
    kinds = [kind for kind in (cfg.feet, cfg.wheels, cfg.fixed_base) if kind]
    if cfg.robot is None and (kinds or cfg.effort_limit):
        raise UsageError("--feet, --wheels, --fixed-base and --effort-limit are for --robot FILE.")
    if len(kinds) > 1:
        raise UsageError(
            "--feet is for robots on legs, --wheels for others, and --fixed-base for arms: give "
            "one of them."
        )
    if cfg.robot is None:
        path = write_task(name, Path())
    else:
        limits = effort_limits(cfg.effort_limit)
        path = write_robot_task(
            name, Path(), cfg.robot, cfg.feet, limits, cfg.wheels, cfg.fixed_base
        )
    print(f"{path}: edit it, and try it with")
    print(f"  manyworlds validate {name} --load {path}")
    print(f"  manyworlds train {name} --load {path}")
    print(f"  manyworlds play {name}")
    return 0


def effort_limits(texts: Sequence[str]) -> dict[str, float]:
    """Return the largest torque by pattern of joints, from the values of `--effort-limit` [N m].

    Args:
        texts: `PATTERN=VALUE`; a value alone is for the joints that no pattern matches.

    Raises:
        UsageError: a value is no positive number, or a pattern comes twice.
    """
    found: dict[str, float] = {}
    for text in texts:
        pattern, _, value = text.rpartition("=")
        try:
            limit = float(value)
        except ValueError:
            limit = math.nan
        if not 0.0 < limit < math.inf:
            raise UsageError(
                f"--effort-limit takes a positive torque in N m, or PATTERN=TORQUE, got '{text}'."
            )
        if pattern in found:
            what = "all joints"
            if pattern:
                what = f"the pattern '{pattern}'"
            raise UsageError(f"--effort-limit is given twice for {what}: leave one out.")
        found[pattern] = limit
    if "" in found:
        found[".*"] = found.pop("")  # the last, after all patterns
    return found


def write_task(name: str, folder: Path) -> Path:
    """Write a module that registers a task.

    Args:
        name: the task's name: words of letters, digits and underscores, joined by hyphens.
        folder: folder of the new file.

    Returns:
        The path of the new file.

    Raises:
        ValueError: the name does not have that form, is the name of a task, or makes a file with
            the name of a module.
        FileExistsError: the file exists.
    """
    path = _new_file(name, folder)
    spec = importlib.util.find_spec(_TEMPLATE)
    assert spec is not None and spec.origin is not None
    source = Path(spec.origin).read_text(encoding="utf-8").partition("\n")[2]
    for old, new in (
        ('experiment_name="reach"', f'experiment_name="{path.stem}"'),
        (_BEFORE, f"{_BEFORE}from manyworlds.tasks import register_task\n"),
    ):
        assert old in source, f"{_TEMPLATE} has no line {old!r} any more"
        source = source.replace(old, new)
    text = f'''"""The task {name}: an arm of two joints reaches goals in a plane."""
{source}

register_task("{name}", env_cfg(), env_cfg(play=True), rl_cfg())
'''
    write_atomic(path, text)
    return path


def write_robot_task(
    name: str,
    folder: Path,
    robot: Path,
    feet: Sequence[str],
    effort_limit: EffortLimit,
    wheels: Sequence[str] = (),
    fixed_base: bool = False,
) -> Path:
    """Write a module that registers the task of a robot, and print what was derived.

    A robot on legs or wheels follows velocity commands, one in a vertical plane runs forward, and
    one with a fixed base reaches goals.

    Args:
        name: the task's name, as for `write_task`.
        folder: folder of the new file.
        robot: the robot's model.
        feet: see `derive_legged_model`.
        effort_limit: see `derive_legged_model`.
        wheels: bodies of its wheels; without them and `feet`, they are looked for.
        fixed_base: its base is fixed, whatever its model looks like.

    Returns:
        The path of the new file.

    Raises:
        ValueError: the name is not possible, or the model does not say all that the task needs.
        FileExistsError: the file exists.
        OSError: the model cannot be read.
    """
    from manyworlds.asset_zoo.fixed_base import has_fixed_base
    from manyworlds.asset_zoo.planar import planar_root
    from manyworlds.asset_zoo.wheeled import find_wheels
    from manyworlds.spec.load import compile_spec, load_spec
    from manyworlds.tasks.velocity.config.robots import known_robots

    path = _new_file(name, folder)
    if str(robot) in known_robots() and not robot.exists():
        raise ValueError(
            f"--robot takes a model file here, and '{robot}' is the name of a robot: train it with "
            f"`manyworlds train Velocity-Flat --robot {robot}`, or give the path of its MJCF or "
            "URDF file."
        )
    spec, _ = load_spec(robot)
    model = compile_spec(spec.copy(), robot)
    is_planar = planar_root(model) is not None
    if not (feet or wheels or fixed_base or is_planar):
        fixed_base = has_fixed_base(model)
        if not fixed_base:
            with _errors_of(robot):
                _check_root(model)
                wheels = find_wheels(spec)
    if fixed_base:
        source = _reach_task(name, path, robot, effort_limit)
    elif wheels:
        source = _wheeled_task(name, path, robot, wheels, effort_limit)
    elif is_planar and not feet:
        source = _planar_task(name, path, robot, effort_limit)
    else:
        source = _legged_task(name, path, robot, feet, effort_limit)
    write_atomic(path, source)
    return path


@contextlib.contextmanager
def _errors_of(robot: Path) -> Iterator[None]:
    """Name a robot's file in errors of what is derived from it."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"Cannot derive a task from '{robot}'. {error}") from error


def _check_root(model: mujoco.MjModel) -> None:
    """Check that the root of a robot is free, or has no joint yet.

    Raises:
        ValueError: other joints move it.
    """
    import mujoco

    if model.nbody < 2 or not model.body_jntnum[1] or mujoco.mjtJoint.mjJNT_FREE in model.jnt_type:
        return
    first = int(model.body_jntadr[1])
    names = [model.joint(j).name for j in range(first, first + int(model.body_jntnum[1]))]
    raise ValueError(
        f"The root '{model.body(1).name}' moves by the joints {names}, and so is neither free nor "
        "in a vertical plane nor fixed: give it a <freejoint/>, or write a task of reaching goals "
        "with manyworlds new-task NAME --robot FILE --fixed-base."
    )


def _legged_task(
    name: str, path: Path, robot: Path, feet: Sequence[str], effort_limit: EffortLimit
) -> str:
    """Derive a robot on legs, print it with what is doubtful, and return its task's source."""
    from manyworlds.asset_zoo.legged import name_elements
    from manyworlds.asset_zoo.legged_feet import wheel_warning, wheels_among
    from manyworlds.spec.load import load_spec
    from manyworlds.tasks.velocity.config.derived import derive_robot, legged_robot, settled_height

    model = derive_robot(robot, feet, effort_limit)
    height = settled_height(legged_robot(robot, model))  # what cannot be built is not written
    print(_describe(model))
    turning = wheels_among(name_elements(load_spec(robot)[0]).compile(), model.feet)
    if turning:
        print(f"warning: {wheel_warning(turning)}", file=sys.stderr)
    if height < LEAST_HEIGHT * model.height:
        print(
            f"warning: the robot sinks from {model.height:.2f} to {height:.2f} m while it holds "
            "its default pose: correct the pose or the stiffness in the file, or add a keyframe "
            "'home' to the model, in which the robot stands.",
            file=sys.stderr,
        )
    return legged_source(name, path, robot, model)


def _wheeled_task(
    name: str, path: Path, robot: Path, wheels: Sequence[str], effort_limit: EffortLimit
) -> str:
    """Derive a robot on wheels, print it, and return its task's source."""
    from manyworlds.asset_zoo.wheeled import derive_wheeled_model
    from manyworlds.spec.load import load_spec

    with _errors_of(robot):
        model = derive_wheeled_model(load_spec(robot)[0], wheels, effort_limit)
    print(_describe_wheeled(model))
    return wheeled_source(name, path, robot, model)


def _planar_task(name: str, path: Path, robot: Path, effort_limit: EffortLimit) -> str:
    """Derive a robot in a vertical plane, print it, and return its task's source."""
    from manyworlds.asset_zoo.planar import derive_planar_model
    from manyworlds.spec.load import load_spec

    with _errors_of(robot):
        model = derive_planar_model(load_spec(robot)[0], effort_limit)
    print(_describe_planar(model))
    return planar_source(name, path, robot, model)


def _reach_task(name: str, path: Path, robot: Path, effort_limit: EffortLimit) -> str:
    """Derive a robot with a fixed base, print it, and return its task's source."""
    from manyworlds.asset_zoo.fixed_base import derive_fixed_base_model
    from manyworlds.spec.load import load_spec

    with _errors_of(robot):
        model = derive_fixed_base_model(load_spec(robot)[0], effort_limit)
    print(_describe_fixed(model))
    return reach_source(name, path, robot, model)


def _new_file(name: str, folder: Path) -> Path:
    """Return the path of a new task's file."""
    from manyworlds.tasks import list_tasks

    if not _NAME.fullmatch(name):
        raise ValueError(
            f"'{name}' is no name for a task: use letters, digits and underscores, begin with a "
            "letter, and join words by hyphens, as in My-Robot-Reach."
        )
    if name in list_tasks():
        raise ValueError(f"There is a task '{name}' already: choose another name.")
    stem = name.replace("-", "_").lower()
    path = folder / f"{stem}.py"
    if path.exists():
        raise FileExistsError(f"'{path}' is there already: choose another name, or move it away.")
    if stem in sys.stdlib_module_names or module_file(stem) is not None:
        raise ValueError(
            f"The file '{path}' of the task '{name}' would hide the Python module '{stem}' from "
            f"programs in its folder: choose another name, such as My-{name}."
        )
    return path


def _describe(model: LeggedModel) -> str:
    """Return what was derived from a robot's model, for people to check."""
    parts = {name: "leg" for name in model.legs}
    parts |= {name: "leg, pitch" for name in model.pitch} | {name: "knee" for name in model.knees}
    return (
        f"root: {model.root}, at a height of {model.height:g} m\nfeet: {', '.join(model.feet)}\n"
        + _drive_table(model.drives, parts)
    )


def _describe_planar(model: PlanarModel) -> str:
    """Return what was derived from a planar robot's model."""
    found = (
        f"root: {model.root}, in a plane, at a height of {model.height:g} m\n"
        f"joints of the root: forward {model.slide}, up {model.lift}, pitch {model.pitch}\n"
    )
    if model.motors:
        return f"{found}motors: {', '.join(model.motors)}"
    return found + _drive_table(model.drives, {})


def _describe_wheeled(model: WheeledModel) -> str:
    """Return what was derived from the model of a robot on wheels."""
    wheels = ", ".join(
        f"{name} ({wheel.effort_limit:g} N m, {wheel.damping:g} N m s/rad)"
        for name, wheel in model.wheels.items()
    )
    found = (
        f"root: {model.root}, at a height of {model.height:g} m\n"
        f"wheels: {wheels}, with a radius of {model.radius:g} m\n"
        f"commands: up to {model.speed:g} m/s and {model.yaw_rate:g} rad/s"
    )
    if not model.drives:
        return found
    return f"{found}\n{_drive_table(model.drives, {})}"


def _describe_fixed(model: FixedBaseModel) -> str:
    """Return what was derived from the model of a robot with a fixed base."""
    place = ", ".join(f"{value:g}" for value in model.tip_pos)
    return (
        f"fixed base: {model.root}\n"
        f"tip: ({place}) m in the frame of {model.tip}; goals up to {model.reach:g} m from the "
        f"base\n{_drive_table(model.drives, dict.fromkeys(model.scales, 'moves the tip'))}"
    )


def _drive_table(drives: Mapping[str, JointDrive], parts: Mapping[str, str]) -> str:
    """Return a table of joints with position control, and the part of the robot of each."""
    from manyworlds.utils.table import render_table

    columns = ("joint", "default [rad]", "effort [N m]", "stiffness", "damping", "armature", "part")
    rows = [
        [name, *(f"{value:.4g}" for value in astuple(drive)), parts.get(name, "")]
        for name, drive in drives.items()
    ]
    width = 100 + max(map(len, drives), default=0)  # names are copied: none is cut
    return render_table("", columns, rows, width)
