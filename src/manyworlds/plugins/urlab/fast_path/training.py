"""A world of a running training, for programs that draw it."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from manyworlds.lab.server.config import LabServerCfg
from manyworlds.lab.server.ports import Port
from manyworlds.lab.world.world import binary_model
from manyworlds.plugins.urlab.fast_path.server import FastPathServer
from manyworlds.plugins.urlab.fast_path.worlds import Names, WorldPose
from manyworlds.utils.extras import require_extra
from manyworlds.viewer.world_mirror import WorldMirror

if TYPE_CHECKING:
    from manyworlds.viewer.training_view import Frames

_LOG = logging.getLogger(__name__)
_JOIN_S = 2.0
_PERIOD_MS = 20  # a training shows its worlds ten times per second


class PublishedTraining:
    """One world of a training, for looking only.

    Args:
        frames: states of the worlds that the training shows.
        model: model that all worlds share.
        world: index of the world.
        name: name of the training, for people.
    """

    def __init__(self, frames: Frames, model: mujoco.MjModel, world: int, name: str) -> None:
        self.robots: dict[str, str] = {}
        self.has_state = False
        self.scene = f"{name}, world {world}"
        self.refusal = (
            f"World {world} of this training is only shown: a push would change what the policy "
            "learns, and the run could not be repeated; push it in `manyworlds play` or "
            "`manyworlds lab` with the run's folder."
        )
        self._frames = frames
        self._world = world
        self._fields = [name for name in frames.arrays if name.startswith("model.")]
        self._arrays = SimpleNamespace()
        fields = {field.removeprefix("model.") for field in self._fields}
        self._mirror = WorldMirror(model, self._arrays, fields)
        self._last = -1
        self._version = 0
        self._rows: list[bytes] = []
        self._pose: WorldPose | None = None

    @property
    def ngeom(self) -> int:
        """Number of geoms."""
        return int(self._mirror.model.ngeom)

    def pose(self) -> WorldPose:
        """Return the newest state that the training has shown."""
        last, arrays = self._frames.read(self._last)
        while arrays is None and self._pose is None:  # the first one is being written
            last, arrays = self._frames.read(self._last)
        if arrays is not None:
            self._last = last
            self._pose = self._read(last // 2, arrays)
        assert self._pose is not None
        return self._pose

    def model(self, names: Names = "clients") -> bytes:
        """Return the model with the values of this world."""
        self.pose()
        return binary_model(self._mirror.model)

    def push(self, body: int, force: np.ndarray, torque: np.ndarray) -> None:
        """Refuse a push; the server asks for `refusal` before."""
        raise RuntimeError(self.refusal)

    def drag(
        self, body: int, localpos: np.ndarray, target: np.ndarray | None, quat: np.ndarray | None
    ) -> None:
        """Refuse a drag."""
        raise RuntimeError(self.refusal)

    def release(self) -> None:
        """Return at once: nothing is dragged."""

    def _read(self, number: int, arrays: dict[str, np.ndarray]) -> WorldPose:
        world = self._world
        for field in self._fields:
            setattr(self._arrays, field.removeprefix("model."), arrays[field])
        content = []
        for field in self._fields:
            rows = arrays[field]
            row = rows[world] if len(rows) > 1 else rows[0]
            content.append(row.tobytes())
        self._version += bool(self._rows) and content != self._rows
        self._rows = content
        self._mirror.load(SimpleNamespace(**arrays), world)
        data = self._mirror.data
        return WorldPose(
            frame_id=number,
            time=float(arrays["time"][world]),
            model_version=self._version,
            xpos=data.xpos.copy(),
            xquat=data.xquat.copy(),
            qpos=data.qpos.copy(),
            qvel=np.array(arrays["qvel"][world], float),
        )


class TrainingPublisher:
    """Serves one world of a training in a thread of the page's process.

    Args:
        frames: states of the worlds that the training shows.
        model: model that all worlds share.
        world: index of the world.
        name: name of the training, for people.
    """

    def __init__(self, frames: Frames, model: mujoco.MjModel, world: int, name: str) -> None:
        self._context: Any = require_extra("zmq", "net").Context()
        self.server = FastPathServer(self._new_port, _LOG.warning, period_ms=_PERIOD_MS)
        self.server.attach(PublishedTraining(frames, model, world, name))
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fast path", daemon=True)
        for port in self.server.ports:
            port.poll(0.0)
        self._thread.start()

    @property
    def address(self) -> str:
        """HOST:PORT of its requests."""
        return f"{self.server.control.host}:{self.server.control.number}"

    def close(self) -> None:
        """Stop serving."""
        self._stopping.set()
        self._thread.join(_JOIN_S)
        self.server.close()
        self._context.destroy(linger=0)

    def _new_port(self, use: str, kind: int) -> Port:
        cfg = LabServerCfg()
        number = cfg.ports[use]
        if not _is_free(cfg.host, number):
            number = 0
        limit = cfg.limits.max_bytes
        return Port(self._context, use, kind, cfg.host, number, _LOG.warning, limit)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self.server.run_once()
            except Exception:
                _LOG.exception("The fast path of the training failed.")
                self._stopping.wait(1.0)


def _is_free(host: str, port: int) -> bool:
    """Return True if no other program listens at a port; several trainings may run at once."""
    with contextlib.suppress(OSError), socket.create_server((host, port)):
        return True
    return False
