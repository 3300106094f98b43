"""Terrain that all worlds share, and the origin of each world on it."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import mujoco
import numpy as np
import torch

from manyworlds.entity import Entity, EntityCfg
from manyworlds.spec.config import LightCfg, MaterialCfg, SpecCfg, TextureCfg
from manyworlds.spec.elements import copy_spec_data
from manyworlds.terrains.terrain_generator import TerrainGenerator, TerrainGeneratorCfg
from manyworlds.terrains.utils import spiral_origins
from manyworlds.utils.devices import as_device
from manyworlds.utils.world_random import WorldRandom
from manyworlds.validation.worlds import EnvIds, Worlds

_DEFAULT_PLANE_TEXTURE = TextureCfg(
    name="groundplane",
    type="2d",
    builtin="checker",
    rgb1=(0.83, 0.85, 0.88),
    rgb2=(0.74, 0.77, 0.81),
    width=256,
    height=256,
)
_DEFAULT_PLANE_MATERIAL = MaterialCfg(
    name="groundplane", texuniform=True, texture="groundplane", geom_names_expr=("terrain",)
)
_DEFAULT_SKY = TextureCfg(
    name="terrain_sky",  # scenes that add their own sky name it "sky"
    type="skybox",
    builtin="gradient",
    rgb1=(0.45, 0.6, 0.8),
    rgb2=(0.93, 0.95, 0.97),
    width=64,
    height=384,
)
_DEFAULT_SUN_LIGHT = LightCfg(
    name="sun",
    type="directional",
    pos=(1.2, -1.6, 3.2),  # its ray passes through the origin, the center of the shadow map
    dir=(-0.3, 0.4, -0.8),
    diffuse=(0.6, 0.6, 0.6),
)
_ORIGIN_RGBA = (0.85, 0.25, 0.2, 1.0)
_PATCH_RGBA = (0.2, 0.55, 0.35, 0.5)


@dataclass
class TerrainEntityCfg(EntityCfg):
    """Configuration of a terrain: an infinite plane, or generated cells."""

    terrain_type: Literal["generator", "plane"] = "plane"
    """Kind of terrain."""
    terrain_generator: TerrainGeneratorCfg | None = None
    """Cells, for `terrain_type="generator"`."""
    env_spacing: float | None = 2.0
    """Distance between worlds on a plane [m]."""
    max_init_terrain_level: int | None = None
    """Highest initial row of worlds; None for the last."""
    num_envs: int = 1
    """Number of worlds; a scene replaces it by its own."""
    textures: tuple[TextureCfg, ...] = field(
        default_factory=lambda: (copy.copy(_DEFAULT_PLANE_TEXTURE), copy.copy(_DEFAULT_SKY))
    )
    materials: tuple[MaterialCfg, ...] = field(
        default_factory=lambda: (copy.copy(_DEFAULT_PLANE_MATERIAL),)
    )
    lights: tuple[LightCfg, ...] = field(default_factory=lambda: (copy.copy(_DEFAULT_SUN_LIGHT),))
    debug_vis: bool = False
    """Draw the origin of each cell, and the flat patches."""
    on_world_body: bool = False
    """Give the geoms to the body "world" in place of "terrain", so that MuJoCo's broad phase does
    not look at all of them in each step. Contact sensors, ray-cast sensors and exclusions of
    contacts that name the body "terrain" then take "world", with all other geoms of that body."""
    first_world: int = 0
    """Place of the first world in the whole batch; a scene replaces it, too: see `SceneCfg`."""
    total_envs: int | None = None
    """Number of worlds of the whole batch; None for `num_envs`."""
    world_ids: Sequence[int] | None = None
    """Ids of the worlds, which determine their origins on a plane; None counts from 0."""

    def build(self) -> TerrainEntity:
        """Raise an error: a terrain needs a device.

        Raises:
            TypeError: always.
        """
        raise TypeError(
            "TerrainEntityCfg.build() cannot know the device: make TerrainEntity(cfg, device), or "
            "give the config to SceneCfg.terrain."
        )


class TerrainEntity(Entity):
    """The terrain, on one body "terrain" that is fixed to the world.

    With a generator, each world is assigned a cell: its row is the world's level, which curricula
    change, and its column is the world's type.

    Attributes:
        cfg: a copy of the config, with the generator's seed filled in; without generator on a
            plane.
        env_origins: origin of each world [m], shape [num_envs, 3].
        terrain_origins: origin of each cell [m], shape [num_rows, num_cols, 3]; None on a plane.
        terrain_levels: row of each world, shape [num_envs]; zero on a plane.
        terrain_types: column of each world, shape [num_envs]; zero on a plane.
        max_terrain_level: number of rows; zero on a plane.

    Raises:
        ValueError: the config lacks a setting that its terrain type needs.
    """

    state_attributes = (
        *Entity.state_attributes,
        "env_origins",
        "terrain_levels",
        "terrain_types",
    )
    wraps_fixed_base: ClassVar[bool] = False
    """All worlds share the terrain, so it is not placed in each world."""
    has_prefix: ClassVar[bool] = False
    """The spec of the terrain is that of the scene."""
    cfg: TerrainEntityCfg

    def __init__(self, cfg: TerrainEntityCfg, device: str | torch.device) -> None:
        _check(cfg)
        cfg = copy.deepcopy(cfg)
        self._device = as_device(device)
        self._random = WorldRandom(cfg.num_envs, self._device).stream("terrain")
        self._generator: TerrainGenerator | None = None
        if cfg.terrain_type == "generator" and cfg.terrain_generator is not None:
            self._generator = TerrainGenerator(cfg.terrain_generator, str(device))
            cfg.terrain_generator = self._generator.cfg
        else:
            cfg.terrain_generator = None  # a plane has no cells
        spec = self._build_spec(cfg)
        # The edits have already been applied.
        super().__init__(
            dataclasses.replace(cfg, spec_fn=lambda: spec, textures=(), materials=(), lights=())
        )
        self.cfg = cfg
        if cfg.on_world_body:
            self.moved_geoms = {"terrain": "world"}
        with torch.inference_mode(False):
            self.env_origins = torch.zeros(cfg.num_envs, 3, device=self._device)
            self.terrain_levels = torch.zeros(cfg.num_envs, dtype=torch.long, device=self._device)
            self.terrain_types = torch.zeros_like(self.terrain_levels)
        self.terrain_origins: torch.Tensor | None = None
        self.max_terrain_level = 0
        if self._generator is None:
            self.configure_env_origins()
            self._flat_patches: dict[str, torch.Tensor] = {}
        else:
            self._configure_cells(self._generator)
            self._flat_patches = {
                name: self._new_tensor(patches)
                for name, patches in self._generator.flat_patches.items()
            }

    def draw_from(self, random: WorldRandom, name: str) -> None:
        """Draw the rows of all worlds anew, from now on from these random numbers."""
        self._random = random.stream(name)
        if self._generator is not None:
            self._configure_cells(self._generator)

    def _configure_cells(self, generator: TerrainGenerator) -> None:
        proportions = generator.proportions if generator.cfg.curriculum else None
        self.configure_env_origins(generator.terrain_origins, proportions)

    @property
    def flat_patches(self) -> dict[str, torch.Tensor]:
        """Centers of flat patches by name [m], each [num_rows, num_cols, num_patches, 3]."""
        return self._flat_patches

    @property
    def flat_patch_radii(self) -> dict[str, float]:
        """Radius of the flat patches by name [m]."""
        if self._generator is None:
            return {}
        return self._generator.flat_patch_radii

    def configure_env_origins(
        self,
        origins: np.ndarray | torch.Tensor | None = None,
        proportions: np.ndarray | None = None,
    ) -> None:
        """Assign origins to all worlds: in cells, or on a square grid.

        Args:
            origins: origin of each cell [m], shape [num_rows, num_cols, 3]; None for a grid with
                spacing `cfg.env_spacing`.
            proportions: share of worlds in each column, shape [num_cols]; None for equal shares.

        Raises:
            ValueError: neither `origins` nor `cfg.env_spacing` is given.
        """
        if origins is None:
            if self.cfg.env_spacing is None:
                raise ValueError(
                    "TerrainEntityCfg.env_spacing is None, but worlds on a plane need a distance: "
                    "give it in meters."
                )
            self.terrain_origins = None
            self.max_terrain_level = 0
            self.terrain_levels.zero_()
            self.terrain_types.zero_()
            cfg = self.cfg
            ids = cfg.world_ids
            if ids is None:
                ids = range(cfg.first_world, cfg.first_world + cfg.num_envs)
            origins = spiral_origins(ids, self.cfg.env_spacing)
            self.env_origins.copy_(self._new_tensor(origins))
            return
        self.terrain_origins = self._new_tensor(origins)
        self.max_terrain_level = self.terrain_origins.shape[0]
        self.env_origins.copy_(
            self._compute_env_origins_curriculum(self.terrain_origins, proportions)
        )

    def update_env_origins(
        self,
        env_ids: EnvIds,
        move_up: torch.Tensor,
        move_down: torch.Tensor,
    ) -> None:
        """Move worlds to the next or the previous row; from the last row, to a random one.

        On a plane this has no effect.

        Args:
            env_ids: world ids, shape [n], a mask over all worlds, or None for all.
            move_up: mask of worlds that move to the next row, shape [n]; [num_envs] with a mask.
            move_down: mask of worlds that move to the previous row, likewise.
        """
        if self.terrain_origins is None:
            return
        step = self._spread(env_ids, move_up.long() - move_down.long())
        levels = self.terrain_levels + step
        mask = self._mask(env_ids)
        anywhere = self._random.integers(0, self.max_terrain_level, env_ids=mask)
        levels = torch.where(levels >= self.max_terrain_level, anywhere, levels).clamp_(min=0)
        self._place(mask, levels, self.terrain_types)

    def randomize_env_origins(
        self,
        env_ids: EnvIds,
        levels: tuple[int, int] | None = None,
        shares: Mapping[str, float] | None = None,
    ) -> None:
        """Move worlds to random cells; no effect on a plane.

        Args:
            env_ids: ids or mask of the worlds; None for all.
            levels: lowest and highest row to draw from; None for all rows.
            shares: relative frequencies of cells by kind, of which others have 1; None for equal
                ones.

        Raises:
            ValueError: a row or kind does not exist, the lowest row is above the highest, or a
                share is negative.
        """
        if self.terrain_origins is None:
            return
        rows, cols = self.terrain_origins.shape[:2]
        if levels is None:
            levels = (0, rows - 1)
        low, high = levels
        if not 0 <= low <= high < rows:
            raise ValueError(
                f"Levels of the terrain must be between 0 and {rows - 1}, lowest first, got "
                f"({low}, {high}): change them, or TerrainGeneratorCfg.num_rows."
            )
        mask = self._mask(env_ids)
        drawn = self._random.integers(low, high + 1, env_ids=mask)
        if shares is None:
            types = self._random.integers(0, cols, env_ids=mask)
        else:
            types = self._random.choice(self._weights(shares)[drawn], mask)
        self._place(mask, drawn, types)

    def place(self, env_ids: torch.Tensor, levels: torch.Tensor, types: torch.Tensor) -> None:
        """Move worlds to cells of generated terrain.

        Args:
            env_ids: ids of the worlds, shape [n].
            levels: row of each of them, shape [n].
            types: column of each of them, shape [n].

        Raises:
            ValueError: the terrain is a plane, or has no such cell.
        """
        if self.terrain_origins is None:
            raise ValueError("A plane has no cells: use a terrain of type 'generator'.")
        rows, cols = self.terrain_origins.shape[:2]
        if bool(((levels < 0) | (levels >= rows) | (types < 0) | (types >= cols)).any()):
            raise ValueError(
                f"The terrain has {rows} x {cols} cells, got rows {levels.tolist()} and columns "
                f"{types.tolist()}: choose cells within it."
            )
        self._place(
            self._mask(env_ids), self._spread(env_ids, levels), self._spread(env_ids, types)
        )

    def _compute_env_origins_curriculum(
        self, origins: torch.Tensor, proportions: np.ndarray | None = None
    ) -> torch.Tensor:
        """Distribute the worlds over columns, draw rows; return their origins [num_envs, 3]."""
        rows, cols = origins.shape[:2]
        highest = rows - 1
        if self.cfg.max_init_terrain_level is not None:
            highest = min(self.cfg.max_init_terrain_level, highest)
        if proportions is None or len(proportions) != cols:
            proportions = np.ones(cols)
        cfg = self.cfg
        counts = split_by_proportion(cfg.total_envs or cfg.num_envs, proportions)
        columns = np.repeat(np.arange(cols), counts)
        own = columns[cfg.first_world : cfg.first_world + cfg.num_envs]
        self.terrain_types.copy_(torch.from_numpy(own))
        self.terrain_levels.copy_(self._random.integers(0, highest + 1))
        return origins[self.terrain_levels, self.terrain_types]

    # Masks instead of indices, so that the host need not wait for the device.

    def cell_of(self, env_id: int) -> tuple[str, int, int, float] | None:
        """Return the kind, row, column and difficulty of a world's cell; None on a plane."""
        if self._generator is None:
            return None
        row = int(self.terrain_levels[env_id])
        col = int(self.terrain_types[env_id])
        kind, difficulty, _ = self._generator.cell(row, col)
        return kind, row, col, difficulty

    def _mask(self, env_ids: EnvIds) -> torch.Tensor:
        return Worlds.of(env_ids, len(self.terrain_levels), self.terrain_levels.device).mask

    def _spread(self, env_ids: EnvIds, values: torch.Tensor) -> torch.Tensor:
        """Return one value per world from one per id; zero for the other worlds."""
        if isinstance(env_ids, torch.Tensor) and env_ids.dtype == torch.bool:
            return values
        spread = torch.zeros_like(self.terrain_levels)
        Worlds.of(env_ids, len(spread), spread.device).put(spread, values)
        return spread

    def _weights(self, shares: Mapping[str, float]) -> torch.Tensor:
        """Return the share of each cell's kind, shape [rows, columns]."""
        assert self._generator is not None
        kinds = self._generator.cfg.sub_terrains
        for kind, share in shares.items():
            if kind not in kinds or not share >= 0.0:
                raise ValueError(
                    f"The share of '{kind}' is {share}, but must not be negative, and the terrain "
                    f"has the kinds {', '.join(kinds)}: change it, or leave it out."
                )
        cells = self._generator.kinds
        return self._new_tensor(
            np.array([[shares.get(kind, 1.0) for kind in row] for row in cells])
        )

    def _place(self, mask: torch.Tensor, levels: torch.Tensor, types: torch.Tensor) -> None:
        """Assign rows, columns and the origins there to the worlds of a mask."""
        assert self.terrain_origins is not None
        self.terrain_levels.copy_(torch.where(mask, levels, self.terrain_levels))
        self.terrain_types.copy_(torch.where(mask, types, self.terrain_types))
        origins = self.terrain_origins[self.terrain_levels, self.terrain_types]
        self.env_origins.copy_(torch.where(mask[:, None], origins, self.env_origins))

    def _new_tensor(self, values: np.ndarray | torch.Tensor) -> torch.Tensor:
        with torch.inference_mode(False):
            return torch.as_tensor(values, dtype=torch.float32, device=self._device).clone()

    def _build_spec(self, cfg: TerrainEntityCfg) -> mujoco.MjSpec:
        spec = mujoco.MjSpec()
        body = spec.worldbody.add_body(name="terrain")
        edits: list[SpecCfg] = [*cfg.textures, *cfg.materials, *cfg.lights]
        if self._generator is None:
            body.add_geom(name="terrain", type=mujoco.mjtGeom.mjGEOM_PLANE, size=(0.0, 0.0, 0.05))
        else:
            self._generator.compile(spec)
        if cfg.on_world_body:
            body = _move_geoms_to_world(spec, body)
        if self._generator is not None:
            # Cells have their own colors.
            defaults = (_DEFAULT_PLANE_TEXTURE, _DEFAULT_PLANE_MATERIAL)
            edits = [edit for edit in edits if edit not in defaults]
            if cfg.debug_vis:
                _add_markers(body, self._generator)
        for edit in edits:
            edit.edit_spec(spec)
        return spec


