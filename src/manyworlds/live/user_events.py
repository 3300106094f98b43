"""Events that a user sends from a lab to a training: recorded start states, and recorded pushes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mujoco
import numpy as np
import torch

from manyworlds.envs.mdp.events import apply_body_impulse, resolve_env_ids
from manyworlds.managers.event_manager import EventTermCfg
from manyworlds.managers.manager_base import ManagerTermBase
from manyworlds.managers.scene_entity_config import SceneEntityCfg
from manyworlds.utils.math import quat_apply
from manyworlds.utils.math.quaternion import quat_from_angle_axis
from manyworlds.validation.worlds import EnvIds

if TYPE_CHECKING:
    from manyworlds.envs.manager_based_rl_env import ManagerBasedRlEnv
    from manyworlds.live.snapshot import WorldSnapshot

_FIELDS = {
    "qpos": mujoco.mjtState.mjSTATE_QPOS,
    "qvel": mujoco.mjtState.mjSTATE_QVEL,
    "act": mujoco.mjtState.mjSTATE_ACT,
    "mocap_pos": mujoco.mjtState.mjSTATE_MOCAP_POS,
    "mocap_quat": mujoco.mjtState.mjSTATE_MOCAP_QUAT,
    "qacc_warmstart": mujoco.mjtState.mjSTATE_WARMSTART,
}
"""Fields of the physics from which an episode can begin."""


@dataclass(frozen=True)
class StartState:
    """State of one world's physics from which episodes of other worlds can begin.

    Delays, histories, commands and the episode itself begin as at any reset.
    """

    model_hash: str
    """Hash of the compiled model; see `model_hash`."""
    variants: Mapping[str, int]
    """Variant of each entity that has some."""
    origin: tuple[float, float, float]
    """Origin of the world [m]."""
    cell: tuple[int, int] | None
    """Row and column of the world's cell on generated terrain; None on a plane."""
    fields: Mapping[str, Sequence[float]]
    """Values of `qpos`, `qvel`, `act` and others that the model has, in one row each."""

    @staticmethod
    def of(snapshot: WorldSnapshot, env: ManagerBasedRlEnv) -> StartState:
        """Return the physics of a snapshot.

        Args:
            snapshot: the snapshot.
            env: environment of one or more worlds of the same model.

        Raises:
            ValueError: the snapshot is of another model.
        """
        from manyworlds.live.snapshot import model_hash

        model = env.sim.mj_model
        if model_hash(model) != snapshot.model_hash:
            raise ValueError(
                "The snapshot belongs to another compiled model than this environment: take it "
                "from a world of the same task."
            )
        row = snapshot.state["sim"]["state"][0].cpu().numpy().astype(np.float64)
        whole = int(mujoco.mjtState.mjSTATE_INTEGRATION)
        fields = {}
        for name, part in _FIELDS.items():
            values = np.empty(mujoco.mj_stateSize(model, int(part)))
            if values.size:
                mujoco.mj_extractState(model, row, whole, values, int(part))
                fields[name] = values.tolist()
        saved = snapshot.state["scene"]
        terrain = env.scene.terrain
        cell = None
        if terrain is not None:
            names = (name for name, entity in env.scene.entities.items() if entity is terrain)
            saved = saved["entities"][next(names)]
            if terrain.terrain_origins is not None:
                cell = (int(saved["terrain_levels"][0]), int(saved["terrain_types"][0]))
        x, y, z = saved["env_origins"][0].tolist()
        origin = (x, y, z)
        return StartState(snapshot.model_hash, dict(snapshot.variants), origin, cell, fields)

    def problem(self, env: ManagerBasedRlEnv) -> str:
        """Return why episodes of an environment cannot begin here, as a sentence; empty if not."""
        from manyworlds.live.snapshot import model_hash

        if model_hash(env.sim.mj_model) != self.model_hash:
            return (
                "The start state belongs to another compiled model than this task: take it from a "
                "world of this training."
            )
        sizes = {n: mujoco.mj_stateSize(env.sim.mj_model, int(p)) for n, p in _FIELDS.items()}
        wanted = {name: size for name, size in sizes.items() if size}
        given = {name: len(values) for name, values in self.fields.items()}
        if given != wanted:
            return f"The start state has the fields {given}, but the model has {wanted}."
        if len(self.origin) != len("xyz") or not all(map(math.isfinite, self.origin)):
            return f"The start state's origin is {self.origin}: give three finite numbers."
        for name, values in self.fields.items():
            if not all(map(math.isfinite, values)):
                return f"The start state's {name} is not finite: take it at another moment."
        for name, variant in self.variants.items():
            if not bool((env.sim.world_to_variant[name] == variant).any()):
                return f"No world has the start state's variant {variant} of '{name}'."
        return ""


