"""Forces on bodies: a spring, as of the mouse in MuJoCo's simulate, and forces for one step."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

import mujoco
import numpy as np

from manyworlds.lab.loop.callbacks import Handle
from manyworlds.lab.loop.physics_loop import PhysicsLoop

SILENCE_S = 0.5
"""Time without renewal after which a pull ends [s], because its page may be closed."""


class Perturbation:
    """A spring that pulls or turns one body at a time, and forces that last for one step.

    While the world runs, the spring is a force on the body; while it is paused, the body is
    moved to the target, together with its children.

    Args:
        loop: loop of the world.
        clock: function that returns the wall clock's time [s].
    """

    def __init__(self, loop: PhysicsLoop, clock: Callable[[], float] = time.monotonic) -> None:
        self._loop = loop
        self._clock = clock
        self._lock = threading.RLock()
        # MuJoCo requires a scene that was updated once, though the camera does not matter here.
        self._scene = mujoco.MjvScene(loop.model, maxgeom=1)
        camera = mujoco.MjvCamera()
        option = mujoco.MjvOption()
        mujoco.mjv_updateScene(loop.model, loop.data, option, None, camera, 0, self._scene)
        self._pert = mujoco.MjvPerturb()
        # Positions of the body's center and of the grabbed point.
        self._center = self._point = np.zeros(3)
        self._renewed = 0.0
        self._pulling = self._held = False
        self.version = 0
        """Number of changes of the pull."""
        self._forces = StepForces(loop)
        self._lasting: list[tuple[float, int, np.ndarray]] = []
        """Time of the end, body and wrench of each push that lasts."""
        self._handle = loop.on_pre_step(self._apply)

    @property
    def body(self) -> int:
        """Id of the body that is pulled; 0 for none."""
        return int(self._pert.select) if self._pulling else 0

    def lasting(self) -> dict[int, np.ndarray]:
        """Return the forces that stay on bodies where the present ones end by themselves.

        Forces for one step end with it, and a pull with the hand that pulls. Runs in the physics
        thread, after a step.

        Returns:
            Force [N] and torque [N m] by id of the body, each of shape (6,); empty if all stay.
        """
        if not self._pulling:
            return self._forces.lasting() if self._forces.act else {}
        return self._forces.lasting() | {int(self._pert.select): np.zeros(6)}

    def grab(self, body: int, point: np.ndarray) -> None:
        """Select a body and a point of it in the world [m]; nothing pulls yet.

        Raises:
            ValueError: there is no such body, or it is the world body.
        """
        self._check(body)
        point = np.array(point, float)
        self._loop.do(lambda model, data: self._grab(model, data, body, point), edits_model=False)

    def pull(self, target: np.ndarray) -> None:
        """Pull the grabbed point to a position in the world [m]; renew the pull while it lasts."""
        target = np.array(target, float)
        center = self._center + target - self._point
        self._renew(mujoco.mjtPertBit.mjPERT_TRANSLATE, refselpos=target, refpos=center)

    def turn(self, quat: np.ndarray) -> None:
        """Turn the body to an orientation in the world (wxyz); renew it while it lasts."""
        self._renew(mujoco.mjtPertBit.mjPERT_ROTATE, refquat=np.array(quat, float))

    def drag(
        self,
        body: int,
        localpos: np.ndarray,
        target: np.ndarray | None = None,
        quat: np.ndarray | None = None,
    ) -> None:
        """Grab a body, unless it is grabbed at this point, and renew its pull and its turn.

        Args:
            body: id of the body.
            localpos: the point in the body's frame [m], shape (3,).
            target: position in the world to pull it to [m], shape (3,); None does not pull.
            quat: orientation in the world to turn the body to (wxyz), shape (4,); None does not
                turn it.

        Raises:
            ValueError: there is no such body, or it is the world body.
        """
        self._check(body)

        def renew(model: mujoco.MjModel, data: mujoco.MjData) -> None:
            with self._lock:
                same = self._held and self._pert.select == body
                if not (same and np.allclose(self._pert.localpos, localpos)):
                    rotation = data.xmat[body].reshape(3, 3)
                    self._grab(model, data, body, data.xpos[body] + rotation @ localpos)
                self._pert.active = 0
                if target is not None:
                    self.pull(target)
                pulls = self._pert.active
                if quat is not None:
                    self.turn(quat)
                self._pert.active |= pulls

        self._loop.do(renew, edits_model=False)

    def push(self, body: int, wrench: np.ndarray) -> None:
        """Add a force and a torque on a body during the next step; see `StepForces.add`.

        Raises:
            ValueError: there is no such body, or it is the world body.
        """
        self._check(body, "push")
        self._loop.do(lambda model, data: self._forces.add(body, wrench), edits_model=False)

    def push_for(self, body: int, wrench: np.ndarray, duration_s: float) -> None:
        """Push a body with a constant force and torque for some simulated time.

        Args:
            body: id of the body.
            wrench: force [N] and torque [N m] in the world's frame, shape (6,).
            duration_s: duration of the push, at least one physics step [s].

        Raises:
            ValueError: there is no such body, it is the world body, or the duration is negative.
        """
        self._check(body, "push")
        if not 0.0 <= duration_s < math.inf:
            raise ValueError(f"A push lasts at least 0 s, got {duration_s}.")
        wrench = np.array(wrench, float)

        def begin(model: mujoco.MjModel, data: mujoco.MjData) -> None:
            self._lasting.append((data.time + duration_s, body, wrench))

        self._loop.do(begin, edits_model=False)

    def release(self) -> None:
        """Release the body: no force is left at the next step."""
        with self._lock:
            self._held = False
            self.version += 1

    def close(self) -> None:
        """Stop pulling for good: the world was rebuilt."""
        self._handle.remove()
        self._forces.close()

    def _check(self, body: int, use: str = "grab") -> None:
        if not 0 < body < self._loop.model.nbody:
            raise ValueError(
                f"There is no body {body} to {use}: give an id in [1, {self._loop.model.nbody})."
            )

    def _renew(self, active: mujoco.mjtPertBit, **values: np.ndarray) -> None:
        with self._lock:
            if not self._held:
                return
            for name, value in values.items():
                getattr(self._pert, name)[:] = value
            self._pert.active = int(active)
            self.version += 1
            self._renewed = self._clock()

    def _grab(
        self, model: mujoco.MjModel, data: mujoco.MjData, body: int, point: np.ndarray
    ) -> None:
        with self._lock:
            self._clear(data)
            rotation = data.xmat[body].reshape(3, 3)
            self._pert.select = body
            self._pert.localpos[:] = rotation.T @ (point - data.xpos[body])
            # Scales the spring by the body's inertia, as simulate does.
            mujoco.mjv_initPerturb(model, data, self._scene, self._pert)
            self._pert.refselpos[:] = point
            self._center = self._pert.refpos.copy()
            self._point = point
            self._pert.active = 0
            self._pulling = self._held = True
            self._renewed = self._clock()

    def _apply(self, model: mujoco.MjModel, data: mujoco.MjData, moved: bool) -> None:
        with self._lock:
            if self._pulling:
                self._apply_pull(model, data)
        self._apply_lasting(model, data)
        self._forces.apply(data)  # on top of the pull

    def _apply_lasting(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Add the pushes that last, each for at least one step."""
        for _, body, wrench in self._lasting:
            self._forces.add(body, wrench)
        next_end = data.time + 1.5 * model.opt.timestep
        self._lasting = [push for push in self._lasting if push[0] >= next_end]

    def _apply_pull(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Apply the spring, or end it; the caller holds the lock."""
        if self._clock() - self._renewed > SILENCE_S:
            self._held = False
        if not self._held:
            self._clear(data)
            self._pulling = False
        elif not self._pert.active:
            return
        elif self._loop.paused:
            mujoco.mjv_applyPerturbPose(model, data, self._pert, 1)
            mujoco.mj_forward(model, data)
        else:
            mujoco.mjv_applyPerturbPose(model, data, self._pert, 0)  # of mocap bodies
            data.xfrc_applied[self._pert.select] = 0.0
            mujoco.mjv_applyPerturbForce(model, data, self._pert)

    def _clear(self, data: mujoco.MjData) -> None:
        """Remove the force; the caller holds the lock."""
        if self._pulling:
            data.xfrc_applied[self._pert.select] = 0.0


class StepForces:
    """Forces on bodies that last for one step; only the physics thread uses it.

    Args:
        loop: loop of the world.
    """

    def __init__(self, loop: PhysicsLoop) -> None:
        self._loop = loop
        self._waiting: dict[int, np.ndarray] = {}
        self._missed = False
        self._before: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._handle: Handle | None = None

    def add(self, body: int, wrench: np.ndarray) -> None:
        """Add to the force on a body at the next step.

        Forces add up until an iteration of the loop. If the world does not advance in that one,
        because it is paused, later forces replace them, so that they do not pile up.

        Args:
            body: id of the body.
            wrench: force [N] and torque [N m] in the world's frame, shape (6,).
        """
        if self._missed:
            self._waiting = {}
            self._missed = False
        self._waiting[body] = self._waiting.get(body, 0.0) + np.asarray(wrench, float)
        if self._handle is None:  # nothing is called after steps without forces
            self._handle = self._loop.on_post_step(self._after)

    def apply(self, data: mujoco.MjData) -> None:
        """Write the forces before a step."""
        for body, wrench in self._waiting.items():
            before = data.xfrc_applied[body].copy()
            self._before[body] = before, before + wrench
            data.xfrc_applied[body] += wrench

    @property
    def act(self) -> bool:
        """True after a step in which forces have acted."""
        return bool(self._before)

    def lasting(self) -> dict[int, np.ndarray]:
        """Return the earlier forces on bodies whose forces are for this step only.

        Returns:
            Force [N] and torque [N m] by id of the body, each of shape (6,).
        """
        return {body: before for body, (before, _) in self._before.items()}

    def close(self) -> None:
        """Forget all forces."""
        self._waiting = {}
        self._before = {}
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def _after(self, model: mujoco.MjModel, data: mujoco.MjData, moved: bool) -> None:
        """Restore what was written before the step, unless the step has replaced it."""
        for body, (before, written) in self._before.items():
            if np.array_equal(data.xfrc_applied[body], written):
                data.xfrc_applied[body] = before
        self._before = {}
        self._missed = not moved
        if moved:
            self.close()
