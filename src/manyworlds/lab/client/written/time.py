"""Verbs of `manyworlds.lab.verbs.time`, as methods.

Written by `python tools/write_client_verbs.py`; a test compares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from numpy.typing import ArrayLike

from manyworlds.lab.client.caller import Reply, VerbCaller


class TimeVerbs(VerbCaller):
    """Verbs of a live world: time."""

    def set_paused(
        self,
        paused: bool,
    ) -> Reply:
        """Pause the world, or let it run.

        Args:
            paused: true to pause.

        Returns:
            `paused` (bool), `frame_id`, `time`.
        """
        return self.call("set_paused", paused=paused)

    def step(
        self,
        n_steps: int = 1,
        targets: Mapping[str, object] | None = None,
        wrenches: Mapping[str, object] | None = None,
        owner: str = "panel",
        include_cameras: Mapping[str, object] | None = None,
    ) -> Reply:
        """Set targets and forces, advance by some steps, paused or not, and wait for them.

        Args:
            n_steps: number of steps, from 1, to 1e+09.
            targets: targets by robot: a number for each actuator, or numbers by actuator.
            wrenches: force and torque by body, six numbers [N, N m], in these steps only.
            owner: owner that writes the targets; `net` for all clients.
            include_cameras: sync for an image of this step, or latest for the last one, by camera.

        Returns:
            `step` (int, number of physics steps so far), `ignored` (map, owner of each robot that
            took no targets), `cameras` (map, header and pixels of each image, as of capture_camera,
            by camera), `inputs` (map, twist and actions of each robot that is given any),
            `frame_id`, `time`.
        """
        return self.call(
            "step",
            n_steps=n_steps,
            targets=targets,
            wrenches=wrenches,
            owner=owner,
            include_cameras=include_cameras,
        )

    def show_state(
        self,
        qpos: ArrayLike,
        qvel: ArrayLike,
        state_time: float,
        ctrl: ArrayLike | None = None,
    ) -> Reply:
        """Show a state in the mode `puppet`, and compute what follows from it.

        Args:
            qpos: positions of all joints.
            qvel: velocities of all joints.
            state_time: simulated time of the state [s].
            ctrl: all controls; left out, they stay.

        Returns:
            `step` (int, number of physics steps so far), `perturbation` (map, body, version and
            xfrc of a pull by the page), `frame_id`, `time`.
        """
        return self.call("show_state", qpos=qpos, qvel=qvel, state_time=state_time, ctrl=ctrl)

    def forward(self) -> Reply:
        """Compute all that follows from the present state, without a step."""
        return self.call("forward")

    def reset(
        self,
        keyframe_name: str = "",
        seed: int | None = None,
        qpos: Mapping[str, object] | None = None,
    ) -> Reply:
        """Return to the initial state or a keyframe; clear targets and a fault, and end a replay.

        Args:
            keyframe_name: keyframe of the model to start from.
            seed: seed of a task's environment, from 0, to 4.29497e+09.
            qpos: positions by robot and joint.

        Returns:
            `ended_replay` (string, session of the replay that this ended; empty for none),
            `frame_id`, `time`.
        """
        return self.call("reset", keyframe_name=keyframe_name, seed=seed, qpos=qpos)

    def set_sim_speed(
        self,
        percent: float,
    ) -> Reply:
        """Set the speed of simulated time.

        Args:
            percent: speed of simulated time relative to real time [%], from 5, to 1000.

        Returns:
            `percent` (float, speed of simulated time relative to real time), `frame_id`, `time`.
        """
        return self.call("set_sim_speed", percent=percent)

    def set_mode(
        self,
        mode: Literal["live", "direct", "puppet", "auto"],
    ) -> Reply:
        """Let the world advance by itself (`live`, `auto`), by `step`, or by states (`puppet`).

        Args:
            mode: mode of the world.

        Returns:
            `previous_mode` (string, mode of the world), `current_mode` (string, mode of the world),
            `frame_id`, `time`.
        """
        return self.call("set_mode", mode=mode)