class start_from_states(ManagerTermBase):  # noqa: N801
    """Event of mode 'reset' that begins a share of the episodes in recorded states.

    The states replace what other events and commands of the reset have set. On a plane, positions
    are relative to the world's origin; on generated terrain, the world moves to the state's cell.
    A world with other variants than a state's does not begin there.

    Raises:
        ValueError: the mode of the event is not 'reset', a state is of another model, or the share
            or a weight is out of range.
    """

    derived_attributes = ("_begun",)

    def __init__(self, cfg: EventTermCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        states: Sequence[StartState] = cfg.params["states"]
        weights = cfg.params["weights"]
        share = cfg.params["share"]
        if cfg.mode != "reset":
            raise ValueError(
                f"start_from_states begins episodes, but its mode is '{cfg.mode}': use 'reset'."
            )
        if not states or len(states) != len(weights):
            raise ValueError(
                f"start_from_states has {len(states)} states and {len(weights)} weights: give one "
                "weight for each state."
            )
        if not 0.0 < share <= 1.0:
            raise ValueError(f"The share of episodes is {share}: give more than 0, at most 1.")
        if not all(weight > 0.0 and math.isfinite(weight) for weight in weights):
            raise ValueError(f"The weights of start states are {weights}: they must be positive.")
        for state in states:
            problem = state.problem(env)
            if problem:
                raise ValueError(problem)
        model = env.sim.mj_model
        free = model.jnt_qposadr[model.jnt_type == mujoco.mjtJoint.mjJNT_FREE]
        self._free = torch.from_numpy(np.add.outer(free, np.arange(3))).long().to(self.device)
        self._rows: dict[str, torch.Tensor] = {}
        for name in states[0].fields:
            self._rows[name] = self._tensor([state.fields[name] for state in states])
        self._origins = self._tensor([state.origin for state in states])
        self._cells = [state.cell for state in states]
        self._weights = self._tensor(weights)
        self._variants = [state.variants for state in states]
        none = torch.zeros(0, dtype=torch.long, device=self.device)
        self._nothing = none, none, torch.zeros(0, 3, device=self.device)
        self._begun = self._nothing

    def __call__(
        self,
        env: ManagerBasedRlEnv,
        env_ids: torch.Tensor | None,
        states: Sequence[StartState],
        weights: Sequence[float],
        share: float,
    ) -> None:
        """Begin a share of the given episodes in recorded states.

        Args:
            env: the environment.
            env_ids: ids of the worlds; None for all.
            states: the states.
            weights: relative frequency of each state.
            share: share of the episodes that begin in one of them.
        """
        ids = resolve_env_ids(env, env_ids)
        drawn = self.random.uniform(env_ids=ids) < share
        which = self.random.choice(self._weights, ids)
        chosen = drawn & self._fits(env, ids, which)
        ids = ids[chosen]
        which = which[chosen]
        self._begun = ids, which, self._place(env, ids, which)

    def reset(self, env_ids: EnvIds = None) -> None:
        """Write the chosen states, after commands that place objects at a reset."""
        ids, which, shift = self._begun
        self._begun = self._nothing
        if len(ids) == 0:
            return
        for name, table in self._rows.items():
            target = getattr(self._env.sim.data, name)
            rows = table[which]
            if name == "qpos" and self._free.numel():
                rows[:, self._free] += shift[:, None, :]
            rows = rows.reshape(len(ids), *target.shape[1:])
            if name == "mocap_pos":
                rows = rows + shift[:, None, :]
            target[ids] = rows

    def _fits(self, env: ManagerBasedRlEnv, ids: torch.Tensor, which: torch.Tensor) -> torch.Tensor:
        """Return the mask of worlds that have the variants of their states, shape [len(ids)]."""
        fits = torch.ones_like(ids, dtype=torch.bool)
        for name, of_world in env.sim.world_to_variant.items():
            wanted = self._tensor([state.get(name, 0) for state in self._variants]).long()
            fits &= torch.as_tensor(of_world, device=self.device)[ids] == wanted[which]
        return fits

    def _place(
        self, env: ManagerBasedRlEnv, ids: torch.Tensor, which: torch.Tensor
    ) -> torch.Tensor:
        """Move worlds to the cells of their states; return the shift [m], shape [len(ids), 3]."""
        terrain = env.scene.terrain
        if terrain is not None and terrain.terrain_origins is not None:
            cells = self._tensor([cell or (0, 0) for cell in self._cells]).long()[which]
            terrain.place(ids, cells[:, 0], cells[:, 1])
        return env.scene.env_origins[ids] - self._origins[which]

    def _tensor(self, values: Sequence[float] | Sequence[Sequence[float]]) -> torch.Tensor:
        with torch.inference_mode(False):
            return torch.tensor(values, dtype=torch.float32, device=self.device)


class repeat_push(apply_body_impulse):  # noqa: N801
    """Event of mode 'step' that repeats a recorded push on a body, after random pauses."""

    def __init__(self, cfg: EventTermCfg, env: ManagerBasedRlEnv) -> None:
        params = cfg.params
        self._scale: tuple[float, float] = params.get("scale_range", (1.0, 1.0))
        self._any_direction: bool = params.get("any_direction", False)
        for name in ("force", "torque"):
            if len(params[name]) != 3 or not all(map(math.isfinite, params[name])):
                raise ValueError(f"The push's {name} is {params[name]}: give three finite numbers.")
        low, high = params["cooldown_s"]
        if not 0.0 <= low <= high < math.inf:
            raise ValueError(f"The pauses between pushes are {low} to {high} s: 0 <= low <= high.")
        if not 0.0 < params["duration_s"] < math.inf:
            raise ValueError(f"The push lasts {params['duration_s']} s: give a positive duration.")
        low, high = self._scale
        if not (isinstance(self._any_direction, bool) and -math.inf < low <= high < math.inf):
            raise ValueError(
                f"The push is multiplied by {low} to {high}, in any direction: "
                f"{self._any_direction}; give low <= high, and true or false."
            )
        super().__init__(cfg, env)
        push = (params["force"], params["torque"])
        with torch.inference_mode(False):
            self._push = torch.tensor(push, dtype=torch.float32, device=self.device)

    def __call__(  # type: ignore[override]
        self,
        env: ManagerBasedRlEnv,
        env_ids: torch.Tensor | None,
        force: tuple[float, float, float],
        torque: tuple[float, float, float],
        duration_s: float,
        cooldown_s: tuple[float, float],
        asset_cfg: SceneEntityCfg,
        scale_range: tuple[float, float] = (1.0, 1.0),
        any_direction: bool = False,
    ) -> None:
        """Advance the timers by a control step; start and stop pushes that are due.

        Args:
            env: the environment.
            env_ids: ids of the worlds; None for all.
            force: recorded force in the world, at the body's center of mass [N].
            torque: recorded torque in the world [N m].
            duration_s: duration of the push [s].
            cooldown_s: bounds of the pause after a push and after a reset [s].
            asset_cfg: the entity and its body.
            scale_range: bounds of the factor by which the push is multiplied.
            any_direction: whether each push is turned about the vertical by a random angle.
        """
        no_range = (0.0, 0.0)
        duration_range = (duration_s, duration_s)
        super().__call__(env, env_ids, no_range, no_range, duration_range, cooldown_s, asset_cfg)

    def _draw_wrench(
        self, force_range: tuple[float, float], torque_range: tuple[float, float]
    ) -> torch.Tensor:
        """Return the recorded wrench, scaled and turned, in place of one within ranges."""
        shape = self._wrench[..., :3].shape
        scale = self.random.uniform(*self._scale)
        force = (self._push[0] * scale[:, None])[:, None].expand(shape)
        torque = (self._push[1] * scale[:, None])[:, None].expand(shape)
        if self._any_direction:
            angle = self.random.uniform(-math.pi, math.pi)
            up = torch.tensor((0.0, 0.0, 1.0), device=self.device).expand(self.num_envs, 3)
            turn = quat_from_angle_axis(angle, up)[:, None].expand(*shape[:2], 4)
            force = quat_apply(turn, force)
            torque = quat_apply(turn, torque)
        return torch.cat([force, torque], dim=-1)
