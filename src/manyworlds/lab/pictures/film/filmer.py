"""Films of a lab, drawn in a process of their own while the world keeps running."""

from __future__ import annotations

import copy
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import mujoco
import numpy as np

from manyworlds.lab.moments.recording import LIVE, Recording, state_index
from manyworlds.lab.pictures.camera import MAX_FOVY, MAX_PIXELS, MIN_FOVY
from manyworlds.lab.pictures.film.camera_path import CameraPath
from manyworlds.lab.pictures.film.program import BESIDE, STATES
from manyworlds.lab.pictures.film.shots import make_shot
from manyworlds.lab.world.model_facts import STATE
from manyworlds.viewer.video import Format, check_format

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

SOURCES = ("last", "next", "now")
"""Sources of films besides recordings: the last seconds, the next ones, the present state."""
PATH_SUFFIX = ".camera.json"
"""End of the names of files of camera paths."""
_NAME = re.compile(r"\w[\w .-]{0,99}")
_MOST_FRAMES = 20_000
_LOOK_S = 0.05  # period of looks at the world while a film waits for the next seconds
_END_S = 5.0


@dataclass(kw_only=True)
class Film:
    """Film and its progress."""

    name: str
    """Name of the file without its suffix."""
    source: str
    seconds: float
    fps: float
    begun: float = 0.0
    """Time on the timeline at which the film was asked for [s]."""
    state: str = "waiting"
    """`waiting` for the next seconds, `drawing`, `done`, `failed`, or `canceled`."""
    drawn: int = 0
    """Number of frames drawn so far."""
    frames: int = 0
    """Number of frames of the whole film."""
    path: str = ""
    """Path of the file; empty until it is complete."""
    note: str = ""
    """Sentence about what the film lacks; empty if it is as long as asked for."""
    error: str = ""
    _begun: float = field(default=math.inf, repr=False)
    _first: float = field(default=math.inf, repr=False)

    @property
    def is_running(self) -> bool:
        """True until the film is done, failed or canceled."""
        return self.state in ("waiting", "drawing")

    def note_drawn(self, drawn: int, now: float) -> None:
        """Note the progress of the drawing.

        Args:
            drawn: number of frames drawn so far.
            now: real time [s].
        """
        self.drawn = drawn
        self._begun = min(self._begun, now)
        if drawn:
            self._first = min(self._first, now)

    def describe(self, now: float | None = None) -> dict[str, object]:
        """Return all as plain data, and how long the drawing takes.

        Args:
            now: real time [s]; None is the present.

        Returns:
            The fields; `elapsed`, the real time since the drawing began [s], 0 unless it is being
            drawn; and `left`, an estimate of the time until it is done [s], None before the second
            frame.
        """
        elapsed, left = 0.0, None
        if self.state == "drawing":
            now = time.monotonic() if now is None else now
            elapsed = now - self._begun
            if self.drawn > 1:
                left = (now - self._first) / (self.drawn - 1) * (self.frames - self.drawn)
        plain = {name: value for name, value in asdict(self).items() if name[0] != "_"}
        return plain | {"elapsed": elapsed, "left": left}


