"""What the page computes is what plain playback computes, in Chromium."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from manyworlds.rl.run_folder import RunFolder
from manyworlds.share import PageCard, write_folder
from manyworlds.share.sources import run_page
from manyworlds.share.vendor import MUJOCO
from manyworlds.tasks import load_env_cfg
from manyworlds.utils.platforms import cache_folder, replace_path
from tests.share.folders import read_json, world_model
from tests.share.shown import serve
from tests.share.test_control_graph import COMMANDS, exported_task

pytestmark = pytest.mark.slow

STEPS = 200
TASKS = {
    "Velocity-Flat-Quadruped": (),
    "Velocity-Rough-Quadruped": (),
    "Velocity-Flat-Humanoid": (),
    "Lift-Cube-Arm": (),
    "Push-Variants": ("bar", "star"),
    "Cartpole-Balance": (),
}
"""Tasks, and the variants that are shown."""
WORLDS = [f"{task} {name}".strip() for task, names in TASKS.items() for name in names or ("",)]
# The humanoid's random policy falls. Lying, it rattles chaotically under some commands: last bits
# grow to millimeters within 2 s, in Python between two starts that are 1e-14 apart, too. Under
# this one it comes to rest.
OWN_COMMANDS = {"Velocity-Flat-Humanoid": {"twist": (0.5, 0.0, 0.0)}}


class Shared(NamedTuple):
    """A share folder with one policy in each world."""

    folder: Path
    policies: list[Path]


@pytest.fixture(scope="module")
def mujoco_of_page() -> Path:
    """A folder with Python's MuJoCo in the version of the page; skip where pip cannot get it."""
    folder = cache_folder() / f"mujoco-{MUJOCO.version}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            wanted = f"mujoco=={MUJOCO.version}"
            pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--target", scratch, wanted]
            done = subprocess.run(pip, capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"needs Python's {wanted}, which pip cannot install: {done.stderr}")
            new = Path(scratch, "new")
            new.mkdir()
            for path in Path(scratch).iterdir():
                if path != new:
                    path.rename(new / path.name)
            replace_path(new, folder)
    return folder


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, vendored: Path) -> Shared:
    """One share folder with the worlds of all tasks, and policies of random weights."""
    policies = []
    files = []
    for task, variants in TASKS.items():
        run = tmp_path_factory.mktemp(task)
        exported_task(task, run)
        cfg = load_env_cfg(task, play=True)
        for policy in run_page(RunFolder(run), run / "policy.onnx", cfg, task, variants):
            policies.append(policy)
            files.append(run / "policy.onnx")
    folder = tmp_path_factory.mktemp("shared") / "page"
    card = PageCard(title="All tasks", command="manyworlds share")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("manyworlds.share.folder.vendor_files", dict)
        write_folder(folder, [policy.world for policy in policies], policies, card)
    (folder / "vendor").symlink_to(vendored)
    return Shared(folder, files)


@pytest.fixture(scope="module")
def expected(
    shared: Shared, mujoco_of_page: Path, tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    """States of plain playback in each world, on the MuJoCo of the page."""
    jobs = []
    for world, policy in enumerate(shared.policies):
        scratch = tmp_path_factory.mktemp("world")
        world_model(shared.folder, world, scratch)
        job = {"policy": str(policy), "model": str(scratch / "scene.xml"), "steps": STEPS}
        jobs.append({**job, "commands": commands_in(shared, world)})
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(mujoco_of_page), str(root), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "tests.share.plain_playback"],
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    played = json.loads(done.stdout)
    assert played["version"] == MUJOCO.version
    return played["states"]


@pytest.fixture(scope="module")
def page(chromium: Any, shared: Shared) -> Iterator[Any]:
    """The page of the folder."""
    page = chromium.new_page(viewport={"width": 240, "height": 160})
    page.set_default_timeout(120_000)
    with serve(shared.folder) as address:
        page.goto(address + "?embed")
        page.evaluate("manyworlds.ready")
        yield page


def commands_in(shared: Shared, world: int) -> dict[str, tuple[float, ...]]:
    """Commands of the policy in a world, with values that move its robot."""
    policy = read_json(shared.folder)["policies"][world]
    names = [item["command"] for item in policy["inputs"] if item["kind"] == "command"]
    return {name: OWN_COMMANDS.get(policy["name"], COMMANDS)[name] for name in names}


@pytest.mark.parametrize("world", range(len(WORLDS)), ids=WORLDS)
def test_a_page_moves_as_plain_playback(page, shared, expected, world):
    """Run control periods in the browser: the state is that of Python, with the same commands."""
    page.evaluate("manyworlds.pause()")
    page.evaluate(f"manyworlds.choose({{world: {world}}})")
    for name, values in commands_in(shared, world).items():
        page.evaluate("([name, values]) => manyworlds.setCommand(name, values)", [name, values])
    page.evaluate("manyworlds.reset()")
    found = page.evaluate(f"manyworlds.stepControl({STEPS})")
    plain = expected[world]
    np.testing.assert_allclose(found["qpos"], plain["qpos"], rtol=0, atol=1e-6)
    np.testing.assert_allclose(found["qvel"], plain["qvel"], rtol=0, atol=1e-6)
    assert np.abs(np.subtract(plain["qpos"], plain["start"])).max() > 0.02
