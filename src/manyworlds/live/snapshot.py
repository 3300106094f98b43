"""Everything of one world of a batch at one moment, as a value that can be sent and stored."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from manyworlds.utils.plain_archive import pack, unpack

if TYPE_CHECKING:
    from manyworlds.envs.manager_based_rl_env import ManagerBasedRlEnv

_FORMAT = 1


@dataclass(frozen=True)
class WorldSnapshot:
    """State of one world between two control steps; see `env_from_snapshot`.

    It has physics with the solver's warm start, the model fields that differ between worlds,
    commands, delays, histories, timers of events, and the episode so far.
    """

    env_id: int
    """Index of the world in its batch."""
    step: int
    """Control steps of the batch so far."""
    seed: int
    """Seed of the batch."""
    terrain_seed: int | None
    """Seed of the generated terrain; None without one."""
    variants: dict[str, int]
    """Variant of each entity that has some."""
    model_hash: str
    """Hash of the compiled model; see `model_hash`."""
    state: dict[str, Any]
    """State for `ManagerBasedRlEnv.load_state_dict` of an environment of one world."""

    def to_bytes(self) -> bytes:
        """Return the snapshot as an NPZ archive, which runs no code when it is read."""
        fields = {**asdict(self), "state": self.state}  # without copying the state
        return pack({"format": _FORMAT, **fields})

    @classmethod
    def from_bytes(cls, data: bytes) -> WorldSnapshot:
        """Read what `to_bytes` returned.

        Raises:
            ValueError: the bytes are damaged, or are something else.
        """
        content = unpack(data)
        if not isinstance(content, dict) or content.pop("format", None) != _FORMAT:
            raise ValueError(
                "These bytes are no snapshot of a world, or one of another version: take it with "
                "the version of manyworlds that reads it."
            )
        try:
            snapshot = cls(**content)
        except TypeError as error:
            raise ValueError(f"The snapshot of a world is incomplete: {error}.") from None
        if not isinstance(snapshot.state, dict) or not isinstance(snapshot.variants, dict):
            raise ValueError("The snapshot of a world has no state: take it again.")
        return snapshot


def take_snapshot(env: ManagerBasedRlEnv, env_id: int) -> WorldSnapshot:
    """Return the present moment of one world; the batch does not change.

    Args:
        env: the batch, between two control steps.
        env_id: index of the world.

    Raises:
        ValueError: there is no such world, or the engine of the batch is not bit-exact.
    """
    if not env.sim.is_bit_exact:
        raise ValueError(
            f"An environment of one world runs MuJoCo C, but the engine of these worlds is "
            f"{env.sim.engine}: set cfg.sim.engine = 'native'."
        )
    return snapshot_of_state(env, env_id, env.common_step_counter, env.world_state(env_id))


def snapshot_of_state(
    env: ManagerBasedRlEnv, env_id: int, step: int, state: dict[str, object]
) -> WorldSnapshot:
    """Return a snapshot whose state was taken before.

    Args:
        env: the batch.
        env_id: index of the world.
        step: control steps of the batch at the moment.
        state: what `ManagerBasedRlEnv.world_state` returned.
    """
    terrain = env.scene.terrain
    terrain_seed = None
    if terrain is not None and terrain.cfg.terrain_generator is not None:
        terrain_seed = terrain.cfg.terrain_generator.seed
    return WorldSnapshot(
        env_id=env_id,
        step=step,
        seed=env.seed_used,
        terrain_seed=terrain_seed,
        variants={name: int(of[env_id]) for name, of in env.sim.world_to_variant.items()},
        model_hash=model_hash(env.sim.mj_model),
        state=state,
    )


def model_hash(model: mujoco.MjModel) -> str:
    """Return a hash of a compiled model, equal for models that are equal to the bit."""
    block = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, block)
    return hashlib.blake2b(block.tobytes(), digest_size=16).hexdigest()
