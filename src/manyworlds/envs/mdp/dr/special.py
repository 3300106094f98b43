"""Functions that change more than one field of the model, or that pick instead of drawing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import mujoco
import torch

from manyworlds.envs.mdp.dr.distributions import Distribution, Operation
from manyworlds.envs.mdp.dr.field_draws import (
    ROBOT,
    Axes,
    FieldDraw,
    Randomization,
    Ranges,
    Rows,
    field_draw,
    randomizes,
    resolved,
    selected,
)
from manyworlds.managers.scene_entity_config import SceneEntityCfg
from manyworlds.validation.worlds import EnvIds, Worlds, assign

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


class Sizes(Randomization):
    """Draw of sizes of geoms, from which their bounds are computed."""

    def __init__(self, env: ManagerBasedRlEnv, entity: str, draw: FieldDraw) -> None:
        self.draw = draw
        """Draw of the sizes alone."""
        sizes = draw.rows
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

    def apply(self, env: ManagerBasedRlEnv, worlds: Worlds) -> None:
        """Draw sizes for some worlds, and update the bounds."""
        self.draw.apply(env, worlds)
        sizes = self.draw.rows
        # Not a matrix product, which GPUs round.
        half = (sizes.present(env, worlds).unsqueeze(-2) * self._sums).sum(dim=-1)
        diagonal = (half * self._diagonals).norm(dim=-1)
        bound = diagonal.where(diagonal > 0, half.amax(dim=-1))
        assign(env.sim.model.geom_rbound, bound, worlds, sizes.ids)
        assign(env.sim.model.geom_aabb[:, :, 1], half, worlds, sizes.ids)


def _types_of(env: ManagerBasedRlEnv, entity: str, geom: int) -> set[int]:
    """Return the types of a geom in all variants of its entity that have the geom."""
    info = env.scene.entity(entity).variant_metadata
    if info is None or "geom_type" not in info.rows:
        return {int(env.sim.mj_model.geom_type[geom])}
    column = [element.id for element in info.elements["geom"]].index(geom)
    return set(info.rows["geom_type"][info.filled[:, column], column].tolist())


@randomizes("geom_size", "geom_rbound", "geom_aabb")
def geom_size(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "scale",
    axes: Axes = None,
    shared_random: bool = False,
    clamp: bool = False,
) -> Sizes:
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
        clamp: whether sizes below 0 are cut, instead of refused.

    Raises:
        ValueError: a geom is of another type, whose bounds do not follow from its size.
    """
    draw = field_draw(
        env, "geom_size", ranges, asset_cfg, distribution, operation, axes, shared_random, clamp
    )
    return Sizes(env, asset_cfg.name, draw)


# Both tangential directions, and both rolling ones.
_ISOTROPIC = {1: 0, 4: 3}


@randomizes("pair_friction")
def pair_friction(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "abs",
    axes: Axes = None,
    shared_random: bool = False,
    isotropic: bool = False,
    clamp: bool = False,
) -> FieldDraw:
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
        clamp: whether friction below 0 is cut, instead of refused.
    """
    return field_draw(
        env,
        "pair_friction",
        ranges,
        asset_cfg,
        distribution,
        operation,
        axes,
        shared_random,
        clamp,
        tied=_ISOTROPIC if isotropic else None,
    )


class _Pick(Randomization):
    """Draw of ids from a pool, one for each element or one for all elements of a world."""

    def __init__(
        self,
        env: ManagerBasedRlEnv,
        asset_cfg: SceneEntityCfg,
        field: str,
        pool: str,
        column: int,
        shared: bool,
    ) -> None:
        asset_cfg = resolved(env, asset_cfg)
        self._shared = shared
        self._rows = Rows(env, field, asset_cfg)
        env.sim.expand_model_fields((field,))
        if not 0 <= column < self._rows.width:
            raise ValueError(f"{field} has no column {column}: see mujoco.mjtTextureRole.")
        self._column = torch.tensor([column], device=env.sim.device)
        selected(env, asset_cfg, pool)
        indexing = env.scene.entity(asset_cfg.name).indexing
        ids = indexing.tex_ids
        if pool == "material":
            ids = indexing.mat_ids
        self._pool = ids[asset_cfg.index(pool)].to(torch.int32)

    def apply(self, env: ManagerBasedRlEnv, worlds: Worlds) -> None:
        """Pick for some worlds."""
        rows = self._rows
        elements = len(self._rows.ids)
        count = 1 if self._shared else elements
        drawn = env.random.integers(0, len(self._pool), (count, 1), worlds)
        picked = self._pool[drawn].expand(worlds.num_rows, elements, rows.width)
        rows.write(env, worlds, picked, self._column)


@randomizes("geom_matid", selects=("geom", "material"))
def geom_matid(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    asset_cfg: SceneEntityCfg = ROBOT,
    shared_random: bool = False,
) -> _Pick:
    """Give geoms materials that are picked at random.

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        asset_cfg: the entity, which of its geoms, and which of its materials to pick from.
        shared_random: whether all geoms of a world get the same material.
    """
    return _Pick(env, asset_cfg, "geom_matid", "material", 0, shared_random)


@randomizes("mat_texid", selects=("material", "texture"))
def mat_texid(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    asset_cfg: SceneEntityCfg = ROBOT,
    role: int = mujoco.mjtTextureRole.mjTEXROLE_RGB.value,
    shared_random: bool = False,
) -> _Pick:
    """Give materials textures that are picked at random.

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        asset_cfg: the entity, which of its materials, and which of its textures to pick from.
        role: what the texture is used for, an `mjtTextureRole`.
        shared_random: whether all materials of a world get the same texture.
    """
    return _Pick(env, asset_cfg, "mat_texid", "texture", role, shared_random)
