"""Sensors in a scene and in an environment."""

from __future__ import annotations

import copy

import mujoco
import pytest
import torch

from manyworlds.entity import EntityCfg
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.managers import ObservationGroupCfg, ObservationTermCfg
from manyworlds.scene import Scene, SceneCfg
from manyworlds.sensor import BuiltinSensorCfg, ContactMatch, ContactSensorCfg, ObjRef, SensorCfg
from manyworlds.signals import GaussianNoiseCfg
from manyworlds.sim import Simulation, SimulationCfg
from tests.sensor.scenes import BALL, add_floor, build, entity, heap

GYRO = '<gyro name="gyro" site="imu"/>'


def imu(name: str = "imu", sensor_type: str = "gyro", **options) -> BuiltinSensorCfg:
    """Configure a sensor at the robot's IMU."""
    obj = ObjRef("site", "imu", "robot")
    return BuiltinSensorCfg(name=name, sensor_type=sensor_type, obj=obj, **options)


@pytest.mark.usefixtures("engine")
def test_sensors_of_models_are_found_by_entity_and_name():
    """Show a sensor that an entity's model declares, and read it."""
    scene, sim = build({"robot": entity(heap(GYRO))}, imu(), num_envs=2)
    assert set(scene.sensors) == {"robot/gyro", "robot/imu"}
    sim.data.qvel[:, 3:6] = torch.tensor([[0.0, 0.0, 1.0], [0.0, 2.0, 0.0]])
    sim.forward()
    assert scene["robot/gyro"].data[1, 1] == pytest.approx(2.0)
    assert torch.equal(scene["robot/gyro"].data, scene["robot/imu"].data)
    assert scene["imu"] is scene["robot/imu"]
    with pytest.raises(KeyError, match=r"Scene element 'x' not found. Available: \['robot', 'rob"):
        scene["x"]


def test_sensors_that_are_left_out_cannot_be_read():
    """Keep one of two sensors of a model: the other is not computed, and reading it says so."""
    both = GYRO + '<accelerometer name="acc" site="imu"/>'
    states = []
    for kept in (None, ("robot/gyro",)):
        cfg = SceneCfg(num_envs=2, entities={"robot": entity(heap(both))}, kept_sensors=kept)
        scene = Scene(cfg, "cpu")
        sim = Simulation(2, SimulationCfg(engine="native"), spec=scene.spec, device="cpu")
        scene.initialize(sim.mj_model, sim.model, sim.data)
        sim.data.qvel[:, 3] = 1.0
        sim.step(20)
        states.append((sim.get_state()["state"], scene["robot/gyro"].data.clone()))
        assert sim.mj_model.nsensor == (2 if kept is None else 1)
    for one, two in zip(*states, strict=True):
        assert torch.equal(one, two)
    assert "robot/acc" not in scene.sensors
    with pytest.raises(KeyError, match="'robot/acc' is left out of the scene: add it to SceneCfg"):
        scene["robot/acc"]
    with pytest.raises(ValueError, match=r"kept_sensors names \['robot/giro'\].*choose from"):
        Scene(SceneCfg(entities={"robot": entity(heap(both))}, kept_sensors=("robot/giro",)))


def test_one_name_is_one_sensor():
    """Refuse a name that the model or the configuration has already."""
    with pytest.raises(ValueError, match="'robot/gyro' is defined in both entity XML and scene co"):
        build({"robot": entity(heap(GYRO))}, imu("gyro"))
    with pytest.raises(ValueError, match="Two sensors are called 'robot/imu'"):
        build({"robot": entity(heap())}, imu(), imu())


def test_sensors_win_over_entities():
    """Return the sensor where it has an entity's name."""
    contact = ContactSensorCfg(name="robot", primary=ContactMatch("geom", "toe", "robot"))
    scene, _ = build({"robot": entity(heap())}, contact)
    assert scene["robot"] is scene.sensors["robot"]


def test_a_configuration_serves_twice_and_stays_as_it_is():
    """Build two scenes from one configuration, with the same names."""
    cfg = SceneCfg(entities={"robot": entity(heap())}, sensors=(imu(),), spec_fn=add_floor)
    before = copy.deepcopy(cfg.sensors)
    names = [list(Scene(cfg, "cpu").sensors) for _ in range(2)]
    assert names == [["robot/imu"]] * 2 and cfg.sensors == before


def test_sensors_are_added_after_what_spec_fn_adds():
    """Attach a sensor to a site that spec_fn made, and show a sensor that it made."""

    def edit(spec: mujoco.MjSpec) -> None:
        spec.worldbody.add_site(name="beacon", pos=(1, 2, 3))
        spec.add_sensor(name="time", type=mujoco.mjtSensor.mjSENS_CLOCK)

    beacon = BuiltinSensorCfg(name="b", sensor_type="framepos", obj=ObjRef("site", "beacon"))
    scene = Scene(SceneCfg(sensors=(beacon,), spec_fn=edit), "cpu")
    assert list(scene.sensors) == ["time", "b"] and scene.compile().nsensordata == 4


