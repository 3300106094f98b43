"""Draws of rotations into orientation fields of the model."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from manyworlds.envs.mdp.dr.distributions import Distribution
from manyworlds.envs.mdp.dr.field_draws import Bounds, Randomization, Range, Rows, make_bounds
from manyworlds.managers.scene_entity_config import SceneEntityCfg
from manyworlds.utils.math import quat_from_euler_xyz, quat_mul
from manyworlds.validation.worlds import Worlds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


@dataclass(frozen=True)
class QuatDraw(Randomization):
    """Draw of rotations after the compiled orientations."""

    rows: Rows
    bounds: Bounds

    def apply(self, env: ManagerBasedRlEnv, worlds: Worlds) -> None:
        """Draw for some worlds."""
        rows = self.rows
        drawn = self.bounds.sample(env.random, worlds, len(rows.ids))
        turn = quat_from_euler_xyz(*drawn.unbind(-1))
        turned = quat_mul(rows.default(worlds), turn)
        rows.write(env, worlds, torch.nn.functional.normalize(turned, dim=-1))


def quat_draw(
    env: ManagerBasedRlEnv,
    field: str,
    roll_range: Range,
    pitch_range: Range,
    yaw_range: Range,
    distribution: Distribution | str,
    asset_cfg: SceneEntityCfg,
) -> QuatDraw:
    """Build a draw of rotations of the elements of an entity, about their own axes.

    Args:
        env: the environment.
        field: name of a model field of quaternions.
        roll_range: bounds of the rotation about x [rad].
        pitch_range: bounds of the rotation about y [rad].
        yaw_range: bounds of the rotation about z [rad].
        distribution: a name or a `Distribution`.
        asset_cfg: the entity and which of its elements.

    Raises:
        ValueError: a range, a name or a distribution does not fit.
    """
    angles = (roll_range, pitch_range, yaw_range)
    if any(abs(bound) > 2.0 * math.pi for bounds in angles for bound in bounds):
        warnings.warn(
            f"dr.{field} has ranges {angles}: they are radians, and some are beyond a "
            "whole turn. Use math.radians for degrees.",
            UserWarning,
            5,
        )
    rows = Rows(env, field, asset_cfg)
    env.sim.expand_model_fields((field,))
    return QuatDraw(rows, make_bounds([angles], distribution, env.sim.device))
