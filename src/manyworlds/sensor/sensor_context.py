"""Shared resources of the sensors that cast rays or render images."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import mujoco
import torch

from manyworlds.sim.rays import CameraRequest
from manyworlds.sim.views import DataView, ModelView
from manyworlds.utils.drawing import pose_for_drawing
from manyworlds.utils.renderer import Renderer
from manyworlds.validation.worlds import EnvIds

if TYPE_CHECKING:
    from manyworlds.sensor.camera_sensor import CameraSensorData
    from manyworlds.sim import Simulation
    from manyworlds.sim.rays import Rays

# Parts of a scene that are invisible to cameras.
_UNSEEN = (mujoco.mjtVisFlag.mjVIS_RANGEFINDER, mujoco.mjtVisFlag.mjVIS_PERTOBJ)


class ContextSensor(Protocol):
    """A sensor that belongs to a context."""

    def set_context(self, ctx: SensorContext) -> None:
        """Set the context, and pass it the sensor's requirements."""
        ...

    def invalidate(self) -> None:
        """Mark the data as outdated, so that the next read measures again."""
        ...


class Camera(Protocol):
    """A sensor for which a context renders images."""

    cfg: Any
    """Config with width, height, data_types, use_textures, use_shadows and enabled_geom_groups."""

    @property
    def data(self) -> CameraSensorData:
        """Images by kind."""
        ...

    @property
    def camera_idx(self) -> int:
        """Id of the camera in the model."""
        ...

    def invalidate(self) -> None:
        """Mark the images as outdated, so that the next read renders again."""
        ...


