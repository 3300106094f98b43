"""Worlds that become another variant: the same draws then apply to that variant's values."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.actuator import XmlMotorActuatorCfg, XmlPositionActuatorCfg
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg, VariantEntityCfg
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.envs.mdp import dr
from manyworlds.managers import EventTermCfg, SceneEntityCfg
from manyworlds.scene import SceneCfg
from manyworlds.sim import RecomputeLevel, SimulationCfg
from manyworlds.sim.fields.model_fields import MODEL_FIELD_TABLE
from manyworlds.terrains import TerrainEntityCfg
from tests.envs.mdp.dr.robot import XML

ROBOT = SceneEntityCfg("robot")
DRIFT = dr.Operation("drift", torch.zeros_like, torch.add, uses_defaults=False)
POWER = dr.Operation("power", torch.ones_like, torch.pow, uses_defaults=True)
ANGLES = {"roll_range": (-0.2, 0.2), "yaw_range": (-0.5, 0.5)}
GAINS = {"kp_range": (0.5, 1.5), "kd_range": (2.0, 3.0)}
DRIVES = (
    '<actuator><position name="loose" joint="loose" kp="20" kv="1" forcerange="-4 4" gear="2"/>'
    '<motor name="finger" joint="finger" ctrlrange="-3 2" forcerange="-3 2"/>'
)

# What each function is called with; those that are not here take `ranges` only.
PARAMS: dict[str, tuple[dict[str, Any], ...]] = {
    "geom_friction": (
        {"ranges": (0.4, 1.3)},
        {"ranges": (0.4, 1.3), "operation": "scale", "shared_random": True},
        {"ranges": {1: (0.1, 0.2)}, "operation": "add"},
        {"ranges": {"tip": (0.5, 2.0)}, "operation": POWER, "distribution": "log_uniform"},
        {"ranges": (0.1, 0.2), "operation": DRIFT},
    ),
    "geom_size": ({"ranges": (0.8, 1.2)},),
    "geom_matid": ({}, {"shared_random": True}),
    "mat_texid": ({},),
    "pd_gains": (GAINS, {**GAINS, "operation": "abs"}),
    "effort_limits": (
        {"effort_limit_range": (0.5, 1.5)},
        {"effort_limit_range": (1.0, 2.0), "operation": "abs"},
    ),
    "pseudo_inertia": (
        {"alpha_range": (-0.2, 0.2), "s12_range": (0.1, 0.2), "t_range": (0, 0.01)},
    ),
    "pair_friction": ({"ranges": (0.5, 0.9), "isotropic": True},),
    "cam_fovy": ({"ranges": (40.0, 60.0)},),
}


def usual_params(function: Any) -> dict[str, Any]:
    """Return parameters for a function of one field, within the bounds of the field."""
    if "yaw_range" in inspect.signature(function).parameters:
        return ANGLES
    bounds = MODEL_FIELD_TABLE[function.model_fields[0]].bounds
    if bounds.ordered:
        return {"ranges": {0: (0.8, 1.0), 1: (1.0, 1.2)}}
    return {"ranges": (0.6, 1.0) if bounds.high == 1.0 else (0.8, 1.2)}


def function_cases() -> list[tuple[str, dict[str, Any]]]:
    """Name every function that changes a model field, with parameters."""
    cases: list[tuple[str, dict[str, Any]]] = []
    for name in dr.__all__:
        function = getattr(dr, name)
        fields = getattr(function, "model_fields", ())
        if not fields or fields[0].startswith("opt."):  # options belong to no variant
            continue
        usual = usual_params(function)
        cases += [(name, params) for params in PARAMS.get(name, (usual,))]
    return cases


def grow(factor: float) -> Callable[[], mujoco.MjSpec]:
    """Return a function that makes the robot, in which nearly all numbers are another."""

    def make() -> mujoco.MjSpec:
        spec = mujoco.MjSpec.from_string(XML.replace("<actuator>", DRIVES))
        turn = np.zeros(4)
        mujoco.mju_axisAngle2Quat(turn, np.array([0.0, 0.0, 1.0]), 0.1 * factor)
        for geom in spec.geoms:
            geom.size = geom.size * factor
            geom.fromto = geom.fromto * factor
            if not np.isfinite(geom.fromto).all():
                geom.pos = geom.pos + 0.01 * factor
            geom.friction = geom.friction * factor
            geom.rgba = (0.3 * factor, 0.2, 0.1, 1.0)
        for body in spec.bodies[2:]:
            body.pos = body.pos * factor
            body.gravcomp = 0.1 * factor
            body.alt.type, body.quat = mujoco.mjtOrientation.mjORIENTATION_QUAT, turn
        for joint in spec.joints[1:]:
            joint.damping = joint.damping * factor + 0.1 * factor
            joint.armature = 0.02 * factor
            joint.frictionloss = 0.05 * factor
            joint.stiffness = joint.stiffness * factor + 1.0 * factor
            joint.range = joint.range * factor
            joint.margin = 0.01 * factor
            joint.ref = 0.01 * factor
        for site in spec.sites:
            site.pos, site.quat = site.pos * factor, turn
        for camera in spec.cameras:
            camera.alt.type, camera.quat = mujoco.mjtOrientation.mjORIENTATION_QUAT, turn
            camera.pos = camera.pos * factor
            camera.focal_length = camera.focal_length * factor
        for light in spec.lights:
            for name in ("pos", "dir", "diffuse", "specular", "ambient", "attenuation"):
                setattr(light, name, getattr(light, name) * factor + 0.01 * factor)
            light.cutoff, light.exponent = 40.0 * factor, 8.0 * factor
        for tendon in spec.tendons:
            for name in ("stiffness", "damping"):
                getattr(tendon, name)[:] = getattr(tendon, name) * factor
            for name in ("armature", "frictionloss", "margin"):
                setattr(tendon, name, getattr(tendon, name) * factor)
            tendon.range = tendon.range * factor
            tendon.springlength = tendon.springlength * factor
        for pair in spec.pairs:
            pair.friction = pair.friction * factor
        for actuator in spec.actuators:
            actuator.gear = actuator.gear * factor
            actuator.gainprm = actuator.gainprm * factor
            actuator.biasprm = actuator.biasprm * factor
            actuator.dynprm = actuator.dynprm * factor
            actuator.ctrlrange = actuator.ctrlrange * (factor, 0.5 * factor)
            actuator.forcerange = actuator.forcerange * (factor, 0.7 * factor)
            actuator.actrange = actuator.actrange * factor
        return spec

    return make


def make_env(
    variants: list[int], engine: str = "native", bystander: bool = False, **events: EventTermCfg
) -> ManagerBasedRlEnv:
    """Build an environment whose worlds hold the variants named; events do not end with resets."""
    drives = tuple(
        kind(target_names_expr=(name,))
        for kind, name in ((XmlPositionActuatorCfg, "loose"), (XmlMotorActuatorCfg, "finger"))
    )
    robot = VariantEntityCfg(
        variants={"small": grow(1.0), "large": grow(1.1), "huge": grow(1.25)},
        assignment=lambda count: variants,
        articulation=EntityArticulationInfoCfg(actuators=drives),
    )
    entities: dict[str, EntityCfg] = {"robot": robot}
    if bystander:
        entities["other"] = EntityCfg(spec_fn=grow(1.0))
    scene = SceneCfg(num_envs=len(variants), entities=entities, terrain=TerrainEntityCfg())
    sim = SimulationCfg(engine=engine)  # type: ignore[arg-type]
    cfg = ManagerBasedRlEnvCfg(decimation=1, scene=scene, sim=sim, seed=3, events=dict(events))
    return ManagerBasedRlEnv(cfg, device="cpu")


def term(func: Any, mode: str = "startup", **params: Any) -> EventTermCfg:
    """Configure an event."""
    if "asset_cfg" in inspect.signature(func).parameters:
        params.setdefault("asset_cfg", ROBOT)
    interval = {"interval_range_s": (10.0, 10.0)} if mode == "interval" else {}
    return EventTermCfg(func=func, mode=mode, params=params, **interval)  # type: ignore[arg-type]


def rows(env: ManagerBasedRlEnv) -> dict[str, np.ndarray]:
    """Copy the model rows of all worlds, in the engine's own precision."""
    state = env.sim.get_state()
    return {key: value.numpy() for key, value in state.items() if key.startswith("model.")}


