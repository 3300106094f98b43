"""What a simulation can be told: the engine, its sizes, and MuJoCo's physics options."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import mujoco

from manyworlds.sim.options import ENUMS, SCALARS, check_mujoco, flag_bits
from manyworlds.utils.nan_guard import NanGuardCfg
from manyworlds.validation.checks import check_type, choose


@dataclass(kw_only=True)
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
            TypeError: that is no compiled model.
            ValueError: an option has a name that MuJoCo does not know, or a senseless value.
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
    """What a `Simulation` needs besides its model."""

    engine: Literal["auto", "native", "warp"] = "auto"
    """`native` is MuJoCo C on the CPU, `warp` is MuJoCo Warp; `auto` takes warp on CUDA devices."""
    num_threads: int = 0
    """Threads of the native engine; 0 takes every core that this process may use."""
    nconmax: int | None = None
    """Contacts to allocate per world on the warp engine; None tries out what the model meets."""
    njmax: int | None = None
    """Constraint rows to allocate per world on the warp engine; None tries out, too."""
    contact_sensor_maxmatch: int = 64
    """Contacts that a contact sensor can match on the warp engine; native has no such limit."""
    broadphase: Literal["nxn", "sap_tile", "sap_segmented"] | None = None
    """How the warp engine finds pairs of geoms that may touch; None lets MuJoCo Warp choose."""
    broadphase_filter: tuple[Literal["plane", "sphere", "aabb", "obb"], ...] | None = None
    """Tests that the warp engine's broadphase makes; None lets MuJoCo Warp choose."""
    ls_parallel: bool | None = None
    """Deprecated, without effect: MuJoCo Warp no longer has a parallel line search."""
    mujoco: MujocoCfg | None = field(default_factory=MujocoCfg)
    """Physics options for a `spec`, and for a `model` if any of them differs from its default;
    None keeps the model's own."""
    nan_guard: NanGuardCfg = field(default_factory=NanGuardCfg)
    """Recording of the last steps, written to a file when a world goes bad."""

    def apply_wp_opt(self, wp_opt: Any) -> None:
        """Write the options that only MuJoCo Warp has into its `Option`; None leaves its choice."""
        from manyworlds.sim.engines.warp import apply_options

        apply_options(wp_opt, self)
