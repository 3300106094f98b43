"""Randomization of masses of bodies and of their distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from manyworlds.envs.mdp.dr.distributions import Distribution
from manyworlds.envs.mdp.dr.field_draws import (
    ROBOT,
    Bounds,
    Randomization,
    Range,
    Rows,
    make_bounds,
    randomizes,
)
from manyworlds.managers.scene_entity_config import SceneEntityCfg
from manyworlds.utils.math.inertia import perturb_inertia
from manyworlds.validation.worlds import EnvIds, Worlds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv

_NONE: Range = (0.0, 0.0)
_FIELDS = ("body_mass", "body_ipos", "body_inertia", "body_iquat")


class _Perturbation(Randomization):
    """Draws of ten numbers for each body: alpha, d1, d2, d3, s12, s13, s23, t1, t2, t3."""

    def __init__(
        self,
        env: ManagerBasedRlEnv,
        asset_cfg: SceneEntityCfg,
        ranges: tuple[Range, ...],
        distribution: Distribution | str,
    ) -> None:
        self._rows = [Rows(env, field, asset_cfg) for field in _FIELDS]
        env.sim.expand_model_fields(_FIELDS)
        # Numbers that stay zero are not drawn: no logarithm leads to them.
        drawn = [i for i, bounds in enumerate(ranges) if tuple(bounds) != _NONE]
        self._drawn = torch.tensor(drawn, device=env.sim.device, dtype=torch.long)
        wanted = [[ranges[i] for i in drawn]]
        self._bounds: Bounds | None = None
        if drawn:
            self._bounds = make_bounds(wanted, distribution, env.sim.device)

    def apply(self, env: ManagerBasedRlEnv, worlds: Worlds) -> None:
        """Draw for some worlds."""
        shape = (worlds.num_rows, len(self._rows[0].ids))
        numbers = torch.zeros(*shape, 10, device=self._drawn.device)
        if self._bounds is not None:
            numbers[..., self._drawn] = self._bounds.sample(env.random, worlds, shape[1])
        mass, ipos, moments, iquat = (rows.default(worlds) for rows in self._rows)
        alpha, stretch, shear, shift = numbers.split([1, 3, 3, 3], dim=-1)
        mass, *others = perturb_inertia(
            mass.squeeze(-1), ipos, moments, iquat, alpha.squeeze(-1), stretch, shear, shift
        )
        for rows, values in zip(self._rows, (mass.unsqueeze(-1), *others), strict=True):
            rows.write(env, worlds, values.float())


@randomizes(*_FIELDS)
def pseudo_inertia(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    alpha_range: Range = _NONE,
    d_range: Range | None = None,
    d1_range: Range = _NONE,
    d2_range: Range = _NONE,
    d3_range: Range = _NONE,
    s12_range: Range = _NONE,
    s13_range: Range = _NONE,
    s23_range: Range = _NONE,
    t_range: Range | None = None,
    t1_range: Range = _NONE,
    t2_range: Range = _NONE,
    t3_range: Range = _NONE,
    distribution: Distribution | str = "uniform",
    asset_cfg: SceneEntityCfg = ROBOT,
) -> _Perturbation:
    """Randomize mass, center of mass and inertia of bodies together, so that they stay possible.

    The compiled body is deformed by `x -> A x + t` and made denser: see
    `manyworlds.utils.math.inertia.perturb_inertia`, also for the source. Every body gets numbers of
    its own. Axes are those of the body's frame.

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        alpha_range: bounds of alpha: mass and inertia are multiplied by e^(2 alpha).
        d_range: bounds of d1, d2 and d3, which are drawn one by one; None for those that follow.
        d1_range: bounds of d1: the body is stretched by e^d1 along x, away from its origin.
        d2_range: likewise along y.
        d3_range: likewise along z.
        s12_range: bounds of s12: x grows by s12 times y.
        s13_range: bounds of s13: x grows by s13 times z.
        s23_range: bounds of s23: y grows by s23 times z.
        t_range: bounds of t1, t2 and t3, which are drawn one by one; None for those that follow.
        t1_range: bounds of t1: the center of mass moves by t1 along x [m].
        t2_range: likewise along y.
        t3_range: likewise along z.
        distribution: 'uniform', 'log_uniform', 'gaussian', or a `dr.Distribution`.
        asset_cfg: the entity and which of its bodies.

    Raises:
        ValueError: ranges are given both for all axes and for one of them.
    """
    ranges = (
        alpha_range,
        *_of_axes("d", d_range, (d1_range, d2_range, d3_range)),
        *(s12_range, s13_range, s23_range),
        *_of_axes("t", t_range, (t1_range, t2_range, t3_range)),
    )
    return _Perturbation(env, asset_cfg, ranges, distribution)


def _of_axes(name: str, shared: Range | None, single: tuple[Range, ...]) -> tuple[Range, ...]:
    """Ranges along the three axes."""
    if shared is None:
        return single
    if any(tuple(bounds) != _NONE for bounds in single):
        raise ValueError(
            f"dr.pseudo_inertia is given {name}_range={shared}, which counts for all axes, but "
            f"also {name}1_range, {name}2_range or {name}3_range: leave one of them out."
        )
    return (shared,) * 3
