"""Protocol of the engines, as `Simulation` uses it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

import mujoco
import numpy as np
import torch

from manyworlds.sim.contacts import Contacts
from manyworlds.sim.fields.recompute import RecomputeLevel
from manyworlds.sim.rays import CameraRequest, Rays
from manyworlds.sim.state import State
from manyworlds.validation.worlds import Worlds

if TYPE_CHECKING:
    import warp as wp

    from manyworlds.sim.sim import Simulation


class AttachedSensors(Protocol):
    """Shared state of the sensors that cast rays or render cameras."""

    def attach(self, sim: Simulation) -> None:
        """Bind the simulation that the sensors measure."""
        ...

    def invalidate(self) -> None:
        """Mark measurements as outdated, so that the next read repeats them."""
        ...


class Engine(Protocol):
    """Steps `num_envs` worlds of one model.

    `DataView` and `ModelView` show its fields to users. Worlds are in ascending order, each once;
    those passed with a state keep the given order.
    """

    name: str
    """Label for messages and records; the following attributes state capabilities."""
    is_bit_exact: bool
    """True if each world equals one that MuJoCo C steps, bit for bit."""
    derives_in_single_precision: bool
    """True if `recompute_constants` computes in float32 instead of as MuJoCo C does."""
    skips_absent_meshes: bool
    """True if a geom whose `geom_dataid` is -1 never collides, not even in a contact pair."""
    expansion_remedy: str
    """Start of a remedy for an `expansion_problem`, as in "use another engine, or "; may be ''."""
    num_threads: int
    mj_model: mujoco.MjModel
    num_envs: int
    device: torch.device
    expanded: set[str]
    """Names of the model fields that have one row per world."""
    defaults: dict[str, np.ndarray]
    """Model fields as compiled, never overwritten; options are named 'opt.<name>'."""
    use_graphs: bool
    """True if calls replay captured graphs."""
    graphs: dict[str, wp.Graph]
    """Captured graphs, by the name of the call."""
    layout: int
    """Number of times that arrays were replaced, after which captured graphs are not valid."""

    def captured_on(self, stream: torch.cuda.Stream) -> AbstractContextManager[None]:
        """Let calls become part of a CUDA graph that PyTorch captures on a stream.

        Raises:
            RuntimeError: the engine has no kernels.
        """
        ...

    def data_field(self, field: str) -> object:
        """Return a tensor of shape (num_envs, ...), a number, or a struct of Warp arrays.

        Raises:
            AttributeError: there is no such field.
        """
        ...

    def data_fields(self) -> list[str]:
        """Return the names of tensors and structs that `data_field` returns."""
        ...

    def model_field(self, field: str) -> torch.Tensor | int | float:
        """Return a tensor, (num_envs, ...) once expanded and (1, ...) before, or a number.

        Raises:
            AttributeError: there is no such field.
        """
        ...

    def model_fields(self, prefix: str) -> list[str]:
        """Return the names of options, for the prefix 'opt.', or of the model's other fields."""
        ...

    def field_rows(self, field: str) -> torch.Tensor:
        """Return the rows of an expanded model field, shape (num_envs, ...)."""
        ...

    def warp_array(self, field: str) -> object:
        """Return Warp's own array of a model field; None on an engine without Warp."""
        ...

    def create_graph(self) -> None:
        """Discard captured graphs, if any, so that they are captured again."""
        ...

    def step(
        self, nsubsteps: int, refresh: bool, record: Any = None, pool: Executor | None = None
    ) -> None:
        """Take `nsubsteps` physics steps; with `refresh`, then compute the velocity stage.

        `record`, one of `record_slots`, receives the state from which the first step starts. With
        a pool, an engine that uses the CPU may take them on one of its threads, until `finish`.
        """
        ...

    def is_stepping(self) -> bool:
        """Return whether a step that was launched on a thread of a pool is not done yet."""
        ...

    def take_launched(self) -> bool:
        """Take a step that was launched in this thread, if no other has begun it.

        Returns:
            Whether it did.
        """
        ...

    def finish(self) -> None:
        """Wait for a step that was launched, or take it; complete it."""
        ...

    def forward(self, worlds: Worlds) -> None:
        """Compute all derived fields of the given worlds, without integrating."""
        ...

    def reset(self, worlds: Worlds) -> None:
        """Set the state of the given worlds to the model's defaults."""
        ...

    def status(self) -> torch.Tensor:
        """Return the bits of `WorldStatus` since the last reset, int32, shape (num_envs,)."""
        ...

    def all_ok(self) -> bool:
        """Return whether no world has a bit of `status`; waits for a GPU."""
        ...

    def state_rows(self) -> torch.Tensor:
        """Return the state in the layout of `mj_getState`, shape (num_envs, nstate); read-only."""
        ...

    def record_slots(self, count: int) -> list[Any]:
        """Allocate `count` buffers for the columns of `state_rows` before `static_inputs`."""
        ...

    def static_inputs(self) -> Any:
        """Return the last columns of the state, which no step changes, shape (num_envs, n >= 0).

        The result is read-only; it is the same array until the user writes these columns.
        """
        ...

    def model_rows(self) -> dict[str, np.ndarray]:
        """Return rows of all fields that differ between worlds, each (num_envs, ...); read-only."""
        ...

    def take_written_worlds(self) -> np.ndarray | None:
        """Return a mask, shape (num_envs,), of worlds whose model rows may have been written.

        The mask covers writes since the last call. None stands for no world, and for an engine that
        does not track changes.
        """
        ...

    def contacts(self, worlds: Worlds) -> Contacts:
        """Compute the contacts of the given worlds at the present state, without side effects."""
        ...

    def ray(
        self,
        pnt: torch.Tensor,
        vec: torch.Tensor,
        geomgroup: Sequence[int] | None,
        flg_static: bool,
        bodyexclude: torch.Tensor,
        worlds: Worlds,
    ) -> Rays:
        """Cast rays of shape (n, nray, 3) into the n given worlds; `bodyexclude` is (nray,)."""
        ...

    def render_cameras(self, view: CameraRequest) -> dict[str, torch.Tensor] | None:
        """Render a camera in all worlds, each image of shape (num_envs, height, width, channels).

        None if the engine does not render; see `Simulation.render_cameras`.
        """
        ...

    def world_copies(self, worlds: Worlds) -> Iterator[tuple[mujoco.MjModel, mujoco.MjData]]:
        """Yield copies of model and state of one world after another, in the same two structs."""
        ...

    def expansion_problem(self, field: str) -> str | None:
        """Return the reason why a model field cannot have one row per world; None if it can."""
        ...

    def recompute_level(self, fields: set[str]) -> RecomputeLevel:
        """Return the strongest level that a change of some model fields asks for."""
        ...

    def expand(self, field: str) -> None:
        """Give a model field one row per world."""
        ...

    def write_rows(
        self, field: str, env_ids: np.ndarray, columns: np.ndarray, values: np.ndarray
    ) -> None:
        """Expand a model field, and write some of its elements in some worlds.

        Args:
            field: the model field.
            env_ids: ids of worlds, which broadcast with `columns` as in numpy's indexing.
            columns: indices of elements.
            values: their values, of the shape of both ids together, and then that of an element.
        """
        ...

    def recompute_constants(self, level: RecomputeLevel, worlds: Worlds) -> None:
        """Recompute fields that derive from other model fields in the given worlds."""
        ...

    def state_dict(self, worlds: Worlds) -> State:
        """Return everything that `load_state_dict` needs to continue these worlds from here."""
        ...

    def load_state_dict(self, state: State, worlds: Worlds) -> None:
        """Restore a state that `state_dict` returned, in the given worlds."""
        ...
