"""Configuration of a simulation: the engine, its buffer sizes, and MuJoCo's physics options."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import mujoco

from manyworlds.sim.options import ENUMS, SCALARS, check_mujoco, flag_bits
from manyworlds.utils.nan_guard import NanGuardCfg
from manyworlds.validation.checks import check_type, choose

if TYPE_CHECKING:
    import mujoco_warp as mjw


@dataclass
class MujocoCfg:
    """MuJoCo's physics options."""

    timestep: float = 0.002
    """Physics timestep [s]."""
    integrator: Literal["euler", "implicitfast"] = "implicitfast"
    impratio: float = 1.0
    cone: Literal["pyramidal", "elliptic"] = "pyramidal"
    jacobian: Literal["auto", "dense", "sparse"] = "auto"
    solver: Literal["newton", "cg", "pgs"] = "newton"
    iterations: int = 100
    tolerance: float = 1e-8
    ls_iterations: int = 50
    ls_tolerance: float = 0.01
    ccd_iterations: int = 50
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    """Gravity in the world frame [m/s^2]."""
    disableflags: tuple[str, ...] = ()
    """Features to switch off, named as in MJCF's `<flag>`: contact, gravity, ..."""
    enableflags: tuple[str, ...] = ()
    """Features to switch on, named as in MJCF's `<flag>`: energy, invdiscrete, ..."""

    def apply(self, model: mujoco.MjModel) -> None:
        """Write every option into a compiled model.

        Raises:
            TypeError: `model` is not a compiled model.
            ValueError: an option has a name that MuJoCo does not know, or an invalid value.
        """
        check_type("model", model, mujoco.MjModel, "compile it.")
        check_mujoco(self)
        for name, choices in ENUMS.items():
            setattr(model.opt, name, choose(name, getattr(self, name), choices))
        for name in SCALARS:
            setattr(model.opt, name, getattr(self, name))
        model.opt.gravity[:] = self.gravity
        model.opt.disableflags = flag_bits("disableflags", self.disableflags)
        model.opt.enableflags = flag_bits("enableflags", self.enableflags)


@dataclass(kw_only=True)
class SimulationCfg:
    """Configuration of a `Simulation`."""

    engine: Literal["auto", "native", "warp"] = "auto"
    """`native` is MuJoCo C on the CPU, `warp` is MuJoCo Warp; `auto` uses warp on CUDA devices."""
    num_threads: int = 0
    """Threads of the native engine; 0 uses every core that is available to this process."""
    nconmax: int | None = None
    """Contacts to allocate per world on the warp engine; None estimates them in short trials."""
    njmax: int | None = None
    """Constraint rows to allocate per world on the warp engine; None estimates them, too."""
    contact_sensor_maxmatch: int = 64
    """Contacts that a contact sensor can match on the warp engine; native has no such limit."""
    broadphase: Literal["nxn", "sap_tile", "sap_segmented"] | None = None
    """Algorithm of the warp engine for finding candidate geom pairs; None is its default."""
    broadphase_filter: tuple[Literal["plane", "sphere", "aabb", "obb"], ...] | None = None
    """Tests that the warp engine's broadphase applies; None is MuJoCo Warp's default."""
    ls_parallel: bool | None = None
    """Deprecated and without effect: MuJoCo Warp no longer has a parallel line search."""
    capture: Literal["off", "auto", "full"] = "off"
    """Repeat whole control steps of an environment as CUDA graphs: `auto` does so where 20 steps
    equal those of Python bit for bit, runs terms that cannot be captured between graphs, and warns;
    `full` raises an error unless one graph contains the step."""
    mujoco: MujocoCfg | None = field(default_factory=MujocoCfg)
    """Physics options. They apply to a `spec`, and to a `model` if any of them differs from its
    default; None keeps the model's own."""
    nan_guard: NanGuardCfg = field(default_factory=NanGuardCfg)
    """Recording of the last steps, written to a file when a world fails."""

    def apply_wp_opt(self, wp_opt: mjw.Option) -> None:
        """Write the options that only MuJoCo Warp has into its `Option`; None keeps its default."""
        from manyworlds.sim.engines.warp import apply_options

        apply_options(wp_opt, self)
