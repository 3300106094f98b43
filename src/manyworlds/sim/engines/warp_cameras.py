"""Ray casting and camera rendering with MuJoCo Warp."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import mujoco
import mujoco_warp as mjw
import torch
import warp as wp

from manyworlds.sim.engines.warp_views import to_torch
from manyworlds.sim.rays import CameraRequest, Rays

if TYPE_CHECKING:
    from manyworlds.sim.engines.warp import WarpEngine

# Camera fields that MuJoCo Warp's precomputed rays would not follow.
_OPTICS = {"cam_fovy", "cam_intrinsic"}
# Fields from whose compiled values MuJoCo Warp decides what to omit from its kernel.
_SPECIALIZED = _OPTICS | {"light_attenuation", "light_type"}

# Rays of worlds that are left out start here and point away from the origin.
_FAR = 1e9
# Sets of buffers that are kept; the ones used last stay.
_MOST_BUFFERS = 16


class RayCaster:
    """Casts rays through graphs; each number of rays, with its options, keeps its buffers."""

    def __init__(self) -> None:
        self._buffers: OrderedDict[tuple[Any, ...], _RayBuffers] = OrderedDict()

    def cast(
        self,
        engine: WarpEngine,
        pnt: torch.Tensor,
        vec: torch.Tensor,
        geomgroup: Sequence[int] | None,
        flg_static: bool,
        bodyexclude: torch.Tensor,
        worlds: torch.Tensor | slice,
    ) -> Rays:
        """Cast rays into the worlds that an index selects.

        See `Simulation.ray` for the shapes of the arguments.
        """
        # MuJoCo Warp treats -1 in all entries as no selection.
        flags = [-1.0] * mujoco.mjNGROUP if geomgroup is None else map(float, map(bool, geomgroup))
        key = (pnt.shape[1], *flags, flg_static)
        new = key not in self._buffers
        if new:
            if len(self._buffers) == _MOST_BUFFERS:
                oldest, _ = self._buffers.popitem(last=False)
                engine.graphs.pop(f"rays {oldest}", None)
            self._buffers[key] = _RayBuffers(engine.num_envs, pnt.shape[1], engine.device)
        self._buffers.move_to_end(key)
        buffers = self._buffers[key]
        if not isinstance(worlds, slice):  # rays of the others start far away and point outward
            buffers.pnt.fill_(_FAR)
            buffers.vec.fill_(_FAR)
        buffers.pnt[worlds], buffers.vec[worlds] = pnt.float(), vec.float()
        buffers.bodyexclude.copy_(bodyexclude)

        def cast(model: Any, data: Any) -> None:
            mjw.rays(model, data, *buffers.inputs(key[1:-1], flg_static), *buffers.outputs)

        if new:  # may load a kernel, which is not allowed during a capture
            cast(engine.wp_model, engine.wp_data)
        else:
            engine.run(f"rays {key}", cast)
        return buffers.hits(worlds)


class _RayBuffers:
    """Tensors of the rays and hits of all worlds, and arrays of Warp with the same memory."""

    def __init__(self, num_envs: int, num_rays: int, device: torch.device) -> None:
        def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        # Tensors created in inference mode could not be written in place outside of it.
        with torch.inference_mode(False):
            self.pnt, self.vec, self._normal = zeros(3, num_envs, num_rays, 3).unbind()
            self._dist = zeros(num_envs, num_rays)
            self._geomid = zeros(num_envs, num_rays, dtype=torch.int32)
            self.bodyexclude = zeros(num_rays, dtype=torch.int32)
        self._rays: list[Any] = [wp.from_torch(part, wp.vec3) for part in (self.pnt, self.vec)]
        self._exclude = wp.from_torch(self.bodyexclude)
        hits = wp.from_torch(self._dist), wp.from_torch(self._geomid)
        self.outputs: list[Any] = [*hits, wp.from_torch(self._normal, wp.vec3)]

    def inputs(self, groups: tuple[float, ...], flg_static: bool) -> list[Any]:
        """Return the arguments of `mujoco_warp.rays` between data and outputs."""
        return [*self._rays, wp.spatial_vector(*groups), flg_static, self._exclude]

    def hits(self, worlds: torch.Tensor | slice) -> Rays:
        """Return copies of the hits in the worlds that an index selects."""
        found = (part[worlds] for part in (self._dist, self._geomid, self._normal))
        return Rays(*(part.clone() if isinstance(worlds, slice) else part for part in found))


def _empty(shape: tuple[int, ...], dtype: Any) -> Any:
    return wp.empty(shape, dtype=dtype)


class CameraRenderer:
    """Renders cameras by ray tracing; each view keeps its buffers and bounding hierarchies."""

    def __init__(self) -> None:
        # Context, color buffer if any, and name of the graph.
        self._views: dict[tuple[CameraRequest, frozenset[str]], tuple[Any, Any, str]] = {}

    def draw(self, engine: WarpEngine, view: CameraRequest) -> dict[str, torch.Tensor]:
        """Render a view in all worlds, at poses as last computed.

        See `Simulation.render_cameras` for the shapes of the images.
        """
        key = view, frozenset(_SPECIALIZED & engine.expanded)
        new = key not in self._views
        if new:
            self._views[key] = self._prepare(engine, *key)
        context, rgb, name = self._views[key]

        def draw(model: Any, data: Any) -> None:
            mjw.refit_bvh(model, data, context)
            mjw.render(model, data, context)
            if rgb is not None:
                mjw.get_rgb(context, 0, rgb)

        if new:  # builds a kernel, which is not allowed during a capture
            draw(engine.wp_model, engine.wp_data)
        else:
            engine.run(name, draw)
        size = (engine.num_envs, view.height, view.width)
        pictures = {}
        if rgb is not None:
            pictures["rgb"] = (to_torch(rgb) * 255.0).round().byte()
        if "depth" in view.kinds:
            depth = to_torch(context.depth_data).reshape(*size, 1)
            pictures["depth"] = torch.where(depth > 0, depth, context.zfar)
        if "segmentation" in view.kinds:
            pictures["segmentation"] = to_torch(context.seg_data).reshape(*size, 2).clone()
        return pictures

    def _prepare(
        self, engine: WarpEngine, view: CameraRequest, expanded: frozenset[str]
    ) -> tuple[Any, Any, str]:
        context = mjw.create_render_context(
            engine.mj_model,
            engine.num_envs,
            cam_res=(view.width, view.height),
            render_rgb="rgb" in view.kinds,
            render_depth="depth" in view.kinds,
            render_seg="segmentation" in view.kinds,
            use_textures=view.textures,
            use_shadows=view.shadows,
            enabled_geom_groups=list(view.geom_groups),
            cam_active=[view.camera],
            use_precomputed_rays=not _OPTICS & expanded,
            render_skybox=True,
        )
        context.light_attenuation_is_default &= "light_attenuation" not in expanded
        context.has_spot_lights |= "light_type" in expanded
        size = (engine.num_envs, view.height, view.width)
        rgb = _empty(size, wp.vec3) if "rgb" in view.kinds else None
        return context, rgb, f"sense {len(self._views)}"
