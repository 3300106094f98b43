"""What the two engines have in common: the contract that `Simulation` calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import mujoco
import numpy as np
import torch

from manyworlds.sim.contacts import Contacts
from manyworlds.sim.fields.recompute import RecomputeLevel
from manyworlds.sim.rays import CameraRequest, Rays
from manyworlds.sim.state import State
from manyworlds.validation.worlds import Worlds


class AttachedSensors(Protocol):
    """What sensors that look into the world share."""

    def attach(self, sim: Any) -> None:
        """Take the simulation that they look into."""
        ...

    def invalidate(self) -> None:
        """Let them measure anew when they are next read."""
        ...


class Engine(Protocol):
    """Steps `num_envs` worlds of one model.

    `data` and `model` are structs whose attributes are tensors, nested structs, or scalars;
    `WarpBridge` turns them into what users see. Worlds arrive in ascending order, each once; those
    of a state keep the order given.
    """

    name: str
    """A label for messages and records; what an engine can do, the attributes below tell."""
    derives_in_single_precision: bool
    """Whether `recompute_constants` computes in float32, and not as MuJoCo C does."""
    skips_absent_meshes: bool
    """Whether a geom whose `geom_dataid` is -1 never collides, not even in a contact pair."""
    expansion_remedy: str
    """Start of a remedy for an `expansion_problem`, as in "use another engine, or "; else ''."""
    num_threads: int
    mj_model: mujoco.MjModel
    num_envs: int
    device: torch.device
    expanded: set[str]
    """Names of the model fields that have one row per world."""
    defaults: dict[str, np.ndarray]
    """Model fields as compiled, which nobody overwrites; options are named 'opt.<name>'."""
    use_cuda_graph: bool
    graphs: dict[str, Any]
    """CUDA graphs that were captured, by the name of the call."""
    data: Any
    """Struct of per-world arrays, each `(num_envs, ...)`."""
    model: Any
    """Struct of model arrays; shared ones have a leading dimension of 1."""

    def create_graph(self) -> None:
        """Have CUDA graphs captured anew, where there are any."""
        ...

    def step(self, nsubsteps: int, refresh: bool, record: Any = None) -> None:
        """Take `nsubsteps` physics steps; with `refresh`, then compute the velocity stage.

        `record`, one of `record_slots`, takes what the first step starts from.
        """
        ...

    def forward(self, worlds: Worlds) -> None:
        """Compute all derived fields of the worlds named, without integrating."""
        ...

    def reset(self, worlds: Worlds) -> None:
        """Set the state of the worlds named to the model's defaults."""
        ...

    def status(self) -> torch.Tensor:
        """Bits of `WorldStatus` since the last reset, int32, shape (num_envs,)."""
        ...

    def all_ok(self) -> bool:
        """Whether no world has a bit of `status`; waits for a GPU."""
        ...

    def state_rows(self) -> torch.Tensor:
        """The state as `mj_getState` lays it out, shape (num_envs, nstate); do not write."""
        ...

    def record_slots(self, count: int) -> list[Any]:
        """Memory for the columns of `state_rows` before `static_inputs`, `count` times."""
        ...

    def static_inputs(self) -> Any:
        """The last columns of the state, which no step changes, shape (num_envs, n >= 0).

        Do not write: the same array comes back for as long as nobody writes these columns.
        """
        ...

    def model_rows(self) -> dict[str, np.ndarray]:
        """Rows of all fields that differ between worlds, each (num_envs, ...); do not write."""
        ...

    def take_written_worlds(self) -> np.ndarray | None:
        """Mask of worlds whose model rows may have changed since the last call, or None.

        None stands for no world, and for an engine that does not know.
        """
        ...

    def contacts(self, worlds: Worlds) -> Contacts:
        """Find the contacts of the worlds named at the present state; change nothing."""
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
        """Cast rays of shape (n, nray, 3) into the n worlds named; `bodyexclude` is (nray,)."""
        ...

    def render_cameras(self, view: CameraRequest) -> dict[str, torch.Tensor] | None:
        """Draw what a camera sees in all worlds; None where the engine does not draw."""
        ...

    def world_copies(self, worlds: Worlds) -> Iterator[tuple[mujoco.MjModel, mujoco.MjData]]:
        """Copy model and state of one world after the other into the same two structs."""
        ...

    def expansion_problem(self, field: str) -> str | None:
        """Say why a model field cannot have one row per world, or None if it can."""
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
        """Expand a model field, and write some of its columns in the worlds named.

        `columns` count elements; `values` is (number of worlds, number of columns, ...).
        """
        ...

    def recompute_constants(self, level: RecomputeLevel, worlds: Worlds) -> None:
        """Bring fields that derive from other model fields up to date in the worlds named."""
        ...

    def state_dict(self, worlds: Worlds) -> State:
        """Everything a later `load_state_dict` needs to go on from here, in the worlds named."""
        ...

    def load_state_dict(self, state: State, worlds: Worlds) -> None:
        """Take over a state that `state_dict` returned, in the worlds named."""
        ...
