"""Common behavior of sensors: laziness, periods, latency, noise, partial resets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, get_type_hints

import mujoco
import pytest
import torch

from manyworlds.sensor import (
    BuiltinSensorCfg,
    CameraSensorCfg,
    ContactMatch,
    ContactSensorCfg,
    GridPatternCfg,
    ObjRef,
    RayCastSensorCfg,
    Sensor,
    SensorCfg,
    TerrainHeightSensorCfg,
)
from manyworlds.sensor.sampling import Sampler, leaves
from manyworlds.signals import (
    ConstantNoiseCfg,
    GaussianNoiseCfg,
    NoiseModelWithAdditiveBiasCfg,
    UniformNoiseCfg,
)
from manyworlds.sim import Simulation
from manyworlds.utils.gl import gl_available
from manyworlds.utils.world_random import WorldRandom
from tests.sensor.scenes import BALL, build, entity

DT = 0.01


@dataclass
class Reading:
    """A clock, which world reads it, and something absent."""

    clock: torch.Tensor
    world: torch.Tensor
    absent: torch.Tensor | None = None


@dataclass(kw_only=True)
class ClockCfg(SensorCfg):
    """A user's own sensor."""

    num_envs: int = 3

    def build(self) -> Clock:
        """Make the sensor."""
        return Clock(self.num_envs)


class Clock(Sensor[Reading]):
    """Reads a clock that the test sets, and counts how often; never sees its configuration."""

    def __init__(self, num_envs: int) -> None:
        super().__init__()
        self.num_envs = num_envs
        self.now = 0.0
        self.computed = 0

    def edit_spec(self, scene_spec: mujoco.MjSpec, entities: dict) -> None:
        """Add nothing."""

    def initialize(self, mj_model: mujoco.MjModel, model: object, data: object, device: object):
        """Find nothing."""

    def _compute_data(self) -> Reading:
        self.computed += 1
        clock = torch.full((self.num_envs, 1), self.now)
        return Reading(clock, torch.arange(self.num_envs))


def clock(num_envs: int = 3, **options) -> Clock:
    """Build a clock in a scene."""
    cfg = ClockCfg(name="clock", num_envs=num_envs, **options)
    return build({"ball": entity(BALL)}, cfg, num_envs=num_envs)[0]["clock"]


def advance(sensor: Clock, steps: int = 1) -> None:
    """Let time go by."""
    for _ in range(steps):
        sensor.now += DT
        sensor.update(DT)


def read(sensor: Clock) -> list[float]:
    """Read the clock in each world."""
    return [round(value, 6) for value in sensor.data.clock[:, 0].tolist()]


@pytest.mark.parametrize("options", [{}, {"update_period": 0.05}, {"latency": 0.02}])
def test_nobody_who_reads_pays_nothing(options: dict):
    """Compute nothing until the first read, and then once between updates or resets."""
    sensor = clock(**options)
    advance(sensor, 20)
    sensor.reset()
    assert sensor.computed == 0
    first = sensor.data
    computed = sensor.computed
    assert sensor.data is first and sensor.computed == computed
    assert computed == 1
    if not options:
        advance(sensor, 3)
        assert sensor.data is not first and sensor.computed == 2
        sensor.reset(torch.tensor([1]))
        assert sensor.data.absent is None and sensor.computed == 3
        sensor.invalidate()
        assert sensor.data is not None and sensor.computed == 4


class ListModel:
    """Period and latency of one world, with plain lists."""

    def __init__(self, period: float, latency: float) -> None:
        self.period, self.latency = period, latency
        self.samples: list[tuple[float, float]] = []  # when, what

    def reset(self) -> None:
        """Begin a new episode."""
        self.samples = []

    def sample(self, time: float, value: float) -> None:
        """Take a sample if it is time to."""
        if not self.samples or time - self.samples[-1][0] >= max(self.period - 1e-7, 1e-9):
            self.samples.append((time, value))

    def read(self, time: float) -> float:
        """Deliver what is old enough, or the first sample."""
        old = [value for when, value in self.samples if time - when >= self.latency - 1e-7]
        return old[-1] if old else self.samples[0][1]


