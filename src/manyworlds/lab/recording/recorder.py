"""Recorder of a world: one frame per physics step, in memory and in a file."""

from __future__ import annotations

import copy
import math
import os
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import mujoco
import numpy as np

from manyworlds.lab.loop.callbacks import Handle
from manyworlds.lab.loop.physics_loop import PhysicsLoop
from manyworlds.lab.moments.frames import FrameStore, StepRows
from manyworlds.lab.moments.recording import CAMERA, LIVE, Recording, state_columns
from manyworlds.lab.pictures.image import JpegImage
from manyworlds.lab.pictures.lab_cameras import LabCameras
from manyworlds.lab.pictures.subscription import Subscription
from manyworlds.lab.recording.mcap_files import RecordingFile, write_mcap
from manyworlds.lab.recording.reading import load_recording
from manyworlds.lab.recording.text_files import write_csv, write_json

_WRITERS = {".csv": write_csv, ".json": write_json}
_SUFFIXES = (".mcap", *_WRITERS)
_LEAST_IMAGES = 8  # images that may wait for the disk, which takes them four times a second
_NAME = re.compile(r"\w[\w .-]{0,99}(\.mcap|\.csv|\.json)")


@dataclass(kw_only=True)
class RecorderCfg:
    """Settings of recordings."""

    folder: str | Path = Path("recordings")
    """Folder of the recordings; created when the first one is written."""
    to_file: bool = True
    """True to write the live session to a file while it is recorded."""
    max_duration: float = 60.0
    """Length of the live session in memory [s]; the file has all frames."""
    max_megabytes: float = 256.0
    """Largest memory of the live session, and of the rows that wait for the disk."""
    auto_record: bool = False
    """True to start recording with the lab."""
    cameras: tuple[str, ...] = ()
    """Cameras whose images are recorded to the file, too."""
    scene_rate: float = 30.0
    """Joints, transforms and shapes for Foxglove and other programs in MCAP files, per second of
    the recording [Hz]; 0 leaves them out."""


