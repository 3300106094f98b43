"""Launcher: throws free bodies at targets."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, get_args

import mujoco
import numpy as np

from manyworlds.lab.errors import near
from manyworlds.lab.loop.callbacks import Handle

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

LaunchPath = Literal["direct", "ballistic"]
"""`direct`: towards the target, at the given speed; `ballistic`: on a parabola to the target."""
SLOWEST = 0.1  # [m/s]
FASTEST = 100.0  # [m/s]
_LEAST_RISE = 1e-3  # height of the shortest parabola [m]
_EXPLICIT = mujoco.mjtIntegrator.mjINT_RK4


@dataclass(frozen=True)
class Launch:
    """Settings for the launch of one body."""

    body: str
    """Name of the body, which has a free joint."""
    target: str | tuple[float, float, float]
    """Name of a body whose center of mass is aimed at, or a point in the world [m]."""
    path: LaunchPath = "direct"
    speed: float = 10.0
    """Speed of a direct launch, 0.1 to 100 [m/s]."""
    arc: float = 0.3
    """Height of a ballistic path above its higher end, as a share of the horizontal distance."""
    delay: float = 2.0
    """Simulated time between two launches of auto-fire [s]."""
    auto: bool = False
    """True to reset the body and launch it again and again."""
    reset: bool = False
    """True if `fire` first puts the body back to its initial pose."""


class Launcher:
    """Launches bodies that have a free joint, between two steps.

    Args:
        lab: the lab.
    """

    def __init__(self, lab: LiveLab) -> None:
        self._lab: LiveLab = weakref.proxy(lab)  # a cycle would keep the lab's memory
        self._launches: dict[str, Launch] = {}
        self._due: dict[str, float] = {}
        self._listener: Handle | None = None  # while a launch repeats
        lab.on_reset(self._restart)
        lab.on_rebuild(self._drop_missing)

    @property
    def launches(self) -> tuple[Launch, ...]:
        """Settings of all bodies that `fire` launches."""
        return tuple(self._launches.values())

    @property
    def bodies(self) -> list[str]:
        """Names of the bodies that can be launched: those with a free joint."""
        return free_bodies(self._lab.model)

    def aim(
        self,
        body: str = "",
        target: str | Sequence[float] = (0.0, 0.0, 0.0),
        *,
        path: LaunchPath = "direct",
        speed: float = 10.0,
        arc: float = 0.3,
        delay: float = 2.0,
        auto: bool = False,
        reset: bool = False,
    ) -> Launch:
        """Set how a body is launched; see `Launch`. An earlier setting of the body is replaced.

        Raises:
            KeyError: there is no such body or target.
            ValueError: the body has no free joint, no body has one, or a number is out of bounds.
        """
        model = self._lab.model
        body = self._check_body(body)
        if isinstance(target, str):
            names = [model.body(i).name for i in range(model.nbody)]
            if target not in names:
                raise KeyError(f"There is no body '{target}' to aim at{near(target, names)}")
            if target == body:
                raise ValueError(f"'{body}' cannot be aimed at itself: name another body.")
            aimed: str | tuple[float, float, float] = target
        else:
            x, y, z = _checked_point(target)
            aimed = x, y, z
        if path not in get_args(LaunchPath):
            raise ValueError(
                f"The path of a launch is one of {', '.join(get_args(LaunchPath))}, got '{path}'."
            )
        for name, value, low, high in (
            ("speed", speed, SLOWEST, FASTEST),
            ("arc", arc, 0.0, 10.0),
            ("delay", delay, 0.01, 1e6),
        ):
            if not low <= value <= high:
                raise ValueError(f"The {name} of a launch is in [{low:g}, {high:g}], got {value}.")
        numbers = float(speed), float(arc), float(delay)
        launch = Launch(body, aimed, path, *numbers, auto, reset)
        self._launches = {**self._launches, body: launch}
        self._due.pop(body, None)
        self._listen()
        return launch

    def forget(self, body: str) -> None:
        """Remove the settings of a body; auto-fire ends."""
        self._launches = {name: known for name, known in self._launches.items() if name != body}
        self._due.pop(body, None)
        self._listen()

    def fire(self, body: str = "", *, reset: bool | None = None) -> dict[str, np.ndarray]:
        """Launch a body, or all for which `aim` was called.

        Args:
            body: name of the body; all if empty.
            reset: whether to put it to its initial pose first; None does as `aim` says.

        Returns:
            Velocity of each body [m/s], shape [3], by name.

        Raises:
            KeyError: there is no such body.
            ValueError: nothing was aimed, the body has no free joint, or the target cannot be
                reached.
        """
        if body or not self.bodies:
            self._check_body(body)
        launches = [launch for launch in self.launches if body in ("", launch.body)]
        if not launches:
            what = f"'{body}' was not" if body else "Nothing was"
            raise ValueError(f"{what} aimed: choose a body and a target first (aim).")

        def launch_all(model: mujoco.MjModel, data: mujoco.MjData) -> dict[str, np.ndarray]:
            velocities = {}
            for launch in launches:
                fresh = launch.reset if reset is None else reset
                velocities[launch.body] = self._launch(model, data, launch, fresh)
            mujoco.mj_forward(model, data)
            return velocities

        return self._lab.loop.do(launch_all, edits_model=False)

    def plain(self) -> list[dict[str, object]]:
        """Return the settings as plain data."""
        rows = [asdict(launch) for launch in self.launches]
        for row in rows:
            if isinstance(row["target"], tuple):
                row["target"] = list(row["target"])
        return rows

    def _launch(
        self, model: mujoco.MjModel, data: mujoco.MjData, launch: Launch, reset: bool
    ) -> np.ndarray:
        """Set the velocity of a body; runs in the physics thread."""
        body = model.body(launch.body).id
        joint = int(model.body_jntadr[body])
        q, v = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
        before = data.qpos[q : q + 7].copy()
        if reset:
            data.qpos[q : q + 7] = self._initial(model)[q : q + 7]
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        if isinstance(launch.target, str):
            goal = data.xipos[model.body(launch.target).id]
        else:
            goal = np.array(launch.target)
        try:
            velocity = launch_velocity(model, body, goal - data.xipos[body], launch)
        except ValueError:
            data.qpos[q : q + 7] = before
            mujoco.mj_kinematics(model, data)
            raise
        data.qvel[v : v + 6] = [*velocity, 0.0, 0.0, 0.0]
        return velocity

    def _initial(self, model: mujoco.MjModel) -> np.ndarray:
        """Return the positions after a reset, shape [nq]."""
        fresh = mujoco.MjData(model)
        self._lab.world.reset(model, fresh)
        return fresh.qpos

    def _auto_fire(self, model: mujoco.MjModel, data: mujoco.MjData, moved: bool) -> None:
        """Launch what is due, in simulated time; before each iteration's controls."""
        if self._lab.paused:
            return
        for launch in self.launches:
            if not launch.auto:
                continue
            if data.time < self._due.setdefault(launch.body, data.time):
                continue
            self._due[launch.body] = data.time + launch.delay
            try:
                self._launch(model, data, launch, reset=True)
            except (ValueError, KeyError):
                self.forget(launch.body)
                raise
            mujoco.mj_forward(model, data)

    def _listen(self) -> None:
        """Listen to steps while a launch repeats."""
        repeats = any(launch.auto for launch in self.launches)
        if repeats and self._listener is None:
            self._listener = self._lab.loop.on_pre_step(self._auto_fire)
        elif not repeats and self._listener is not None:
            self._listener.remove()
            self._listener = None

    def _restart(self) -> None:
        self._due.clear()

    def _check_body(self, body: str) -> str:
        """Return the name of a body that can be launched: the given one, or the only one."""
        model = self._lab.model
        free = free_bodies(model)
        if not free:
            raise ValueError(
                "This world has no body with a free joint, which a launcher needs: add one."
            )
        if body in free:
            return body
        if not body and len(free) == 1:
            return free[0]
        known = ", ".join(free[:12])
        if not body:
            raise ValueError(f"Name the body to launch: {known}.")
        if mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, body) >= 0:
            raise ValueError(
                f"'{body}' cannot be launched, because it has no free joint: choose {known}."
            )
        raise KeyError(f"There is no body '{body}'{near(body, free, f'; free: {known}.')}")

    def _drop_missing(self) -> None:
        """Remove what a rebuilt world lacks, and say so."""
        model = self._lab.model
        names = {model.body(i).name for i in range(model.nbody)}
        free = set(free_bodies(model))
        for launch in self.launches:
            target = launch.target
            if launch.body in free and (not isinstance(target, str) or target in names):
                continue
            self.forget(launch.body)
            self._lab.rebuild_notes += (f"the launch of '{launch.body}' at '{target}' ended",)


