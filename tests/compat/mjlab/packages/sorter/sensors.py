"""Sensors of our own."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import torch
from mjlab.entity import Entity
from mjlab.sensor import Sensor, SensorCfg
from mjlab.viewer.debug_visualizer import DebugVisualizer


@dataclass
class ProximityData:
    """What it measures."""

    distance: torch.Tensor
    """[B, N]"""
    nearest: torch.Tensor
    """[B]"""


@dataclass
class ProximitySensorCfg(SensorCfg):
    """Distances from a site to objects."""

    entity_name: str = "robot"
    site_name: str = "grip"
    objects: tuple[str, ...] = ()
    max_distance: float = 2.0
    debug_vis: bool = False

    def build(self) -> ProximitySensor:
        return ProximitySensor(self)


class ProximitySensor(Sensor[ProximityData]):
    """Adds a marker to the model, and finds it again when the model is compiled."""

    def __init__(self, cfg: ProximitySensorCfg):
        super().__init__()
        self.cfg = cfg
        self._data: mujoco.MjData | None = None

    def edit_spec(self, scene_spec: mujoco.MjSpec, entities: dict[str, Entity]) -> None:
        entity = entities[self.cfg.entity_name]
        assert self.cfg.site_name in entity.site_names
        body = scene_spec.body(f"{self.cfg.entity_name}/lift")
        body.add_site(name=f"{self.cfg.name}_marker", pos=(0.06, 0, 0.02), group=4)
        scene_spec.add_sensor(
            name=f"{self.cfg.name}_vel",
            type=mujoco.mjtSensor.mjSENS_FRAMELINVEL,
            objtype=mujoco.mjtObj.mjOBJ_SITE,
            objname=f"{self.cfg.name}_marker",
        )
        self._entities = entities

    def initialize(self, mj_model: mujoco.MjModel, model, data, device: str) -> None:
        self._data = data
        self._marker = mj_model.site(f"{self.cfg.name}_marker").id
        sensor = mj_model.sensor(f"{self.cfg.name}_vel")
        self._velocity = slice(int(sensor.adr[0]), int(sensor.adr[0] + sensor.dim[0]))
        num_envs = data.nworld
        self._closest = torch.full((num_envs,), self.cfg.max_distance, device=device)

    def _compute_data(self) -> ProximityData:
        marker = self._data.site_xpos[:, self._marker]
        objects = torch.stack(
            [self._entities[name].data.root_link_pos_w for name in self.cfg.objects], dim=1
        )
        distance = (objects - marker.unsqueeze(1)).norm(dim=-1).clamp(max=self.cfg.max_distance)
        return ProximityData(distance=distance, nearest=distance.argmin(dim=1))

    def update(self, dt: float) -> None:
        super().update(dt)
        self._closest = torch.minimum(self._closest, self.data.distance.min(dim=1).values)

    def reset(self, env_ids: torch.Tensor | slice | None = None) -> None:
        super().reset(env_ids)
        if env_ids is None:
            env_ids = slice(None)
        self._closest[env_ids] = self.cfg.max_distance

    @property
    def closest(self) -> torch.Tensor:
        return self._closest

    @property
    def speed(self) -> torch.Tensor:
        return self._data.sensordata[:, self._velocity].norm(dim=-1)

    def debug_vis(self, visualizer: DebugVisualizer) -> None:
        if not self.cfg.debug_vis:
            return
        for env_idx in visualizer.get_env_indices(self._closest.shape[0]):
            position = self._data.site_xpos[env_idx, self._marker].cpu().numpy()
            visualizer.add_sphere(position, 0.01, (0, 1, 1, 0.8), label="marker")
