"""`manyworlds validate`: check model files and tasks, and explain their errors."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import mujoco
import tyro

from manyworlds.cli.errors import UsageError
from manyworlds.cli.options import Load, MissingMeshes, parse
from manyworlds.spec.load import ModelFileError, compile_spec, load_spec
from manyworlds.spec.plausibility import doubtful_sizes, second_actuators
from manyworlds.utils.mujoco_messages import MujocoWarnings
from manyworlds.validation.names import near_matches

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnvCfg
    from manyworlds.envs.env_checker import Finding


@dataclass(kw_only=True)
class ValidateOptions:
    """Check that model files compile and that tasks run, and explain the errors found.

    The exit code is 0 if all are correct, else 1.
    """

    files: Annotated[
        tyro.conf.Positional[tuple[Path, ...]],
        tyro.conf.arg(metavar="FILE...", help_behavior_hint="(required)"),
    ]
    """Model files (MJCF, URDF) or mesh files, or names of tasks."""
    missing_meshes: MissingMeshes = "error"
    capture: bool = False
    """List the lines of a task that keep its control step from being captured as a CUDA graph; this
    needs no GPU, only the extra 'gpu'. They are no errors."""
    load: Load = ()


@dataclass
class ValidationReport:
    """Result of checking one model file."""

    path: Path
    error: str | None = None
    """Message of MuJoCo in one line, or ours for a file that MuJoCo cannot read."""
    hints: list[str] = field(default_factory=list)
    """Remedies for the error."""
    warnings: list[str] = field(default_factory=list)
    summary: str = ""
    """Sizes of a model that compiles."""

    def __str__(self) -> str:
        if self.error is None:
            lines = [f"{self.path}: ok: {self.summary}"]
        else:
            lines = [f"{self.path}: error", f"  {self.error}"]
        lines += [f"  hint: {hint}" for hint in self.hints]
        lines += [f"  warning: {warning}" for warning in self.warnings]
        return "\n".join(lines)


def main(argv: list[str]) -> int:
    """Run `manyworlds validate`."""
    args = parse(ValidateOptions, argv, "validate")
    if not args.files:
        raise UsageError("No file to validate: name at least one, as in `validate robot.xml`.")
    wrong = False
    for path in args.files:
        name = str(path)
        if path.suffix == ".py":
            error = "this is a Python file, not a model file or the name of a task."
            hint = f"`manyworlds validate TASK --load {shlex.quote(name)}` checks a task of it."
            report = ValidationReport(path, error, [hint])
        elif path.exists() or path.suffix or path.parent.name:
            report = validate_file(path, args.missing_meshes)
        elif name in _tasks():
            wrong |= not _validate_task(name)
            if args.capture:
                _tell_capture(name)
            continue
        else:
            remedy = near_matches(name, _tasks()) or " `manyworlds list` prints the tasks."
            own = " A task of your own needs --load FILE."
            report = ValidationReport(
                path, f"there is no such file, and no such task.{remedy}{own}"
            )
        wrong |= report.error is not None
        print(report)
    return int(wrong)


def _tasks() -> list[str]:
    from manyworlds.tasks import list_tasks

    return list_tasks()


def _validate_task(task: str) -> bool:
    """Run a task for some steps and print the findings; return whether there are none."""
    from manyworlds.envs import check_env
    from manyworlds.utils.devices import torch_threads

    ok = True
    for name, env_cfg in _parts(task):
        with torch_threads(1):
            report = check_env(env_cfg)
        report.findings += _refused_by_learner(task, env_cfg)
        first = f"{name}: "
        if not report.ok:
            first += "error\n  "
        print(first + str(report).replace("\n", "\n  "))
        ok &= report.ok
    return ok


def _parts(task: str) -> list[tuple[str, ManagerBasedRlEnvCfg]]:
    """Return what is checked of a task, with its name: the task, or each of its buckets."""
    from manyworlds.envs.buckets import separate_cfgs
    from manyworlds.tasks import load_env_cfg

    cfg = load_env_cfg(task)
    if not cfg.scene.buckets:
        return [(task, cfg)]
    return [(f"{task}, bucket '{name}'", part) for name, part in separate_cfgs(cfg, 1).items()]


def _tell_capture(task: str) -> None:
    """Print what keeps the control step of a task from being captured."""
    from manyworlds.envs.capture_check import check_capture

    for name, env_cfg in _parts(task):
        report = check_capture(env_cfg)
        print(f"{name} as a CUDA graph: " + str(report).replace("\n", "\n  "))


def _refused_by_learner(task: str, env_cfg: ManagerBasedRlEnvCfg) -> list[Finding]:
    """Return what the learner of a task would refuse: observation groups that do not exist."""
    from manyworlds.envs.env_checker import Finding
    from manyworlds.tasks import load_rl_cfg

    groups = [name for name, group in env_cfg.observations.items() if group is not None]
    findings = []
    for network, wanted in load_rl_cfg(task).obs_groups.items():
        missing = [name for name in wanted if name not in groups]
        if missing and network != "critic":  # a critic without its groups sees the actor's
            findings.append(
                Finding(
                    f"the {network} of the learner",
                    f"observes {missing}, but the environment has the groups {groups}",
                    f"name one of them in obs_groups['{network}']",
                )
            )
    return findings


def validate_file(
    path: Path, missing_meshes: Literal["error", "skip"] = "error"
) -> ValidationReport:
    """Compile a model file and report on it; errors of the file are part of the report."""
    report = ValidationReport(path)
    with MujocoWarnings(lambda message: report.warnings.append(" ".join(message.split()))):
        try:
            spec, report.warnings = load_spec(path, missing_meshes=missing_meshes)
            keys = [(key.name, len(key.qpos)) for key in spec.keys]
            model = compile_spec(spec, path)
        except ModelFileError as error:
            report.error = error.error
            report.hints = error.hints
            return report
    report.summary = (
        f"nq {model.nq}, nv {model.nv}, nu {model.nu}, nbody {model.nbody}, ngeom {model.ngeom}, "
        f"nsensor {model.nsensor}, timestep {model.opt.timestep:g} s"
    )
    report.warnings += doubts(model, keys)
    return report


def doubts(model: mujoco.MjModel, keys: Sequence[tuple[str, int]] = ()) -> list[str]:
    """Return warnings about a model that compiles but is probably wrong.

    Args:
        model: the model.
        keys: name and number of `qpos` values of each keyframe, as it is written.
    """
    found = []
    if not model.opt.timestep > 0:
        found.append(f"the timestep is {model.opt.timestep:g} s: it must be positive to simulate.")
    for i, (name, length) in enumerate(keys):
        if 0 < length < model.nq:
            shown = i
            if name:
                shown = repr(name)
            found.append(
                f"keyframe {shown} gives {length} of {model.nq} qpos values: "
                "the rest was filled in."
            )
    found += doubtful_sizes(model)
    found += second_actuators(model)
    if model.nbody == 1:
        found.append("there is no body in the model.")
    elif model.nv == 0:
        found.append("nothing can move: no body has a joint.")
    return found


def missing_floor(model: mujoco.MjModel) -> list[str]:
    """Return a warning if a floating body of a live world would fall forever."""
    free = model.jnt_bodyid[model.jnt_type == mujoco.mjtJoint.mjJNT_FREE]
    static = model.body_weldid[model.geom_bodyid] == 0
    if not free.size or not model.opt.gravity.any():
        return []
    if (static & ((model.geom_contype | model.geom_conaffinity) != 0)).any():
        return []
    return [f"nothing holds '{model.body(free[0]).name}', which falls: --plane adds a floor."]
