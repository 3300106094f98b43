"""`manyworlds doctor`: check the installed packages and the machine."""

from __future__ import annotations

import importlib.metadata
import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec

from manyworlds.cli.options import parse
from manyworlds.utils.extras import DISTRIBUTION, install_command, installed_version, own_version

_NOT_EXTRAS = ("dev", "docs")  # for work on this package
_NAMESAKE = "manyworlds"  # on PyPI, this is not us
_REQUIREMENT = re.compile(
    r"""(?P<name>[\w.-]+) \s* (?P<bounds>[^;\[]*) (?:;\s*extra\s*==\s*["'](?P<extra>\w+)["'])?$""",
    re.VERBOSE,
)
_BOUND = re.compile(r"\s*(>=|<)\s*([\d.]+)\s*")


@dataclass(kw_only=True)
class DoctorOptions:
    """Check the installed packages, OpenGL, the GPU, ports and disk, and suggest remedies.

    The exit code is 1 if a package is missing or has a wrong version, else 0. Extras are optional.
    """


@dataclass(frozen=True)
class Package:
    """Package that manyworlds depends on."""

    name: str
    bounds: str
    """Versions that fit, such as `>=4.0,<5`."""
    extra: str
    """Extra that needs it; empty for the core."""
    installed: str
    """Installed version; empty if it is not installed."""

    @property
    def problem(self) -> str:
        """Problem with the package; empty if there is none."""
        if not self.installed and not self.extra:
            return "missing"
        if self.installed and not is_within(self.installed, self.bounds):
            return f"wanted {self.bounds}"
        return ""


def main(argv: list[str]) -> int:
    """Run `manyworlds doctor`."""
    parse(DoctorOptions, argv, "doctor")
    from manyworlds.cli.machine_checks import check_machine
    from manyworlds.utils.table import render_table

    findings = list(check_machine())
    import mujoco  # after the check of OpenGL, which says why it may fail

    from manyworlds.utils.newton import newton_defect

    distribution = find_distribution(DISTRIBUTION)
    packages = list(find_packages((distribution and distribution.requires) or []))
    rows = [[p.name, p.installed or "-", p.bounds, p.extra or "all", p.problem] for p in packages]
    columns = ("package", "installed", "wanted", "for", "problem")
    print(f"manyworlds {own_version()}, Python {platform.python_version()}, {platform.platform()}")
    print(render_table("", columns, rows))
    for finding in findings:
        print(f"{finding.what}: {finding.found}")
    problems = [
        f"{p.name} {p.installed}: {p.problem}: run `pip install '{p.name}{p.bounds}'`"
        for p in packages
        if p.problem
    ]
    problems += _installation_problems(DISTRIBUTION)
    if mujoco.__version__ != mujoco.mj_versionString():
        problems.append(
            f"mujoco {mujoco.__version__} loads the library {mujoco.mj_versionString()}"
        )
    lacking = sorted({p.extra for p in packages if p.extra and not p.installed})
    if lacking:
        print(f"note: extras not installed: {', '.join(lacking)}: {install_command('NAME')}")
    defect = newton_defect()
    if defect:
        print(f"note: {defect}")
    right = "nothing is wrong"
    for finding in findings:
        if finding.remedy:
            right = "nothing else is wrong"
            print(f"note: {finding.what}: {finding.remedy}")
    print("\n".join(f"wrong: {problem}" for problem in problems) or right)
    return int(bool(problems))


def find_distribution(name: str) -> importlib.metadata.Distribution | None:
    """Return an installed distribution, or None."""
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def find_packages(requirements: list[str]) -> Iterator[Package]:
    """Look up the packages of a distribution's requirements, except development tools."""
    for requirement in requirements:
        found = _REQUIREMENT.match(requirement)
        if found is None or found["extra"] in _NOT_EXTRAS:
            continue
        installed = installed_version(found["name"])
        bounds = ",".join(sorted(found["bounds"].strip().split(","), reverse=True))
        yield Package(found["name"], bounds, found["extra"] or "", installed)


def is_within(version: str, bounds: str) -> bool:
    """Return whether a version such as `4.0.1` is in `>=4.0,<5`, without a suffix of letters."""
    number = _numbers(version)
    tests = {">=": lambda bound: number >= bound, "<": lambda bound: number < bound}
    return all(tests[sign](_numbers(bound)) for sign, bound in _BOUND.findall(bounds))


def _numbers(version: str) -> list[int]:
    """Return the numbers of a version up to its first letter, at least four."""
    digits = re.split(r"[^\d.]", version)[0]
    numbers = [int(part) for part in digits.split(".") if part]
    return numbers + [0] * (4 - len(numbers))


def _installation_problems(distribution: str) -> list[str]:
    """Return problems of this package itself: not installed, or mixed with one of its name."""
    problems = []
    if not installed_version(distribution):
        problems.append(
            f"{distribution} is not installed, though its sources are imported: run `pip install "
            "-e .` in the clone"
        )
    other = installed_version(_NAMESAKE)
    if other:
        problems.append(
            f"{_NAMESAKE} {other}, another project with an import package of the same name, is "
            f"installed: run `pip uninstall {_NAMESAKE}`, and then `pip install --force-reinstall "
            f"--no-deps {distribution}`"
        )
    elif find_spec("manyworlds.__main__") is None:
        problems.append(
            f"files of {distribution} are gone, as after the removal of {_NAMESAKE}, another "
            f"project: run `pip install --force-reinstall --no-deps {distribution}`"
        )
    return problems