def _move_geoms_to_world(spec: mujoco.MjSpec, body: mujoco.MjsBody) -> mujoco.MjsBody:
    """Move the geoms of a body to the world's; return a body of the same name without geoms."""
    name = body.name
    moved = []
    for geom in body.geoms:
        moved.append((geom.name, spec.worldbody.add_geom()))
        copy_spec_data(geom, moved[-1][1])
    spec.delete(body)  # once: deleting its geoms one by one takes seconds
    for geom_name, geom in moved:
        geom.name = geom_name
    return spec.worldbody.add_body(name=name)


def split_by_proportion(count: int, proportions: np.ndarray) -> np.ndarray:
    """Split a number into integer parts by the method of largest remainders.

    Every part gets at least 1 if `count` suffices, except parts of proportion 0, which get 0.

    Args:
        count: the number to split.
        proportions: nonnegative weights, shape [n].

    Returns:
        The parts, shape [n].
    """
    proportions = np.asarray(proportions, float)
    parts = proportions > 0
    at_least = np.zeros(len(parts), int)
    if count >= parts.sum():
        at_least = parts.astype(int)
    shares = count * proportions / proportions.sum()
    counts = np.maximum(np.floor(shares).astype(int), at_least)
    # The remainder goes to the largest shortages; an excess is taken from the largest surpluses.
    while (missing := count - counts.sum()) != 0:
        deficit = np.where(parts, shares - counts, -np.inf)
        if missing > 0:
            counts[np.argmax(deficit)] += 1
        else:
            counts[np.argmin(np.where(counts > at_least, deficit, np.inf))] -= 1
    return counts