@pytest.mark.parametrize(
    ("period", "latency"),
    [pair for pair in product((0.0, 0.01, 0.025, 0.05), (0.0, 0.01, 0.025, 0.07)) if any(pair)],
)
def test_samples_are_those_of_a_list_of_them(period: float, latency: float):
    """Hold and delay as lists do, each world from its own resets, whenever it is read."""
    generator = torch.Generator().manual_seed(3)
    sensor = clock(update_period=period, latency=latency)
    models = [ListModel(period, latency) for _ in range(3)]
    time = 0.0
    expected = [0.0] * 3
    for step in range(200):
        if step:
            time += DT
            advance(sensor)
            for model in models:
                model.sample(time, time)
        if torch.rand((), generator=generator) < 0.1:
            world = int(torch.randint(3, (), generator=generator))
            mask = torch.arange(3) == world
            sensor.reset(mask if step % 2 else torch.tensor([world]))
            models[world].reset()
            # A world that was reset shows its new state, even within the same update.
            sensor.now += 0.001
        if step == 0 or torch.rand((), generator=generator) < 0.6:
            for world, model in enumerate(models):
                model.sample(time, sensor.now)
                expected[world] = model.read(time)
            assert read(sensor) == pytest.approx(expected, abs=1e-5)
        for model in models:
            # From here on the tests' clock and the sensor's agree again.
            model.samples = model.samples[-20:]
        sensor.now = time
    assert sensor.data.world.tolist() == [0, 1, 2]


def test_latency_is_drawn_by_each_world_at_reset():
    """Draw within the range; a reset draws again for the selected worlds only."""
    sensor = clock(num_envs=64, latency=(0.02, 0.06))
    for _ in range(10):
        read(sensor)
        advance(sensor)
    lag = 0.1 - torch.tensor(read(sensor))
    assert ((lag > 0.0199) & (lag < 0.0701)).all() and len(lag.unique()) >= 4
    sensor.reset(torch.arange(32))
    advance(sensor, 10)
    again = 0.2 - torch.tensor(read(sensor))
    torch.testing.assert_close(again[32:], lag[32:])
    assert not torch.allclose(again[:32], lag[:32], atol=1e-4)


def test_noise_is_put_on_new_samples_only():
    """Draw noise once a sample, on floating-point tensors, not again while it is held."""
    sensor = clock(update_period=0.03, noise=GaussianNoiseCfg(std=1.0))
    first = sensor.data.clock.clone()
    assert len(first.unique()) == 3 and sensor.data.world.tolist() == [0, 1, 2]
    advance(sensor, 2)
    assert torch.equal(sensor.data.clock, first)
    sensor.reset(torch.tensor([1]))
    second = sensor.data.clock.clone()
    assert torch.equal(second[[0, 2]], first[[0, 2]]) and second[1] != first[1]
    advance(sensor, 1)
    third = sensor.data.clock
    assert third[1] == second[1] and (third[[0, 2]] != second[[0, 2]]).all()


def test_noise_alone_is_drawn_when_it_is_read():
    """Add noise without a period: one draw an update, none by an unread update."""
    sensor = clock(noise=ConstantNoiseCfg(bias=5.0))
    assert read(sensor) == [5.0] * 3
    computed = sensor.computed
    advance(sensor, 7)
    assert sensor.computed == computed
    assert read(sensor) == pytest.approx([5.07] * 3)
    sensor.reset(torch.tensor([0]))
    assert read(sensor) == pytest.approx([5.07] * 3)


def test_a_noise_model_keeps_its_bias_until_its_world_is_reset():
    """Keep the bias of an episode; draw it again for the selected worlds."""
    noise = NoiseModelWithAdditiveBiasCfg(
        noise_cfg=ConstantNoiseCfg(bias=0.0), bias_noise_cfg=UniformNoiseCfg(n_min=1.0, n_max=2.0)
    )
    sensor = clock(noise=noise)
    bias = torch.tensor(read(sensor))
    advance(sensor)
    torch.testing.assert_close(torch.tensor(read(sensor)), bias + DT)
    sensor.reset(torch.tensor([2]))
    again = torch.tensor(read(sensor)) - DT
    torch.testing.assert_close(again[:2], bias[:2])
    assert abs(again[2] - bias[2]) > 1e-4


def test_noise_stays_on_the_fields_that_a_class_names():
    """Leave other fields as they are."""
    sensor = clock(noise=ConstantNoiseCfg(bias=1.0))
    type(sensor).noise_fields = ("world",)
    try:
        assert read(sensor) == [0.0] * 3
    finally:
        type(sensor).noise_fields = None


