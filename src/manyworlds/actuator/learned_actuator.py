"""Actuators that are networks, trained on the response of motors to targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import mujoco
import torch

from manyworlds.actuator.actuator import ActuatorCmd
from manyworlds.actuator.builtin_actuator import check_positive
from manyworlds.actuator.dc_actuator import DcMotorActuator, DcMotorActuatorCfg, clip_to_curve
from manyworlds.actuator.targets import CommandField
from manyworlds.signals import CircularBuffer
from manyworlds.sim.views import DataView, ModelView
from manyworlds.utils.overrides import overrides
from manyworlds.validation.worlds import EnvIds, Worlds, takes_worlds

if TYPE_CHECKING:
    from manyworlds.entity import Entity

LearnedCfgT = TypeVar("LearnedCfgT", bound="LearnedActuatorCfg", covariant=True)


@dataclass(kw_only=True)
class LearnedActuatorCfg(DcMotorActuatorCfg):
    """Fields that the two kinds of networks share; one network serves all joints."""

    network_file: str
    """TorchScript module."""
    pos_scale: float
    """Factor of position errors."""
    vel_scale: float
    """Factor of velocities."""
    torque_scale: float
    """Factor of the network's output."""
    input_order: Literal["pos_vel", "vel_pos"] = "pos_vel"
    """Order of position errors and velocities in the input."""
    stiffness: float = 0.0
    damping: float = 0.0

    def __post_init__(self) -> None:
        """Check the order of inputs."""
        super().__post_init__()
        if self.input_order not in ("pos_vel", "vel_pos"):
            raise ValueError(
                f"{type(self).__name__}.input_order must be 'pos_vel' or 'vel_pos', got "
                f"{self.input_order!r}."
            )


@dataclass(kw_only=True)
class LearnedMlpActuatorCfg(LearnedActuatorCfg):
    """A feed-forward network over a short history.

    Its input has a row for each world and joint: `history_length` position errors, the newest
    first, and as many velocities. Its output is one number per row.
    """

    history_length: int = 3
    """Number of steps in the network's input."""

    def __post_init__(self) -> None:
        """Check the length."""
        super().__post_init__()
        check_positive(self, "history_length")

    def build(
        self, entity: Entity, target_ids: list[int], target_names: list[str]
    ) -> LearnedMlpActuator:
        """Make the actuator."""
        return LearnedMlpActuator(self, entity, target_ids, target_names)


@dataclass(kw_only=True)
class LearnedLstmActuatorCfg(LearnedActuatorCfg):
    """A recurrent network: `output, (h, c) = network(input, (h, c))`.

    Its input has shape [num_envs * num_targets, 1, 2], hidden state and cell state have shape
    [num_layers, num_envs * num_targets, hidden_size], as in a batch-first `torch.nn.LSTM`, whose
    weights define the number of layers and the size. Its output is one number per row.
    """

    def build(
        self, entity: Entity, target_ids: list[int], target_names: list[str]
    ) -> LearnedLstmActuator:
        """Make the actuator."""
        return LearnedLstmActuator(self, entity, target_ids, target_names)


