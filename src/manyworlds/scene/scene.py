"""A scene of entities: attach, compile, initialise."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import mujoco
import torch

from manyworlds.entity import Entity, EntityCfg
from manyworlds.sim.sim_data import WarpBridge
from manyworlds.utils.indices import EnvIds
from manyworlds.utils.spec import non_default_option_fields
from manyworlds.utils.state import Stateful
from manyworlds.utils.torch import as_device


@dataclass(kw_only=True)
class SceneCfg:
    """What a scene holds, and how many worlds of it there are."""

    num_envs: int = 1
    """Number of parallel worlds."""
    entities: dict[str, EntityCfg] = field(default_factory=dict)
    """Entities by name; the name becomes the prefix of their elements."""
    extent: float | None = None
    """Size of the scene for cameras [m]; None lets MuJoCo compute it."""
    spec_fn: Callable[[mujoco.MjSpec], None] | None = None
    """Edits the spec after all entities are attached (floor, lights, tendons between entities)."""


class Scene(Stateful):
    """Entities attached to one spec, and their place in the compiled model.

    Raises:
        ValueError: `num_envs` is below 1, or an entity cannot be built.
    """

    state_attributes = ("entities",)

    def __init__(self, scene_cfg: SceneCfg, device: str | torch.device) -> None:
        if scene_cfg.num_envs < 1:
            raise ValueError(
                f"SceneCfg.num_envs must be at least 1, got {scene_cfg.num_envs}: "
                "ask for one world."
            )
        self.cfg = copy.deepcopy(scene_cfg)
        self.num_envs = self.cfg.num_envs
        self.device = as_device(device)
        self.spec = mujoco.MjSpec()
        self.entities: dict[str, Entity] = {}
        for name, entity_cfg in self.cfg.entities.items():
            self._attach(name, entity_cfg)
        if self.cfg.extent is not None:
            self.spec.stat.extent = self.cfg.extent
        if self.cfg.spec_fn is not None:
            self.cfg.spec_fn(self.spec)
        self.env_origins = torch.zeros(self.num_envs, 3, device=self.device)
        """Where each world's origin is [m], shape [num_envs, 3]: worlds share one place."""

    def __getitem__(self, key: str) -> Entity:
        if key not in self.entities:
            raise KeyError(f"Scene element '{key}' not found. Available: {sorted(self.entities)}")
        return self.entities[key]

    @property
    def needs_substeps(self) -> bool:
        """Whether an entity must compute its controls before every physics step."""
        return any(entity.needs_substeps for entity in self.entities.values())

    def compile(self) -> mujoco.MjModel:
        """Compile the scene."""
        return self.spec.compile()

    def initialize(self, mj_model: mujoco.MjModel, model: WarpBridge, data: WarpBridge) -> None:
        """Let every entity find itself in the compiled model."""
        for entity in self.entities.values():
            entity.initialize(mj_model, model, data, self.device)

    def reset(self, env_ids: EnvIds = None) -> None:
        """Clear what the entities carry over from step to step."""
        for entity in self.entities.values():
            entity.reset(env_ids)

    def update(self, dt: float) -> None:
        """Advance what the entities track over time by `dt` [s]."""
        for entity in self.entities.values():
            entity.update(dt)

    def write_data_to_sim(self) -> None:
        """Turn the entities' targets into controls."""
        for entity in self.entities.values():
            entity.write_data_to_sim()

    def _attach(self, name: str, cfg: EntityCfg) -> None:
        try:
            entity = cfg.build()
        except ValueError as error:
            raise ValueError(f"Entity '{name}': {error}") from error
        if fields := non_default_option_fields(entity.spec.option):
            warnings.warn(
                f"Entity '{name}' sets <option> {', '.join(fields)}, which a scene ignores: "
                "set them in SimulationCfg.mujoco.",
                stacklevel=4,
            )
            default = mujoco.MjSpec().option
            for option in fields:
                setattr(entity.spec.option, option, getattr(default, option))
        frame = self.spec.worldbody.add_frame()
        if entity.is_fixed_base:
            frame.pos[:] = cfg.init_state.pos
            frame.quat[:] = cfg.init_state.rot
        self.spec.attach(entity.spec, prefix=f"{name}/", frame=frame)
        self.entities[name] = entity
