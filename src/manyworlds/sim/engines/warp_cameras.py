"""Ray casting and camera rendering with MuJoCo Warp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

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


def cast_rays(
    model: mjw.Model,
    data: mjw.Data,
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
    shape = (data.nworld, pnt.shape[1])
    # Rays of the other worlds start far away and point outward.
    origins, directions = torch.full((2, *shape, 3), 1e9, device=pnt.device).unbind()
    origins[worlds] = pnt.float()
    directions[worlds] = vec.float()
    # MuJoCo Warp treats -1 in all entries as no selection.
    flags = [-1.0] * mujoco.mjNGROUP
    if geomgroup is not None:
        flags = [float(bool(flag)) for flag in geomgroup]
    groups: Any = wp.spatial_vector(*flags)
    # Warp takes over a tensor of a GPU much faster than torch takes over an array of Warp. Tensors
    # created in inference mode could not be written in place outside of it.
    with torch.inference_mode(False):
        distance = origins.new_empty(shape)
        normal = torch.empty_like(origins)
        geomid = torch.empty(shape, dtype=torch.int32, device=pnt.device)
    rays: list[Any] = [wp.from_torch(part, dtype=wp.vec3) for part in (origins, directions)]
    found: list[Any] = [
        wp.from_torch(distance),
        wp.from_torch(geomid),
        wp.from_torch(normal, wp.vec3),
    ]
    exclude = wp.from_torch(bodyexclude.contiguous())
    arguments = [model, data, *rays, groups, flg_static, exclude, *found]
    mjw.rays(*arguments)
    return Rays(distance[worlds], geomid[worlds], normal[worlds])


class _View(NamedTuple):
    """Buffers of a camera at a size."""

    context: mjw.RenderContext
    rgb: Any
    """Array of colors; None if they are not rendered."""
    graph: str
    """Name of the captured graph."""


class CameraRenderer:
    """Renders cameras by ray tracing; each view keeps its buffers and bounding hierarchies."""

    def __init__(self) -> None:
        self._views: dict[tuple[CameraRequest, frozenset[str]], _View] = {}

    def draw(self, engine: WarpEngine, view: CameraRequest) -> dict[str, torch.Tensor]:
        """Render a view in all worlds, at poses as last computed.

        See `Simulation.render_cameras` for the shapes of the images.
        """
        key = view, frozenset(_SPECIALIZED & engine.expanded)
        new = key not in self._views
        if new:
            self._views[key] = self._prepare(engine, *key)
        context, rgb, graph = self._views[key]

        def draw(model: mjw.Model, data: mjw.Data) -> None:
            mjw.refit_bvh(model, data, context)
            mjw.render(model, data, context)
            if rgb is not None:
                mjw.get_rgb(context, 0, rgb)

        if new:  # builds a kernel, which is not allowed during a capture
            draw(engine.wp_model, engine.wp_data)
        else:
            engine.run(graph, draw)
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

    def _prepare(self, engine: WarpEngine, view: CameraRequest, expanded: frozenset[str]) -> _View:
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
        rgb = None
        if "rgb" in view.kinds:
            color: Any = wp.vec3  # Warp's stubs know only scalars
            rgb = wp.empty(size, dtype=color)
        return _View(context, rgb, f"sense {len(self._views)}")
