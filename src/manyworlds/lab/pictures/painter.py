"""Images of snapshots, drawn on an own copy of the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace

import mujoco
import numpy as np

from manyworlds.lab.errors import VerbError
from manyworlds.lab.face import LabFace
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.pictures.camera import Kind, LabCameraCfg, quat_of
from manyworlds.lab.pictures.image import CameraImage
from manyworlds.lab.world.elements import RobotElements
from manyworlds.utils.renderer import Renderer
from manyworlds.viewer.model_sync import (
    VIEWER_INERTIAL_FIELDS,
    VIEWER_MODEL_FIELDS,
    sync_model_fields,
)
from manyworlds.viewer.world_mirror import WorldMirror

_FIELDS = VIEWER_MODEL_FIELDS | VIEWER_INERTIAL_FIELDS | {"flex_rgba", "skin_rgba"}
"""Fields of the model that are copied for each image, so that changes are visible at once."""
# Parts of a scene that are invisible to cameras.
_UNSEEN = (mujoco.mjtVisFlag.mjVIS_RANGEFINDER, mujoco.mjtVisFlag.mjVIS_PERTOBJ)
_OBJ = mujoco.mjtObj
_SLICES = 80
_STACKS = 40
"""Facets of round shapes in images that measure: with MuJoCo's 28 and 16, the depth of a torso is
wrong by 3 mm, but colors are drawn faster."""
_CONTEXTS = 8
"""Largest number of OpenGL contexts, each of which holds all meshes and textures."""
Format = tuple[int, int, bool, bool]
"""Height, width, effects, and exact shapes of an image; each format has an OpenGL context."""


class Painter:
    """Draws snapshots of a world; all calls are made in one thread.

    Poses are computed from `qpos` and the mocap poses of a snapshot, not copied from it: the
    derived fields of MuJoCo's data lag one step behind `qpos`, and a snapshot lacks the vertices of
    flexes and the paths of tendons. Skins follow the bodies. An image therefore shows the state at
    the time of its snapshot.

    Args:
        face: the live world.
        syncs: whether to bring the face's model up to date; False if another reader of the same
            face does.
    """

    def __init__(self, face: LabFace, syncs: bool = True) -> None:
        self._face = face
        self._syncs = syncs
        self._shown: mujoco.MjModel | None = None
        self._mirror: WorldMirror | None = None
        self._values = SimpleNamespace()  # views of the fields of `_shown`, each with one row
        self._names: list[str] = []
        self._entities: _Entities | None = None
        self._renderers: dict[Format, Renderer] = {}
        self._option = mujoco.MjvOption()
        self._option.sitegroup[:] = 0
        self._option.flags[list(map(int, _UNSEEN))] = 0

    def sync(self) -> None:
        """Bring the face's model up to date, before a snapshot is read."""
        if self._syncs:
            self._face.sync_model()

    def show(self, snapshot: Snapshot) -> bool:
        """Set the world to a snapshot; return False if it is of another world than the model."""
        face = self._face
        model = face.model
        sizes = (model.nq, model.nbody, model.nmocap)
        if sizes != (len(snapshot.qpos), len(snapshot.xpos), len(snapshot.mocap_pos)):
            return False
        if model is not self._shown or self._mirror is None:
            self._mirror = self._open(model)
        mirror = self._mirror
        sync_model_fields(mirror.model, self._values, _FIELDS, 0)
        if not np.array_equal(model.hfield_data, mirror.model.hfield_data):
            mirror.model.hfield_data[:] = model.hfield_data
            self.close()  # the graphics card has the old heights
        fields = ("qpos", "mocap_pos", "mocap_quat")
        mirror.load(SimpleNamespace(**{name: getattr(snapshot, name)[None] for name in fields}), 0)
        return True

    def draw(
        self, camera: LabCameraCfg, kinds: Iterable[Kind], snapshot: Snapshot
    ) -> list[CameraImage]:
        """Draw images of a camera; `show` has set the world to the snapshot.

        Raises:
            VerbError: the model does not have the camera, or its body.
            RuntimeError: there is no working OpenGL; the message names the package to install.
        """
        assert self._mirror is not None and self._entities is not None
        model = self._mirror.model
        data = self._mirror.data
        if camera.source == "model":
            index = self._camera_id(camera.name)
            pos = data.cam_xpos[index].copy()
            axes = data.cam_xmat[index].reshape(3, 3).copy()
        else:
            index = -1
            pos, axes = _pose(model, data, camera)
        drawn = []
        images: dict[Format, _Images] = {}
        for kind in kinds:
            colors = kind == "rgb"
            form = (camera.height, camera.width, camera.effects and colors, not colors)
            if form not in images:
                renderer = self._renderer(form)
                self._compose(renderer, camera, index, pos, axes)
                images[form] = _Images(renderer, model, self._entities)
            gl = images[form].renderer.scene.camera[0]
            image = CameraImage(
                camera=camera.name,
                kind=kind,
                image=images[form].take(kind),
                frame_id=snapshot.frame_id,
                step=snapshot.step,
                time=snapshot.time,
                intrinsics=_intrinsics(gl, camera.width, camera.height),
                pos=(float(pos[0]), float(pos[1]), float(pos[2])),
                quat=quat_of(axes),
                near=float(gl.frustum_near),
                far=float(gl.frustum_far),
                orthographic=bool(gl.orthographic),
                entities=self._entities.names if kind == "entity" else (),
            )
            drawn.append(image)
        return drawn

    def _compose(
        self,
        renderer: Renderer,
        camera: LabCameraCfg,
        index: int,
        pos: np.ndarray,
        axes: np.ndarray,
    ) -> None:
        """Put the present world into a renderer's scene, seen by a camera."""
        assert self._mirror is not None
        view = mujoco.MjvCamera()
        if camera.source == "model":
            view.type = int(mujoco.mjtCamera.mjCAMERA_FIXED)
            view.fixedcamid = index
        else:
            view.type = int(mujoco.mjtCamera.mjCAMERA_USER)
            aim(renderer.scene, self._mirror.model, camera, pos, axes)
        renderer.update_scene(self._mirror.data, view, self._option)
        renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = camera.effects
        renderer.scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = camera.effects

    def close(self) -> None:
        """Free the OpenGL contexts; the next image creates new ones."""
        while self._renderers:
            self._renderers.popitem()[1].close()

    def _renderer(self, form: Format) -> Renderer:
        """Return the renderer of a format; those that were used last are kept."""
        found = self._renderers.pop(form, None)
        if found is None:
            assert self._mirror is not None
            while len(self._renderers) >= _CONTEXTS:
                self._renderers.pop(next(iter(self._renderers))).close()
            model = self._mirror.model
            height, width, effects, exact = form
            quality = model.vis.quality
            usual = quality.offsamples, quality.numslices, quality.numstacks
            try:
                if not effects:
                    quality.offsamples = 0
                if exact:
                    quality.numslices = max(quality.numslices, _SLICES)
                    quality.numstacks = max(quality.numstacks, _STACKS)
                found = Renderer(model, height, width)
            finally:
                quality.offsamples, quality.numslices, quality.numstacks = usual
        self._renderers[form] = found
        return found

    def _open(self, model: mujoco.MjModel) -> WorldMirror:
        self.close()
        mirror = WorldMirror(model)
        # All bodies move here, also those that sleep in the lab.
        mirror.model.opt.enableflags &= ~int(mujoco.mjtEnableBit.mjENBL_SLEEP)
        self._shown = model
        self._values = SimpleNamespace(**{name: getattr(model, name)[None] for name in _FIELDS})
        self._names = [model.camera(i).name or f"camera_{i}" for i in range(model.ncam)]
        self._entities = _Entities(RobotElements(mirror.model, self._face.robots))
        return mirror

    def _camera_id(self, name: str) -> int:
        if name not in self._names:
            raise VerbError("unknown_camera", f"The model has no camera '{name}' any more.")
        return self._names.index(name)