def _add_markers(body: mujoco.MjsBody, generator: TerrainGenerator) -> None:
    """Draw origins as red spheres and flat patches as green discs."""
    for i, origin in enumerate(generator.terrain_origins.reshape(-1, 3)):
        body.add_site(name=f"origin_{i}", pos=origin.tolist(), size=3 * [0.1], rgba=_ORIGIN_RGBA)
    for name, patches in generator.flat_patches.items():
        for i, patch in enumerate(patches.reshape(-1, 3)):
            body.add_site(
                name=f"{name}_{i}",
                type=mujoco.mjtGeom.mjGEOM_CYLINDER,
                pos=patch.tolist(),
                size=[generator.flat_patch_radii[name], 0.01, 0.0],
                rgba=_PATCH_RGBA,
            )


def _check(cfg: TerrainEntityCfg) -> None:
    if cfg.terrain_type not in ("generator", "plane"):
        raise ValueError(
            f"There is no terrain_type '{cfg.terrain_type}': use 'plane' or 'generator'."
        )
    if cfg.terrain_type == "generator" and cfg.terrain_generator is None:
        raise ValueError(
            "terrain_type 'generator' needs TerrainEntityCfg.terrain_generator: give a "
            "TerrainGeneratorCfg, such as manyworlds.terrains.config.ROUGH_TERRAINS_CFG."
        )
    if cfg.num_envs < 1:
        raise ValueError(
            f"TerrainEntityCfg.num_envs must be at least 1, got {cfg.num_envs}: use one or more."
        )
    level = cfg.max_init_terrain_level
    if level is not None and level < 0:
        raise ValueError(
            f"TerrainEntityCfg.max_init_terrain_level must be at least 0, got {level}: "
            "0 starts all worlds in the first row."
        )
