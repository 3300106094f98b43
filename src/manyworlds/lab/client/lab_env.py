"""Gymnasium environment of a task over a live lab."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, TypeAlias

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import ArrayLike

from manyworlds.lab.client.client import ADDRESS, LabClient, connect
from manyworlds.lab.client.errors import SessionError
from manyworlds.utils.spaces import unbounded_box

if TYPE_CHECKING:
    from manyworlds.lab.loop.modes import WorldMode
    from manyworlds.lab.verb_methods import ResetTaskReply, StepTaskReply

Arrays: TypeAlias = "np.ndarray | dict[str, Arrays]"
"""Observations: an array, or arrays by name."""


class LabEnv(gymnasium.Env):  # type: ignore[type-arg]
    """Task of a lab that its environment drives, as an environment that the caller resets.

    The lab runs `manyworlds lab TASK --stepper environment --serve`. It computes observations,
    rewards and ends of episodes; here are only arrays. Results are those of `GymEnv` of the same
    configuration, bit for bit, with the same seed of `reset` and the same actions; only events of
    the mode `startup` are drawn when the lab starts, from the seed of the configuration. The page
    shows the world at each step.

    Args:
        lab: client of the lab, which stays open at the end; or its address.
        obs_group: observation group to return as a box; None returns all groups as a dict.
        action_limit: bound of the action space. Actions beyond it are not clipped.
        camera: camera of the lab whose images `render` returns; None for no images.

    Raises:
        ValueError: the task has no such observation group.
        LabError: there is no connection, another client drives, or no environment steps the world.
    """

    def __init__(
        self,
        lab: LabClient | str = ADDRESS,
        obs_group: str | None = None,
        action_limit: float = 1.0,
        camera: str | None = None,
    ) -> None:
        self.lab = connect(lab, name="LabEnv") if isinstance(lab, str) else lab
        self._owns_lab = isinstance(lab, str)
        self._camera = camera
        self._obs_group = obs_group
        self._is_closed = False
        try:
            self._open(action_limit)
        except BaseException:
            if self._owns_lab:
                self.lab.close()
            raise

    def _open(self, action_limit: float) -> None:
        task = self.lab.read_task()
        groups = task["observations"]
        if self._obs_group is not None and self._obs_group not in groups:
            raise ValueError(
                f"Observation group '{self._obs_group}' does not exist: choose one of {[*groups]}."
            )
        if self._obs_group is not None:
            groups = groups[self._obs_group]
        self.observation_space = _space(groups)
        self.action_space = gymnasium.spaces.Box(
            -action_limit, action_limit, (task["num_actions"],)
        )
        self.render_mode = None if self._camera is None else "rgb_array"
        self.metadata = {
            "render_modes": ["rgb_array"],
            "render_fps": round(1.0 / task["step_dt"]),
            "autoreset_mode": AutoresetMode.DISABLED,
        }
        if self._camera is not None:
            self.lab.configure_camera(self._camera)  # an unknown name is an error now
        self._mode: WorldMode = self.lab.set_mode("direct")["previous_mode"]
        self._auto_reset = self.lab.read_task_report()["auto_reset"]
        self.lab.set_auto_reset(on=False)

    def reset(
        self, *, seed: int | None = None, options: dict[str, object] | None = None
    ) -> tuple[Arrays, dict[str, object]]:
        """Start a new episode; `seed` is for all random numbers, `options` is not used."""
        super().reset(seed=seed)
        reply = self.lab.reset_task(seed=seed)
        return self._observations(reply), _log(reply)

    def step(self, action: ArrayLike) -> tuple[Arrays, float, bool, bool, dict[str, object]]:
        """Make one control step; `action` has shape [num_actions]."""
        reply = self.lab.step_task(np.asarray(action, np.float32))
        ends = reply["terminated"], reply["truncated"]
        return self._observations(reply), reply["reward"], *ends, _log(reply)

    def render(self) -> np.ndarray | None:
        """Return an image of the lab's camera, shape [height, width, 3]."""
        if self._camera is None:
            return None
        return self.lab.image(self._camera)

    def close(self) -> None:
        """Leave the lab in its mode of before, and close the connection if it is this one's.

        A second call does nothing.
        """
        if self._is_closed:
            return
        self._is_closed = True
        with contextlib.suppress(SessionError):  # after the loss of the world, it has its mode back
            if self.lab.is_driver:
                self.lab.set_auto_reset(on=self._auto_reset)
                self.lab.set_mode(self._mode)
        if self._owns_lab:
            self.lab.close()

    def _observations(self, reply: ResetTaskReply | StepTaskReply) -> Any:
        seen = reply["observations"]
        if self._obs_group is not None:
            seen = seen[self._obs_group]
        return _copy(seen)


def _space(shapes: Any) -> gymnasium.Space[Any]:
    if isinstance(shapes, dict):
        return gymnasium.spaces.Dict({name: _space(part) for name, part in shapes.items()})
    return unbounded_box(shapes)


def _copy(value: Any) -> Any:
    """Return arrays that may be written."""
    if isinstance(value, dict):
        return {name: _copy(part) for name, part in value.items()}
    return value.copy()


def _log(reply: ResetTaskReply | StepTaskReply) -> dict[str, object]:
    if not reply["log"]:
        return {}
    return {"log": reply["log"]}
