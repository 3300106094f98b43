"""Randomization of options of the physics, which belong to no entity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyworlds.envs.mdp.dr.distributions import Distribution, Operation
from manyworlds.envs.mdp.dr.field_draws import Axes, FieldDraw, Ranges, field_draw, randomizes
from manyworlds.validation.worlds import EnvIds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


@randomizes("opt.gravity", selects=())
def gravity(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    ranges: Ranges,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "add",
    axes: Axes = None,
) -> FieldDraw:
    """Randomize `opt.gravity`: the acceleration of gravity along the world's axes [m/s^2].

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        ranges: (lower, upper) for all axes, or by axis {2: (lower, upper)}.
        distribution: 'uniform', 'log_uniform', 'gaussian' (ranges are mean and standard deviation),
            or a `dr.Distribution`.
        operation: 'abs' sets, 'scale' multiplies and 'add' adds to the compiled values; or a
            `dr.Operation`.
        axes: axes to draw; the others keep their values. None for those of `ranges`, else all.
    """
    return field_draw(env, "opt.gravity", ranges, None, distribution, operation, axes)