class _Entities:
    """Entities of the objects of a model.

    Args:
        elements: elements of the model by the entity that they belong to.
    """

    def __init__(self, elements: RobotElements) -> None:
        model = elements.model
        self.names = tuple(elements.robots)
        numbers: dict[str | None, int] = {name: i for i, name in enumerate(self.names)}
        of_body = np.array([numbers.get(owner, -1) for owner in elements.owners["body"]], np.int32)
        tendons = [numbers.get(owner, -1) for owner in elements.owners["tendon"]]
        self._tables = {
            int(_OBJ.mjOBJ_GEOM): of_body[model.geom_bodyid],
            int(_OBJ.mjOBJ_TENDON): np.array(tendons, np.int32),
            int(_OBJ.mjOBJ_SKIN): of_body[model.skin_bonebodyid[model.skin_boneadr]],
            int(_OBJ.mjOBJ_FLEX): of_body[model.flex_vertbodyid[model.flex_vertadr]],
        }

    def find(self, ids: np.ndarray, types: np.ndarray) -> np.ndarray:
        """Return the entity of each object, -1 for none; all have the shape of `ids`."""
        found = np.full(ids.shape, -1, np.int32)
        for kind, table in self._tables.items():
            these = types == kind
            if these.any():
                found[these] = table[ids[these]]
        return found


