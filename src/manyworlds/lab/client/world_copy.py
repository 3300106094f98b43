"""Copy of a live world's model and data in another program."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping

import mujoco
import numpy as np

from manyworlds.lab.client.errors import LabVersionError, NotReadyError
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.verb_methods import LabVerbs, Reply
from manyworlds.lab.world.model_values import write_values
from manyworlds.lab.world.options import read_options

_STATE = ("qpos", "qvel", "act", "ctrl", "xfrc_applied", "mocap_pos", "mocap_quat")
_OF_LAST_STEP = ("qacc", "actuator_force", "sensordata")
"""Fields that physics computes in a step, and not from the state alone."""
_TRIES = 20


class WorldCopy:
    """Model and data that follow the snapshots of a lab.

    Nothing is fetched and computed before the first use of `model` or `data`.

    Args:
        verbs: verbs of the lab.
        fetch: returns the newest snapshot.
        version: version of MuJoCo that the lab has.
    """

    def __init__(
        self, verbs: LabVerbs, fetch: Callable[[], Snapshot], version: Callable[[], str]
    ) -> None:
        self._verbs = verbs
        self._fetch = fetch
        self._mujoco = version
        self._lock = threading.RLock()
        self._model: mujoco.MjModel | None = None
        self._data: mujoco.MjData | None = None
        self._robots: Mapping[str, Reply] = {}
        self._version = -1
        self.snapshot: Snapshot | None = None
        """The last snapshot that came."""

    @property
    def model(self) -> mujoco.MjModel:
        """The model; a rebuild of the world replaces it."""
        with self._lock:
            if self._model is None:
                self.sync_model()
            assert self._model is not None
            return self._model

    @property
    def robots(self) -> Mapping[str, Reply]:
        """Description of each robot by the verb `describe_world`, by the robot's name."""
        with self._lock:
            _ = self.model  # fetches both
            return self._robots

    @property
    def data(self) -> mujoco.MjData:
        """The state of the last snapshot, and all that follows from it."""
        with self._lock:
            if self._data is None:
                self._data = mujoco.MjData(self.model)
                self.take(self.snapshot or self._fetch())
            return self._data

    def take(self, snapshot: Snapshot) -> None:
        """Follow a snapshot."""
        with self._lock:
            self.snapshot = snapshot
            if self._model is not None and snapshot.model_version != self._version:
                self.sync_model()
            elif self._data is not None:
                self._follow(self._data, snapshot)

    def sync_model(self) -> None:
        """Bring the model up to date: its values in place, or all of a rebuilt world.

        Raises:
            LabError: the lab does not send it.
        """
        with self._lock:
            for _ in range(_TRIES):
                world = self._verbs.describe_world()
                if self._model is not None and world["model_version"] == self._version:
                    return
                fresh = self._load()
                snapshot = self._fetch()
                if snapshot.model_version == world["model_version"]:  # else it has just changed
                    break
            else:
                raise NotReadyError("not_ready", "The model changes all the time: try again later.")
            self.snapshot = snapshot
            self._version = snapshot.model_version
            self._robots = world["robots"]
            if self._model is None or not self._write(self._model, fresh):
                self._model = fresh
                if self._data is not None:
                    self._data = mujoco.MjData(fresh)
            if self._data is not None:
                self._follow(self._data, snapshot)

    @staticmethod
    def _write(model: mujoco.MjModel, fresh: mujoco.MjModel) -> bool:
        """Write the values of a model into another one; return False if they differ in more."""
        if fresh.names != model.names:
            return False
        found = {name: getattr(fresh, name) for name in dir(fresh) if not name.startswith("_")}
        arrays = {name: value for name, value in found.items() if isinstance(value, np.ndarray)}
        return write_values(model, arrays, read_options(fresh.opt))

    def _load(self) -> mujoco.MjModel:
        lab, own = self._mujoco(), mujoco.mj_versionString()
        if lab == own:
            mjb = self._verbs.export_model()["mjb"]
            return mujoco.MjModel.from_binary_path("lab.mjb", {"lab.mjb": mjb})
        warnings.warn(
            f"The lab has MuJoCo {lab}, and this program {own}: the model is compiled from the "
            "XML of the scene, whose numbers have six digits, and without later changes.",
            stacklevel=2,
        )
        try:
            answer = self._verbs.export_model(sources=True)
            return mujoco.MjModel.from_xml_string(answer["mjcf"], answer["files"])
        except ValueError as error:
            raise LabVersionError(
                "version_mismatch",
                f"The lab has MuJoCo {lab}, this program {own}, and the XML of the scene cannot "
                f"replace the compiled model ({error}): install mujoco=={lab} here.",
            ) from error

    def _follow(self, data: mujoco.MjData, snapshot: Snapshot) -> None:
        """Write a snapshot's state, and compute what follows from it."""
        for name in _STATE:
            np.copyto(getattr(data, name), getattr(snapshot, name))
        data.time = snapshot.time
        mujoco.mj_forward(self.model, data)
        for name in _OF_LAST_STEP:
            np.copyto(getattr(data, name), getattr(snapshot, name))
