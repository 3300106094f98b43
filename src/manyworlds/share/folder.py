"""The folder that a browser runs: page, programs of others, worlds, policies, `world.json`."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

import mujoco
import numpy as np

from manyworlds.rl.onnx_policy import OnnxPolicy
from manyworlds.share.control_graph import ControlGraph, GraphInterface
from manyworlds.share.scene_files import SCENE, compressed
from manyworlds.share.task_facts import CommandFacts, WorldFacts
from manyworlds.share.vendor import MUJOCO, licenses_text, vendor_files
from manyworlds.utils.files import check_writable
from manyworlds.validation.names import free_name

VERSION = 1
"""Version of `world.json`."""
LIMIT_MB = 40
"""Size of a folder above which the writer warns [MB]."""
_DIFFERENCES = {
    "4.0.0": "In tests over 200 control steps, joint positions parted by less than 1e-12 in most "
    "tasks, by 0.02 in Push-Variants, whose meshes have other contacts, and by 0.01 once a fallen "
    "humanoid rattled on the ground, where the last bits of numbers grow."
}
"""What was measured between MuJoCo's release in training and that of the page."""
_OURS = {
    "index.html",
    "page",
    "vendor",
    "worlds",
    "policies",
    "world.json",
    "LICENSES",
    "README.md",
}


@dataclass
class RecordedMotion:
    """Poses of a world at equal times."""

    rows: np.ndarray
    """qpos and qvel, shape [n, nq + nv]."""
    period: float
    """Time between two rows [s]."""


@dataclass
class PageWorld:
    """A world that the page shows."""

    name: str
    files: dict[str, bytes]
    """`scene.xml` and assets by path."""
    model: mujoco.MjModel
    """Compiled from the files."""
    keyframe: str | None
    facts: WorldFacts = field(default_factory=WorldFacts)
    motion: RecordedMotion | None = None
    """Motion that the page plays at first; None lets physics run."""


@dataclass
class PagePolicy:
    """A policy in the world that it controls."""

    name: str
    world: PageWorld
    graph: bytes
    """Its control graph as an ONNX file."""
    interface: GraphInterface
    timestep: float
    """Timestep of the physics [s]."""
    decimation: int
    commands: list[CommandFacts] = field(default_factory=list)
    """Commands whose bounds are known."""

    @classmethod
    def of(
        cls,
        name: str,
        world: PageWorld,
        path: Path,
        commands: Sequence[CommandFacts] = (),
        prefix: str | None = None,
    ) -> PagePolicy:
        """Read a policy's file.

        Args:
            name: name of the policy on the page.
            world: its world.
            path: its ONNX file.
            commands: commands whose bounds are known.
            prefix: see `OnnxPolicy`.

        Raises:
            ValueError: a term of the policy has no form in ONNX, or the world lacks an element.
            NeedsEnvironmentError: plain MuJoCo cannot run the policy.
        """
        policy = OnnxPolicy(path, world.model, double=True, prefix=prefix)
        graph = ControlGraph(policy)
        interface = graph.add()
        return cls(
            name=name,
            world=world,
            graph=graph.finished().SerializeToString(),
            interface=interface,
            timestep=policy.timestep,
            decimation=policy.description["decimation"],
            commands=list(commands),
        )


@dataclass(kw_only=True)
class PageCard:
    """Facts about what is shown, for its card."""

    title: str
    command: str
    """Command line that writes the folder again."""
    task: str | None = None
    trained: str | None = None
    iterations: int | None = None
    evaluation: dict[str, object] | None = None
    trained_with: str = ""
    """Version of MuJoCo in training; empty for that of this machine."""


def write_folder(
    output: Path,
    worlds: Sequence[PageWorld],
    policies: Sequence[PagePolicy],
    card: PageCard,
    *,
    embed: bool = False,
) -> Path:
    """Write the folder completely, or not at all; an earlier one is replaced.

    Args:
        output: the folder.
        worlds: worlds, at least one; those with equal files are written once.
        policies: policies in these worlds.
        card: facts to show.
        embed: whether the page begins without panels, as an `<iframe>` shows it.

    Raises:
        FileExistsError: the folder contains files that are not of an earlier page.
        FileNotFoundError, ConnectionError: see `vendor_files`.
    """
    output = Path(output)
    check_replaceable(output)
    check_writable(output)
    files = _content(worlds, policies, card, embed)
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=f".{output.name}.") as aside:
        new = Path(aside, "new")
        for name, content in files.items():
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            (new / name).write_bytes(content)
        if output.exists():
            output.rename(Path(aside, "old"))
        new.rename(output)
    return output


def check_replaceable(output: Path) -> None:
    """Raise an error if a folder has other files than those of an earlier page.

    Raises:
        FileExistsError: it has.
    """
    if not output.exists():
        return
    found = {"a file"}
    if output.is_dir():
        found = {path.name for path in output.iterdir()}
    if found and ("world.json" not in found or found - _OURS):
        raise FileExistsError(
            f"'{output}' is not an earlier page, it contains {', '.join(sorted(found)[:5])}: "
            "choose a new or empty folder."
        )


def folder_size(output: Path) -> float:
    """Return the size of all files of a folder [MB]."""
    return sum(path.stat().st_size for path in output.rglob("*") if path.is_file()) / 1e6


