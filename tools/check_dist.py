"""Check of the built sdist and wheel: metadata, contents, size, and use in fresh environments.

Run from the project's root, after `python -m build`:

    python tools/check_dist.py                       # metadata, contents and size
    python tools/check_dist.py --install all         # try the core and each extra
    python tools/check_dist.py --install core,train
"""

from __future__ import annotations

import argparse
import email.parser
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import tomllib
import venv
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

MAX_BYTES = 2_000_000
"""Size below which the sdist and the wheel must be [bytes]."""
CORE = "core"
"""Word for an installation without extras."""
_MEDIA = {".gif", ".jpg", ".jpeg", ".png", ".mp4", ".webm", ".pt", ".onnx", ".npz", ".jsonl"}
_UNINSTALLED = ("dev", "docs")
_INSTALL_S, _TRY_S = 1800, 600
_RELATIVE_LINK = re.compile(r"\]\((?!https?://|#)([^)\s]+)\)")

TRIALS = {
    CORE: """
        import mujoco, torch, manyworlds
        from manyworlds.cli.main import main
        from manyworlds.sim import Simulation
        model = mujoco.MjModel.from_xml_string(
            "<mujoco><worldbody><body><joint axis='0 1 0'/><geom size='.1' pos='.3 0 0'/></body>"
            "</worldbody></mujoco>")
        sim = Simulation(3, model=model)
        sim.data.qpos[1] = 1.0
        sim.step(10)
        assert sim.data.time[2] > 0 and sim.data.qpos[0] > 0 and sim.data.qpos[1] > 1
        assert main(["--version"]) == 0 and main(["list"]) == 0 and main(["doctor"]) == 0
        assert manyworlds.__version__ == VERSION, manyworlds.__version__
        """,
    "train": """
        from pathlib import Path
        from manyworlds.cli.main import main
        assert main(["train", "Cartpole-Balance", "--agent.max-iterations", "2",
                     "--env.scene.num-envs", "16"]) == 0
        (policy,) = Path("runs").rglob("policy.onnx")
        assert main(["evaluate", "Cartpole-Balance", "--env.scene.num-envs", "4"]) == 0
        """,
    "meshes": """
        import trimesh
        from manyworlds.entity import PropCfg
        trimesh.creation.annulus(0.1, 0.2, 0.1).export("ring.stl")
        model = PropCfg.from_mesh("ring.stl").build().spec.compile()
        assert model.ngeom > 3, model.ngeom
        """,
    "lab": """
        import threading, time, urllib.request
        from manyworlds.cli.main import main
        pages = []
        def look():
            for _ in range(200):
                time.sleep(0.1)
                try:
                    pages.append(urllib.request.urlopen("http://127.0.0.1:18080", timeout=5).read())
                    return
                except OSError:
                    pass
        reader = threading.Thread(target=look)
        reader.start()
        assert main(["lab", "bowl-and-ball", "--port", "18080", "--start", "now",
                     "--seconds", "8"]) == 0
        reader.join()
        assert b"<html" in pages[0].lower()
        """,
    "net": """
        import subprocess, sys, time
        from manyworlds.lab.client.client import connect
        lab = subprocess.Popen([sys.executable, "-m", "manyworlds", "lab", "bowl-and-ball",
                                "--headless", "--serve", "--port-shift", "12000"])
        try:
            with connect("17559", patience=60.0) as client:
                time.sleep(1.0)
                assert client.snapshot.time > 0.0 and client.model.nbody > 1
        finally:
            lab.terminate()
            assert lab.wait(20) == 0
        """,
    "gpu": """
        import mujoco
        from manyworlds.sim import Simulation, SimulationCfg
        model = mujoco.MjModel.from_xml_string(
            "<mujoco><worldbody><body><joint axis='0 1 0'/><geom size='.1' pos='.3 0 0'/></body>"
            "</worldbody></mujoco>")
        sim = Simulation(2, SimulationCfg(engine="warp"), model, "cpu")
        sim.step(2)
        assert sim.engine == "warp" and sim.data.qpos[1] > 0
        """,
    "ros": """
        from pathlib import Path
        from manyworlds.plugins.ros2.sinks import McapSink
        sink = McapSink(Path("messages.mcap"))
        sink.close()
        assert Path("messages.mcap").read_bytes().startswith(b"\\x89MCAP")
        """,
    "video": """
        from pathlib import Path
        import numpy as np
        from manyworlds.viewer.video import write_video
        film = write_video(Path("film"), [np.full((64, 64, 3), i, np.uint8) for i in range(9)], 9)
        assert film.suffix == ".mp4" and film.stat().st_size > 0
        """,
    "data": """
        from pathlib import Path
        import pyarrow.dataset as dataset
        from manyworlds.envs import ManagerBasedRlEnv
        from manyworlds.envs.mdp import record_dataset
        from manyworlds.managers import RecorderTermCfg
        from manyworlds.tasks import load_env_cfg
        import torch
        cfg = load_env_cfg("Cartpole-Swingup")
        cfg.scene.num_envs, cfg.episode_length_s = 2, 0.2
        cfg.recorders["dataset"] = RecorderTermCfg(
            func=record_dataset, params={"folder": Path("episodes"), "task": "swing up"})
        env = ManagerBasedRlEnv(cfg)
        env.reset()
        for _ in range(env.max_episode_length):
            env.step(torch.zeros(2, 1))
        env.close()
        rows = dataset.dataset("episodes/data", format="parquet").to_table()
        assert rows.num_rows == 2 * env.max_episode_length, rows.num_rows
        """,
    "robots": """
        from manyworlds.lab.scene.sources import menagerie_names
        import robot_descriptions
        assert "unitree_go2" in menagerie_names()
        """,
    "share": """
        from pathlib import Path
        from manyworlds.cli.main import main
        assert main(["share", "Reach", "--output", "page"]) == 0
        assert Path("page/index.html").is_file() and Path("page/world.json").is_file()
        """,
    "wandb": """
        import wandb
        from manyworlds.utils.wandb import add_wandb_tags
        with wandb.init(mode="offline", project="manyworlds", dir="."):
            add_wandb_tags(["tried"])
            assert wandb.run.tags == ("tried",)
        """,
}
"""Program that tries an installation with an extra, in an empty folder."""