def assert_same_rows(ours: ManagerBasedRlEnv, theirs: ManagerBasedRlEnv) -> None:
    """Compare all model rows: bit for bit where the engine is, else in single precision."""
    expected = rows(theirs)
    for field, values in rows(ours).items():
        assert_same(ours, values, expected[field], field)


def assert_same(env: ManagerBasedRlEnv, ours: Any, theirs: Any, what: str) -> None:
    """Compare values as exactly as the engine computes them."""
    exact = env.sim.is_bit_exact
    rtol, atol = (0.0, 0.0) if exact else (2e-5, 1e-6)
    np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol, err_msg=what)


@pytest.mark.parametrize("engine", ["native", pytest.param("warp", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "params"), function_cases())
@pytest.mark.filterwarnings("ignore:dr.body_mass")
def test_every_function_applies_again(name, params, engine):
    """Swap variants after draws: rows are as if the world had always held its variant."""
    always = make_env([1, 0, 2], engine, draw=term(getattr(dr, name), **params))
    env = make_env([0, 0, 1], engine, draw=term(getattr(dr, name), **params))
    untouched = {field: values[1].copy() for field, values in rows(env).items()}
    env.sim.assign_variants("robot", [0, 2], [1, 2])
    assert_same_rows(env, always)
    ours, theirs = (each.scene["robot"] for each in (env, always))
    for field in ("default_joint_pos", "joint_pos_limits", "soft_joint_pos_limits"):
        torch.testing.assert_close(getattr(ours.data, field), getattr(theirs.data, field))
    for mine, other in zip(ours.actuators, theirs.actuators, strict=True):
        for param in mine.param_names:
            assert_same(env, mine.get_param(param), other.get_param(param), param)
            assert_same(env, mine.default_param(param), other.default_param(param), param)
    for field, values in rows(env).items():
        np.testing.assert_array_equal(values[1], untouched[field], err_msg=field)


def test_the_variants_differ_in_what_is_drawn():
    """Own the fields of every function but those of assets; else the test above shows nothing."""
    own = make_env([0]).sim.variant_fields("robot")
    for name, _ in function_cases():
        fields = getattr(dr, name).model_fields
        assert own & {*fields} or fields[0].startswith("mat_"), name


@pytest.mark.parametrize("engine", ["native", "warp"])
@pytest.mark.filterwarnings("ignore:dr.body_mass")
def test_all_functions_apply_again_in_their_order(engine):
    """Let functions draw on top of each other, some of them at resets, and swap in between."""
    names = ("pseudo_inertia", "body_mass", "geom_friction", "geom_size", "joint_default_pos")
    names += ("geom_quat", "joint_limits", "dof_armature", "pd_gains", "effort_limits", "body_quat")
    cases = [case for case in function_cases() if case[0] in names]
    events = {
        f"{name}_{i}": term(getattr(dr, name), "reset" if i % 3 else "startup", **params)
        for i, (name, params) in enumerate(cases)
    }
    always = make_env([1, 0, 2], engine, **events)
    env = make_env([0, 0, 1], engine, **events)
    env.sim.assign_variants("robot", None, [2, 0, 1])
    for each in (env, always):
        each.reset(seed=7, env_ids=torch.tensor([1, 2]))
    env.sim.assign_variants("robot", None, [1, 0, 2])
    assert_same_rows(env, always)


@pytest.mark.parametrize("engine", ["native", "warp"])
def test_constants_follow_draws_that_variants_do_not_own(engine):
    """Keep what was drawn of a field in which variants are alike, and what derives from it."""

    def weighted(density: float) -> Callable[[], mujoco.MjSpec]:
        def make() -> mujoco.MjSpec:
            spec = mujoco.MjSpec.from_string(XML)
            spec.geom("upper").density = density
            return spec

        return make

    robot = VariantEntityCfg(variants={"light": weighted(500.0), "heavy": weighted(3000.0)})
    draw = term(dr.joint_armature, ranges=(0.5, 0.9))
    cfg = ManagerBasedRlEnvCfg(
        decimation=1,
        scene=SceneCfg(num_envs=2, entities={"robot": robot}, terrain=TerrainEntityCfg()),
        sim=SimulationCfg(engine=engine),  # type: ignore[arg-type]
        events={"draw": draw},
    )
    env = ManagerBasedRlEnv(cfg, device="cpu")
    assert "dof_armature" not in env.sim.variant_fields("robot")
    armature = env.sim.model.dof_armature.clone()
    env.sim.assign_variants("robot", [0], [1])
    assert torch.equal(env.sim.model.dof_armature, armature)
    before = env.sim.model.dof_invweight0.clone()
    env.sim.recompute_constants(RecomputeLevel.set_const)
    torch.testing.assert_close(env.sim.model.dof_invweight0, before, rtol=1e-6, atol=0)