def test_state_goes_on_bit_for_bit():
    """Go on from a saved state in a sensor that was never read."""
    options = {"update_period": 0.02, "latency": (0.01, 0.04), "noise": GaussianNoiseCfg(std=0.1)}
    sensor, other = clock(**options), clock(**options)
    randoms = {sensor: WorldRandom(3, "cpu"), other: WorldRandom(3, "cpu")}
    for one, random in randoms.items():
        one.draw_from(random)
    for _ in range(9):
        read(sensor)
        advance(sensor)
    saved, drawn, now = sensor.state_dict(), randoms[sensor].state_dict(), sensor.now
    after = []
    for one in (sensor, other):
        if one is other:
            other.load_state_dict(saved)
            randoms[other].load_state_dict(drawn)
            other.now = now
        shown = []
        for step in range(12):
            advance(one)
            if step == 5:
                one.reset(torch.tensor([1]))
            shown.append(one.data.clock.clone())
        after.append(torch.stack(shown))
    assert after[0].unique().numel() > 10
    assert torch.equal(*after)
    unread = clock(**options).state_dict()
    sensor.load_state_dict(unread)
    assert sensor.state_dict()["sampler"] is None


def test_samples_survive_inference_mode():
    """Write, outside of inference mode, to samples that were first taken inside of it."""
    sensor = clock(update_period=0.02, noise=ConstantNoiseCfg(bias=1.0))
    with torch.inference_mode():
        read(sensor)
        advance(sensor)
    advance(sensor, 5)
    sensor.reset(torch.tensor([0]))
    assert len(read(sensor)) == 3


def test_sampling_never_reads_a_device():
    """Sample on a device whose values cannot be read, as if the host were to wait for it."""
    options = {"update_period": 0.02, "latency": (0.0, 0.04), "noise": GaussianNoiseCfg(std=0.1)}
    cfg = ClockCfg(name="clock", **options)
    like = Reading(torch.zeros(3, 1, device="meta"), torch.zeros(3, device="meta"))
    sampler = Sampler(cfg, None, like)
    for env_ids in (None, torch.arange(2, device="meta"), [1], slice(0, 2)):
        sampler.take(lambda: like)
        sampler.advance(0.01)
        sampler.reset(env_ids)
        assert sampler.deliver().clock.shape == (3, 1)


BALL_BODY = ObjRef("body", "b", "ball")
KINDS: dict[str, Callable[..., SensorCfg]] = {
    "builtin": partial(BuiltinSensorCfg, sensor_type="framepos", obj=BALL_BODY),
    "contact": partial(
        ContactSensorCfg,
        primary=ContactMatch("geom", "g", "ball"),
        fields=("found", "force", "dist"),
        track_air_time=True,
    ),
    "rays": partial(RayCastSensorCfg, frame=BALL_BODY, pattern=GridPatternCfg(size=(0.2, 0.2))),
    "heights": partial(TerrainHeightSensorCfg, frame=BALL_BODY),
    "camera": partial(CameraSensorCfg, width=24, height=16, data_types=("rgb", "depth")),
}


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_period_latency_and_noise(kind: str, request: pytest.FixtureRequest):
    """Show, besides a plain sensor, what that one showed when the sample delivered was taken."""
    if kind == "camera":
        request.getfixturevalue("gl")
    options = {"update_period": 0.02, "latency": 0.01, "noise": ConstantNoiseCfg(bias=0.5)}
    cfgs = [KINDS[kind](name="plain"), KINDS[kind](name="late", **options)]
    scene, sim = build({"ball": entity(BALL, (0.0, 0.0, 0.12))}, *cfgs, num_envs=2)
    plain, late = (scene.sensors[cfg.prefixed_name] for cfg in cfgs)
    sim.data.qvel[:, 0] = torch.tensor([0.5, 2.0])
    sim.forward()
    noisy = type(late).noise_fields
    shown: list[dict[str, torch.Tensor]] = []
    for step in range(12):
        shown.append({name: value.clone() for name, value in leaves(plain.data).items()})
        taken = max(0, (step - 2) // 4 * 4)  # a sample each 4 steps, which is 2 steps old or more
        for name, value in leaves(late.data).items():
            expected = shown[taken][name]
            if value.is_floating_point() and (noisy is None or name in noisy):
                expected = expected + 0.5
            torch.testing.assert_close(value, expected, rtol=0, atol=1e-5)
        sim.step()
        scene.update(0.005)
    assert any((shown[0][name] != shown[8][name]).any() for name in shown[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"update_period": -0.1}, "update_period is -0.1 s"),
        ({"latency": -0.1}, "latency is -0.1 s"),
        ({"latency": (0.2, 0.1)}, "min at most max"),
        ({"latency": float("inf")}, "latency is inf s: give a finite time"),
        ({"update_period": float("inf")}, "update_period is inf s: give a finite time"),
        ({"noise": 0.1}, "noise must be a NoiseCfg or a NoiseModelCfg, got 0.1"),
    ],
)
def test_options_are_checked(options: dict, message: str):
    """Refuse times that make no sense, and noise that is a number."""
    with pytest.raises((TypeError, ValueError), match=f"Sensor 'clock'.*{message}"):
        clock(**options)