class SensorContext:
    """Casts rays and renders images for sensors, in the simulation that it is attached to.

    All computation is deferred until a sensor is read. The warp engine ray-traces images of all
    worlds at once. For the native engine, OpenGL renders one world after another, each with its own
    rows of model fields; cameras of the same size share a renderer.

    Args:
        mj_model: the compiled model.
        model: per-world model fields.
        data: per-world data.
        camera_sensors: the cameras of the context, which is passed to each of them.
        raycast_sensors: other sensors, likewise.
        device: device of the tensors; None uses that of `data`.
    """

    def __init__(
        self,
        mj_model: mujoco.MjModel,
        model: ModelView,
        data: DataView,
        camera_sensors: Sequence[ContextSensor] = (),
        raycast_sensors: Sequence[ContextSensor] = (),
        device: torch.device | str | None = None,
    ) -> None:
        self.mj_model = mj_model
        self.model = model
        self.data = data
        if device is None:
            device = data.qpos.device
        self.device = torch.device(device)
        self._sim: Simulation | None = None
        self._cameras: list[Camera] = []
        self._raycasts: list[ContextSensor] = []
        self._renderers: dict[tuple[int, int], Renderer] = {}
        for sensor in (*camera_sensors, *raycast_sensors):
            sensor.set_context(self)

    @property
    def has_cameras(self) -> bool:
        """True if the context has a camera."""
        return bool(self._cameras)

    @property
    def has_raycasts(self) -> bool:
        """True if the context has a sensor that casts rays."""
        return bool(self._raycasts)

    def add_camera(self, sensor: Camera) -> None:
        """Add a camera.

        Raises:
            ValueError: it differs from another camera in an option that all must share.
        """
        for name in ("use_textures", "use_shadows", "enabled_geom_groups"):
            for other in self._cameras:
                mine = getattr(sensor.cfg, name)
                theirs = getattr(other.cfg, name)
                if mine != theirs:
                    raise ValueError(
                        f"All cameras in a scene must agree on {name}, but sensor "
                        f"'{sensor.cfg.name}' has {mine} and '{other.cfg.name}' has {theirs}: "
                        "give both the same."
                    )
        self._cameras.append(sensor)

    def add_raycast(self, sensor: ContextSensor) -> None:
        """Add a sensor that casts rays."""
        self._raycasts.append(sensor)

    def attach(self, sim: Simulation) -> None:
        """Attach the simulation in which the sensors measure."""
        self._sim = sim
        self.invalidate()

    def invalidate(self) -> None:
        """Mark the data of all sensors as outdated, so that the next read measures again."""
        for sensor in (*self._cameras, *self._raycasts):
            sensor.invalidate()

    def recreate(self, mj_model: mujoco.MjModel, expanded_fields: set[str] | None = None) -> None:
        """Discard images and renderers, after the model was replaced."""
        self.mj_model = mj_model
        self.close()
        self.invalidate()

    def close(self) -> None:
        """Free the OpenGL contexts; the next image creates new ones."""
        for renderer in self._renderers.values():
            renderer.close()
        self._renderers.clear()

    def ray(
        self,
        pnt: torch.Tensor,
        vec: torch.Tensor,
        geomgroup: Sequence[int] | None = None,
        flg_static: bool = True,
        bodyexclude: int | torch.Tensor = -1,
        cutoff: float = math.inf,
        env_ids: EnvIds = None,
    ) -> Rays:
        """Cast rays; see `Simulation.ray`."""
        return self._simulation.ray(pnt, vec, geomgroup, flg_static, bodyexclude, cutoff, env_ids)

    def render_cameras(self, sensor: Camera) -> dict[str, torch.Tensor] | None:
        """Render a camera on the engine; None if it does not render.

        See `Simulation.render_cameras` for the shapes of the images.
        """
        cfg = sensor.cfg
        view = CameraRequest(
            camera=sensor.camera_idx,
            width=cfg.width,
            height=cfg.height,
            kinds=tuple(cfg.data_types),
            textures=cfg.use_textures,
            shadows=cfg.use_shadows,
            geom_groups=tuple(cfg.enabled_geom_groups),
        )
        return self._simulation.render_cameras(view)

    def get_rgb(self, cam_idx: int) -> torch.Tensor:
        """Return the color images of a camera of the model; see `CameraSensorData`.

        Raises:
            KeyError: no sensor has this camera.
            RuntimeError: the camera's sensor renders no such images.
        """
        return self._sensor_of(cam_idx, "rgb").data.rgb

    def get_depth(self, cam_idx: int) -> torch.Tensor:
        """Return the depth images of a camera of the model; see `CameraSensorData`.

        Raises:
            KeyError: no sensor has this camera.
            RuntimeError: the camera's sensor renders no such images.
        """
        return self._sensor_of(cam_idx, "depth").data.depth

    def get_segmentation(self, cam_idx: int) -> torch.Tensor:
        """Return the segmentation images of a camera of the model; see `CameraSensorData`.

        Raises:
            KeyError: no sensor has this camera.
            RuntimeError: the camera's sensor renders no such images.
        """
        return self._sensor_of(cam_idx, "segmentation").data.segmentation

    def _sensor_of(self, cam_idx: int, kind: str) -> Camera:
        """Return the sensor that renders images of a kind with a camera."""
        sensors = [camera for camera in self._cameras if camera.camera_idx == cam_idx]
        if not sensors:
            ids = sorted({camera.camera_idx for camera in self._cameras})
            raise KeyError(f"No sensor has camera {cam_idx}: choose one of {ids}.")
        for sensor in sensors:
            if kind in sensor.cfg.data_types:
                return sensor
        raise RuntimeError(
            f"Camera {cam_idx} renders no {kind} images: add '{kind}' to the data_types of sensor "
            f"'{sensors[0].cfg.name}'."
        )

    def views(self, sensor: Camera) -> Iterator[Renderer]:
        """Yield a renderer with the camera's view of one world after another.

        Raises:
            RuntimeError: no simulation is attached, or OpenGL is not available.
        """
        sim = self._simulation
        cfg = sensor.cfg
        option = mujoco.MjvOption()
        option.geomgroup[:] = [group in cfg.enabled_geom_groups for group in range(6)]
        option.sitegroup[:] = 0
        option.flags[mujoco.mjtVisFlag.mjVIS_TEXTURE] = cfg.use_textures
        option.flags[list(map(int, _UNSEEN))] = 0
        size = (cfg.height, cfg.width)
        for model, data in sim.world_copies():
            pose_for_drawing(model, data)
            if size not in self._renderers:
                self._renderers[size] = Renderer(model, *size)
            renderer = self._renderers[size]
            renderer.update_scene(data, sensor.camera_idx, option)
            renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = cfg.use_shadows
            renderer.scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = False
            yield renderer

    @property
    def _simulation(self) -> Simulation:
        if self._sim is None:
            raise RuntimeError(
                "The sensor context is not attached to a simulation: call "
                "sim.set_sensor_context(scene.sensor_context) after scene.initialize."
            )
        return self._sim
