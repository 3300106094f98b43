"""Exchange of model values between a lab and the environment that drives its world."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mujoco
import numpy as np
import torch

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv

_REFUSED = mujoco.mjtEnableBit.mjENBL_SLEEP | mujoco.mjtEnableBit.mjENBL_IPC


class ModelExchange:
    """Values of the lab's model, beside those of the environment's only world.

    Args:
        env: the environment.
        reference: model with the values of the environment's world; see `Simulation.world_copies`.
    """

    def __init__(self, env: ManagerBasedRlEnv, reference: mujoco.MjModel) -> None:
        self._env = env
        self._reference = reference

    def compare(self, model: mujoco.MjModel) -> None:
        """Find the arrays of a model that may differ between worlds, beside the reference's.

        Bounding volumes are left out: they are large, and derive from other fields.
        """
        names = [name for name in dir(self._env.sim.model) if not name.startswith(("_", "bvh_"))]
        names = [name for name in names if isinstance(getattr(model, name, None), np.ndarray)]
        self._fields: list[tuple[str, np.ndarray, np.ndarray]] = [
            (name, getattr(model, name), getattr(self._reference, name)) for name in names
        ]
        options = (name for name in dir(self._env.sim.model.opt) if not name.startswith("_"))
        self._options = [name for name in options if hasattr(model.opt, name)]
        self._own_fields: list[tuple[str, np.ndarray, np.ndarray]] = []
        self._own_options: list[str] = []
        self._expanded: set[str] = set()
        self._note_expanded()

    def _note_expanded(self) -> None:
        """Find the fields of which the environment has rows of its own."""
        expanded = self._env.sim.expanded_fields
        if len(self._expanded) != len(expanded):
            self._expanded = expanded
            self._own_fields = [field for field in self._fields if field[0] in expanded]
            self._own_options = [name for name in self._options if f"opt.{name}" in expanded]

    def take(self, model: mujoco.MjModel, shared: bool = True) -> None:
        """Write what differs in the lab's model from the environment's to the latter.

        Args:
            model: the lab's model.
            shared: whether to compare the fields of which the environment has no rows, too.
        """
        fields = self._fields if shared else self._own_fields
        options = self._options if shared else self._own_options
        new = {name: own for name, own, other in fields if own.tobytes() != other.tobytes()}
        for name in options:
            own = np.asarray(getattr(model.opt, name))
            other = np.asarray(getattr(self._reference.opt, name))
            if own.tobytes() != other.tobytes():
                new[f"opt.{name}"] = own
        if not new:
            return
        if int(model.opt.enableflags) & _REFUSED:
            model.opt.enableflags = self._reference.opt.enableflags
            raise ValueError("sleeping bodies are not available in an environment.")
        sim = self._env.sim
        sim.expand_model_fields(tuple(new))
        state = sim.get_state()
        for name, value in new.items():
            row = state[f"model.{name}"]
            row.copy_(torch.from_numpy(np.array(value)).reshape(row.shape))
        sim.set_state(state)
        next(iter(sim.world_copies()))  # brings the reference up to date
        self._note_expanded()

    def give(self, model: mujoco.MjModel) -> bool:
        """Write the environment's rows to the lab's model; return True if some differ."""
        next(iter(self._env.sim.world_copies()))  # into the reference
        self._note_expanded()
        differs = False
        for _, own, other in self._own_fields:
            if own.tobytes() != other.tobytes():
                np.copyto(own, other)
                differs = True
        for name in self._own_options:
            setattr(model.opt, name, getattr(self._reference.opt, name))
        return differs  # if the task has randomized it
