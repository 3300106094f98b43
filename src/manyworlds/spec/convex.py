"""Approximately convex pieces of meshes, which collide where a mesh is concave."""

from __future__ import annotations

import io
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from manyworlds.spec.meshes import Triangles
from manyworlds.utils.cache import ArrayCache, content_key, read_arrays
from manyworlds.utils.extras import check_extra, installed_version
from manyworlds.utils.terminal import new_console, new_progress
from manyworlds.validation.checks import check_count

THRESHOLDS = (0.01, 1.0)
"""Lowest and highest threshold of a decomposition."""
Progress = Callable[[float], object]
"""Called several times a second with an estimate of the share of a work that is done; an exception
that it raises ends the work."""
_POLL_S = 0.2
_CACHE = ArrayCache("convex_pieces")
_MESSAGE = re.compile(r"iter (\d+)|Processing \[([\d.]+)%\]")


@dataclass(kw_only=True)
class CoacdCfg:
    """Settings of the decomposition by CoACD (Wei et al., 2022, arXiv:2205.02961)."""

    threshold: float = 0.05
    """Concavity above which a piece is divided further, as a share of the mesh's size, in
    [0.01, 1]; lower values give more pieces."""
    max_pieces: int | None = None
    """Largest number of pieces; the most similar ones are merged. None for no limit."""
    seed: int = 0
    """Random seed of the search for cuts."""
    is_solid: bool = False
    """True for a mesh that is known to be closed and free of self-intersections, such as an
    extrusion: CoACD then takes it as it is. Otherwise it first repairs meshes that need it."""

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Check the settings.

        Raises:
            ValueError: a setting is out of bounds.
        """
        low, high = THRESHOLDS
        if not low <= self.threshold <= high:
            raise ValueError(
                f"CoacdCfg.threshold must be in [{low}, {high}], got {self.threshold}: lower "
                "values give more pieces."
            )
        if self.max_pieces is not None:
            check_count("CoacdCfg.max_pieces", self.max_pieces, 1)
        check_count("CoacdCfg.seed", self.seed, 0)

    def arguments(self) -> dict[str, float | int | str]:
        """Return the arguments of `coacd.run_coacd`."""
        arguments: dict[str, float | int | str] = {
            "threshold": float(self.threshold),
            "max_convex_hull": -1,  # any number
            "preprocess_mode": "auto",
            "seed": int(self.seed),
        }
        if self.max_pieces is not None:
            arguments["max_convex_hull"] = int(self.max_pieces)
        if self.is_solid:
            arguments["preprocess_mode"] = "off"
        return arguments


def convex_pieces(
    vertices: np.ndarray,
    faces: np.ndarray,
    cfg: CoacdCfg,
    on_progress: Progress | None = None,
) -> list[Triangles]:
    """Decompose a mesh into approximately convex pieces.

    CoACD takes seconds to minutes, so that results are kept in the user's cache folder by the
    content of the mesh and the settings. It runs in a process of its own: an interrupt ends it.

    Args:
        vertices: vertices of the mesh, shape [num_vertices, 3].
        faces: counterclockwise triangles, shape [num_faces, 3].
        cfg: settings.
        on_progress: see `Progress`; None shows a progress bar if there is a terminal.

    Raises:
        MissingExtraError: the extra 'meshes' is not installed, and the result is not in the cache.
        ValueError: a setting is out of bounds, or CoACD fails with this mesh.
    """
    cfg.check()
    settings = installed_version("coacd"), sorted(cfg.arguments().items())
    key = content_key(settings, vertices.astype(np.float64), faces.astype(np.int32))
    arrays = _CACHE.read(key)
    if not arrays:
        arrays = _decompose(vertices, faces, cfg, on_progress)
        _CACHE.keep(key, arrays)
    return list(zip(*[iter(arrays)] * 2, strict=True))


def _decompose(
    vertices: np.ndarray, faces: np.ndarray, cfg: CoacdCfg, on_progress: Progress | None
) -> list[np.ndarray]:
    """Return the vertices and triangles of one piece after the other."""
    check_extra("coacd", "meshes")
    with tempfile.TemporaryDirectory(prefix="manyworlds-") as folder:
        source = Path(folder, "mesh.npz")
        target = Path(folder, "pieces.npz")
        np.savez(source, vertices=vertices, faces=faces, settings=json.dumps(cfg.arguments()))
        if on_progress is None:
            _with_bar(lambda report: _run(source, target, report))
        else:
            _run(source, target, on_progress)
        arrays = read_arrays(target)
    if not arrays:
        raise ValueError("CoACD found no convex pieces of this mesh: repair it first.")
    return arrays


def _run(source: Path, target: Path, on_progress: Progress) -> None:
    """Run CoACD in a process of its own, which ends with this call."""
    paths = [path or os.getcwd() for path in sys.path]
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "manyworlds.spec.coacd_program", str(source), str(target)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        start_new_session=True,  # an interrupt at the terminal reaches the caller alone
    ) as process:
        try:
            last = _follow(process, on_progress)
            code = process.wait()
        except BaseException:
            process.kill()
            raise
    if code:
        raise ValueError(f"CoACD fails with this mesh, so repair it first: {last}")


def _follow(process: subprocess.Popen[bytes], on_progress: Progress) -> str:
    """Report the progress of CoACD by its messages until it ends; return the last one."""
    level = 0
    share = 0.0
    last = ""
    said: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    # A thread, because Windows cannot wait for a pipe for a time.
    pipe = cast(io.BufferedReader, process.stdout)
    threading.Thread(target=_read, args=(pipe, said), daemon=True).start()
    while True:
        on_progress(share)
        try:
            text = said.get(timeout=_POLL_S).decode(errors="replace")
        except queue.Empty:
            continue
        if not text:
            return last
        last = text.strip().rpartition("\n")[2] or last
        for rounds, percent in _MESSAGE.findall(text):
            if rounds:
                level = int(rounds)
            # Each round divides pieces in two; the number of rounds is not known before.
            share = max(share, 1.0 - 0.5 ** (level + float(percent or 0.0) / 100.0))


def _read(pipe: io.BufferedReader, said: queue.SimpleQueue[bytes]) -> None:
    """Pass on what comes from a pipe, and b"" at its end."""
    text = b"-"
    while text:
        try:
            text = pipe.read1(65536)
        except ValueError:  # closed by an error of the caller
            text = b""
        said.put(text)


def _with_bar(work: Callable[[Progress], None]) -> None:
    """Do a work that reports its progress; show it if there is a terminal."""
    with new_progress(new_console(stderr=True)) as bar:
        task = bar.add_task("Convex pieces", total=1.0)
        work(lambda share: bar.update(task, completed=share))
