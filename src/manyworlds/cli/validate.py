"""`manyworlds validate`: say whether model files compile, and if not, why and what to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import mujoco
import tyro

from manyworlds.utils.mujoco import mujoco_warnings


@dataclass(kw_only=True)
class ValidateArgs:
    """Say whether model files compile, and if not, why and what to do about it.

    The exit code is 0 if all files compile, else 1.
    """

    files: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="FILE...")]
    """MJCF or URDF files."""


@dataclass
class Report:
    """What is to say about one model file."""

    path: Path
    error: str | None = None
    """MuJoCo's message in one line, or ours where MuJoCo has no chance to say anything."""
    hints: list[str] = field(default_factory=list)
    """What to do about the error."""
    warnings: list[str] = field(default_factory=list)
    summary: str = ""
    """Sizes of a model that compiles."""

    def __str__(self) -> str:
        first = f"{self.path}: " + (f"ok: {self.summary}" if self.error is None else "error")
        lines = [] if self.error is None else [f"  {self.error}"]
        lines += [f"  hint: {hint}" for hint in self.hints]
        lines += [f"  warning: {warning}" for warning in self.warnings]
        return "\n".join([first, *lines])


class ModelFileError(ValueError):
    """A model file cannot be read or does not compile; the report says why."""

    def __init__(self, report: Report) -> None:
        hints = "".join(f" Hint: {hint}" for hint in report.hints)
        super().__init__(f"{report.path}: {report.error}{hints}")
        self.report = report


def main(argv: list[str]) -> int:
    """Run `manyworlds validate`."""
    args = tyro.cli(ValidateArgs, prog="manyworlds validate", args=argv)
    if not args.files:
        raise ValueError("No file to validate: name at least one, as in `validate robot.xml`.")
    reports = [validate_file(path) for path in args.files]
    for report in reports:
        print(report)
    return int(any(report.error is not None for report in reports))


def validate_file(path: Path) -> Report:
    """Compile a model file and report on it; errors of the file are part of the report."""
    report = Report(path)
    with mujoco_warnings(lambda message: report.warnings.append(" ".join(message.split()))):
        try:
            spec = load_spec(path)
            keys = [(key.name, len(key.qpos)) for key in spec.keys]
            model = compile_spec(spec, path)
        except ModelFileError as error:
            error.report.warnings = report.warnings
            return error.report
    report.summary = (
        f"nq {model.nq}, nv {model.nv}, nu {model.nu}, nbody {model.nbody}, ngeom {model.ngeom}, "
        f"nsensor {model.nsensor}, timestep {model.opt.timestep:g} s"
    )
    report.warnings += _doubts(model, keys)
    return report


def load_spec(path: Path) -> mujoco.MjSpec:
    """Read an MJCF or URDF file.

    Raises:
        ModelFileError: the file is missing, is no model file, or breaks MJCF's schema.
    """
    from manyworlds.cli import model_hints

    if problem := model_hints.unreadable(path):
        raise ModelFileError(Report(path, *problem))
    try:
        return mujoco.MjSpec.from_file(str(path))
    except (ValueError, mujoco.FatalError) as error:
        raise _explained(path, error) from None


def compile_spec(spec: mujoco.MjSpec, path: Path) -> mujoco.MjModel:
    """Compile the spec that `load_spec` read from a file.

    Raises:
        ModelFileError: the spec does not compile.
    """
    try:
        return spec.compile()
    except (ValueError, mujoco.FatalError) as error:
        raise _explained(path, error) from None


def _explained(path: Path, error: Exception) -> ModelFileError:
    from manyworlds.cli import model_hints

    message = str(error)
    return ModelFileError(
        Report(path, model_hints.one_line(message), model_hints.hints(path, message))
    )


def _doubts(model: mujoco.MjModel, keys: list[tuple[str, int]]) -> list[str]:
    """Return what compiles but is hardly meant."""
    doubts = []
    if not model.opt.timestep > 0:
        doubts.append(f"the timestep is {model.opt.timestep:g} s: it must be positive to simulate.")
    for i, (name, length) in enumerate(keys):
        if 0 < length < model.nq:
            doubts.append(
                f"keyframe {repr(name) if name else i} gives {length} of {model.nq} qpos values: "
                "the rest was filled in."
            )
    if model.nbody == 1:
        doubts.append("there is no body in the model.")
    elif model.nv == 0:
        doubts.append("nothing can move: no body has a joint.")
    return doubts
