"""Camera sensors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import mujoco
import numpy as np
import torch

from manyworlds.sensor.builtin_sensor import ObjRef, check_exists
from manyworlds.sensor.sensor import NOT_REQUESTED, Sensor, SensorCfg
from manyworlds.sim.views import DataView, ModelView

if TYPE_CHECKING:
    from manyworlds.entity import Entity
    from manyworlds.sensor.sensor_context import SensorContext

CameraDataType = Literal["rgb", "depth", "segmentation"]

# Type and channels of each kind of image.
_PICTURES: dict[str, tuple[type, int]] = {
    "rgb": (np.uint8, 3),
    "depth": (np.float32, 1),
    "segmentation": (np.int32, 2),
}


@dataclass
class CameraSensorCfg(SensorCfg):
    """Configuration of a camera sensor, for a new camera or one of the model.

    Raises:
        ValueError: the options contradict each other, or the image has no pixels.
    """

    camera_name: str | None = None
    """Existing camera to use, with its entity's prefix; None creates a new one."""
    parent_body: str | None = None
    """Body of a new camera, with its entity's prefix; None for the world."""
    pos: tuple[float, float, float] = (0.0, 0.0, 1.0)
    """Position of a new camera on its body [m]."""
    quat: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    """Orientation of a new camera (wxyz), which looks along its -z with +y up in the image."""
    fovy: float | None = None
    """Vertical field of view [deg], or extent [m] if orthographic; None keeps the default."""
    width: int = 160
    height: int = 120
    data_types: tuple[CameraDataType, ...] = ("rgb",)
    """Kinds of images to render: any of rgb, depth and segmentation."""
    use_textures: bool = True
    use_shadows: bool = False
    enabled_geom_groups: tuple[int, ...] = (0, 1, 2)
    """Groups of the visible geoms."""
    orthographic: bool = False
    """Use an orthographic projection for a new camera."""
    clone_data: bool = False
    """Return new memory for each image. If False, the next read may overwrite the last image."""

    def __post_init__(self) -> None:
        if self.camera_name is not None and self.parent_body is not None:
            raise ValueError(
                f"Sensor '{self.name}' has both camera_name='{self.camera_name}' and "
                f"parent_body='{self.parent_body}': give one of them."
            )
        kinds = get_args(CameraDataType)
        if not self.data_types or not set(self.data_types) <= set(kinds):
            raise ValueError(
                f"Sensor '{self.name}': data_types must be among {kinds}, got {self.data_types}."
            )
        if min(self.width, self.height) < 1:
            raise ValueError(
                f"Sensor '{self.name}': width and height must be at least 1 pixel, "
                f"got {self.width} x {self.height}."
            )
        most = math.inf if self.orthographic else 180.0
        if self.fovy is not None and not 0 < self.fovy < most:
            raise ValueError(
                f"Sensor '{self.name}': fovy must be in (0, 180) degrees, or a length if "
                f"orthographic, got {self.fovy}."
            )

    def build(self) -> CameraSensor:
        """Build the sensor."""
        return CameraSensor(self)


@dataclass
class CameraSensorData:
    """Images of B worlds with H rows and W columns; None for kinds that were not requested."""

    rgb: torch.Tensor = NOT_REQUESTED
    """Colors, uint8, shape [B, H, W, 3]."""
    depth: torch.Tensor = NOT_REQUESTED
    """Distance along the optical axis [m], float32, shape [B, H, W, 1]; the far clipping distance
    (`vis.map.zfar`) where no object is seen."""
    segmentation: torch.Tensor = NOT_REQUESTED
    """Id and type (`mjtObj`) of the visible object, int32, shape [B, H, W, 2]; -1 for none."""


class CameraSensor(Sensor[CameraSensorData]):
    """Renders images when its data is read; without reads nothing is rendered."""

    derived_attributes = ("_arrays",)
    requires_sensor_context = True
    noise_fields = ("depth",)

    def __init__(self, cfg: CameraSensorCfg) -> None:
        super().__init__()
        self.cfg: CameraSensorCfg = cfg
        self._ctx: SensorContext | None = None
        self._arrays: dict[str, np.ndarray] = {}

    @property
    def camera_name(self) -> str:
        """Name of the camera in the model."""
        return self.cfg.camera_name or self.cfg.name

    @property
    def camera_idx(self) -> int:
        """Id of the camera in the model."""
        return self._camera_idx

    def edit_spec(self, scene_spec: mujoco.MjSpec, entities: dict[str, Entity]) -> None:
        """Add a camera, or set the field of view of an existing one.

        Raises:
            ValueError: the camera or body does not exist.
        """
        cfg = self.cfg
        who = f"Sensor '{self.cfg.name}'"
        if cfg.camera_name is not None:
            check_exists(who, ObjRef("camera", cfg.camera_name), scene_spec, entities)
            camera = scene_spec.camera(cfg.camera_name)
        else:
            body = scene_spec.worldbody
            if cfg.parent_body is not None:
                check_exists(who, ObjRef("body", cfg.parent_body), scene_spec, entities)
                body = scene_spec.body(cfg.parent_body)
            camera = body.add_camera(name=cfg.name, pos=cfg.pos, quat=cfg.quat)
            if cfg.orthographic:
                camera.proj = mujoco.mjtProjection.mjPROJ_ORTHOGRAPHIC
        if cfg.fovy is not None:
            camera.fovy = cfg.fovy

    def initialize(
        self, mj_model: mujoco.MjModel, model: ModelView, data: DataView, device: torch.device
    ) -> None:
        """Find the camera's id."""
        self._camera_idx = int(mj_model.camera(self.camera_name).id)
        self._num_envs = len(data.qpos)

    def set_context(self, ctx: SensorContext) -> None:
        """Set the context that renders images."""
        self._ctx = ctx
        ctx.add_camera(self)

    def _compute_data(self) -> CameraSensorData:
        if self._ctx is None:
            raise RuntimeError(
                f"Sensor '{self.cfg.name}' has no sensor context: initialize the scene before "
                "reading it."
            )
        pictures = self._ctx.render_cameras(self)
        if pictures is None:
            pictures = self._draw()
        return CameraSensorData(**pictures)

    def _draw(self) -> dict[str, torch.Tensor]:
        """Render with OpenGL, one world after another."""
        assert self._ctx is not None
        if self.cfg.clone_data or not self._arrays:
            size = (self._num_envs, self.cfg.height, self.cfg.width)
            for kind in self.cfg.data_types:
                dtype, channels = _PICTURES[kind]
                self._arrays[kind] = np.empty((*size, channels), dtype)
        for world, renderer in enumerate(self._ctx.views(self)):
            for kind, array in self._arrays.items():
                _draw(renderer, kind, array[world])
        with torch.inference_mode(False):
            return {kind: torch.from_numpy(array) for kind, array in self._arrays.items()}


def _draw(renderer: mujoco.Renderer, kind: str, out: np.ndarray) -> None:
    if kind == "depth":
        renderer.enable_depth_rendering()
    elif kind == "segmentation":
        renderer.enable_segmentation_rendering()
    if kind == "depth":
        out = out[..., 0]
    try:
        renderer.render(out=out)
    finally:
        renderer.disable_depth_rendering()
        renderer.disable_segmentation_rendering()
