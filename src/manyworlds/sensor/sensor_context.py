"""What sensors share that look into the world."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import mujoco
import torch

from manyworlds.sim.rays import CameraRequest
from manyworlds.sim.sim_data import WarpBridge
from manyworlds.utils.drawing import pose_for_drawing
from manyworlds.utils.renderer import Renderer

if TYPE_CHECKING:
    from manyworlds.sim import Simulation
    from manyworlds.sim.rays import Rays

# What of a scene a camera cannot see.
_UNSEEN = (mujoco.mjtVisFlag.mjVIS_RANGEFINDER, mujoco.mjtVisFlag.mjVIS_PERTOBJ)


class ContextSensor(Protocol):
    """A sensor that takes part in a context."""

    def set_context(self, ctx: SensorContext) -> None:
        """Take the context, and say what is wanted of it."""
        ...

    def invalidate(self) -> None:
        """Measure anew when next read."""
        ...


class Camera(Protocol):
    """A sensor that a context draws pictures for."""

    cfg: Any
    """It has width, height, data_types, use_textures, use_shadows and enabled_geom_groups."""

    @property
    def data(self) -> Any:
        """Its pictures by kind."""
        ...

    @property
    def camera_idx(self) -> int:
        """Its camera's id in the model."""
        ...

    def invalidate(self) -> None:
        """Measure anew when next read."""
        ...


def _picture(kind: str) -> Callable[[SensorContext, int], torch.Tensor]:
    def get(self: SensorContext, cam_idx: int) -> torch.Tensor:
        sensors = [camera for camera in self._cameras if camera.camera_idx == cam_idx]
        if not sensors:
            ids = sorted({camera.camera_idx for camera in self._cameras})
            raise KeyError(f"No sensor has camera {cam_idx}: choose one of {ids}.")
        for sensor in sensors:
            if kind in sensor.cfg.data_types:
                return getattr(sensor.data, kind)
        raise RuntimeError(
            f"Camera {cam_idx} takes no {kind} pictures: add '{kind}' to the data_types of sensor "
            f"'{sensors[0].cfg.name}'."
        )

    get.__doc__ = f"""Pictures ({kind}) of a camera, by its id in the model.

    Raises:
        KeyError: no sensor has this camera.
        RuntimeError: its sensor takes no such pictures.
    """
    return get


class SensorContext:
    """Casts rays and draws pictures for sensors, in the simulation that it is attached to.

    Nothing is computed before a sensor asks. The warp engine traces pictures of all worlds at
    once. For the native engine they are drawn with OpenGL, one world after the other, each with its
    own rows of model fields; cameras of one size share a renderer.

    Args:
        mj_model: the compiled model.
        model: per-world model fields.
        data: per-world data.
        camera_sensors: cameras that belong to it; each is given the context.
        raycast_sensors: other sensors, likewise.
        device: where tensors live; None takes that of `data`.
    """

    def __init__(
        self,
        mj_model: mujoco.MjModel,
        model: WarpBridge,
        data: WarpBridge,
        camera_sensors: Sequence[ContextSensor] = (),
        raycast_sensors: Sequence[ContextSensor] = (),
        device: torch.device | str | None = None,
    ) -> None:
        self.mj_model, self.model, self.data = mj_model, model, data
        self.device = torch.device(data.qpos.device if device is None else device)
        self._sim: Simulation | None = None
        self._cameras: list[Camera] = []
        self._raycasts: list[Any] = []
        self._renderers: dict[tuple[int, int], Renderer] = {}
        for sensor in (*camera_sensors, *raycast_sensors):
            sensor.set_context(self)

    @property
    def has_cameras(self) -> bool:
        """Whether a camera belongs to it."""
        return bool(self._cameras)

    @property
    def has_raycasts(self) -> bool:
        """Whether a sensor that casts rays belongs to it."""
        return bool(self._raycasts)

    def add_camera(self, sensor: Camera) -> None:
        """Take up a camera.

        Raises:
            ValueError: it differs from another in what all must share.
        """
        for name in ("use_textures", "use_shadows", "enabled_geom_groups"):
            for other in self._cameras:
                mine, theirs = getattr(sensor.cfg, name), getattr(other.cfg, name)
                if mine != theirs:
                    raise ValueError(
                        f"All cameras in a scene must agree on {name}, but sensor "
                        f"'{sensor.cfg.name}' has {mine} and '{other.cfg.name}' has {theirs}: "
                        "give both the same."
                    )
        self._cameras.append(sensor)

    def add_raycast(self, sensor: ContextSensor) -> None:
        """Take up a sensor that casts rays."""
        self._raycasts.append(sensor)

    def attach(self, sim: Simulation) -> None:
        """Take the simulation to look into."""
        self._sim = sim
        self.invalidate()

    def invalidate(self) -> None:
        """Let all sensors measure anew when they are next read."""
        for sensor in (*self._cameras, *self._raycasts):
            sensor.invalidate()

    def recreate(self, mj_model: mujoco.MjModel, expanded_fields: set[str] | None = None) -> None:
        """Forget pictures and renderers, whose model was replaced."""
        self.mj_model = mj_model
        self.close()
        self.invalidate()

    def close(self) -> None:
        """Free the OpenGL contexts; the next picture makes new ones."""
        for renderer in self._renderers.values():
            renderer.close()
        self._renderers.clear()

    def ray(self, pnt: torch.Tensor, vec: torch.Tensor, **options: Any) -> Rays:
        """Cast rays; see `Simulation.ray`."""
        return self._simulation.ray(pnt, vec, **options)

    def render_cameras(self, sensor: Camera) -> dict[str, torch.Tensor] | None:
        """Let the engine draw for a camera; None if it does not, see `Simulation.pictures`."""
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

    get_rgb = _picture("rgb")
    get_depth = _picture("depth")
    get_segmentation = _picture("segmentation")

    def views(self, sensor: Camera) -> Iterator[Renderer]:
        """Show a camera's view of one world after the other to the renderer that draws it.

        Raises:
            RuntimeError: no simulation is attached, or there is no OpenGL here that can draw.
        """
        sim, cfg = self._simulation, sensor.cfg
        option = mujoco.MjvOption()
        option.geomgroup[:] = [group in cfg.enabled_geom_groups for group in range(6)]
        option.sitegroup[:] = 0
        option.flags[mujoco.mjtVisFlag.mjVIS_TEXTURE] = cfg.use_textures
        option.flags[list(map(int, _UNSEEN))] = 0
        for model, data in sim.world_copies():
            pose_for_drawing(model, data)
            renderer = self._renderer(model, cfg.height, cfg.width)
            renderer.update_scene(data, sensor.camera_idx, option)
            renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = cfg.use_shadows
            renderer.scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = False
            yield renderer

    @property
    def _simulation(self) -> Simulation:
        if self._sim is None:
            raise RuntimeError(
                "The sensor context has no simulation to look into: call "
                "sim.set_sensor_context(scene.sensor_context) after scene.initialize."
            )
        return self._sim

    def _renderer(self, model: mujoco.MjModel, height: int, width: int) -> Renderer:
        size = (height, width)
        if size not in self._renderers:
            self._renderers[size] = Renderer(model, height, width)
        return self._renderers[size]