class Filmer:
    """Makes films of a lab, one at a time.

    The states come from the lab's timeline or from a recording. They are drawn off screen in a
    process of its own with a lower priority, so that the world does not wait.

    Args:
        lab: the lab.
    """

    def __init__(self, lab: LiveLab) -> None:
        # A cycle of references would keep the lab's shared memory until it is collected.
        self._lab = cast("LiveLab", weakref.proxy(lab))
        self.film: Film | None = None
        """The newest film; None before the first one."""
        self.path = CameraPath()
        """Path of the camera, for shots of the kind `path` without one of their own."""
        self._process: subprocess.Popen[str] | None = None
        self._thread: threading.Thread | None = None
        self._cancel = threading.Event()
        self._lock = threading.Lock()

    def start(
        self,
        source: str = "last",
        seconds: float | None = None,
        *,
        shot: Mapping[str, object] | None = None,
        fps: float = 30.0,
        width: int = 640,
        height: int = 480,
        fovy: float = 45.0,
        format: Format = "",
        name: str = "",
    ) -> Film:
        """Start a film; its file appears in the folder of the recordings.

        Args:
            source: `last` or `next` seconds of the world, its state `now`, or the name of a
                recording.
            seconds: length [s]; None takes that of the camera path or of the recording, else 5 s.
            shot: kind and fields of the shot, see `make_shot`; None orbits everything.
            fps: frames per second [1/s].
            width: width of the film [pixel]; that and the height become even for MP4.
            height: height of the film [pixel].
            fovy: vertical field of view [degrees].
            format: `mp4`, `gif`, or empty for MP4 where the encoder is installed.
            name: name of the file without its suffix; empty for one with the date.

        Raises:
            ValueError: a value is out of its bounds, or there is no such body, camera, recording.
            RuntimeError: another film is being made.
        """
        _check(fps, width, height, fovy, name)
        format = check_format(format)
        plain: dict[str, Any] = dict(shot or {"kind": "orbit"})
        if plain.get("kind") == "path":
            plain.setdefault("path", self.path.to_plain())
            seconds = seconds or CameraPath.from_plain(plain["path"]).duration or None
        model = self._lab.loop.do(lambda model, data: copy.copy(model), edits_model=False)
        make_shot(plain, model)
        if source not in SOURCES and source not in ("", LIVE) and "." not in source:
            known = ", ".join(SOURCES)
            raise ValueError(
                f"The source of a film is {known} or a recording such as 'a.mcap', got '{source}'."
            )
        recording = None if source in SOURCES else self._lab.recorder.load(source)
        if recording is not None:
            seconds = seconds or recording.segments[-1].duration
        seconds = 5.0 if seconds is None else float(seconds)
        self._check_length(source, seconds, fps)
        job = {"fps": fps, "width": width, "height": height, "fovy": fovy, "format": format}
        if format == "mp4":
            job |= {"width": width + width % 2, "height": height + height % 2}
        name = name or f"film_{datetime.now():%Y-%m-%d_%H-%M-%S_%f}"
        begun = self._lab.timeline.clock
        film = Film(name=name, source=source, seconds=seconds, fps=fps, begun=begun)
        self._begin(film, job | {"shot": plain}, model, recording)
        return film

    def _begin(
        self, film: Film, job: dict[str, Any], model: mujoco.MjModel, recording: Recording | None
    ) -> None:
        with self._lock:
            if self.film is not None and self.film.is_running:
                raise RuntimeError(
                    f"The film '{self.film.name}' is being made: wait for it, or cancel it."
                )
            self.film = film
            self._cancel.clear()
            self._thread = threading.Thread(
                target=self._run,
                args=(film, job, model, recording),
                name="manyworlds-film",
                daemon=True,
            )
            self._thread.start()

    def _check_length(self, source: str, seconds: float, fps: float) -> None:
        most = self._lab.timeline.cfg.max_duration
        if not 0.0 < seconds < math.inf or round(seconds * fps) > _MOST_FRAMES:
            raise ValueError(
                f"A film has up to {_MOST_FRAMES} frames, got {seconds:g} s at {fps:g} frames per "
                "second."
            )
        if source in ("last", "next") and seconds > most:
            raise ValueError(
                f"The timeline keeps {most:g} s, which is less than a film of {seconds:g} s: set "
                "TimelineCfg.max_duration, or film a recording."
            )

    def path_file(self, name: str) -> Path:
        """Return the file of a camera path, beside the recordings.

        Raises:
            ValueError: the name is not valid.
        """
        stem = name.removesuffix(PATH_SUFFIX)
        if not _NAME.fullmatch(stem):
            raise ValueError(
                f"'{name}' is not a valid name of a camera path: use letters, digits, spaces, "
                "dots, hyphens."
            )
        return self._lab.recorder.folder / f"{stem}{PATH_SUFFIX}"

    def cancel(self) -> None:
        """Cancel the film that is being made; nothing is left of it. Does nothing without one."""
        self._cancel.set()
        process = self._process
        if process is not None:
            process.kill()
        self.wait(_END_S)

    def wait(self, timeout: float | None = None) -> Film | None:
        """Wait until the film is done, and return it.

        Args:
            timeout: longest wait [s]; None waits as long as it takes.
        """
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)
        return self.film

    def _run(
        self, film: Film, job: dict[str, Any], model: mujoco.MjModel, recording: Recording | None
    ) -> None:
        folder = Path(tempfile.mkdtemp(prefix="manyworlds-film-"))
        try:
            if recording is None:
                recording = self._record(film, model)
            if self._cancel.is_set():
                return
            states = _states(recording, film, model)
            job |= {"frames": film.frames}
            write_job(folder, model, job, states)
            film.note_drawn(0, time.monotonic())
            film.state = "drawing"
            self._draw(film, folder)
        except ReferenceError:
            film.state = "canceled"  # the lab is gone
        except Exception as error:
            film.state, film.error = "failed", f"The film '{film.name}' failed: {error}."
        finally:
            if self._cancel.is_set() and film.state != "done":
                film.state = "canceled"
            shutil.rmtree(folder, ignore_errors=True)

    def _record(self, film: Film, model: mujoco.MjModel) -> Recording:
        """Return the states of the film from the timeline; wait for the next seconds."""
        lab = self._lab
        if film.source == "now":
            return lab.timeline.present()
        if film.source == "next":
            while lab.timeline.clock - film.begun < film.seconds - 1e-9:
                if self._cancel.wait(_LOOK_S):
                    break
                if fault := lab.loop.fault:
                    film.note = f"The world stopped: {fault} The film ends before that."
                    break
                if lab.loop.state == "stopped":
                    film.note = "The lab was stopped: the film ends there."
                    break
            done = lab.timeline.clock - film.begun
            return lab.timeline.recording(max(done, float(model.opt.timestep)))
        if fault := lab.loop.fault:
            film.note = f"The world stopped: {fault} The film ends before that."
        return lab.timeline.recording(film.seconds)

    def _draw(self, film: Film, folder: Path) -> None:
        self._process = process = start_drawing(folder)
        said: dict[str, Any] = {}
        assert process.stdout is not None
        with process:
            for line in process.stdout:
                if line.startswith("{"):
                    said = json.loads(line)
                    film.note_drawn(said.get("drawn", film.drawn), time.monotonic())
        self._process = None
        if self._cancel.is_set():
            return
        if "file" not in said:
            raise RuntimeError(said.get("error", f"its process ended with {process.returncode}"))
        target = self._lab.recorder.folder / f"{film.name}{Path(said['file']).suffix}"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(folder / said["file"], target)
        film.path, film.state = str(target.absolute()), "done"