def main(argv: list[str] | None = None) -> int:
    """Check the distributions in `dist`; print each problem."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--dist", type=Path, default=Path("dist"), help="folder of the sdist and the wheel"
    )
    parser.add_argument("--install", default="", metavar="EXTRAS", help="extras to try, or all")
    options = parser.parse_args(argv)
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    sdist, wheel = find_dists(options.dist, project["version"])
    if options.install:
        known = [CORE, *(e for e in project["optional-dependencies"] if e not in _UNINSTALLED)]
        problems = try_extras(wheel, parse_extras(options.install, known), project["version"])
    else:
        problems = [
            *check_metadata(sdist, wheel),
            *check_wheel(wheel, project),
            *check_sdist(sdist),
        ]
    print("\n".join(problems) or f"{sdist.name} and {wheel.name}: nothing is wrong")
    return int(bool(problems))


def find_dists(folder: Path, version: str) -> tuple[Path, Path]:
    """Return the sdist and the wheel of a version.

    Raises:
        SystemExit: one of them is missing, or there are others.
    """
    stem = f"manyworlds_rl-{version}"
    wanted = {f"{stem}.tar.gz", f"{stem}-py3-none-any.whl"}
    found = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if found != wanted:
        raise SystemExit(
            f"'{folder}' has {sorted(found)}, wanted {sorted(wanted)}: run `make dist`."
        )
    return folder / f"{stem}.tar.gz", folder / f"{stem}-py3-none-any.whl"


def parse_extras(text: str, known: list[str]) -> list[str]:
    """Return the extras that a text names.

    Raises:
        SystemExit: an extra is unknown.
    """
    names = known if text == "all" else text.split(",")
    if unknown := set(names) - set(known):
        raise SystemExit(
            f"There is no extra {sorted(unknown)}: choose from all, {', '.join(known)}."
        )
    return names


def check_metadata(*paths: Path) -> Iterator[str]:
    """Yield what PyPI would refuse, or could not show."""
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        yield f"twine: {' '.join((done.stdout + done.stderr).split())}"


def check_wheel(path: Path, project: dict[str, str]) -> Iterator[str]:
    """Yield problems of the wheel's contents."""
    with zipfile.ZipFile(path) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
        info = f"manyworlds_rl-{project['version']}.dist-info"
        metadata = email.parser.Parser().parsestr(archive.read(f"{info}/METADATA").decode())
        scripts = archive.read(f"{info}/entry_points.txt").decode()
    yield from _check_common(path, names)
    package = {name for name in names if name.startswith("manyworlds/")}
    sources = {p.relative_to("src").as_posix() for p in _source_files()}
    for name in sorted(sources - package):
        yield f"{path.name}: {name} is missing: name it in tool.setuptools.package-data"
    for name in sorted(package - sources):
        yield f"{path.name}: {name} is no source of the package: delete build/ and build again"
    for name in sorted(names - package):
        if not name.startswith(f"{info}/"):
            yield f"{path.name}: {name} is outside of the package"
    if (metadata["Name"], metadata["Version"]) != (project["name"], project["version"]):
        yield f"{path.name}: is {metadata['Name']} {metadata['Version']}"
    for link in _RELATIVE_LINK.findall(str(metadata.get_payload())):
        yield f"{path.name}: the description's link {link} leads nowhere on PyPI: see setup.py"
    if f"{info}/licenses/LICENSE" not in names:
        yield f"{path.name}: has no LICENSE"
    if "manyworlds = manyworlds.cli.main:main" not in scripts:
        yield f"{path.name}: has no command `manyworlds`"