def test_types_of_options_are_known_at_run_time():
    """Let the command line make options of a sensor's configuration."""
    assert type(None) in get_type_hints(SensorCfg)["noise"].__args__


CHANGES: dict[str, Callable[[Simulation, Any], Any]] = {
    "step": lambda sim, saved: sim.step(5),
    "forward": lambda sim, saved: sim.forward(),
    "forward some": lambda sim, saved: sim.forward([1]),
    "reset": lambda sim, saved: (sim.reset([1]), sim.forward([1])),
    "set_state": lambda sim, saved: sim.set_state(saved),
    "set_state some": lambda sim, saved: sim.set_state(sim.get_state([0]), [1]),
}


@pytest.mark.parametrize("noise", [None, ConstantNoiseCfg(bias=0.5)], ids=["plain", "noisy"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", KINDS)
def test_calls_of_the_simulation_renew_what_sensors_show(kind: str, change: str, noise: Any):
    """Show the new value after any call that changes worlds, though no time went by."""
    if kind == "camera" and (reason := gl_available()):
        pytest.skip(reason)
    cfg = KINDS[kind](name="seen", noise=noise)
    scene, sim = build({"ball": entity(BALL, (0.0, 0.0, 0.09))}, cfg, num_envs=2)
    sensor = scene.sensors[cfg.prefixed_name]
    sim.data.qpos[:, 2] = torch.tensor([0.4, 0.095])
    sim.forward()
    saved = sim.get_state()
    if change == "set_state":
        sim.data.qpos[:, 2] = torch.tensor([0.095, 0.095])
        sim.forward()
    before = {name: value.clone() for name, value in leaves(sensor.data).items()}
    sim.data.qpos[1, 2] = 0.55
    CHANGES[change](sim, saved)
    found = {name: value.clone() for name, value in leaves(sensor.data).items()}
    scene.reset()
    scene.invalidate_sensors()
    fresh = leaves(sensor.data)
    for name, value in found.items():
        assert torch.equal(value, fresh[name]), name
    assert any(not torch.equal(value, before[name]) for name, value in found.items())


def test_a_model_row_counts_after_forward():
    """Show what a written model field makes of a sensor, with noise too, once `forward` ran."""
    cfg = partial(BuiltinSensorCfg, sensor_type="e_potential")
    cfgs = [cfg(name="plain"), cfg(name="noisy", noise=ConstantNoiseCfg(bias=0.5))]
    scene, sim = build({"ball": entity(BALL, (0.0, 0.0, 1.0))}, *cfgs, num_envs=2)
    plain, noisy = (scene.sensors[cfg.prefixed_name] for cfg in cfgs)
    sim.data.qpos[:, 2] = 1.0
    sim.forward()
    weight = sim.mj_model.body_mass.sum()
    assert plain.data[:, 0].tolist() == pytest.approx([9.81 * weight] * 2)
    assert noisy.data[:, 0].tolist() == pytest.approx([9.81 * weight + 0.5] * 2)
    sim.model.opt.gravity[1, 2] = -1.0
    sim.forward([1])
    assert plain.data[:, 0].tolist() == pytest.approx([9.81 * weight, weight])
    assert noisy.data[:, 0].tolist() == pytest.approx([9.81 * weight + 0.5, weight + 0.5])
