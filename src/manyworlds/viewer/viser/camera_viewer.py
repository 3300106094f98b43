"""Images of a camera of the selected world, on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mujoco
import numpy as np

from manyworlds.viewer.model_sync import as_numpy

if TYPE_CHECKING:
    import viser

    from manyworlds.sensor.camera_sensor import CameraSensor
    from manyworlds.viewer.model_sync import DataArrays

_FRUSTUM_METERS = 0.15


class ViserCameraViewer:
    """Images of a camera sensor beside the scene, and its frustum in the scene.

    Args:
        server: server of the page; images are in its present GUI container.
        camera_sensor: the sensor.
        mj_model: the model that all worlds share.
        min_display_size: smallest width and height of an image on the page [pixel].
    """

    def __init__(
        self,
        server: viser.ViserServer,
        camera_sensor: CameraSensor,
        mj_model: mujoco.MjModel,
        min_display_size: int = 128,
    ) -> None:
        self.sensor = camera_sensor
        self._least = min_display_size
        cfg = camera_sensor.cfg
        camera = camera_sensor.camera_idx
        kinds = [kind for kind in ("rgb", "depth") if kind in cfg.data_types]
        blank = np.zeros((cfg.height, cfg.width, 3), np.uint8)
        self._images: dict[str, viser.GuiImageHandle] = {
            kind: server.gui.add_image(blank, label=f"{cfg.name} {kind}") for kind in kinds
        }
        self._frustum = server.scene.add_camera_frustum(
            f"/cameras/{cfg.name}",
            fov=float(np.radians(mj_model.cam_fovy[camera])),
            aspect=cfg.width / cfg.height,
            scale=_FRUSTUM_METERS,
            color=(90, 96, 104),
        )

    def update(
        self, sim_data: DataArrays, env_idx: int = 0, scene_offset: np.ndarray | None = None
    ) -> None:
        """Show the images of a world.

        Args:
            sim_data: per-world arrays (`sim.data`).
            env_idx: the world.
            scene_offset: displacement of the world in the drawing [m], shape (3,).
        """
        pictures = self.sensor.data
        camera = self.sensor.camera_idx
        for kind, handle in self._images.items():
            picture = as_numpy(getattr(pictures, kind)[env_idx])
            if kind != "rgb":
                picture = _gray(picture)
            times = max(-(-self._least // min(picture.shape[:2])), 1)  # small ones are enlarged
            handle.image = picture.repeat(times, axis=0).repeat(times, axis=1)
        position = as_numpy(sim_data.cam_xpos[env_idx, camera])
        # MuJoCo's cameras look along -z with y up, viser's along z with y down.
        matrix = as_numpy(sim_data.cam_xmat[env_idx, camera]).reshape(3, 3) * (1.0, -1.0, -1.0)
        quaternion = np.empty(4)
        mujoco.mju_mat2Quat(quaternion, np.asarray(matrix, np.float64).ravel())
        if scene_offset is not None:
            position = position + scene_offset
        self._frustum.position = position
        self._frustum.wxyz = quaternion

    def cleanup(self) -> None:
        """Remove images and frustum."""
        for handle in (*self._images.values(), self._frustum):
            handle.remove()


def _gray(depth: np.ndarray) -> np.ndarray:
    """Return near pixels light and far ones dark, from the nearest to the farthest tenth."""
    depth = depth[..., 0]
    near, far = np.quantile(depth, (0.0, 0.9))
    light = 1.0 - np.clip((depth - near) / max(far - near, 1e-6), 0.0, 1.0)
    return np.repeat((255 * light).astype(np.uint8)[..., None], 3, axis=2)