def check_sdist(path: Path) -> Iterator[str]:
    """Yield problems of the sdist's contents."""
    with tarfile.open(path) as archive:
        names = {m.name.partition("/")[2] for m in archive.getmembers() if m.isfile()}
    yield from _check_common(path, names)
    wanted = {p.as_posix() for p in _source_files()}
    for name in sorted({*wanted, "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"} - names):
        yield f"{path.name}: {name} is missing"


def _check_common(path: Path, names: Iterable[str]) -> Iterator[str]:
    """Yield problems that both kinds of distributions may have."""
    if (size := path.stat().st_size) >= MAX_BYTES:
        yield f"{path.name}: has {size:,} bytes, at most {MAX_BYTES:,}"
    for name in sorted(names):
        parts = Path(name).parts
        if "tests" in parts or "docs" in parts or Path(name).suffix.lower() in _MEDIA:
            yield f"{path.name}: {name} belongs to the repository alone"


def _source_files() -> list[Path]:
    """Return the files of the package in the clone."""
    files = [p for p in Path("src/manyworlds").rglob("*") if p.is_file()]
    return [p for p in files if p.suffix not in (".pyc", ".pyo")]


def try_extras(wheel: Path, extras: list[str], version: str) -> list[str]:
    """Return what fails where the wheel is installed with an extra in a fresh environment."""
    problems = []
    for extra in extras:
        print(f"{extra}: installing ...", flush=True)
        with tempfile.TemporaryDirectory(prefix="manyworlds-dist-") as folder:
            problem = _try_extra(wheel.resolve(), extra, version, Path(folder))
        print(f"{extra}: {'FAILED' if problem else 'works'}", flush=True)
        if problem:
            problems.append(f"{extra}: {problem}")
    return problems


def _try_extra(wheel: Path, extra: str, version: str, folder: Path) -> str:
    """Return the end of the output of what fails; empty if all works."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    target = str(wheel) if extra == CORE else f"{wheel}[{extra}]"
    work = folder / "empty"
    work.mkdir()
    # Nothing of the clone may be found.
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    program = f"VERSION = {version!r}\n{textwrap.dedent(TRIALS[extra])}"
    for command, limit in (
        ([str(python), "-m", "pip", "install", "--quiet", target], _INSTALL_S),
        ([str(python), "-c", program], _TRY_S),
    ):
        done = subprocess.run(
            command, cwd=work, env=kept, capture_output=True, text=True, timeout=limit
        )
        if done.returncode:
            return "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
    return ""


if __name__ == "__main__":
    sys.exit(main())
