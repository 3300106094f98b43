"""What drives joints and measures them: gains, limits, delays and encoders."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from manyworlds.actuator import Actuator
from manyworlds.envs.mdp.dr._core import (
    Bounds,
    Range,
    draw_or_repeat,
    frozen,
    make_bounds,
    randomizes,
    remember,
    selected,
)
from manyworlds.envs.mdp.dr._types import ABS, SCALE, Distribution, Operation, resolve_operation
from manyworlds.envs.mdp.dr.fields import ROBOT
from manyworlds.envs.mdp.events import resolve_env_ids
from manyworlds.managers.scene_entity_config import SceneEntityCfg

if TYPE_CHECKING:
    from manyworlds.entity import Entity
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.managers.event_memory import Draws

_DRIVEN = ("joint", "tendon", "site")


@dataclass(frozen=True)
class _ParameterDraw:
    """Draws of one parameter of one actuator."""

    actuator: Actuator
    name: str
    columns: torch.Tensor
    """Which of the actuator's targets."""
    bounds: Bounds
    scales: bool
    """Whether the draw multiplies what was built, instead of taking its place."""
    draws: Draws | None
    """Keeps what is drawn, if anything does."""
    what: str
    """Name of the numbers: see `Draws.draw`."""
    layout: str
    """What the numbers are for."""

    def __call__(self, worlds: torch.Tensor) -> None:
        """Draw for some worlds, given by ids."""
        drawn = draw_or_repeat(
            self.draws,
            self.what,
            self.layout,
            worlds,
            lambda count: self.bounds.sample(count, len(self.columns)).squeeze(-1),
        )
        # Only the tail of a distribution is below zero, where springs would push.
        value = drawn.clamp(min=0.0)
        if self.scales:
            value *= self.actuator.default_param(self.name)[worlds[:, None], self.columns]
        self.actuator.set_param(self.name, value, worlds, self.columns)


def _parameter_draws(
    env: ManagerBasedRlEnv,
    asset_cfg: SceneEntityCfg,
    ranges: Mapping[str, Range],
    distribution: Distribution | str,
    operation: Operation | str,
) -> list[_ParameterDraw]:
    """Find parameters of the selected actuators, whatever their kinds."""
    names, operation = " or ".join(ranges), resolve_operation(operation)
    if operation not in (ABS, SCALE):
        raise ValueError(
            f"An actuator's {names} cannot be randomized by operation '{operation.name}': use "
            "'scale' or 'abs'."
        )
    bounds = {n: make_bounds([[pair]], distribution, env.sim.device) for n, pair in ranges.items()}
    for name, pair in ranges.items():
        if pair[0] < 0.0:
            raise ValueError(f"The range of {name} must not be negative, got {pair}.")
    draws: list[_ParameterDraw] = []
    for i, actuator in enumerate(env.scene[asset_cfg.name].actuators):
        columns = _selected_columns(asset_cfg, actuator)
        able = [name for name in ranges if name in actuator.param_names]
        if len(columns) and not able and _is_selective(asset_cfg):
            raise ValueError(
                f"The {type(actuator).__name__} of {', '.join(actuator.target_names)} has no "
                f"{names}: select other actuators in asset_cfg."
            )
        draws += [
            _ParameterDraw(
                actuator,
                name,
                columns,
                bounds[name],
                operation is SCALE,
                asset_cfg.draws,
                f"{name} of actuator {i}",
                f"{operation.name} {columns.tolist()}",
            )
            for name in able
            if len(columns)
        ]
    if not draws:
        raise ValueError(
            f"'{asset_cfg.name}' has no actuator with {names} among those selected: configure "
            "one in EntityCfg.articulation, or select others in asset_cfg."
        )
    return draws


def _is_selective(asset_cfg: SceneEntityCfg) -> bool:
    """Whether actuators, or what they drive, are selected by name or id."""
    kinds = ("actuator", *_DRIVEN)
    return any(getattr(asset_cfg, f"{kind}_names") is not None for kind in kinds)


def _selected_columns(asset_cfg: SceneEntityCfg, actuator: Actuator) -> torch.Tensor:
    """Which targets of an actuator a resolved selection has, by actuators and what they drive."""
    columns = torch.arange(len(actuator.target_ids), device=actuator.target_ids.device)
    if isinstance(asset_cfg.actuator_ids, list):
        columns = actuator.target_columns(asset_cfg.actuator_ids)
    named = [kind for kind in _DRIVEN if getattr(asset_cfg, f"{kind}_names") is not None]
    kind = actuator.transmission_type.value
    if named and kind not in named:
        return columns[:0]
    ids = getattr(asset_cfg, f"{kind}_ids")
    if isinstance(ids, list):
        wanted = torch.tensor(ids, device=columns.device)
        columns = columns[torch.isin(actuator.target_ids[columns], wanted)]
    return columns


@randomizes("actuator_gainprm", "actuator_biasprm")
def pd_gains(
    env: ManagerBasedRlEnv,
    env_ids: torch.Tensor | None,
    kp_range: Range,
    kd_range: Range,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "scale",
) -> None:
    """Randomize stiffness and damping of actuators, for each of their targets.

    Actuators that have only one of them take that. Draws below zero count as zero.

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        kp_range: bounds of the stiffness [N m/rad or N/m], or of its factor.
        kd_range: bounds of the damping [N m s/rad or N s/m], or of its factor.
        asset_cfg: the entity and which of its actuators, by their own names or by those of the
            joints or tendons that they drive; by default those that have gains.
        distribution: 'uniform', 'log_uniform', 'gaussian', or a `dr.Distribution`.
        operation: 'scale' multiplies the gains as built, 'abs' sets them.

    Raises:
        ValueError: an actuator that was selected has no gains, or none has, or the operation is
            another one.
    """
    ranges = {"stiffness": kp_range, "damping": kd_range}
    _draw(env, env_ids, ranges, asset_cfg, distribution, operation)