def _content(
    worlds: Sequence[PageWorld], policies: Sequence[PagePolicy], card: PageCard, embed: bool
) -> dict[str, bytes]:
    """Return all files by path."""
    files: dict[str, bytes] = {}
    described_worlds: list[dict[str, object]] = []
    index: dict[int, int] = {}
    by_content: dict[str, int] = {}
    folders: list[str] = []
    for world in worlds:
        digest = _digest(world.files)
        if digest not in by_content:
            by_content[digest] = len(described_worlds)
            folders.append(_file_name(world.name, folders))
            described_worlds.append(_add_world(world, f"worlds/{folders[-1]}", files))
        index[id(world)] = by_content[digest]
    described_policies, commands = _add_policies(policies, index, files)
    versions = {
        "trained_with": card.trained_with or mujoco.mj_versionString(),
        "wasm": MUJOCO.version,
    }
    versions["difference"] = _DIFFERENCES.get(versions["trained_with"], "")
    first: Mapping[str, object] = described_worlds[0]
    about = {
        "version": VERSION,
        "title": card.title,
        "task": card.task,
        "card": {
            "task": card.task,
            "trained": card.trained,
            "iterations": card.iterations,
            "evaluation": card.evaluation,
            "command": card.command,
        },
        "mujoco": versions,
        "worlds": described_worlds,
        "policies": described_policies,
        "commands": commands,
        "randomization": [],
        "terminations": [],
        "reset": {"keyframe": first["keyframe"], **worlds[0].facts.get("reset", {"ranges": []})},
        "camera": first["camera"],
    }
    files["world.json"] = json.dumps(about, indent=1).encode()
    files |= _page_files(embed)
    files |= {f"vendor/{name}": content for name, content in vendor_files().items()}
    files["LICENSES"] = licenses_text().encode()
    files["README.md"] = _readme(card).encode()
    return files


def _add_world(world: PageWorld, folder: str, files: dict[str, bytes]) -> dict[str, object]:
    """Add the files of a world; return its entry in `world.json`."""
    own = compressed(world.files)
    files |= {f"{folder}/{name}": content for name, content in own.items()}
    recording: dict[str, object] = {}
    if world.motion is not None:
        path = f"{folder}/recording.f32.gz"
        rows = world.motion.rows.astype("<f4")
        files[path] = gzip.compress(rows.tobytes(), mtime=0)
        about = {"file": path, "period": world.motion.period, "columns": rows.shape[1]}
        recording["recording"] = about
    return {
        **recording,
        "name": world.name,
        "model": f"{folder}/{SCENE}",
        "files": [name for name in own if name != SCENE],
        "keyframe": world.keyframe,
        "camera": world.facts.get("camera") or _default_camera(world.model),
        "randomization": world.facts.get("randomization", []),
        "terminations": world.facts.get("terminations", []),
        "reset": world.facts.get("reset", {"ranges": []}),
    }


def _add_policies(
    policies: Sequence[PagePolicy], index: Mapping[int, int], files: dict[str, bytes]
) -> tuple[list[dict[str, object]], list[CommandFacts]]:
    """Add the control graphs of policies; return their entries and their commands."""
    entries: list[dict[str, object]] = []
    commands: dict[str, CommandFacts] = {}
    names: dict[bytes, str] = {}
    for shared in policies:
        if shared.graph not in names:
            taken = [Path(name).stem for name in names.values()]
            names[shared.graph] = f"policies/{_file_name(shared.name, taken)}.onnx"
        files[names[shared.graph]] = shared.graph
        entries.append(
            {
                "name": shared.name,
                "file": names[shared.graph],
                "world": index[id(shared.world)],
                "timestep": shared.timestep,
                "decimation": shared.decimation,
                **shared.interface,
            }
        )
        known = {facts["name"]: facts for facts in shared.commands}
        for item in shared.interface["inputs"]:
            if item["kind"] == "command" and "command" in item and "size" in item:
                name = item["command"]
                commands.setdefault(name, known.get(name) or _any_command(name, item["size"]))
    return entries, list(commands.values())


def _any_command(name: str, size: int) -> CommandFacts:
    """Describe a command whose bounds are not known."""
    return {
        "name": name,
        "labels": [str(i) for i in range(size)],
        "low": [-1.0] * size,
        "high": [1.0] * size,
        "start": [0.0] * size,
        "keys": None,
        "kind": "numbers",
    }


def _default_camera(model: mujoco.MjModel) -> dict[str, object]:
    return {
        "lookat": model.stat.center.tolist(),
        "distance": 2.0 * float(model.stat.extent),
        "azimuth": 120.0,
        "elevation": -20.0,
        "track_body": None,
    }


def _page_files(embed: bool) -> dict[str, bytes]:
    """Return `index.html` and the files of `page/`."""
    files = {}
    for entry in resources.files("manyworlds.share").joinpath("page").iterdir():
        if entry.name.endswith((".js", ".css")):
            files[f"page/{entry.name}"] = entry.read_bytes()
        if entry.name == "index.html":
            text = entry.read_text(encoding="utf-8")
            if embed:
                text = text.replace('<html lang="en">', '<html lang="en" class="embed">')
            files["index.html"] = text.encode()
    return files


def _readme(card: PageCard) -> str:
    return f"""# {card.title}

A page of manyworlds, which simulates in the browser. Any static web server shows it:

    python -m http.server

`LICENSES` names the programs of others in `vendor`. This command wrote the folder:

    {card.command}

In another page, with few controls:

    <iframe src="ADDRESS/?embed" width="640" height="480" title="{card.title}"></iframe>
"""


def _digest(files: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name} {len(content)} ".encode())
        digest.update(content)
    return digest.hexdigest()


def _file_name(name: str, taken: Sequence[str]) -> str:
    return free_name(re.sub(r"[^\w.-]+", "_", name).strip("_.") or "world", taken)
