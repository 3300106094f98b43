"""Functions that need more than one field of the model, or that pick instead of draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import mujoco
import torch

from manyworlds.envs.mdp.dr._core import (
    Axes,
    Ranges,
    Rows,
    field_draw,
    randomizes,
    remember,
    selected,
)
from manyworlds.envs.mdp.dr._types import Distribution, Operation
from manyworlds.envs.mdp.dr.fields import ROBOT
from manyworlds.envs.mdp.events import resolve_env_ids
from manyworlds.managers.scene_entity_config import SceneEntityCfg

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv

_GEOM = mujoco.mjtGeom
# Half-sizes of the bounding box as sums of sizes: which of them, by axis.
_HALF_SIZES: dict[int, tuple[tuple[int, ...], ...]] = {
    int(_GEOM.mjGEOM_SPHERE): ((0,), (0,), (0,)),
    int(_GEOM.mjGEOM_CAPSULE): ((0,), (0,), (0, 1)),
    int(_GEOM.mjGEOM_CYLINDER): ((0,), (0,), (1,)),
    int(_GEOM.mjGEOM_ELLIPSOID): ((0,), (1,), (2,)),
    int(_GEOM.mjGEOM_BOX): ((0,), (1,), (2,)),
}
# Axes whose half-sizes make the bounding sphere; those of other types are their longest one.
_DIAGONALS = {int(_GEOM.mjGEOM_CYLINDER): (0, 2), int(_GEOM.mjGEOM_BOX): (0, 1, 2)}


class _Shapes:
    """Computes bounds of geoms from their sizes."""

    def __init__(self, env: ManagerBasedRlEnv, entity: str, sizes: Rows) -> None:
        geoms = sizes.ids.cpu().numpy()
        types = env.sim.mj_model.geom_type[geoms].tolist()
        bad = [
            f"{name} ({_GEOM(kind).name.removeprefix('mjGEOM_').lower()})"
            for name, column in zip(sizes.names, geoms, strict=True)
            for kind in sorted(_types_of(env, entity, int(column)) - {*_HALF_SIZES})
        ]
        if bad:
            raise ValueError(
                f"dr.geom_size met geoms of unsupported types: {', '.join(bad)}. Their bounds do "
                "not follow from geom_size: select spheres, capsules, cylinders, ellipsoids and "
                "boxes only."
            )

        def masks(axes: Sequence[tuple[int, ...]]) -> list[list[float]]:
            return [[float(axis in chosen) for axis in range(3)] for chosen in axes]

        device = env.sim.device
        self._sums = torch.tensor([masks(_HALF_SIZES[kind]) for kind in types], device=device)
        diagonals = masks([_DIAGONALS.get(kind, ()) for kind in types])
        self._diagonals = torch.tensor(diagonals, device=device)
        env.sim.expand_model_fields(("geom_rbound", "geom_aabb"))

    def update(self, env: ManagerBasedRlEnv, worlds: torch.Tensor, sizes: Rows) -> None:
        """Bring bounds up to date with sizes, in the worlds named."""
        # Not a matrix product, which GPUs round.
        half = (sizes.present(env, worlds).unsqueeze(-2) * self._sums).sum(dim=-1)
        diagonal = (half * self._diagonals).norm(dim=-1)
        index = (worlds[:, None], sizes.ids)
        env.sim.model.geom_rbound[index] = diagonal.where(diagonal > 0, half.amax(dim=-1))
        env.sim.model.geom_aabb[(*index, 1)] = half


def _types_of(env: ManagerBasedRlEnv, entity: str, geom: int) -> set[int]:
    """Types that a geom has, in any variant of its entity that has the geom."""
    info = env.scene[entity].variant_metadata
    if info is None or "geom_type" not in info.rows:
        return {int(env.sim.mj_model.geom_type[geom])}
    column = [element.id for element in info.elements["geom"]].index(geom)
    return set(info.rows["geom_type"][info.filled[:, column], column].tolist())


@randomizes("geom_size", "geom_rbound", "geom_aabb")
def geom_size(
    env: ManagerBasedRlEnv,
    env_ids: torch.Tensor | None,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "scale",
    axes: Axes = None,
    shared_random: bool = False,
) -> None:
    """Randomize `geom_size`: sizes of geoms as MuJoCo has them [m]; `geom_rbound`, `geom_aabb` too.

    Spheres, capsules, cylinders, ellipsoids and boxes only. Masses stay.

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: see `geom_friction`, also for the arguments that follow.
        asset_cfg: the entity and which of its geoms.
        distribution: a name or a `dr.Distribution`.
        operation: a name or a `dr.Operation`.
        axes: columns to draw; None for those of `ranges`, else all.
        shared_random: whether all elements of a world get the same draw.

    Raises:
        ValueError: a geom is of another type, whose bounds do not follow from its size.
    """
    draw = field_draw(
        env, "geom_size", ranges, asset_cfg, distribution, operation, axes, shared_random
    )
    rows, worlds = draw.rows, resolve_env_ids(env, env_ids)
    shapes = remember(
        env, asset_cfg, "bounds", rows.names, lambda cfg: _Shapes(env, cfg.name, rows)
    )
    draw(env, worlds)
    shapes.update(env, worlds, rows)


# Both tangential directions, and both rolling ones.
_ISOTROPIC = {1: 0, 4: 3}


@randomizes("pair_friction")
def pair_friction(
    env: ManagerBasedRlEnv,
    env_ids: torch.Tensor | None,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    isotropic: bool = False,
) -> None:
    """Randomize `pair_friction`: friction of contact pairs, which overrides that of the geoms.

    Its columns are: tangential along x and y, torsional, rolling about x and y.

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: see `geom_friction`, also for the arguments that follow.
        asset_cfg: the entity and which of its pairs.
        distribution: a name or a `dr.Distribution`.
        operation: a name or a `dr.Operation`.
        axes: columns to draw; None for those of `ranges`, else all.
        shared_random: whether all elements of a world get the same draw.
        isotropic: whether columns 1 and 4 take the draws of columns 0 and 3.
    """
    draw = field_draw(
        env,
        "pair_friction",
        ranges,
        asset_cfg,
        distribution,
        operation,
        axes,
        shared_random,
        tied=_ISOTROPIC if isotropic else None,
    )
    draw(env, resolve_env_ids(env, env_ids))


class _Pick:
    """Rows whose ids are picked from a pool."""

    def __init__(
        self, env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg, field: str, pool: str, column: int
    ) -> None:
        self._rows = Rows(env, field, asset_cfg)
        if not 0 <= column < self._rows.width:
            raise ValueError(f"{field} has no column {column}: see mujoco.mjtTextureRole.")
        self._column = torch.tensor([column], device=env.sim.device)
        selected(env, asset_cfg, pool)
        indexing = env.scene[asset_cfg.name].indexing
        ids = indexing.mat_ids if pool == "material" else indexing.tex_ids
        self._pool = ids[asset_cfg.index(pool)].to(torch.int32)

    def __call__(self, env: ManagerBasedRlEnv, worlds: torch.Tensor, shared: bool) -> None:
        """Pick for some worlds, given by ids, one for each element or for all."""
        rows, elements = self._rows, len(self._rows.ids)
        drawn = rows.draw(
            f"pick {'one' if shared else 'each'}",
            worlds,
            lambda n: torch.randint(
                len(self._pool), (n, 1 if shared else elements, 1), device=worlds.device
            ),
        )
        picked = self._pool[drawn].expand(len(worlds), elements, rows.width)
        rows.write(env, worlds, picked, self._column)


@randomizes("geom_matid")
def geom_matid(
    env: ManagerBasedRlEnv,
    env_ids: torch.Tensor | None,
    asset_cfg: SceneEntityCfg = ROBOT,
    shared_random: bool = False,
) -> None:
    """Give geoms materials that are picked at random.

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        asset_cfg: the entity, which of its geoms, and which of its materials to pick from.
        shared_random: whether all geoms of a world get the same material.
    """
    pick = remember(
        env, asset_cfg, "geom_matid", 0, lambda cfg: _Pick(env, cfg, "geom_matid", "material", 0)
    )
    pick(env, resolve_env_ids(env, env_ids), shared_random)


@randomizes("mat_texid")
def mat_texid(
    env: ManagerBasedRlEnv,
    env_ids: torch.Tensor | None,
    asset_cfg: SceneEntityCfg = ROBOT,
    role: int = mujoco.mjtTextureRole.mjTEXROLE_RGB.value,
    shared_random: bool = False,
) -> None:
    """Give materials textures that are picked at random.

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        asset_cfg: the entity, which of its materials, and which of its textures to pick from.
        role: what the texture is used for, an `mjtTextureRole`.
        shared_random: whether all materials of a world get the same texture.
    """
    pick = remember(
        env, asset_cfg, "mat_texid", role, lambda cfg: _Pick(env, cfg, "mat_texid", "texture", role)
    )
    pick(env, resolve_env_ids(env, env_ids), shared_random)