class Recorder:
    """Records a world, and manages its recordings.

    The sessions are `LIVE` and the files of one folder, by name; a file is read on its first use.
    A recording continues over a rebuild of the world, in a new segment.

    Args:
        loop: loop of the world.
        model_hash: hash of the loop's model.
        cfg: settings; not modified.
        cameras: cameras of the world; None records none.
        rows: states after the steps, if others keep them, too.
    """

    def __init__(
        self,
        loop: PhysicsLoop,
        model_hash: str = "",
        cfg: RecorderCfg | None = None,
        cameras: LabCameras | None = None,
        rows: StepRows | None = None,
    ) -> None:
        self.cfg = RecorderCfg() if cfg is None else copy.copy(cfg)
        self.folder = Path(self.cfg.folder)
        self.camera: Callable[[], Sequence[float]] | None = None
        """Returns the `CAMERA` of the viewer, which is recorded, too; set it before `start`."""
        self._loop = loop
        self._rows = StepRows(loop) if rows is None else rows
        self._hash = model_hash
        self._cameras = cameras
        self._active = LIVE
        self._switch = threading.Lock()  # for starting and stopping
        self._lock = threading.Lock()  # for the rows
        self._shifts: list[tuple[int, float]] = []  # first step of each shift of the time
        self._streams: list[Subscription[JpegImage]] = []
        self._frames = self._new_frames(self.cfg.max_duration)
        self._handle: Handle | None = None
        self._file: RecordingFile | None = None

    @property
    def is_recording(self) -> bool:
        """True while steps are recorded."""
        return self._handle is not None

    @property
    def num_frames(self) -> int:
        """Number of frames of the live session in memory."""
        return len(self._frames)

    @property
    def num_segments(self) -> int:
        """Number of segments of the live session in memory: one, and one for each rebuild."""
        return self._frames.num_segments

    @property
    def duration(self) -> float:
        """Time from the first to the last frame of the live session in memory [s]."""
        return self._frames.duration

    @property
    def path(self) -> Path | None:
        """Path of the live session's file; None without one."""
        return self._file.path if self._file else None

    @property
    def error(self) -> str:
        """Reason why the file of the live session is incomplete; empty if it is not."""
        return self._file.error if self._file else ""

    @property
    def images(self) -> dict[str, dict[str, object]]:
        """Numbers of images of the live session by camera: in the file, dropped, late; and errors.

        Images are dropped if writing is too slow, and late if drawing is.
        """
        written = self._file.num_images if self._file else {}
        return {
            stream.camera: {
                "images": written.get(stream.camera, 0),
                "dropped": stream.num_dropped,
                "late": stream.num_late,
                "error": stream.error,
            }
            for stream in self._streams
        }

    def start(
        self,
        file: str = "",
        max_duration: float | None = None,
        cameras: Sequence[str] | None = None,
    ) -> None:
        """Start a new live session; each physics step adds a frame.

        Args:
            file: name of a file to write as well, `NAME.mcap`; by default one with the date, or
                none if `to_file` is off.
            max_duration: length of the session in memory [s]; by default that of the config.
            cameras: cameras whose images are written to the file; by default those of the config.

        Raises:
            RuntimeError: a recording is running.
            ValueError: the name is not valid for a recording's file, there is no such camera, or
                there are cameras and no file.
            FileExistsError: there is such a file.
        """
        if not file and self.cfg.to_file:
            file = f"live_{datetime.now():%Y-%m-%d_%H-%M-%S_%f}.mcap"
        if file and not file.endswith(".mcap"):
            raise ValueError(f"A running recording is written to '.mcap' files only, got '{file}'.")
        with self._switch:
            if self.is_recording:
                raise RuntimeError(
                    "This world is being recorded already: stop that recording first."
                )
            path = None
            if file:
                path = self._path(file)
            if path is not None and path.exists():
                raise FileExistsError(f"There is a recording '{file}' already: use another name.")
            if max_duration is None:
                max_duration = self.cfg.max_duration
            frames = self._new_frames(max_duration)
            max_rows = max(1, int(frames.max_bytes / frames.newest.row_bytes))
            self._shifts = []
            self._file = None
            self._streams = self._subscribe(cameras, path)
            if path is not None:
                try:
                    self._file = RecordingFile(
                        path,
                        frames.newest.empty,
                        self._loop.model,
                        max_rows,
                        self._streams,
                        self._time_of,
                        self.cfg.scene_rate,
                    )
                except BaseException:
                    self._unsubscribe()
                    raise
            with self._lock:
                self._frames = frames
                self._handle = self._loop.on_post_step(self._record)

    def stop(self) -> None:
        """End the live session and its file; does nothing without one."""
        with self._switch:
            with self._lock:
                handle, self._handle = self._handle, None
            if handle is not None:
                handle.remove()
                if self._file is not None:
                    self._file.close()
                self._unsubscribe()

    def rebuild(self, model_hash: str) -> None:
        """Continue with the loop's new model; a running recording begins a new segment.

        Runs in the physics thread.

        Args:
            model_hash: hash of the new model.
        """
        self._hash = model_hash
        self._rows.renew()
        with self._lock:
            if self._handle is None:
                return
            segment = self._frames.begin(self._layout())
            if self._file is not None:
                self._file.begin(segment.empty, self._loop.model)

    def clear(self) -> None:
        """Delete the live session from memory; its file stays."""
        self._frames.clear()

    @property
    def sessions(self) -> list[str]:
        """Names of the recordings: the live one, then files."""
        if not self.folder.is_dir():
            return [LIVE]
        with os.scandir(self.folder) as entries:
            files = [e.name for e in entries if _NAME.fullmatch(e.name) and e.is_file()]
        return [LIVE, *sorted(files)]

    @property
    def active(self) -> str:
        """Name of the session that is played or saved by default."""
        return self._active

    @active.setter
    def active(self, name: str) -> None:
        if name != LIVE and not self._path(name).is_file():
            raise KeyError(f"There is no recording '{name}' in '{self.folder}'.")
        self._active = name

    def load(self, name: str = "") -> Recording:
        """Return a session, the active one by default.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the name is not valid for a recording's file.
            RecordingError: it cannot be read.
        """
        name = name or self._active
        if name == LIVE:
            return self._frames.recording()
        path = self._path(name)
        if not path.is_file():
            raise FileNotFoundError(f"There is no recording '{name}' in '{self.folder}'.")
        return load_recording(path, self._loop.model.opt.timestep)

    def save(self, name: str, session: str = "", segment: int = 0) -> Path:
        """Write a session to the folder, in the format of the suffix: `.mcap`, `.csv` or `.json`.

        MCAP keeps all, JSON positions and velocities of joints, CSV positions with eight decimals.

        Args:
            name: name of the file; an earlier one is replaced.
            session: name of the session; the active one by default.
            segment: number of the only segment to write, from 1; 0 writes all.

        Raises:
            ValueError: the name is not valid for a recording's file, the session has no frames or
                no such segment, or the format has one segment only.
            FileExistsError: the live session is being written to this file.
        """
        return self.write(name, self.load(session), session or self._active, segment)

    def write(self, name: str, recording: Recording, session: str, segment: int = 0) -> Path:
        """Write a recording to the folder; see `save`, which raises the same errors."""
        path = self._path_to_write(name)
        if not len(recording):
            raise ValueError(f"The session '{session}' has no frames to save.")
        count = len(recording.segments)
        if not 0 <= segment <= count:
            raise ValueError(f"The session '{session}' has no segment {segment}: it has {count}.")
        if segment:
            recording = replace(recording.segments[segment - 1], later=())
        elif count > 1 and path.suffix != ".mcap":
            raise ValueError(
                f"The session '{session}' has {count} segments, because its world was rebuilt, and "
                f"a '{path.suffix}' file has one: choose a segment from 1 to {count}, or save "
                "'.mcap'."
            )
        if path.suffix == ".mcap":
            write_mcap(path, recording, {self._hash: self._loop.model}, self.cfg.scene_rate)
        else:
            _WRITERS[path.suffix](path, recording)
        return path

    def add(self, name: str, content: bytes) -> Path:
        """Add a file from elsewhere.

        Args:
            name: name of the file; an earlier one is replaced.
            content: content of the file.

        Raises:
            ValueError: the name is not valid for a recording's file.
            FileExistsError: the live session is being written to this file.
            RecordingError: it cannot be read; then it is not kept.
        """
        path = self._path_to_write(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f"new {name}")
        fresh.write_bytes(content)
        try:
            self.load(fresh.name)
        except ValueError:
            fresh.unlink()
            raise
        return fresh.replace(path)

    def _path(self, name: str) -> Path:
        """Return the path of a file of the folder; names cannot leave it."""
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"'{name}' is not a valid name of a recording: use letters, digits, spaces, dots, "
                f"hyphens, and end with {', '.join(_SUFFIXES)}."
            )
        return self.folder / name

    def _path_to_write(self, name: str) -> Path:
        """Return the path of a file that may be replaced."""
        path = self._path(name)
        if self.is_recording and path == self.path:
            raise FileExistsError(
                f"The live session is being written to '{name}': stop that, or use another name."
            )
        return path

    def _new_frames(self, max_duration: float) -> FrameStore:
        return FrameStore(self._layout(), max_duration, self.cfg.max_megabytes * 1e6)

    def _layout(self) -> Recording:
        """Return an empty recording with the columns of rows: a state, and the camera if known."""
        columns = state_columns(self._loop.model, self._hash)
        width = columns.values.shape[1]
        index = dict(columns.index)
        if self.camera is not None:
            index["camera"] = {"camera": (width, len(CAMERA))}
            width += len(CAMERA)
        return replace(columns, values=np.empty((0, width)), index=index)

    def _subscribe(
        self, cameras: Sequence[str] | None, path: Path | None
    ) -> list[Subscription[JpegImage]]:
        """Subscribe to the cameras of a session; all or none."""
        if cameras is None:
            cameras = self.cfg.cameras
        names = dict.fromkeys(cameras)
        if not names or self._cameras is None:
            return []
        if path is None:
            raise ValueError(
                f"Images of {', '.join(names)} are recorded to files only: name one, or set "
                "RecorderCfg.to_file."
            )
        streams: list[Subscription[JpegImage]] = []
        try:
            for name in names:
                second = math.ceil(self._cameras[name].cfg.rate)
                capacity = max(_LEAST_IMAGES, second)
                streams.append(self._cameras.subscribe_jpeg(name, capacity=capacity))
        except BaseException:
            for stream in streams:
                stream.close()
            raise
        return streams

    def _unsubscribe(self) -> None:
        for stream in self._streams:
            stream.close()

    def _time_of(self, image: JpegImage) -> float:
        """Return the time of an image in the live session [s]."""
        shifts = [shift for step, shift in list(self._shifts) if step <= image.step]
        return image.time + (shifts[-1] if shifts else 0.0)

    def _record(self, model: mujoco.MjModel, data: mujoco.MjData, moved: bool) -> None:
        if not moved:
            return
        row = self._rows.take(model, data)
        if "camera" in self._frames.newest.empty.index and self.camera is not None:
            row = np.concatenate((row, self.camera()))
        with self._lock:
            if self._handle is None:  # the recording was stopped during this step
                return
            shift = self._frames.shift
            time = self._frames.add([row], model.opt)
            if self._frames.shift != shift:
                self._shifts.append((self._loop.num_steps, self._frames.shift))
            if self._file is not None:
                self._file.put(np.concatenate(((time,), row)))