class Foreign:
    """A sensor that keeps the protocol without the base class, and without a configuration."""

    requires_sensor_context = False
    needs_substeps = True
    cfg = None

    def __init__(self) -> None:
        self.log: list[str] = []

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *args, **kwargs: self.log.append(name)

    def state_dict(self) -> dict:
        """Nothing to save."""
        return {}


class ForeignCfg(SensorCfg):
    """Makes one."""

    def build(self) -> Foreign:
        """Make the sensor."""
        return Foreign()


@pytest.mark.usefixtures("engine")
def test_any_sensor_of_the_protocol_is_served():
    """Call a sensor that is no subclass as any other, and give it its configuration."""
    scene, _ = build({"ball": entity(BALL)}, ForeignCfg(name="mine"))
    sensor = scene["mine"]
    scene.reset()
    scene.update(0.1)
    assert scene.needs_substeps and sensor.cfg.name == "mine"
    assert [call for call in sensor.log if call != "invalidate"] == [
        "edit_spec",
        "initialize",
        "reset",
        "update",
    ]
    assert scene.state_dict()["sensors"] == {"mine": {}}


def test_a_sensor_of_the_protocol_may_keep_what_no_checkpoint_holds():
    """Warn of it as of any sensor's."""
    env = environment(ForeignCfg(name="mine"), func=lambda env: env.sim.data.qpos[:, :1])
    env.step(torch.zeros(env.num_envs, 0))
    with pytest.warns(UserWarning, match=r"Foreign\.log of env\.scene\.sensors\['mine'\]"):
        env.state_dict()


def force_history(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Observe the newest forces."""
    return env.scene["contact"].data.force_history.flatten(1)


def environment(*sensors: SensorCfg, func=force_history) -> ManagerBasedRlEnv:
    """Make an environment of a falling ball."""
    ball = EntityCfg(
        spec_fn=lambda: mujoco.MjSpec.from_string(BALL),
        init_state=EntityCfg.InitialStateCfg(pos=(0, 0, 0.12)),
    )
    terms = {"forces": ObservationTermCfg(func=func)}
    return ManagerBasedRlEnv(
        ManagerBasedRlEnvCfg(
            decimation=4,
            scene=SceneCfg(num_envs=2, entities={"ball": ball}, sensors=sensors, spec_fn=add_floor),
            observations={"policy": ObservationGroupCfg(terms=terms)},
        ),
        device="cpu",
    )


@pytest.mark.slow_on_warp
def test_histories_see_every_physics_step_of_a_control_step(engine: str):
    """Hold in an environment what plain MuJoCo C shows step by step."""
    contact = ContactSensorCfg(
        name="contact", primary=ContactMatch("geom", "g", "ball"), history_length=6
    )
    env = environment(contact)
    rtol = 0.0 if engine == "native" else 1e-4
    model = env.sim.mj_model
    data = mujoco.MjData(model)
    data.qpos = env.sim.data.qpos[1]
    adr = model.sensor("contact_g").adr[0]
    forces = [torch.zeros(3)] * 6
    action = torch.zeros(2, 0)
    for _ in range(12):
        observed = env.step(action)[0]["policy"]
        for _ in range(4):
            mujoco.mj_step(model, data)
            forces.append(torch.tensor(data.sensordata[adr + 1 : adr + 4], dtype=torch.float32))
        expected = torch.cat(forces[:-7:-1])
        torch.testing.assert_close(observed[1], expected, rtol=rtol, atol=10 * rtol)
    assert expected.abs().sum() > 0


@pytest.mark.usefixtures("engine")
def test_an_environment_goes_on_bit_for_bit():
    """Restore tracked contacts and held, noisy samples with everything else."""
    contact = ContactSensorCfg(
        name="contact",
        primary=ContactMatch("geom", "g", "ball"),
        track_air_time=True,
        update_period=0.012,
        latency=(0.0, 0.02),
        noise=GaussianNoiseCfg(std=1.0),
    )

    def observe(env: ManagerBasedRlEnv) -> torch.Tensor:
        data = env.scene["contact"].data
        return torch.cat([data.force.flatten(1), data.current_air_time, data.last_air_time], dim=1)

    env = environment(contact, func=observe)
    action = torch.zeros(2, 0)
    for _ in range(9):
        env.step(action)
    saved = env.state_dict()
    other = environment(contact, func=observe)
    after = []
    for one in (env, other):
        one.load_state_dict(saved)
        after.append(torch.stack([one.step(action)[0]["policy"] for _ in range(12)]))
    assert torch.equal(*after) and after[0].unique().numel() > 12


@pytest.mark.usefixtures("engine")
def test_sensors_see_what_resets_change():
    """Show the new state after a reset, even if an event read the sensor meanwhile."""
    where = BuiltinSensorCfg(
        name="where", sensor_type="framepos", obj=ObjRef("body", "b", "ball"), latency=1e-9
    )
    env = environment(where, func=lambda env: env.scene["where"].data)
    for _ in range(5):
        fallen = env.step(torch.zeros(2, 0))[0]["policy"].clone()
    observed = env.reset(env_ids=torch.tensor([1]))[0]["policy"]
    assert torch.equal(observed[0], fallen[0]) and fallen[0, 2] < 0.115
    assert observed[1, 2] == pytest.approx(0.12)