def write_job(
    folder: Path,
    model: mujoco.MjModel,
    job: Mapping[str, object],
    *worlds: Mapping[str, np.ndarray],
) -> None:
    """Write the files that the program of `manyworlds.lab.pictures.film.program` reads.

    Args:
        folder: folder of the job.
        model: the model.
        job: frames, size, shot and format; see `draw_frames`.
        *worlds: states of one world, or of two for a film with both side by side.
    """
    for name, states in zip((STATES, BESIDE), worlds, strict=False):
        np.savez(folder / name, allow_pickle=False, **dict(states))
    mujoco.mj_saveModel(model, str(folder / "model.mjb"), None)
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")


def start_drawing(folder: Path) -> subprocess.Popen[str]:
    """Start the program that draws the film of a job's folder, and tells its progress."""
    command = [sys.executable, "-P", "-m", "manyworlds.lab.pictures.film", str(folder)]
    paths = os.pathsep.join(path for path in sys.path if path)
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        # Software OpenGL would take all cores, and delay the steps.
        env={"LP_NUM_THREADS": "1", **os.environ, "PYTHONPATH": paths},
    )


def _states(recording: Recording, film: Film, model: mujoco.MjModel) -> dict[str, np.ndarray]:
    """Return the states of a film by field, and set its number of frames and its note."""
    last, width = recording.segments[-1], mujoco.mj_stateSize(model, STATE)
    if not len(last):
        raise ValueError("there are no frames: step the world first")
    if last.index.get("qpos") != state_index(model)["qpos"] or last.values.shape[1] < width:
        raise ValueError("the recording is of another model than the world: open that one")
    if len(recording.segments) > 1 and last.duration < film.seconds:
        film.note = film.note or "The world was rebuilt: the film begins after that."
    data = mujoco.MjData(model)
    fields: dict[str, list[np.ndarray]] = {n: [] for n in ("qpos", "mocap_pos", "mocap_quat")}
    for row in np.ascontiguousarray(last.values[:, :width]):
        mujoco.mj_setState(model, data, row, STATE)
        for name, values in fields.items():
            values.append(getattr(data, name).copy())
    lasts = film.seconds
    if film.source != "now":
        lasts = min(lasts, last.duration + float(model.opt.timestep))
    film.frames = max(1, round(lasts * film.fps))
    if lasts < film.seconds - 0.5 / film.fps and not film.note:
        film.note = f"Only {lasts:.2f} s of {film.seconds:g} s are there."
    return {"times": last.clock, **{name: np.array(values) for name, values in fields.items()}}


def _check(fps: float, width: int, height: int, fovy: float, name: str) -> None:
    bounds = (
        ("fps", fps, 0.1, 240.0, "1/s"),
        ("width", width, 16, MAX_PIXELS, "pixels"),
        ("height", height, 16, MAX_PIXELS, "pixels"),
        ("fovy", fovy, MIN_FOVY, MAX_FOVY, "degrees"),
    )
    for what, value, low, high, unit in bounds:
        if not low <= value <= high:
            raise ValueError(
                f"The {what} of a film must be from {low:g} to {high:g} {unit}, got {value}."
            )
    if name and not _NAME.fullmatch(name):
        raise ValueError(
            f"'{name}' is not a valid name of a film: use letters, digits, spaces, dots, hyphens."
        )
