"""Values with which the actuators of an entity hold its default pose when an episode begins."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import mujoco
import torch

from manyworlds.entity.indexing import EntityIndexing
from manyworlds.sim.views import DataView
from manyworlds.spec.holding import holding_values
from manyworlds.validation.worlds import EnvIds, Worlds, as_index, assign


class PoseHolder:
    """Writes activations, and controls that no configuration follows.

    Args:
        mj_model: the compiled model.
        pose: its data, with the lengths of the entity's actuators in the default pose.
        indexing: ids of the entity's elements.
        followed: columns of `ctrl` that configurations of actuators write.
        key_act: activations of the keyframe that has the default pose, in the order of the file's
            actuators; empty for steady ones.
        device: device of the simulation.
    """

    def __init__(
        self,
        mj_model: mujoco.MjModel,
        pose: mujoco.MjData,
        indexing: EntityIndexing,
        followed: Collection[int],
        key_act: Sequence[float],
        device: torch.device,
    ) -> None:
        actuators = indexing.actuator_ids.tolist()
        ctrl, act = holding_values(mj_model, pose)
        free = [i for i in indexing.ctrl_ids.tolist() if i not in followed and ctrl[i]]
        acts = [
            int(mj_model.actuator_actadr[i]) + k
            for i in actuators
            for k in range(mj_model.actuator_actnum[i])
        ]
        steady = act[acts]
        steady[: len(key_act)] = key_act[: len(acts)]
        # A field that holds nothing but zeros, as after the reset of the simulation, is not bound.
        self._writes = [
            (field, torch.as_tensor(values, dtype=torch.float32, device=device), as_index(columns))
            for field, values, columns in (("ctrl", ctrl[free], free), ("act", steady, acts))
            if values.any()
        ]
        self._histories: list[tuple[int, list[int]]] = []
        """Controls of actuators with a delay of their own, and where `history` has their values."""
        for i in actuators:
            count = int(mj_model.actuator_history[i, 0])
            if count and mj_model.actuator_ctrlnum[i] == 1:
                # Two numbers about the buffer, `count` times and `count` values.
                first = int(mj_model.actuator_historyadr[i]) + 2 + count
                self._histories.append(
                    (int(mj_model.actuator_ctrladr[i]), list(range(first, first + count)))
                )

    def begin(self, data: DataView, env_ids: EnvIds = None) -> None:
        """Write the values in the given worlds; None for all."""
        for field, values, columns in self._writes:
            assign(getattr(data, field), values, env_ids, columns)

    def fill_history(self, data: DataView, worlds: Worlds) -> None:
        """Fill the delays that MuJoCo computes with the present controls of these worlds."""
        for ctrl, columns in self._histories:
            values = worlds.take(data.ctrl[:, ctrl, None]).expand(-1, len(columns))
            assign(data.history, values, worlds, as_index(columns))
