"""Latencies and periods of sensors in environments, to the physics step."""

from __future__ import annotations

import copy
import math
import warnings
from typing import Any

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.actuator import BuiltinPositionActuatorCfg
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg, mdp
from manyworlds.managers import MetricsTermCfg, ObservationGroupCfg, ObservationTermCfg
from manyworlds.scene import SceneCfg
from manyworlds.sensor import BuiltinSensorCfg, GridPatternCfg, ObjRef, RayCastSensorCfg, SensorCfg
from manyworlds.sim import MujocoCfg, SimulationCfg

DT, DECIMATION, STEPS = 0.005, 4, 6
ARM = """
<mujoco><worldbody>
  <geom name="ground" type="plane" size="5 5 .1" pos="0 0 -2"/>
  <body name="arm">
    <joint name="hinge" axis="0 1 0" damping=".01"/>
    <geom type="capsule" fromto="0 0 0 .5 0 0" size=".02"/>
    <site name="tip" pos=".5 0 0"/>
  </body>
</worldbody></mujoco>
"""
MOTOR = """
<mujoco><worldbody>
  <body pos="0 3 0"><joint name="wheel" axis="0 1 0"/><geom size=".1"/></body>
</worldbody></mujoco>
"""
TIP = ObjRef("site", "tip", "arm")


def arm(**options: Any) -> list[SensorCfg]:
    """Configure a sensor of the tip's position, its velocity, and its height by a ray."""
    pattern = GridPatternCfg(size=(0.0, 0.0), resolution=1.0)
    return [
        BuiltinSensorCfg(name="pos", sensor_type="framepos", obj=TIP, **options),
        BuiltinSensorCfg(name="vel", sensor_type="framelinvel", obj=TIP, **options),
        RayCastSensorCfg(name="ray", frame=TIP, pattern=pattern, ray_alignment="world", **options),
    ]


def make_env(delay: int, **options: Any) -> ManagerBasedRlEnv:
    """Build an arm that falls, beside a motor of an entity of its own with a delay."""
    wheel = BuiltinPositionActuatorCfg(
        target_names_expr=("wheel",), stiffness=1.0, damping=0.1, delay_max_lag=delay
    )
    entities = {
        "arm": EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_string(ARM)),
        "motor": EntityCfg(
            spec_fn=lambda: mujoco.MjSpec.from_string(MOTOR),
            articulation=EntityArticulationInfoCfg(actuators=(wheel,)),
        ),
    }
    sensors = arm(**options)
    terms = {cfg.name: ObservationTermCfg(func=_read, params={"name": cfg.name}) for cfg in sensors}
    action = mdp.JointPositionActionCfg(entity_name="motor", actuator_names=("wheel",))
    return ManagerBasedRlEnv(
        ManagerBasedRlEnvCfg(
            decimation=DECIMATION,
            episode_length_s=100.0,
            seed=1,
            scene=SceneCfg(num_envs=2, env_spacing=0.0, entities=entities, sensors=tuple(sensors)),
            sim=SimulationCfg(mujoco=MujocoCfg(timestep=DT)),
            actions={"wheel": action},
            observations={"all": ObservationGroupCfg(terms=terms)},
        )
    )


def _read(env: ManagerBasedRlEnv, name: str) -> torch.Tensor:
    sensor = env.scene[next(key for key in env.scene.sensors if key.rpartition("/")[2] == name)]
    return sensor.data if isinstance(sensor.data, torch.Tensor) else sensor.data.distances


def history(env: ManagerBasedRlEnv) -> np.ndarray:
    """Return what the sensors show at the time of each physics step, by plain MuJoCo."""
    model = env.sim.mj_model
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    rows = []
    for _ in range(STEPS * DECIMATION + 1):
        mujoco.mj_forward(model, data)
        pos, vel = (data.sensor(f"arm/{name}").data for name in ("pos", "vel"))
        rows.append([*pos, *vel, pos[2] + 2.0])
        mujoco.mj_step(model, data)
    return np.array(rows)


def observed(env: ManagerBasedRlEnv) -> list[np.ndarray]:
    """Return the observations of world 0 after the reset and after each control step."""
    first = env.obs_buf["all"]
    later = [env.step(torch.zeros(2, 1))[0]["all"] for _ in range(STEPS)]
    return [group[0].numpy().copy() for group in (first, *later)]


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("delay", [0, 3])
@pytest.mark.parametrize("latency", [0.005, 0.007, 0.01, 0.02, 0.025, 0.04])
def test_latencies_are_exact_to_the_physics_step(latency: float, delay: int):
    """Delay by whole and broken physics and control steps: the state is the one of that time."""
    env = make_env(delay, latency=latency)
    seen, expected = observed(env), history(env)
    late = math.ceil(latency / DT - 1e-6)
    for step, row in enumerate(seen):
        np.testing.assert_allclose(row, expected[max(0, step * DECIMATION - late)], atol=2e-5)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("delay", [0, 3])