@randomizes(
    *("actuator_forcerange", "actuator_ctrlrange", "jnt_actfrcrange", "tendon_actfrcrange"),
    reads=("actuator_gear",),
)
def effort_limits(
    env: ManagerBasedRlEnv,
    env_ids: torch.Tensor | None,
    effort_limit_range: Range,
    asset_cfg: SceneEntityCfg = ROBOT,
    distribution: Distribution | str = "uniform",
    operation: Operation | str = "scale",
) -> None:
    """Randomize the largest efforts of actuators, for each of their targets.

    Limits are the actuators' own, before gears. A range that is not symmetric keeps its shape.

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        effort_limit_range: bounds of the limit [N m or N], or of its factor.
        asset_cfg: see `pd_gains`.
        distribution: 'uniform', 'log_uniform', 'gaussian', or a `dr.Distribution`.
        operation: 'scale' multiplies the limits as built, 'abs' sets them.

    Raises:
        ValueError: an actuator that was selected has no limits, or none has, or the operation is
            another one.
    """
    _draw(env, env_ids, {"force_limit": effort_limit_range}, asset_cfg, distribution, operation)


def _draw(
    env: ManagerBasedRlEnv,
    env_ids: torch.Tensor | None,
    ranges: Mapping[str, Range],
    asset_cfg: SceneEntityCfg,
    distribution: Distribution | str,
    operation: Operation | str,
) -> None:
    draws = remember(
        env,
        asset_cfg,
        "parameters",
        (frozen(ranges), distribution, operation),
        lambda resolved: _parameter_draws(env, resolved, ranges, distribution, operation),
    )
    worlds = resolve_env_ids(env, env_ids)
    for draw in draws:
        draw(worlds)


@randomizes()
def encoder_bias(
    env: ManagerBasedRlEnv,
    env_ids: torch.Tensor | None,
    bias_range: Range,
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Give the encoder of every joint an error that stays: `entity.data.encoder_bias`.

    `joint_pos_biased` shows positions with it, and position actions make up for it as a robot
    would that believes its encoders. The model stays.

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        bias_range: bounds of the error [rad or m].
        asset_cfg: the entity and which of its joints.
    """

    def build(resolved: SceneEntityCfg) -> tuple[torch.Tensor, Bounds]:
        selected(env, resolved, "joint")
        every = torch.arange(env.scene[resolved.name].num_joints, device=env.sim.device)
        bounds = make_bounds([[bias_range]], "uniform", env.sim.device)
        return every[resolved.index("joint")], bounds

    joints, bounds = remember(env, asset_cfg, "encoder_bias", frozen(bias_range), build)
    worlds = resolve_env_ids(env, env_ids)
    bias = bounds.sample(len(worlds), len(joints)).squeeze(-1)
    env.scene[asset_cfg.name].data.encoder_bias[worlds[:, None], joints] = bias


@randomizes()
def sync_actuator_delays(
    env: ManagerBasedRlEnv,
    env_ids: torch.Tensor | None,
    lag_range: tuple[int, int] | None = None,
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Give all actuators of an entity that have a delay the same one, drawn for each world.

    A reset draws the delays of actuators one by one, before events: use mode 'reset'.

    Args:
        env: the environment.
        env_ids: the worlds; None for all.
        lag_range: smallest and largest delay [physics steps]; None for what all of them can have.
        asset_cfg: the entity.

    Raises:
        ValueError: no actuator has a delay, or one cannot have all those of the range.
    """
    delayed, (low, high) = remember(
        env,
        asset_cfg,
        "sync_actuator_delays",
        frozen(lag_range),
        lambda resolved: _common_lags(env.scene[resolved.name], lag_range),
    )
    worlds = resolve_env_ids(env, env_ids)
    lags = torch.randint(low, high + 1, (len(worlds),), device=env.sim.device)
    for actuator in delayed:
        actuator.set_lags(lags, worlds)


def _common_lags(
    entity: Entity, lag_range: tuple[int, int] | None
) -> tuple[list[Actuator], tuple[int, int]]:
    """Find the actuators that have a delay, and the delays that all of them can have."""
    delayed = [actuator for actuator in entity.actuators if actuator.has_delay]
    if not delayed:
        raise ValueError(
            "dr.sync_actuator_delays found no actuator that has a delay: set delay_max_lag."
        )
    low = max(actuator.cfg.delay_min_lag for actuator in delayed)
    high = min(actuator.cfg.delay_max_lag for actuator in delayed)
    wanted = (low, high) if lag_range is None else lag_range
    if not low <= wanted[0] <= wanted[1] <= high:
        raise ValueError(
            f"dr.sync_actuator_delays cannot draw from {wanted}: all actuators that have a delay "
            f"can be late by {low} to {high} physics steps, see delay_min_lag and delay_max_lag."
        )
    if any(actuator.cfg.delay_hold_prob < 1.0 for actuator in delayed):
        warnings.warn(
            "dr.sync_actuator_delays sets delays that actuators soon draw anew, one by one: set "
            "delay_hold_prob=1.0.",
            UserWarning,
            5,
        )
    return delayed, wanted