class _Images:
    """Images of the present scene of a renderer; those of ids share one drawing."""

    def __init__(self, renderer: Renderer, model: mujoco.MjModel, entities: _Entities) -> None:
        self.renderer = renderer
        self._model = model
        self._entities = entities
        self._objects: np.ndarray | None = None

    def take(self, kind: Kind) -> np.ndarray:
        """Return an image; see `CameraImage.image` for its shape."""
        renderer = self.renderer
        if kind == "rgb":
            return renderer.render()
        if kind == "depth":
            return self._render(renderer.enable_depth_rendering, renderer.disable_depth_rendering)
        if self._objects is None:
            self._objects = self._render(
                renderer.enable_segmentation_rendering, renderer.disable_segmentation_rendering
            )
        if kind == "segmentation":
            return self._objects
        ids = self._objects[..., 0]
        types = self._objects[..., 1]
        if kind == "entity":
            return self._entities.find(ids, types)
        geoms = np.where(types == int(_OBJ.mjOBJ_GEOM), ids, np.int32(-1))
        if kind == "geom":
            return geoms
        bodies = np.append(self._model.geom_bodyid, np.int32(-1))
        return bodies[geoms]

    def _render(self, begin: Callable[[], None], end: Callable[[], None]) -> np.ndarray:
        begin()
        try:
            return self.renderer.render()
        finally:
            end()


def _pose(
    model: mujoco.MjModel, data: mujoco.MjData, camera: LabCameraCfg
) -> tuple[np.ndarray, np.ndarray]:
    """Return position and axes (columns x, y, z) of an added camera in the world."""
    body = 0
    if camera.body:
        body = mujoco.mj_name2id(model, _OBJ.mjOBJ_BODY, camera.body)
    if body < 0:
        raise VerbError(
            "unknown_body",
            f"The body '{camera.body}' that carries camera '{camera.name}' is not in the model any "
            "more: remove the camera, or add it to another body.",
        )
    quat = np.array(camera.quat)
    axes = np.empty(9)
    mujoco.mju_normalize4(quat)
    mujoco.mju_quat2Mat(axes, quat)
    turn = data.xmat[body].reshape(3, 3)
    return data.xpos[body] + turn @ camera.pos, turn @ axes.reshape(3, 3)


def aim(
    scene: mujoco.MjvScene,
    model: mujoco.MjModel,
    camera: LabCameraCfg,
    pos: np.ndarray,
    axes: np.ndarray,
) -> None:
    """Give a scene a camera that the model does not have."""
    near = model.vis.map.znear * model.stat.extent
    width = camera.width
    height = camera.height
    if camera.intrinsics is None:
        top = near * np.tan(np.deg2rad(camera.fovy) / 2.0)
        bottom = -top
        right = top * width / height
        left = -right
    else:
        fx, fy, cx, cy = camera.intrinsics
        top = near * cy / fy
        bottom = near * (cy - height) / fy
        right = near * (width - cx) / fx
        left = -near * cx / fx
    for gl in scene.camera:
        gl.pos[:] = pos
        gl.forward[:] = -axes[:, 2]
        gl.up[:] = axes[:, 1]
        gl.frustum_center = (left + right) / 2.0
        gl.frustum_width = (right - left) / 2.0
        gl.frustum_bottom = bottom
        gl.frustum_top = top
        gl.frustum_near = near
        gl.frustum_far = model.vis.map.zfar * model.stat.extent
        gl.orthographic = 0


def _intrinsics(
    gl: mujoco.MjvGLCamera, width: int, height: int
) -> tuple[float, float, float, float]:
    """Return fx, fy, cx, cy of the projection that OpenGL uses [pixel]."""
    tall = float(gl.frustum_top) - float(gl.frustum_bottom)
    half = float(gl.frustum_width) or 0.5 * width / height * tall
    unit = 1.0 if gl.orthographic else float(gl.frustum_near)
    left = float(gl.frustum_center) - half
    return (
        width * unit / (2.0 * half),
        height * unit / tall,
        -width * left / (2.0 * half),
        height * float(gl.frustum_top) / tall,
    )