class _LearnedActuator(DcMotorActuator[LearnedCfgT], Generic[LearnedCfgT]):
    """Loads the network, and clips its output to the curve of the motor.

    Raises:
        ValueError: the network cannot be loaded, or fails on an input of the expected shape, or its
            output has another shape.
    """

    # The gains are part of the network.
    param_names = ("force_limit", "saturation_effort", "velocity_limit_motor")

    def initialize(
        self, mj_model: mujoco.MjModel, model: ModelView, data: DataView, device: torch.device
    ) -> None:
        """Load the network and evaluate it once."""
        super().initialize(mj_model, model, data, device)
        cfg = self.cfg
        name = type(self.cfg).__name__
        self._shape = (data.qpos.shape[0], len(self.target_ids))
        try:
            self.network: Any = torch.jit.load(cfg.network_file, map_location=device).eval()
        except (RuntimeError, ValueError) as error:
            raise ValueError(
                f"{name}.network_file '{cfg.network_file}' is no TorchScript module: {error}"
            ) from error
        with torch.inference_mode(False):
            self._allocate(device)
        try:
            output = self._evaluate(torch.zeros(*self._shape, 2, device=device))
        except RuntimeError as error:
            raise ValueError(
                f"The network of {name} refuses its input: is it made for it? {error}"
            ) from error
        if output.numel() != self._shape[0] * self._shape[1]:
            raise ValueError(
                f"The network of {name} must return one number a row, got shape "
                f"{tuple(output.shape)}."
            )
        self.reset()

    def reads(self, field: CommandField) -> bool:
        """Return whether targets of a kind have an effect: networks see errors of positions."""
        return field == "position" or overrides(self, _LearnedActuator, "compute")

    def compute(self, cmd: ActuatorCmd) -> torch.Tensor:
        """Return the efforts that the network predicts, shape [num_envs, num_targets]."""
        inputs = [
            (cmd.position_target - cmd.pos) * self.cfg.pos_scale,
            cmd.vel * self.cfg.vel_scale,
        ]
        if self.cfg.input_order == "vel_pos":
            inputs.reverse()
        output = self._evaluate(torch.stack(inputs, dim=-1))
        effort = output.reshape(self._shape) * self.cfg.torque_scale
        return clip_to_curve(self.params, effort, cmd)

    def _allocate(self, device: torch.device) -> None:
        """Allocate the memory of the network."""
        raise NotImplementedError

    def _evaluate(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the network's output for inputs of shape [num_envs, num_targets, 2]."""
        raise NotImplementedError


class LearnedMlpActuator(_LearnedActuator[LearnedMlpActuatorCfg]):
    """A feed-forward network over the last steps; the first step of a world fills its history."""

    state_attributes = (*DcMotorActuator.state_attributes, "_history")

    @takes_worlds
    def reset(self, env_ids: EnvIds = None) -> None:
        """Clear the history of the given worlds; None for all."""
        super().reset(env_ids)
        self._history.reset(env_ids)

    def _allocate(self, device: torch.device) -> None:
        self._history = CircularBuffer(self.cfg.history_length, self._shape[0], device)

    def _evaluate(self, inputs: torch.Tensor) -> torch.Tensor:
        self._history.append(inputs)
        # From [num_envs, oldest to newest, num_targets, 2] to a row for each world and target.
        rows = self._history.buffer.flip(1).permute(0, 2, 3, 1)
        with torch.no_grad():
            return self.network(rows.flatten(0, 1).flatten(1))


class LearnedLstmActuator(_LearnedActuator[LearnedLstmActuatorCfg]):
    """A recurrent network, with a memory for each world and joint."""

    state_attributes = (*DcMotorActuator.state_attributes, "_hidden", "_cell")
    world_columns = ("_hidden", "_cell")

    @takes_worlds
    def reset(self, env_ids: EnvIds = None) -> None:
        """Clear the memory of the given worlds; None for all."""
        super().reset(env_ids)
        worlds = Worlds.of(env_ids, self._hidden.shape[1], self._hidden.device)
        worlds.put(self._hidden, 0.0, dim=1)
        worlds.put(self._cell, 0.0, dim=1)

    def _allocate(self, device: torch.device) -> None:
        weights = [
            weight
            for key, weight in self.network.state_dict().items()
            if key.rpartition(".")[2].startswith("weight_hh_l")
        ]
        if not weights:
            raise ValueError(
                f"The network of {type(self.cfg).__name__} has no LSTM (weights 'weight_hh_l0'): "
                "use LearnedMlpActuatorCfg for one without memory."
            )
        shape = (len(weights), *self._shape, weights[0].shape[1])
        self._hidden = torch.zeros(shape, device=device)
        """Hidden state, shape [num_layers, num_envs, num_targets, hidden_size]."""
        self._cell = torch.zeros(shape, device=device)
        """Cell state, same shape."""

    def _evaluate(self, inputs: torch.Tensor) -> torch.Tensor:
        memory = (self._hidden.flatten(1, 2), self._cell.flatten(1, 2))
        with torch.no_grad():
            output, (hidden, cell) = self.network(inputs.reshape(-1, 1, 2), memory)
        self._hidden.copy_(hidden.view_as(self._hidden))
        self._cell.copy_(cell.view_as(self._cell))
        return output