def free_bodies(model: mujoco.MjModel) -> list[str]:
    """Return the names of the bodies that have a free joint."""
    joints = np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_FREE)
    names = (model.body(int(model.jnt_bodyid[joint])).name for joint in joints)
    return [name for name in names if name]


def launch_velocity(
    model: mujoco.MjModel, body: int, way: np.ndarray, launch: Launch
) -> np.ndarray:
    """Return the velocity with which a body gets to its target.

    A ballistic path is that of the integrator's steps without drag and contacts, so that the body
    passes the target to rounding at a step, and between two steps otherwise.

    Args:
        model: the model.
        body: id of the body.
        way: from its center of mass to the target [m], shape [3].
        launch: settings.

    Raises:
        ValueError: the target cannot be reached so.
    """
    distance = float(np.linalg.norm(way))
    if distance == 0.0:
        raise ValueError(f"'{launch.body}' is at its target already: aim elsewhere.")
    if launch.path == "direct":
        return launch.speed * way / distance
    gravity = model.opt.gravity * (1.0 - model.body_gravcomp[body])
    if model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY:
        gravity = np.zeros(3)
    pull = float(np.linalg.norm(gravity))
    if pull == 0.0:
        raise ValueError(
            f"A ballistic path needs gravity, and '{launch.body}' has none: launch it directly."
        )
    up = -gravity / pull
    climb = float(way @ up)
    across = way - climb * up
    rise = max(climb, 0.0) + launch.arc * float(np.linalg.norm(across))
    rise = max(rise, max(climb, 0.0) + _LEAST_RISE)
    upward = math.sqrt(2.0 * pull * rise)
    duration = upward / pull + math.sqrt(2.0 * (rise - climb) / pull)
    velocity = across / duration + upward * up
    if model.opt.integrator != _EXPLICIT:
        # Semi-implicit steps move with the velocity of their end.
        velocity -= 0.5 * model.opt.timestep * gravity
    speed = float(np.linalg.norm(velocity))
    if speed > FASTEST:
        raise ValueError(
            f"'{launch.body}' would need {speed:.0f} m/s to reach its target, above the limit of "
            f"{FASTEST:g} m/s: aim nearer, or choose a lower arc."
        )
    return velocity


def _checked_point(target: Sequence[float]) -> tuple[float, ...]:
    point = np.asarray(target, float)
    if point.shape != (3,) or not np.isfinite(point).all():
        raise ValueError(f"The target of a launch has three finite coordinates, got {target}.")
    return tuple(point.tolist())
