"""Every option acts, or says at build that this engine has no such thing."""

from __future__ import annotations

import warnings

import mujoco
import pytest

from manyworlds.sim import MujocoCfg, Simulation, SimulationCfg
from tests.scenes import CLUTTER, HINGE


def _make(xml: str = HINGE, **options) -> Simulation:
    options.setdefault("mujoco", None)
    return Simulation(2, SimulationCfg(**options), mujoco.MjModel.from_xml_string(xml), "cpu")


WARP_ONLY = {
    "nconmax": 10,
    "njmax": 20,
    "broadphase": "sap_tile",
    "broadphase_filter": ("plane", "aabb"),
    "contact_sensor_maxmatch": 8,
}


@pytest.mark.parametrize("name", WARP_ONLY)
def test_native_refuses_what_it_does_not_have(name: str):
    """Raise where native was asked for, and warn where the same configuration is for both."""
    message = f"SimulationCfg.{name} is an option of the warp engine, got .*native engine"
    with pytest.raises(ValueError, match=message):
        _make(engine="native", **{name: WARP_ONLY[name]})
    with pytest.warns(UserWarning, match=message):
        _make(engine="auto", **{name: WARP_ONLY[name]})


def test_defaults_are_quiet():
    """Build without a warning from the defaults."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _make(engine="native", mujoco=MujocoCfg())


@pytest.mark.parametrize("value", [True, False])
def test_parallel_line_search_is_deprecated(value: bool):
    """Warn for an option that MuJoCo Warp has dropped, whatever its value."""
    with pytest.warns(DeprecationWarning, match="ls_parallel is deprecated"):
        _make(engine="native", ls_parallel=value)


@pytest.mark.slow
def test_warp_options_reach_mujoco_warp():
    """Hand the options to MuJoCo Warp, and leave its own choice where there are none."""
    mjw = pytest.importorskip("mujoco_warp")
    import warp as wp

    wp.config.optimization_level, before = 0, wp.config.optimization_level
    try:
        sim = _make(CLUTTER, engine="warp", **WARP_ONLY)
        plain = _make(CLUTTER, engine="warp")
    finally:
        wp.config.optimization_level = before
    opt = sim.wp_model.opt
    assert opt.broadphase == mjw.BroadphaseType.SAP_TILE
    assert opt.broadphase_filter == mjw.BroadphaseFilter.PLANE | mjw.BroadphaseFilter.AABB
    assert opt.contact_sensor_maxmatch == 8
    assert sim.wp_data.njmax == 20
    assert sim.wp_data.naconmax == 2 * 10
    assert plain.wp_model.opt.broadphase == mjw.BroadphaseType.NXN
    assert plain.wp_model.opt.contact_sensor_maxmatch == 64


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_threads": -1}, "SimulationCfg.num_threads must be at least 0, got -1"),
        ({"nconmax": -5}, "SimulationCfg.nconmax must be at least 0, got -5"),
        ({"contact_sensor_maxmatch": 0}, "contact_sensor_maxmatch must be at least 1, got 0"),
        ({"broadphase": "fast"}, "broadphase must be one of nxn, .*, got 'fast'"),
        ({"broadphase_filter": ("box",)}, "broadphase_filter must be one of plane, .*got 'box'"),
        (
            {"mujoco": MujocoCfg(timestep=-0.002)},
            "timestep must be positive and finite, got -0.002",
        ),
        ({"mujoco": MujocoCfg(timestep=0.0)}, "timestep must be positive and finite, got 0.0"),
        ({"mujoco": MujocoCfg(timestep=float("nan"))}, "timestep must be positive .* got nan"),
        ({"mujoco": MujocoCfg(impratio=0.0)}, "impratio must be positive and finite, got 0.0"),
        ({"mujoco": MujocoCfg(tolerance=-1e-8)}, "tolerance must not be negative, got -1e-08"),
        ({"mujoco": MujocoCfg(iterations=-1)}, "MujocoCfg.iterations must be at least 0, got -1"),
        ({"mujoco": MujocoCfg(gravity=(0.0, -9.81))}, "gravity must be three finite numbers"),  # type: ignore[arg-type]
    ],
)
def test_senseless_value_raises_at_build(options, message: str):
    """Name the option, its value and the bound."""
    with pytest.raises(ValueError, match=message):
        _make(**options)


def test_model_without_passing_time_raises():
    """Refuse a bare model whose own timestep is not positive."""
    model = mujoco.MjModel.from_xml_string(HINGE)
    model.opt.timestep = -0.002
    with pytest.raises(ValueError, match="opt.timestep must be positive and finite, got -0.002"):
        Simulation(1, model=model, device="cpu")


def test_every_mujoco_option_reaches_the_model():
    """Write each option of the configuration into the model that is stepped."""
    values = dict(
        timestep=0.003,
        integrator="euler",
        impratio=2.0,
        cone="elliptic",
        jacobian="sparse",
        solver="cg",
        iterations=7,
        tolerance=1e-5,
        ls_iterations=9,
        ls_tolerance=0.02,
        ccd_iterations=11,
        gravity=(0.1, 0.2, -3.0),
        disableflags=("contact",),
        enableflags=("energy",),
    )
    assert values.keys() == {*MujocoCfg.__dataclass_fields__}
    opt = _make(engine="native", mujoco=MujocoCfg(**values)).mj_model.opt  # type: ignore[arg-type]
    usual = Simulation(1, spec=mujoco.MjSpec.from_string(HINGE), device="cpu").mj_model.opt
    for name, value in values.items():
        shown = getattr(opt, name)
        if isinstance(value, int | float):
            assert shown == value, name
        elif name == "gravity":
            assert shown.tolist() == list(values["gravity"])
        else:
            assert shown != getattr(usual, name), name


def test_a_compiled_model_keeps_its_options_unless_some_are_given():
    """Leave a file's physics alone when only the engine is configured."""
    model = mujoco.MjModel.from_xml_string(HINGE)
    model.opt.timestep, model.opt.gravity[2] = 0.01, 0.0
    kept = Simulation(1, SimulationCfg(num_threads=1), model, "cpu").mj_model.opt
    assert (kept.timestep, kept.gravity[2]) == (0.01, 0.0)
    given = SimulationCfg(mujoco=MujocoCfg(iterations=7))
    assert Simulation(1, given, model, "cpu").mj_model.opt.timestep == 0.002