@pytest.mark.parametrize("period", [0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04])
def test_periods_are_exact_to_the_physics_step(period: float, delay: int):
    """Hold samples for a period: the last one is of its multiple, also between control steps."""
    env = make_env(delay, update_period=period)
    seen, expected = observed(env), history(env)
    every = round(period / DT)
    for step, row in enumerate(seen):
        taken = step * DECIMATION // every * every
        np.testing.assert_allclose(row, expected[taken], atol=2e-5)


@pytest.mark.parametrize("options", [{"latency": 0.01, "update_period": 0.02}, {"latency": 0.04}])
def test_samples_at_control_steps_need_no_updates_between_them(options: dict[str, float]):
    """Step the physics at once where samples of control steps are enough."""
    env = make_env(0, **options)
    assert not env.scene.needs_substeps
    calls = []
    step = env.sim.step
    env.sim.step = lambda *args, **kwargs: calls.append((args, kwargs)) or step(*args, **kwargs)
    observed(env)
    assert calls == [((DECIMATION,), {"refresh": True})] * STEPS


def test_fields_are_refreshed_for_samples_only():
    """Refresh before the samples between control steps, and not before other physics steps."""
    env = make_env(0, update_period=0.015)
    flags = []
    step = env.sim.step
    env.sim.step = lambda refresh: flags.append(refresh) or step(refresh=refresh)
    observed(env)
    times = range(1, STEPS * DECIMATION + 1)
    assert flags == [time % 3 == 0 or time % DECIMATION == 0 for time in times]


@pytest.mark.parametrize("delay", [0, 3])
def test_drawn_latencies_are_those_of_each_world(delay: int):
    """Draw latencies from a range: each world shows the state of its own time."""
    torch.manual_seed(0)
    env = make_env(delay, latency=(0.0, 0.03))
    latencies = env.scene["arm/pos"]._sampler._latency
    expected = history(env)
    for step in range(1, STEPS + 1):
        rows = env.step(torch.zeros(2, 1))[0]["all"][:, :3].numpy()
        for world in range(2):
            late = math.ceil(float(latencies[world]) / DT - 1e-6)
            at = max(0, step * DECIMATION - late)
            np.testing.assert_allclose(rows[world], expected[at, :3], atol=2e-5)


def test_terms_that_read_between_control_steps_see_the_latency():
    """Read a sensor after each physics step: it shows the state of two physics steps before."""
    seen: list[float] = []

    def look(env: ManagerBasedRlEnv) -> torch.Tensor:
        seen.append(float(_read(env, "pos")[0, 2]))
        return torch.zeros(2)

    env = make_env(0, latency=2 * DT)
    cfg = env.cfg
    cfg.metrics = {"look": MetricsTermCfg(func=look, per_substep=True)}
    env = ManagerBasedRlEnv(cfg)
    seen.clear()
    observed(env)
    expected = history(env)
    heights = [expected[max(0, time - 2), 2] for time in range(1, STEPS * DECIMATION + 1)]
    np.testing.assert_allclose(seen, heights, atol=2e-5)


def test_samples_that_begin_late_begin_at_control_steps():
    """Read a sensor in rewards only: its first sample is of a control step, with any actuator."""
    found = []
    for delay in (0, 3):
        env = make_env(delay, update_period=0.04)
        env.reset()
        for sensor in env.scene.sensors.values():
            sensor.reset()
        found.append(observed(env)[1:])
    np.testing.assert_allclose(*found, atol=2e-5)
    expected = history(env)
    np.testing.assert_allclose(found[0][0], expected[DECIMATION], atol=2e-5)


def begin(env: ManagerBasedRlEnv, action: torch.Tensor) -> None:
    """Make two of the four physics steps of a control step."""
    stages = env.substeps(action)
    assert [next(stages) for _ in range(4)] == ["controls", "physics"] * 2


@pytest.mark.parametrize("options", [{"update_period": 0.04}, {"latency": 0.01}])
def test_a_state_between_control_steps_is_continued(options: dict[str, float]):
    """Save after two of four physics steps, without a warning: samples go on bit for bit."""
    env = make_env(3, **options)
    action = torch.zeros(2, 1)
    env.step(action)
    begin(env, action)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        saved = copy.deepcopy(env.state_dict())
    shown = []
    for _ in range(2):
        env.load_state_dict(saved)
        for _ in env.substeps(None, done=2):
            pass
        rows = [env.obs_buf["all"], *(env.step(action)[0]["all"] for _ in range(4))]
        shown.append(torch.stack(rows))
    assert torch.equal(*shown) and shown[0].unique(dim=0).shape[0] > 2


def test_a_reset_between_control_steps_begins_a_control_step():
    """Reset after two of four physics steps: the samples of the new episode are as ever."""
    env = make_env(3, update_period=0.04)
    begin(env, torch.zeros(2, 1))
    env.reset()
    seen, expected = observed(env), history(env)
    for step, row in enumerate(seen):
        np.testing.assert_allclose(row, expected[step // 2 * 2 * DECIMATION], atol=2e-5)
