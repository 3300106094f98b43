"""Common behavior of sensors that cast rays or render images."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.managers import ObservationGroupCfg, ObservationTermCfg
from manyworlds.scene import Scene, SceneCfg
from manyworlds.sensor import ObjRef, RayCastSensorCfg, Sensor, SensorCfg, SensorContext
from manyworlds.sim import Simulation
from tests.sensor.scenes import BALL, add_floor, build, entity


@dataclass(kw_only=True)
class AltimeterCfg(SensorCfg):
    """A user's own sensor, which no class of ours knows."""

    def build(self) -> Altimeter:
        """Make the sensor."""
        return Altimeter()


class Altimeter(Sensor[torch.Tensor]):
    """Casts one ray down from 4 m over the origin."""

    requires_sensor_context = True

    def edit_spec(self, scene_spec: mujoco.MjSpec, entities: dict) -> None:
        """Add nothing."""

    def initialize(self, mj_model, model, data, device) -> None:
        """Find nothing."""

    def set_context(self, ctx: SensorContext) -> None:
        """Take what casts rays."""
        self._ctx = ctx
        ctx.add_raycast(self)

    def _compute_data(self) -> torch.Tensor:
        rays = self._ctx.ray(torch.tensor([[0.0, 0.0, 4.0]]), torch.tensor([[0.0, 0.0, -1.0]]))
        return rays.dist


def _scan(name: str = "scan") -> RayCastSensorCfg:
    return RayCastSensorCfg(name=name, frame=ObjRef("body", "b", "ball"))


def test_own_sensors_get_a_context(engine: str) -> None:
    """Give the context to any sensor that asks for one, and let `sense` reach it."""
    scene, sim = build({"ball": entity(BALL, pos=(0, 0, 1))}, AltimeterCfg(name="own"), num_envs=2)
    assert scene.sensor_context is not None
    assert scene.sensor_context.has_raycasts and not scene.sensor_context.has_cameras
    sim.data.qpos[:, :2] = 0.0
    sim.sense()
    torch.testing.assert_close(scene["own"].data, torch.tensor([[2.9], [2.9]]))
    sim.data.qpos[1, 2] = 2.0
    torch.testing.assert_close(scene["own"].data, torch.tensor([[2.9], [2.9]]))
    if engine == "warp":
        sim.forward()  # It casts rays at poses as last computed.
    sim.sense()
    torch.testing.assert_close(scene["own"].data, torch.tensor([[2.9], [1.9]]))


@pytest.mark.usefixtures("engine")
def test_scenes_without_such_sensors_have_no_context() -> None:
    """Make no context for nothing, and let `sense` do nothing."""
    scene, sim = build({"ball": entity(BALL)})
    assert scene.sensor_context is None
    sim.sense()


@pytest.mark.usefixtures("engine")
def test_a_context_can_be_made_by_hand() -> None:
    """Take sensors as arguments, as the scene gives them."""
    scene, sim = build({"ball": entity(BALL, pos=(0, 0, 1))}, _scan())
    mine = SensorContext(
        sim.mj_model, sim.model, sim.data, raycast_sensors=[scene["scan"]], device="cpu"
    )
    assert mine.has_raycasts
    with pytest.raises(RuntimeError, match="is not attached to a simulation"):
        mine.ray(torch.zeros(1, 3), torch.ones(1, 3))
    sim.set_sensor_context(mine)
    assert scene["scan"].data.distances[0, 0] == pytest.approx(1.0)
    mine.recreate(sim.mj_model)
    assert scene["scan"].data.distances[0, 0] == pytest.approx(1.0)


def test_reading_too_early_is_refused() -> None:
    """Say what is missing before there is a context, and before there is a simulation."""
    cfg = SceneCfg(entities={"ball": entity(BALL)}, sensors=(_scan(),), spec_fn=add_floor)
    scene = Scene(cfg, "cpu")
    sim = Simulation(1, spec=scene.spec, device="cpu")
    sensor = scene["scan"]
    sensor.initialize(sim.mj_model, sim.model, sim.data, torch.device("cpu"))
    with pytest.raises(RuntimeError, match="'scan' has no sensor context"):
        _ = sensor.data
    scene.initialize(sim.mj_model, sim.model, sim.data)
    with pytest.raises(RuntimeError, match=r"sim\.set_sensor_context\(scene\.sensor_context\)"):
        _ = sensor.data


def _distance(env: ManagerBasedRlEnv) -> torch.Tensor:
    return env.scene["scan"].data.distances[:, :1]


@pytest.mark.usefixtures("engine")
def test_environments_wire_the_context(monkeypatch: pytest.MonkeyPatch) -> None:
    """Observe rays at the new state, and after a reset cast those of the reset worlds alone."""
    scene = SceneCfg(
        num_envs=4,
        entities={"ball": entity(BALL, pos=(0, 0, 3))},
        sensors=(_scan(),),
        spec_fn=add_floor,
    )
    terms = {"distance": ObservationTermCfg(func=_distance)}
    observations = {"policy": ObservationGroupCfg(terms=terms)}
    cfg = ManagerBasedRlEnvCfg(decimation=2, scene=scene, observations=observations, seed=0)
    env = ManagerBasedRlEnv(cfg, "cpu")
    cast = []
    ray = env.sim.ray
    monkeypatch.setattr(
        env.sim, "ray", lambda pnt, *a, **k: cast.append(len(pnt)) or ray(pnt, *a, **k)
    )
    obs = env.step(torch.zeros(4, 0))[0]["policy"]
    z = env.scene["ball"].data.root_link_pos_w[:, 2]
    assert cast == [4] and (z < 3).all()
    torch.testing.assert_close(obs[:, 0], z)
    obs = env.reset(env_ids=torch.tensor([2]))[0]["policy"]
    assert cast == [4, 1]
    assert obs[2, 0] == pytest.approx(3.0) and obs[1, 0] < 3.0
